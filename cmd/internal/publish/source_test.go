package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/internal/release"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
)

// demoSnapshot writes the demo snapshot, with a change, into a folder.
func demoSnapshot(t *testing.T, change func(t *testing.T, dir string)) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "snapshot")
	if err := os.CopyFS(dir, fixtures.Demo()); err != nil {
		t.Fatal(err)
	}
	change(t, dir)
	return dir
}

func asItIs(*testing.T, string) {}

// addRow adds a row to a table of the demo snapshot.
func addRow(table, row string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		file, err := os.OpenFile(filepath.Join(dir, table), os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(row + "\n"); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// aFollow is a new record of a list of the demo snapshot.
var aFollow = addRow("records.ndjson", `{"token_id":"4","version":1,"record_type":"address","data":"0x00000000000000000000000000000000000000aa"}`)

// generated generates the site of a snapshot.
func generated(t *testing.T, snapshot, name string, config site.Config) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	from := afero.NewBasePathFs(afero.NewOsFs(), snapshot)
	if _, err := generator.ToPath(context.Background(), from, out, generator.Options{NoSync: true, Config: config, Generator: release.Version()}); err != nil {
		t.Fatal(err)
	}
	return out
}

// A renderedReport is the report of a publish from a snapshot.
type renderedReport struct {
	publisher.Report
	Rendered *summary.Report
}

// publishedFrom publishes a snapshot and returns the report.
func publishedFrom(t *testing.T, snapshot, dest string, args ...string) *renderedReport {
	t.Helper()
	status, stdout, stderr := runPublish(append([]string{"--snapshot", snapshot, "--dest", dest, "--report", "-"}, args...)...)
	report := &renderedReport{}
	if err := json.Unmarshal([]byte(stdout), report); err != nil || status != command.Done {
		t.Fatalf("got status %d: %s, %v", status, stderr, err)
	}
	if r := report.Rendered; r == nil || r.Snapshot != snapshot || r.Counts != report.Site || !strings.Contains(stderr, "not written: objects are rendered on request") {
		t.Fatalf("got %+v and %s, want the report of the generation too", report.Rendered, stderr)
	}
	return report
}

// A snapshot is published to a folder like the site that generate makes of it, byte for byte.
func TestPublishASnapshot(t *testing.T) {
	first, second := demoSnapshot(t, asItIs), demoSnapshot(t, aFollow)
	for api, config := range map[string]site.Config{site.APISpec: {LeaderboardMax: 12, BasePath: "x", Explorer: true}, site.APIEFP: {
		API: site.APIEFP, LeaderboardMax: 12, BasePath: "x", Explorer: true, HistoryWindow: site.Window(site.DefaultHistoryWindow),
	}} {
		t.Run(api, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "out")
			dest, flags := "file://"+to, []string{"--api", api, "--leaderboard-max", "12", "--base-path", "x"}
			if report := publishedFrom(t, first, dest, append(flags, "--dry-run")...); report.Outcome != publisher.Planned {
				t.Errorf("a dry run: got %q", report.Outcome)
			}
			if _, err := os.Stat(to); err == nil {
				t.Fatal("a dry run made the folder")
			}
			if report := publishedFrom(t, first, dest, flags...); report.Outcome != publisher.Published || report.Done.Put != report.Site.Objects {
				t.Errorf("got %q with %d of %d objects put, want all", report.Outcome, report.Done.Put, report.Site.Objects)
			}
			equalFolders(t, to, generated(t, first, "site", config))
			if report := publishedFrom(t, first, dest, flags...); report.Outcome != publisher.Unchanged {
				t.Errorf("again: got %q, want it unchanged", report.Outcome)
			}
			changed := publishedFrom(t, second, dest, flags...)
			if changed.Outcome != publisher.Published || changed.Done.Put == 0 || changed.Done.Put > changed.Site.Objects/2 {
				t.Errorf("one more follow: got %q with %d of %d objects put, want a few", changed.Outcome, changed.Done.Put, changed.Site.Objects)
			}
			equalFolders(t, to, generated(t, second, "site", config))
			if status, _, stderr := runPublish("--site", generated(t, second, "site.tar", config), "--dest", dest); status != command.Done || !strings.Contains(stderr, "unchanged") {
				t.Errorf("the site: got status %d and %s, want it unchanged", status, stderr)
			}
			if status, _, stderr := run("verify", "--dest", dest); status != command.Done {
				t.Errorf("verify: got status %d: %s", status, stderr)
			}
		})
	}
}

