package publisher_test

import (
	"maps"
	"net/http"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// The number of requests of a run follows from what changed.
func TestARunTakesFewRequests(t *testing.T) {
	first := demo(t)
	few := first.Changed(t, 50, " ")
	steps := []struct {
		name    string
		site    memory
		deletes bool
	}{
		{"the first site", first, false},
		{"unchanged", first, false},
		{"few objects", few, false},
		{"lists are gone", few.WithoutLists(t, 2), true},
		{"lists come back", few, false},
		{"another number of shards", few.With(t, func(_ memory, root *site.Root) { root.ShardDigits = 2 }), true},
	}
	onServers(t, func(t *testing.T, server *servers.Server) {
		p := newPlace(t, server, "")
		for _, step := range steps {
			objects, shards := differences(p.list(t), step.site)
			if shards > 0 { // deltas: more shards may be read than differ in their stored bytes
				shards = len(step.site.Root(t).Manifest)
			}
			most := objects + 2*shards + 10
			switch {
			case objects+shards == 0:
				most = 3
			case step.deletes:
				most++
			}
			r := newRecorder(p.at)
			bucket := p.open(t, r)
			publish(t, step.site, bucket, publisher.Options{Bulk: publisher.BulkOff})
			p.lists(t, step.site)
			if n := r.all(); n > most {
				t.Errorf("%s: got %d requests for %d objects in %d shards, want at most %d", step.name, n, objects, shards, most)
			}
			lists := 0
			if step.name == "the first site" { // looks for foreign objects
				lists = 1
			}
			if r.lists() != lists || r.of(http.MethodHead) > 0 {
				t.Errorf("%s: got %d listings and %d requests for headers, want %d and none", step.name, r.lists(), r.of(http.MethodHead), lists)
			}
			if many := r.of(http.MethodPost); many != 0 && !step.deletes || many != 1 && step.deletes {
				t.Errorf("%s: got %d requests that delete many objects, want 1 if there are deletes, else 0", step.name, many)
			}
			if one := r.of(http.MethodDelete); one > 1 {
				t.Errorf("%s: got %d requests that delete one object, want only that of the mark", step.name, one)
			}
			counted := map[storage.Request]int{storage.Get: r.of(http.MethodGet), storage.List: lists, storage.Put: r.of(http.MethodPut),
				storage.Delete: r.of(http.MethodDelete, http.MethodPost)}
			maps.DeleteFunc(counted, func(_ storage.Request, n int) bool { return n == 0 })
			if told := bucket.Requests(); !maps.Equal(told, counted) {
				t.Errorf("%s: got %v requests by the bucket, want %v as the transport", step.name, told, counted)
			}
		}
	})
}

// differences counts the objects and the manifest shards in which a bucket differs from a site.
func differences(listed map[site.Key]minio.ObjectInfo, want memory) (objects, shards int) {
	for key, body := range want {
		switch {
		case listed[key].ETag == site.Sum([]byte(body)).String() || key == site.RootKey:
		case len(key) > len(site.ManifestKey("")) && key[:len(site.ManifestKey(""))] == site.ManifestKey(""):
			shards++
		default:
			objects++
		}
	}
	return objects, shards
}

// If the server unpacks archives, many objects take few requests.
func TestMinIOTakesManyObjectsAtOnce(t *testing.T) {
	site1 := demo(t)
	server := servers.Start(t, servers.MinIO)
	p := newPlace(t, server, "below/")
	r := newRecorder(p.at)
	report := publish(t, site1, p.open(t, r), publisher.Options{})
	p.holds(t, site1)
	if n, most := r.of(http.MethodPut), 30; n > most || !report.Bulk {
		t.Errorf("got %d puts of %d objects, want at most %d; the report says bulk: %v", n, len(site1), most, report.Bulk)
	}
	for key, n := range r.objectsPut() {
		if n > 1 {
			t.Logf("%s was put %d times", key, n)
		}
	}
}
