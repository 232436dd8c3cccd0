package follow

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain"
	"github.com/followpress/followpress/source/chain/provider"
)

const (
	auditEvery    = 5 * time.Minute // between two requests for logs that bloom filters ruled out
	finalEvery    = time.Minute     // between two requests for the finalized block, while events are waiting
	stalled       = time.Minute     // without a new block before another node is asked
	dialAgain     = 5               // consecutive failures before nodes are asked for their chain again
	mostDebt      = 20
	longestPause  = time.Minute // between attempts to connect
	shortestPause = time.Second
)

// A link follows one chain in its own goroutine.
type link struct {
	o      *Options
	chain  source.Chain
	clock  clock
	notify func() // reports a change of a field below
	kick   func() // the state must be read again

	mu     sync.Mutex
	tail   tailState
	now    ChainStatus
	spent  int64 // requests of earlier connections and of Sync
	nodes  *provider.Chain
	final  uint64                // newest finalized block reported by a node
	base   *provider.Block       // new base for the tail
	doubt  bool                  // makes the tail ignore bloom filters
	polled bool                  // nodes have answered at least once
	heard  map[string]NodeStatus // by host
}

// A tailState is a copy of a Tail's content.
type tailState struct {
	head   provider.Block
	blocks []chain.TailBlock // blocks with events
	reorgs uint64
}

func (l *link) status() ChainStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.now
	s.Requests = l.spent + l.requests()
	s.Nodes = slices.SortedFunc(maps.Values(l.heard), func(a, b NodeStatus) int { return strings.Compare(a.Host, b.Host) })
	if s.Error == "" && !slices.ContainsFunc(s.Nodes, func(n NodeStatus) bool { return !n.Failing }) {
		for _, n := range s.Nodes { // they are asked again before any question fails
			s.Error = n.Host + ": " + n.Error
		}
	}
	return s
}

// hear records the outcome of an attempt at a node.
func (l *link) hear(host string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.heard[host]
	n.Host, n.Failing = host, err != nil
	if err == nil {
		n.Answered = time.Now()
	} else {
		n.Failed, n.Error = time.Now(), strings.TrimPrefix(err.Error(), host+": ")
	}
	l.heard[host] = n
}

// requests returns the requests of the connection. The caller holds the lock.
func (l *link) requests() (all int64) {
	if l.nodes == nil {
		return 0
	}
	for _, c := range l.nodes.Cost() {
		all += c.Requests
	}
	return all
}

// run follows the chain after a block until ctx ends.
func (l *link) run(ctx context.Context, base provider.Block) {
	t := &tailing{link: l, tail: chain.NewTail(l.chain, base), audited: time.Now(), moved: time.Now()}
	if !t.dial(ctx) {
		return
	}
	defer func() { t.nodes.Close() }()
	for ctx.Err() == nil {
		t.take()
		spent := l.spending()
		had := len(t.tail.WithEvents())
		head := t.tail.Head()
		err := t.poll(ctx)
		if ctx.Err() != nil {
			return
		}
		t.tell(err)
		if t.tail.Head() != head {
			t.moved = time.Now()
		} else if time.Since(t.moved) > stalled {
			t.nodes.Turn()
			t.moved = time.Now()
		}
		switch {
		case err == nil:
			t.failed = 0
		case errors.Is(err, chain.ErrReplaced):
			l.kick()
		default:
			if t.failed++; t.failed%dialAgain == 0 && !t.dial(ctx) {
				return
			}
		}
		// Requests apart from those for the newest block are saved later, unless there was news.
		if len(t.tail.WithEvents()) == had {
			t.debt = min(mostDebt, t.debt+float64(max(0, l.spending()-spent-1)))
		}
		t.wait(ctx)
	}
}

// A tailing is one run of a link.
type tailing struct {
	*link
	tail *chain.Tail

	audited, asked time.Time // time of the last request for logs, and for the finalized block
	moved          time.Time // time of the last new block or change of node
	failed         int       // consecutive attempts
	debt           float64   // requests in excess of one per poll
}

// dial connects to the nodes; it returns false if ctx ends first.
func (t *tailing) dial(ctx context.Context) bool {
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		nodes, err := provider.Dial(ctx, t.chain.ID, t.o.URLs[t.chain.ID], t.o.tail())
		if err == nil {
			t.mu.Lock()
			t.spent += t.requests()
			old := t.nodes
			t.nodes = nodes
			t.mu.Unlock()
			if old != nil {
				old.Close()
			}
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		t.tell(err)
		if t.nodes != nil {
			return true // keep the old ones
		}
		if !sleep(ctx, pause) {
			return false
		}
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// take passes results of others to the tail.
func (t *tailing) take() {
	t.mu.Lock()
	base, doubt := t.base, t.doubt
	t.base, t.doubt = nil, false
	t.mu.Unlock()
	if base != nil {
		t.tail.Rebase(*base)
	}
	if doubt {
		t.tail.Distrust()
	}
}

// poll fetches new blocks, and now and then audits the nodes.
func (t *tailing) poll(ctx context.Context) (err error) {
	err = t.tail.Poll(ctx, t.nodes)
	if err == nil && time.Since(t.audited) > auditEvery {
		t.audited = time.Now()
		err = t.tail.Audit(ctx, t.nodes)
	}
	if err == nil && len(t.tail.WithEvents()) > 0 && time.Since(t.asked) > finalEvery {
		t.asked = time.Now()
		var b provider.Block
		if b, err = t.nodes.Finalized(ctx); err == nil {
			t.mu.Lock()
			t.final = b.Number
			t.mu.Unlock()
		}
	}
	return err
}

// tell publishes the position of the tail, and its error.
func (t *tailing) tell(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now.Error = ""; err != nil {
		t.now.Error = err.Error()
		t.o.Log.Info("no news", "chain", t.chain.ID, "error", err)
	}
	is := tailState{t.tail.Head(), t.tail.WithEvents(), t.tail.Reorganisations()}
	if is.head != t.link.tail.head {
		t.now.Block, t.now.Time = is.head.Number, is.head.Time*1000
		t.now.Seen, t.now.Behind = time.Now(), t.clock.since(is.head.Time)
	}
	t.now.Reorganisations, t.link.tail = is.reorgs, is
	t.polled = t.polled || err == nil
	t.notify()
}

// wait waits until the next poll.
func (t *tailing) wait(ctx context.Context) {
	pause := t.o.Poll
	if t.debt > 0 {
		t.debt -= 0.1
		pause += t.o.Poll / 10
	}
	sleep(ctx, pause)
}

// spending returns the number of requests so far.
func (l *link) spending() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spent + l.requests()
}

// rebase makes the tail begin after a block that the state now has. doubt makes it ignore bloom
// filters.
func (l *link) rebase(b provider.Block, doubt bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.base, l.doubt = &b, l.doubt || doubt
}

// state returns the content of the tail.
func (l *link) state() (s tailState, polled bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tail, l.polled
}

// due reports whether there are final events after block base, the last one of the state.
func (l *link) due(base uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.tail.blocks {
		if base < b.Number && b.Number <= l.final {
			return true
		}
	}
	return false
}
