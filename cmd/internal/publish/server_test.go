package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/badway"
	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// runMain in the environment makes the test binary the command itself, which can be
// sent signals.
const runMain = "FOLLOWPRESS_TEST_MAIN"

func TestMain(m *testing.M) {
	tempdir.InMemory()
	if os.Getenv(runMain) != "" {
		command.Main("followpress", "", &verbs{})
	}
	// Syncing would wait for the files of all other tests.
	if err := os.Setenv("FOLLOWPRESS_NO_SYNC", "1"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// start starts the command in its own process.
func start(t *testing.T, args ...string) *process.Process {
	t.Helper()
	return process.Start(t, process.Self(t, []string{runMain + "=yes"}, append([]string{"publish"}, args...)...))
}

// contents returns all objects in a bucket, by key, except the lock and its mark of doubt.
func contents(t *testing.T, s *servers.Server, bucket string) map[site.Key]string {
	t.Helper()
	found := map[site.Key]string{}
	for o := range s.Client().ListObjectsIter(context.Background(), bucket, minio.ListObjectsOptions{Recursive: true}) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
		if prefix, ok := strings.CutSuffix(o.Key, string(site.LockKey)); ok {
			stream, err := s.Client().GetObject(context.Background(), bucket, o.Key, minio.GetObjectOptions{})
			if err != nil {
				t.Fatal(err)
			}
			lock, err := io.ReadAll(stream)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(lock), `"doubt"`) { // it keeps the mark
				defer delete(found, site.Key(prefix)+site.MarkKey)
			}
			continue
		}
		found[site.Key(o.Key)] = o.ETag
	}
	return found
}

