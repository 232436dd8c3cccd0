package publish

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
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

// done runs a command that must succeed, and returns its output.
func done(t *testing.T, verb string, args ...string) (stdout, stderr string) {
	t.Helper()
	status, stdout, stderr := run(verb, args...)
	if status != command.Done {
		t.Fatalf("%s %q: got status %d: %s", verb, args, status, stderr)
	}
	return stdout, stderr
}

// reported runs a command that must succeed, and returns its report.
func reported[Report any](t *testing.T, verb string, args ...string) (report Report, stderr string) {
	t.Helper()
	stdout, stderr := done(t, verb, append(args, "--report", "-")...)
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%s %q: got %v: %s", verb, args, err, stdout)
	}
	return report, stderr
}

// demoSite generates the site of the demo snapshot, as a folder or a tar file.
func demoSite(t *testing.T, name string) string {
	t.Helper()
	return generated(t, demoSnapshot(t, asItIs), name, site.Config{})
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
		{"inputs of a site", "publish --site x --dest s3://bucket --inputs", "--inputs needs --snapshot"},
		{"inputs without rows", "publish --snapshot x --dest s3://bucket --inputs --on-invalid=skip", "--inputs excludes --on-invalid=skip"},
		{"a loss without a percent sign", "publish --site x --dest s3://bucket --max-loss 5", "5% or 0.5%"},
		{"a loss of more than everything", "init --dest s3://bucket --max-loss 101%", "101% is more than 100%"},
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

// equalFolders compares a bucket that is a folder with a site, without the lock, which stays.
func equalFolders(t *testing.T, got, want string) {
	t.Helper()
	bucket := readSite(t, got)
	maps.DeleteFunc(bucket, func(key site.Key, _ string) bool {
		return key == site.LockKey || strings.HasPrefix(string(key), ".followpress/")
	})
	if err := bucket.CompareStored(readSite(t, want)); err != nil {
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
	done(t, "publish", "--site", from, "--dest", dest)
	done(t, "verify", "--dest", dest)
	writeFile(t, to, "api/v1/lists/999/details", "{}")
	writeFile(t, to, string(site.MarkKey), "{}")
	writeFile(t, to, "api/v1/lists/4/details", "damaged")
	if report := publishedSite(t, changedDemo(t, withoutLast), dest); !report.Resumed || report.Done.Deleted != 1 || report.Done.Put > report.Site.Objects/2 {
		t.Errorf("taken up: %d of %d objects put, %d deleted; resumed: %v", report.Done.Put, report.Site.Objects, report.Done.Deleted, report.Resumed)
	}
	done(t, "verify", "--dest", dest)
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

// withoutRecords empties the lists of the demo snapshot, as nodes do that have lost the logs.
func withoutRecords(t *testing.T, dir string) {
	t.Helper()
	writeFile(t, dir, "records.ndjson", "")
}

// Publish refuses a snapshot that lacks much of the live site, from every source and under either
// API, unless a flag allows it.
func TestMaxLoss(t *testing.T) {
	good, bad := demoSnapshot(t, asItIs), demoSnapshot(t, withoutRecords)
	const plain = "--explorer=false"
	t.Setenv("FOLLOWPRESS_HISTORY_WINDOW", "0")
	refused := func(t *testing.T, args ...string) {
		t.Helper()
		status, _, stderr := runPublish(args...)
		if status != command.Failed || !strings.Contains(lastLine(stderr), "0 follows instead of ") || !strings.Contains(lastLine(stderr), "--max-loss 100%") {
			t.Errorf("%q: got status %d: %s", args, status, stderr)
		}
	}
	for _, api := range []string{site.APISpec, site.APIEFP} {
		t.Run(api, func(t *testing.T) {
			other := map[string]string{site.APISpec: site.APIEFP, site.APIEFP: site.APISpec}[api]
			bucket := filepath.Join(t.TempDir(), "out")
			dest := "file://" + bucket
			publishedFrom(t, good, dest, "--api", api, plain, "--max-loss", "0%") // a first one
			want := generated(t, good, "site", site.Config{API: api})
			lesser := generated(t, bad, "bad.tar", site.Config{API: api})
			refused(t, "--snapshot", bad, "--api", api, plain, "--dest", dest)
			refused(t, "--snapshot", bad, "--api", other, plain, "--dest", dest)
			refused(t, "--snapshot", bad, "--api", api, plain, "--dest", dest, "--dry-run")
			refused(t, "--site", lesser, "--dest", dest)
			refused(t, "--site", lesser, "--dest", dest, "--dry-run")
			refused(t, "--site", lesser, "--dest", dest, "--max-loss", "99.9999%")
			status, _, stderr := run("init", "--site", lesser, "--dest", dest)
			if status != command.Failed || !strings.Contains(stderr, "0 follows instead of ") {
				t.Errorf("init: got status %d: %s", status, stderr)
			}
			t.Setenv("FOLLOWPRESS_MAX_LOSS", "30%")
			refused(t, "--site", lesser, "--dest", dest)
			equalFolders(t, bucket, want)
			// The same snapshot under the other API lacks nothing.
			done(t, "publish", "--snapshot", good, "--api", other, plain, "--dest", dest, "--max-loss", "0%")
			t.Setenv("FOLLOWPRESS_MAX_LOSS", "100%")
			done(t, "publish", "--site", lesser, "--dest", dest)
		})
	}
}

// snapshotAsOf returns the demo's snapshot, changed, as of another time.
func snapshotAsOf(t *testing.T, asOf string, change func(t *testing.T, dir string)) string {
	t.Helper()
	dir := demoSnapshot(t, change)
	writeFile(t, dir, "meta.json", `{"format":1,"as_of":"`+asOf+`"}`)
	return dir
}

// A stale snapshot makes publish fail after it has published, even if nothing changed. It makes
// verify fail too. One flag allows going back to an older site.
func TestMaxAge(t *testing.T) {
	in := func(hours time.Duration) string {
		return snapshotAsOf(t, time.Now().Add(hours*time.Hour).UTC().Format(time.RFC3339), asItIs)
	}
	stale, good, soon, future := in(-49), in(-47), in(23), in(25)
	dest := "file://" + t.TempDir()
	const says = "ago, and --max-age=48h0m0s"
	for _, tt := range []struct {
		args   string
		status int
		says   string
	}{
		{"publish --dry-run --max-age 48h --snapshot " + stale, command.Failed, says},
		{"publish --max-age 48h --snapshot " + stale, command.Failed, says},
		{"publish --max-age 48h --snapshot " + stale, command.Failed, says}, // unchanged
		{"publish --max-age 50h --snapshot " + stale, command.Done, ""},
		{"publish --snapshot " + stale, command.Done, ""},
		{"verify --max-age 48h", command.Failed, says},
		{"verify --max-age 50h", command.Done, ""},
		{"publish --max-age 48h --snapshot " + good, command.Done, ""},
		{"verify --max-age 48h", command.Done, ""},
		{"publish --max-loss 100% --snapshot " + stale, command.Failed, "use --allow-rollback"},
		{"verify --max-age 48h", command.Done, ""}, // the newer one is live
		{"publish --allow-rollback --snapshot " + stale, command.Done, ""},
		{"verify --max-age 48h", command.Failed, says},
		{"publish --dry-run --allow-rollback --snapshot " + future, command.Failed, "the site's time is in the future: as_of is"},
		{"publish --allow-rollback --snapshot " + future, command.Failed, "the site's time is in the future: as_of is"},
		{"publish --snapshot " + soon, command.Done, ""},
		{"verify", command.Done, ""},
	} {
		args := append(strings.Fields(tt.args), "--dest", dest)
		status, _, stderr := run(args[0], args[1:]...)
		if status != tt.status || !strings.Contains(lastLine(stderr), tt.says) {
			t.Errorf("%s: got status %d and %q, want %d and %q", tt.args, status, lastLine(stderr), tt.status, tt.says)
		}
	}
	ahead := filepath.Join(t.TempDir(), "out") // not published
	if _, err := generator.ToPath(t.Context(), afero.NewBasePathFs(afero.NewOsFs(), future), ahead, generator.Options{NoSync: true}); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := run("verify", "--dest", "file://"+ahead); status != command.Failed || !strings.Contains(lastLine(stderr), "more than a day ahead of the clock") {
		t.Errorf("verify of a site of a time to come: got status %d and %q", status, lastLine(stderr))
	}
}
