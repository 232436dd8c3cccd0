package survey

import (
	"context"
	"errors"
	"slices"

	"github.com/followpress/followpress/publisher/internal/origin"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// Overwritten lists the objects whose bytes the first site in a bucket would change. Equal objects
// may be left from an earlier site.
func Overwritten(ctx context.Context, bucket *requests.Bucket, next *origin.Site) (keys []site.Key, err error) {
	byShard := map[string][]storage.Info{} // few: objects in the way of a first site are a mistake
	err = bucket.List(ctx, "", func(info storage.Info) error {
		if info.Key == site.RootKey {
			keys = append(keys, info.Key) // put since this run looked for it
		} else if _, ok := next.Root.Config.RouteOf(info.Key); ok {
			shard := site.ManifestShard(info.Key, next.Root.ShardDigits)
			byShard[shard] = append(byShard[shard], info)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for shard, infos := range byShard {
		read, err := next.Shard(ctx, shard)
		if err != nil {
			return nil, err
		}
		entries := read.Objects
		for _, info := range infos {
			i := slices.IndexFunc(entries, func(e site.Entry) bool { return e.Key == info.Key })
			if i < 0 {
				continue // not an object of this site
			}
			digest, err := bucket.DigestOf(ctx, info)
			if err != nil {
				return nil, err
			}
			if digest != entries[i].MD5.String() {
				keys = append(keys, info.Key)
			}
		}
	}
	return keys, nil
}

// OverwrittenAmong lists the added objects whose keys the bucket uses for other bytes.
func OverwrittenAmong(ctx context.Context, bucket *requests.Bucket, added []site.Entry) (keys []site.Key, err error) {
	for _, e := range added {
		body, _, err := bucket.Read(ctx, e.Key)
		switch {
		case errors.Is(err, storage.ErrNotFound):
		case err != nil:
			return nil, err
		case site.Sum(body) != e.MD5:
			keys = append(keys, e.Key)
		}
	}
	return keys, nil
}
