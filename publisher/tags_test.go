package publisher

import (
	"context"
	"maps"
	"sync"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/tags"
	"github.com/followpress/followpress/storage"
)

// A metadataBucket records the metadata of the last put of each object.
type metadataBucket struct {
	*storage.Local
	mu  sync.Mutex
	put map[site.Key]map[string]string
}

func (b *metadataBucket) Put(ctx context.Context, o storage.Object, condition storage.Condition) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put[o.Key] = o.Metadata
	return b.Local.Put(ctx, o, condition)
}

// A publish with other tags puts all objects again, with those tags, once. A repair keeps the tags,
// also on what it puts back.
func TestPublishWithTags(t *testing.T) {
	next := siteOf(t, objectsOf(50, ""))
	b := &metadataBucket{openLocal(t.TempDir()), sync.Mutex{}, map[site.Key]map[string]string{}}
	for _, services := range []string{"", "fastly", "cloudfront fastly", "cloudfront", ""} {
		clear(b.put)
		report := publish(t, next, b, Options{Tags: services})
		if want := len(next) - 17; report.Plan.Put != want || report.Done.Put != want || report.Plan.Manifests != 16 || report.Config.Tags != services {
			t.Errorf("%q: got %+v, want all %d objects put", services, report.Plan, want)
		}
		config := site.Config{BasePath: "api/v1", LeaderboardMax: 100, Tags: services}
		for key := range next {
			if got, want := b.put[key], tags.Metadata(config, key); !maps.Equal(got, want) {
				t.Errorf("%q: %s: got %v, want %v", services, key, got, want)
			}
		}
		if again := publish(t, next, b, Options{Tags: services}); again.Outcome != Unchanged {
			t.Errorf("%q: again: got %s, want nothing to do", services, again.Outcome)
		}
		lost := listKey(3, site.Details)
		if err := b.Delete(t.Context(), []site.Key{lost}); err != nil {
			t.Fatal(err)
		}
		clear(b.put)
		v, err := Repair(t.Context(), next, b, Options{})
		if err != nil || v.Missing.Count != 1 || !maps.Equal(b.put[lost], tags.Metadata(config, lost)) {
			t.Errorf("%q: repair: got %v, %+v, and %v, want the object with its tags", services, err, v, b.put[lost])
		}
	}
	if _, err := Publish(t.Context(), next, b, Options{Tags: "akamai"}); err == nil {
		t.Error("tags for an unknown service: got no error, want one")
	}
}
