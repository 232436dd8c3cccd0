package edge_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/storage"
)

// publishCommand is the real program, so that edges get its requests.
var publishCommand = sync.OnceValues(func() (string, error) {
	name := filepath.Join(scratch, "followpress")
	output, err := exec.Command("go", "build", "-buildvcs=false", "-o", name, "../cmd/followpress").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, output)
	}
	return name, err
})

// An edition is a change of the conformance snapshot: replacements in its files, and
// additional lines.
type edition struct {
	replace map[string]*strings.Replacer
	add     map[string]string
}

// nextSite is the conformance site a day later: everything that can change has.
var nextSite = sync.OnceValues(func() (string, error) {
	const added = "0x6363636363636363636363636363636363636363"
	return edition{
		replace: map[string]*strings.Replacer{
			"records.ndjson": strings.NewReplacer(
				`"tags":["again"]`, `"tags":["once more"]`, // the same follow
				`{"token_id":"8","version":1,"record_type":"address","data":"0x00000000000000000000000000000000000005dc"`, `{"token_id":"2","version":1,"record_type":"address","data":"0x00000000000000000000000000000000000005dc"`,
			),
			"accounts.ndjson": strings.NewReplacer("bob.eth.png", "bob-again.png", `"selfie.eth"`, `"renamed.eth"`, `"firefox.eth"`, `"waterfox.eth"`),
			"badges.ndjson":   strings.NewReplacer(`"token_id":"7000010"`, `"token_id":"7000011"`),
			"lists.ndjson":    strings.NewReplacer(`{"token_id":"5","owner":"0x0101010101010101010101010101010101010101"}`+"\n", ""),
			"meta.json":       strings.NewReplacer("2026-11-20", "2026-11-21"),
		},
		add: map[string]string{
			"lists.ndjson":    `{"token_id":"404","owner":"` + added + `"}`,
			"accounts.ndjson": `{"address":"` + added + `","primary_list":"404","ens":{"name":"nobody.eth"}}`,
			"records.ndjson":  `{"token_id":"404","version":1,"record_type":"address","data":"0x0101010101010101010101010101010101010101","tags":["new"]}`,
		},
	}.generate("next")
})

// quietSite lacks the last follow of a long list: the default searches of the list and its
// user stay the same, and only other pages and terms change.
var quietSite = sync.OnceValues(func() (string, error) {
	return edition{replace: map[string]*strings.Replacer{"records.ndjson": strings.NewReplacer(
		`{"token_id":"8","version":1,"record_type":"address","data":"0x0000000000000000000000000000000000000d10"}`+"\n", "",
	)}}.generate("quiet")
})

func (e edition) generate(name string) (dir string, err error) {
	from := afero.NewBasePathFs(afero.FromIOFS{FS: fixtures.Conformance()}, "snapshot")
	snapshot := afero.NewMemMapFs()
	entries, err := afero.ReadDir(from, ".")
	if err != nil {
		return "", err
	}
	for _, file := range entries {
		body, err := afero.ReadFile(from, file.Name())
		if err != nil {
			return "", err
		}
		text := string(body)
		if r := e.replace[file.Name()]; r != nil {
			if text = r.Replace(text); text == string(body) {
				return "", fmt.Errorf("%s has not changed", file.Name())
			}
		}
		if line := e.add[file.Name()]; line != "" {
			text = strings.TrimRight(text, "\n") + "\n" + line + "\n"
		}
		if err := afero.WriteFile(snapshot, file.Name(), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	dir = filepath.Join(scratch, name)
	_, err = generator.ToPath(context.Background(), snapshot, dir, generator.Options{NoSync: true})
	return dir, err
}

// A published site is a bucket with a fallback that watches it, and an edge in front of
// both.
type published struct {
	*origins
	folder string // path to the bucket
	base   string // URL of the edge
	env    []string
	purge  []string // arguments of publish and purge
}

// run runs followpress.
func (p *published) run(t *testing.T, args ...string) {
	t.Helper()
	program, err := publishCommand()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, args...)
	command.Env = append(os.Environ(), p.env...)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("followpress %q: %v\n%s", args, err, output)
	}
}

func (p *published) publish(t *testing.T, siteFolder string, args ...string) {
	t.Helper()
	p.run(t, append([]string{"publish", "--site", siteFolder, "--dest", "file://" + p.folder, "--max-loss=100%", "--allow-rollback"}, args...)...)
}

