package explorer_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/browsers/internal/browser"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/rounds"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
)

// A liveHost serves a live site whose rounds come from the test. Its methods may be called while it
// serves.
type liveHost struct {
	*host // host of its URL
	feed  rounds.Feed
	made  chan live.RoundEnd
	block uint64
	begun time.Time // time of block 0

	server *httptest.Server

	mu   sync.Mutex
	down bool
}

func serveLive(t *testing.T, snapshot afero.Fs) *liveHost {
	t.Helper()
	h := &liveHost{host: &host{prefix: "/"}, feed: make(rounds.Feed), made: make(chan live.RoundEnd, 100), block: 100, begun: time.Now().Add(-5 * time.Minute)}
	o := live.Options{Generator: generator.Options{Config: site.Config{API: site.APIEFP, Explorer: true, HistoryWindow: site.Window(site.DefaultHistoryWindow)}}, Log: slog.New(slog.DiscardHandler)}
	o.Hooks.Round = func(end live.RoundEnd) { h.made <- end }
	l, err := live.New(h.feed, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	h.round(t, snapshot)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.host.mu.Lock()
		h.requests = append(h.requests, r.URL.Path)
		h.host.mu.Unlock()
		h.mu.Lock()
		down := h.down
		h.mu.Unlock()
		if down {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		l.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		server.CloseClientConnections()
		server.Close()
	})
	h.URL, h.server = server.URL+"/", server
	return h
}

// round publishes the next round, which names accounts and lists.
func (h *liveHost) round(t *testing.T, snapshot afero.Fs, named ...string) {
	t.Helper()
	h.block++
	r := source.Round{Heads: []source.Head{{Chain: 8453, Block: h.block, Time: h.begun.Add(time.Duration(h.block) * time.Second).UnixMilli(), Finalized: 1}}, Snapshot: snapshot}
	for _, name := range named {
		if address, err := site.ParseAddress(name); err == nil {
			r.Accounts = append(r.Accounts, address)
		} else {
			r.Lists = append(r.Lists, name)
		}
	}
	h.feed <- r
	if end := <-h.made; end.Err != nil {
		t.Fatal(end.Err)
	}
}

// fall makes the host answer only errors, or restores it.
func (h *liveHost) fall(down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = down
}

const followed = "0x00000000000000000000000000000000000000ff"

// owner returns the address of the account that has a list of following.
func owner(list int) string { return fmt.Sprintf("0x%040x", 0x10000+list) }

// following returns a snapshot of lists that follow one account each, the last one latest.
func following(lists int) afero.Fs {
	var all, accounts, records strings.Builder
	for i := 1; i <= lists; i++ {
		fmt.Fprintf(&all, "{\"token_id\":\"%d\",\"owner\":%q}\n", i, owner(i))
		fmt.Fprintf(&accounts, "{\"address\":%q,\"primary_list\":\"%d\"}\n", owner(i), i)
		added := time.Date(2026, 1, 1, 0, i, 0, 0, time.UTC).Format(time.RFC3339)
		fmt.Fprintf(&records, "{\"token_id\":\"%d\",\"version\":1,\"record_type\":\"address\",\"data\":%q,\"tags\":[],\"added\":%q}\n", i, followed, added)
	}
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"meta.json": fmt.Sprintf(`{"format":1,"as_of":%q}`, time.Date(2026, 11, 1, 0, 0, lists, 0, time.UTC).Format(time.RFC3339)),
		"lists":     all.String(), "accounts": accounts.String(), "records": records.String(), "events": "", "badges": "",
	} {
		if !strings.HasSuffix(name, ".json") {
			name += ".ndjson"
		}
		files[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return afero.FromIOFS{FS: files}
}

// connected waits until the page receives rounds.
func connected(t *testing.T, p *browser.Page) {
	t.Helper()
	there(t, p)
	p.Wait("document.querySelector('.tools').innerText.includes('Live, as of')")
}

// hears waits until the page has received a round.
func hears(t *testing.T, p *browser.Page, round func()) {
	t.Helper()
	const sign = "document.querySelector('.tools').innerText"
	before := browser.Eval[string](p, sign)
	round()
	p.Wait(fmt.Sprintf("%s !== %q", sign, before))
}

// quiet waits until only the event stream of the page is open.
func quiet(p *browser.Page) {
	p.Wait("!document.querySelector('main .loading, main [aria-busy=true], main .row-waits')")
	p.Wait("(() => { const n = performance.getEntriesByType('resource').length; return new Promise((done) => setTimeout(() => done(n === performance.getEntriesByType('resource').length), 400)); })()")
}

const tabCount = "document.querySelector('main .tabs [aria-current] .count')?.innerText"

// A page of a live site shows a round that names accounts on the screen. Nothing else moves: the
// focused row keeps focus and position, and a typed text stays.
func TestLiveRows(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serveLive(t, following(400))
	p := b.Open(t, h.at("#/a/"+followed+"/followers"), browser.View{Size: browser.Desktop})
	connected(t, p)
	p.Wait(tabCount + " === '400'")
	p.Wait("document.querySelector('main .related a')")
	browser.Eval[any](p, "scrollTo(0, 5000)")
	p.Wait("document.querySelectorAll('main .related a').length > 3 && scrollY > 4000 && Number(document.querySelector('main [data-index]').dataset.index) > 30")

	// Focus a row in the middle of the screen.
	const middle = "[...document.querySelectorAll('main [role=list] a.person')].find((a) => a.getBoundingClientRect().top > innerHeight / 2)"
	focused := browser.Eval[string](p, "(() => { const a = "+middle+"; a.focus({ preventScroll: true }); globalThis.element = a; return a.getAttribute('href'); })()")
	const at = "(() => { const a = document.activeElement; return [a.getAttribute('href'), Math.round(a.getBoundingClientRect().top), a === element]; })()"
	before := browser.Eval[[]any](p, at)

	h.round(t, following(403), followed, owner(401), owner(402), owner(403), "401", "402", "403")
	p.Wait(tabCount + " === '403'")
	p.Wait("document.querySelector('main [role=list] [aria-setsize]')?.getAttribute('aria-setsize') === '403'")
	if after := browser.Eval[[]any](p, at); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the row with the focus, %s: got %v, want it as before: %v", focused, after, before)
	}
	if got := browser.Eval[string](p, "document.querySelector('.tools [role=status]').innerText"); !strings.HasPrefix(got, "Updated, as of") {
		t.Errorf("announcement: got %q, want that the page is renewed", got)
	}

	// Typed text stays.
	browser.Eval[any](p, "scrollTo(0, 0)")
	p.Click("main .asked input")
	p.Press("0x")
	p.Wait("location.hash.includes('q=0x') && !document.querySelector('main [role=status]')?.innerText.includes('Searching')")
	p.Press("0000")
	h.round(t, following(404), followed, owner(404), "404")
	p.Wait(tabCount + " === '404'")
	if got := browser.Eval[string](p, "document.activeElement.value"); got != "0x0000" {
		t.Errorf("typed: got %q in the element with the focus, want it to stay", got)
	}
	if got := browser.Eval[int](p, "document.querySelectorAll('.failed, .loading').length"); got > 0 {
		t.Errorf("got %d failures or loading parts, want none", got)
	}
	barriers(t, p)
	fits(t, p)
}

