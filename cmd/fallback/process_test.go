package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/storage"
)

// runMain in the environment makes the test binary the command itself, which can be
// sent signals.
const runMain = "FOLLOWPRESS_TEST_MAIN"

func TestMain(m *testing.M) {
	tempdir.InMemory()
	if os.Getenv(runMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

func executable(t *testing.T) string {
	t.Helper()
	return process.Self(t, nil).Path
}

// A running is a command in its own process.
type running struct {
	*process.Process
	base string // URL
	t    *testing.T
}

// begin starts the command, which ends with the test.
func begin(t *testing.T, binary string, environment []string, args ...string) *running {
	t.Helper()
	command := process.Self(t, append([]string{runMain + "=yes"}, environment...), args...)
	command.Path = binary
	return &running{Process: process.Start(t, command), t: t}
}

// run starts the command on a free port, unless args name one, and waits for its address.
func run(t *testing.T, binary string, args ...string) *running {
	t.Helper()
	p := begin(t, binary, nil, append([]string{"--addr=127.0.0.1:0"}, args...)...)
	line, ok := p.Line(0)
	if !ok {
		t.Fatalf("got status %d, want a URL: %s", p.wait(), p.Stderr())
	}
	p.base = line
	return p
}

// patience bounds a wait that normally takes less than a second.
const patience = 20 * time.Second

// wait gives the exit status.
func (p *running) wait() int {
	p.t.Helper()
	status, _ := p.Wait()
	return status
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for begun := time.Now(); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatalf("got nothing after %v, want: %s", patience, what)
		}
	}
}

func status(t *testing.T, url string) int {
	t.Helper()
	response, _ := get(t, url)
	return response.StatusCode
}

// logLines returns the log, which must be JSON in every line.
func (p *running) logLines() []map[string]any {
	p.t.Helper()
	var lines []map[string]any
	for line := range strings.Lines(p.Stderr()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil || fields["time"] == nil || fields["level"] == nil || fields["msg"] == nil {
			p.t.Errorf("log: got %q, %v, want a JSON line with time, level and msg", line, err)
		}
		lines = append(lines, fields)
	}
	return lines
}

// metricsURL returns the URL of the metrics, from the log.
func (p *running) metricsURL() (url string) {
	p.t.Helper()
	waitFor(p.t, "no address of the metrics in the log", func() bool {
		for _, line := range p.logLines() {
			if line["msg"] == "serving metrics" {
				url = line["url"].(string)
			}
		}
		return url != ""
	})
	return url
}

// Metrics and health checks have an address of their own; the API does not expose them.
func TestMetricsHaveTheirOwnAddress(t *testing.T) {
	p := run(t, executable(t), "--site="+demoSite(t), "--metrics-addr=127.0.0.1:0")
	metrics := p.metricsURL()
	operations := strings.TrimSuffix(metrics, "/metrics")
	for url, want := range map[string]int{
		p.base + "/healthz": 200, p.base + "/readyz": 200, p.base + "/metrics": 404, p.base + "/api/v1/lists/104/details": 200,
		operations + "/healthz": 200, operations + "/readyz": 200, operations + "/api/v1/lists/104/details": 404, operations + "/debug/pprof/": 404,
	} {
		if got := status(t, url); got != want {
			t.Errorf("%s: got status %d, want %d", url, got, want)
		}
	}
	_, body := get(t, metrics)
	for _, want := range []string{
		`followpress_requests_total{route="{base}/lists/{token_id}/details",status="200"} 1`, `followpress_requests_total{route="none",status="404"} 1`,
		"followpress_ready 1", "followpress_cache_misses_total 1", "go_goroutines", "process_resident_memory_bytes",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("metrics: got no %s", want)
		}
	}
	// The operators' page names every metric.
	page, err := os.ReadFile("../../docs/fallback.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`(?m)^# HELP (followpress_\w+)`).FindAllStringSubmatch(body, -1) {
		if !bytes.Contains(page, []byte("`"+name[1]+"`")) {
			t.Errorf("docs/fallback.md: got no metric %s", name[1])
		}
	}
}

// The request ID of a client appears in the log.
func TestLogsHaveTheRequestID(t *testing.T) {
	p := run(t, executable(t), "--site="+demoSite(t), "--log-level=debug")
	for sent, taken := range map[string]bool{"": false, "trace-1.2:3/4=": true, `quo"te`: false, "two words": false, strings.Repeat("x", 65): false} {
		request, err := http.NewRequest(http.MethodGet, p.base+"/api/v1/lists/104/details", nil)
		if err != nil {
			t.Fatal(err)
		}
		if sent != "" {
			request.Header.Set("X-Request-Id", sent)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		id := response.Header.Get("X-Request-Id")
		if (id == sent) != taken || id == "" {
			t.Errorf("X-Request-Id %q: got %q", sent, id)
		}
		waitFor(t, "the log has no request with the ID "+id, func() bool {
			for _, line := range p.logLines() {
				if line["msg"] == "request" && line["request_id"] == id && line["status"] == float64(200) {
					return true
				}
			}
			return false
		})
	}
}

// On SIGTERM it reports that it is not ready, and keeps serving for as long as a load
// balancer needs to notice. Then it accepts no more connections, and ends when the last
// request is answered.
func TestDrains(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-answer
		http.Error(w, "no", http.StatusInternalServerError)
	}))
	defer upstream.Close()
	p := run(t, executable(t), "--site="+demoSite(t), "--profile-upstream="+upstream.URL+"/{address}", "--drain-delay=1s")
	slow := make(chan string, 1)
	go func() {
		response, err := http.Get(p.base + "/api/v1/lists/104/details?cache=fresh")
		if err != nil {
			slow <- err.Error()
			return
		}
		_ = response.Body.Close()
		slow <- fmt.Sprint(response.StatusCode, response.Header.Get("X-Refresh"))
	}()
	<-asked
	p.Signal(syscall.SIGTERM)
	waitFor(t, "it still says that it is ready", func() bool { return status(t, p.base+"/readyz") == 503 })
	if status(t, p.base+"/healthz") != 200 || status(t, p.base+"/api/v1/lists/104/details") != 200 {
		t.Error("it does not go on while others notice")
	}
	waitFor(t, "it still takes connections", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.base, "http://"))
		if err == nil {
			_ = conn.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	close(answer)
	if got := <-slow; got != "200failed" {
		t.Errorf("the request under way: got %s, want 200failed", got)
	}
	if got := p.wait(); got != command.Done {
		t.Errorf("exit status %d: %s", got, p.Stderr())
	}
}

