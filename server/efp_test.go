package server_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// efpSite makes a site of the whole API in memory.
func efpSite(t testing.TB, snapshot afero.Fs, names string) afero.Fs {
	t.Helper()
	return generated(t, snapshot, site.Config{API: site.APIEFP, Names: names})
}

func efpHandler(t testing.TB, files afero.Fs) *server.Handler {
	t.Helper()
	return newHandler(t, storage.NewFolder(files), server.Options{})
}

// answerTo returns the answer of a handler to a request with a body.
func answerTo(handler http.Handler, method, url string, body []byte) *httptest.ResponseRecorder {
	return serveOne(handler, httptest.NewRequest(method, url, bytes.NewReader(body)))
}

func serveOne(handler http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// sameAsTwin compares the answer of a handler with that of a naive computation. It returns both.
func sameAsTwin(t testing.TB, where string, handler http.Handler, graph *naive.Graph, r naive.Request) (got *httptest.ResponseRecorder, contentType string, want []byte) {
	t.Helper()
	status, contentType, want := graph.Answer(r.Method, r.Path, r.RawQuery, r.Body)
	got = answerTo(handler, r.Method, r.URL(), r.Body)
	body := got.Body.Bytes()
	if got.Code != status || status == 200 && r.Method != "HEAD" && !bytes.Equal(body, want) { // the recorder keeps a body
		at := 0
		for at < min(len(body), len(want)) && body[at] == want[at] {
			at++
		}
		at = max(0, at-60)
		t.Errorf("%s, %s: got %d and …%.300s, want %d and …%.300s", where, r, got.Code, body[min(at, len(body)):], status, want[min(at, len(want)):])
	}
	return got, contentType, want
}

// getOf returns the request for a URL.
func getOf(url string) naive.Request {
	path, query, _ := strings.Cut(url, "?")
	return naive.Request{Method: "GET", Path: path, RawQuery: query}
}

// fewRequests checks that a path is answered with 200 after at most that many requests to the store, and
// the second time, from the cache, after none.
func fewRequests(t *testing.T, files server.Store, path string, most int64) {
	t.Helper()
	store := &counting{Store: files}
	handler := newHandler(t, store, server.Options{})
	defer handler.Close()
	before := store.requests.Load()
	for _, most := range []int64{most, 0} {
		if w := ask(handler, path); w.Code != 200 {
			t.Errorf("%s: got %d, want 200", path, w.Code)
		}
		if got := store.requests.Load() - before; got > most {
			t.Errorf("%s: got %d requests to the store, want at most %d", path, got, most)
		}
		before = store.requests.Load()
	}
}

var allNames = []string{site.NamesCopies, site.NamesLookup}

func TestConformanceEFP(t *testing.T) {
	t.Parallel()
	cases, err := fixtures.CasesEFP()
	if err != nil || len(cases) < 300 {
		t.Fatalf("conformance cases: got %d, %v, want many", len(cases), err)
	}
	snapshot := afero.NewBasePathFs(afero.FromIOFS{FS: fixtures.ConformanceEFP()}, "snapshot")
	for _, names := range allNames {
		t.Run(names, func(t *testing.T) {
			files := efpSite(t, snapshot, names)
			check := func(t *testing.T, store server.Store) {
				t.Helper()
				base := serve(t, store)
				for range 2 { // then from the cache
					for _, c := range cases {
						checkEFP(t, base, c)
					}
				}
			}
			t.Run("memory", func(t *testing.T) { check(t, storage.NewFolder(files)) })
			t.Run("bucket", func(t *testing.T) {
				onServers(t, func(t *testing.T, s *servers.Server) {
					at := storage.Location{Bucket: s.Bucket(t)}
					published(t, files, openS3(t, s, at, s.Endpoint))
					check(t, openS3(t, s, at, s.Endpoint))
				})
			})
		})
	}
}

// A site of the whole API answers the requests of the specification, but that its entries have the address
// twice.
func TestConformanceOfTheSpecificationUnderEFP(t *testing.T) {
	t.Parallel()
	base := serve(t, storage.NewFolder(generated(t, conformanceSnapshot(), site.Config{API: site.APIEFP, BadgesField: "badges"})))
	for _, c := range readCases(t) {
		if strings.HasSuffix(c.Path, "/leaderboard/mutuals") { // a board here
			continue
		}
		if strings.Contains(c.Path, "searchFollowing") {
			c.Body = dataOfEntry.ReplaceAllString(c.Body, `$0,"address":$1`)
		}
		checkCase(t, base, c)
	}
}

var dataOfEntry = regexp.MustCompile(`"record_type":"address","data":("0x[0-9a-f]{40}")`)

func checkEFP(t *testing.T, base string, c fixtures.Case) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), c.Method, base+c.Path, strings.NewReader(c.Sent))
	if err != nil {
		t.Fatal(err)
	}
	response, err := direct.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != c.Status || response.Header.Get("Location") != c.Location || c.Status == 200 && string(body) != c.Body {
		t.Errorf("%s %s %.300s:\n got %d %.600s, %v\nwant %d %.600s", c.Method, c.Path, c.Sent, response.StatusCode, body, err, c.Status, c.Body)
	}
}