// A round about other accounts causes no requests, but the next view is current. Hidden pages wait.
func TestLiveRoundsOfOthers(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serveLive(t, following(3))
	const hide = "globalThis.away = false; Object.defineProperty(document, 'hidden', { get: () => away });"
	p := b.Open(t, h.at("#/a/"+owner(1)), browser.View{Size: browser.Phone, Before: hide})
	connected(t, p)
	quiet(p)
	h.asked()
	hears(t, p, func() { h.round(t, following(5), owner(4), owner(5)) })
	quiet(p)
	if asked := h.asked(); len(asked) > 0 {
		t.Errorf("a round about others: got requests for %q, want none", asked)
	}
	browser.Eval[any](p, fmt.Sprintf("location.hash = '#/a/%s/followers'", followed))
	p.Wait(tabCount + " === '5'")

	browser.Eval[any](p, "away = true")
	quiet(p)
	h.asked()
	hears(t, p, func() { h.round(t, following(6), followed, owner(6), "6") })
	quiet(p)
	if asked := h.asked(); len(asked) > 0 || browser.Eval[string](p, tabCount) != "5" {
		t.Errorf("a hidden page: got requests for %q, want none", asked)
	}
	browser.Eval[any](p, "away = false; document.dispatchEvent(new Event('visibilitychange'))")
	p.Wait(tabCount + " === '6'")

	// Every round updates the start.
	browser.Eval[any](p, "location.hash = '#/'")
	there(t, p)
	h.round(t, following(8), owner(7), owner(8))
	p.Wait("[...document.querySelectorAll('main .ranking .num')].some((e) => e.innerText.startsWith('8'))")
}

// While the site is unreachable, the page stays and shows its time; then it catches up without an
// error.
func TestLiveSiteThatIsAway(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serveLive(t, following(3))
	p := b.Open(t, h.at("#/a/"+followed+"/followers"), browser.View{Size: browser.Desktop})
	p.Forgive("503", "_live/events", "net::ERR")
	connected(t, p)
	p.Wait(tabCount + " === '3'")

	// The stream stays open, but all other requests fail.
	h.fall(true)
	h.round(t, following(4), followed, owner(4))
	p.Wait("performance.getEntriesByType('resource').some(({ responseStatus }) => responseStatus === 503)")
	if got := browser.Eval[string](p, tabCount); got != "3" || p.Count(".failed") > 0 {
		t.Errorf("away: got the count %s and %d failures, want the old count and none", got, p.Count(".failed"))
	}
	h.fall(false)
	p.Wait(tabCount + " === '4'")

	// The stream ends too, and the page misses a round.
	h.fall(true)
	h.server.CloseClientConnections()
	p.Wait("!document.querySelector('.tools').innerText.includes('live')")
	h.round(t, following(5), followed, owner(5))
	h.fall(false)
	p.Wait(tabCount + " === '5'")
	connected(t, p)
}

// A page of a static site requests no events, and does not mention them.
func TestNoEventsOfASiteThatIsNotLive(t *testing.T) {
	servers.Wanted(t)
	t.Parallel()
	b := browser.Start(t, browser.Options{})
	h := serve(t, demo(t), "/")
	p := b.Open(t, h.at("#/a/miralund.eth"), browser.View{Size: browser.Phone, Now: now})
	shown(t, p)
	for _, path := range h.asked() {
		if strings.Contains(path, "_live") {
			t.Errorf("got a request for %s, want none", path)
		}
	}
	if got := p.Text(".tools"); strings.Contains(got, "as of") {
		t.Errorf("got %q, want no sign", got)
	}
}
