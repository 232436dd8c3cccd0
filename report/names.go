package report

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/scan"
)

// fillNames looks up the names of accounts in the report, and the accounts of its lists. It asks
// the new site first, and the old one for accounts that are gone.
func (c *comparison) fillNames(ctx context.Context) error {
	if err := c.fillLists(ctx); err != nil {
		return err
	}
	names := map[string]Text{}
	for _, s := range []*source{c.to, c.from} {
		unknown := map[string]struct{}{}
		c.report.eachShown(func(address string, _ *Text) {
			if _, known := names[address]; !known {
				unknown[address] = struct{}{}
			}
		})
		if err := c.lookUp(ctx, s, unknown, names); err != nil {
			return err
		}
	}
	c.report.eachShown(func(address string, name *Text) { *name = names[address] })
	return nil
}

// eachShown calls do with each account that the report shows by address.
func (r *Report) eachShown(do func(address string, name *Text)) {
	for _, accounts := range [][]AccountChange{r.Accounts.Gained, r.Accounts.Lost} {
		for i := range accounts {
			do(string(accounts[i].Address), &accounts[i].Name)
		}
	}
	for _, b := range r.Boards {
		for _, places := range [][]PlaceOnIt{b.Risen, b.Fallen, b.Entered, b.Left} {
			for j := range places {
				do(string(places[j].Address), &places[j].Name)
			}
		}
	}
}

func (c *comparison) fillLists(ctx context.Context) error {
	lists := c.report.Lists.Largest
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(c.Concurrency)
	for i := range lists {
		group.Go(func() error {
			s := c.to
			if lists[i].State == listGone {
				s = c.from
			}
			details, known, err := c.details(reading, s, c.config.ListKey(string(lists[i].List), site.Details))
			if known {
				lists[i].Address, lists[i].Name = plain(details.Address), shorten(details.ENS.Name)
			}
			return err
		})
	}
	return group.Wait()
}

// details reads details. known is false if they are missing.
func (c *comparison) details(ctx context.Context, s *source, key site.Key) (details site.ListDetails, known bool, err error) {
	most := int64(maxBucket)
	need := min(most, c.Memory)
	if err := c.memory.Acquire(ctx, need); err != nil {
		return details, false, err
	}
	defer c.memory.Release(need)
	body, err := s.readUnlisted(ctx, key, most)
	if body == nil || err != nil {
		return details, false, err
	}
	if details, _, err = site.DecodeDetails(body); err != nil {
		return details, false, s.explain(key, err)
	}
	return details, true, nil
}

// lookUp adds the names of addresses with a profile to names.
func (c *comparison) lookUp(ctx context.Context, s *source, addresses map[string]struct{}, names map[string]Text) error {
	keys, err := c.profileKeys(ctx, s, addresses)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(c.Concurrency)
	for address, key := range keys {
		group.Go(func() error {
			details, known, err := c.details(reading, s, key)
			if known {
				mu.Lock()
				defer mu.Unlock()
				names[address] = shorten(details.ENS.Name)
			}
			return err
		})
	}
	return group.Wait()
}

// profileKeys returns the keys of the profiles of addresses. Under the API spec, only accounts with a primary list
// have one.
func (c *comparison) profileKeys(ctx context.Context, s *source, addresses map[string]struct{}) (map[string]site.Key, error) {
	keys := map[string]site.Key{}
	buckets := map[string][]string{}
	for address := range addresses {
		if c.config.EFP() {
			keys[address] = c.config.UserObjectKey(address, site.Details)
			continue
		}
		bucket := site.UserBucket(address, s.root.BucketDigits)
		buckets[bucket] = append(buckets[bucket], address)
	}
	for _, name := range slices.Sorted(maps.Keys(buckets)) {
		key := site.UserBucketKey(name)
		bucket, err := s.readUnlisted(ctx, key, maxBucket)
		if err != nil {
			return nil, err
		}
		for _, address := range buckets[name] {
			tokenID, known := scan.FindUser(bucket, address)
			if !known || tokenID == "" {
				continue
			}
			if !site.ValidTokenID(tokenID) {
				return nil, s.explain(key, fmt.Errorf("list of %s: %w", address, site.ErrMalformed))
			}
			keys[address] = c.config.ListKey(tokenID, site.Details)
		}
	}
	return keys, nil
}
