package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/release"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// verbs are the commands of this package.
type verbs struct {
	Publish Publish `cmd:""`
	Init    Init    `cmd:""`
	Verify  Verify  `cmd:""`
	Repair  Repair  `cmd:""`
	Purge   Purge   `cmd:""`
}

// run runs a command as a process would, without ending this one.
func run(verb string, args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = command.Run("followpress", "", &verbs{}, append([]string{verb}, args...), &out, &err)
	return status, out.String(), err.String()
}

func runPublish(args ...string) (status int, stdout, stderr string) { return run("publish", args...) }

// demoSite generates the site of the demo snapshot, as a folder or a tar file.
func demoSite(t *testing.T, name string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	if _, err := generator.ToPath(context.Background(), afero.FromIOFS{FS: fixtures.Demo()}, out, generator.Options{NoSync: true, Generator: release.Version()}); err != nil {
		t.Fatal(err)
	}
	return out
}

// lastLine returns the last line, which describes the failure.
func lastLine(stderr string) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	return lines[len(lines)-1]
}

// Wrong usage ends with status 2 and one line that names the flag.
func TestUsage(t *testing.T) {
	for _, c := range []struct{ name, args, says string }{
		{"no destination", "publish --site x", "--dest"},
		{"parts in the destination", "publish --site s3://bucket/x/part-* --dest s3://bucket", "is in --dest"},
		{"parts in the folder", "repair --site /out/part-* --dest file:///out", "is in --dest"},
		{"no place of parts", "init --site s3://b/part-* --dest s3://bucket", "--site: s3://b: "},
		{"a report among parts", "publish --site /nowhere/part-* --dest s3://bucket --report /nowhere/r.json", "is in the site"},
		{"no site", "publish --dest s3://bucket", "--site"},
		{"repair without a site", "repair --dest s3://bucket", "--site"},
		{"dry run without a site", "publish --dest s3://bucket --dry-run", "--site"},
		{"another scheme", "publish --site x --dest gs://bucket", "s3://BUCKET"},
		{"relative folder", "publish --site x --dest file://folder", "file:///FOLDER"},
		{"credentials in the destination", "publish --site x --dest s3://key:secret@bucket", "AWS_SECRET_ACCESS_KEY"},
		{"dry run of verify", "verify --dest s3://bucket --dry-run", "--dry-run"},
		{"a site to verify", "verify --dest s3://bucket --site x", "--site"},
		{"report of verify in the destination", "verify --dest file:///nowhere/b --report /nowhere/b/report.json", "in the destination"},
		{"no lock and break it", "publish --site x --dest s3://bucket --no-lock --break-lock", "exclude each other"},
		{"a loss without a percent sign", "publish --site x --dest s3://bucket --max-loss 5", "5% or 0.5%"},
		{"a loss of more than everything", "init --dest s3://bucket --max-loss 101%", "more than 100%"},
		{"a negative age", "verify --dest s3://bucket --max-age=-1h", "--max-age cannot be negative"},
		{"another negative age", "publish --site x --dest s3://bucket --max-age=-1h", "--max-age cannot be negative"},
		{"report in the site", "publish --site x --dest s3://bucket --report x/report.json", "in the site"},
		{"report in the destination", "publish --site x --dest file:///nowhere/b --report /nowhere/b/report.json", "in the destination"},
		{"purge all of nothing", "purge", "--purge=CACHE"},
		{"a destination to purge", "purge --purge http:http://x --dest s3://bucket", "--dest"},
		{"endpoint", "verify --dest s3://bucket --endpoint 127.0.0.1:1", "is not a URL; use http://127.0.0.1:1"},
		{"another cache", "publish --site x --dest s3://bucket --purge akamai:1", "cloudfront:ID"},
		{"cache without credentials", "publish --site x --dest s3://bucket --purge fastly:1 --purge-url https://x", "FASTLY_API_TOKEN"},
		{"credentials of a cache", "publish --site x --dest s3://bucket --purge http:http://key:secret@x", "user"},
		{"negative number of changes", "publish --site x --dest s3://bucket --purge-max=-1", "--purge-max"},
		{"log level", "publish --site x --dest s3://bucket --log-level loud", "--log-level"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, stdout, stderr := run(strings.Fields(c.args)[0], strings.Fields(c.args)[1:]...)
			if status != command.Usage || stdout != "" || !strings.Contains(stderr, c.says) || strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "secret@") {
				t.Errorf("got status %d, %q, %q", status, stdout, stderr)
			}
		})
	}
}

