package publisher_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/shards"
)

// No object is written before the objects that it refers to, and none is deleted while another refers to it. The order
// is: objects, the manifest shards that name them, the objects that refer clients to them (search shards, buckets of
// users, leaderboards), the root, then the deletes. The lock and the mark are put before all that and removed after it.
func TestTheOrderOfWrites(t *testing.T) {
	first := demo(t)
	sites := []memory{first, first.Changed(t, 2, " ").WithoutLists(t, 3), generated(t, afero.FromIOFS{FS: fixtures.Demo()}, "v2")}
	onServers(t, func(t *testing.T, server *servers.Server) {
		for _, bulk := range []publisher.Bulk{publisher.BulkOff, publisher.BulkAuto} {
			p := newPlace(t, server, "")
			for _, next := range sites {
				before := p.list(t)
				r := newRecorder(p.at)
				publish(t, next, p.open(t, r), publisher.Options{Bulk: bulk})
				o := order{t, r, next.Root(t).Config}
				o.checkStages(r.deletes())
				o.checkShards(next, before)
				p.lists(t, next)
			}
		}
	})
}

// An order is that of a run's requests.
type order struct {
	t      *testing.T
	r      *recorder
	config site.Config
}

// stage returns the stage in which a key is put.
func (o order) stage(key site.Key) string {
	route, ok := o.config.RouteOf(key)
	switch {
	case !ok:
		return "" // the publisher's own
	case route.ID == routes.Leaderboard || route.ID == routes.LeaderboardLimit:
		return "leaderboards"
	case route.ID == routes.SearchShard:
		return "searches"
	case route.ID == routes.UserBucket:
		return "users"
	case isManifest(key):
		return "manifest"
	case route.ID == routes.Root:
		return "root"
	}
	return "objects"
}

func (o order) checkStages(deletes bool) {
	o.t.Helper()
	var last int
	after := func(what, method string, choose func(site.Key) bool) {
		begun, ended := o.r.moments(o.t, what, method, choose)
		if begun < last {
			o.t.Errorf("%s: got it too early, want it later", what)
		}
		last = ended
	}
	is := func(want site.Key) func(site.Key) bool { return func(key site.Key) bool { return key == want } }
	in := func(stage string) func(site.Key) bool {
		return func(key site.Key) bool { return o.stage(key) == stage }
	}
	begun, _ := o.r.moments(o.t, "the lock", http.MethodPut, is(site.LockKey)) // its heartbeat goes on
	last = begun
	after("the mark", http.MethodPut, is(site.MarkKey))
	after("objects", http.MethodPut, in("objects"))
	after("searches", http.MethodPut, in("searches"))
	after("users", http.MethodPut, in("users"))
	after("leaderboards", http.MethodPut, in("leaderboards"))
	_, manifest := o.r.moments(o.t, "manifest shards", http.MethodPut, in("manifest"))
	last = max(last, manifest)
	after("the root", http.MethodPut, is(site.RootKey))
	if deletes {
		after("deletes", http.MethodDelete, func(key site.Key) bool { return key != site.MarkKey && key != site.LockKey && key != site.PackKey })
	}
	after("the end of the mark", http.MethodDelete, is(site.MarkKey))
	if _, released := o.r.moments(o.t, "the lock", http.MethodPut, is(site.LockKey)); released < last {
		o.t.Errorf("lock: got its release before the mark was deleted, want it after")
	}
}

