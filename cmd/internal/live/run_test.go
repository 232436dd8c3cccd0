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
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/generate"
	"github.com/followpress/followpress/cmd/internal/snapshot"
	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/internal/testenv/nodes"
	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
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

func TestEvery(t *testing.T) {
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		interval time.Duration
		takes    []time.Duration
		errs     []error
		want     []time.Duration // start times of the calls
	}{
		"one after another":           {time.Hour, nil, nil, hours(0, 1, 2, 3)},
		"a long one leaves ticks out": {time.Hour, []time.Duration{150 * time.Minute}, nil, hours(0, 3, 4, 5)},
		"failures of an hour":         {time.Hour, nil, []error{failed, failed, failed}, hours(0, 1, 2, 3)},
		"failures of a day":           {24 * time.Hour, nil, []error{failed, failed, failed}, hours(0, 24, 48, 72)},
		"failures of 10 minutes": {
			10 * time.Minute, nil, []error{failed, failed, failed, failed, failed, nil},
			[]time.Duration{0, 10 * time.Minute, 30 * time.Minute, 70 * time.Minute, 130 * time.Minute, 190 * time.Minute, 200 * time.Minute},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				begun := time.Now()
				var got []time.Duration
				every(ctx, c.interval, func(context.Context) error {
					n := len(got)
					got = append(got, time.Since(begun))
					if len(got) == len(c.want) {
						stop()
					}
					if n < len(c.takes) {
						time.Sleep(c.takes[n])
					}
					if n < len(c.errs) {
						return c.errs[n]
					}
					return nil
				})
				if !slices.Equal(got, c.want) {
					t.Errorf("calls: got %v, want %v", got, c.want)
				}
			})
		})
	}
}

func hours(n ...int) (all []time.Duration) {
	for _, n := range n {
		all = append(all, time.Duration(n)*time.Hour)
	}
	return all
}

var unreachable = meanrpc.Faults{Trouble: meanrpc.Every(1, meanrpc.Trouble{Status: 503})}

// Wrong usage is one clear error, before any work.
func TestWrongFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--state s":                                                                   "--rpc=CHAIN=URL,URL",
		"--rpc 1=http://n":                                                            "--state=DIR",
		"--rpc 1=wss://n --state s":                                                   "chain 1: want URLs like https://HOST/KEY",
		"--rpc 1=http://n --state s3://b":                                             "must be a folder on this machine",
		"--rpc 1=http://n --state s --max-lag 2s":                                     "a minute or more",
		"--rpc 1=http://n --state s --publish-every 5s":                               "a minute or more",
		"--rpc 1=http://n --state s --poll 0s":                                        "--poll must be positive",
		"--rpc 1=http://n --state s --dest bucket":                                    "--dest:",
		"--rpc 1=http://n --state s --purge nowhere:1 --dest s3://bucket":             "--purge",
		"--rpc 1=http://n --state /d/s --dest file:///d":                              "which is public",
		"--rpc 1=http://n --state s --dest s3://bkt/a --state-copy s3://bkt/a/b":      "which is public",
		"--rpc 1=http://n --state s --dest s3://bkt --state-copy s3://bkt/state":      "which is public",
		"--rpc 1=http://n --state s --state-copy bucket":                              "--state-copy:",
		"--rpc 1=http://n --state s --badges https://poap":                            "--badge-events",
		"--rpc 1=http://n --state s --quorum 2":                                       "--quorum=2: chain 1 has 1 URLs",
		"--rpc 1=http://n --state s --profile-upstream nowhere --dest file:///bucket": "upstream",
	} {
		t.Run(args, func(t *testing.T) {
			_, err := parse(strings.Fields(args)...)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: got %v, want one line with %q", args, err, want)
			}
		})
	}
	for _, args := range []string{
		"--rpc 1=http://n,https://m;10=http://o --state s --dest s3://bkt/a --state-copy s3://bkt/b",
		"--rpc 1=http://n --state s --dest file:///bucket --rate 2",
	} {
		if _, err := parse(strings.Fields(args)...); err != nil {
			t.Errorf("%s: got %v, want no error", args, err)
		}
	}
}

// runMain in the environment makes the test binary the command itself, which can be sent signals.
const runMain = "FOLLOWPRESS_TEST_MAIN"

// A stand is a history on three anvils, a bucket on MinIO, and a state.
type stand struct {
	*world
	t      *testing.T
	anvils map[uint64]*nodes.Anvil
	s3     *servers.Server
	bucket string
	dir    string
}

func newStand(t *testing.T, seed uint64) *stand {
	t.Helper()
	servers.Wanted(t)
	s := &stand{t: t, world: &world{History: history.Random(seed, history.Options{Chains: history.Production(), Transactions: 200, Gap: 4})}, anvils: map[uint64]*nodes.Anvil{}, dir: t.TempDir()}
	s.s3 = servers.Start(t, servers.MinIO)
	s.s3.Env(t)
	t.Setenv("FOLLOWPRESS_ENDPOINT", s.s3.Endpoint)
	s.bucket = s.s3.Bucket(t)
	for _, c := range s.Chains {
		s.anvils[c.ID] = nodes.StartAnvil(t, s.Chains, c.ID, 2)
		s.play(c.ID, s.half(c))
	}
	return s
}

func (s *stand) half(c history.Chain) uint64 {
	end, _ := s.Last(c.ID)
	return (c.First + end.Number) / 2
}

