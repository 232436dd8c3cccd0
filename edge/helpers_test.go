package edge_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// testSite is the conformance site as a folder, made once for all tests.
var testSite = sync.OnceValues(func() (string, error) {
	snapshot := afero.NewBasePathFs(afero.FromIOFS{FS: fixtures.Conformance()}, "snapshot")
	dir := filepath.Join(scratch, "site")
	_, err := generator.ToPath(context.Background(), snapshot, dir, generator.Options{NoSync: true})
	return dir, err
})

// efpSites are the sites of the whole API, by Config.Names.
var efpSites = map[string]func() (string, error){
	site.NamesCopies: sync.OnceValues(func() (string, error) { return efpSite(site.NamesCopies) }),
	site.NamesLookup: sync.OnceValues(func() (string, error) { return efpSite(site.NamesLookup) }),
}

func efpSite(names string) (string, error) {
	snapshot := afero.NewBasePathFs(afero.FromIOFS{FS: fixtures.ConformanceEFP()}, "snapshot")
	file := filepath.Join(scratch, "efp-"+names+".tar")
	_, err := generator.ToPath(context.Background(), snapshot, file, generator.Options{NoSync: true, Config: site.Config{API: site.APIEFP, Names: names}})
	return file, err
}

// historySites are sites of the whole API with operations, by Config.Names.
var historySites = map[string]func() (string, error){
	site.NamesCopies: sync.OnceValues(func() (string, error) { return historySite(site.NamesCopies) }),
	site.NamesLookup: sync.OnceValues(func() (string, error) { return historySite(site.NamesLookup) }),
}

// historySite returns the conformance site with many operations about the accounts of the cases.
func historySite(names string) (string, error) {
	snapshot := afero.NewCopyOnWriteFs(afero.NewBasePathFs(afero.FromIOFS{FS: fixtures.ConformanceEFP()}, "snapshot"), afero.NewMemMapFs())
	var ops strings.Builder
	for i := range 40 {
		account := strings.Repeat([]string{"01", "02"}[i%2], 20)
		code, tag := 1+i%4, ""
		if code > 2 {
			tag = fmt.Sprintf("%x", []string{"top8", "a,B", "é", " x ", "%&="}[i%5])
		}
		fmt.Fprintf(&ops, `{"token_id":"%d","time":"2026-%02d-%02dT11:22:33.000Z","chain_id":10,"block":%d,"log_index":0,"op":"0x01%02x0101%s%s"}`+"\n",
			1+i%3, 10+i/20, 1+i%20, i, code, account, tag)
	}
	if err := afero.WriteFile(snapshot, "ops.ndjson", []byte(ops.String()), 0o644); err != nil {
		return "", err
	}
	file := filepath.Join(scratch, "history-"+names+".tar")
	_, err := generator.ToPath(context.Background(), snapshot, file, generator.Options{
		NoSync: true, Config: site.Config{API: site.APIEFP, Names: names, HistoryWindow: anyWindow},
	})
	return file, err
}

const anyWindow = site.Window(site.DefaultHistoryWindow)

func sitePath(t testing.TB) string {
	t.Helper()
	path, err := testSite()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// origins are the servers behind an edge: a bucket, and the handler of the fallback.
type origins struct {
	bucket, fallback *origin
	handler          http.Handler // the fallback's, for comparison
	config           site.Config
}

// An origin counts its requests, and can be taken down or made to fail.
type origin struct {
	*httptest.Server
	requests atomic.Int64
	down     atomic.Bool  // connections are cut
	hanging  atomic.Bool  // nothing is answered until the test ends
	failing  atomic.Int64 // the status of all answers, with a body as buckets have them; 0 is none
	paths    sync.Map     // how often each was asked for
}

// failure is the body of a failing origin. No edge may pass it on.
const failure = "<Error><Code>SlowDown</Code></Error>"

func newOrigin(t testing.TB, handler http.Handler) *origin {
	o, over := &origin{}, make(chan struct{})
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.requests.Add(1)
		o.paths.Store(r.URL.RequestURI(), true)
		if o.down.Load() {
			panic(http.ErrAbortHandler) // the connection is cut
		}
		if o.hanging.Load() {
			select {
			case <-over:
			case <-r.Context().Done():
			}
			return
		}
		if status := int(o.failing.Load()); status != 0 {
			w.Header().Set("Content-Type", "application/xml")
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, failure)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { close(over); o.Close() })
	return o
}

