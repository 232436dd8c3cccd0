package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A lister is a bucket that can list its keys in order.
type lister interface {
	List(ctx context.Context, prefix, after site.Key, found func(storage.Info) error) error
}

const (
	// reapplyWindow is the age up to which refreshes are reapplied. It is longer than a
	// nightly run takes from the start of generate to the end of publish.
	reapplyWindow = 48 * time.Hour
	// reapplyTimeout bounds one call of reapply.
	reapplyTimeout     = 10 * time.Minute
	reapplyConcurrency = 8
)

// reapply restores refreshed objects that a publish overwrote, from what each refresh kept
// below site.RefreshPrefix: a site does not hold what was refreshed after its snapshot was
// taken. It returns how many objects it restored and calls put for each of them, from up to
// reapplyConcurrency goroutines. One failure does not stop the others; err joins them all.
func (f *refresher) reapply(ctx context.Context, root *site.Root, put func(key site.Key, body []byte)) (done int, err error) {
	bucket, ok := f.bucket.(lister)
	if !ok {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, reapplyTimeout)
	defer cancel()
	since := time.Now().Add(-reapplyWindow)
	var group errgroup.Group
	group.SetLimit(reapplyConcurrency)
	var n atomic.Int64
	err = bucket.List(ctx, site.RefreshPrefix, "", func(info storage.Info) error {
		object, tokenID, ok := site.ParseRefreshKey(site.Key(strings.TrimPrefix(string(info.Key), string(site.RefreshPrefix))))
		if !ok || info.Modified.Before(since) {
			return nil
		}
		group.Go(func() (err error) {
			defer guard(&err)
			t := target{root.Config, object, tokenID}
			body, err := f.reapplyOne(ctx, t, root)
			if err != nil {
				return fmt.Errorf("reapply the refresh of %s: %w", t.key(), err)
			}
			if body != nil {
				n.Add(1)
				put(t.key(), body)
			}
			return nil
		})
		return ctx.Err()
	})
	return int(n.Load()), errors.Join(err, group.Wait())
}

// reapplyOne updates a stored object with what a refresh kept, if that is newer, and
// returns the new body. It returns nil if there was nothing to do.
func (f *refresher) reapplyOne(ctx context.Context, t target, root *site.Root) ([]byte, error) {
	// Read the stored object first: if a refresh replaces it meanwhile, the conditional
	// write below fails.
	stored, info, err := f.fetcher.read(ctx, f.bucket, t.key())
	if errors.Is(err, storage.ErrNotFound) { // the new site has no such list
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	kept, err := f.fetcher.get(ctx, t.keptKey())
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	data, err := f.newerKept(ctx, t, root, stored, kept)
	if err != nil || data == nil {
		return nil, err
	}
	body, err := data.applyTo(stored)
	if err != nil || string(body) == string(stored) {
		return nil, err
	}
	err = f.store(ctx, t, data, body, stored, info)
	if errors.Is(err, storage.ErrCondition) { // another fallback, or a publisher, was faster
		return nil, nil
	}
	return body, err
}

// newerKept decodes what a refresh kept. It returns nil if the stored object is at least as
// new, or if the list belongs to another account now.
func (f *refresher) newerKept(ctx context.Context, t target, root *site.Root, stored, kept []byte) (upstreamData, error) {
	if t.object == site.Details {
		details, account, err := site.DecodeDetails(stored)
		if err != nil {
			return nil, err
		}
		p, err := site.DecodeProfile(kept, account, time.UnixMilli(0))
		if err == nil && p.Fresh > details.ENS.Fresh {
			p.Profile, _ = p.WithoutLongTexts(t.config.MaxProfileText)
			return profileData{p}, nil
		}
		return nil, nil
	}
	badges, account, err := site.DecodeRefreshedBadges(kept)
	asOf, _ := time.Parse(time.RFC3339, root.AsOf) // ParseRoot has checked it
	if err != nil || badges.Fetched <= asOf.UnixMilli() {
		return nil, nil //nolint:nilerr // the next run of the generator reports it
	}
	owner, err := f.accountOf(ctx, t)
	if err != nil || owner != account {
		return nil, err
	}
	return badgeData{t.config, badges}, nil
}