// newPublished publishes the conformance site and starts fallback and edge. caching, if
// not "", is the Cache-Control of all objects.
func newPublished(t *testing.T, s subject, caching string) *published {
	t.Helper()
	servers.Wanted(t)
	p := &published{folder: filepath.Join(t.TempDir(), "bucket")}
	p.publish(t, sitePath(t))
	store := storage.OpenLocal(p.folder)
	handler, err := server.New(t.Context(), store, server.Options{Poll: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { handler.Watch(ctx) })
	t.Cleanup(func() { cancel(); watching.Wait() })
	config := handler.Root().Config
	p.origins = &origins{bucket: newOrigin(t, bucketHandler(config, store, caching)), fallback: newOrigin(t, handler), handler: handler, config: config}
	bucketURL, fallbackURL := p.bucket.URL+"/bucket", p.fallback.URL
	switch s.kind {
	case "nginx":
		p.base = startNginxWorkers(t, bucketURL, fallbackURL)
		p.purge = []string{"--purge", "http:" + p.base + "/"}
	case "worker":
		p.base = startWorkerOwnCache(t, bucketURL, fallbackURL)
		p.purge = []string{"--purge", "cloudflare:zone1", "--purge-url", p.base}
		p.env = []string{"CLOUDFLARE_API_TOKEN=token", "CLOUDFLARE_BASE_URL=" + cloudflareOf(t, p.base)}
	default:
		p.base = s.start(t, bucketURL, fallbackURL)
	}
	// A fallback that watches notices at once; no edge may ask it before.
	p.env = append(p.env, "FOLLOWPRESS_PURGE_WAIT=1s")
	return p
}

// answersOf returns the answers of the handler over the folder of a site.
func answersOf(t *testing.T, folder string, requests []string) map[string]answer {
	t.Helper()
	handler, err := server.New(t.Context(), storage.OpenLocal(folder), server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]answer{}
	for _, request := range requests {
		r, err := http.NewRequest(http.MethodGet, "http://fallback"+request, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		all[request] = answer{w.Code, w.Header(), w.Body.String()}
	}
	return all
}

// requestsOf returns the conformance cases, and requests for all objects of the sites.
func requestsOf(t *testing.T, s subject, folders ...string) []string {
	t.Helper()
	var all []string
	for _, c := range conformanceCases(t) {
		if _, inexact := s.inexact[c.Path]; !inexact || s.caches {
			all = append(all, c.Path)
		}
	}
	all = append(all, "/api/v1/lists/404/records?includeTags=false", "/api/v1/lists/404/searchFollowing?limit=5", "/api/v1/users/nobody.eth/searchFollowing?term=alice",
		"/api/v1/users/renamed.eth/searchFollowing", "/api/v1/lists/2/searchFollowing?term=waterfox")
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				all = append(all, (&url.URL{Path: filepath.ToSlash(strings.TrimPrefix(name, folder))}).EscapedPath())
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(path string) bool { return !s.receives(path) })
}

// differences returns the requests whose answers through the edge differ from want.
func (p *published) differences(t *testing.T, want map[string]answer) []string {
	t.Helper()
	var different []string
	for request, w := range want {
		got := ask(t, http.MethodGet, p.base, request)
		if got.status != w.status || got.body != w.body || got.header.Get("ETag") != w.header.Get("ETag") {
			different = append(different, request)
		}
	}
	slices.Sort(different)
	return different
}

func expectNone(t *testing.T, what string, different []string) {
	t.Helper()
	if len(different) > 0 {
		t.Errorf("%s: got %d answers that are not the site's, want none: %q", what, len(different), different[:min(len(different), 10)])
	}
}

// hammer requests everything, again and again, until the test ends.
func (p *published) hammer(t *testing.T, requests []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var asking sync.WaitGroup
	for i := range uint64(4) {
		asking.Go(func() {
			random := rand.New(rand.NewPCG(i, 1))
			for ctx.Err() == nil {
				_, _ = tryAsk(http.MethodGet, p.base, requests[random.IntN(len(requests))]) // others look at the answers
				time.Sleep(time.Millisecond)                                                // leave the processor to the edge
			}
		})
	}
	t.Cleanup(func() { cancel(); asking.Wait() })
}

// After a republish and a purge no edge serves an old object, even under constant load.
func TestNothingOldAfterPurge(t *testing.T) {
	for _, s := range subjects {
		if s.kind == "cloudfront" {
			continue // a service: its function alone runs here
		}
		for name, caching := range map[string]string{"good": "", "stale": "public, max-age=1, stale-while-revalidate=600, stale-if-error=600"} {
			if s.degrades && caching != "" {
				continue // nothing of it can be stale
			}
			t.Run(s.kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				p := newPublished(t, s, caching)
				first := sitePath(t)
				second, err := nextSite()
				if err != nil {
					t.Fatal(err)
				}
				requests := requestsOf(t, s, first, second)
				old, next := answersOf(t, first, requests), answersOf(t, second, requests)
				changed := slices.DeleteFunc(slices.Clone(requests), func(r string) bool { return old[r].body == next[r].body })
				if len(changed) < 100 {
					t.Fatalf("answers that change: got %d of %d, want at least 100", len(changed), len(requests))
				}
				if s.degrades { // Caddy keeps nothing, so there is nothing to purge
					p.publish(t, second)
					time.Sleep(time.Second) // the fallback polls the root
					expectNone(t, "published", p.differences(t, p.now(t, requests)))
					return
				}
				for range 2 {
					expectNone(t, "at first", p.differences(t, old))
				}
				if caching != "" {
					time.Sleep(1500 * time.Millisecond) // all of it is stale now
				}
				p.hammer(t, requests)
				p.publish(t, second, p.purge...)
				expectNone(t, "what changed purged", p.differences(t, p.asStored(t, next)))

				p.publish(t, first)
				if different := p.differences(t, old); caching == "" && len(different) < 50 {
					t.Errorf("old answers without a purge: got %d, want at least 50, or the test shows nothing", len(different))
				}
				time.Sleep(time.Second)
				p.run(t, append([]string{"purge"}, p.purge...)...)
				expectNone(t, "purge", p.differences(t, p.asStored(t, old)))

				p.publish(t, second, append(p.purge, "--purge-max", "0")...)
				for range 2 {
					expectNone(t, "everything purged", p.differences(t, p.asStored(t, next)))
				}
			})
		}
	}
}

