package client_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/client"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
)

// largest is the maximum gzipped size of each module. Rarely needed code is in modules of its own.
var largest = map[string]int{"followpress.js": 9<<10 + 256, "history.js": 2 << 10, "relations.js": 2 << 10, "proof.js": 2560}

func TestFiles(t *testing.T) {
	var names []string
	for _, f := range client.Files() {
		names = append(names, f.Name)
		var packed bytes.Buffer
		w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(f.Body); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes, %d gzipped", f.Name, len(f.Body), packed.Len())
		if most := largest[f.Name]; most > 0 && packed.Len() > most {
			t.Errorf("%s: got %d bytes gzipped, want at most %d", f.Name, packed.Len(), most)
		}
	}
	if got, want := strings.Join(names, " "), strings.Join(site.ClientFiles(), " "); got != want {
		t.Errorf("files: got %s, want %s", got, want)
	}
}

// The module reads the current format. This check needs no Node.js.
func TestFormat(t *testing.T) {
	for _, f := range client.Files() {
		if want := fmt.Sprintf(".format!==%d", site.Format); f.Name == "followpress.js" && !bytes.Contains(f.Body, []byte(want)) {
			t.Errorf("%s: got no %q", f.Name, want)
		}
	}
}

// A job is a site in a bucket, and the answers that the library must return.
type job struct {
	Name    string  `json:"name"`
	Base    string  `json:"base"`
	Cases   []aCase `json:"cases"`
	Counted bool    `json:"counted"` // the test bounds the objects read per answer
	Key     string  `json:"key"`     // public key of the signature
}

type aCase struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Sent   string `json:"sent"`
	Status int    `json:"status"`
	Body   string `json:"body"` // for a redirect, its target
}

// The module and the shim answer every conformance case as the server does, byte for byte, and random graphs as
// their naive twins do.
func TestAnswersInNode(t *testing.T) {
	servers.Wanted(t)
	efp := site.Config{API: site.APIEFP}
	lookup := site.Config{API: site.APIEFP, Names: site.NamesLookup, BadgesField: "poaps"}
	jobs := []job{
		conformanceJob(t, "spec", fixtures.Conformance(), fixtures.Cases, site.Config{}),
		conformanceJob(t, "efp", fixtures.ConformanceEFP(), fixtures.CasesEFP, efp),
		conformanceJob(t, "lookup", fixtures.ConformanceEFP(), fixtures.CasesEFP, lookup),
	}
	jobs[1].Counted = true
	seeds := []uint64{0, shardedHistory}
	if os.Getenv("TEST_NIGHTLY") != "" {
		seeds = append(seeds, 1, 2, 3, 4)
	}
	for i, seed := range seeds {
		jobs = append(jobs, randomJob(t, seed, []site.Config{efp, lookup}[i%2]))
	}
	jobs = append(jobs, feedsJob(t, efp))
	body, err := json.Marshal(jobs)
	if err != nil {
		t.Fatal(err)
	}
	dir := modules(t)
	write(t, dir, "jobs.json", body)
	node := exec.Command("node", "--test", "test/client.test.mjs")
	node.Env = append(os.Environ(), "FOLLOWPRESS_JOBS="+filepath.Join(dir, "jobs.json"), "FOLLOWPRESS_CLIENT=file://"+dir+"/")
	if output, err := node.CombinedOutput(); err != nil {
		t.Errorf("node: %v\n%s", err, output)
	}
}

func conformanceJob(t *testing.T, name string, suite fs.FS, cases func() ([]fixtures.Case, error), config site.Config) job {
	t.Helper()
	all, err := cases()
	if err != nil {
		t.Fatal(err)
	}
	objects := generate(t, afero.NewBasePathFs(afero.FromIOFS{FS: suite}, "snapshot"), config)
	s := testkey.New(t, name+".example")
	j := job{Name: name, Base: serve(t, s.Sign(t, objects, 1)), Key: s.Public, Cases: storedCases(t, objects)}
	for _, c := range all {
		j.Cases = append(j.Cases, aCase{c.Method, c.Path, c.Sent, c.Status, c.Body + c.Location})
	}
	return j
}