// TestEFPAnswersAreThoseOfTheTwin compares a site of each of some random graphs with a naive computation.
func TestEFPAnswersAreThoseOfTheTwin(t *testing.T) {
	t.Parallel()
	for _, names := range allNames {
		for seed := range uint64(servers.Rounds(2, 16)) {
			snapshot := naive.Random(seed)
			graph, err := naive.Load(snapshot, naive.Config{})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			handler := efpHandler(t, efpSite(t, afero.FromIOFS{FS: snapshot}, names))
			defer handler.Close()
			for _, r := range naive.Requests(rand.New(rand.NewPCG(seed, 1)), graph, 2000) {
				if strings.Contains(r.Path, "//") {
					continue
				}
				sameAsTwin(t, fmt.Sprint("seed ", seed), handler, graph, r)
			}
		}
	}
}

// TestComputationsGiveTheirMemoryBack sends concurrent requests with little memory, so that the
// cache holds little and some answers must start over.
func TestComputationsGiveTheirMemoryBack(t *testing.T) {
	t.Parallel()
	handler := newHandler(t, storage.NewFolder(longSite(t)), server.Options{CacheBytes: 1 << 20, InFlightBytes: 2 << 20, Timeout: time.Minute})
	paths := longPaths()
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range len(paths) / servers.Rounds(9, 3) {
				path := paths[(worker+i)%len(paths)] + fmt.Sprintf("&limit=1000&include=ens&offset=%d", i)
				if w := ask(handler, path); w.Code != 200 {
					t.Errorf("%s: got %d, want 200", path, w.Code)
				}
				ask(handler, "/api/v1/lists/404/following?limit=3")
				ask(handler, "/api/v1/users/nobody.eth/ens")
			}
		})
	}
	group.Wait()
	eventually(t, "nothing is held", func() bool { return handler.InFlight() == 0 })
}

// A damaged store replaces a text in the objects below _search/.
type damaged struct {
	server.Store
	old, new string
}

func (s damaged) Get(ctx context.Context, key site.Key) ([]byte, error) {
	body, err := s.Store.Get(ctx, key)
	return bytes.ReplaceAll(body, []byte(s.old), []byte(s.new)), err
}

// TestShardsOfAnotherSize: a false size in a shard must not lead beyond the rows of the table.
func TestShardsOfAnotherSize(t *testing.T) {
	t.Parallel()
	files := efpSite(t, afero.FromIOFS{FS: efpSnapshot(3, 2_500, 10_100)}, site.NamesLookup)
	for _, damage := range [][2]string{
		{`"shard_size":1000,`, `"shard_size":999999999999999999,`},
		{`"shard_size":10000,`, `"shard_size":20000,`},
	} {
		handler := newHandler(t, damaged{storage.NewFolder(files), damage[0], damage[1]}, server.Options{})
		for _, path := range []string{
			"lists/1/following?sort=followers&offset=200", "lists/1/following?offset=1500", "lists/1/following?sort=earliest&offset=2000",
			"lists/1/followers?sort=followers&offset=200&tags=a", "leaderboard/ranked?sort=followers&offset=10050", "leaderboard/search?term=n1",
		} {
			if w := answerTo(handler, "GET", "/api/v1/"+path, nil); w.Code != http.StatusOK && w.Code != http.StatusServiceUnavailable {
				t.Errorf("%s with %s: got %d, want 200 or 503", path, damage[1], w.Code)
			}
		}
	}
}

