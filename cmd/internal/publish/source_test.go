package publish

import (
	"context"
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
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/parts"
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
	report, stderr := reported[*renderedReport](t, "publish", append([]string{"--snapshot", snapshot, "--dest", dest}, args...)...)
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
			done(t, "verify", "--dest", dest)
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
	const first, hour, day = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z", "2026-01-02T00:00:00Z"
	stored := func() string { return body(t, to, "_ranks") }
	every(snapshotAsOf(t, first, asItIs), first)
	before := stored()
	if every(snapshotAsOf(t, hour, aFollow), first); stored() != before {
		t.Error("got another object _ranks within the day, want the same")
	}
	if every(snapshotAsOf(t, day, aFollow), day); stored() == before {
		t.Error("got the same object _ranks a day later, want another one")
	}
	writeFile(t, to, "_ranks", "ranks")
	if status, _, stderr := runPublish("--snapshot", snapshotAsOf(t, day, asItIs), "--dest", "file://"+to, "--api", "efp", "--ranks-every", "24h"); status != command.Failed ||
		!strings.Contains(stderr, "the destination: file://"+to+": _ranks: it is cut off, or something else: malformed object; repair it, or delete it there") {
		t.Errorf("got status %d and %s, want an error that says what to do", status, stderr)
	}
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
	want := readSite(t, generated(t, dir, "site", site.Config{}))
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
	for key, body := range want {
		if got, err := opened.Get(t.Context(), key); err != nil || string(got) != body {
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

// readSite reads a site that generate has written as a folder.
func readSite(t *testing.T, folder string) memsite.Site {
	t.Helper()
	m, err := memsite.Read(afero.NewBasePathFs(afero.NewOsFs(), folder))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// publishedSite publishes a site and returns the report.
func publishedSite(t *testing.T, at, dest string, args ...string) *publisher.Report {
	t.Helper()
	report, _ := reported[*publisher.Report](t, "publish", append([]string{"--site", at, "--dest", dest}, args...)...)
	return report
}

// Parts are published like the site they are cut from, and unchanged objects are not put again.
func TestPublishParts(t *testing.T) {
	for _, config := range []site.Config{{}, {API: site.APIEFP, Explorer: true}} {
		first := generated(t, demoSnapshot(t, asItIs), "site", config)
		second := generated(t, demoSnapshot(t, aFollow), "site", config)
		to := filepath.Join(t.TempDir(), "out")
		dest := "file://" + to
		parts := readSite(t, first).WriteParts(t, t.TempDir())
		if report := publishedSite(t, parts, dest); report.Outcome != publisher.Published || report.Done.Put != report.Site.Objects {
			t.Errorf("got %q with %d of %d objects put, want all", report.Outcome, report.Done.Put, report.Site.Objects)
		}
		equalFolders(t, to, first)
		for _, at := range []string{parts, "file://" + parts, first} {
			if report := publishedSite(t, at, dest); report.Outcome != publisher.Unchanged {
				t.Errorf("%s again: got %q, want it unchanged", at, report.Outcome)
			}
		}
		parts = readSite(t, second).WriteParts(t, t.TempDir())
		if report := publishedSite(t, parts, dest); report.Outcome != publisher.Published || report.Done.Put == 0 || report.Done.Put > report.Site.Objects/2 {
			t.Errorf("one more follow: got %q with %d of %d objects put, want a few", report.Outcome, report.Done.Put, report.Site.Objects)
		}
		equalFolders(t, to, second)
		done(t, "repair", "--site", parts, "--dest", dest)
	}
}

// A shell replaces part-* by all names, unless it is in quotes.
func TestPublishPartsWithoutQuotes(t *testing.T) {
	folder := t.TempDir()
	readSite(t, demoSite(t, "site")).WriteParts(t, folder)
	dest := "file://" + filepath.Join(t.TempDir(), "out")
	for want, args := range map[string][]string{
		"quote …/part-*":      {"--dest", dest, "--site", filepath.Join(folder, "part-0"), filepath.Join(folder, "part-1")},
		"/part-*', in quotes": {"--dest", dest, "--site", folder},
	} {
		if status, _, stderr := runPublish(args...); status == command.Done || !strings.Contains(lastLine(stderr), want) {
			t.Errorf("got status %d: %s, want %q", status, lastLine(stderr), want)
		}
	}
}

// Broken parts fail with a one-line error that names the remedy, and the bucket does not change.
func TestPublishBrokenParts(t *testing.T) {
	whole := readSite(t, demoSite(t, "site"))
	shard := site.ManifestShard(site.RootKey, 1) // any
	for name, c := range map[string]struct {
		damage func(t *testing.T, folder string) error
		says   string
	}{
		"no root": {func(_ *testing.T, folder string) error { return os.Remove(filepath.Join(folder, parts.Root)) },
			"has no part-root: the run that writes the parts is unfinished or has failed"},
		"a part is missing": {func(_ *testing.T, folder string) error {
			return os.Remove(filepath.Join(folder, parts.Name(shard)))
		}, "has no part-" + shard + ": the parts do not belong to one complete run; write them again"},
		"a part is cut off": {func(_ *testing.T, folder string) error {
			return os.Truncate(filepath.Join(folder, parts.Name(shard)), 1<<10)
		}, "part-" + shard},
		"a part of another run": {func(t *testing.T, folder string) error {
			body := whole.Changed(t, 1, " ").Parts(t)[parts.Name(shard)]
			return os.WriteFile(filepath.Join(folder, parts.Name(shard)), body, 0o644)
		}, "the parts do not belong to one complete run; write them again"},
		"a damaged body": {func(_ *testing.T, folder string) error {
			name := filepath.Join(folder, parts.Name(shard))
			body, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			at := strings.LastIndex(strings.TrimRight(string(body), "\x00"), "}")
			body[at] = ']'
			return os.WriteFile(name, body, 0o644)
		}, "the site is damaged: "},
	} {
		t.Run(name, func(t *testing.T) {
			folder, to := t.TempDir(), filepath.Join(t.TempDir(), "out")
			parts := whole.WriteParts(t, folder)
			if err := c.damage(t, folder); err != nil {
				t.Fatal(err)
			}
			status, _, stderr := runPublish("--site", parts, "--dest", "file://"+to)
			last := lastLine(stderr)
			if status != command.Failed || !strings.Contains(last, c.says) || strings.Contains(last, "rebuild") {
				t.Errorf("got status %d: %s, want %q", status, last, c.says)
			}
			if _, err := os.Stat(filepath.Join(to, string(site.RootKey))); err == nil {
				t.Error("the root was put")
			}
		})
	}
}

// Parts in a bucket are published to another bucket, over a connection that breaks.
func TestPublishPartsFromABucket(t *testing.T) {
	s := servers.Start(t, servers.MinIO)
	s.Env(t)
	viaFolder, viaParts := s.Bucket(t), s.Bucket(t)
	at := "s3://" + s.Bucket(t) + "/some/parts"
	place, err := parts.Open(t.Context(), at, storage.S3Options{Endpoint: s.Endpoint})
	if err != nil {
		t.Fatal(err)
	}
	proxy := s.Proxy(t)
	flags := []string{"--endpoint", proxy.Endpoint}
	for _, change := range []func(*testing.T, string){asItIs, aFollow} {
		path := generated(t, demoSnapshot(t, change), "site", site.Config{API: site.APIEFP})
		readSite(t, path).PutParts(t, place)
		publishedSite(t, path, "s3://"+viaFolder, "--endpoint", s.Endpoint)
		proxy.Break(1_000_000, true)
		if report := publishedSite(t, at+"/part-*", "s3://"+viaParts, flags...); report.Outcome != publisher.Published {
			t.Errorf("got %q, want it published", report.Outcome)
		}
		proxy.Mend()
		equalBuckets(t, s, viaFolder, viaParts)
		if report := publishedSite(t, at+"/part-*", "s3://"+viaParts, flags...); report.Outcome != publisher.Unchanged {
			t.Errorf("again: got %q, want it unchanged", report.Outcome)
		}
	}
	if _, err := place.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	status, _, stderr := runPublish(append(flags, "--site", at+"/part-*", "--dest", "s3://"+viaParts)...)
	if status != command.Failed || !strings.Contains(lastLine(stderr), "is unfinished or has failed") {
		t.Errorf("during a run: got status %d: %s", status, stderr)
	}
}