// newOrigins are origins over the conformance site. The bucket answers like S3, and
// also holds secret objects.
func newOrigins(t testing.TB) *origins {
	t.Helper()
	return newOriginsCaching(t, "")
}

// newOriginsCaching are origins whose bucket has another Cache-Control, unless it is "".
func newOriginsCaching(t testing.TB, caching string) *origins {
	t.Helper()
	return newOriginsOf(t, sitePath(t), caching)
}

// newOriginsEFP are origins over a site of the whole API.
func newOriginsEFP(t testing.TB, names string) *origins {
	t.Helper()
	path, err := efpSites[names]()
	if err != nil {
		t.Fatal(err)
	}
	return newOriginsOf(t, path, "")
}

// configs are the configurations of the sites in buckets, by the URL of the bucket.
var configs sync.Map

func newOriginsOf(t testing.TB, path, caching string) *origins {
	t.Helper()
	store, err := storage.OpenSite(t.Context(), path, storage.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	handler, err := server.New(context.Background(), store, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	config := handler.Root().Config
	o := &origins{
		bucket: newOrigin(t, bucketHandler(config, store, caching)), fallback: newOrigin(t, handler), handler: handler, config: config,
	}
	configs.Store(o.bucket.URL+"/bucket", config)
	return o
}

const secret = "nobody may read this"

// bucketHandler answers like S3 to anonymous requests to a bucket that may be read but
// not listed. Objects that are not part of the site are secret.
func bucketHandler(config site.Config, store server.Store, caching string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Amz-Request-Id", "1")
		w.Header().Set("Vary", "Origin")
		key := site.Key(strings.TrimPrefix(r.URL.Path, "/bucket/"))
		route, ok := config.RouteOf(key)
		if !ok && (strings.HasPrefix(string(key), "_refresh") || key == site.LockKey || key == site.MarkKey) {
			_, _ = io.WriteString(w, secret)
			return
		}
		body, err := store.Get(r.Context(), key)
		if !ok || err != nil {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `<Error><Code>AccessDenied</Code></Error>`)
			return
		}
		etag := `"` + site.Sum(body).String() + `"`
		w.Header().Set("Content-Type", route.ContentType)
		w.Header().Set("Cache-Control", cmp.Or(caching, route.CacheControl))
		w.Header().Set("ETag", etag)
		w.Header().Set("Last-Modified", "Mon, 02 Nov 2026 00:00:00 GMT")
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		if route.Ranges {
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
			return
		}
		_, _ = w.Write(body)
	})
}

// render writes the configuration of an edge into a folder.
func render(t testing.TB, kind edge.Kind, bucketURL, fallbackURL, listen string, change ...func(*edge.Options)) (dir string) {
	t.Helper()
	dir = t.TempDir()
	config, known := configs.Load(bucketURL)
	if !known {
		config = siteConfig(t)
	}
	o := edge.Options{
		Config: config.(site.Config), Bucket: bucketURL, Fallback: fallbackURL,
		Listen: listen, CacheDir: filepath.Join(dir, "cache"), CacheSize: "1g", PurgeFrom: []string{"127.0.0.1"},
	}
	for _, c := range change {
		c(&o)
	}
	files, err := edge.Render(kind, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		write(t, dir, f.Name, string(f.Body))
	}
	return dir
}

