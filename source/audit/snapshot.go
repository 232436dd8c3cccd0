package audit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

const (
	siteName     = "site"
	snapshotName = "snapshot"
)

// A Snapshot is a snapshot as a Subject.
type Snapshot struct {
	files  afero.Fs
	in     Inputs
	owners map[string]snapshot.List
	claims map[string]*Claim // claims about the chosen lists
}

// OpenSnapshot opens a snapshot for an audit. It reads meta.json.
func OpenSnapshot(files afero.Fs) (*Snapshot, error) {
	asOf, err := snapshot.ReadAsOf(files)
	if err != nil {
		return nil, err
	}
	ops, err := snapshot.ReadListOps(files)
	if err != nil {
		return nil, err
	}
	in, err := snapshot.ReadInputs(files)
	if err != nil {
		return nil, err
	}
	return &Snapshot{files: files, in: Inputs{snapshotName, asOf, in.Chains, ops}}, nil
}

// Inputs implements Subject.
func (s *Snapshot) Inputs() Inputs { return s.in }

// rows returns the rows of a block, and an error for an invalid row: an audit must not skip any.
func rows[T any](b snapshot.Block[T]) ([]snapshot.Row[T], error) {
	if len(b.Invalid) > 0 {
		return nil, b.Invalid[0]
	}
	return b.Rows, nil
}

// Lists implements Subject.
func (s *Snapshot) Lists(ctx context.Context) (tokens []string, err error) {
	s.owners = map[string]snapshot.List{}
	reader := snapshot.Reader[snapshot.List]{Snapshot: s.files, Done: func(b snapshot.Block[snapshot.List]) error {
		rows, err := rows(b)
		for _, row := range rows {
			l := row.Value
			l.TokenID = strings.Clone(l.TokenID)
			if _, again := s.owners[l.TokenID]; again {
				return fmt.Errorf("%s: line %d: duplicate list %s", b.File, row.Line, l.TokenID)
			}
			if l.User != nil {
				user := *l.User
				l.User = &user
			}
			s.owners[l.TokenID] = l
			tokens = append(tokens, l.TokenID)
		}
		return err
	}}
	err = reader.Table(ctx, snapshot.TableLists)
	return tokens, err
}

// Choose implements Subject. It reads all records and accounts, and keeps those of the chosen
// lists.
func (s *Snapshot) Choose(ctx context.Context, tokens []string) error {
	s.claims = make(map[string]*Claim, len(tokens))
	naming := map[site.Address]string{} // primary lists by account
	for _, t := range tokens {
		l := s.owners[t]
		c := &Claim{Token: t, Raw: true, Owner: l.Owner, User: l.User, Account: l.Owner}
		if l.User != nil {
			c.Account = *l.User
		}
		s.claims[t], naming[c.Account] = c, ""
	}
	records := snapshot.Reader[*held]{Snapshot: s.files, Untimed: true, Done: func(b snapshot.Block[*held]) error {
		rows, err := rows(b)
		for _, row := range rows {
			if h := row.Value; h != nil {
				c := s.claims[h.token]
				c.Records = append(c.Records, h.record)
			}
		}
		return err
	}}
	// The function runs concurrently, and only reads the map.
	err := records.Records(ctx, func(r *snapshot.Record) (*held, error) {
		c, ok := s.claims[r.TokenID]
		if !ok {
			return nil, nil
		}
		h := &held{token: c.Token, record: Record{Version: r.Version, Type: strings.Clone(r.Type), Data: string(r.Data)}}
		for _, t := range r.Tags {
			h.record.Tags = append(h.record.Tags, strings.Clone(t))
		}
		return h, nil
	})
	if err != nil {
		return err
	}
	accounts := snapshot.Reader[named]{Snapshot: s.files, Done: func(b snapshot.Block[named]) error {
		rows, err := rows(b)
		for _, row := range rows {
			if n := row.Value; n.list != "" {
				naming[n.account] = n.list
			}
		}
		return err
	}}
	err = accounts.Accounts(ctx, func(a *snapshot.Account) (named, error) {
		return named{a.Address, strings.Clone(a.Primary)}, nil
	})
	for _, c := range s.claims {
		c.Records, c.Primary = merged(c.Records), naming[c.Account]
	}
	return err
}

// A held is a record of a chosen list; nil means a record of another list.
type held struct {
	token  string
	record Record
}

type named struct {
	account site.Address
	list    string
}

// Claims implements Subject.
func (s *Snapshot) Claims(_ context.Context, tokens []string) (claims []Claim, err error) {
	for _, t := range tokens {
		c := s.claims[t]
		if c == nil {
			return nil, errors.New("a list that was not chosen")
		}
		claims = append(claims, *c)
		delete(s.claims, t)
	}
	return claims, nil
}
