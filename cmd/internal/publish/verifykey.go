package publish

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
)

// checking are the flags of verify about the signature.
type checking struct {
	Key                    []string `sep:"none" placeholder:"PUBLIC" help:"Also check the signature by this public key, and read the objects to compare their SHA-256; may be repeated: any of the keys will do."`
	AllowUnsignedRefreshes bool     `help:"With --key, take what the bucket says that refreshes have put: no signature is about it."`
	Sample                 int      `placeholder:"N" help:"With --key, read so many objects, chosen at random; 0 means all."`
}

func (c *checking) checkKeys() error {
	switch _, err := note.ParseKeys(c.Key...); {
	case err != nil:
		return fmt.Errorf("--key: %w", err)
	case c.Sample < 0:
		return fmt.Errorf("--sample=%d: use 1 or more, or 0 for all", c.Sample)
	case (c.Sample > 0 || c.AllowUnsignedRefreshes) && len(c.Key) == 0:
		return errors.New("--sample and --allow-unsigned-refreshes are for --key")
	}
	return nil
}

const readsInFlight = 32

// verifySigned checks note and root by the keys, and bodies by the manifest.
func (c *checking) verifySigned(ctx context.Context, from checked.Store) (*publisher.SignedVerification, error) {
	keys, err := note.ParseKeys(c.Key...)
	if err != nil {
		return nil, err
	}
	s, err := checked.Open(ctx, from, keys, checked.Options{Pinned: true, UnsignedRefreshes: c.AllowUnsignedRefreshes})
	if err != nil {
		return nil, err
	}
	n, _ := s.Note()
	v := &publisher.SignedVerification{Origin: n.Origin, Counter: n.Counter, AsOf: n.AsOf, Altered: []string{}}
	var mu sync.Mutex
	altered := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if v.Differ++; len(v.Altered) < mostDamaged {
			v.Altered = append(v.Altered, text)
		}
	}
	share := 1.0 // of the objects to read
	if total := s.Root().Counts.Objects; c.Sample > 0 && total > 0 {
		share = float64(c.Sample) / float64(total)
	}
	for _, shard := range site.HashPrefixes(s.Root().ShardDigits) {
		entries, err := s.Shard(ctx, shard)
		if errors.Is(err, shards.ErrDamaged) {
			altered(err.Error())
			continue
		} else if err != nil {
			return v, err
		}
		group, groupCtx := errgroup.WithContext(ctx)
		group.SetLimit(readsInFlight)
		for _, e := range entries {
			if share < 1 && rand.Float64() >= share { //nolint:gosec // nobody knows before which
				continue
			}
			group.Go(func() error {
				_, err := s.Get(groupCtx, e.Key)
				mu.Lock()
				v.Checked++
				mu.Unlock()
				if errors.Is(err, checked.ErrAltered) || errors.Is(err, storage.ErrNotFound) {
					altered(err.Error())
					return nil
				}
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return v, err
		}
	}
	return v, nil
}
