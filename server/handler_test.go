package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// demo returns the demo site in memory; its list 104 follows 34 accounts.
func demo(t testing.TB) afero.Fs {
	t.Helper()
	return generated(t, afero.FromIOFS{FS: fixtures.Demo()}, site.Config{})
}

const largeList = "/api/v1/lists/104/"

func request(t *testing.T, method, url string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
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

func TestEveryAnswerHasItsHeaders(t *testing.T) {
	base := serve(t, storage.NewFolder(demo(t)))
	for _, c := range []struct {
		path, contentType, cacheControl string
	}{
		{"/api/v1/leaderboard/followers", "application/json", "public, max-age=60, stale-while-revalidate=600, stale-if-error=86400"},
		{largeList + "details", "application/json", "public, max-age=300, stale-while-revalidate=3600, stale-if-error=86400"},
		{largeList + "records?includeTags=false", "application/json", "public, max-age=300, stale-while-revalidate=3600, stale-if-error=86400"},
		{largeList + "searchFollowing?term=a", "application/json", "public, max-age=300, stale-while-revalidate=3600, stale-if-error=86400"},
		{largeList + "details?cache=fresh", "application/json", "no-store"},
		{"/_site", "application/json", "no-cache"},
		{"/_errors/no-such-list", "application/problem+json", "public, max-age=60"},
		{"/api/v1/lists/x/details", "application/problem+json", "public, max-age=60"},
		{"/nothing", "application/problem+json", "public, max-age=60"},
	} {
		get, body := request(t, http.MethodGet, base+c.path)
		head, headBody := request(t, http.MethodHead, base+c.path)
		for _, r := range []*http.Response{get, head} {
			for header, want := range map[string]string{
				"Content-Type": c.contentType, "Cache-Control": c.cacheControl,
				"Access-Control-Allow-Origin": "*", "X-Content-Type-Options": "nosniff",
				"Content-Length": fmt.Sprint(len(body)),
			} {
				if got := r.Header.Get(header); got != want {
					t.Errorf("%s %s, %s: got %q, want %q", r.Request.Method, c.path, header, got, want)
				}
			}
		}
		if head.StatusCode != get.StatusCode || headBody != "" {
			t.Errorf("HEAD %s: got status %d and %d bytes, want %d and none", c.path, head.StatusCode, len(headBody), get.StatusCode)
		}
		if tag, want := get.Header.Get("ETag"), `"`+site.Sum([]byte(body)).String()+`"`; get.StatusCode == http.StatusOK && tag != want {
			t.Errorf("%s, ETag: got %s, want the MD5 %s", c.path, tag, want)
		}
	}
}

// All answers have the same tags as the objects in the bucket, whether computed, missing or cached.
func TestAnswersHaveTags(t *testing.T) {
	files := generated(t, afero.FromIOFS{FS: fixtures.Demo()}, site.Config{Tags: "cloudflare fastly"})
	for name, base := range map[string]string{"tags": serve(t, storage.NewFolder(files)), "no tags": serve(t, storage.NewFolder(demo(t)))} {
		for path, want := range map[string]string{
			"/api/v1/leaderboard/followers?limit=7":       "fp-boards",
			largeList + "details":                         "fp-list-104 fp-ranks",
			largeList + "details?cache=fresh":             "fp-list-104 fp-ranks",
			largeList + "searchFollowing?term=a":          "fp-list-104 fp-lists-searchfollowing",
			largeList + "records?includeTags=false":       "fp-list-104 fp-lists-records",
			"/api/v1/lists/99999/details":                 "fp-list-99999 fp-ranks",
			"/api/v1/users/Nobody.eth/searchFollowing":    "fp-user-nobody.eth fp-users-searchfollowing",
			"/api/v1/lists/x/details":                     "",
			"/nothing":                                    "",
			"/api/v1/users/vitalik.eth/searchFollowing?x": "fp-user-vitalik.eth fp-users-searchfollowing",
		} {
			if name == "no tags" {
				want = ""
			}
			for range 3 {
				r, _ := request(t, http.MethodGet, base+path)
				keys, tags := r.Header.Get("X-Amz-Meta-Surrogate-Key"), r.Header.Get("X-Amz-Meta-Cache-Tag")
				if keys != want || tags != strings.ReplaceAll(want, " ", ",") {
					t.Errorf("%s, %s: got %q and %q, want %q", name, path, keys, tags, want)
				}
			}
		}
	}
}

func TestETagSavesTheBody(t *testing.T) {
	base := serve(t, storage.NewFolder(demo(t)))
	for _, path := range []string{largeList + "details", largeList + "searchFollowing?limit=3", largeList + "records?includeTags=false"} {
		first, _ := request(t, http.MethodGet, base+path)
		tag := first.Header.Get("ETag")
		for _, c := range []struct {
			match  string
			status int
		}{
			{tag, 304}, {"W/" + tag, 304}, {`"other", ` + tag, 304}, {"*", 304}, {`"other"`, 200}, {"nonsense", 200},
		} {
			r, body := request(t, http.MethodGet, base+path, "If-None-Match", c.match)
			if r.StatusCode != c.status || (body == "") != (c.status == 304) {
				t.Errorf("%s with If-None-Match %s: got %d and %d bytes, want %d", path, c.match, r.StatusCode, len(body), c.status)
			}
			if r.Header.Get("ETag") != tag || r.Header.Get("Cache-Control") == "" {
				t.Errorf("%s, 304: got %v, want ETag and Cache-Control", path, r.Header)
			}
		}
	}
}

func TestMethods(t *testing.T) {
	base := serve(t, storage.NewFolder(demo(t)))
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, "PROPFIND"} {
		r, body := request(t, method, base+largeList+"details")
		if r.StatusCode != 405 || r.Header.Get("Allow") != "GET, HEAD, OPTIONS" || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got %d, %v, want 405, Allow and no-store", method, r.StatusCode, r.Header)
		}
		checkProblem(t, method, r, []byte(body))
	}
	r, body := request(t, http.MethodOptions, base+largeList+"details",
		"Origin", "https://app.example", "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "if-none-match")
	if r.StatusCode != 204 || body != "" || r.Header.Get("Access-Control-Allow-Origin") != "*" ||
		r.Header.Get("Access-Control-Allow-Methods") != "GET, HEAD, OPTIONS" || r.Header.Get("Access-Control-Allow-Headers") != "*" {
		t.Errorf("preflight: got %d %q %v, want 204 and the CORS headers", r.StatusCode, body, r.Header)
	}
}

