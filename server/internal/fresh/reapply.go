package fresh

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/internal/panics"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/refresh"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/storage"
)

// A lister lists the keys of a bucket in order.
type lister interface {
	List(ctx context.Context, prefix, after site.Key, found func(storage.Info) error) error
}

const (
	// reapplyWindow is the age up to which refreshes are reapplied. It is longer than a nightly
	// run, from the start of generate to the end of publish.
	reapplyWindow = 48 * time.Hour
	// reapplyTimeout bounds one call of Reapply.
	reapplyTimeout     = 10 * time.Minute
	reapplyConcurrency = 8
)

// Reapply restores refreshed objects that a publish overwrote, from the entries kept below
// site.RefreshPrefix: a site does not contain refreshes made after its snapshot was taken. It
// returns the number of objects restored and calls put for each, from up to reapplyConcurrency
// goroutines. One failure does not stop the others; err joins them all.
func (f *Refresher) Reapply(ctx context.Context, root *site.Root, put func(key site.Key, body []byte)) (done int, err error) {
	bucket, ok := f.bucket.(lister)
	if !ok {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, reapplyTimeout)
	defer cancel()
	since := time.Now().Add(-reapplyWindow)
	return f.reapplyEach(ctx, root, put, func(found func(key site.Key)) error {
		return bucket.List(ctx, site.RefreshPrefix, "", func(info storage.Info) error {
			if !info.Modified.Before(since) {
				found(info.Key)
			}
			return ctx.Err()
		})
	})
}

// ReapplyKept is Reapply for the entries at keys, regardless of their age.
func (f *Refresher) ReapplyKept(ctx context.Context, root *site.Root, keys []site.Key, put func(key site.Key, body []byte)) (done int, err error) {
	return f.reapplyEach(ctx, root, put, func(found func(key site.Key)) error {
		for _, key := range keys {
			found(key)
		}
		return ctx.Err()
	})
}

// reapplyEach reapplies the refreshes at the keys that each passes to found. It ignores other keys.
func (f *Refresher) reapplyEach(ctx context.Context, root *site.Root, put func(key site.Key, body []byte), each func(found func(key site.Key)) error) (done int, err error) {
	var group errgroup.Group
	group.SetLimit(reapplyConcurrency)
	var n atomic.Int64
	err = each(func(key site.Key) {
		object, tokenID, ok := site.ParseRefreshKey(site.Key(strings.TrimPrefix(string(key), string(site.RefreshPrefix))))
		if !ok {
			return
		}
		group.Go(func() (err error) {
			defer panics.Catch(&err)
			t := Target{root.Config, object, tokenID}
			if err := f.reapplyOne(ctx, t, root, func(key site.Key, body []byte) {
				n.Add(1)
				put(key, body)
			}); err != nil {
				return fmt.Errorf("reapply the refresh of %s: %w", t.key(), err)
			}
			return nil
		})
	})
	return int(n.Load()), errors.Join(err, group.Wait())
}

// reapplyOne updates a stored object and its copies with a kept entry, where that is newer, and
// calls put for each object replaced.
func (f *Refresher) reapplyOne(ctx context.Context, t Target, root *site.Root, put func(key site.Key, body []byte)) error {
	unlock, err := f.writes.lock(ctx, t.keptKey())
	if err != nil {
		return err
	}
	defer unlock()
	// Read the stored object first: if a refresh replaces it now, the conditional write below
	// fails.
	stored, info, err := f.fetcher.Read(ctx, f.bucket, t.key())
	if errors.Is(err, storage.ErrNotFound) { // the new site has no such list
		return nil
	} else if err != nil {
		return err
	}
	kept, err := f.fetcher.Get(ctx, t.keptKey())
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	data, err := f.kept(ctx, t, root, stored, f.options.Signing.Believed(t.keptKey(), kept))
	if err != nil || data == nil {
		return err
	}
	if data.newerThan(t.Object, stored) {
		body, err := data.applyTo(t.Object, stored)
		if err != nil {
			return err
		}
		if string(body) != string(stored) {
			err = f.store(ctx, t, data, body, stored, info)
			if errors.Is(err, storage.ErrCondition) { // another fallback or a publisher was faster
				return nil
			} else if err != nil {
				return err
			}
			put(t.key(), body)
		}
	}
	if !t.Config.EFP() {
		return nil
	}
	return f.replaceCopies(ctx, t, data, true, put)
}

// kept decodes an entry kept by a refresh. It returns nil if the entry is older than the site, or
// if the list now belongs to another account or no longer stands for its account.
func (f *Refresher) kept(ctx context.Context, t Target, root *site.Root, stored, kept []byte) (upstreamData, error) {
	if t.Object == site.Details {
		details, account, err := site.DecodeDetails(stored)
		if err != nil {
			return nil, err
		}
		p, err := refresh.DecodeProfile(kept, account, time.UnixMilli(0))
		if err == nil && (t.Config.EFP() || rules.IsNewer(p.Fresh, details.ENS.Fresh)) {
			p.Profile, _ = p.Within(t.Config.ProfileLimits())
			return &profileData{KeptProfile: p}, nil
		}
		return nil, nil
	}
	badges, account, err := refresh.DecodeKeptBadges(kept)
	asOf := f.options.BadgesAsOf
	if asOf.IsZero() {
		asOf, _ = time.Parse(time.RFC3339, root.AsOf) // ParseRoot has validated it
	}
	if err != nil || !rules.IsNewer(badges.Fetched, asOf.UnixMilli()) {
		return nil, nil //nolint:nilerr // the next run of the generator reports it
	}
	owner, err := f.accountOf(ctx, t)
	if err != nil || owner != account {
		return nil, err
	}
	// Badges do not show their age. So the badges of a list that stood for the account earlier are
	// left to the next run of the generator.
	is, ok, err := t.StandsFor(ctx, t.key(), f.fetcher.Get)
	if err != nil || !ok || is != t {
		return nil, err
	}
	return badgeData{t.Config, badges}, nil
}