// digests returns the wanted contents of a bucket with the site.
func digests(t *testing.T, folder string) map[site.Key]string {
	t.Helper()
	found := map[site.Key]string{}
	err := storage.OpenLocal(folder).List(context.Background(), "", "", func(info storage.Info) error {
		found[info.Key] = info.ETag
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// slowWay returns a slow way to a server, a function that makes the server hang, and one that makes it answer again.
func slowWay(t *testing.T, s *servers.Server) (endpoint string, hang, mend func()) {
	t.Helper()
	way := badway.To(t, strings.TrimPrefix(s.Endpoint, "http://"))
	mend = func() { way.Set(badway.Fault{Latency: 300 * time.Millisecond}) }
	mend()
	return way.Endpoint(), func() { way.Set(badway.Fault{Hang: true}) }, mend
}

// An interrupt ends the command within seconds, even if the server hangs. If the server
// answers, requests under way complete and the next run can begin at once; otherwise it
// begins when the lease has expired. It resumes the interrupted run.
func TestInterrupted(t *testing.T) {
	onServers(t, func(t *testing.T, s *servers.Server) {
		// Fewer than 200 objects are sent one by one, also to a server that unpacks archives.
		few := readSite(t, generated(t, demoSnapshot(t, asItIs), "all", site.Config{LeaderboardMax: 10})).WithoutLists(t, 1)
		from := few.Write(t, filepath.Join(t.TempDir(), "site"))
		want := digests(t, from)
		if len(want) < 100 || len(want) >= 200 {
			t.Fatalf("the site has %d objects, want 100 to 199", len(want))
		}
		for _, c := range []struct {
			signal syscall.Signal
			hangs  bool
			status int
		}{
			{syscall.SIGINT, false, 130},
			{syscall.SIGTERM, false, 143},
			{syscall.SIGINT, true, 130},
			{syscall.SIGTERM, true, 143},
		} {
			t.Run(fmt.Sprintf("%v, the server hangs: %v", c.signal, c.hangs), func(t *testing.T) {
				t.Parallel()
				bucket := s.Bucket(t)
				endpoint, hang, mend := slowWay(t, s)
				args := []string{"--site", from, "--dest", "s3://" + bucket}
				p := start(t, append(args, "--endpoint", endpoint)...)
				for begun := time.Now(); len(contents(t, s, bucket)) < 20; time.Sleep(20 * time.Millisecond) {
					if time.Since(begun) > time.Minute {
						t.Fatalf("objects put: got none, want some: %s", p.Stderr())
					}
				}
				if c.hangs {
					hang()
					time.Sleep(100 * time.Millisecond) // until requests hang
				}
				begun := time.Now()
				p.Signal(c.signal)
				status, _ := p.Wait()
				// It takes 6 s; the machine may be busy. Without a limit it would be minutes.
				if took := time.Since(begun); took > 40*time.Second {
					t.Errorf("interrupted: got the end after %v, want it within seconds", took)
				}
				if status != c.status || !strings.Contains(lastLine(p.Stderr()), "stopped by "+c.signal.String()) {
					t.Errorf("got status %d, want %d, stopped by %v: %s", status, c.status, c.signal, p.Stderr())
				}
				if c.hangs {
					mend()
				}
				status, _, stderr := runPublish(append(args, "--endpoint", s.Endpoint)...)
				if status != command.Done || !strings.Contains(stderr, "after a listing") {
					t.Errorf("the next run: got status %d: %s", status, stderr)
				}
				if got := contents(t, s, bucket); !maps.Equal(got, want) {
					t.Errorf("bucket: got %d objects, want the %d of the site, byte for byte", len(got), len(want))
				}
			})
		}
	})
}

// A front stands before a server and counts what passes, by method and whether it lists.
type front struct {
	*httptest.Server
	mu    sync.Mutex
	count map[storage.Request]int
}

func newFront(t *testing.T, s *servers.Server, rewrite func(out *http.Request)) *front {
	t.Helper()
	behind, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{count: map[storage.Request]int{}}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = behind.Scheme, behind.Host
		if rewrite != nil {
			rewrite(r.Out)
		}
	}}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := storage.Request(strings.ToLower(r.Method))
		switch {
		case r.URL.Query().Has("list-type"):
			kind = storage.List
		case r.Method == http.MethodPost:
			kind = storage.Delete
		}
		f.mu.Lock()
		f.count[kind]++
		f.mu.Unlock()
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// The report counts the requests, and agrees with
// the content of the bucket. Each run appends the report to the summary of the job.
func TestTheReportAddsUp(t *testing.T) {
	onServers(t, func(t *testing.T, s *servers.Server) {
		summary := filepath.Join(t.TempDir(), "summary")
		t.Setenv("GITHUB_STEP_SUMMARY", summary)
		folder := demoSite(t, "site")
		for i, from := range []string{folder, demoSite(t, "site.tar")} {
			bucket, f := s.Bucket(t), newFront(t, s, nil)
			status, stdout, stderr := runPublish("--site", from, "--dest", "s3://"+bucket+"/below", "--endpoint", f.URL, "--report", "-")
			var report publisher.Report
			if err := json.Unmarshal([]byte(stdout), &report); status != command.Done || err != nil {
				t.Fatalf("got status %d, %v: %s", status, err, stderr)
			}
			if !maps.Equal(report.Requests, f.count) {
				t.Errorf("requests in the report: got %v, want the %v that the server counted", report.Requests, f.count)
			}
			want := map[site.Key]string{}
			for key, etag := range digests(t, folder) {
				want["below/"+key] = etag
			}
			got := contents(t, s, bucket)
			if !maps.Equal(got, want) {
				t.Errorf("bucket: got %d objects, want the %d of the site, byte for byte", len(got), len(want))
			}
			if report.Done.Put+report.Done.Manifests+1 != len(got) || report.Done.Put != report.Plan.Put || report.Outcome != publisher.Published {
				t.Errorf("report: got %s", stdout)
			}
			body, err := os.ReadFile(summary)
			if err != nil || strings.Count(string(body), "### s3://"+bucket) != 1 || strings.Count(string(body), " 439 objects put, ") != i+1 {
				t.Errorf("the summary after run %d: %s, %v", i+1, body, err)
			}
		}
	})
}

// A dry run shows the plan of the run, and sends no request that writes.
func TestADryRunOnlyReads(t *testing.T) {
	onServers(t, func(t *testing.T, s *servers.Server) {
		bucket, f := s.Bucket(t), newFront(t, s, nil)
		from := demoSite(t, "site")
		args := []string{"--site", from, "--dest", "s3://" + bucket, "--endpoint", f.URL, "--report", "-"}
		done(t, "publish", args...)
		otherSite(t, from)
		before := contents(t, s, bucket)
		clear(f.count)
		var planned, done publisher.Report
		status, stdout, stderr := runPublish(append(args, "--dry-run")...)
		if err := json.Unmarshal([]byte(stdout), &planned); status != command.Done || err != nil {
			t.Fatalf("got status %d, %v: %s", status, err, stderr)
		}
		if writes := len(f.count) - min(1, f.count[storage.Get]); writes > 0 {
			t.Errorf("dry run: got requests %v, want none that write", f.count)
		}
		if !maps.Equal(contents(t, s, bucket), before) {
			t.Error("a dry run changed the bucket")
		}
		status, stdout, stderr = runPublish(args...)
		if err := json.Unmarshal([]byte(stdout), &done); status != command.Done || err != nil {
			t.Fatalf("got status %d, %v: %s", status, err, stderr)
		}
		if planned.Plan != done.Plan || planned.Outcome != publisher.Planned || planned.Plan.Put == 0 {
			t.Errorf("dry run: got the plan %+v, want %+v", planned.Plan, done.Plan)
		}
	})
}

// otherSite generates a site at the path that differs in the badges of each list.
func otherSite(t *testing.T, path string) {
	t.Helper()
	options := generator.Options{Config: site.Config{BadgesField: "poaps"}, NoSync: true}
	if _, err := generator.ToPath(context.Background(), afero.FromIOFS{FS: fixtures.Demo()}, path, options); err != nil {
		t.Fatal(err)
	}
}

// However the command ends, its output contains neither the secret nor a signature, not
// even at the level debug.
func TestNoSecretIsTold(t *testing.T) {
	onServers(t, func(t *testing.T, s *servers.Server) {
		const wrong = "a-wrong-secret-key"
		summary := filepath.Join(t.TempDir(), "summary")
		t.Setenv("GITHUB_STEP_SUMMARY", summary)
		from, dest, endpoint := demoSite(t, "site"), "s3://"+s.Bucket(t), s.Endpoint
		var told strings.Builder
		must := func(want int, args string) {
			t.Helper()
			status, stdout, stderr := run(strings.Fields(args)[0], append(strings.Fields(args)[1:], "--report", "-", "--log-level", "debug", "--patience", "1s")...)
			told.WriteString(stdout + stderr)
			if status != want {
				t.Errorf("%s: got status %d: %s", args, status, lastLine(stderr))
			}
		}
		here := " --dest " + dest + " --endpoint " + endpoint
		must(command.Done, "init --site "+from+here)
		must(command.Done, "verify"+here)
		must(command.Done, "repair --site "+from+here)
		otherSite(t, from)
		must(command.Done, "publish --dry-run --site "+from+here)
		must(command.Done, "publish --site "+from+here)
		must(command.Failed, "publish --site "+from+" --dest s3://no-such-bucket --endpoint "+endpoint)
		must(command.Failed, "publish --site "+from+" --dest "+dest+" --region eu-elsewhere-7 --endpoint http://127.0.0.1:1")
		must(command.Failed, "publish --site "+from+" --dest "+dest+" --endpoint "+strings.Replace(endpoint, "http:", "https:", 1))
		t.Setenv("AWS_SESSION_TOKEN", "a-session-token")
		must(command.Failed, "publish --site "+from+here)
		t.Setenv("AWS_SESSION_TOKEN", "")
		t.Setenv("AWS_SECRET_ACCESS_KEY", wrong)
		must(command.Failed, "publish --site "+from+here)
		body, err := os.ReadFile(summary)
		if err != nil {
			t.Fatal(err)
		}
		told.Write(body)
		for _, secret := range []string{s.SecretKey, wrong, "a-session-token", "Signature=", "AWS4-HMAC", "Credential=", "Authorization"} {
			if at := strings.Index(told.String(), secret); at >= 0 {
				t.Errorf("it tells %q: …%s", secret, told.String()[max(0, at-200):at])
			}
		}
		if n := strings.Count(told.String(), "level=DEBUG"); n < 100 {
			t.Errorf("%d lines of the level debug: the test looks at too little", n)
		}
	})
}