// TestRareTermsReadAhead: a page that few rows belong to reads several shards at the same time.
func TestRareTermsReadAhead(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"lists/1/searchFollowing?term=zzz", "lists/2/following?tags=none"} {
		store := &farStore{Store: storage.NewFolder(longSite(t)), away: 50 * time.Millisecond}
		handler := newHandler(t, store, server.Options{})
		if w := answerTo(handler, "GET", "/api/v1/"+path, nil); w.Code != http.StatusOK {
			t.Fatalf("%s: got %d", path, w.Code)
		}
		if reads, most := store.reads.Load(), store.most.Load(); reads != 4 || most < 2 {
			t.Errorf("%s: got %d shards, at most %d at a time, want 4, the first alone and then more", path, reads, most)
		}
	}
}

// TestLargePagesAreMadeOnce: pages that do not fit the memory at the same time wait for it before they read
// anything. They used to begin, and begin again one after the other.
func TestLargePagesAreMadeOnce(t *testing.T) {
	t.Parallel()
	const limit = 300
	store := &counting{Store: storage.NewFolder(longSite(t))}
	store.away.Store(int64(100 * time.Microsecond))
	handler := newHandler(t, store, server.Options{CacheBytes: 1, InFlightBytes: 3 << 20, Timeout: time.Minute})
	var wg sync.WaitGroup
	pages := 0
	for _, page := range []string{"lists/1/allFollowing", "lists/1/allFollowers", "lists/2/allFollowing"} {
		for offset := 1; offset < longFollowers; offset += limit {
			pages++
			wg.Go(func() {
				path := fmt.Sprintf("/api/v1/%s?include=ens&limit=%d&offset=%d", page, limit, offset)
				if w := answerTo(handler, "GET", path, nil); w.Code != http.StatusOK {
					t.Errorf("%s: got %d", path, w.Code)
				}
			})
		}
	}
	wg.Wait()
	if got, most := store.requests.Load(), int64(pages*(limit+5)); got > most {
		t.Errorf("got %d requests to the store for %d pages, want at most %d", got, pages, most)
	}
}

// A user is refreshed as the primary list is. Without one there is nothing to refresh.
func TestRefreshOfAUser(t *testing.T) {
	t.Parallel()
	for _, names := range allNames {
		files := efpSite(t, afero.FromIOFS{FS: fixtures.Demo()}, names)
		account := accountOf(t, files, "104")
		fresh := profileOf("fresh.eth", 1_795_300_000_000)
		want := readObject(t, efpSite(t, withProfile(t, account, fresh), names), "api/v1/lists/104/details")
		name := profileNameOf(t, files, "104")
		onBuckets(t, func(t *testing.T, open func() bucket) {
			published(t, files, open())
			u := newUpstream(t, profiles(func(string) site.Profile { return fresh }).handler(t), nil)
			base := listen(t, newHandler(t, open(), server.Options{Refresh: u.options()})) + "/api/v1/"
			r, body := request(t, http.MethodGet, base+"users/"+name+"/details?cache=fresh")
			if r.StatusCode != 200 || body != want || r.Header.Get("Cache-Control") != site.NoStore {
				t.Errorf("got %d %v %s, want 200, not cached, %s", r.StatusCode, r.Header, body, want)
			}
			if _, body := request(t, http.MethodGet, base+"lists/104/details"); body != want {
				t.Errorf("the list afterwards: got %s, want %s", body, want)
			}
			r, body = request(t, http.MethodGet, base+"users/0x00000000000000000000000000000000DeaDBeef/details?cache=fresh")
			if r.StatusCode != 200 || len(u.requests()) != 1 || r.Header.Get("Cache-Control") != site.NoStore {
				t.Errorf("an unknown address: got %d %v %s after %q, want 200 and no request to the upstream", r.StatusCode, r.Header, body, u.requests())
			}
			r, _ = request(t, http.MethodGet, base+"users/nobody-has-this.eth/details?cache=fresh")
			if r.StatusCode != 404 || r.Header.Get("Cache-Control") != site.NoStore {
				t.Errorf("an unknown name: got %d %v, want 404, not cached", r.StatusCode, r.Header)
			}
		})
	}
}

// profileNameOf returns the name of the account of a list.
func profileNameOf(t testing.TB, files afero.Fs, tokenID string) string {
	t.Helper()
	details, _, err := site.DecodeDetails([]byte(readObject(t, files, site.Key("api/v1/lists/"+tokenID+"/details"))))
	if err != nil || !site.LookupName(details.ENS.Name) {
		t.Fatalf("list %s: got %q, %v, want a name", tokenID, details.ENS.Name, err)
	}
	return details.ENS.Name
}

