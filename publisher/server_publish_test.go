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
		archives           bool
	}{
		{"from a folder, objects many at once", "", "site", true},
		{"from a tar file below a prefix, objects one by one", "a+site/ü/", "site.tar", false},
	}
	onServers(t, func(t *testing.T, server *servers.Server) {
		for _, way := range ways {
			t.Run(way.name, func(t *testing.T) {
				p := newPlace(t, server, way.prefix)
				for _, step := range steps {
					t.Log(step.name)
					report := publish(t, opened(t, step.site, way.file), unpacking(way.archives, p.open(t, nil)), publisher.Options{})
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
		for _, archives := range []bool{false, true} {
			p := newPlace(t, server, "below/")
			for _, services := range []string{"", "fastly", "cloudfront fastly", ""} {
				report := publish(t, m, unpacking(archives, p.open(t, nil)), publisher.Options{Tags: services})
				if report.Plan.Put != len(m)-len(m.Root(t).Manifest)-1 {
					t.Errorf("archives %t, %q: got %d objects put, want all", archives, services, report.Plan.Put)
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
							t.Errorf("archives %t, %q: %s: got %s %q, want %q", archives, services, key, name, got, want[name])
						}
					}
				}
			}
		}
	})
}
