package launch_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	"github.com/minio/minio-go/v7"

	"github.com/followpress/followpress/beam/internal/difftest"
	"github.com/followpress/followpress/beam/internal/launch"
	"github.com/followpress/followpress/beam/internal/loopback"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
)

func TestMain(m *testing.M) { loopback.Main(m) }

// run runs the command on Prism and returns the folder of the parts.
func run(t *testing.T, c difftest.Case, flags ...string) string {
	t.Helper()
	out := t.TempDir()
	var stdout, stderr bytes.Buffer
	if status := launch.Main(append(append(c.Flags(), "--out="+out), flags...), &stdout, &stderr); status != 0 {
		t.Fatalf("status %d: %s", status, stderr.String())
	}
	return out
}

// fixture is a case of a snapshot of the project, cut into files at random.
func fixture(t *testing.T, name string, config site.Config) difftest.Case {
	folder := filepath.Join("..", "..", "..", "fixtures", filepath.FromSlash(name))
	return difftest.Case{Name: name, Snapshot: difftest.Cut(t, 1, folder), Config: config}
}

// The site is that of generate, byte for byte, also if every account with more than three records about
// it counts as hot.
func TestSitesOfFixturesEqualThoseOfGenerate(t *testing.T) {
	for _, name := range []string{"demo", "conformance/snapshot", "conformance-efp/snapshot"} {
		for _, config := range []site.Config{{API: site.APISpec, Explorer: true}, {API: site.APIEFP, Explorer: true}} {
			t.Run(name+" "+config.API, func(t *testing.T) {
				c := fixture(t, name, config)
				c.Check(t, run(t, c, "--hot-after=3"))
			})
		}
	}
}

// seeds is how many random snapshots are tried.
const seeds = 12

func TestRandomSitesEqualThoseOfGenerate(t *testing.T) {
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := difftest.Random(t, seed)
			hot := []string{"--hot-after=2", "--hot-after=50000"}[seed/2%2]
			c.Check(t, run(t, c, hot))
		})
	}
}

// TestGivenSnapshot compares the sites of any snapshot, of which generate makes the other ones.
func TestGivenSnapshot(t *testing.T) {
	folder := os.Getenv("TEST_BEAM_SNAPSHOT")
	if folder == "" {
		t.Skip("TEST_BEAM_SNAPSHOT names no folder; run make test-beam")
	}
	for _, api := range []string{site.APISpec, site.APIEFP} {
		t.Run(api, func(t *testing.T) {
			c := difftest.Case{Name: "given", Snapshot: folder, Config: site.Config{API: api, Explorer: true}}
			c.Check(t, run(t, c))
		})
	}
}

// TestS3: snapshot and parts may be in buckets, also where parts of an earlier run are.
func TestS3(t *testing.T) {
	servers.Wanted(t)
	server := servers.Start(t, servers.MinIO)
	server.Env(t)
	bucket := server.Bucket(t)
	flags := []string{"--s3-endpoint=" + server.Endpoint, "--out=s3://" + bucket + "/parts"}
	for _, name := range []string{"demo", "conformance/snapshot"} {
		c := fixture(t, name, site.Config{API: site.APISpec, Explorer: true})
		server.Upload(t, bucket, name, c.Snapshot)
		run(t, c, append(flags, "--snapshot=s3://"+bucket+"/"+name)...)
		c.Check(t, download(t, server, bucket, "parts/"))
	}
}

// TestFaultOfABucket: a bucket that fails while the pipeline runs is one clear error, and there is no root.
func TestFaultOfABucket(t *testing.T) {
	difftest.JobFails(t)
	servers.Wanted(t)
	server := servers.Start(t, servers.MinIO)
	server.Env(t)
	folder := t.TempDir()
	if err := os.CopyFS(folder, os.DirFS("../../../fixtures/demo")); err != nil {
		t.Fatal(err)
	}
	record := `{"token_id":"1","version":1,"record_type":"address","data":"0x00000000000000000000000000000000000000a1"}` + "\n"
	difftest.WriteFiles(t, folder, map[string]string{"records.ndjson": strings.Repeat(record, 20_000)})
	for _, test := range []struct{ failing, want string }{
		{"snapshot", "check --endpoint, and that the server is up"}, {"parts", "the parts: "},
	} {
		bucket, proxy := server.Bucket(t), server.Proxy(t)
		snapshot, out, failed := folder, t.TempDir(), make(chan struct{})
		switch test.failing {
		case "snapshot":
			server.Upload(t, bucket, "snapshot", folder)
			snapshot = "s3://" + bucket + "/snapshot"
			proxy.Break(300_000, true) // what the command itself reads is shorter
			close(failed)
		case "parts": // it goes when the first one is there
			out = "s3://" + bucket + "/parts"
			go func() {
				defer close(failed)
				for begun := time.Now(); time.Since(begun) < time.Minute && !slices.ContainsFunc(names(t, server, bucket, "parts/"), isPart); {
					time.Sleep(time.Millisecond)
				}
				if err := server.Client().RemoveBucketWithOptions(t.Context(), bucket, minio.RemoveBucketOptions{ForceDelete: true}); err != nil {
					t.Error(err)
				}
			}()
		}
		var stdout, stderr bytes.Buffer
		status := launch.Main([]string{"--snapshot=" + snapshot, "--out=" + out, "--s3-endpoint=" + proxy.Endpoint}, &stdout, &stderr)
		<-failed
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		if last := lines[len(lines)-1]; status != 1 || !strings.Contains(last, test.want) || len(last) > 500 {
			t.Errorf("%s: status %d: %s", test.failing, status, stderr.String())
		}
		if _, err := os.Stat(filepath.Join(out, "part-root")); err == nil {
			t.Error("there is a root")
		}
	}
}