const batchPath = "/api/v1/lists/1/buttonStateBatch"

func smallEFP(t testing.TB) afero.Fs {
	t.Helper()
	return efpSite(t, afero.FromIOFS{FS: efpSnapshot(1, 30, 30)}, "")
}

// The order of checks is method, size, form, existence.
func TestBatches(t *testing.T) {
	handler := efpHandler(t, smallEFP(t))
	long := strings.Repeat(" ", site.MaxBatchBytes+1)
	fits := `["one.eth"]` + strings.Repeat(" ", site.MaxBatchBytes-len(`["one.eth"]`))
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", batchPath, long, 405}, {"PUT", "/api/v1/lists/x/buttonStateBatch", "", 405}, {"POST", "/api/v1/lists/1/records", long, 405},
		{"POST", batchPath, long, 413}, {"POST", "/api/v1/lists/01/buttonStateBatch", long, 413}, {"POST", "/api/v1/lists/9/buttonStateBatch", long, 413},
		{"POST", batchPath, fits, 200}, {"POST", batchPath, "[]", 400}, {"POST", "/api/v1/lists/01/buttonStateBatch", fits, 400},
		{"POST", "/api/v1/lists/9/buttonStateBatch", "[]", 400}, {"POST", "/api/v1/lists/9/buttonStateBatch", fits, 404},
		{"POST", batchPath, `["` + strings.Repeat(`x","`, 999) + `y"]`, 200}, {"POST", batchPath, `["` + strings.Repeat(`x","`, 1000) + `y"]`, 400},
	} {
		w := answerTo(handler, c.method, c.path, []byte(c.body))
		if w.Code != c.status || c.method == "POST" && w.Header().Get("Cache-Control") != "no-store" && c.status != 400 && c.status != 404 && c.status != 405 {
			t.Errorf("%s %s %.40s: got %d %v, want %d, not cached", c.method, c.path, c.body, w.Code, w.Header(), c.status)
		}
		if allow := w.Header().Get("Allow"); c.status == 405 && (allow == site.PostOnly.Allow()) != strings.Contains(c.path, "Batch") {
			t.Errorf("%s %s: got Allow %q, want that of the route", c.method, c.path, allow)
		}
	}
	w := answerTo(handler, "OPTIONS", batchPath, nil)
	if got := w.Header().Get("Access-Control-Allow-Methods"); w.Code != 204 || !strings.Contains(got, "POST") {
		t.Errorf("preflight: got %d, %q, want POST allowed", w.Code, got)
	}
	request, err := http.NewRequestWithContext(t.Context(), "POST", batchPath, strings.NewReader(`["one.eth"]`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("If-None-Match", "*")
	if w := serveOne(handler, request); w.Code != 200 {
		t.Errorf("If-None-Match: got %d, want 200: nothing is cached", w.Code)
	}
}

// A body without a length is as limited as one with.
func TestBatchWithoutLength(t *testing.T) {
	s := startEFP(t, server.Options{})
	for size, status := range map[int]int{site.MaxBatchBytes: 200, site.MaxBatchBytes + 1: 413, 10 * site.MaxBatchBytes: 413} {
		body := io.MultiReader(strings.NewReader(`["one.eth"]`), strings.NewReader(strings.Repeat(" ", size-len(`["one.eth"]`)))) // hides the length
		response, err := http.Post(s+batchPath, "application/json", body)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != status {
			t.Errorf("%d bytes: got %d, want %d", size, response.StatusCode, status)
		}
	}
}

func startEFP(t *testing.T, o server.Options) (base string) {
	t.Helper()
	return listenWithin(t, newHandler(t, storage.NewFolder(smallEFP(t)), o), server.Limits{DrainTimeout: time.Millisecond})
}

// Clients that send a part of a body and wait hold only that part: other requests, including
// batches, are answered.
func TestSlowBatches(t *testing.T) {
	const timeout = time.Minute
	s := startEFP(t, server.Options{Timeout: timeout})
	for range 40 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "POST "+batchPath+" HTTP/1.1\r\nHost: x\r\nContent-Length: 131072\r\n\r\n["); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(100 * time.Millisecond)
	begun := time.Now()
	response, err := http.Get(s + "/api/v1/users/one.eth/followers?limit=20&sort=followers")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if took := time.Since(begun); response.StatusCode != 200 || took > timeout/2 {
		t.Errorf("a concurrent page: got %d after %v, want 200 at once", response.StatusCode, took)
	}
	begun = time.Now()
	if response, err = http.Post(s+batchPath, "application/json", strings.NewReader(`["one.eth"]`)); err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if took := time.Since(begun); response.StatusCode != 200 || took > timeout/2 {
		t.Errorf("a concurrent batch: got %d after %v, want 200 at once", response.StatusCode, took)
	}
}

