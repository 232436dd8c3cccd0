package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/storage"
)

// A Source makes rounds. follow.Follower is one.
type Source interface {
	// Next waits for the next round: new heads, and a snapshot if the graph changed. The first round has a snapshot. An
	// error is final: the source itself retries temporary failures. One goroutine at a time calls Next.
	Next(ctx context.Context) (source.Round, error)
}

// A Bucket stores refreshed data below site.RefreshPrefix. If the site is published to it too, Live also answers its
// reports. storage.OpenBucket opens one.
type Bucket interface {
	server.Bucket
	// List calls found for each object whose key begins with prefix and sorts after a key, in the order of keys.
	List(ctx context.Context, prefix, after site.Key, found func(storage.Info) error) error
}

// Options of a Live. The zero value of a field means the default that its comment names.
type Options struct {
	// Generator makes the graphs, by Config, Workers, SkipInvalid and BadgesAsOf alone. A zero BadgesAsOf means that
	// refreshed badges are always newer than those of the snapshots.
	Generator generator.Options
	// Server bounds answers and names the upstreams of refreshes. CacheControl and ProblemCacheControl have defaults of
	// this package; Poll is ignored.
	Server server.Options
	Kept   Bucket // required if Server.Refresh names an upstream; may be nil otherwise

	MaxLag     time.Duration // a longer lag of a chain makes every answer a 503; 15 min
	MaxWait    time.Duration // bounds Prefer: wait, and applies to X-After without Prefer; 10 s
	MaxWaiting int           // bounds requests that wait for a block; more are answered at once; 1,024. One client has an eighth at most, by Server.Refresh.Proxies
	MaxStreams int           // maximum number of event streams, default 10,000; one client may have an eighth of these; more get a 503

	Hooks Hooks
	Log   *slog.Logger // slog.Default()
}

// Cache-Control of answers that caches may keep, unless Options.Server says otherwise.
const (
	DefaultCacheControl        = "public, max-age=2, stale-while-revalidate=10, stale-if-error=86400"
	DefaultProblemCacheControl = "public, max-age=2"
)

// Hooks are for metrics. One goroutine at a time calls them; they must return soon and may be nil.
type Hooks struct {
	Round func(RoundEnd)
	// Answered is called for each chain with new blocks in the graph that now answers, except in the first round. took is
	// the age of the newest block.
	Answered func(chain uint64, took time.Duration)
}

// An Outcome describes how a round ended.
type Outcome string

// Outcomes of rounds.
const (
	NewGraph  Outcome = "graph"     // a new graph serves
	NewHeads  Outcome = "heads"     // only heads have moved
	Refreshed Outcome = "refreshed" // a new graph serves that differs only in refreshed objects
	Failed    Outcome = "failed"    // the old graph serves on
)

// A RoundEnd describes how a round ended.
type RoundEnd struct {
	Outcome Outcome
	Err     error         // set if Failed
	Took    time.Duration // time since the source gave the round
	Heads   []source.Head // heads of the graph that serves
	Undone  []uint64      // chains with replaced blocks
	Report  *summary.Report
}

func (o Options) withDefaults() (Options, error) {
	o.MaxLag = cmp.Or(o.MaxLag, 15*time.Minute)
	o.MaxWait = cmp.Or(o.MaxWait, 10*time.Second)
	o.MaxWaiting = cmp.Or(o.MaxWaiting, 1024)
	o.MaxStreams = cmp.Or(o.MaxStreams, 10_000)
	o.Log = cmp.Or(o.Log, slog.Default())
	o.Server.Log = cmp.Or(o.Server.Log, o.Log)
	o.Server.CacheControl = cmp.Or(o.Server.CacheControl, DefaultCacheControl)
	o.Server.ProblemCacheControl = cmp.Or(o.Server.ProblemCacheControl, DefaultProblemCacheControl)
	if o.MaxLag < 0 || o.MaxWait < 0 || o.MaxWaiting < 0 || o.MaxStreams < 0 {
		return o, errors.New("the limits of lag, waits and streams must not be negative")
	}
	if o.Server.Refresh.Refreshes() && o.Kept == nil {
		return o, errors.New("refreshes need a bucket or a folder that keeps them")
	}
	if o.Generator.BadgesAsOf.IsZero() {
		o.Generator.BadgesAsOf = time.UnixMilli(0)
	}
	o.Server.Refresh.BadgesAsOf, o.Server.Refresh.InMemory = o.Generator.BadgesAsOf, true
	o.Generator.Config.ExplorerKeys = "" // answers from memory are not signed
	var err error
	o.Generator.Config, err = o.Generator.Config.WithDefaults()
	return o, err
}

// A Live is an http.Handler that answers from the newest graph of a source. It is safe for concurrent use.
type Live struct {
	Options
	source Source
	shared *server.Shared
	kept   *kept // nil for none
	clock  clock
	events *events

	state            atomic.Pointer[state] // nil before the first graph
	waiting, streams places
	graphs           graphs
	ended            chan struct{} // closed when Run ends, which ends all waits
	merge            chan struct{} // has one element if refreshed objects ask for a new graph

	mostReplaced int64 // see the constant

	// Of Run.
	rounds  rounds
	working sync.WaitGroup

	mu     sync.Mutex
	status Status            // the part of Status that is not in state; under mu
	undone map[uint64]uint64 // rounds that replaced blocks, by chain; under mu
}

