package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/generate"
	"github.com/followpress/followpress/cmd/internal/snapshot"
	"github.com/followpress/followpress/site"
)

// A run is a process of the command within the test.
type run struct {
	url    string
	log    *buffer
	stop   context.CancelFunc
	ended  chan struct{}
	err    error
	status string // URL
}

// A buffer may be read while it is written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// parse makes the command of arguments, as the program does.
func parse(args ...string) (*Command, error) {
	c := &Command{}
	_, err := command.NewParser("live", About, c).Parse(args)
	return c, err
}

// start runs the command until the test ends.
func start(t *testing.T, args ...string) *run {
	t.Helper()
	c, err := parse(append([]string{"--addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--poll", "50ms", "--max-lag", "200000h", "--no-sync"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	r := &run{log: &buffer{}, stop: stop, ended: make(chan struct{})}
	out, in := io.Pipe()
	go func() {
		defer close(r.ended)
		r.err = c.Run(ctx, in, r.log)
		in.CloseWithError(r.err)
	}()
	t.Cleanup(func() {
		stop()
		<-r.ended
		if r.err != nil {
			t.Errorf("live: got %v, want an end without an error; log:\n%s", r.err, r.log)
		}
	})
	var line [200]byte
	n, err := out.Read(line[:])
	if err != nil {
		t.Fatalf("live: got %v, want its URL", r.err)
	}
	r.url = strings.TrimSpace(string(line[:n]))
	r.until(t, "a status", func() bool {
		at := regexp.MustCompile(`"serving metrics","url":"([^"]+)/metrics"`).FindStringSubmatch(r.log.String())
		if at != nil {
			r.status = at[1]
		}
		return at != nil
	})
	return r
}

// until waits until something holds.
func (r *run) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for begun := time.Now(); !holds(); time.Sleep(10 * time.Millisecond) {
		select {
		case <-r.ended:
			t.Fatalf("%s: the process ended with %v; log:\n%s", what, r.err, r.log)
		default:
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("%s: got none within a minute; log:\n%s", what, r.log)
		}
	}
}

func (r *run) logged(t *testing.T, text string) {
	t.Helper()
	r.until(t, text, func() bool { return strings.Contains(r.log.String(), text) })
}

func fetch(t *testing.T, url string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func (r *run) ready(t *testing.T) {
	t.Helper()
	r.until(t, "ready", func() bool {
		status, _ := fetch(t, r.url+"/readyz")
		return status == http.StatusOK
	})
}

func (w *world) rpc() (flags []string) {
	for _, c := range w.Chains {
		flags = append(flags, "--rpc", fmt.Sprintf("%d=%s", c.ID, w.nodes[c.ID].URL))
	}
	return flags
}

func (w *world) generated(t *testing.T, finality string) string {
	t.Helper()
	return generated(t, w.rpc(), finality)
}

// generated returns the site that snapshot chain and generate make from the nodes, with a finality.
func generated(t *testing.T, rpc []string, finality string) string {
	t.Helper()
	dir := t.TempDir()
	chain, site := &snapshot.Chain{}, &generate.Command{}
	for grammar, args := range map[command.Grammar][]string{
		chain: append(rpc, "--state", dir+"/state", "--out", dir+"/snapshot", "--finality", finality, "--no-sync"),
		site:  {"--snapshot", dir + "/snapshot", "--out", dir + "/site", "--no-sync"},
	} {
		if _, err := command.NewParser("test", "", grammar).Parse(args); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []command.Grammar{chain, site} {
		if err := c.Run(t.Context(), io.Discard, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	return dir + "/site"
}

// objects returns the objects of a site that show the graph, by key.
func objects(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	base := filepath.Join(dir, "api/v1")
	err := filepath.WalkDir(base, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		name, relErr := filepath.Rel(dir, path)
		all[name] = string(body)
		return errors.Join(err, relErr)
	})
	if err != nil || len(all) < 10 {
		t.Fatalf("objects of %s: got %d, %v", dir, len(all), err)
	}
	return all
}

func (r *run) equals(t *testing.T, dir string) {
	t.Helper()
	equals(t, r.url, dir)
}

// equals compares all answers with those of a generated site.
func equals(t *testing.T, url, dir string) {
	t.Helper()
	for name, want := range objects(t, dir) {
		if status, got := fetch(t, url+"/"+name); status != http.StatusOK || got != want {
			t.Errorf("%s: got %d %s, want %s", name, status, got, want)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// It answers as the site that snapshot chain and generate make, publishes exactly that, keeps a copy of its
// state, and starts from it elsewhere. A second one is refused the state.
func TestLive(t *testing.T) {
	w := newWorld(t, 3, 150)
	dir := t.TempDir()
	flags := append(w.rpc(), "--state", dir+"/state", "--dest", "file://"+dir+"/bucket", "--state-copy", "file://"+dir+"/copy")
	r := start(t, flags...)
	r.ready(t)
	want := w.generated(t, "latest")
	r.equals(t, want)
	r.logged(t, `"need_bytes"`)
	r.logged(t, `"copied the state"`)
	if got, want := read(t, dir+"/bucket/"+string(site.RootKey)), read(t, want+"/"+string(site.RootKey)); got != want {
		t.Errorf("the bucket's root: got %s, want %s", got, want)
	}
	_, page := fetch(t, r.status)
	_, told := fetch(t, r.status+"/status.json")
	if !strings.Contains(page, "serving</h1>") || !strings.Contains(told, `"outcome": "done"`) {
		t.Errorf("status: got %s and %s, want a publish that is done", page, told)
	}

	second, err := parse(append(flags, "--addr", "127.0.0.1:0")...)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Run(t.Context(), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "stop the other process") {
		t.Errorf("a second one with the same state: got %v, want what to do", err)
	}

	elsewhere := start(t, append(w.rpc(), "--state", dir+"/elsewhere", "--state-copy", "file://"+dir+"/copy")...)
	elsewhere.ready(t)
	elsewhere.logged(t, `"restored the state"`)
	elsewhere.equals(t, want)

	r.stop()
	<-r.ended
	again := start(t, flags...)
	again.ready(t)
	again.equals(t, want)
	again.logged(t, `"nothing to publish"`)
}

// Until the first graph, /readyz says why not, and requests get a 503; /healthz is fine.
func TestNotReady(t *testing.T) {
	w := newWorld(t, 3, 20)
	for _, n := range w.nodes {
		n.Set(unreachable)
	}
	r := start(t, append(w.rpc(), "--state", t.TempDir())...)
	if status, text := fetch(t, r.url+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(text, "no graph") {
		t.Errorf("/readyz: got %d %s, want 503 and why", status, text)
	}
	if status, _ := fetch(t, r.url+"/healthz"); status != http.StatusOK {
		t.Errorf("/healthz: got %d, want 200", status)
	}
	if status, _ := fetch(t, r.url+"/api/v1/lists/0/details"); status != http.StatusServiceUnavailable {
		t.Errorf("a request: got %d, want 503", status)
	}
}

// An unreachable bucket is reported, and answers continue.
func TestBucketAway(t *testing.T) {
	w := newWorld(t, 3, 100)
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	dir := t.TempDir()
	r := start(t, append(w.rpc(), "--state", dir, "--dest", "s3://bucket", "--endpoint", "http://127.0.0.1:1", "--patience", "1ms")...)
	r.ready(t)
	r.logged(t, "the publish failed")
	r.equals(t, w.generated(t, "latest"))
	if status, _ := fetch(t, r.url+"/readyz"); status != http.StatusOK {
		t.Errorf("/readyz: got %d, want 200", status)
	}
}

// A bucket that takes requests and never answers delays the first graph by seconds, not by its patience.
func TestBucketHangs(t *testing.T) {
	w := newWorld(t, 3, 50)
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	ctx, end := context.WithCancel(t.Context())
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-ctx.Done():
		}
	}))
	t.Cleanup(hangs.Close)
	t.Cleanup(end)
	r := start(t, append(w.rpc(), "--state", t.TempDir(), "--dest", "s3://bucket", "--endpoint", hangs.URL, "--profile-upstream", hangs.URL+"/{address}")...)
	r.ready(t)
	r.logged(t, "cannot read stored refreshes")
	r.equals(t, w.generated(t, "latest"))
}