// A connection goes on after a batch whose end is beyond doubt.
func TestConnectionsGoOnAfterABatch(t *testing.T) {
	base := listenWithin(t, efpHandler(t, smallEFP(t)), server.Limits{})
	const batch = `["0x0101010101010101010101010101010101010101"]`
	request := fmt.Sprintf("POST "+batchPath+" HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(batch), batch)
	replies := exchange(t, base, request+request+"GET /_site HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if got := statuses(replies); fmt.Sprint(got) != "[200 200 200]" {
		t.Errorf("two batches and a root on one connection: got %v, want three answers", got)
	}
	chunked := "POST " + batchPath + " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" +
		fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(batch), batch)
	if got := statuses(exchange(t, base, chunked+request)); fmt.Sprint(got) != "[200]" {
		t.Errorf("after chunks: got %v, want the end of the connection", got)
	}
}

// Account number 1 of longSnapshot: its primary list 1 holds thousands of accounts, as its list 2 does, and
// thousands hold it.
const (
	longHeld      = 3456
	longFollowers = 2345
)

// longSnapshot returns a graph with lists and followers of several shards. Every fifth record blocks or mutes, so
// that the follows of a shard begin elsewhere than its rows.
func longSnapshot() fstest.MapFS { return efpSnapshot(1, longHeld, longFollowers) }

// longSite returns the site of longSnapshot. It is made once.
func longSite(t testing.TB) afero.Fs {
	t.Helper()
	longOnce.Do(func() { longFiles = efpSite(t, afero.FromIOFS{FS: longSnapshot()}, "") })
	return longFiles
}

var (
	longOnce  sync.Once
	longFiles afero.Fs
)