// now returns the current answers of the fallback. An edge without a cache gives the same answers.
func (p *published) now(t *testing.T, requests []string) map[string]answer {
	t.Helper()
	return answersOf(t, p.folder, requests)
}

// asStored returns the answers of a site with the current shards of its manifest: a bucket may keep
// older shards with deltas.
func (p *published) asStored(t *testing.T, site map[string]answer) map[string]answer {
	t.Helper()
	var manifest []string
	for request := range site {
		if strings.HasPrefix(request, "/_manifest/") {
			manifest = append(manifest, request)
		}
	}
	stored := maps.Clone(site)
	maps.Copy(stored, p.now(t, manifest))
	return stored
}

// Others may not purge: they get the answer of the handler to that method.
func TestPurgeFromElsewhere(t *testing.T) {
	o := newOrigins(t)
	base := runNginx(t, oneProcess, o.bucket.URL+"/bucket", o.fallback.URL, func(o *edge.Options) {
		o.PurgeFrom = []string{"192.0.2.1", "2001:db8::/32", "10.0.0.0/8"}
	})
	const path = "/api/v1/lists/8/details"
	ask(t, http.MethodGet, base, path)
	got := ask(t, "PURGE", base, "/")
	sameAnswer(t, "PURGE", got, o.direct(t, "PURGE", "/"))
	if got.status != http.StatusMethodNotAllowed {
		t.Errorf("PURGE: got status %d, want 405", got.status)
	}
	ask(t, http.MethodGet, base, path)
	if n := o.bucket.requests.Load(); n != 1 {
		t.Errorf("requests to the bucket: got %d, want 1", n)
	}
}

// ownCache replaces the Cache API for the Worker. Its purge works as Cloudflare documents: by
// prefixes of whole segments, with any query.
const ownCache = `
const kept = new Map();
const caches = { default: {
  async match(request) {
    const k = kept.get(request.url);
    return k && new Response(k.body, { headers: k.headers });
  },
  async put(request, response) {
    kept.set(request.url, { body: await response.arrayBuffer(), headers: [...response.headers] });
  },
} };
function purgeCache(what) {
  for (const url of kept.keys()) {
    const at = url.replace(/^https?:\/\//, '');
    if (what.purge_everything || what.prefixes.some((p) => at === p || at.startsWith(p + '/') || at.startsWith(p + '?'))) {
      kept.delete(url);
    }
  }
}
export default {
  async fetch(request, env, context) {
    if (request.method === 'POST' && new URL(request.url).pathname === '/-purge') {
      purgeCache(await request.json());
      return Response.json({ success: true });
    }
    return worker.fetch(request, env, context);
  },
};
`

