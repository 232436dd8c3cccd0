package live_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/site"
)

// TestAnswersAreOfOneGraph sends random requests during random rounds. Each answer must equal, byte
// for byte, the answer of serve for the graph in X-Heads. That graph must have been current at some
// time during the request.
func TestAnswersAreOfOneGraph(t *testing.T) {
	t.Parallel()
	for _, api := range []string{site.APISpec, site.APIEFP} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			o := options(api)
			if api == site.APIEFP { // what happened lately counts from the time of each graph
				o.Generator.Config.HistoryWindow = site.Window(site.DefaultHistoryWindow)
			}
			rounds, graphs := servers.Rounds(12, 400), 4
			var snapshots []afero.Fs
			var twins []http.Handler
			var asked []naive.Request
			for seed := range uint64(graphs) {
				files := naive.Random(seed)
				snapshots = append(snapshots, afero.FromIOFS{FS: files})
				twins = append(twins, served(t, snapshots[seed], o))
				asked = append(asked, someRequests(t, files, seed)...)
			}
			var answered atomic.Uint64 // the newest block that was served for sure
			o.Hooks.Round = func(end live.RoundEnd) { answered.Store(end.Heads[0].Block) }
			l := run(t, o)
			var of sync.Map // the number of the snapshot of each block
			random := rand.New(rand.NewPCG(1, 2))
			send := func(number uint64, graph int, changed bool) {
				of.Store(number, graph)
				if changed {
					l.serve(t, atBlock(number, snapshots[graph]), live.NewGraph)
				} else {
					l.serve(t, atBlock(number, nil), live.NewHeads)
				}
			}
			send(1, 0, true)
			ctx, cancel := context.WithCancel(t.Context())
			var askers sync.WaitGroup
			var checked [2]atomic.Int64 // answers 200, and others
			for asker := range uint64(3) {
				askers.Go(func() {
					random := rand.New(rand.NewPCG(asker, 3))
					for ctx.Err() == nil {
						r := asked[random.IntN(len(asked))]
						before := answered.Load()
						got := do(l, r)
						number, graph, err := graphOf(got, &of)
						if err != nil || number < before {
							t.Errorf("%s: got X-Heads %q, want a graph of block %d or later", r, got.Header().Get("X-Heads"), before)
							return
						}
						if err := sameAnswer(got, do(twins[graph], r)); err != nil {
							t.Errorf("%s at block %d: %v", r, number, err)
							return
						}
						checked[min(1, got.Code-http.StatusOK)].Add(1)
					}
				})
			}
			graph := 0
			for number := uint64(2); number < uint64(rounds); number++ {
				changed := random.IntN(3) > 0
				if changed {
					graph = random.IntN(graphs)
				}
				send(number, graph, changed)
			}
			cancel()
			askers.Wait()
			if ok, others := checked[0].Load(), checked[1].Load(); ok < 50 || others < 5 {
				t.Errorf("answers: got %d of status 200 and %d others, want many", ok, others)
			}
		})
	}
}

// someRequests are requests that a site of a graph answers, and others.
func someRequests(t testing.TB, files fs.FS, seed uint64) []naive.Request {
	t.Helper()
	graph, err := naive.Load(files, naive.Config{HistoryWindow: site.DefaultHistoryWindow}) // those about operations are 404 under the specification
	if err != nil {
		t.Fatal(err)
	}
	return naive.Requests(rand.New(rand.NewPCG(seed, 0)), graph, 400)
}

func do(h http.Handler, r naive.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(r.Method, r.URL(), strings.NewReader(string(r.Body))))
	return w
}

// graphOf returns the block of an answer, and the number of its graph.
func graphOf(w *httptest.ResponseRecorder, of *sync.Map) (number uint64, graph int, err error) {
	text, ok := strings.CutPrefix(w.Header().Get("X-Heads"), fmt.Sprint(base)+":")
	number, err = strconv.ParseUint(text, 10, 64)
	n, known := of.Load(number)
	if !ok || err != nil || !known {
		return 0, 0, fmt.Errorf("no such block: %q", text)
	}
	return number, n.(int), nil
}

// sameAnswer compares answers as clients see them, except for age and cache lifetime.
func sameAnswer(got, want *httptest.ResponseRecorder) error {
	if got.Code != want.Code || got.Body.String() != want.Body.String() {
		return fmt.Errorf("got %d and %.300s, want %d and %.300s", got.Code, got.Body, want.Code, want.Body)
	}
	for _, name := range []string{"Etag", "Content-Type", "Content-Length", "Allow", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers"} {
		if got.Header().Get(name) != want.Header().Get(name) {
			return fmt.Errorf("%s: got %q, want %q", name, got.Header().Get(name), want.Header().Get(name))
		}
	}
	return nil
}
