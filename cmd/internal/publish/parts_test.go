package publish

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/parts"
)

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
	status, stdout, stderr := runPublish(append([]string{"--site", at, "--dest", dest, "--report", "-"}, args...)...)
	report := &publisher.Report{}
	if err := json.Unmarshal([]byte(stdout), report); err != nil || status != command.Done {
		t.Fatalf("got status %d: %s, %v", status, stderr, err)
	}
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
		if status, _, stderr := run("repair", "--site", parts, "--dest", dest); status != command.Done {
			t.Errorf("repair: got status %d: %s", status, stderr)
		}
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
