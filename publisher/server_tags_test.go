package publisher_test

import (
	"context"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site/tags"
)

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
