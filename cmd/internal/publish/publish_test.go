package main

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
	"strings"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/fixtures/servers"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// runPublish runs the command as a process would, without ending this one.
func runPublish(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = command.Run("publish", about, &flags{}, args, &out, &err)
	return status, out.String(), err.String()
}

// demoSite generates the site of the demo snapshot, as a folder or a tar file.
func demoSite(t *testing.T, name string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), name)
	if _, err := generator.ToPath(context.Background(), afero.FromIOFS{FS: fixtures.Demo()}, out, generator.Options{NoSync: true}); err != nil {
		t.Fatal(err)
	}
	return out
}

// lastLine is where the one line about a failure is.
func lastLine(stderr string) string {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	return lines[len(lines)-1]
}

// Wrong usage ends with status 2 and one line that names the flag.
func TestUsage(t *testing.T) {
	for _, c := range []struct{ name, args, says string }{
		{"no destination", "--site x", "--dest"},
		{"no site", "--dest s3://bucket", "--site"},
		{"repair without a site", "--dest s3://bucket --repair", "--site"},
		{"dry run without a site", "--dest s3://bucket --dry-run", "--site"},
		{"another scheme", "--site x --dest gs://bucket", "s3://BUCKET"},
		{"relative folder", "--site x --dest file://folder", "file:///FOLDER"},
		{"credentials in the destination", "--site x --dest s3://key:secret@bucket", "AWS_SECRET_ACCESS_KEY"},
		{"two modes", "--site x --dest s3://bucket --dry-run --verify", "exclude each other"},
		{"no lock and break it", "--site x --dest s3://bucket --no-lock --break-lock", "not both"},
		{"short lease", "--site x --dest s3://bucket --lock-lease 10ms", "between 1s and 1h"},
		{"concurrency", "--site x --dest s3://bucket --concurrency=-1", "concurrency -1"},
		{"bulk", "--site x --dest s3://bucket --bulk maybe", "--bulk"},
		{"price", "--site x --dest s3://bucket --price-put=-1", "price"},
		{"report in the site", "--site x --dest s3://bucket --report x/report.json", "in the site"},
		{"report in the destination", "--site x --dest file:///nowhere/b --report /nowhere/b/report.json", "in the destination"},
		{"purge all of nothing", "--purge-all", "--purge=CACHE"},
		{"purge all and publish", "--purge-all --purge varnish:http://x --dry-run", "exclude each other"},
		{"another cache", "--site x --dest s3://bucket --purge akamai:1", "cloudfront:ID"},
		{"cache without credentials", "--site x --dest s3://bucket --purge fastly:1 --purge-url https://x", "FASTLY_API_TOKEN"},
		{"credentials of a cache", "--site x --dest s3://bucket --purge varnish:http://key:secret@x", "user"},
		{"negative number of changes", "--site x --dest s3://bucket --purge-max=-1", "--purge-max"},
		{"log level", "--site x --dest s3://bucket --log-level loud", "--log-level"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, stdout, stderr := runPublish(strings.Fields(c.args)...)
			if status != command.Usage || stdout != "" || !strings.Contains(stderr, c.says) || strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "secret@") {
				t.Errorf("status %d, %q, %q", status, stdout, stderr)
			}
		})
	}
}