// A recordingStore records reads and can be made to fail.
type recordingStore struct {
	server.Store
	mu   sync.Mutex
	read []site.Key
	fail func(site.Key) error
}

func (s *recordingStore) Get(ctx context.Context, key site.Key) ([]byte, error) {
	s.mu.Lock()
	s.read = append(s.read, key)
	fail := s.fail
	s.mu.Unlock()
	if fail != nil {
		if err := fail(key); err != nil {
			return nil, err
		}
	}
	return s.Store.Get(ctx, key)
}

func (s *recordingStore) setFail(fail func(site.Key) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
}

// objects returns the keys that were read since the last call, the root aside.
func (s *recordingStore) objects() []site.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []site.Key
	for _, key := range s.read {
		if key != site.RootKey {
			keys = append(keys, key)
		}
	}
	s.read = nil
	return keys
}

// A page of a large list reads only the shards that it covers.
func TestAPageReadsOnlyItsShards(t *testing.T) {
	memory := generated(t, conformanceSnapshot(), site.Config{})
	for _, c := range []struct {
		query string
		want  []site.Key
	}{
		{"offset=0&limit=100", []site.Key{"_search/lists/8/0"}},
		{"offset=1500&limit=100", []site.Key{"_search/lists/8/1"}},
		{"offset=1950&limit=100", []site.Key{"_search/lists/8/1", "_search/lists/8/2"}},
		{"offset=5000", []site.Key{"_search/lists/8/5", "api/v1/lists/8/searchFollowing"}},
		{"term=fox&limit=2", []site.Key{"_search/lists/8/0"}},
		{"", []site.Key{"api/v1/lists/8/searchFollowing"}},
	} {
		store := &recordingStore{Store: storage.NewFolder(memory)}
		base := serve(t, store)
		if r, body := request(t, http.MethodGet, base+"/api/v1/lists/8/searchFollowing?"+c.query); r.StatusCode != 200 {
			t.Errorf("%s: got %d, want 200: %s", c.query, r.StatusCode, body)
		}
		if got := store.objects(); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got reads of %v, want %v", c.query, got, c.want)
		}
	}
}

func TestHotObjectsAreReadOnce(t *testing.T) {
	store := &recordingStore{Store: storage.NewFolder(demo(t))}
	base := serve(t, store)
	for range 5 {
		request(t, http.MethodGet, base+largeList+"details")
		request(t, http.MethodGet, base+"/api/v1/lists/404/details")
	}
	if got := store.objects(); len(got) != 2 {
		t.Errorf("got reads of %v, want each object once", got)
	}
}

