package publisher_test

import (
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
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
