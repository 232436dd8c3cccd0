// Package sign keeps the note of a bucket, against which readers with a key check everything. It
// decides whether a run may replace the note, and announces the next site before objects are
// replaced in place, so that readers can tell a publish from a forgery.
package sign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/publisher/internal/origin"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/storage"
)

var (
	// ErrSigned means that an unsigned publish would leave readers of a signed bucket without a
	// signature.
	ErrSigned = errors.New("the bucket is signed, and this publish is not")
	// ErrOtherNote means that none of the run's keys signed the note of the bucket.
	ErrOtherNote = errors.New("none of the keys of this publish signed the bucket's note")
	// ErrStolen means that a key of the run signed a note that its publishers never would: somebody
	// else may have the key.
	ErrStolen = errors.New("the bucket's note is ahead of the clock")
	// ErrExplorerKeys means that the site's explorer would show nothing, because none of the keys
	// that it trusts signs the site.
	ErrExplorerKeys = errors.New("none of the explorer's keys signs the site")
)

// Notes reads and writes the notes of a bucket for one run.
type Notes struct {
	Bucket   *requests.Bucket
	Site     *origin.Site
	Signing  *Signing // nil if the run does not sign
	Unsigned bool     // remove the bucket's note
	Unlocked func()   // called when the server turns out to have no conditional writes
}

// A State holds the notes of a bucket. A zero Live means that none of the run's keys signed the
// note.
type State struct {
	Signed    []byte // note of the bucket; nil if there is none
	Live      note.Note
	condition storage.Condition // for replacing the note
	announced []note.Announced  // announcements by the run's keys from publishes that were cut off, greatest counter first
}

// greatest returns the greatest counter that readers may have seen.
func (s *State) greatest() uint64 {
	if len(s.announced) == 0 {
		return s.Live.Counter
	}
	return max(s.Live.Counter, s.announced[0].Counter)
}

// announcedFor returns the announced note that names a root, if there is one.
func (s *State) announcedFor(root []byte) (note.Announced, bool) {
	i := slices.IndexFunc(s.announced, func(a note.Announced) bool { return a.Names(root) == nil })
	if i < 0 {
		return note.Announced{}, false
	}
	return s.announced[i], true
}

// NamesAnother reports whether a note of the run's keys names another root.
func (s *State) NamesAnother(root []byte) bool {
	return s.Live.Counter > 0 && s.Live.Names(root) != nil
}

// Unchanged reports whether the bucket, which has the site, also has the note that this run would
// put, or no note if the run would remove it.
func (n *Notes) Unchanged(ctx context.Context) (bool, error) {
	if n.Signing == nil && !n.Unsigned {
		return true, nil
	}
	signed, _, err := n.Bucket.Read(ctx, note.Key)
	if errors.Is(err, storage.ErrNotFound) {
		return n.Unsigned, nil
	} else if err != nil || n.Unsigned {
		return false, err
	}
	live, _, err := n.Signing.Keys.Open(signed, n.Signing.clock())
	return err == nil && n.isCurrent(&State{Signed: signed, Live: live}), nil // if not, Read returns the reason
}

// isCurrent reports whether the bucket's note names the site and has exactly the signatures of the
// run's keys.
func (n *Notes) isCurrent(s *State) bool {
	return s.Live.Counter > 0 && s.Live.Names(n.Site.Body) == nil && n.Signing.Keys.Sole(s.Signed)
}