// efpSnapshot is longSnapshot with the given numbers of records and followers.
func efpSnapshot(seed uint64, held, followers int) fstest.MapFS {
	r := rand.New(rand.NewPCG(seed, 5))
	var lists, accounts, records strings.Builder
	list := func(token, account int) {
		fmt.Fprintf(&lists, `{"token_id":"%d","owner":"%s"}`+"\n", token, numbered(account))
	}
	record := func(token, about int) {
		tags := []string{`"block"`, `"mute"`, `"top8"`, `"a"`, ``, ``, ``, ``, ``, ``}[r.IntN(10)]
		fmt.Fprintf(&records, `{"token_id":"%d","version":1,"record_type":"address","data":"%s","tags":[%s],"added":"2025-01-01T00:00:%02dZ"}`+"\n",
			token, numbered(about), tags, r.IntN(60))
	}
	list(1, 1)
	list(2, 1)
	fmt.Fprintf(&accounts, `{"address":"%s","primary_list":"1","ens":{"name":"one.eth"}}`+"\n", numbered(1))
	for i := range held {
		record(1, 10+i)
		record(2, 20+i)
	}
	for i := range followers {
		token, account := 100+i, 1000+i
		list(token, account)
		fmt.Fprintf(&accounts, `{"address":"%s","primary_list":"%d","ens":{"name":"n%d.eth","avatar":"x","records":{"url":"y"}}}`+"\n", numbered(account), token, i)
		record(token, 1)
		for range r.IntN(4) {
			record(token, 10+r.IntN(50))
		}
	}
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"lists.ndjson": lists.String(), "accounts.ndjson": accounts.String(), "records.ndjson": records.String(), "events.ndjson": "", "badges.ndjson": "",
		"meta.json": `{"format":1,"as_of":"2026-11-01T00:00:00Z"}`,
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

// A counting store counts the requests to it, and takes time for each.
type counting struct {
	server.Store
	away     atomic.Int64 // nanoseconds
	requests atomic.Int64
}

func (s *counting) Get(ctx context.Context, key site.Key) ([]byte, error) {
	s.requests.Add(1)
	select {
	case <-time.After(time.Duration(s.away.Load())):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.Store.Get(ctx, key)
}

// longPaths returns the pages of the long lists and followers.
func longPaths() (paths []string) {
	for _, of := range []string{"users/" + numbered(1), "users/one.eth", "lists/1", "lists/2"} {
		for _, page := range []string{"following", "allFollowing", "followers", "allFollowers"} {
			for _, sort := range []string{"latest", "earliest", "followers"} {
				paths = append(paths, fmt.Sprintf("/api/v1/%s/%s?sort=%s", of, page, sort))
			}
		}
		paths = append(paths, "/api/v1/"+of+"/latestFollowers?x", "/api/v1/"+of+"/searchFollowing?x", "/api/v1/"+of+"/searchFollowers?x")
	}
	return paths
}

// TestPagesOfLongLists compares pages of several shards with a naive computation.
func TestPagesOfLongLists(t *testing.T) {
	t.Parallel()
	graph, err := naive.Load(longSnapshot(), naive.Config{})
	if err != nil {
		t.Fatal(err)
	}
	handler := efpHandler(t, longSite(t))
	r := rand.New(rand.NewPCG(1, 2))
	for i, path := range longPaths() {
		for j, more := range []string{
			"&offset=90&limit=10", "&offset=91&limit=10", fmt.Sprintf("&offset=%d&limit=%d", r.IntN(3500), 1+r.IntN(1000)), "&offset=990&limit=100",
			fmt.Sprintf("&offset=%d", r.IntN(3500)), "&offset=3400&limit=1000", "&tags=top8,a&limit=50&offset=20", "&tags=mute&limit=1000", "&tags=none",
			"&include=ens&limit=30&offset=2000", "&term=n1&limit=100&offset=30", "&term=" + url.QueryEscape(numbered(2000)),
		} {
			if (i+j)%servers.Rounds(4, 1) != 0 {
				continue
			}
			sameAsTwin(t, "long lists", handler, graph, getOf(path+more))
		}
	}
}

// TestRequestsToTheStore: a computation reads few objects.
func TestRequestsToTheStore(t *testing.T) {
	t.Parallel()
	files := longSite(t)
	check := func(path string, most int64) {
		t.Helper()
		fewRequests(t, storage.NewFolder(files), path, most)
	}
	for _, path := range longPaths() {
		most := int64(2)
		if strings.Contains(path, "lists/2/") && strings.Contains(path, "ollowers?") {
			most = 3 // states of followers are in the records of a non-primary list
		}
		check(path+"&limit=20", most)
		check(path+"&offset=90&limit=10", most)
		if !strings.Contains(path, "sort=followers") {
			check(path+"&offset=1300&limit=10", most+1) // the shard, or two
		}
	}
	user, list, unknown := "/api/v1/users/"+numbered(1), "/api/v1/lists/1", "/api/v1/users/0x00000000000000000000000000000000deadbeef"
	for path, most := range map[string]int64{
		unknown + "/account": 1, unknown + "/followers": 1, unknown + "/following?limit=20&sort=followers": 1, unknown + "/ens": 1,
		user + "/ens": 1, user + "/simple-profile": 2, user + "/primary-list": 1, user + "/list-records": 2, user + "/allFollowingAddresses": 2,
		list + "/" + numbered(11) + "/buttonState": 1, user + "/" + numbered(11) + "/buttonState": 2, user + "/" + numbered(1001) + "/followerState": 2,
		list + "/" + numbered(1001) + "/followerState": 3, "/api/v1/exportState/1": 1, list + "/allFollowingAddresses": 1,
		user + "/commonFollowers?leader=" + numbered(11): 4, user + "/recommended": 3, "/api/v1/discover?offset=3": 1,
		"/api/v1/leaderboard/ranked?offset=20": 1, "/api/v1/leaderboard/ranked?sort=followers": 6, "/api/v1/leaderboard/search?term=n1&limit=20": 8,
	} {
		check(path, most)
	}
	store := &counting{Store: storage.NewFolder(files)}
	handler := newHandler(t, store, server.Options{})
	before := store.requests.Load()
	if w := answerTo(handler, "POST", list+"/buttonStateBatch", []byte(`["`+numbered(11)+`","`+numbered(12)+`"]`)); w.Code != 200 || store.requests.Load()-before != 1 {
		t.Errorf("a batch of addresses: got %d after %d requests to the store, want 200 after 1", w.Code, store.requests.Load()-before)
	}
}