// startWorkerOwnCache runs the Worker with that cache. Its keys are those of the real one.
func startWorkerOwnCache(t *testing.T, bucketURL, fallbackURL string) string {
	t.Helper()
	return runWorker(t, bucketURL, fallbackURL, func(script string) string {
		before, after, ok := strings.Cut(script, "export default {")
		if !ok {
			t.Fatal("the Worker has no export")
		}
		return before + "const worker = {" + after + ownCache
	})
}

// cloudflareOf returns the URL of a Cloudflare API whose only zone has the Worker at base.
func cloudflareOf(t *testing.T, base string) string {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/zones/zone1/purge_cache" || r.Header.Get("Authorization") != "Bearer token" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		response, err := http.Post(base+"/-purge", "application/json", r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer response.Body.Close()
		w.WriteHeader(response.StatusCode)
		_, _ = io.Copy(w, response.Body) // a cut answer fails the purge
	}))
	t.Cleanup(api.Close)
	return api.URL
}

// An answer that was under way during a purge of nginx is not cached for later requests, nor do
// they wait for it.
func TestPurgeDuringFetch(t *testing.T) {
	const path = "/api/v1/lists/8/details"
	o := newOrigins(t)
	answers, held, release := make(chan string, 3), make(chan bool), make(chan bool)
	slow := newOrigin(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		body := <-answers
		w.Header().Set("Cache-Control", "public, max-age=600")
		if body == "old" {
			held <- true
			<-release
		}
		_, _ = io.WriteString(w, body)
	}))
	answers <- "old"
	answers <- "new"
	base := startNginxWorkers(t, slow.URL, o.fallback.URL)
	late := make(chan answer)
	go func() {
		a, err := tryAsk(http.MethodGet, base, path)
		if err != nil {
			a.body = err.Error()
		}
		late <- a
	}()
	<-held
	if a := ask(t, "PURGE", base, "/"); a.status != http.StatusNoContent {
		t.Fatalf("PURGE: got status %d, want 204", a.status)
	}
	if a := ask(t, http.MethodGet, base, path); a.body != "new" {
		t.Errorf("while the old answer is under way: got %q, want the new one", a.body)
	}
	close(release)
	if a := <-late; a.body != "old" {
		t.Errorf("a request from before the purge: got %q, want the old answer", a.body)
	}
	for range 10 {
		if a := ask(t, http.MethodGet, base, path); a.body != "new" {
			t.Errorf("after the old answer: got %q, want the new one", a.body)
		}
	}
	if n := slow.requests.Load(); n != 2 {
		t.Errorf("requests to the bucket: got %d, want 2", n)
	}
}

// Many purges at once all succeed, and leave one file.
func TestManyPurges(t *testing.T) {
	o := newOrigins(t)
	var state string
	base := runNginx(t, twoWorkers+user(), o.bucket.URL+"/bucket", o.fallback.URL, func(o *edge.Options) { state = o.CacheDir + "-state" })
	for range 2 {
		var asking sync.WaitGroup
		for range 16 {
			asking.Go(func() {
				if a, err := tryAsk("PURGE", base, "/"); err != nil || a.status != http.StatusNoContent {
					t.Errorf("PURGE: got %d %v, want 204", a.status, err)
				}
			})
		}
		asking.Wait()
	}
	entries, err := os.ReadDir(state)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != "current" {
		t.Errorf("state: got %v, want the file of the generation alone", entries)
	}
}

// counting returns a bucket that numbers its answers.
func counting(t *testing.T) *origin {
	var given atomic.Int64
	return newOrigin(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=600")
		_, _ = fmt.Fprint(w, given.Add(1))
	}))
}

