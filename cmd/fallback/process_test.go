package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/fixtures/servers"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/storage"
)

// runMain in the environment makes the test binary the command itself, which can be
// sent signals.
const runMain = "FOLLOWPRESS_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

func executable(t *testing.T) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// A process is the command in a process of its own.
type process struct {
	*exec.Cmd
	base   string // URL
	stderr written
	stdout io.Reader
	t      *testing.T
	ended  chan struct{}
}

// written can be read while it is written.
type written struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (w *written) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.Write(p)
}

func (w *written) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.all.String()
}

// begin starts the command, which ends with the test.
func begin(t *testing.T, binary string, environment []string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(binary, args...), t: t, ended: make(chan struct{})}
	p.Env = append(append(os.Environ(), runMain+"=yes", "GORACE=atexit_sleep_ms=0"), environment...)
	stdout, out := io.Pipe()
	p.stdout, p.Stdout, p.Stderr = stdout, out, &p.stderr
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.Wait() // ProcessState tells
		_ = out.Close()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill() // where it has not ended
		_ = stdout.Close()
		<-p.ended
	})
	return p
}

// run starts the command on a free port, unless args name one, and waits for its address.
func run(t *testing.T, binary string, args ...string) *process {
	t.Helper()
	p := begin(t, binary, nil, append([]string{"--addr=127.0.0.1:0"}, args...)...)
	line, err := bufio.NewReader(p.stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("status %d: %s", p.wait(), p.stderr.String())
	}
	p.base = strings.TrimSpace(line)
	return p
}

// patience is when a test gives up waiting for what takes less than a second.
const patience = 20 * time.Second

// wait gives the exit status.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
		return p.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("it goes on: %s", p.stderr.String())
		return -1
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for begun := time.Now(); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatalf("after %v: %s", patience, what)
		}
	}
}

func status(t *testing.T, url string) int {
	t.Helper()
	response, _ := get(t, url)
	return response.StatusCode
}

// logLines are what was logged, which is JSON in every line.
func (p *process) logLines() []map[string]any {
	p.t.Helper()
	var lines []map[string]any
	for line := range strings.Lines(p.stderr.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil || fields["time"] == nil || fields["level"] == nil || fields["msg"] == nil {
			p.t.Errorf("no line of a log: %q, %v", line, err)
		}
		lines = append(lines, fields)
	}
	return lines
}

// metricsURL is where the log says that metrics are served.
func (p *process) metricsURL() (url string) {
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

// Those who run it see how it goes at an address of their own; the API does not tell.
func TestMetricsHaveTheirOwnAddress(t *testing.T) {
	p := run(t, executable(t), "--site="+demoSite(t), "--metrics-addr=127.0.0.1:0")
	metrics := p.metricsURL()
	operations := strings.TrimSuffix(metrics, "/metrics")
	for url, want := range map[string]int{
		p.base + "/healthz": 200, p.base + "/readyz": 200, p.base + "/metrics": 404, p.base + "/api/v1/lists/104/details": 200,
		operations + "/healthz": 200, operations + "/readyz": 200, operations + "/api/v1/lists/104/details": 404, operations + "/debug/pprof/": 404,
	} {
		if got := status(t, url); got != want {
			t.Errorf("%s: %d, want %d", url, got, want)
		}
	}
	_, body := get(t, metrics)
	for _, want := range []string{
		`followpress_requests_total{route="{base}/lists/{token_id}/details",status="200"} 1`, `followpress_requests_total{route="none",status="404"} 1`,
		"followpress_ready 1", "followpress_cache_misses_total 1", "go_goroutines", "process_resident_memory_bytes",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the metrics have no %s", want)
		}
	}
	// The page for those who run it names every metric.
	page, err := os.ReadFile("../../docs/fallback.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`(?m)^# HELP (followpress_\w+)`).FindAllStringSubmatch(body, -1) {
		if !bytes.Contains(page, []byte("`"+name[1]+"`")) {
			t.Errorf("docs/fallback.md does not tell about %s", name[1])
		}
	}
}

// A request can be followed from whoever sent it into the log.
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
			t.Errorf("sent %q, got %q", sent, id)
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

