package publish

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/internal/sample"
	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
)

// refreshed is the flag for refreshed objects in a signed bucket.
type refreshed struct {
	RefreshedKey []string `sep:"none" placeholder:"PUBLIC" help:"In a signed bucket, also accept refreshed objects signed by this key (serve --refresh-key); repeatable."`
}

// refreshers returns the keys that sign refreshed objects.
func (r *refreshed) refreshers() (note.Keys, error) {
	return command.PublicKeys("refreshed-key", r.RefreshedKey)
}

// checking are the flags of verify for the signature.
type checking struct {
	Key []string `sep:"none" placeholder:"PUBLIC" help:"Also check the signature by this public key, and read all objects to compare their SHA-256; repeatable, any key suffices."`
	refreshed
	Sample int `placeholder:"N" help:"With --key, read only this many random objects, and report the bound for all; 0 means all."`
}

func (c *checking) checkKeys() error {
	switch _, err := command.PublicKeys("key", c.Key); {
	case err != nil:
		return err
	case c.Sample < 0:
		return fmt.Errorf("--sample=%d: use 1 or more, or 0 for all", c.Sample)
	case c.Sample > 0 && len(c.Key) == 0:
		return errors.New("--sample needs --key")
	}
	_, err := c.refreshers()
	return err
}

// shardsInFlight is the number of manifest shards in memory.
const shardsInFlight = 8

// checkOnline checks the flags for a place that cannot be listed.
func (v *Verify) checkOnline() error {
	if err := storage.CheckPublished(v.Dest); err != nil {
		return fmt.Errorf("--dest: %w", err)
	}
	switch {
	case len(v.Key) == 0:
		return fmt.Errorf("--dest=%s cannot be listed, so only signed objects can be checked; add --key=PUBLIC, the publisher's key, or name the bucket", secret.URL(v.Dest))
	case len(v.Exclude) > 0:
		return fmt.Errorf("--exclude is for a bucket; --dest=%s cannot be listed", secret.URL(v.Dest))
	}
	_, err := v.readOptions(session{}).WithDefaults()
	return err
}

// verifyOnline verifies a place that cannot be listed.
func (v *Verify) verifyOnline(ctx context.Context, s session) (found *publisher.Verification, err error) {
	begun := time.Now()
	found = publisher.NewVerification()
	online, err := storage.OpenPublished(ctx, v.Dest, storage.S3Options{})
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, online.Close()) }()
	found.Unlisted = true
	found.Signed, err = v.verifySigned(ctx, s, online)
	if signed := found.Signed; signed != nil {
		found.AsOf, found.Objects = signed.AsOf, signed.Objects
	}
	found.Seconds = time.Since(begun).Seconds()
	if errors.Is(err, storage.ErrNotFound) {
		return found, fmt.Errorf("%s: no site: %w; name the place that has %s", secret.URL(v.Dest), err, site.RootKey)
	} else if err != nil {
		return found, fmt.Errorf("%s: %w", secret.URL(v.Dest), err)
	}
	differs := v.differs(found.Signed, "publish the site again, or purge a cache that has objects of another site")
	return found, errors.Join(differs, v.checkEdges(ctx, online))
}

// differs returns an error if any object differs from the signed site.
func (v *Verify) differs(s *publisher.SignedVerification, advice string) error {
	if s == nil || s.Differ == 0 {
		return nil
	}
	return fmt.Errorf("%s differs from the signed site: %d of %d objects; %s", secret.URL(v.Dest), s.Differ, s.Checked, advice)
}

// verifySigned checks note and root by the keys, and objects by the manifest.
func (v *Verify) verifySigned(ctx context.Context, s session, from storage.Site) (*publisher.SignedVerification, error) {
	keys, err := note.ParseKeys(v.Key...)
	if err != nil {
		return nil, err
	}
	refreshers, err := v.refreshers()
	if err != nil {
		return nil, err
	}
	o, err := v.readOptions(s).WithDefaults()
	if err != nil {
		return nil, err
	}
	signed, err := checked.Open(ctx, storage.Retrying{From: from, Retry: storage.Retry{Patience: o.Patience, Log: s.log, Hint: "check the address, and that the server is up"}}, keys, checked.Options{Pinned: true, Refreshers: refreshers})
	if err != nil {
		return nil, err
	}
	n, _ := signed.Note()
	total := signed.Root().Counts.Objects
	c := &comparison{site: signed, told: publisher.SignedVerification{Origin: n.Origin, Counter: n.Counter, AsOf: n.AsOf, Objects: total, Altered: []string{}},
		inFlight: o.Concurrency, add: s.progress.Add}
	if v.Sample == 0 || v.Sample >= total {
		s.progress.Stage("check signed objects", int64(total))
		err = c.all(ctx)
	} else {
		s.progress.Stage("check a sample of signed objects", int64(v.Sample))
		err = c.sample(ctx, v.Sample)
	}
	return &c.told, err
}