// A run that cannot start fails with a one-line error. The report and the job summary contain the
// same line.
func TestFailures(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_PROFILE", "")
	summary := filepath.Join(t.TempDir(), "summary")
	t.Setenv("GITHUB_STEP_SUMMARY", summary)
	empty := t.TempDir()
	for _, c := range []struct{ name, args, says string }{
		{"no such site", "publish --site " + empty + "/none --dest file://" + empty + "/out", "no such file"},
		{"no site in it", "publish --site " + empty + " --dest file://" + empty + "/out", "generate it first"},
		{"neither folder nor tar", "publish --site publish_test.go --dest file://" + empty + "/out", "neither a folder nor a .tar file"},
		{"nothing to verify", "verify --dest file://" + empty + "/out", "publish a site first"},
		{"no credentials", "verify --dest s3://bucket --endpoint http://127.0.0.1:1", "AWS_ACCESS_KEY_ID"},
	} {
		t.Run(c.name, func(t *testing.T) {
			report := filepath.Join(t.TempDir(), "report.json")
			status, stdout, stderr := run(strings.Fields(c.args)[0], append(strings.Fields(c.args)[1:], "--report", report)...)
			if line := lastLine(stderr); status != command.Failed || stdout != "" || !strings.HasPrefix(line, "followpress ") || !strings.Contains(line, c.says) {
				t.Errorf("got status %d, %q, %q", status, stdout, stderr)
			}
			body, err := os.ReadFile(report)
			var told struct{ Error string }
			if err != nil || json.Unmarshal(body, &told) != nil || !strings.Contains(told.Error, c.says) {
				t.Errorf("the report: %s, %v", body, err)
			}
		})
	}
	if body, err := os.ReadFile(summary); err != nil || strings.Count(string(body), "error") < 5 {
		t.Errorf("the summary: %s, %v", body, err)
	}
}

// A site from a folder or a tar file is published to a folder byte for byte. The next
// run finds it unchanged. The numbers of the report add up.
func TestPublishToAFolder(t *testing.T) {
	folder := demoSite(t, "site")
	for _, from := range []string{folder, demoSite(t, "site.tar")} {
		to := filepath.Join(t.TempDir(), "out")
		dry, _, stderr := runPublish("--site", from, "--dest", "file://"+to, "--dry-run")
		if _, err := os.Stat(to); dry != command.Done || err == nil {
			t.Fatalf("a dry run: got status %d, made the folder: %v\n%s", dry, err == nil, stderr)
		}
		status, stdout, stderr := runPublish("--site", from, "--dest", "file://"+to, "--report", "-")
		if status != command.Done {
			t.Fatalf("got status %d: %s", status, stderr)
		}
		var report publisher.Report
		if err := json.Unmarshal([]byte(stdout), &report); err != nil {
			t.Fatalf("%v: %s", err, stdout)
		}
		if report.Outcome != publisher.Published || report.Done.Put != report.Site.Objects || report.Plan.Put != report.Done.Put ||
			report.Plan.Bytes != report.Site.Bytes || report.Done.Manifests != 16 || report.Dest != "file://"+to {
			t.Errorf("report: got %s", stdout)
		}
		equalFolders(t, to, folder)
		if status, _, stderr := runPublish("--site", from, "--dest", "file://"+to); status != command.Done || !strings.Contains(stderr, "unchanged") {
			t.Errorf("again: got status %d: %s", status, stderr)
		}
		if status, _, stderr := run("verify", "--dest", "file://"+to); status != command.Done {
			t.Errorf("verify: got status %d: %s", status, stderr)
		}
	}
}