func isPart(name string) bool { return strings.HasPrefix(name, "part-") }

// names are those of the objects under a prefix.
func names(t *testing.T, server *servers.Server, bucket, prefix string) (all []string) {
	for object := range server.Client().ListObjects(t.Context(), bucket, minio.ListObjectsOptions{Prefix: prefix}) {
		if object.Err != nil {
			t.Error(object.Err)
			return all
		}
		all = append(all, strings.TrimPrefix(object.Key, prefix))
	}
	return all
}

// download copies the objects under a prefix into a folder.
func download(t *testing.T, server *servers.Server, bucket, prefix string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for _, name := range names(t, server, bucket, prefix) {
		if err := server.Client().FGetObject(t.Context(), bucket, prefix+name, filepath.Join(folder, name), minio.GetObjectOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestFaults(t *testing.T) {
	demo := func(t *testing.T, file, rows string) string {
		folder := t.TempDir()
		if err := os.CopyFS(folder, os.DirFS("../../../fixtures/demo")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, file), []byte(rows), 0o666); err != nil {
			t.Fatal(err)
		}
		return folder
	}
	tests := []struct {
		name, snapshot string
		out            string
		status         int
		want           string
	}{
		{"no snapshot", t.TempDir(), t.TempDir(), 1, "meta.json is not there"},
		{"a table twice", demo(t, "badges-1.ndjson", "{}\n"), t.TempDir(), 1, "table badges exists twice"},
		{"ranks that are held", "../../../fixtures/demo --ranks-every=24h", t.TempDir(), 2, "only generate and publish --snapshot hold ranks"},
		{"a window", "../../../fixtures/demo --api=efp --history-window=999h", t.TempDir(), 2, "only generate and publish --snapshot make notifications"},
		{"pages", "../../../fixtures/demo --api=efp --pages", t.TempDir(), 2, "only generate, publish --snapshot, preview and live make pages"},
		{"operations", demo(t, "ops.ndjson", "") + " --api=efp", t.TempDir(), 1, "--history-window=0 makes the site without them"},
		{"no place", "../../../fixtures/demo", "../../../fixtures/demo", 1, `which is no part of a site`},
	}
	for _, test := range []struct {
		want  string
		flags []string
	}{
		// The first one: what the next one runs before its fault gets no --endpoint, though Beam keeps its flags.
		{"no server answers at 127.0.0.1:1", []string{"--runner=universal", "--endpoint=127.0.0.1:1"}},
		{"flags of Beam: flag provided but not defined: -no_such_flag", []string{"--", "--no_such_flag"}},
	} {
		t.Run(test.want, func(t *testing.T) {
			out := run(t, fixture(t, "demo", site.Config{API: site.APISpec}))
			var stdout, stderr bytes.Buffer
			status := launch.Main(append([]string{"--snapshot=../../../fixtures/demo", "--out=" + out}, test.flags...), &stdout, &stderr)
			if status != 1 || !strings.Contains(stderr.String(), test.want) || strings.Count(stderr.String(), "\n") != 1 {
				t.Errorf("status %d: %s", status, stderr.String())
			}
			if _, err := os.Stat(filepath.Join(out, "part-root")); err != nil {
				t.Errorf("the earlier site: %v", err)
			}
		})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			status := launch.Main(append(strings.Fields("--snapshot="+test.snapshot), "--out="+test.out), &stdout, &stderr)
			if lines := strings.Count(stderr.String(), "\n"); status != test.status || !strings.Contains(stderr.String(), test.want) || lines != status {
				t.Errorf("status %d: %s", status, stderr.String())
			}
		})
	}
}