// The log says which site is served, when the process was told to stop, and that it has stopped.
func TestLogsWhatItServesAndItsEnd(t *testing.T) {
	dir := demoSite(t)
	p := run(t, executable(t), "--site="+dir)
	p.Signal(syscall.SIGTERM)
	if got := p.wait(); got != command.Done {
		t.Fatalf("exit status %d: %s", got, p.Stderr())
	}
	var told []any
	lines := p.logLines()
	for _, line := range lines {
		told = append(told, line["msg"])
	}
	if !slices.Equal(told, []any{"serving", "told to stop", "stopped"}) {
		t.Fatalf("got %v, want its begin, the signal and its end", told)
	}
	if begin := lines[0]; begin["site"] != dir || begin["url"] != p.base || begin["as_of"] == nil || begin["objects"] == nil {
		t.Errorf("got %v, want the site %s, its time and size, and the URL", begin, dir)
	}
}

// A client that never completes its request does not prevent shutdown, and another
// signal ends the process at once.
func TestEndsWithoutItsClients(t *testing.T) {
	for name, c := range map[string]struct {
		flag   string
		twice  bool
		status int
	}{
		"when the time is over": {"--drain-delay=0s", false, command.Done},
		"when told twice":       {"--drain-delay=1h", true, -1}, // the signal's own end
	} {
		t.Run(name, func(t *testing.T) {
			p := run(t, executable(t), "--site="+demoSite(t), c.flag)
			conn, err := net.Dial("tcp", strings.TrimPrefix(p.base, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprint(conn, "GET / HTTP/1.1\r\n")
			get(t, p.base+"/readyz") // by now the other is accepted
			p.Signal(syscall.SIGTERM)
			if c.twice {
				waitFor(t, "it still says that it is ready", func() bool { return status(t, p.base+"/readyz") == 503 })
				p.Signal(syscall.SIGTERM)
			}
			if got := p.wait(); got != c.status {
				t.Errorf("exit status %d: %s", got, p.Stderr())
			}
		})
	}
}

// published returns a bucket with a site made of a snapshot.
func published(t *testing.T, s *servers.Server, snapshot afero.Fs) (bucket string) {
	t.Helper()
	s.Env(t)
	bucket = s.Bucket(t)
	ctx := context.Background()
	memory, _, err := generator.ToMemory(ctx, snapshot, generator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	to, err := storage.OpenBucket(ctx, storage.Location{Bucket: bucket}, storage.S3Options{Endpoint: s.Endpoint})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := publisher.Publish(ctx, storage.NewFolder(memory), to, publisher.Options{}); err != nil {
		t.Fatal(err)
	}
	return bucket
}

// It can start before its store: it logs that, and becomes ready soon after the store.
func TestStartsBeforeTheStore(t *testing.T) {
	s := servers.Start(t, servers.MinIO)
	bucket := published(t, s, afero.FromIOFS{FS: fixtures.Demo()})
	proxy := s.Proxy(t)
	proxy.Break(0, true)
	p := run(t, executable(t), "--site=s3://"+bucket, "--endpoint="+proxy.Endpoint)
	response, body := get(t, p.base+"/api/v1/lists/104/details")
	if status(t, p.base+"/healthz") != 200 || status(t, p.base+"/readyz") != 503 || response.StatusCode != 503 || response.Header.Get("Retry-After") == "" {
		t.Errorf("without a store: got %d %v %s, want a 503 with Retry-After", response.StatusCode, response.Header, body)
	}
	proxy.Mend()
	waitFor(t, "it is not ready", func() bool { return status(t, p.base+"/readyz") == 200 })
	if got := status(t, p.base+"/api/v1/lists/104/details"); got != 200 {
		t.Errorf("with a store: got status %d, want 200", got)
	}
	// Once it has served, it continues without the store from its cache.
	s.Stop()
	if status(t, p.base+"/readyz") != 200 || status(t, p.base+"/api/v1/lists/104/details") != 200 {
		t.Error("the store is gone: the cached objects are lost")
	}
	if response, _ := get(t, p.base+"/api/v1/lists/103/details"); response.StatusCode != 503 || response.Header.Get("Retry-After") == "" {
		t.Errorf("the store is gone, and the object not in memory: got %d %v, want a 503 with Retry-After", response.StatusCode, response.Header)
	}
	p.logLines()
}
