package publisher

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/rounds"
	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	follow "github.com/followpress/followpress/source"
)

// within is the time in which all processes start.
const within = 90 * time.Second

func (w *world) site(parts ...string) simulatedSite {
	sites := w.sites()
	if w.versions && w.chance(500, append(parts, "older")...) {
		sites = sites[len(sites)/2:]
	} else if w.versions {
		sites = sites[:len(sites)/2]
	}
	if i := w.draw(parts...) % 11; i < 10 { // the last one shares no object with the others, which takes long
		return sites[i%uint64(len(sites)-1)]
	}
	return sites[len(sites)-1]
}

// options returns the options of a process for publishing a site, or none.
func (w *world) options(p *process, s simulatedSite) Options {
	name := p.name
	p.older = s.older
	o := Options{
		clock: p.clock, anyRules: true, Signing: w.signing(name), Refreshers: w.refreshSigning().Keys, AllowRollback: w.chance(800, name, "allow rollback"), MaxChanged: []int{0, 1000, 1000}[w.draw(name, "max changed")%3],

		Concurrency: 1 + int(w.draw(name, "concurrency")%6), Lease: []time.Duration{3 * time.Second, 20 * time.Second, time.Minute, time.Minute}[w.draw(name, "lease")%4],
		Patience: 30 * time.Second, Owner: name, BreakLock: w.chance(250, name, "break"),
		memory:   []int{0, 300}[w.draw(name, "memory")%2],
		maxDelta: []int{0, 1, 2000}[w.draw(name, "delta")%3],
	}
	if o.Signing != nil {
		o.Signing.Now = func() time.Time { return p.clock().Wall }
	}
	staggered := w.process(name)
	o.stagger = func(request string) time.Duration {
		return w.between(0, time.Millisecond, name, staggered.id("stagger", site.Key(request)))
	}
	if w.trace != nil {
		o.Log = slog.New(slog.NewTextHandler(noted{w, name}, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
	}
	if o.BreakLock {
		w.count(faultBroken)
	}
	return o
}

// noted writes a log to the trace.
type noted struct {
	w    *world
	name string
}

func (n noted) Write(line []byte) (int, error) {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	n.w.note("%s: %s", n.name, strings.TrimSpace(string(line)))
	return len(line), nil
}

// sleep waits for a time that the seed decides.
func (w *world) sleep(parts ...string) { time.Sleep(w.between(0, within, parts...)) }

// publisher is a run of Publish, or of Repair.
func (w *world) publisher(name string) {
	w.sleep(name, "begin")
	p := w.process(name)
	if w.locks == conditional {
		p.stops(4 * time.Second)
	}
	next := w.site(name, "site")
	o := w.options(p, next)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if w.locks == conditional && w.chance(100, name, "interrupted") {
		w.count(faultCut)
		time.AfterFunc(w.between(0, 3*time.Second, name, "interrupt"), cancel)
	}
	for fault, at := range map[string]time.Time{faultStopped: p.stopped, faultKilled: p.killed} {
		if !at.IsZero() {
			w.count(fault)
		}
	}
	w.publish(ctx, p, name, next, o)
}

func (w *world) publish(ctx context.Context, p *process, name string, next simulatedSite, o Options) {
	var bucket Bucket = p
	if w.chance(500, name, "bulk") {
		bucket, o.packFrom = unpacking{p}, 1
	}
	w.noteFrom(name, "publishes %s (broken lock: %v, lease %v, stopped %v, killed %v)", next.root.AsOf, o.BreakLock, o.Lease, p.stopped.Sub(w.start), p.killed.Sub(w.start))
	report, err := Publish(ctx, next, bucket, o)
	w.noteFrom(name, "%s, %v", report.Outcome, err)
	w.reported(p, report, err)
}

// follower is a live process: it publishes on a clock, and stores what its clients refresh in the
// bucket.
func (w *world) follower(name string) {
	w.sleep(name, "begin")
	p := w.process(name)
	p.stops(40 * time.Second)
	w.count(faultFollower)
	answers := p.part(name + " answers")
	answers.refreshes = true
	end := w.answer(answers, w.site(name, "answers"))
	defer end()
	for i := range 3 {
		tick := name + " " + fmt.Sprint(i)
		next := w.site(tick, "site")
		run := p.part(tick)
		w.publish(context.Background(), run, tick, next, w.options(run, next))
		if p.isDead() {
			return
		}
		time.Sleep(w.between(0, within/3, tick, "next"))
	}
}

// answer answers from the graph of a site, and refreshes some of its profiles. Nobody publishes the
// answers: a later site only knows the refreshes stored in the bucket.
func (w *world) answer(p *process, s simulatedSite) (end func()) {
	feed := make(rounds.Feed, 1)
	feed <- follow.Round{Heads: []follow.Head{{Chain: 1, Block: 1, Time: time.Now().UnixMilli()}}, Snapshot: s.snapshot}
	l, err := live.New(feed, live.Options{
		Generator: generator.Options{Config: s.root.Config, Workers: 1}, Kept: p, MaxLag: 24 * time.Hour, Log: slog.New(slog.DiscardHandler),
		Server: server.Options{CacheBytes: 64 << 10, Refresh: server.RefreshOptions{
			ProfileUpstream: "http://upstream/{address}", Interval: time.Second, Rate: 1000, Transport: upstream{}, Signing: w.refreshSigning(),
		}},
	})
	if err != nil {
		w.noteFrom(p.name, "%v", err)
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		if err := l.Run(ctx); err != nil {
			w.noteFrom(p.name, "%v", err)
		}
	})
	group.Go(func() {
		for i := range 3 {
			time.Sleep(w.between(0, within/4, p.name, "refresh", fmt.Sprint(i)))
			if ctx.Err() == nil {
				w.refresh(l, s.root.Config.BasePath, w.kept, p.name, fmt.Sprint(i))
			}
		}
	})
	return func() {
		cancel()
		group.Wait()
		l.Close()
	}
}

func (w *world) noteFrom(name, format string, arguments ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(name+": "+format, arguments...)
}

// repairer runs Repair with the site in the bucket.
func (w *world) repairer(name string) {
	w.sleep(name, "begin")
	p := w.process(name)
	p.stops(4 * time.Second)
	w.mu.Lock()
	root := w.objects[site.RootKey].sum
	w.mu.Unlock()
	for _, s := range w.sites() {
		if s.entries[site.RootKey] != root {
			continue
		}
		v, err := Repair(context.Background(), s, p, w.options(p, s))
		w.noteFrom(name, "repaired %s: %v", s.root.AsOf, err)
		if v != nil && v.Repaired != nil {
			w.reported(p, v.Repaired, err)
		}
	}
}

// verifier runs Verify. Its result must be true if no publisher runs at the same time.
func (w *world) verifier(name string) {
	w.sleep(name, "begin")
	p := w.process(name)
	before, quiet := w.published(), w.isQuiet()
	damaged := w.damage(p, name)
	v, err := Verify(context.Background(), p, w.options(p, simulatedSite{}))
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.note("%s: %v", name, err)
		return
	}
	w.note("%s: missing %v, altered %v, unknown %v, foreign %v, refreshed %v", name, v.Missing.Keys, v.Altered.Keys, v.Unknown.Keys, v.Foreign.Keys, v.Refreshed.Keys)
	if !quiet || before != w.publishedLocked() || !w.quietLocked() {
		return
	}
	wrong := slices.Concat(v.Missing.Keys, v.Altered.Keys, v.Unknown.Keys, v.Foreign.Keys)
	wrong = slices.DeleteFunc(wrong, func(key site.Key) bool { return w.harmed[key] || w.isStray(key) })
	if len(wrong) > 0 {
		w.fail("%s: %v are said to be damaged, and are not", name, wrong)
	}
	if damaged != "" && w.damaged[damaged] && !slices.Contains(slices.Concat(v.Missing.Keys, v.Altered.Keys), damaged) {
		w.fail("%s: %s is damaged, and nobody says so", name, damaged)
	}
}