// A state is the view of requests: one graph, and the blocks read of its chains.
type state struct {
	graph   *graph
	number  uint64 // number of the round that made the graph
	asOf    time.Time
	heads   []seenHead
	headers [3]header
	lagsAt  time.Duration // by the clock: when the first of its chains lags
	next    chan struct{} // closed when another state has replaced this one
}

// New returns a Live without a graph: until Run has made one, every answer is a 503.
func New(from Source, o Options) (*Live, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	shared, err := server.NewShared(o.Server)
	if err != nil {
		return nil, err
	}
	l := &Live{
		Options: o, source: from, shared: shared, clock: newClock(), waiting: newPlaces(o.MaxWaiting), streams: newPlaces(o.MaxStreams), ended: make(chan struct{}), merge: make(chan struct{}, 1),
		mostReplaced: mostReplaced,
		events:       newEvents(), status: Status{Rounds: map[Outcome]uint64{}}, undone: map[uint64]uint64{},
	}
	l.graphs.freed = make(chan struct{})
	if o.Kept != nil {
		l.kept = newKept(o.Kept, l)
	}
	return l, nil
}

// Metrics returns an HTTP handler that exposes the metrics of all answers in the formats of Prometheus.
func (l *Live) Metrics() http.Handler { return l.shared.Metrics() }

// Run makes a graph of each round until ctx ends, and then returns nil; an error of the source ends it too. Call it once.
// When it returns, waiting requests and streams have ended, and the last graph continues to answer.
func (l *Live) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer l.working.Wait()
	defer cancel()
	defer close(l.ended)
	if l.kept != nil {
		begin, cancel := context.WithTimeout(ctx, keptFirst) // an unreachable bucket must not delay answers for long
		if err := l.kept.read(begin); err != nil && ctx.Err() == nil {
			l.Log.Warn("cannot read stored refreshes, will retry", "error", err)
		}
		cancel()
		l.working.Go(func() { l.kept.watch(ctx) })
	}
	type next struct {
		round source.Round
		err   error
	}
	asked, given := make(chan struct{}, 1), make(chan next, 1)
	l.working.Go(func() {
		for {
			select {
			case <-asked:
				round, err := l.source.Next(ctx)
				given <- next{round, err}
			case <-ctx.Done():
				return
			}
		}
	})
	asked <- struct{}{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case n := <-given:
			if n.err != nil && ctx.Err() != nil {
				return nil
			}
			if n.err != nil {
				return fmt.Errorf("follow: %w", n.err)
			}
			l.take(ctx, n.round)
			asked <- struct{}{}
		case <-l.merge:
			l.remake(ctx)
		}
	}
}

// Close stops the goroutines of the last graph. Call it once, after Run has returned and all requests are answered.
func (l *Live) Close() {
	if s := l.state.Load(); s != nil {
		s.graph.handler.Close()
	}
}

// Rounds are the state of Run.
type rounds struct {
	snapshot afero.Fs // snapshot of the newest round that had one
	pending  source.Round
	failed   bool // whether pending is not served yet, because a graph could not be made
	retryAt  time.Duration
	backoff  time.Duration
}

const (
	firstBackoff   = time.Second
	longestBackoff = 30 * time.Second
)

// take serves a round. If its graph cannot be made, the old graph and its heads serve on, and the next round includes
// this one.
func (l *Live) take(ctx context.Context, r source.Round) {
	begun := l.clock.now()
	p := &l.rounds
	if r.Snapshot != nil {
		p.snapshot = r.Snapshot
	}
	if p.failed {
		r = joined(p.pending, r)
	}
	if r.Snapshot == nil && l.state.Load() != nil {
		l.move(r.Heads, r.Undone)
		l.end(RoundEnd{Outcome: NewHeads, Took: l.clock.now() - begun, Heads: r.Heads, Undone: r.Undone})
		return
	}
	p.pending, p.failed = r, true
	if p.backoff > 0 && begun < p.retryAt {
		return
	}
	report, err := l.serve(ctx, r)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		p.backoff = min(max(2*p.backoff, firstBackoff), longestBackoff)
		p.retryAt = l.clock.now() + p.backoff
		l.Log.Error("no graph could be made of a round, the old one serves on", "error", err, "again_after", p.backoff)
		l.end(RoundEnd{Outcome: Failed, Err: err, Took: l.clock.now() - begun, Heads: l.servedHeads()})
		return
	}
	p.pending, p.failed, p.backoff = source.Round{}, false, 0
	l.end(RoundEnd{Outcome: NewGraph, Took: l.clock.now() - begun, Heads: r.Heads, Undone: r.Undone, Report: report})
}