// A comparison compares objects with the signed manifest.
type comparison struct {
	site     *checked.Site
	inFlight int         // concurrent reads
	add      func(int64) // adds to the progress

	mu   sync.Mutex
	told publisher.SignedVerification
}

// mostDamaged caps the damaged objects that verify describes.
const mostDamaged = 10

// differ records a problem with a number of objects.
func (c *comparison) differ(objects int, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told.Differ += objects; len(c.told.Altered) < mostDamaged {
		c.told.Altered = append(c.told.Altered, text)
	}
}

// checked records a number of objects as read.
func (c *comparison) checked(objects int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told.Checked += objects
	c.add(int64(objects))
}

// all compares all objects.
func (c *comparison) all(ctx context.Context) error {
	names := site.HashPrefixes(c.site.Root().ShardDigits)
	return c.each(ctx, slices.Values(names), func(name string, entries []site.Entry, damage error) ([]site.Entry, error) {
		if damage != nil {
			c.differ(1, damage.Error())
		}
		return entries, nil
	})
}

// errUneven means that a sample would not be random.
var errUneven = errors.New("a shard of the manifest lists far more objects than the others, so no sample is representative; leave out --sample")

// sample compares n objects, each drawn with equal probability. Objects drawn from a damaged shard all differ.
func (c *comparison) sample(ctx context.Context, n int) error {
	names := site.HashPrefixes(c.site.Root().ShardDigits)
	numbers := make(map[string]int, len(names))
	for i, name := range names {
		numbers[name] = i
	}
	drawing := sample.NewShards(len(names), c.told.Objects)
	for c.told.Checked < n {
		places := drawing.Draw(n - c.told.Checked)
		if len(places) == 0 {
			return nil
		}
		drawn := func(yield func(string) bool) {
			for _, i := range slices.Sorted(maps.Keys(places)) { // neighbors share a delta
				if !yield(names[i]) {
					return
				}
			}
		}
		err := c.each(ctx, drawn, func(name string, entries []site.Entry, damage error) (chosen []site.Entry, err error) {
			i := numbers[name]
			if damage != nil {
				c.differ(len(places[i]), damage.Error())
				c.checked(len(places[i]))
				return nil, nil
			}
			if !drawing.Read(i, len(entries)) {
				return nil, errUneven
			}
			for _, place := range places[i] {
				if place < len(entries) {
					chosen = append(chosen, entries[place])
				}
			}
			return chosen, nil
		})
		if err != nil {
			return err
		}
	}
	bound := sample.Bound(c.told.Differ, c.told.Checked)
	c.told.Bound = &bound
	return nil
}

// each reads shards, and compares the objects that choose picks from each. damage explains why a shard lists none.
func (c *comparison) each(ctx context.Context, names iter.Seq[string], choose func(name string, entries []site.Entry, damage error) ([]site.Entry, error)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var reading, comparing errgroup.Group
	reading.SetLimit(shardsInFlight)
	comparing.SetLimit(c.inFlight)
	for name := range names {
		if ctx.Err() != nil {
			break
		}
		reading.Go(func() error {
			entries, err := c.site.Shard(ctx, name)
			var damage error
			if errors.Is(err, shards.ErrDamaged) {
				damage, err = err, nil
			}
			if err == nil {
				entries, err = choose(name, entries, damage)
			}
			for _, e := range entries {
				if err != nil || ctx.Err() != nil {
					break
				}
				comparing.Go(func() error {
					err := c.compare(ctx, e.Key)
					if err != nil {
						stop(err)
					}
					return err
				})
			}
			if err != nil {
				stop(err)
			}
			return err
		})
	}
	_ = reading.Wait() // the cause holds the first error
	_ = comparing.Wait()
	return context.Cause(ctx)
}

// compare reads an object and compares it.
func (c *comparison) compare(ctx context.Context, key site.Key) error {
	_, err := c.site.Get(ctx, key)
	switch {
	case errors.Is(err, checked.ErrAltered), errors.Is(err, storage.ErrNotFound):
		c.differ(1, err.Error())
	case err != nil:
		return err
	}
	c.checked(1)
	return nil
}
