package publisher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// ErrForeign says that a publish would overwrite objects that no site of ours has put.
var ErrForeign = errors.New("the bucket has objects of others that the site would replace")

const maxForeignNamed = 5

// refuseForeign is the error for objects that a run would overwrite, unless Options.Overwrite.
func (r *run) refuseForeign(keys []site.Key, err error) error {
	if err != nil || len(keys) == 0 || r.options.Overwrite {
		return err
	}
	slices.Sort(keys)
	var named []string
	for _, key := range keys[:min(len(keys), maxForeignNamed)] {
		named = append(named, string(key))
	}
	more := ""
	if n := len(keys) - len(named); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("%w: %s%s: use a prefix of its own for the site, or --overwrite to replace them", ErrForeign, strings.Join(named, ", "), more)
}

// foreign lists the objects that the first site in a bucket would replace by other bytes. Those that
// are equal already may be left of an earlier site.
func (r *run) foreign(ctx context.Context) (keys []site.Key, err error) {
	byShard := map[string][]storage.Info{} // few: what is in the way of a site is a mistake
	_, err = r.bucket.ListAll(ctx, []site.Config{r.source.root.Config}, func(info storage.Info) error {
		if info.Key == site.RootKey {
			keys = append(keys, info.Key) // since it was looked for
		} else if _, ok := r.source.root.Config.RouteOf(info.Key); ok {
			shard := site.ManifestShard(info.Key, r.source.root.ShardDigits)
			byShard[shard] = append(byShard[shard], info)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for shard, infos := range byShard {
		read, err := r.source.shard(ctx, shard)
		if err != nil {
			return nil, err
		}
		entries := read.Objects
		for _, info := range infos {
			i := slices.IndexFunc(entries, func(e site.Entry) bool { return e.Key == info.Key })
			if i < 0 {
				continue // no object of this site
			}
			digest, err := r.bucket.DigestOf(ctx, info)
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

// foreignAmong lists those of new objects in whose place the bucket has others.
func (r *run) foreignAmong(ctx context.Context, added []site.Entry) (keys []site.Key, err error) {
	for _, e := range added {
		body, _, err := r.bucket.Read(ctx, e.Key)
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