// play adds the blocks of a chain up to the given number, skipping blocks that it has already.
func (s *stand) play(chain, to uint64) {
	s.t.Helper()
	n, head := s.anvils[chain], s.anvils[chain].Head()
	var blocks []history.Block
	for b := range s.Of(chain) {
		if b.Number > head && b.Number <= to {
			blocks = append(blocks, b)
		}
	}
	n.Play(blocks...)
}

func (s *stand) rpc() (flags []string) {
	for _, c := range s.Chains {
		flags = append(flags, "--rpc", fmt.Sprintf("%d=%s", c.ID, s.anvils[c.ID].URL))
	}
	return flags
}

// live starts the command in its own process, and returns its URL.
func (s *stand) live(args ...string) (*process.Process, string) {
	s.t.Helper()
	args = append(append(s.rpc(), "--addr", "127.0.0.1:0", "--poll", "100ms", "--max-lag", "200000h", "--state", s.dir+"/state"), args...)
	p := process.Start(s.t, process.Self(s.t, []string{runMain + "=yes"}, args...))
	url, ok := p.Line(0)
	if !ok {
		s.t.Fatalf("live ended: %s", p.Output())
	}
	return p, url
}

// reaches waits until the graph has the newest blocks of all nodes.
func (s *stand) reaches(p *process.Process, url string) {
	s.t.Helper()
	var after []string
	for id, n := range s.anvils {
		after = append(after, fmt.Sprintf("%d:%d", id, n.Head()))
	}
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if time.Since(begun) > 2*time.Minute {
			s.t.Fatalf("live does not reach %v: %s", after, p.Output())
		}
		request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url+"/_site", nil)
		if err != nil {
			s.t.Fatal(err)
		}
		request.Header.Set("X-After", strings.Join(after, ","))
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			continue // it is starting
		}
		answer.Body.Close()
		heads := ", " + answer.Header.Get("X-Heads") + ","
		there := answer.StatusCode == http.StatusOK
		for _, a := range after {
			there = there && strings.Contains(heads, " "+a+",")
		}
		if there {
			return
		}
	}
}

// generated returns the site of the nodes, as world.generated makes it.
func (s *stand) generated(finality string) string {
	s.t.Helper()
	return generated(s.t, s.rpc(), finality)
}

func (s *stand) root() string {
	s.t.Helper()
	b, err := openBucket(s.t.Context(), "s3://"+s.bucket, storage.S3Options{Endpoint: s.s3.Endpoint})
	if err != nil {
		s.t.Fatal(err)
	}
	body, err := b.Get(s.t.Context(), site.RootKey)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		s.t.Fatal(err)
	}
	return string(body)
}

// published waits until the bucket has the site of the final blocks.
func (s *stand) published(p *process.Process) {
	s.t.Helper()
	want := read(s.t, s.generated("finalized")+"/"+string(site.RootKey))
	for begun := time.Now(); s.root() != want; time.Sleep(100 * time.Millisecond) {
		if time.Since(begun) > 3*time.Minute { // a killed run's lock lasts a minute
			s.t.Fatalf("the bucket's root: got %s, want %s; log: %s", s.root(), want, p.Output())
		}
	}
}

// Three chains grow and reorganize, while live is killed, suspended and restarted. It always gives
// the answers that snapshot chain and generate make from the newest blocks. The bucket has those of
// the final blocks.
func TestLiveOnAnvil(t *testing.T) {
	s := newStand(t, 7)
	flags := []string{"--dest", "s3://" + s.bucket, "--state-copy", "file://" + s.dir + "/copy", "--max-loss", "100%"}
	p, url := s.live(flags...)
	s.reaches(p, url)
	equals(t, url, s.generated("latest"))
	s.published(p)

	ends := map[uint64]uint64{}
	for _, c := range s.Chains {
		end, _ := s.Last(c.ID)
		ends[c.ID] = end.Number
		s.play(c.ID, s.half(c)+(end.Number-s.half(c))/2)
	}
	s.reaches(p, url)
	equals(t, url, s.generated("latest"))

	p.Signal(syscall.SIGSTOP)
	for id, n := range s.anvils {
		s.play(id, ends[id])
		n.Mine(1)
	}
	time.Sleep(time.Second)
	p.Signal(syscall.SIGCONT)
	s.reaches(p, url)
	equals(t, url, s.generated("latest"))

	for id, n := range s.anvils {
		first := ends[id] - 2 // not final yet
		_, instead := s.Fork(id, first, 1007, history.Options{Transactions: 20})
		s.History = s.Upto(id, first-1).With(n.Reorg(first, instead...)...)
	}
	s.reaches(p, url)
	equals(t, url, s.generated("latest"))

	for _, n := range s.anvils {
		n.Finalize()
	}
	for kill := range 4 { // at any point of a start, a sync and a publish
		time.Sleep(time.Duration(kill) * 150 * time.Millisecond)
		p.Signal(syscall.SIGKILL)
		p.Wait()
		p, url = s.live(flags...)
	}
	s.reaches(p, url)
	equals(t, url, s.generated("latest"))
	s.published(p)

	other := process.Start(t, process.Self(t, []string{runMain + "=yes"}, append(s.rpc(), "--addr", "127.0.0.1:0", "--state", s.dir+"/state")...))
	if status, _ := other.Wait(); status != 1 || !strings.Contains(other.Stderr(), "stop the other process") {
		t.Errorf("a second one with the state: got %d, %s, want a refusal", status, other.Stderr())
	}
	p.Stop()
	if !strings.Contains(p.Stderr(), `"msg":"stopped"`) {
		t.Errorf("after SIGTERM: got %s, want that it stopped", p.Stderr())
	}
}
