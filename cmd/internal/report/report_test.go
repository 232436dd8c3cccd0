package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/report"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

func TestMain(m *testing.M) {
	tempdir.InMemory()
	m.Run()
}

// run runs the command as main does.
func run(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	t.Setenv("GITHUB_STEP_SUMMARY", os.Getenv("TEST_SUMMARY"))
	var out, errs bytes.Buffer
	status = command.Run("report", "", &Command{}, args, &out, &errs)
	return status, out.String(), errs.String()
}

// sites returns the demo site as a folder, and the same site without one list as a tar file.
func sites(t *testing.T) (from, to memsite.Site, folder, file string) {
	t.Helper()
	made, _, err := generator.ToMemory(t.Context(), afero.FromIOFS{FS: fixtures.Demo()}, generator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if from, err = memsite.Read(made); err != nil {
		t.Fatal(err)
	}
	to = from.WithoutLists(t, 1000)
	dir := t.TempDir()
	return from, to, from.Write(t, filepath.Join(dir, "old")), to.Write(t, filepath.Join(dir, "new.tar"))
}

// TestReport: all forms of a report, and its entry in a bucket.
func TestReport(t *testing.T) {
	fromSite, _, from, to := sites(t)
	dir := t.TempDir()
	out, figures, markdown, summary, bucket := filepath.Join(dir, "r.html"), filepath.Join(dir, "r.json"), filepath.Join(dir, "r.md"), filepath.Join(dir, "summary"), filepath.Join(dir, "bucket")
	t.Setenv("TEST_SUMMARY", summary)
	status, _, stderr := run(t, "--from", from, "--to", to, "--out", out, "--out", figures, "--out", markdown, "--publish", "file://"+bucket, "--date", "2026-11-22")
	if status != command.Done || !strings.Contains(stderr, "0 new, 1 gone, 0 changed") || !strings.Contains(stderr, "the report of 2026-11-22 is published") {
		t.Fatalf("got status %d: %s", status, stderr)
	}
	texts := map[string]string{}
	for _, name := range []string{out, figures, markdown, summary, filepath.Join(bucket, "_reports/2026-11-22.html"), filepath.Join(bucket, "_reports/2026-11-22.json"), filepath.Join(bucket, "_reports/index")} {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(body)
	}
	var r report.Report
	if err := json.Unmarshal([]byte(texts[figures]), &r); err != nil || r.Lists.Gone != 1 || r.Date != "2026-11-22" || r.From.Site.String() != from {
		t.Errorf("got %+v (%v)", r.Lists, err)
	}
	if !strings.HasPrefix(texts[out], "<!DOCTYPE html>") || texts[markdown] != texts[summary] {
		t.Error("the page is none, or the two files in Markdown differ")
	}
	for file, key := range map[string]string{out: "_reports/2026-11-22.html", figures: "_reports/2026-11-22.json"} {
		published := texts[filepath.Join(bucket, key)]
		if !strings.Contains(texts[file], filepath.Dir(from)) || strings.Contains(published, filepath.Dir(from)) || len(published) < len(texts[file])-500 {
			t.Errorf("%s: got %.500s, want the content of the file except for paths", key, published)
		}
	}
	if !strings.HasPrefix(texts[filepath.Join(bucket, "_reports/index")], `{"reports":[{"date":"2026-11-22",`) {
		t.Errorf("index: got %s", texts[filepath.Join(bucket, "_reports/index")])
	}

	// Published from its JSON, after the old site is gone. The explorer of the site there does not know of reports.
	later := filepath.Join(dir, "later")
	if err := os.Mkdir(later, 0o755); err != nil {
		t.Fatal(err)
	}
	root := strings.Replace(fromSite[site.RootKey], `"base_path"`, `"explorer":true,"base_path"`, 1)
	if err := os.WriteFile(filepath.Join(later, string(site.RootKey)), []byte(root), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr = run(t, "--saved", figures, "--publish", "file://"+later); status != command.Done || !strings.Contains(stderr, "--reports") {
		t.Fatalf("got status %d: %s, want a warning that names --reports", status, stderr)
	}
	for _, name := range []string{"_reports/2026-11-22.html", "_reports/2026-11-22.json", "_reports/index"} {
		if body, err := os.ReadFile(filepath.Join(later, name)); err != nil || string(body) != texts[filepath.Join(bucket, name)] {
			t.Errorf("%s differs when it is published later (%v)", name, err)
		}
	}
	if body, err := os.ReadFile(summary); err != nil || string(body) != texts[summary] {
		t.Errorf("the summary has the report twice (%v)", err)
	}
	if status, stdout, _ := run(t, "--from", from, "--to", "file://"+from, "--out", "-"); status != command.Done || !strings.Contains(stdout, "sites are equal") {
		t.Errorf("equal sites: got status %d: %s", status, stdout)
	}
}

// TestParts: a site in parts is compared like any other.
func TestParts(t *testing.T) {
	from, to, folder, _ := sites(t)
	parts := to.WriteParts(t, t.TempDir())
	if status, _, stderr := run(t, "--from", folder, "--to", parts, "--out", filepath.Join(t.TempDir(), "r.md")); status != command.Done || !strings.Contains(stderr, "0 new, 1 gone, 0 changed") {
		t.Errorf("got status %d: %s", status, stderr)
	}
	if status, stdout, stderr := run(t, "--from", "file://"+from.WriteParts(t, t.TempDir()), "--to", folder, "--out", "-"); status != command.Done || !strings.Contains(stdout, "sites are equal") {
		t.Errorf("equal sites: got status %d: %s", status, stderr)
	}
	inside := filepath.Join(filepath.Dir(parts), "report.html")
	if status, _, stderr := run(t, "--from", folder, "--to", parts, "--out", inside); status != command.Usage || !strings.Contains(stderr, "is in a site") {
		t.Errorf("a report among the parts: got status %d: %s", status, stderr)
	}
}

// TestUsage: missing or invalid arguments fail with a one-line error before any work.
func TestUsage(t *testing.T) {
	_, _, from, to := sites(t)
	for want, args := range map[string][]string{
		"missing flags: --from=SITE and --to=SITE": {"--out", "x.html"},
		"missing flags: --out=FILE":                {"--from", from, "--to", to},
		"--out=r.txt: want FILE.html":              {"--from", from, "--to", to, "--out", "r.json", "--out", "r.txt"},
		"--date=today is not a date":               {"--from", from, "--to", to, "--out", "-", "--date", "today"},
		"--from: ftp://x: use s3://":               {"--from", "ftp://x", "--to", to, "--out", "-"},
		"--publish: x: use s3://":                  {"--from", from, "--to", to, "--publish", "x"},
		"is in a site: name another file":          {"--from", from, "--to", to, "--out", filepath.Join(from, "r.html")},
		"--saved excludes --from":                  {"--from", from, "--saved", "x", "--out", "-"},
	} {
		if status, _, stderr := run(t, args...); status != command.Usage || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: got status %d, want %q: %s", args, status, want, stderr)
		}
	}
	for want, args := range map[string][]string{
		"--from: open the site: ":                {"--from", "nowhere", "--to", to, "--out", "-"},
		"there is no site: it has no _site":      {"--from", "file://" + t.TempDir(), "--to", to, "--out", "-"},
		"--out=no/r.html: the folder no does no": {"--from", from, "--to", to, "--out", "no/r.html"},
		"--saved: open nowhere":                  {"--saved", "nowhere", "--out", "-"},
	} {
		if status, _, stderr := run(t, args...); status != command.Failed || !strings.Contains(stderr, want) {
			t.Errorf("%v: got status %d, want %q: %s", args, status, want, stderr)
		}
	}
}

// TestBuckets: sites and reports in buckets of real servers. A publish of the next site comes between.
func TestBuckets(t *testing.T) {
	for _, kind := range servers.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			s := servers.Start(t, kind)
			s.Env(t)
			from, to, folder, file := sites(t)
			bucket := s.Bucket(t)
			b, err := storage.OpenBucket(t.Context(), storage.Location{Bucket: bucket, Prefix: "a/"}, storage.S3Options{Endpoint: s.Endpoint})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := publisher.Publish(t.Context(), from, b, publisher.Options{}); err != nil {
				t.Fatal(err)
			}
			saved, local := filepath.Join(t.TempDir(), "r.json"), filepath.Join(t.TempDir(), "local.json")
			at := "s3://" + bucket + "/a"
			if status, _, stderr := run(t, "--from", at, "--to", file, "--endpoint", s.Endpoint, "--out", saved, "--date=2026-11-22"); status != command.Done {
				t.Fatal(stderr)
			}
			if status, _, stderr := run(t, "--from", folder, "--to", file, "--out", local, "--date=2026-11-22"); status != command.Done {
				t.Fatal(stderr)
			}
			a, err := os.ReadFile(saved)
			if err != nil {
				t.Fatal(err)
			}
			c, err := os.ReadFile(local)
			if err != nil || strings.ReplaceAll(string(a), at, folder) != string(c) {
				t.Errorf("the report from a bucket is\n%s, that from a folder\n%s (%v)", a, c, err)
			}
			if _, err := publisher.Publish(t.Context(), to, b, publisher.Options{}); err != nil {
				t.Fatal(err)
			}
			if status, _, stderr := run(t, "--saved", saved, "--publish", at, "--endpoint", s.Endpoint); status != command.Done {
				t.Fatal(stderr)
			}
			index, err := b.Get(t.Context(), site.ReportsKey)
			if err != nil || !strings.Contains(string(index), `"gone_lists":1`) {
				t.Errorf("got the index %s (%v)", index, err)
			}
			if status, _, stderr := run(t, "--from", at, "--to", "s3://no-such-bucket", "--endpoint", s.Endpoint, "--out", "-"); status != command.Failed || !strings.Contains(stderr, "no such bucket") {
				t.Errorf("got status %d: %s", status, stderr)
			}
		})
	}
}