// What cannot be begun fails with one line that says what is wrong, and tells the
// report and the summary of the job so.
func TestFailures(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_PROFILE", "")
	summary := filepath.Join(t.TempDir(), "summary")
	t.Setenv("GITHUB_STEP_SUMMARY", summary)
	empty := t.TempDir()
	for _, c := range []struct{ name, args, says string }{
		{"no such site", "--site " + empty + "/none --dest file://" + empty + "/out", "no such file"},
		{"no site in it", "--site " + empty + " --dest file://" + empty + "/out", "generate it first"},
		{"neither folder nor tar", "--site main_test.go --dest file://" + empty + "/out", "neither a folder nor a .tar file"},
		{"nothing to verify", "--verify --dest file://" + empty + "/out", "publish a site first"},
		{"no credentials", "--verify --dest s3://bucket --endpoint http://127.0.0.1:1", "AWS_ACCESS_KEY_ID"},
		{"endpoint", "--verify --dest s3://bucket --endpoint 127.0.0.1:1", "https://HOST"},
	} {
		t.Run(c.name, func(t *testing.T) {
			report := filepath.Join(t.TempDir(), "report.json")
			status, stdout, stderr := runPublish(append(strings.Fields(c.args), "--report", report)...)
			if line := lastLine(stderr); status != command.Failed || stdout != "" || !strings.HasPrefix(line, "publish: ") || !strings.Contains(line, c.says) {
				t.Errorf("status %d, %q, %q", status, stdout, stderr)
			}
			body, err := os.ReadFile(report)
			var told struct{ Error string }
			if err != nil || json.Unmarshal(body, &told) != nil || !strings.Contains(told.Error, c.says) {
				t.Errorf("the report: %s, %v", body, err)
			}
		})
	}
	if body, err := os.ReadFile(summary); err != nil || strings.Count(string(body), "error") < 6 {
		t.Errorf("the summary: %s, %v", body, err)
	}
}

// A report that cannot be written is found out before anything is published.
func TestUnwritableReport(t *testing.T) {
	to := filepath.Join(t.TempDir(), "out")
	report := filepath.Join(t.TempDir(), "missing", "report.json")
	status, _, stderr := runPublish("--site", demoSite(t, "site"), "--dest", "file://"+to, "--report", report)
	if status != command.Failed || !strings.Contains(lastLine(stderr), "--report="+report+": the folder") {
		t.Errorf("status %d, want %d and a line about --report: %s", status, command.Failed, stderr)
	}
	if _, err := os.Stat(to); err == nil {
		t.Error("it was published")
	}
}

// A site from a folder or a tar file comes into a folder byte for byte; again it is
// unchanged; the report adds up.
func TestPublishToAFolder(t *testing.T) {
	folder := demoSite(t, "site")
	for _, from := range []string{folder, demoSite(t, "site.tar")} {
		to := filepath.Join(t.TempDir(), "out")
		dry, _, stderr := runPublish("--site", from, "--dest", "file://"+to, "--dry-run")
		if _, err := os.Stat(to); dry != command.Done || err == nil {
			t.Fatalf("a dry run: status %d, made the folder: %v\n%s", dry, err == nil, stderr)
		}
		status, stdout, stderr := runPublish("--site", from, "--dest", "file://"+to, "--report", "-")
		if status != command.Done {
			t.Fatalf("status %d: %s", status, stderr)
		}
		var report publisher.Report
		if err := json.Unmarshal([]byte(stdout), &report); err != nil {
			t.Fatalf("%v: %s", err, stdout)
		}
		if report.Outcome != publisher.Published || report.Done.Put != report.Site.Objects || report.Plan.Put != report.Done.Put ||
			report.Plan.Bytes != report.Site.Bytes || report.Done.Manifests != 16 || report.Dest != "file://"+to || report.Cost != nil {
			t.Errorf("the report: %s", stdout)
		}
		equalFolders(t, to, folder)
		if status, _, stderr := runPublish("--site", from, "--dest", "file://"+to); status != command.Done || !strings.Contains(stderr, "unchanged") {
			t.Errorf("again: status %d: %s", status, stderr)
		}
		if status, _, stderr := runPublish("--verify", "--dest", "file://"+to); status != command.Done {
			t.Errorf("verify: status %d: %s", status, stderr)
		}
	}
}