// Told to end, it first says that it is not ready, for as long as a load balancer
// needs to notice, and goes on; then it takes no more connections; and it ends when
// the last request is answered.
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
	p.signal(syscall.SIGTERM)
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
		t.Errorf("the request under way: %s", got)
	}
	if got := p.wait(); got != command.Done {
		t.Errorf("exit status %d: %s", got, p.stderr.String())
	}
}

// A client that never ends its request does not keep it from ending, and a second
// signal ends it at once.
func TestEndsWithoutItsClients(t *testing.T) {
	for name, c := range map[string]struct {
		flag   string
		twice  bool
		status int
	}{
		"when the time is over": {"--drain-timeout=100ms", false, command.Done},
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
			p.signal(syscall.SIGTERM)
			if c.twice {
				waitFor(t, "it still says that it is ready", func() bool { return status(t, p.base+"/readyz") == 503 })
				p.signal(syscall.SIGTERM)
			}
			if got := p.wait(); got != c.status {
				t.Errorf("exit status %d: %s", got, p.stderr.String())
			}
		})
	}
}

// published is a bucket with a site made of a snapshot.
func published(t *testing.T, s *servers.Server, snapshot afero.Fs) (bucket string) {
	t.Helper()
	s.Env(t)
	bucket = s.Bucket(t)
	ctx := context.Background()
	memory, _, err := generator.ToMemory(ctx, snapshot, generator.Options{})
	if err != nil {
		t.Fatal(err)
	}
	to, err := storage.OpenS3(ctx, storage.Location{Bucket: bucket}, storage.S3Options{Endpoint: s.Endpoint})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := publisher.Publish(ctx, storage.NewFolder(memory), to, publisher.Options{}); err != nil {
		t.Fatal(err)
	}
	return bucket
}

// It starts before its store does, says so, and is ready soon after.
func TestStartsBeforeTheStore(t *testing.T) {
	s := servers.Start(t, servers.MinIO)
	bucket := published(t, s, afero.FromIOFS{FS: fixtures.Demo()})
	proxy := s.Proxy(t)
	proxy.Break(0, true)
	p := run(t, executable(t), "--site=s3://"+bucket, "--endpoint="+proxy.Endpoint)
	response, body := get(t, p.base+"/api/v1/lists/104/details")
	if status(t, p.base+"/healthz") != 200 || status(t, p.base+"/readyz") != 503 || response.StatusCode != 503 || response.Header.Get("Retry-After") == "" {
		t.Errorf("without a store: %d %v %s", response.StatusCode, response.Header, body)
	}
	proxy.Mend()
	waitFor(t, "it is not ready", func() bool { return status(t, p.base+"/readyz") == 200 })
	if got := status(t, p.base+"/api/v1/lists/104/details"); got != 200 {
		t.Errorf("with a store: %d", got)
	}
	// Once it has served, it goes on without the store with what it has.
	s.Stop()
	if status(t, p.base+"/readyz") != 200 || status(t, p.base+"/api/v1/lists/104/details") != 200 {
		t.Error("the store is gone: what was asked for before is lost")
	}
	if response, _ := get(t, p.base+"/api/v1/lists/103/details"); response.StatusCode != 503 || response.Header.Get("Retry-After") == "" {
		t.Errorf("the store is gone, and what is not in memory: %d %v", response.StatusCode, response.Header)
	}
	p.logLines()
}

// A conformanceCase is a request and its exact answer.
type conformanceCase struct {
	Path   string          `json:"path"`
	Status int             `json:"status"`
	JSON   json.RawMessage `json:"json"` // of a 200
}

// want is the body of a 200: the cases show U+2028 as it is, our encoding escapes it.
func (c conformanceCase) want() string { return strings.ReplaceAll(string(c.JSON), "\u2028", `\u2028`) }

// conformanceCases are those in every so many lines.
func conformanceCases(t *testing.T, every int) (cases []conformanceCase) {
	t.Helper()
	all, err := afero.ReadFile(afero.FromIOFS{FS: fixtures.Conformance()}, "cases.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range bytes.Lines(all) {
		var c conformanceCase
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		if n++; n%every == 0 {
			cases = append(cases, c)
		}
	}
	return cases
}