// Read reads the notes of the bucket, and rejects a publish that its readers could not accept.
func (n *Notes) Read(ctx context.Context) (*State, error) {
	if keys := n.Site.Root.Config.ExplorerKeys; keys != "" && !n.Signing.signsFor(keys) {
		return nil, fmt.Errorf("%w; sign with the key of %s, or generate the site with --explorer-key of the signing key, or without",
			ErrExplorerKeys, strings.ReplaceAll(keys, " ", " or "))
	}
	s := &State{condition: storage.IfAbsent}
	body, info, err := n.Bucket.Read(ctx, note.Key)
	if err == nil {
		s.Signed, s.condition = body, storage.Condition(info.ETag)
	} else if !errors.Is(err, storage.ErrNotFound) {
		return nil, err
	}
	if n.Signing == nil {
		if s.Signed != nil && !n.Unsigned {
			return nil, fmt.Errorf("%w; sign with the key of %s, or publish with --unsigned, which removes the signature first", ErrSigned, note.Key)
		}
		return s, nil
	}
	if s.Signed != nil {
		s.Live, _, err = n.Signing.Keys.Open(s.Signed, n.Signing.clock())
		switch {
		case err == nil || n.Signing.ReplaceNote:
		case errors.Is(err, note.ErrAhead):
			return nil, fmt.Errorf("%w: %w; readers reject this note, so use --replace-note, with a new key if this one was stolen", ErrStolen, err)
		default:
			return nil, fmt.Errorf("%w: %w; publish also with the key that signed it, or find out who replaced it; "+
				"--replace-note signs again", ErrOtherNote, err)
		}
	}
	body, _, err = n.Bucket.Read(ctx, note.NextKey)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return nil, err
	}
	s.announced = n.Signing.Keys.OpenAnnounced(body, n.Signing.clock())
	return s, nil
}

// Replaces reports whether the run replaces a note that it does not trust. Then it trusts neither
// the manifest nor the objects.
func (n *Notes) Replaces(s *State) bool {
	return n.Signing != nil && s.Signed != nil && s.Live.Counter == 0
}

// sign signs the note of the site, reusing the text of the bucket's note if it names the same root.
// It checks the signers' results before anything is written.
func (n *Notes) sign(s *State) ([]byte, *Signature, error) {
	next := s.Live
	if next.Counter < max(1, s.greatest()) || next.Names(n.Site.Body) != nil {
		next = note.Of(n.Signing.Signers[0].Name(), n.Signing.counter(s.greatest()), n.Site.Root.AsOf, n.Site.Body)
	}
	signed, err := note.Sign(next, n.Signing.Signers...)
	if err != nil {
		return nil, nil, err
	}
	if _, _, err := n.Signing.Keys.Open(signed, n.Signing.clock()); err != nil {
		return nil, nil, fmt.Errorf("check the new signature: %w", err)
	}
	if !n.Signing.Keys.Sole(signed) {
		return nil, nil, errors.New("check the new signature: signers and public keys differ")
	}
	return signed, &Signature{Origin: next.Origin, Counter: next.Counter, Keys: len(n.Signing.Signers)}, nil
}

// Settle puts or removes the note of a bucket that already has the site. changed reports whether
// this was necessary; signature is nil if the run put no note.
func (n *Notes) Settle(ctx context.Context, s *State) (signature *Signature, changed bool, err error) {
	switch {
	case n.Unsigned && s.Signed != nil:
		return nil, true, n.Bucket.Delete(ctx, note.Key)
	case n.Signing == nil, n.isCurrent(s):
		return nil, false, nil
	}
	signed, signature, err := n.sign(s)
	if err != nil {
		return nil, false, err
	}
	return signature, true, n.put(ctx, s, signed)
}

// put puts the note, provided that the bucket's note is still the one that this run read: a note of
// an earlier run may arrive late.
func (n *Notes) put(ctx context.Context, s *State, signed []byte) (err error) {
	s.condition, err = lock.Replace(ctx, n.Bucket, besideObject(note.Key, signed), s.condition, &n.Site.Root, n.Unlocked)
	return err
}

// besideObject returns a note, or an object below site.NextPrefix, with the headers of its route.
func besideObject(key site.Key, body []byte) storage.Object {
	o := storage.Object{Entry: site.NewEntry(key, body), Body: body}
	route, ok := site.AllFeatures().RouteOf(key)
	if !ok {
		route = site.RouteBy(routes.NextRoot)
	}
	o.ContentType, o.CacheControl = route.ContentType, route.CacheControl
	return o
}

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