// checkShards checks that every shard came after the objects that it names. What leads
// clients to objects comes later still; where there is a site that readers may come
// from, a shard waits for such as were not there.
func (o order) checkShards(next memory, before map[site.Key]minio.ObjectInfo) {
	o.t.Helper()
	_, isLive := before[site.RootKey]
	for _, name := range site.HashPrefixes(next.Root(o.t).ShardDigits) {
		key := site.ManifestKey(name)
		if o.r.put()[key] == 0 {
			continue
		}
		shard, _ := o.r.moments(o.t, string(key), http.MethodPut, func(k site.Key) bool { return k == key })
		m, err := shards.Parse(name, []byte(next[key]))
		if err != nil {
			o.t.Fatal(err)
		}
		for _, e := range m.Objects {
			_, wasThere := before[e.Key]
			if o.r.put()[e.Key] == 0 || o.stage(e.Key) != "objects" && (wasThere || !isLive) {
				continue
			}
			if _, ended := o.r.moments(o.t, string(e.Key), http.MethodPut, func(k site.Key) bool { return k == e.Key }); shard < ended {
				o.t.Errorf("%s: got it before %s, to which it refers, want it after", key, e.Key)
			}
		}
	}
}

// Objects of others stay as they are: those of refreshes, and files that do not belong
// to a site. This holds after a run that was cut off, too.
func TestWhatBelongsToOthersIsNotTouched(t *testing.T) {
	first := demo(t)
	second := first.WithoutLists(t, 3)
	details := first.Keys(t, routes.Details)[0]
	refreshes := first.Root(t).Config.RefreshesOf(details)
	if len(refreshes) != 1 {
		t.Fatalf("%s: got %q, want one key", details, refreshes)
	}
	foreign := []site.Key{refreshes[0], "_refresh/badges/999999", "robots.txt", "api/v1/notes", "other/_site", "_sitemap"}
	onServers(t, func(t *testing.T, server *servers.Server) {
		p := newPlace(t, server, "")
		for _, key := range foreign {
			p.put(t, key, "others keep this", minio.PutObjectOptions{ContentType: "text/plain"})
		}
		for _, cutOff := range []bool{false, true} {
			for _, next := range []memory{first, second} {
				if cutOff {
					p.put(t, site.MarkKey, `{"runs":[]}`, minio.PutObjectOptions{})
				}
				r := newRecorder(p.at)
				publish(t, next, p.open(t, r), publisher.Options{})
				p.holds(t, next, foreign...)
				touched := r.count(func(q *request) bool {
					return q.method != http.MethodGet && slices.ContainsFunc(q.keys, func(key site.Key) bool { return slices.Contains(foreign, key) })
				})
				if touched > 0 {
					t.Errorf("writes to objects of others: got %d, want 0", touched)
				}
			}
		}
		for _, key := range foreign {
			if body, _ := p.get(t, key); body != "others keep this" {
				t.Errorf("%s: got %q, want it unchanged", key, body)
			}
		}
	})
}

// Nothing is written while another publisher has the lock.
func TestUnderAForeignLockNothingIsWritten(t *testing.T) {
	onServers(t, func(t *testing.T, server *servers.Server) {
		p := newPlace(t, server, "")
		lock := `{"id":"another","owner":"ada@elsewhere","host":"elsewhere","pid":17,"beats":1,"lease_seconds":600}`
		p.put(t, site.LockKey, lock, minio.PutObjectOptions{})
		heartbeat := strings.Replace(lock, `"beats":1`, `"beats":2`, 1)
		time.AfterFunc(time.Second, func() { p.put(t, site.LockKey, heartbeat, minio.PutObjectOptions{}) })
		r := newRecorder(p.at)
		_, err := publisher.Publish(t.Context(), demo(t), p.open(t, r), publisher.Options{})
		if !errors.Is(err, publisher.ErrLocked) || !strings.Contains(err.Error(), "ada@elsewhere") || !strings.Contains(err.Error(), "host elsewhere") {
			t.Errorf("error: got %v, want ErrLocked that names the owner", err)
		}
		if n := r.count((*request).wrote); n > 0 {
			t.Errorf("effective writes: got %d, want 0", n)
		}
		if body, _ := p.get(t, site.LockKey); body != heartbeat || len(p.list(t)) != 1 {
			t.Errorf("got the lock %q and %d objects, want both unchanged", body, len(p.list(t)))
		}
	})
}