func TestAFaultOfTheStoreIsNotAnAbsence(t *testing.T) {
	store := &recordingStore{Store: storage.NewFolder(demo(t))}
	base := serve(t, store)
	store.setFail(func(key site.Key) error { return errors.New("disk on fire") })
	for _, path := range []string{largeList + "details", largeList + "searchFollowing?term=x", "/api/v1/users/nobody.eth/searchFollowing?term=x"} {
		r, body := request(t, http.MethodGet, base+path)
		if r.StatusCode != 503 || r.Header.Get("Retry-After") == "" || r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got %d %v, want 503, Retry-After and no-store", path, r.StatusCode, r.Header)
		}
		if checkProblem(t, path, r, []byte(body)); strings.Contains(body, "fire") {
			t.Errorf("%s: got %s, want nothing about the inside", path, body)
		}
	}
	store.setFail(nil)
	if r, _ := request(t, http.MethodGet, base+largeList+"details"); r.StatusCode != 200 {
		t.Errorf("after the fault: got %d, want 200", r.StatusCode)
	}
}

func TestAPanicEndsOneRequest(t *testing.T) {
	store := &recordingStore{Store: storage.NewFolder(demo(t))}
	var log bytes.Buffer
	handler := newHandler(t, store, server.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	base := listen(t, handler)
	store.setFail(func(key site.Key) error { panic("a bug") })
	r, body := request(t, http.MethodGet, base+largeList+"details")
	checkProblem(t, "panic", r, []byte(body))
	if r.StatusCode != 500 || r.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("a panic: got %d %v, want 500 and no-store", r.StatusCode, r.Header)
	}
	store.setFail(nil)
	if r, _ := request(t, http.MethodGet, base+largeList+"badges"); r.StatusCode != 200 {
		t.Errorf("the request after a panic: got %d, want 200", r.StatusCode)
	}
	if !strings.Contains(log.String(), "a bug") {
		t.Error("the log: got no panic, want one")
	}
}

// A client that disconnects is not logged as a failure.
func TestAClientThatLeavesIsNoError(t *testing.T) {
	var log bytes.Buffer
	handler := newHandler(t, storage.NewFolder(demo(t)), server.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	gone, leave := context.WithCancel(context.Background())
	leave()
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, largeList+"details", nil).WithContext(gone))
	if log.Len() > 0 {
		t.Errorf("the log: got %s, want nothing", &log)
	}
}

// A new site is noticed, and nothing of the old one is served from then on.
func TestANewSiteIsNoticed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/site"
	ctx := context.Background()
	make := func(config site.Config) {
		t.Helper()
		if _, err := generator.ToPath(ctx, afero.FromIOFS{FS: fixtures.Demo()}, dir, generator.Options{Config: config, NoSync: true}); err != nil {
			t.Fatal(err)
		}
	}
	make(site.Config{})
	store := open(t, dir)
	handler := newHandler(t, store, server.Options{Poll: time.Millisecond})
	watch(t, handler)
	base := listen(t, handler)
	if _, body := request(t, http.MethodGet, base+largeList+"badges"); !strings.HasPrefix(body, `{"badges":`) {
		t.Fatalf("before: got %.80s, want badges", body)
	}
	make(site.Config{BadgesField: "poaps"})
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		_, body := request(t, http.MethodGet, base+largeList+"badges")
		if strings.HasPrefix(body, `{"poaps":`) {
			break
		}
		if time.Since(begun) > 10*time.Second {
			t.Fatalf("after 10 s: got %.80s, want the new site", body)
		}
	}
}

func TestNoSite(t *testing.T) {
	if _, err := server.New(context.Background(), storage.NewFolder(afero.NewMemMapFs()), server.Options{}); err == nil ||
		!strings.Contains(err.Error(), "there is no site") {
		t.Errorf("an empty folder: got %v, want an error that says there is no site", err)
	}
}

