package publisher_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
)

// A reader follows references through a bucket while sites are published to it: from the root to
// the shards of the manifest, the leaderboards and the buckets of users, and from those to objects.
// Every reference must lead to an object of one of the sites.
type reader struct {
	t      testing.TB
	place  place
	sites  []memory
	random *rand.Rand

	followed, startedOver int
}

// A sight is an object at one time.
type sight struct {
	key  site.Key
	body string
	etag string
	time time.Time
}

// read reads in the background until stop is called.
func (r *reader) read() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		for ctx.Err() == nil {
			r.round()
		}
	})
	return sync.OnceFunc(func() { cancel(); group.Wait() })
}

func (r *reader) round() {
	root, ok := r.look(site.RootKey)
	if !ok {
		r.t.Errorf("root: got no %s, want one", site.RootKey)
		return
	}
	parsed, err := site.ParseRoot([]byte(root.body))
	if err != nil {
		r.t.Error(err)
		return
	}
	for range 2 {
		names := site.HashPrefixes(parsed.ShardDigits)
		if !r.readShard(root, &parsed, names[r.random.IntN(len(names))]) {
			return
		}
	}
	for _, board := range (site.Config{}).Boards() {
		if !r.readBoard(root, parsed.Config.LeaderboardKey(board)) {
			return
		}
	}
	buckets := site.HashPrefixes(parsed.BucketDigits)
	r.readUsers(root, buckets[r.random.IntN(len(buckets))])
}

// readShard follows some of the entries of a shard. A shard that the root does not name belongs to
// a running publish; then readShard returns false, and the reader starts over.
func (r *reader) readShard(root sight, parsed *site.Root, name string) bool {
	manifest, err := shards.Open(r.t.Context(), parsed, func(_ context.Context, key site.Key) ([]byte, error) {
		if body, ok := r.place.get(r.t, key); ok {
			return []byte(body), nil
		}
		return nil, site.ErrNotFound
	})
	if err != nil {
		r.t.Error(err)
		return false
	}
	shard, err := manifest.Shard(r.t.Context(), name)
	if err != nil {
		r.startedOver++
		if !errors.Is(err, shards.ErrDamaged) {
			r.t.Error(err)
		}
		return false
	}
	for range min(8, len(shard.Objects)) {
		if _, ok := r.follow(root, root, shard.Objects[r.random.IntN(len(shard.Objects))].Key); !ok {
			return false
		}
	}
	return true
}

var (
	addresses = regexp.MustCompile(`"address":"(0x[0-9a-f]{40})"`)
	lists     = regexp.MustCompile(`:"([0-9]+)"`)
)

// readBoard follows accounts of a leaderboard to their searches.
func (r *reader) readBoard(root sight, key site.Key) bool {
	board, ok := r.follow(root, root, key)
	return ok && r.followSome(root, board, addresses, site.Config.UserKey)
}

// readUsers follows users of a bucket to the searches of their lists.
func (r *reader) readUsers(root sight, name string) bool {
	bucket, ok := r.follow(root, root, site.UserBucketKey(name))
	return ok && r.followSome(root, bucket, lists, func(c site.Config, token string) site.Key { return c.ListKey(token, site.SearchFollowing) })
}

// followSome follows some of the names in an object, if the site has their objects: not every
// account has a list.
func (r *reader) followSome(root, from sight, names *regexp.Regexp, keyOf func(site.Config, string) site.Key) bool {
	found := names.FindAllStringSubmatch(from.body, -1)
	for range min(4, len(found)) {
		name := found[r.random.IntN(len(found))][1]
		to, ok := r.leadsTo(from, func(c site.Config) site.Key { return keyOf(c, name) })
		if !ok {
			continue
		}
		if _, ok := r.follow(root, from, to); !ok {
			return false
		}
	}
	return true
}

// leadsTo returns a key that must exist: all sites with this version of the object have it.
func (r *reader) leadsTo(from sight, keyOf func(site.Config) site.Key) (to site.Key, ok bool) {
	for _, m := range r.sites {
		if m[from.key] != from.body {
			continue
		}
		key := keyOf(m.Root(r.t).Config)
		if _, ok := m[key]; !ok || to != "" && key != to {
			return "", false
		}
		to = key
	}
	return to, to != ""
}

// follow reads an object that another refers to. If it is missing, the reference must be gone by
// now, or the whole site must have been replaced; then ok is false, and the reader starts over.
func (r *reader) follow(root, from sight, to site.Key) (found sight, ok bool) {
	time.Sleep(time.Millisecond) // leaves the machine to the publishers
	r.followed++
	if found, ok = r.look(to); ok {
		return found, true
	}
	r.startedOver++
	if r.stands(from) && r.stands(root) {
		r.t.Errorf("%s of %s: got a reference to %s, which does not exist, want none", from.key, from.time.Format(time.TimeOnly), to)
	}
	return sight{}, false
}

// stands reports whether an object is unchanged.
func (r *reader) stands(s sight) bool {
	again, ok := r.look(s.key)
	return ok && again == s
}

// look reads an object, and checks that it is the whole object of a site.
func (r *reader) look(key site.Key) (s sight, ok bool) {
	stream, info, _, err := r.place.plain.GetObject(context.Background(), r.place.at.Bucket, r.place.at.Prefix+string(key), minio.GetObjectOptions{})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return s, false
	}
	var body []byte
	if err == nil {
		body, err = io.ReadAll(stream)
		_ = stream.Close()
	}
	if err != nil {
		r.t.Errorf("reader: get %s: got %v, want no error", key, err)
		return s, false
	}
	if !slices.ContainsFunc(r.sites, func(m memory) bool { return m[key] == string(body) }) {
		r.t.Errorf("%s: got %.200q, want an object of one of the sites", key, body)
	}
	return sight{key, string(body), info.ETag, info.LastModified}, true
}

func (r *reader) String() string {
	return fmt.Sprintf("the reader followed %d references and started over %d times", r.followed, r.startedOver)
}
