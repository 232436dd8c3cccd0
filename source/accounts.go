package source

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
)

// An AccountWriter writes rows of the table accounts; a snapshot.Writer is one.
type AccountWriter interface {
	WriteAccount(snapshot.Account) error
}

// WriteAccounts writes a row for each account that names a primary list or has a profile, ordered
// by address. If an account has several profiles, the freshest wins, or the first of equally fresh
// ones. Profiles must be ordered by address, one per account. It sets g.Profiles.
func WriteAccounts(w AccountWriter, g *Graph, profiles ...Profiles) error {
	streams := make([]*stream, len(profiles))
	for i, all := range profiles {
		next, stop := iter.Pull2(all)
		defer stop()
		streams[i] = &stream{next: next}
		if err := streams[i].advance(); err != nil {
			return err
		}
	}
	naming := slices.SortedFunc(maps.Keys(g.Primary), site.Address.Compare)
	var told Answers
	for {
		address, ok := least(naming, streams)
		if !ok {
			g.Profiles = told.Input()
			return nil
		}
		row := snapshot.Account{Address: address}
		if len(naming) > 0 && naming[0] == address {
			row.Primary = g.Primary[address]
			naming = naming[1:]
		}
		for _, s := range streams {
			if s.ended || s.head.Address != address {
				continue
			}
			if ens := s.head.ENS; row.ENS == nil || rules.IsNewer(ens.Fresh, row.ENS.Fresh) {
				row.ENS = &ens
			}
			if err := s.advance(); err != nil {
				return err
			}
		}
		if err := w.WriteAccount(row); err != nil {
			return fmt.Errorf("account %s: %w", address, err)
		}
		if row.ENS == nil {
			continue
		}
		told.At(row.ENS.Fresh)
		if err := told.Digest.AddAccount(snapshot.Account{Address: address, ENS: row.ENS}); err != nil {
			return err
		}
	}
}

// A stream is the unread part of some Profiles.
type stream struct {
	next  func() (Profile, error, bool)
	head  Profile // valid until the stream ends
	begun bool
	ended bool
}

func (s *stream) advance() error {
	p, err, ok := s.next()
	switch {
	case err != nil:
		return fmt.Errorf("profiles: %w", err)
	case !ok:
		s.ended = true
		return nil
	case s.begun && p.Address.Compare(s.head.Address) <= 0:
		return errors.New("profiles: " + p.Address.String() + " comes after " + s.head.Address.String())
	}
	s.head, s.begun = p, true
	return nil
}

// least returns the lowest address in naming and streams; ok is false if all have ended.
func least(naming []site.Address, streams []*stream) (first site.Address, ok bool) {
	if len(naming) > 0 {
		first, ok = naming[0], true
	}
	for _, s := range streams {
		if !s.ended && (!ok || s.head.Address.Compare(first) < 0) {
			first, ok = s.head.Address, true
		}
	}
	return first, ok
}
