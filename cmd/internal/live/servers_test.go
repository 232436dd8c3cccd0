package live

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/nodes"
	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

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

// Two processes with their own states and one bucket take turns. The one that finds the bucket
// locked keeps answering.
func TestTwoLivesOnOneBucket(t *testing.T) {
	s := newStand(t, 8)
	for _, n := range s.anvils {
		n.Finalize()
	}
	var both []*process.Process
	for _, state := range []string{"/one", "/two"} {
		p, _ := s.live("--state", s.dir+state, "--dest", "s3://"+s.bucket)
		both = append(both, p)
	}
	ended := regexp.MustCompile(`"msg":"(published|nothing to publish|another publisher holds the lock)`)
	for _, p := range both {
		for begun := time.Now(); !ended.MatchString(p.Stderr()); time.Sleep(50 * time.Millisecond) {
			if time.Since(begun) > 2*time.Minute {
				t.Fatalf("no end of a publish: %s", p.Output())
			}
		}
		if strings.Contains(p.Stderr(), "the publish failed") {
			t.Errorf("a publish failed: %s", p.Stderr())
		}
	}
	s.published(both[0])
}

// Fetched refreshes appear in the next answers of live, and in the bucket.
func TestFreshOnAnvil(t *testing.T) {
	s := newStand(t, 9)
	for _, n := range s.anvils {
		n.Finalize()
	}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"address":%q,"name":"fresh.eth","avatar":null,"records":{},"updated_at":"2030-01-01T00:00:00Z"}`, filepath.Base(r.URL.Path))
	}))
	t.Cleanup(upstream.Close)
	p, url := s.live("--dest", "s3://"+s.bucket, "--profile-upstream", upstream.URL+"/{address}")
	s.reaches(p, url)
	s.published(p)
	token := ""
	for _, l := range s.Truth().Lists {
		if status, _ := fetch(t, url+"/api/v1/lists/"+l.Token+"/details"); status == http.StatusOK {
			token = l.Token
			break
		}
	}
	path := url + "/api/v1/lists/" + token + "/details"
	if status, body := fetch(t, path+"?cache=fresh"); status != http.StatusOK || !strings.Contains(body, "fresh.eth") {
		t.Errorf("cache=fresh: got %d %s, want the fresh name", status, body)
	}
	if status, body := fetch(t, path); status != http.StatusOK || !strings.Contains(body, "fresh.eth") {
		t.Errorf("afterwards: got %d %s, want the fresh name", status, body)
	}
	p.Stop()
	p, url = s.live("--dest", "s3://"+s.bucket, "--profile-upstream", upstream.URL+"/{address}")
	s.reaches(p, url)
	if status, body := fetch(t, url+"/api/v1/lists/"+token+"/details"); status != http.StatusOK || !strings.Contains(body, "fresh.eth") {
		t.Errorf("after a restart: got %d %s, want the fresh name", status, body)
	}
}