func equalFolders(t *testing.T, got, want string) {
	t.Helper()
	files := func(root string) map[string]string {
		found := map[string]string{}
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
			found[strings.TrimPrefix(name, root)] = string(body)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	is, should := files(got), files(want)
	for name, body := range should {
		if is[name] != body {
			t.Errorf("%s is another file", name)
		}
		delete(is, name)
	}
	for name := range is {
		t.Errorf("%s is too much", name)
	}
}

// Verify fails with status 1 where something is wrong; repair mends it.
func TestVerifyAndRepair(t *testing.T) {
	from, to := demoSite(t, "site"), filepath.Join(t.TempDir(), "out")
	dest := "file://" + to
	if status, _, stderr := runPublish("--site", from, "--dest", dest); status != command.Done {
		t.Fatal(stderr)
	}
	if err := os.Remove(filepath.Join(to, "api/v1/leaderboard/followers")); err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := runPublish("--verify", "--dest", dest, "--report", "-")
	if status != command.Failed || !strings.Contains(lastLine(stderr), "1 missing, 0 altered, 0 unknown") || !strings.Contains(stdout, `"api/v1/leaderboard/followers"`) {
		t.Errorf("status %d: %s\n%s", status, stderr, stdout)
	}
	if status, _, stderr := runPublish("--repair", "--site", from, "--dest", dest); status != command.Done {
		t.Errorf("status %d: %s", status, stderr)
	}
	equalFolders(t, to, from)
	if err := os.WriteFile(filepath.Join(to, "robots.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := runPublish("--repair", "--site", from, "--dest", dest); status != command.Failed || !strings.Contains(lastLine(stderr), "1 unknown") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// A folder that is reached through a symbolic link is the same bucket: it is published
// to, verified, and a run that was cut off is taken up.
func TestPublishThroughALink(t *testing.T) {
	from, to := demoSite(t, "site"), filepath.Join(t.TempDir(), "out")
	link := filepath.Join(t.TempDir(), "link")
	dest := "file://" + link
	if err := os.Symlink(to, link); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := runPublish("--site", from, "--dest", dest); status != command.Failed || !strings.Contains(lastLine(stderr), "not mounted") {
		t.Errorf("a link to nothing: status %d: %s", status, stderr)
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) *publisher.Report {
		t.Helper()
		status, stdout, stderr := runPublish(append(args, "--dest", dest, "--report", "-")...)
		var report publisher.Report
		if err := json.Unmarshal([]byte(stdout), &report); err != nil || status != command.Done {
			t.Fatalf("status %d: %s, %v", status, stderr, err)
		}
		return &report
	}
	run("--site", from)
	run("--verify")
	orphan := filepath.Join(to, "api/v1/lists/999/details")
	for name, body := range map[string]string{orphan: "{}", filepath.Join(to, string(site.MarkKey)): "{}", filepath.Join(to, "api/v1/lists/4/details"): "damaged"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if report := run("--site", changedDemo(t, withoutLast)); !report.Resumed || report.Done.Deleted != 1 || report.Done.Put > report.Site.Objects/2 {
		t.Errorf("taken up: %d of %d objects put, %d deleted; resumed: %v", report.Done.Put, report.Site.Objects, report.Done.Deleted, report.Resumed)
	}
	run("--verify")
}

// A folder is synced unless somebody asks for speed: by the flag, or by the environment.
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
			if status := command.Run("publish", about, g, append(c.args, "--site", from, "--dest", "file://"+to), io.Discard, &stderr); status != command.Done {
				t.Fatal(stderr.String())
			}
			equalFolders(t, to, from)
			if g.opened.NoSync != c.want {
				t.Errorf("no sync: %v, want %v", g.opened.NoSync, c.want)
			}
		})
	}
}

// A grammar keeps the folder that its flags open.
type grammar struct {
	flags
	opened *storage.Local
}

func (g *grammar) Run(ctx context.Context, stdout, stderr io.Writer) error {
	to, err := g.open(ctx, nil)
	if err != nil {
		return err
	}
	g.opened = to.(*storage.Local)
	return g.flags.Run(ctx, stdout, stderr)
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

// From nothing to a site that everybody can read takes one command; no output of it
// holds the secret, at any level.
func TestInitAndPublish(t *testing.T) {
	onServers(t, func(t *testing.T, s *servers.Server) {
		from := demoSite(t, "site.tar")
		summary := filepath.Join(t.TempDir(), "summary")
		t.Setenv("GITHUB_STEP_SUMMARY", summary)
		report := filepath.Join(t.TempDir(), "report.json")
		args := []string{"--site", from, "--dest", "s3://new-bucket/a/prefix", "--endpoint", s.Endpoint, "--log-level", "debug", "--report", report}
		status, stdout, stderr := runPublish(args...)
		if status != command.Failed || !strings.Contains(lastLine(stderr), "--init") {
			t.Errorf("without a bucket: status %d: %s", status, stderr)
		}
		status, _, more := runPublish(append(args, "--init")...)
		if status != command.Done {
			t.Fatalf("status %d: %s", status, more)
		}
		for path, want := range map[string]int{
			"api/v1/leaderboard/followers": http.StatusOK, "_site": http.StatusOK,
			"_lock": http.StatusForbidden, "_refresh/details/1": http.StatusForbidden,
		} {
			response, err := http.Get(s.Endpoint + "/new-bucket/a/prefix/" + path)
			if err != nil {
				t.Fatal(err)
			}
			if response.Body.Close(); response.StatusCode != want {
				t.Errorf("anybody gets %s: %d, want %d", path, response.StatusCode, want)
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
				t.Errorf("the output holds %q", secret)
			}
		}
		if !strings.Contains(told.String(), "| objects put | 439 |") {
			t.Errorf("the summary of the job: %s", told.String())
		}
	})
}

// A dry run writes nothing, and counts at the prices given.
func TestDryRunCosts(t *testing.T) {
	onServers(t, func(t *testing.T, s *servers.Server) {
		bucket := s.Bucket(t)
		status, stdout, stderr := runPublish("--site", demoSite(t, "site"), "--dest", "s3://"+bucket, "--endpoint", s.Endpoint,
			"--dry-run", "--report", "-", "--price-put", "1000", "--price-get", "0", "--price-storage", "1000000")
		var report publisher.Report
		if err := json.Unmarshal([]byte(stdout), &report); status != command.Done || err != nil {
			t.Fatalf("status %d, %v: %s", status, err, stderr)
		}
		puts := float64(report.Site.Objects + 16 + 4) // manifest; lock, its probe, mark, root
		if report.Outcome != publisher.Planned || report.Cost == nil || report.Cost.Requests != puts || report.Cost.StorageMonth != float64(report.Site.Bytes)/1000 {
			t.Errorf("the report: %s", stdout)
		}
		for object := range s.Client().ListObjectsIter(context.Background(), bucket, minio.ListObjectsOptions{Recursive: true}) {
			t.Errorf("the bucket holds %s (%v)", object.Key, object.Err)
		}
	})
}

// Where a server refuses conditional writes, the command says so once and goes on.
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
			t.Fatalf("status %d: %s", status, stderr)
		}
		if status, _, stderr := runPublish("--verify", "--dest", dest, "--endpoint", front.URL); status != command.Done {
			t.Errorf("verify: status %d: %s", status, stderr)
		}
	})
}

// What trying again does not change stops at once, and says what to check.
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
					t.Errorf("status %d: %s", status, stderr)
				}
			})
		}
	})
}

// The keys that --init opens are those of a site and no others.
func TestPublicKeys(t *testing.T) {
	config, err := site.Config{BasePath: "v2"}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range config.PublicKeys() {
		for _, private := range []site.Key{site.LockKey, site.MarkKey, site.PackKey, site.RefreshKey(site.Details, "1")} {
			if before, _, _ := strings.Cut(pattern, "*"); strings.HasPrefix(string(private), before) {
				t.Errorf("%s opens %s", pattern, private)
			}
		}
	}
}