func equalFolders(t *testing.T, got, want string) {
	t.Helper()
	files := func(root string) memsite.Site {
		found := memsite.Site{}
		err := filepath.WalkDir(root, func(name string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				if err == nil && entry.Name() == ".followpress" {
					return filepath.SkipDir
				}
				return err
			}
			if entry.Name() == string(site.LockKey) { // it stays
				return nil
			}
			body, err := os.ReadFile(name)
			found[site.Key(strings.TrimPrefix(name, root+"/"))] = string(body)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if err := files(got).CompareStored(files(want)); err != nil {
		t.Error(err)
	}
}

// A folder reached through a symbolic link is the same bucket: publishing, verifying
// and resuming a run work.
func TestPublishThroughALink(t *testing.T) {
	from, to := demoSite(t, "site"), filepath.Join(t.TempDir(), "out")
	link := filepath.Join(t.TempDir(), "link")
	dest := "file://" + link
	if err := os.Symlink(to, link); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := runPublish("--site", from, "--dest", dest); status != command.Failed || !strings.Contains(lastLine(stderr), "not mounted") {
		t.Errorf("a link to nothing: got status %d: %s", status, stderr)
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	must := func(verb string, args ...string) *publisher.Report {
		t.Helper()
		status, stdout, stderr := run(verb, append(args, "--dest", dest, "--report", "-")...)
		var report publisher.Report
		if err := json.Unmarshal([]byte(stdout), &report); err != nil || status != command.Done {
			t.Fatalf("got status %d: %s, %v", status, stderr, err)
		}
		return &report
	}
	must("publish", "--site", from)
	must("verify")
	orphan := filepath.Join(to, "api/v1/lists/999/details")
	for name, body := range map[string]string{orphan: "{}", filepath.Join(to, string(site.MarkKey)): "{}", filepath.Join(to, "api/v1/lists/4/details"): "damaged"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if report := must("publish", "--site", changedDemo(t, withoutLast)); !report.Resumed || report.Done.Deleted != 1 || report.Done.Put > report.Site.Objects/2 {
		t.Errorf("taken up: %d of %d objects put, %d deleted; resumed: %v", report.Done.Put, report.Site.Objects, report.Done.Deleted, report.Resumed)
	}
	must("verify")
}

// A folder is synced unless --no-sync or its variable is set.
func TestNoSync(t *testing.T) {
	for _, c := range []struct {
		name, environment string
		args              []string
		want              bool
	}{
		{"default", "", nil, false},
		{"flag", "", []string{"--no-sync"}, true},
		{"environment", "true", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("FOLLOWPRESS_NO_SYNC", c.environment)
			from, to := demoSite(t, "site"), filepath.Join(t.TempDir(), "out")
			g := &grammar{}
			var stderr bytes.Buffer
			if status := command.Run("publish", "", g, append(c.args, "--site", from, "--dest", "file://"+to), io.Discard, &stderr); status != command.Done {
				t.Fatal(stderr.String())
			}
			equalFolders(t, to, from)
			if g.opened.NoSync != c.want {
				t.Errorf("NoSync: got %v, want %v", g.opened.NoSync, c.want)
			}
		})
	}
}

// A grammar keeps the folder that its flags open.
type grammar struct {
	Publish
	opened *storage.Local
}

func (g *grammar) Run(ctx context.Context, stdout, stderr io.Writer) error {
	to, err := g.openToWrite(ctx, session{}, true)
	if err != nil {
		return err
	}
	g.opened = to.(*storage.Local)
	return g.Publish.Run(ctx, stdout, stderr)
}

// onServers runs a test with each server, its credentials in the environment.
func onServers(t *testing.T, test func(t *testing.T, s *servers.Server)) {
	for _, kind := range servers.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			s := servers.Start(t, kind)
			s.Env(t)
			test(t, s)
		})
	}
}

// One command creates a bucket with a site that everybody can read. Its output does not
// contain the secret, at any log level.
func TestInitAndPublish(t *testing.T) {
	onServers(t, func(t *testing.T, s *servers.Server) {
		from := demoSite(t, "site.tar")
		summary := filepath.Join(t.TempDir(), "summary")
		t.Setenv("GITHUB_STEP_SUMMARY", summary)
		report := filepath.Join(t.TempDir(), "report.json")
		args := []string{"--site", from, "--dest", "s3://new-bucket/a/prefix", "--endpoint", s.Endpoint, "--log-level", "debug", "--report", report}
		status, stdout, stderr := runPublish(args...)
		if status != command.Failed || !strings.Contains(lastLine(stderr), "followpress init") {
			t.Errorf("without a bucket: got status %d: %s", status, stderr)
		}
		status, _, more := run("init", args...)
		if status != command.Done {
			t.Fatalf("got status %d: %s", status, more)
		}
		for path, want := range map[string]int{
			"api/v1/leaderboard/followers": http.StatusOK, "_site": http.StatusOK,
			"_lock": http.StatusForbidden, "_lock/1": http.StatusForbidden,
		} {
			response, err := http.Get(s.Endpoint + "/new-bucket/a/prefix/" + path)
			if err != nil {
				t.Fatal(err)
			}
			if response.Body.Close(); response.StatusCode != want {
				t.Errorf("anonymous GET %s: got %d, want %d", path, response.StatusCode, want)
			}
		}
		var told strings.Builder
		told.WriteString(stdout + stderr + more)
		for _, name := range []string{summary, report} {
			body, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			told.Write(body)
		}
		for _, secret := range []string{s.SecretKey, "Signature=", "Authorization"} {
			if strings.Contains(told.String(), secret) {
				t.Errorf("output: got the secret %q in it", secret)
			}
		}
		if !strings.Contains(told.String(), "| objects put | 439 |") {
			t.Errorf("summary of the job: got %s", told.String())
		}
	})
}

