package publisher_test

import (
	"context"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/tags"
)

// Whatever was published before, the bucket contains exactly the site, byte for byte and with its
// headers.
func TestTheBucketIsTheSite(t *testing.T) {
	first := demo(t)
	steps := []struct {
		name    string
		site    memory
		outcome publisher.Outcome
	}{
		{"into an empty bucket", first, publisher.Published},
		{"again, unchanged", first, publisher.Unchanged},
		{"one object in a hundred changed", first.Changed(t, 100, " "), publisher.Published},
		{"lists are gone", first.Changed(t, 100, " ").WithoutLists(t, 3), publisher.Published},
		{"an older site", first, publisher.Published},
		{"another base path", generated(t, afero.FromIOFS{FS: fixtures.Demo()}, "v2/social"), publisher.Published},
		{"more shards of the manifest", first.With(t, func(_ memory, root *site.Root) { root.ShardDigits = 2 }), publisher.Published},
		{"fewer shards, and lists are gone", first.WithoutLists(t, 4), publisher.Published},
		{"the same, unchanged", first.WithoutLists(t, 4), publisher.Unchanged},
	}
	ways := []struct {
		name, prefix, file string
		bulk               publisher.Bulk
	}{
		{"from a folder, objects many at once", "", "site", publisher.BulkAuto},
		{"from a tar file below a prefix, objects one by one", "a+site/ü/", "site.tar", publisher.BulkOff},
	}
	onServers(t, func(t *testing.T, server *servers.Server) {
		for _, way := range ways {
			t.Run(way.name, func(t *testing.T) {
				p := newPlace(t, server, way.prefix)
				for _, step := range steps {
					t.Log(step.name)
					report := publish(t, opened(t, step.site, way.file), p.open(t, nil), publisher.Options{Bulk: way.bulk})
					p.holds(t, step.site)
					if report.Outcome != step.outcome || report.Resumed || report.Plan.Put != report.Done.Put || report.Plan.Delete != report.Done.Deleted {
						t.Errorf("%s: got %+v, want what the step changes", step.name, report)
					}
				}
			})
		}
	})
}

// Tags arrive as metadata of every object, whether put one by one or in archives, and a publish
// with other tags puts all objects again.
func TestTagsAreMetadata(t *testing.T) {
	m := demo(t)
	onServers(t, func(t *testing.T, server *servers.Server) {
		for _, bulk := range []publisher.Bulk{publisher.BulkOff, publisher.BulkAuto} {
			p := newPlace(t, server, "below/")
			for _, services := range []string{"", "fastly", "cloudfront fastly", ""} {
				report := publish(t, m, p.open(t, nil), publisher.Options{Bulk: bulk, Tags: services})
				if report.Plan.Put != len(m)-len(m.Root(t).Manifest)-1 {
					t.Errorf("bulk %s, %q: got %d objects put, want all", bulk, services, report.Plan.Put)
				}
				config := m.Root(t).Config
				config.Tags = services
				wrong := 0
				for key := range m {
					info, err := p.plain.StatObject(context.Background(), p.at.Bucket, p.at.Prefix+string(key), minio.StatObjectOptions{})
					if err != nil {
						t.Fatal(err)
					}
					want := tags.Metadata(config, key)
					for _, name := range []string{tags.CacheTag, tags.SurrogateKey} {
						if got := info.Metadata.Get(tags.Header + name); got != want[name] && wrong < 5 {
							wrong++
							t.Errorf("bulk %s, %q: %s: got %s %q, want %q", bulk, services, key, name, got, want[name])
						}
					}
				}
			}
		}
	})
}
