package audit

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	json "github.com/goccy/go-json"
	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
)

// Limits of objects, in bytes; far above anything that followpress writes.
const (
	mostShard   = 4 << 20
	mostDetails = 16 << 20
	mostRecords = 256 << 20
)

const (
	readAtOnce = 32              // concurrent reads of objects
	patience   = 2 * time.Minute // time to retry requests that fail temporarily
)

// A Site is a site as a Subject. It makes no claim that its manifest does not cover.
type Site struct {
	store storage.Retrying
	root  site.Root
	lists map[string]*listObjects
}

// listObjects are the manifest's entries for the objects of a list.
type listObjects struct {
	details, records site.Entry
}

// OpenSite opens a site for an audit. It reads the root.
func OpenSite(ctx context.Context, store storage.Reader) (*Site, error) {
	s := &Site{store: storage.Retrying{From: store, Retry: storage.Retry{Patience: patience}}}
	body, err := s.store.GetBounded(ctx, site.RootKey, site.MaxRootBytes)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, fmt.Errorf("neither a site nor a snapshot: no %s and no meta.json", site.RootKey)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", site.RootKey, err)
	}
	s.root, err = site.ParseRoot(body)
	return s, err
}

// Inputs implements Subject.
func (s *Site) Inputs() Inputs {
	in := Inputs{Name: siteName, AsOf: s.root.AsOf}
	if s.root.Inputs != nil {
		in.Chains, in.ListOps = s.root.Inputs.Chains, s.root.Inputs.ListOps
	}
	return in
}

// Lists implements Subject. It reads the manifest.
func (s *Site) Lists(ctx context.Context) (tokens []string, err error) {
	manifest, err := shards.Open(ctx, &s.root, func(ctx context.Context, key site.Key) ([]byte, error) {
		body, err := s.store.GetBounded(ctx, key, mostShard)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			err = fmt.Errorf("%s: %w", key, err)
		}
		return body, err
	})
	if err != nil {
		return nil, err
	}
	s.lists = map[string]*listObjects{}
	prefix := s.root.Config.BasePath + "/lists/"
	var mu sync.Mutex
	add := func(e site.Entry) {
		path, ok := strings.CutPrefix(string(e.Key), prefix)
		token, object, found := strings.Cut(path, "/")
		if !ok || !found || !site.ValidTokenID(token) || object != string(site.Details) && object != string(site.Records) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		l := s.lists[token]
		if l == nil {
			l = &listObjects{}
			s.lists[strings.Clone(token)] = l
		}
		e.Key = site.Key(strings.Clone(string(e.Key)))
		if object == string(site.Details) {
			l.details = e
		} else {
			l.records = e
		}
	}
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(readAtOnce)
	for _, name := range site.HashPrefixes(s.root.ShardDigits) {
		g.Go(func() error {
			shard, err := manifest.Shard(inner, name)
			for _, e := range shard.Objects {
				add(e)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("%w; the site is damaged or was just replaced; try again, then run followpress verify", err)
	}
	for t := range s.lists {
		tokens = append(tokens, t)
	}
	return tokens, nil
}

// Choose implements Subject.
func (*Site) Choose(context.Context, []string) error { return nil }

// Claims implements Subject.
func (s *Site) Claims(ctx context.Context, tokens []string) ([]Claim, error) {
	claims := make([]Claim, len(tokens))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readAtOnce)
	for i, t := range tokens {
		g.Go(func() (err error) {
			claims[i], err = s.claim(ctx, t)
			return err
		})
	}
	return claims, g.Wait()
}

// damagedError means that an object differs from the manifest.
type damagedError struct{ error }

func (s *Site) object(ctx context.Context, e site.Entry, name string, most int64) ([]byte, error) {
	if e.Key == "" {
		return nil, damagedError{fmt.Errorf("the manifest has no %s of it", name)}
	}
	body, err := s.store.GetBounded(ctx, e.Key, min(e.Size, most))
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrTooLarge), errors.Is(err, storage.ErrDamaged), errors.Is(err, checked.ErrAltered):
		return nil, damagedError{fmt.Errorf("%s: %w", e.Key, err)}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", e.Key, err)
	case !site.NewEntry(e.Key, body).Same(e):
		return nil, damagedError{fmt.Errorf("%s: differs from the manifest", e.Key)}
	}
	return body, nil
}

// claim reads the claim about one list.
func (s *Site) claim(ctx context.Context, token string) (Claim, error) {
	c := Claim{Token: token}
	err := s.read(ctx, &c)
	var damaged damagedError
	if errors.As(err, &damaged) || errors.Is(err, site.ErrMalformed) {
		c.Damaged, err = err.Error(), nil
	}
	return c, err
}

func (s *Site) read(ctx context.Context, c *Claim) error {
	l := s.lists[c.Token]
	details, err := s.object(ctx, l.details, string(site.Details), mostDetails)
	if err != nil {
		return err
	}
	d, account, err := site.DecodeDetails(details)
	if err != nil {
		return fmt.Errorf("%s: %w", l.details.Key, err)
	}
	c.Account = account
	if d.PrimaryList != nil {
		c.Primary = *d.PrimaryList
		if err := site.CheckTokenID("primary_list", c.Primary); err != nil {
			return fmt.Errorf("%s: %w: %w", l.details.Key, site.ErrMalformed, err)
		}
	}
	records, err := s.object(ctx, l.records, string(site.Records), mostRecords)
	if err != nil {
		return err
	}
	if c.Records, err = parseRecords(records); err != nil {
		return fmt.Errorf("%s: %w: %w", l.records.Key, site.ErrMalformed, err)
	}
	return nil
}

func parseRecords(body []byte) (records []Record, err error) {
	var object struct {
		Records []struct {
			Version uint32   `json:"version"`
			Type    string   `json:"record_type"`
			Data    string   `json:"data"`
			Tags    []string `json:"tags"`
		} `json:"records"`
	}
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, errors.New(site.JSONReason(err))
	}
	for i, r := range object.Records {
		digits, ok := strings.CutPrefix(r.Data, "0x")
		data, err := hex.DecodeString(digits)
		if !ok || err != nil {
			return nil, fmt.Errorf("record %d: %s is not hexadecimal data", i+1, site.Quoted(r.Data))
		}
		records = append(records, Record{r.Version, r.Type, string(data), r.Tags})
	}
	return records, nil
}