// The code of a person is the same by any way to name it, and another than those of others; an address that the graph does
// not know has one. Tests in browsers/ read them.
func TestQRCodes(t *testing.T) {
	t.Parallel()
	snapshot := afero.NewBasePathFs(afero.FromIOFS{FS: fixtures.ConformanceEFP()}, "snapshot")
	const bob, unknown = "0x0202020202020202020202020202020202020202", "0x0000000000000000000000000000000000abcdef"
	handler := efpHandler(t, efpSite(t, snapshot, ""))
	owners := map[string]string{}
	for path, owner := range map[string]string{
		"users/bob.eth/qr": bob, "users/BOB.eth/qr?x=1": bob, "users/" + bob + "/qr": bob, "users/0X" + bob[2:] + "/qr": bob,
		"users/" + strings.ToUpper(unknown) + "/qr": unknown, "users/" + unknown + "/qr": unknown, "lists/1/qr": "of list 1",
	} {
		got := ask(handler, "/api/v1/"+path)
		if contentType := got.Header().Get("Content-Type"); got.Code != 200 || contentType != "image/svg+xml" {
			t.Fatalf("%s: got %d, %s, want a picture: %s", path, got.Code, contentType, got.Body)
		}
		if of, known := owners[got.Body.String()]; known && of != owner {
			t.Errorf("%s: got the code of %s, want one of %s", path, of, owner)
		}
		owners[got.Body.String()] = owner
	}
	if len(owners) != 3 {
		t.Errorf("got %d codes, want one for each of 3 persons", len(owners))
	}
	for path, status := range map[string]int{"users/nobody.eth/qr": 404, "lists/424242/qr": 404, "lists/01/qr": 400, "users/100%25/qr": 404} {
		if got := ask(handler, "/api/v1/"+path); got.Code != status || got.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: got %d, %s, want the problem %d", path, got.Code, got.Header().Get("Content-Type"), status)
		}
	}
}

// A report that is put into the bucket, replaced or removed shows within a second or so, without a new site.
func TestReportsAreRead(t *testing.T) {
	t.Parallel()
	to := local(t, generated(t, afero.FromIOFS{FS: fixtures.Demo()}, site.Config{Explorer: true, LeaderboardMax: 10}))
	handler := newHandler(t, to, server.Options{})
	ask := func(key site.Key) *http.Response {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, key.URLPath(), nil))
		return w.Result()
	}
	for key, contentType := range map[site.Key]string{
		site.ReportsKey: "application/json", site.ReportKey("2026-01-31", "html"): "text/html; charset=utf-8",
		site.ReportKey("2026-01-31", "json"): "application/json",
	} {
		if got := ask(key); got.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404 as long as there is none", key, got.StatusCode)
		}
		for _, body := range []string{"first", "second"} {
			object := storage.Object{Entry: site.Entry{Key: key, Size: int64(len(body)), MD5: site.Sum([]byte(body))}, Body: []byte(body)}
			if _, err := to.Put(t.Context(), object, storage.Always); err != nil {
				t.Fatal(err)
			}
			eventually(t, body+" at "+string(key), func() bool {
				got := ask(key)
				return got.StatusCode == http.StatusOK && got.Header.Get("Content-Type") == contentType &&
					got.Header.Get("Cache-Control") == "no-cache" && got.Header.Get("Etag") == `"`+object.MD5.String()+`"`
			})
		}
		if err := to.Delete(t.Context(), []site.Key{key}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "nothing at "+string(key), func() bool { return ask(key).StatusCode == http.StatusNotFound })
	}
}

// A term that is not UTF-8 finds nothing, not even names with the replacement character. Only that
// character finds those names.
func TestATermThatIsNotUTF8(t *testing.T) {
	var records, accounts strings.Builder
	for n, name := range []string{"odd\uFFFDname.eth", "\u00e3.eth", "fox.eth"} {
		records.WriteString(`{"token_id":"1","version":1,"record_type":"address","data":"` + numbered(n) + `"}` + "\n")
		accounts.WriteString(`{"address":"` + numbered(n) + `","ens":{"name":"` + name + `"}}` + "\n")
	}
	snapshot := snapshotOf(`{"token_id":"1","owner":"`+numbered(99)+`"}`, records.String(), accounts.String())
	base := serve(t, storage.NewFolder(generated(t, snapshot, site.Config{})))
	for term, found := range map[string]int{
		"%EF%BF%BD": 1, "D%EF%BF%BDn": 1, "fox": 1, "%C3%A3": 1, "eth": 3,
		"%FF": 0, "%C3": 0, "%A3": 0, "fox%FF": 0, "%FFfox": 0, "d%FFn": 0, "%EF%BF": 0, "%ED%A0%80": 0, "+%FF+": 0, "%C0%A6": 0,
	} {
		r, body := request(t, http.MethodGet, base+"/api/v1/lists/1/searchFollowing?term="+term)
		if got := strings.Count(body, `"version"`); r.StatusCode != http.StatusOK || got != found {
			t.Errorf("term=%s: got status %d and %d entries, want 200 and %d", term, r.StatusCode, got, found)
		}
	}
	if r, _ := request(t, http.MethodGet, base+"/api/v1/lists/2/searchFollowing?term=%FF"); r.StatusCode != http.StatusNotFound {
		t.Errorf("in a list that is not there: got status %d, want 404", r.StatusCode)
	}
}
