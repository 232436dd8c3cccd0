package sign

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
)

// Signing configures how to sign a site.
type Signing struct {
	Signers     []note.Signer // signers whose keys share a name; each signs the note
	Keys        note.Keys     // the public keys of the signers
	ReplaceNote bool          // replace the bucket's note even if none of Keys signed it

	Now func() time.Time // the clock of counters; nil means time.Now
}

// counter returns the counter of the note after one with the counter last. It is the time in
// seconds, so it exceeds all that readers have seen even if the bucket's note was lost or replaced
// by an old one. The bucket's clock is not trusted: an attacker with access to the bucket could use
// up all counters.
func (s *Signing) counter(last uint64) uint64 {
	return max(last+1, uint64(max(0, s.clock().Unix())))
}

func (s *Signing) clock() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// Check returns an error if the signers cannot sign a site.
func (s *Signing) Check() error {
	if s == nil {
		return nil
	}
	if len(s.Signers) == 0 || s.Keys.None() {
		return errors.New("sign: no key")
	}
	seen := map[uint32]bool{}
	for _, signer := range s.Signers {
		if name := s.Signers[0].Name(); signer.Name() != name {
			return fmt.Errorf("the keys are named %s and %s; use keys with the site's name", site.Quoted(name), site.Quoted(signer.Name()))
		}
		if seen[signer.KeyHash()] {
			return fmt.Errorf("duplicate key of %s", site.Quoted(signer.Name()))
		}
		seen[signer.KeyHash()] = true
	}
	return nil
}

// signsFor reports whether one of these space-separated public keys belongs to a signer.
func (s *Signing) signsFor(publics string) bool {
	return s != nil && slices.ContainsFunc(s.Signers, func(signer note.Signer) bool {
		prefix := fmt.Sprintf("%s+%08x+", signer.Name(), signer.KeyHash())
		return slices.ContainsFunc(strings.Fields(publics), func(public string) bool { return strings.HasPrefix(public, prefix) })
	})
}

// A Signature describes what a run signed.
type Signature struct {
	Origin  string `json:"origin"`
	Counter uint64 `json:"counter"`
	Keys    int    `json:"keys"` // number of signatures
}