// A dry run writes nothing, and counts the requests of a publish.
func TestDryRunCounts(t *testing.T) {
	onServers(t, func(t *testing.T, s *servers.Server) {
		bucket := s.Bucket(t)
		status, stdout, stderr := runPublish("--site", demoSite(t, "site"), "--dest", "s3://"+bucket, "--endpoint", s.Endpoint,
			"--dry-run", "--report", "-")
		var report publisher.Report
		if err := json.Unmarshal([]byte(stdout), &report); status != command.Done || err != nil {
			t.Fatalf("got status %d, %v: %s", status, err, stderr)
		}
		puts := report.Site.Objects + 16 + 4 // manifest; lock, its probe, mark, root
		if report.Outcome != publisher.Planned || report.Requests[storage.Put] != puts {
			t.Errorf("report: got %s", stdout)
		}
		for object := range s.Client().ListObjectsIter(context.Background(), bucket, minio.ListObjectsOptions{Recursive: true}) {
			t.Errorf("the bucket holds %s (%v)", object.Key, object.Err)
		}
	})
}

// If a server refuses conditional writes, the command warns once and continues.
func TestServerWithoutConditionalWrites(t *testing.T) {
	onServers(t, func(t *testing.T, s *servers.Server) {
		behind, err := url.Parse(s.Endpoint)
		if err != nil {
			t.Fatal(err)
		}
		proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = behind.Scheme, behind.Host }}
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPut || r.Header.Get("If-Match")+r.Header.Get("If-None-Match") == "" {
				proxy.ServeHTTP(w, r)
				return
			}
			w.WriteHeader(http.StatusNotImplemented)
			_, _ = io.WriteString(w, "<Error><Code>NotImplemented</Code><Message>no conditions here</Message></Error>")
		}))
		t.Cleanup(front.Close)
		dest := "s3://" + s.Bucket(t)
		status, _, stderr := runPublish("--site", demoSite(t, "site"), "--dest", dest, "--endpoint", front.URL)
		if status != command.Done || strings.Count(stderr, "no conditional writes") != 1 || !strings.Contains(stderr, "without a lock") {
			t.Fatalf("got status %d: %s", status, stderr)
		}
		if status, _, stderr := run("verify", "--dest", dest, "--endpoint", front.URL); status != command.Done {
			t.Errorf("verify: got status %d: %s", status, stderr)
		}
	})
}

// Errors that a retry cannot fix stop the run at once, and name what to check.
func TestPermanentErrors(t *testing.T) {
	onServers(t, func(t *testing.T, s *servers.Server) {
		from, dest := demoSite(t, "site"), "s3://"+s.Bucket(t)
		for _, c := range []struct{ name, variable, value, says string }{
			{"wrong secret", "AWS_SECRET_ACCESS_KEY", "another-secret-key", "AWS_SECRET_ACCESS_KEY"},
			{"unknown key", "AWS_ACCESS_KEY_ID", "nobody", "AWS_ACCESS_KEY_ID"},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Setenv(c.variable, c.value)
				status, _, stderr := runPublish("--site", from, "--dest", dest, "--endpoint", s.Endpoint, "--log-level", "debug")
				if status != command.Failed || !strings.Contains(lastLine(stderr), c.says) || strings.Contains(stderr, "trying again") || strings.Contains(stderr, s.SecretKey) {
					t.Errorf("got status %d: %s", status, stderr)
				}
			})
		}
	})
}

// Without a site, init makes every key public that a later site may have, including those of the
// explorer. Other keys stay private.
func TestPublicKeys(t *testing.T) {
	config, err := publisher.ConfigOf(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []site.Config{{}, {Explorer: true}, {API: site.APIEFP}, {API: site.APIEFP, Explorer: true}} {
		if c, err = c.WithDefaults(); err != nil {
			t.Fatal(err)
		}
		for _, pattern := range c.PublicKeys() {
			if !slices.Contains(config.PublicKeys(), pattern) {
				t.Errorf("init without a site does not open %s", pattern)
			}
		}
	}
	for _, pattern := range config.PublicKeys() {
		for _, private := range []site.Key{site.LockKey, site.MarkKey, site.PackKey} {
			if before, _, _ := strings.Cut(pattern, "*"); strings.HasPrefix(string(private), before) {
				t.Errorf("%s: got it to match %s, want no private key", pattern, private)
			}
		}
	}
}