// TestPublishHeldRanks: with --ranks-every, publish keeps the ranks of the destination until they
// are due. Malformed ranks there are an error, and publish writes nothing.
func TestPublishHeldRanks(t *testing.T) {
	to := filepath.Join(t.TempDir(), "out")
	every := func(snapshot, want string) {
		t.Helper()
		report := publishedFrom(t, snapshot, "file://"+to, "--api", "efp", "--ranks-every", "24h")
		if report.Rendered.Ranks == nil || report.Rendered.Ranks.AsOf != want {
			t.Errorf("got ranks %+v, want those of %s", report.Rendered.Ranks, want)
		}
	}
	at := func(asOf string, change func(t *testing.T, dir string)) string {
		dir := demoSnapshot(t, change)
		if err := os.WriteFile(filepath.Join(dir, "meta.json"), []byte(`{"format":1,"as_of":"`+asOf+`"}`), 0o644); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	const first, hour, day = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", "2026-01-02T00:00:00Z"
	stored := func() string {
		t.Helper()
		body, err := os.ReadFile(filepath.Join(to, "_ranks"))
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	every(at(first, asItIs), first)
	before := stored()
	if every(at(hour, aFollow), first); stored() != before {
		t.Error("got another object _ranks within the day, want the same")
	}
	if every(at(day, aFollow), day); stored() == before {
		t.Error("got the same object _ranks a day later, want another one")
	}
	if err := os.WriteFile(filepath.Join(to, "_ranks"), []byte("ranks"), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := runPublish("--snapshot", at(day, asItIs), "--dest", "file://"+to, "--api", "efp", "--ranks-every", "24h"); status != command.Failed ||
		!strings.Contains(stderr, "the destination: file://"+to+": _ranks: it is cut off, or something else: malformed object; repair it, or delete it there") {
		t.Errorf("got status %d and %s, want an error that says what to do", status, stderr)
	}
}

// The same on real servers: keys, bytes and headers of both buckets are equal, and refreshed data is read
// from the server of the bucket.
func TestPublishASnapshotToServers(t *testing.T) {
	onServers(t, func(t *testing.T, s *servers.Server) {
		for api, config := range map[string]site.Config{
			site.APISpec: {API: site.APISpec, Explorer: true},
			site.APIEFP:  {API: site.APIEFP, Explorer: true, HistoryWindow: site.Window(site.DefaultHistoryWindow)},
		} {
			viaTar, direct := s.Bucket(t), s.Bucket(t)
			for _, change := range []func(*testing.T, string){asItIs, aFollow} {
				snapshot := demoSnapshot(t, change)
				from := generated(t, snapshot, "site.tar", config)
				if status, _, stderr := runPublish("--site", from, "--dest", "s3://"+viaTar, "--endpoint", s.Endpoint); status != command.Done {
					t.Fatal(stderr)
				}
				publishedFrom(t, snapshot, "s3://"+direct, "--endpoint", s.Endpoint, "--api", api, "--refreshed", "s3://"+direct+"/_refresh")
				equalBuckets(t, s, viaTar, direct)
			}
		}
	})
}

// TestPublishASnapshotFromABucket: the snapshot may be in a bucket of the same or another server.
func TestPublishASnapshotFromABucket(t *testing.T) {
	onServers(t, func(t *testing.T, s *servers.Server) {
		from, same, other := s.Bucket(t), s.Bucket(t), filepath.Join(t.TempDir(), "out")
		snapshot := demoSnapshot(t, asItIs)
		if err := filepath.WalkDir(snapshot, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				_, err = s.Client().FPutObject(t.Context(), from, "snapshot/"+entry.Name(), path, minio.PutObjectOptions{})
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if status, _, stderr := runPublish("--site", generated(t, snapshot, "site.tar", site.Config{Explorer: true}), "--dest", "file://"+other+"2"); status != command.Done {
			t.Fatal(stderr)
		}
		publishedFrom(t, "s3://"+from+"/snapshot", "file://"+other, "--endpoint", s.Endpoint)
		equalFolders(t, other, other+"2")
		publishedFrom(t, "s3://"+from+"/snapshot", "s3://"+same, "--endpoint", s.Endpoint)
		if status, _, stderr := runPublish("--site", generated(t, snapshot, "site.tar", site.Config{Explorer: true}), "--dest", "s3://"+same, "--endpoint", s.Endpoint); status != command.Done || !strings.Contains(stderr, "unchanged") {
			t.Errorf("got status %d and %s, want it unchanged", status, stderr)
		}
	})
}

func equalBuckets(t *testing.T, s *servers.Server, one, other string) {
	t.Helper()
	want, got := contents(t, s, one), contents(t, s, other)
	for key, etag := range want {
		if got[key] != etag {
			t.Errorf("%s: got ETag %q, want %q", key, got[key], etag)
		}
		if headersOf(t, s, other, key) != headersOf(t, s, one, key) {
			t.Errorf("%s: got other headers, want %v", key, headersOf(t, s, one, key))
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d objects, want %d", len(got), len(want))
	}
}

func headersOf(t *testing.T, s *servers.Server, bucket string, key site.Key) [2]string {
	t.Helper()
	info, err := s.Client().StatObject(context.Background(), bucket, string(key), minio.StatObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return [2]string{info.ContentType, info.Metadata.Get("Cache-Control")}
}

// An invalid row stops the publish before it begins, or is skipped and reported.
func TestPublishASnapshotWithAnInvalidRow(t *testing.T) {
	snapshot, to := demoSnapshot(t, addRow("lists.ndjson", `{"token_id":"x"}`)), filepath.Join(t.TempDir(), "out")
	status, _, stderr := runPublish("--snapshot", snapshot, "--dest", "file://"+to)
	if _, err := os.Stat(to); status != command.Failed || err == nil || !strings.Contains(lastLine(stderr), "lists.ndjson:33: ") {
		t.Errorf("got status %d, made the folder: %v: %s", status, err == nil, stderr)
	}
	if report := publishedFrom(t, snapshot, "file://"+to, "--on-invalid", "skip"); report.Rendered.Skipped() != 1 {
		t.Errorf("got %v, want one row skipped", report.Rendered)
	}
	if status, _, stderr := runPublish("--snapshot", filepath.Join(t.TempDir(), "nothing"), "--dest", "file://"+to); status != command.Failed {
		t.Errorf("no snapshot: got status %d: %s", status, stderr)
	}
}

// Publish reads a snapshot once, before it puts anything. Later changes to the folder have no
// effect.
func TestPublishReadsASnapshotOnce(t *testing.T) {
	dir := demoSnapshot(t, asItIs)
	want, err := storage.OpenSite(t.Context(), generated(t, dir, "site.tar", site.Config{}), storage.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer want.Close()
	from := source{Snapshot: dir}
	run := session{progress: command.NewProgress(io.Discard), stderr: io.Discard}
	opened, _, err := from.opener("", &signing{})(t.Context(), run, storage.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	root, err := want.Get(t.Context(), site.RootKey)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := site.ParseRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	keys := []site.Key{site.RootKey}
	for _, name := range shards.Names(&parsed) {
		keys = append(keys, site.ManifestKey(name))
		if len(name) < parsed.ShardDigits {
			continue
		}
		body, err := want.Get(t.Context(), site.ManifestKey(name))
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := shards.Parse(name, body)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range manifest.Objects {
			keys = append(keys, e.Key)
		}
	}
	for _, key := range keys {
		body, err := want.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := opened.Get(t.Context(), key); err != nil || !bytes.Equal(got, body) {
			t.Errorf("%s: got %.100s and %v, want %.100s", key, got, err, body)
		}
	}
}

// A publish that is stopped while it renders has written nothing.
func TestStoppedRenderingWritesNothing(t *testing.T) {
	snapshot, to := demoSnapshot(t, asItIs), filepath.Join(t.TempDir(), "out")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := Publish{source: source{Snapshot: snapshot}}
	p.Dest, p.LogLevel = "file://"+to, "warn"
	if err := p.Run(ctx, io.Discard, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the end of the context", err)
	}
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder: got %v, want none", err)
	}
}

// One source is published: flags win over variables, and of two variables the site, which jobs had set
// before a snapshot could be published.
func TestSiteOrSnapshot(t *testing.T) {
	snapshot := demoSnapshot(t, aFollow)
	from := demoSite(t, "site")
	for _, c := range []struct {
		name         string
		args, env    []string
		fromSnapshot bool
		status       int
		says         string
	}{
		{name: "both flags", args: []string{"--site", from, "--snapshot", snapshot}, status: command.Usage, says: "exclude each other"},
		{name: "neither", status: command.Usage, says: "--site=SITE or --snapshot=DIR"},
		{name: "variable of the snapshot", env: []string{"SNAPSHOT"}, fromSnapshot: true},
		{name: "flag over the variable of the snapshot", args: []string{"--site", from}, env: []string{"SNAPSHOT"}},
		{name: "flag over the variable of the site", args: []string{"--snapshot", snapshot}, env: []string{"SITE"}, fromSnapshot: true},
		{name: "both variables", env: []string{"SITE", "SNAPSHOT"}},
		{name: "both variables and a flag", args: []string{"--snapshot", snapshot}, env: []string{"SITE", "SNAPSHOT"}, fromSnapshot: true},
		{name: "a flag of the other", args: []string{"--site", from, "--api", "efp"}, status: command.Usage, says: "--api is for a snapshot"},
		{name: "a number of the other", args: []string{"--site", from, "--leaderboard-max", "20"}, status: command.Usage, says: "--leaderboard-max is for a snapshot"},
		{name: "report in the snapshot", args: []string{"--snapshot", snapshot, "--report", snapshot + "/r.json"}, status: command.Usage, says: "in the snapshot"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, variable := range c.env {
				t.Setenv("FOLLOWPRESS_"+variable, map[string]string{"SITE": from, "SNAPSHOT": snapshot}[variable])
			}
			status, _, stderr := runPublish(append(c.args, "--dest", "file://"+filepath.Join(t.TempDir(), "out"))...)
			rendered := strings.Contains(stderr, "not written")
			if status != c.status || rendered != c.fromSnapshot || !strings.Contains(lastLine(stderr), c.says) {
				t.Errorf("got status %d, from the snapshot: %t: %s", status, rendered, stderr)
			}
		})
	}
}

// A rendered site answers like one in storage: a key without an object is ErrNotFound.
func TestRenderedSiteHasNoOtherObjects(t *testing.T) {
	from, _, err := generator.Open(t.Context(), afero.FromIOFS{FS: fixtures.Demo()}, generator.Options{Generator: release.Version()})
	if err != nil {
		t.Fatal(err)
	}
	var opened openSite = &renderedSite{Site: from}
	if _, err := opened.Get(t.Context(), "api/v1/lists/999999/details"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}
