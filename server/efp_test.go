package server_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// efpSite makes a site of the whole API in memory.
func efpSite(t testing.TB, snapshot afero.Fs, names string) afero.Fs {
	t.Helper()
	files, _, err := generator.ToMemory(t.Context(), snapshot, generator.Options{
		NoSync: true, Config: site.Config{API: site.APIEFP, Names: names},
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
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
	files, _, err := generator.ToMemory(t.Context(), conformanceSnapshot(), generator.Options{
		NoSync: true, Config: site.Config{API: site.APIEFP, BadgesField: "badges"},
	})
	if err != nil {
		t.Fatal(err)
	}
	base := serve(t, storage.NewFolder(files))
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
				status, _, want := graph.Answer(r.Method, r.Path, r.RawQuery, r.Body)
				got := answerTo(handler, r.Method, r.URL(), r.Body)
				body := got.Body.Bytes()
				if got.Code != status || status == 200 && r.Method != "HEAD" && !bytes.Equal(body, want) {
					at := 0
					for at < min(len(body), len(want)) && body[at] == want[at] {
						at++
					}
					at = max(0, at-60)
					t.Errorf("seed %d, %s: got %d and …%.300s, want %d and …%.300s", seed, r, got.Code, body[min(at, len(body)):], status, want[min(at, len(want)):])
				}
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
