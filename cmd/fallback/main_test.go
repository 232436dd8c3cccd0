package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/serve"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
)

// demoSite returns the demo site in a folder.
func demoSite(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "site")
	if _, err := generator.ToPath(t.Context(), afero.FromIOFS{FS: fixtures.Demo()}, dir, generator.Options{NoSync: true}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// Wrong usage has its own exit status and one line that names the flag.
func TestWrongUsage(t *testing.T) {
	for _, c := range []struct{ args, line string }{
		{"", "--site"},
		{"--site=x extra", "extra"},
		{"--site=x --no-such-flag", "--no-such-flag"},
		{"--site=ftp://x", "--site: ftp://x: use s3://BUCKET"},
		{"--site=s3://", "--site: s3://: not a bucket; use s3://BUCKET"},
		{"--site=s3://key:secret@bucket", "--site: the location has a user"},
		{"--site=s3://B", "--site: s3://B: "},
		{"--site=s3://bucket/a/../b", "--site: s3://bucket/a/../b: not a bucket; use"},
		{"--site=file://folder", "--site: file://folder: not an absolute path; use"},
		{"--site=x --cache-bytes=-1", "--cache-bytes"},
		{"--site=x --cache-bytes=0", "--cache-bytes must be positive"},
		{"--site=x --cache-bytes=32MiB", "--cache-bytes"},
		{"--site=x --poll=0s", "--poll must be positive"},
		{"--site=x --poll=10", "--poll"},
		{"--site=x --timeout=-1s", "--timeout must be positive"},
		{"--site=x --drain-delay=-1s", "--drain-delay cannot be negative"},
		{"--site=x --profile-upstream=https://x/", "{address}"},
		{"--site=x --profile-upstream=x/{address}", "the URL must be like https://HOST/{address}"},
		{"--site=x --profile-upstream=https://{address}/", "placeholder in its host"},
		{"--site=x --profile-upstream=https://x.{address}", "placeholder in its host"},
		{"--site=x --profile-upstream=https://{address}@x/", "placeholder in its host"},
		{"--site=x --profile-upstream=https://{address}:80?x", "placeholder in its host"},
		{"--site=x --badge-upstream=https://x/{address}", "{event_id}"},
		{"--site=x --timeout=25s", "--timeout=25s must be less than 25s"},
		{"--site=x --log-level=loud", "--log-level"},
		{"--site=s3://bucket --endpoint=nonsense", "--endpoint: want a URL"},
	} {
		var stdout, stderr bytes.Buffer
		status := command.Run("fallback", "", &serve.Command{}, strings.Fields(c.args), &stdout, &stderr)
		if status != command.Usage || stdout.Len() > 0 || !oneLine(stderr.String(), c.line) {
			t.Errorf("%s: got status %d, %q, %q, want 2 and %q", c.args, status, &stdout, &stderr, c.line)
		}
	}
}

func oneLine(text, with string) bool {
	return strings.HasPrefix(text, "fallback: ") && strings.Count(text, "\n") == 1 && strings.HasSuffix(text, "\n") && strings.Contains(text, with)
}

// An impossible configuration ends the command with a one-line error before it serves anything.
func TestFailure(t *testing.T) {
	dir := demoSite(t)
	running := run(t, executable(t), "--site="+dir)
	taken := strings.TrimPrefix(running.base, "http://")
	damaged := filepath.Join(t.TempDir(), "site")
	if err := os.MkdirAll(damaged, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(damaged, "_site"), []byte(`{"format":`), 0o644); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	for _, c := range []struct {
		line string
		args []string
	}{
		{"/nowhere", []string{"--site=/nowhere"}},
		{"/nowhere.tar", []string{"--site=/nowhere.tar"}},
		{empty + ": there is no site: it has no _site; publish a site there", []string{"--site=" + empty}},
		{"/nowhere", []string{"--site=file:///nowhere"}},
		{"_site", []string{"--site=" + damaged}},
		{"a .tar file cannot store", []string{"--site=" + dir + ".tar", "--profile-upstream=https://x/{address}"}},
		{"choose another address with --addr", []string{"--site=" + dir, "--addr=" + taken}},
		{"--addr=nonsense: missing port in address; want HOST:PORT", []string{"--site=" + dir, "--addr=nonsense"}},
		{"choose another address with --metrics-addr", []string{"--site=" + dir, "--addr=127.0.0.1:0", "--metrics-addr=" + taken}},
	} {
		fails(t, nil, c.line, c.args...)
	}
}

// fails runs the command, which must end with exit status 1 and one line.
func fails(t *testing.T, environment []string, line string, args ...string) {
	t.Helper()
	p := begin(t, executable(t), environment, args...)
	if status, told := p.wait(), p.Stderr(); status != command.Failed || !oneLine(told, line) {
		t.Errorf("%q: got status %d, %q, want 1 and %q", args, status, told, line)
	}
}

// A bucket with a wrong configuration is an error; one that cannot be reached may come
// back, so the command keeps running.
func TestFailureOfABucket(t *testing.T) {
	s := servers.Start(t, servers.MinIO)
	s.Env(t)
	empty := s.Bucket(t)
	at := func(bucket string) []string { return []string{"--site=s3://" + bucket, "--endpoint=" + s.Endpoint} }
	fails(t, nil, "no such bucket", at("no-such-bucket")...)
	fails(t, nil, "s3://"+empty+": there is no site: it has no _site", at(empty)...)
	fails(t, nil, "s3://"+empty+"/prefix: there is no site: it has no _site", at(empty+"/prefix")...)
	fails(t, []string{"AWS_ACCESS_KEY_ID=nobody"}, "", at(empty)...)
	fails(t, []string{"AWS_SECRET_ACCESS_KEY=wrong"}, "", at(empty)...)
	fails(t, []string{"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "HOME=/nowhere"}, "no credentials", at(empty)...)
}

// While one signed site replaces another, each answer is that of one of them, or a 503: nothing is taken for altered.
func TestASignedPublishWhileItAnswers(t *testing.T) {
	a := testkey.New(t, "follow.example")
	sites := []memsite.Site{demo(t, 21), demo(t, 22), demo(t, 23), demo(t, 24)}
	asked := details(sites[0])
	onBuckets(t, func(t *testing.T, open func() attacked) {
		b := open()
		publish := func(s memsite.Site) {
			t.Helper()
			if _, err := publisher.Publish(t.Context(), s, b.Bucket, publisher.Options{
				Signing: &publisher.Signing{Signers: []note.Signer{a.Signer}, Keys: a.Keys},
			}); err != nil {
				t.Fatal(err)
			}
		}
		publish(sites[0])
		// With little room in the cache, nearly every answer is read from the bucket.
		p := run(t, executable(t), append(b.args, "--key="+a.Public, "--poll=200ms", "--cache-bytes=8192")...)
		var published atomic.Int64 // the site that is being published, or was
		var done atomic.Bool
		var readers sync.WaitGroup
		var answers, between atomic.Int64
		for reader := range 4 {
			readers.Go(func() {
				for n := reader; !done.Load(); n++ {
					key := asked[n%len(asked)]
					first := max(published.Load()-1, 0)
					response, body := get(t, p.base+key.URLPath())
					last := published.Load()
					is := false
					for _, s := range sites[first : last+1] {
						is = is || s[key] == body
					}
					switch {
					case response.StatusCode == http.StatusServiceUnavailable:
						between.Add(1)
					case response.StatusCode != http.StatusOK || !is:
						t.Errorf("%s, while sites %d to %d were published: got %d %s", key, first, last, response.StatusCode, body)
						return
					}
					answers.Add(1)
				}
			})
		}
		for n, s := range sites[1:] {
			published.Store(int64(n + 1))
			publish(s)
			waitFor(t, "the new site", func() bool { _, body := get(t, p.base+site.RootKey.URLPath()); return body == s[site.RootKey] })
		}
		done.Store(true)
		readers.Wait()
		t.Logf("%d answers, of which %d were 503", answers.Load(), between.Load())
		if answers.Load() < 10 {
			t.Errorf("got %d answers while sites were published, want some", answers.Load())
		}
		last := sites[len(sites)-1]
		for _, key := range append(asked, site.RootKey) {
			waitFor(t, fmt.Sprintf("%s of the last site", key), func() bool { _, body := get(t, p.base+key.URLPath()); return body == last[key] })
		}
	})
}

// limitsOf runs the command over a site and returns the limits that the collector got until the
// condition holds.
func limitsOf(t *testing.T, until func(limits []int64) bool, arguments ...string) []int64 {
	t.Helper()
	var mu sync.Mutex
	var limits []int64
	f := serve.Command{LimitMemory: func(bytes int64) {
		mu.Lock()
		defer mu.Unlock()
		limits = append(limits, bytes)
	}}
	parser, err := kong.New(&f)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(append(arguments, "--addr=127.0.0.1:0", "--poll=10ms")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	stdout, out := io.Pipe()
	go func() {
		err := f.Run(ctx, out, io.Discard)
		_ = out.Close() // never fails
		ended <- err
	}()
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("the command ended: %v", <-ended)
	}
	soFar := func() []int64 {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(limits)
	}
	for deadline := time.Now().Add(time.Minute); !until(soFar()) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	cancel()
	http.DefaultClient.CloseIdleConnections()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return soFar()
}

// tarOf writes a site to a tar file in one step, and returns the size of its index in memory.
func tarOf(t *testing.T, snapshot afero.Fs, path string) int64 {
	t.Helper()
	report, err := generator.ToPath(t.Context(), snapshot, path, generator.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	return 8 * int64(report.Written.Added+report.Written.Altered+report.Written.Kept)
}

// The limit of the collector leaves room for the index of a tar file: also for that of the next site, and for both
// while one is made.
func TestLimitCountsTheIndex(t *testing.T) {
	const needed = 48 << 20
	path := filepath.Join(t.TempDir(), "site.tar")
	demo := tarOf(t, afero.FromIOFS{FS: fixtures.Demo()}, path)
	next := filepath.Join(t.TempDir(), "next.tar")
	cases := tarOf(t, afero.NewBasePathFs(afero.FromIOFS{FS: fixtures.Conformance()}, "snapshot"), next)
	replaced := false
	want := []int64{needed, needed + demo, needed + demo + cases, needed + cases}
	got := limitsOf(t, func(limits []int64) bool {
		if len(limits) >= 2 && !replaced {
			replaced = true
			if err := os.Rename(next, path); err != nil {
				t.Error(err)
			}
		}
		return len(limits) >= len(want)
	}, "--site="+path)
	if !slices.Equal(got, want) {
		t.Errorf("over a tar file of %d bytes of index, then %d: got the limits %d, want %d", demo, cases, got, want)
	}
}
