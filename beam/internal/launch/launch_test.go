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
	json "github.com/goccy/go-json"
	"github.com/minio/minio-go/v7"

	"github.com/followpress/followpress/beam/internal/difftest"
	"github.com/followpress/followpress/beam/internal/launch"
	"github.com/followpress/followpress/beam/internal/loopback"
	"github.com/followpress/followpress/generator/summary"
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

// fixture returns a case of a fixture snapshot, cut into files at random.
func fixture(t *testing.T, name string, config site.Config) difftest.Case {
	folder := filepath.Join("..", "..", "..", "fixtures", filepath.FromSlash(name))
	return difftest.Case{Name: name, Snapshot: difftest.Cut(t, 1, folder), Config: config}
}

// The site equals generate's, byte for byte, even if every account with more than three records
// about it counts as hot.
func TestSitesOfFixturesEqualThoseOfGenerate(t *testing.T) {
	for _, name := range []string{"demo", "conformance/snapshot", "conformance-efp/snapshot"} {
		for _, config := range []site.Config{{API: site.APISpec, Explorer: true}, {API: site.APIEFP, Explorer: true, HistoryWindow: window}} {
			t.Run(name+" "+config.API, func(t *testing.T) {
				c := fixture(t, name, config)
				c.Check(t, run(t, c, "--hot-after=3"))
			})
		}
	}
}

const window = site.Window(site.DefaultHistoryWindow)

// seeds is the number of random snapshots.
const seeds = 12

func TestRandomSitesEqualThoseOfGenerate(t *testing.T) {
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := difftest.Random(t, seed)
			hot := []string{"--hot-after=2", "--hot-after=50000"}[seed/2%2]
			file := filepath.Join(t.TempDir(), "report.json")
			c.Check(t, run(t, c, hot, "--report="+file))
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got summary.Report
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatal(err)
			}
			_, want := c.Want(t)
			if read, want := inJSON(t, got.Tables), inJSON(t, want.Tables); read != want {
				t.Errorf("the report has read %s, want %s", read, want)
			}
			if got.Operations != want.Operations {
				t.Errorf("the report has %d operations, want %d", got.Operations, want.Operations)
			}
		})
	}
}

func inJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestGivenSnapshot compares the sites of any snapshot with generate's.
func TestGivenSnapshot(t *testing.T) {
	folder := os.Getenv("TEST_BEAM_SNAPSHOT")
	if folder == "" {
		t.Skip("TEST_BEAM_SNAPSHOT names no folder; run make test-beam")
	}
	for _, api := range []string{site.APISpec, site.APIEFP} {
		t.Run(api, func(t *testing.T) {
			c := difftest.Case{Name: "given", Snapshot: folder, Config: site.Config{API: api, Explorer: true}}
			if c.Config.EFP() {
				c.Config.HistoryWindow = window
			}
			c.Check(t, run(t, c))
		})
	}
}

// TestS3: snapshot and parts may be in buckets, even over the parts of an earlier run.
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

// TestFaultOfABucket: a bucket that fails while the pipeline runs gives one clear error, and there
// is no root.
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
			proxy.Break(300_000, true) // the command itself reads less
			close(failed)
		case "parts": // it disappears once the first part exists
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

// TestFaultOfOperations: errors in the order or the times of operations have generate's messages.
func TestFaultOfOperations(t *testing.T) {
	difftest.JobFails(t)
	row := func(token, at string) string {
		return fmt.Sprintf(`{"token_id":"%s","time":"%s","chain_id":1,"block":1,"log_index":1,"op":"0x01010101%040x"}`+"\n", token, at, 5)
	}
	for _, test := range []struct {
		name, want  string
		first, then string
	}{
		{"a file that begins too early", "ops-1.ndjson:1: ", row("4", "2026-11-01T00:00:00Z"), row("4", "2026-10-01T00:00:00Z")},
		{"a row twice", "ops-1.ndjson:1: ", row("4", "2026-11-01T00:00:00Z"), row("4", "2026-11-01T00:00:00Z")},
		{"before a hundred years", "ops-0.ndjson:1: ", row("4", "1900-01-01T00:00:00Z"), row("4", "2026-10-01T00:00:00Z")},
		{"a hundred years of two lists", "", row("4", "1990-01-01T00:00:00Z"), row("7", "2101-01-01T00:00:00Z")},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := difftest.Case{Snapshot: t.TempDir(), Config: site.Config{API: site.APIEFP, HistoryWindow: window}}
			if err := os.CopyFS(c.Snapshot, os.DirFS("../../../fixtures/demo")); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(c.Snapshot, "ops.ndjson")); err != nil {
				t.Fatal(err)
			}
			difftest.WriteFiles(t, c.Snapshot, map[string]string{"ops-0.ndjson": test.first, "ops-1.ndjson": test.then})
			var stdout, stderr bytes.Buffer
			status := launch.Main(append(c.Flags(), "--out="+t.TempDir()), &stdout, &stderr)
			lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
			got, want := lines[len(lines)-1], c.WantError(t).Error()
			if _, reason, _ := strings.Cut(want, ": time: "); test.want == "" { // without a row in the message
				got, want = got[max(0, len(got)-60):], reason[len(reason)-60:]
			}
			if status != 1 || !strings.HasSuffix(got, want) || !strings.Contains(want, test.want) {
				t.Errorf("status %d: got %q, want %q", status, got, want)
			}
		})
	}
}

func isPart(name string) bool { return strings.HasPrefix(name, "part-") }

// names returns the names of the objects under a prefix.
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
		{"a window", "../../../fixtures/demo --api=efp --history-window=1ms", t.TempDir(), 2, "history window 1ms: whole seconds"},
		{"operations twice", demo(t, "ops.ndjson.gz", "") + " --api=efp", t.TempDir(), 1, "table ops exists twice"},
		{"pages", "../../../fixtures/demo --api=efp --pages", t.TempDir(), 2, "only generate, publish --snapshot, preview and live make pages"},
		{"the graph as files", "../../../fixtures/demo --data", t.TempDir(), 2, "only generate, publish --snapshot, preview and live add the graph as files"},
		{"no place", "../../../fixtures/demo", "../../../fixtures/demo", 1, `which is not a part of a site`},
	}
	for _, test := range []struct {
		want  string
		flags []string
	}{
		// First: later runs fail before they get --endpoint, although Beam keeps its flags.
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