// joined returns a round joined with the failed one before it.
func joined(was, is source.Round) source.Round {
	if is.Snapshot == nil {
		is.Snapshot = was.Snapshot
	}
	is.Undone = union(was.Undone, is.Undone, cmp.Compare)
	is.Lists = union(was.Lists, is.Lists, cmp.Compare)
	is.Accounts = union(was.Accounts, is.Accounts, func(a, b site.Address) int { return slices.Compare(a[:], b[:]) })
	return is
}

func union[T comparable](a, b []T, compare func(a, b T) int) []T {
	return slices.Compact(slices.SortedFunc(slices.Values(slices.Concat(a, b)), compare))
}

// remake makes the graph of the last snapshot again, with newer refreshed data.
func (l *Live) remake(ctx context.Context) {
	s := l.state.Load()
	if s == nil || l.rounds.failed { // the next round merges it
		return
	}
	begun := l.clock.now()
	heads := l.servedHeads()
	report, err := l.make(ctx, l.rounds.snapshot, func(g *graph) *state { return l.newState(g, s.number, s.heads) })
	switch {
	case ctx.Err() != nil:
	case err != nil:
		l.Log.Error("cannot merge refreshed objects into a new graph, the old one serves on", "error", err)
		l.end(RoundEnd{Outcome: Failed, Err: err, Took: l.clock.now() - begun, Heads: heads})
	default:
		l.end(RoundEnd{Outcome: Refreshed, Took: l.clock.now() - begun, Heads: heads, Report: report})
	}
}

// serve makes the graph of a round and lets it answer.
func (l *Live) serve(ctx context.Context, r source.Round) (*summary.Report, error) {
	was := l.state.Load()
	number := uint64(1)
	if was != nil {
		number = was.number + 1
	}
	var is *state
	report, err := l.make(ctx, r.Snapshot, func(g *graph) *state {
		is = l.newState(g, number, l.see(r.Heads))
		return is
	})
	if err != nil {
		return nil, err
	}
	l.countUndone(r.Undone)
	if was == nil {
		l.events.begin(number)
		l.Log.Info("serving", "as_of", is.asOf, "heads", is.headers[1].values[0], "accounts", report.Counts.Accounts)
		return report, nil
	}
	l.events.add(number, encodeRound(is, r))
	if l.Hooks.Answered != nil {
		for i, h := range is.heads {
			if i >= len(was.heads) || h.Block != was.heads[i].Block {
				l.Hooks.Answered(h.Chain, l.clock.since(h.Time))
			}
		}
	}
	return report, nil
}

// make makes a graph and swaps it in, with the result of stateOf as its state.
func (l *Live) make(ctx context.Context, snapshot afero.Fs, stateOf func(*graph) *state) (*summary.Report, error) {
	if err := l.graphs.wait(ctx); err != nil {
		return nil, err
	}
	runtime.GC() // frees memory before the next graph takes it
	o := l.Generator
	mark := uint64(0)
	if l.kept != nil {
		var merged keptSnapshot
		merged, mark = l.kept.snapshot()
		o.Refreshed = merged
	}
	made, report, err := generator.OpenLive(ctx, snapshot, o)
	if err != nil {
		return nil, err
	}
	asOf, err := time.Parse(time.RFC3339, report.AsOf)
	if err != nil {
		return nil, fmt.Errorf("as_of: %w", err) // does not happen: the reader has checked it
	}
	g := newGraph(l, made, asOf)
	if g.handler, err = l.shared.Handler(ctx, g); err != nil {
		return nil, err
	}
	install := func() { l.install(stateOf(g)) }
	if l.kept == nil {
		install()
		return report, nil
	}
	if err := l.kept.catchUp(ctx, g, mark, install); err != nil {
		g.handler.Close()
		return nil, err
	}
	return report, nil
}

// install makes a state the current one, and frees the graph of the last one once no request needs it.
func (l *Live) install(s *state) {
	was := l.state.Load()
	l.state.Store(s)
	if was == nil || was.graph != s.graph {
		l.graphs.add()
		l.shared.Use(s.graph.handler)
	}
	if was == nil {
		return
	}
	close(was.next)
	if was.graph != s.graph {
		was.graph.release()
	}
}

// move advances the heads of the serving graph, when the new blocks do not change it.
func (l *Live) move(heads []source.Head, undone []uint64) {
	l.countUndone(undone)
	s := l.state.Load()
	l.install(l.newState(s.graph, s.number, l.see(heads)))
}

func (l *Live) newState(g *graph, number uint64, heads []seenHead) *state {
	s := &state{graph: g, number: number, heads: heads, next: make(chan struct{})}
	s.fill(l.MaxLag, g.asOf)
	return s
}

func (l *Live) servedHeads() (heads []source.Head) {
	if s := l.state.Load(); s != nil {
		for _, h := range s.heads {
			heads = append(heads, h.Head)
		}
	}
	return heads
}

// end reports how a round ended.
func (l *Live) end(r RoundEnd) {
	l.mu.Lock()
	l.status.ended(r, l.Generator.Config)
	l.mu.Unlock()
	if l.Hooks.Round != nil {
		l.Hooks.Round(r)
	}
}