// waitStopped waits until a process has stopped. A worker stopped while it accepts a connection
// takes the connection from the others and never answers it.
func waitStopped(t *testing.T, pid int) {
	t.Helper()
	for range 6000 {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(status, []byte("\nState:\tT")) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("process %d does not stop", pid)
}

// A worker of nginx that is stopped while another one is asked to purge gives no old answer when it
// wakes up.
func TestPurgeWhileWorkerIsStopped(t *testing.T) {
	const path = "/api/v1/lists/8/details"
	bucket := counting(t)
	var pidFile string
	base := runNginx(t, twoWorkers+user(), bucket.URL, "", func(o *edge.Options) { pidFile = filepath.Join(filepath.Dir(o.CacheDir), "nginx.pid") })
	connections := make([]*http.Client, 16) // enough to reach both workers
	for i := range connections {
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		connections[i] = &http.Client{Transport: transport, Timeout: time.Minute}
	}
	askAll := func(when, want string) *sync.WaitGroup {
		var asking sync.WaitGroup
		for _, c := range connections {
			asking.Go(func() {
				response, err := c.Get(base + path)
				if err != nil {
					t.Errorf("%s: %v", when, err)
					return
				}
				defer response.Body.Close()
				if body, err := io.ReadAll(response.Body); err != nil || string(body) != want {
					t.Errorf("%s: got answer %s and %v, want %s", when, body, err, want)
				}
			})
		}
		return &asking
	}
	askAll("at first", "1").Wait()
	for i, worker := range nginxWorkers(t, pidFile) {
		if err := syscall.Kill(worker, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(worker, syscall.SIGCONT) })
		waitStopped(t, worker)
		client.CloseIdleConnections() // the stopped worker may have one
		if a := ask(t, "PURGE", base, "/"); a.status != http.StatusNoContent {
			t.Errorf("PURGE: got status %d, want 204", a.status)
		}
		asking := askAll("purged while a worker was stopped", strconv.Itoa(i+2))
		time.Sleep(200 * time.Millisecond) // for the requests to reach the worker
		if err := syscall.Kill(worker, syscall.SIGCONT); err != nil {
			t.Error(err)
		}
		asking.Wait()
	}
}

// nginxWorkers returns the processes of the two workers.
func nginxWorkers(t *testing.T, pidFile string) []int {
	t.Helper()
	master, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid := strings.TrimSpace(string(master))
	children, err := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children"))
	if err != nil {
		t.Fatal(err)
	}
	var workers []int
	for _, child := range strings.Fields(string(children)) {
		worker, err := strconv.Atoi(child)
		if err != nil {
			t.Fatal(err)
		}
		title, err := os.ReadFile(filepath.Join("/proc", child, "cmdline"))
		if err == nil && strings.Contains(string(title), "worker process") { // others look after the cache
			workers = append(workers, worker)
		}
	}
	if len(workers) != 2 {
		t.Fatalf("workers: got %v, want two", workers)
	}
	return workers
}

// If somebody removes the file of the generation, nginx still answers, caches and can be
// purged. A client never gets to the locations that read it.
func TestLostGeneration(t *testing.T) {
	const path = "/api/v1/lists/8/details"
	bucket := counting(t)
	var state string
	base := runNginx(t, twoWorkers+user(), bucket.URL, "", func(o *edge.Options) { state = o.CacheDir + "-state" })
	same := func(when, want string) {
		t.Helper()
		for range 20 { // enough to reach both workers
			if a := ask(t, http.MethodGet, base, path); a.body != want {
				t.Fatalf("%s: got answer %s, want %s", when, a.body, want)
			}
		}
		for _, internal := range []string{"/-followpress/generation", "/-followpress/no-generation", "/-followpress/%67eneration"} {
			if a := ask(t, http.MethodGet, base, internal); a.status != http.StatusNotFound {
				t.Errorf("%s: %s: got status %d, want 404", when, internal, a.status)
			}
		}
	}
	same("at first", "1")
	if err := os.Remove(filepath.Join(state, "current")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2500 * time.Millisecond) // so that both workers have noticed
	same("without a generation", "2")
	if a := ask(t, "PURGE", base, "/"); a.status != http.StatusNoContent {
		t.Fatalf("PURGE: got status %d, want 204", a.status)
	}
	same("purged", "3")
}

// Even if no object of a user's default search has changed, a publish purges every old page
// of that search.
func TestNothingOldAfterQuietPurge(t *testing.T) {
	for _, s := range subjects {
		if !s.caches || s.kind == "cloudfront" {
			continue
		}
		t.Run(s.kind, func(t *testing.T) {
			p := newPublished(t, s, "")
			first := sitePath(t)
			second, err := quietSite()
			if err != nil {
				t.Fatal(err)
			}
			requests := requestsOf(t, s, first)
			old, next := answersOf(t, first, requests), answersOf(t, second, requests)
			var lists, users int
			for _, r := range requests {
				if changed := old[r].body != next[r].body; changed && strings.Contains(r, "/lists/8/searchFollowing?") {
					lists++
				} else if changed && strings.Contains(r, "/users/") {
					users++
					if !strings.Contains(r, "?") {
						t.Errorf("%s: got a change, want none, or the test shows less than it should", r)
					}
				}
			}
			if lists == 0 || users == 0 {
				t.Fatalf("searches that change: got %d of lists and %d of users, want some of both", lists, users)
			}
			expectNone(t, "at first", p.differences(t, old))
			p.publish(t, second, p.purge...)
			expectNone(t, "purged", p.differences(t, p.asStored(t, next)))
		})
	}
}