// damage sometimes changes an object unnoticed by any process.
func (w *world) damage(p *process, name string) site.Key {
	if !w.chance(250, name, "damage") {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var keys []site.Key
	for _, list := range lists { // these are refreshed, too
		keys = append(keys, site.Key("api/v1/lists/"+list+"/details"))
	}
	key := keys[w.draw(name, "what")%uint64(len(keys))]
	o, ok := w.objects[key]
	if !ok || w.damaged[key] {
		return ""
	}
	w.faults[faultDamaged]++
	o.body = append(slices.Clone(o.body), ' ')
	o.sum = site.Sum(o.body)
	w.objects[key] = o
	w.damaged[key], w.harmed[key] = true, true
	w.note("%s: damages %s", p.name, key)
	return key
}

// published counts the changes by publishers so far.
func (w *world) published() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.publishedLocked()
}

func (w *world) publishedLocked() int { return w.byPublishers }

// isQuiet reports whether no publisher runs and no doubt is recorded.
func (w *world) isQuiet() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.quietLocked()
}

func (w *world) quietLocked() bool {
	var lock lock.Body
	err := w.decodeLock(&lock)
	_, marked := w.objects[site.MarkKey]
	return err == nil && lock.Released && lock.Doubt == nil && !marked && !w.late
}

// fallback serves the site, watches for new ones, and refreshes some profiles.
func (w *world) fallback(ctx context.Context, name string, refreshes int) {
	p := w.process(name)
	p.refreshes = true
	h, err := server.New(ctx, p, server.Options{
		Log: slog.New(slog.DiscardHandler), CacheBytes: 64 << 10,
		Refresh: server.RefreshOptions{ProfileUpstream: "http://upstream/{address}", Interval: time.Second, Rate: 1000, Transport: upstream{}, Signing: w.refreshSigning()},
	})
	if err != nil {
		w.noteFrom(name, "%v", err)
		return
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		h.Watch(ctx)
	}()
	for i := range refreshes {
		select {
		case <-ctx.Done():
		case <-time.After(w.between(0, within/2, name, "refresh", fmt.Sprint(i))):
			base := "api/v1"
			if root := h.Root(); root != nil {
				base = root.Config.BasePath
			}
			w.refresh(h, base, w.acked, name, fmt.Sprint(i))
		}
	}
	<-watched
	h.Close()
}

// refresh requests a fresh profile, and records in acked how fresh the answer is.
func (w *world) refresh(h http.Handler, base string, acked map[string]int64, name, which string) {
	list := lists[w.draw(name, which, "list")%uint64(len(lists))]
	r := httptest.NewRequest(http.MethodGet, "/"+base+"/lists/"+list+"/details?cache=fresh", http.NoBody)
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("%s: refresh of %s: %d %s", name, list, answer.Code, answer.Header().Get("X-Refresh"))
	if details, _, err := site.DecodeDetails(answer.Body.Bytes()); err == nil && answer.Code == http.StatusOK && answer.Header().Get("X-Refresh") == "" {
		acked[list] = max(acked[list], details.ENS.Fresh)
	}
}

// upstream has a fresher profile at any time.
type upstream struct{}

func (upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	now := time.Now()
	body := fmt.Sprintf(`{"name":"","avatar":"of %s","fresh":%d}`, now.Format(time.StampNano), now.UnixMilli())
	return &http.Response{StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(strings.NewReader(body))}, nil
}
