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

// A lister is a bucket whose keys can be listed.
type lister interface {
	List(ctx context.Context, prefix, after site.Key, found func(storage.Info) error) error
}

const (
	// againSince is how far back refreshes are looked at when there is a new site: longer
	// than from the start of a nightly generate to the end of its publish.
	againSince = 48 * time.Hour
	// againTimeout is for all of them.
	againTimeout = 10 * time.Minute
	againAtOnce  = 8
)

// again does refreshes again that a publish has undone. A site is generated, then it is
// published; what was refreshed in between is not in it, and the publisher puts the
// objects that the generator gave it. What a refresh has kept is the newest known then,
// by the rules of the generator. put hears of each object that was replaced. What
// fails does not keep the others from being done.
func (f *refresher) again(ctx context.Context, root *site.Root, put func(key site.Key, body []byte)) (done int, err error) {
	bucket, ok := f.bucket.(lister)
	if !ok {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, againTimeout)
	defer cancel()
	since := time.Now().Add(-againSince)
	var group errgroup.Group
	group.SetLimit(againAtOnce)
	var n atomic.Int64
	err = bucket.List(ctx, site.RefreshPrefix, "", func(info storage.Info) error {
		object, tokenID, ok := site.ParseRefreshKey(site.Key(strings.TrimPrefix(string(info.Key), string(site.RefreshPrefix))))
		if !ok || info.Modified.Before(since) {
			return nil
		}
		group.Go(func() (err error) {
			defer guard(&err)
			t := target{root.Config, object, tokenID}
			body, err := f.doAgain(ctx, t, root)
			if err != nil {
				return fmt.Errorf("refresh %s again: %w", t.key(), err)
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

// doAgain puts what a refresh has kept into the stored object, if that is older; then
// it gives the new object.
func (f *refresher) doAgain(ctx context.Context, t target, root *site.Root) ([]byte, error) {
	// The stored object first: a refresh that comes in between changes it, and then the
	// condition does not hold.
	stored, info, err := f.fetcher.read(ctx, f.bucket, t.key())
	if errors.Is(err, storage.ErrNotFound) { // the list is gone
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
	fresh, err := f.keptFresh(ctx, t, root, stored, kept)
	if err != nil || fresh == nil {
		return nil, err
	}
	body, err := fresh.into(stored)
	if err != nil || string(body) == string(stored) {
		return nil, err
	}
	err = f.store(ctx, t, fresh, body, stored, info)
	if errors.Is(err, storage.ErrCondition) { // another fallback was faster
		return nil, nil
	}
	return body, err
}

// keptFresh reads what a refresh has kept; nil if the stored object is not older, or
// the list is somebody else's now.
func (f *refresher) keptFresh(ctx context.Context, t target, root *site.Root, stored, kept []byte) (fresh, error) {
	if t.object == site.Details {
		details, account, err := site.DecodeDetails(stored)
		if err != nil {
			return nil, err
		}
		p, err := site.DecodeProfile(kept, account, time.UnixMilli(0))
		if err == nil && p.Fresh > details.ENS.Fresh {
			p.Profile, _ = p.WithoutLongTexts(t.config.MaxProfileText)
			return freshProfile{p}, nil
		}
		return nil, nil
	}
	badges, account, err := site.DecodeRefreshedBadges(kept)
	asOf, _ := time.Parse(time.RFC3339, root.AsOf) // ParseRoot has checked it
	if err != nil || badges.Fetched <= asOf.UnixMilli() {
		return nil, nil //nolint:nilerr // generate will say what is wrong with it
	}
	owner, err := f.accountOf(ctx, t)
	if err != nil || owner != account {
		return nil, err
	}
	return freshBadges{t.config, badges}, nil
}