// siteConfig returns the configuration of the conformance site.
func siteConfig(t testing.TB) site.Config {
	t.Helper()
	config, err := publisher.ConfigOf(context.Background(), storage.OpenLocal(sitePath(t)))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// An answer is a response over HTTP.
type answer struct {
	status int
	header http.Header
	body   string
}

// client neither asks for compression nor follows redirects.
var client = &http.Client{
	Timeout:       2 * time.Minute,
	Transport:     &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// ask sends a request with the path exactly as it is given.
func ask(t testing.TB, method, base, path string, headers ...string) answer {
	t.Helper()
	a, err := tryAsk(method, base, path, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func tryAsk(method, base, path string, headers ...string) (answer, error) {
	return trySend(method, base, path, "", headers...)
}

// trySend sends a request with a body, unless it is "".
func trySend(method, base, path, body string, headers ...string) (answer, error) {
	var sent io.Reader
	if body != "" {
		sent = strings.NewReader(body)
	}
	request, err := http.NewRequest(method, base, sent)
	if err != nil {
		return answer{}, err
	}
	request.URL.Opaque = path
	if strings.HasPrefix(path, "//") { // net/http would take it for a host
		request.URL.Opaque = strings.TrimPrefix(base, "http:") + path
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return do(request)
}

// do sends a request. A server that refuses a body may close before it has all of it, and the answer be lost on the way:
// then it sends the request again. It uses no connection again that the server may close after a body.
func do(request *http.Request) (answer, error) {
	request.Close = request.Body != nil
	for try := 1; ; try++ {
		response, err := client.Do(request)
		var received []byte
		if err == nil {
			received, err = io.ReadAll(response.Body)
			_ = response.Body.Close() // it was read
		}
		if err == nil {
			return answer{response.StatusCode, response.Header, string(received)}, nil
		}
		isLost := errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
		if !isLost || request.GetBody == nil || try == 20 {
			return answer{}, err
		}
		if request.Body, err = request.GetBody(); err != nil {
			return answer{}, err
		}
	}
}

// direct returns the answer of the handler itself.
func (o *origins) direct(t testing.TB, method, path string) answer {
	t.Helper()
	return ask(t, method, o.fallback.URL, path)
}

func conformanceCases(t testing.TB) []fixtures.Case {
	t.Helper()
	cases, err := fixtures.Cases()
	if err != nil || len(cases) != 303 {
		t.Fatalf("conformance cases: got %d, %v, want 303", len(cases), err)
	}
	return cases
}

func checkCase(t testing.TB, base string, c fixtures.Case) {
	t.Helper()
	a, err := trySend(cmp.Or(c.Method, http.MethodGet), base, c.Path, c.Sent)
	if err != nil {
		t.Errorf("%s %s: %v", c.Method, c.Path, err)
		return
	}
	if a.status != c.Status {
		t.Errorf("%s %s: got status %d, want %d: %.200s", c.Method, c.Path, a.status, c.Status, a.body)
		return
	}
	if c.Status == http.StatusOK {
		if a.body != c.Body {
			t.Errorf("%s:\n got %.300s\nwant %.300s", c.Path, a.body, c.Body)
		}
		return
	}
	if c.Status == http.StatusFound {
		if got := a.header.Get("Location"); got != c.Location {
			t.Errorf("%s: got location %q, want %q", c.Path, got, c.Location)
		}
		return
	}
	if c.Method == http.MethodHead || c.Method == http.MethodOptions {
		return
	}
	var p struct {
		Type, Title, Detail, Response string
		Status                        int
	}
	if err := json.Unmarshal([]byte(a.body), &p); err != nil || p.Type != "about:blank" || p.Title != http.StatusText(a.status) ||
		p.Status != a.status || p.Detail == "" || p.Detail != p.Response || a.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s: got %s, %q, %v, want a problem (RFC 9457)", c.Path, a.body, a.header.Get("Content-Type"), err)
	}
}

// sameAnswer compares the answer of an edge with that of the handler: status, body, and the headers
// that clients see.
func sameAnswer(t testing.TB, what string, got, want answer, except ...string) {
	t.Helper()
	if got.status != want.status || got.body != want.body {
		t.Errorf("%s: got %d %.300q, want %d %.300q", what, got.status, got.body, want.status, want.body)
	}
	for _, name := range []string{
		"Access-Control-Allow-Headers", "Access-Control-Allow-Methods", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers",
		"Access-Control-Max-Age", "Allow", "Cache-Control", "Content-Type", "Etag", "Followpress-Edge", "Last-Modified", "Location", "Retry-After", "X-Amz-Request-Id",
		"X-Content-Type-Options", "X-Refresh",
	} {
		if !slices.Contains(except, name) && !slices.Equal(got.header[name], want.header[name]) {
			t.Errorf("%s: %s: got %q, want %q", what, name, got.header[name], want.header[name])
		}
	}
}