// storedCases are requests for objects outside the API, with the server's answers. Shards of the manifest are missing:
// they are binary, and the module answers only text.
func storedCases(t *testing.T, objects memsite.Site) (all []aCase) {
	t.Helper()
	handler, err := server.New(t.Context(), objects, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer handler.Close()
	paths := []string{
		"/_search/discover", "/_search%2Fdiscover", "/_search%2fdiscover", "/%5Fsearch/discover", "/_search/discover/", "/_search//discover",
		"/_errors/bad-limit", "/_errors/no-such-list", "/_errors%2Fbad-limit", "/_errors/none", "/_errors/", "/_errors", "/_errors/..%2F_site",
		"/index.html", "/index%2Ehtml", "/INDEX.html", "/_site", "/_site/", "/%5fsite", "/_manifest/x", "/openapi.json",
		"/_refresh/details/1", "/_lock", "/_unknown/account", "/", "/api", "/api/v1", "/api%2Fv1/stats",
		"/_search/notifications/", "/_search/activity/01", "/_search/activity/older/1",
	}
	for key := range objects {
		if strings.HasPrefix(string(key), "_search/activity/") || strings.HasPrefix(string(key), "_search/notifications/older/") {
			paths = append(paths, "/"+string(key))
		}
	}
	for _, path := range paths {
		got := httptest.NewRecorder()
		handler.ServeHTTP(got, httptest.NewRequest(http.MethodGet, path, nil))
		body := ""
		if got.Code == http.StatusOK {
			body = got.Body.String()
		}
		all = append(all, aCase{http.MethodGet, path, "", got.Code, body})
	}
	return all
}

// shardedHistory is the seed of a graph whose operations need several objects.
const shardedHistory = 9

// randomJob returns the site of a random graph with operations, with the answers of its naive twin.
func randomJob(t *testing.T, seed uint64, config site.Config) job {
	t.Helper()
	snapshot := naive.Random(seed)
	config.HistoryWindow = site.Window([]time.Duration{site.DefaultHistoryWindow, 200 * time.Hour}[seed/2%2])
	objects := generate(t, afero.FromIOFS{FS: snapshot}, config)
	root, err := site.ParseRoot([]byte(objects[site.RootKey]))
	if err != nil {
		t.Fatal(err)
	}
	// A snapshot may have no operations: then its site has no window.
	graph, err := naive.Load(snapshot, naive.Config{HistoryWindow: time.Duration(root.Config.HistoryWindow)})
	if err != nil {
		t.Fatal(err)
	}
	s := testkey.New(t, fmt.Sprintf("random%d.example", seed))
	j := job{Name: fmt.Sprintf("random graph %d", seed), Base: serve(t, s.Sign(t, objects, 1)), Key: s.Public, Cases: storedCases(t, objects)}
	for _, r := range naive.Requests(rand.New(rand.NewPCG(seed, 1)), graph, 1500) {
		// A page sends text. Unlike site.Resolve, the twin has no route with an empty user.
		if !utf8.Valid(r.Body) || strings.Contains(r.Path, "//") {
			continue
		}
		status, _, body := graph.Answer(r.Method, r.Path, r.RawQuery, r.Body)
		if status >= http.StatusBadRequest || r.Method == http.MethodHead {
			body = nil
		}
		j.Cases = append(j.Cases, aCase{r.Method, r.URL(), string(r.Body), status, string(body)})
	}
	return j
}

// feedsJob has the server's feeds for a profile URL with characters that URLs must escape.
func feedsJob(t *testing.T, config site.Config) job {
	t.Helper()
	config.HistoryWindow = site.Window(site.DefaultHistoryWindow)
	config.ProfileURL = `HTTPS://people.example/ü x/%41{address}!|?a=b&c={address}'"<é>#x` + "`{}^\\"
	objects := generate(t, afero.FromIOFS{FS: naive.Random(3)}, config)
	handler, err := server.New(t.Context(), objects, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer handler.Close()
	j := job{Name: "feeds", Base: serve(t, objects)}
	for key := range objects {
		address, ok := strings.CutPrefix(string(key), "_search/notifications/0x")
		if !ok {
			continue
		}
		path := "/api/v1/users/0x" + address + "/notifications.atom"
		got := httptest.NewRecorder()
		handler.ServeHTTP(got, httptest.NewRequest(http.MethodGet, path, nil))
		j.Cases = append(j.Cases, aCase{http.MethodGet, path, "", got.Code, got.Body.String()})
	}
	if len(j.Cases) < 10 {
		t.Fatalf("feeds: got %d, want many", len(j.Cases))
	}
	return j
}

func generate(t *testing.T, snapshot afero.Fs, config site.Config) memsite.Site {
	t.Helper()
	files, _, err := generator.ToMemory(context.Background(), snapshot, generator.Options{Config: config, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := memsite.Read(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range client.Files() {
		if config.EFP() {
			s[site.ClientKey(f.Name)] = string(f.Body)
		}
	}
	return s
}

// serve serves a site like a public bucket: any origin may read, by GET only. Preflights fail, so the library must
// not cause any.
func serve(t *testing.T, s memsite.Site) (base string) {
	t.Helper()
	server := httptest.NewServer(bucket(s))
	t.Cleanup(server.Close)
	return server.URL + "/"
}

func bucket(s memsite.Site) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		body, ok := s[site.Key(strings.TrimPrefix(r.URL.Path, "/"))]
		switch {
		case r.Method != http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case !ok:
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
		default:
			w.Header().Set("Content-Type", contentType(r.URL.Path))
			_, _ = io.WriteString(w, body)
		}
	})
}

func contentType(path string) string {
	if filepath.Ext(path) == ".js" || filepath.Ext(path) == ".mjs" {
		return "text/javascript"
	}
	return "application/json"
}

// modules returns a folder with the modules, from which Node.js can import them.
func modules(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write(t, dir, "package.json", []byte(`{"type":"module"}`))
	for _, f := range client.Files() {
		write(t, dir, f.Name, f.Body)
	}
	return dir
}

func write(t *testing.T, dir, name string, body []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), body, 0o644); err != nil {
		t.Fatal(err)
	}
}
