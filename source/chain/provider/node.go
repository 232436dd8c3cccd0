package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/goccy/go-json"
	"golang.org/x/time/rate"
)

// Waits after failures, and what changes the pace of requests.
const (
	firstRest     = 500 * time.Millisecond
	longestRest   = 20 * time.Second
	slowestPace   = 0.2              // requests per second, after any number of rate limits
	paceAfter     = 0.9              // the part of what a node was found to allow that is asked of it
	measured      = time.Second      // the shortest time that the pace is measured over
	quicker       = 1.1              // the pace is tried this much higher
	quickerEvery  = 10 * time.Second // when there was no rate limit for so long
	idle          = 2 * time.Second  // without a request, though it was possible; the pace is measured anew then
	batchAttempts = 2                // failures of the first batch, before single calls are tried
)

// A node is what answers at one URL.
type node struct {
	host    string // how errors and reports name it
	origin  string // nodes of one origin are one host to a quorum
	client  *rpc.Client
	http    *http.Transport
	hide    *strings.Replacer
	o       *Options
	slots   chan struct{}
	limiter *rate.Limiter
	sizes   *sizes
	log     *slog.Logger

	sent, received atomic.Int64

	mu       sync.Mutex
	cost     Cost
	chain    uint64    // what it said; 0 before it was asked
	broken   error     // why it is not asked any more
	rest     time.Time // it is not asked until then
	why      error     // the failure that it rests for
	begun    time.Time // when the last request began
	failedAt time.Time // when rest was set
	answered time.Time // when the last answer came
	waits    *backoff.ExponentialBackOff
	batches  bool // it has answered a batch
	fewer    int  // the largest batch that it takes; 0 means that all were taken
	unbatch  int  // batches that failed before; batchAttempts means that it takes none
	paced    time.Time
	since    int // answers since paced
}

func newNode(u *url.URL, name string, o *Options) (*node, error) {
	n := &node{
		host: name, origin: u.Host, hide: hiding(u), o: o, log: o.Log, slots: make(chan struct{}, o.Concurrency),
		sizes: newSizes(o.MaxRange), waits: backoff.NewExponentialBackOff(), paced: time.Now(),
		cost: Cost{Host: name, Calls: map[string]int64{}},
	}
	n.limiter = rate.NewLimiter(rate.Inf, 1)
	if o.Rate > 0 {
		n.limiter.SetLimit(rate.Limit(o.Rate))
	}
	n.waits.InitialInterval, n.waits.MaxInterval, n.waits.Multiplier = firstRest, longestRest, 2
	n.waits.Reset()
	over := o.transport
	if over == nil {
		n.http = n.transport()
		over = n.http
	}
	client, err := rpc.DialOptions(context.Background(), u.String(), rpc.WithHTTPClient(&http.Client{Transport: checked{over, o.MaxAnswer}}))
	if err != nil {
		return nil, err
	}
	n.client = client
	return n, nil
}

// transport has connections that count bytes. It asks for gzip and HTTP/2, as Go's own does.
func (n *node) transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ForceAttemptHTTP2 = true // a DialContext of one's own turns it off
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second}
	t.MaxIdleConnsPerHost = n.o.Concurrency
	dialer := &net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &countedConn{c, n}, nil
	}
	return t
}

type countedConn struct {
	net.Conn
	n *node
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.n.received.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.n.sent.Add(int64(n))
	return n, err
}

// checked makes failures of answers without status 2xx, also of redirects: a request may carry a
// key, which is not for other servers. It bounds the others.
type checked struct {
	http.RoundTripper
	most int64
}

// RoundTrip implements http.RoundTripper.
func (c checked) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := c.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode/100 != 2 {
		f := failedStatus(answer)
		return nil, errors.Join(f, answer.Body.Close())
	}
	answer.Body = &boundedBody{answer.Body, c.most}
	return answer, nil
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fail(asked, errors.New("the answer is too large"))
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// A call is a call of JSON-RPC, and where its result goes.
type call struct {
	method string
	args   []any
	result any
}

// one makes a request with one call. The caller has a slot.
func (n *node) one(ctx context.Context, method string, result any, args ...any) error {
	return n.request(ctx, []call{{method, args, result}}, func(ctx context.Context) error {
		return n.client.CallContext(ctx, result, method, args...)
	})
}

// together makes one request with several calls, and returns an error for each of them.
func (n *node) together(ctx context.Context, calls []call) (errs []error, err error) {
	elements := make([]rpc.BatchElem, len(calls))
	for i, c := range calls {
		elements[i] = rpc.BatchElem{Method: c.method, Args: c.args, Result: c.result}
	}
	err = n.request(ctx, calls, func(ctx context.Context) error {
		err := n.client.BatchCallContext(ctx, elements)
		if errors.As(err, new(*json.UnmarshalTypeError)) {
			return fail(asked, errors.New("its answer to several calls is not a list"))
		}
		return err
	})
	errs = make([]error, len(calls))
	for i := range elements {
		if elements[i].Error != nil {
			errs[i] = n.name(classify(ctx, elements[i].Error))
		}
	}
	return errs, err
}

// request waits for the pace, and makes a request.
func (n *node) request(ctx context.Context, calls []call, do func(context.Context) error) error {
	if err := sleep(ctx, n.limiter.Reserve().Delay()); err != nil {
		return err
	}
	n.mu.Lock()
	if now := time.Now(); now.Sub(later(n.begun, n.rest)) > idle {
		n.paced, n.since = now, 0
	}
	n.begun = time.Now()
	n.cost.Requests++
	for _, c := range calls {
		n.cost.Calls[c.method]++
	}
	n.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, n.o.Timeout)
	defer cancel()
	if err := do(limited); err != nil {
		return n.name(classify(ctx, err))
	}
	return nil
}

// name adds the host to a failure, and removes what may be secret.
func (n *node) name(err error) error {
	var f *failure
	if !errors.As(err, &f) {
		return err
	}
	text := f.err.Error()
	named := *f
	named.host = n.host
	if hidden := n.hide.Replace(text); hidden != text {
		named.err = errors.New(hidden)
	}
	return &named
}

// fails makes a failure of an answer that has come.
func (n *node) fails(k kind, err error) error { return n.name(fail(k, err)) }

// block asks for a block by its number or tag.
func (n *node) block(ctx context.Context, tag string) (Block, error) {
	var answer blockAnswer
	if err := n.one(ctx, "eth_getBlockByNumber", &answer, tag, false); err != nil {
		return Block{}, err
	}
	if !answer.found {
		return Block{}, n.fails(behind, fmt.Errorf("it does not have block %s: %w", tag, ErrBehind))
	}
	return answer.block, nil
}

// times asks for the times of some blocks, and compares their hashes. A batch that the node does
// not take is halved.
func (n *node) times(ctx context.Context, numbers []uint64, hashes map[uint64]common.Hash) (map[uint64]int64, error) {
	found := make(map[uint64]int64, len(numbers))
	for len(numbers) > 0 {
		some := numbers[:min(len(numbers), n.batchSize())]
		answers := make([]blockAnswer, len(some))
		if err := n.blocks(ctx, some, answers); err != nil {
			if k := kindOf(err); len(some) == 1 || ctx.Err() != nil || k != asked && k != slow {
				return nil, err
			}
			n.smallerBatch(len(some) / 2)
			continue
		}
		for i, a := range answers {
			switch hash := hashes[some[i]]; {
			case !a.found:
				return nil, n.fails(behind, fmt.Errorf("it does not have block %d: %w", some[i], ErrBehind))
			case a.block.Number != some[i]:
				return nil, n.fails(passing, fmt.Errorf("asked for block %d, it answers block %d", some[i], a.block.Number))
			case hash != (common.Hash{}) && hash != a.block.Hash:
				return nil, n.fails(asked, fmt.Errorf("%w: block %d is %s, and was %s in logs", ErrDisagree, some[i], a.block.Hash, hash))
			}
			found[some[i]] = a.block.Time
		}
		numbers = numbers[len(some):]
	}
	return found, nil
}

// blocks asks for blocks in one request.
func (n *node) blocks(ctx context.Context, numbers []uint64, answers []blockAnswer) error {
	if len(numbers) == 1 {
		return n.one(ctx, "eth_getBlockByNumber", &answers[0], hexutil.Uint64(numbers[0]), false)
	}
	calls := make([]call, len(numbers))
	for i, number := range numbers {
		calls[i] = call{"eth_getBlockByNumber", []any{hexutil.Uint64(number), false}, &answers[i]}
	}
	errs, err := n.together(ctx, calls)
	for _, e := range errs {
		if err == nil || kindOf(e) == limited {
			err = e
		}
	}
	return err
}

// batchSize is how many calls the node takes in a request, as far as is known.
func (n *node) batchSize() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.unbatch >= batchAttempts {
		return 1
	}
	return cmp.Or(n.fewer, n.o.Batch)
}

// smallerBatch says that the node takes smaller batches only.
func (n *node) smallerBatch(size int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fewer = min(cmp.Or(n.fewer, n.o.Batch), size)
}

// both makes two calls, in one request if the node takes batches. Then they reach the same server
// even behind a load balancer, unless that takes batches apart; one after the other on the same
// connection they often do.
func (n *node) both(ctx context.Context, first, second call) error {
	n.mu.Lock()
	batch, known := n.o.Batch > 1 && n.unbatch < batchAttempts, n.batches
	n.mu.Unlock()
	if !batch {
		return n.inTurn(ctx, first, second)
	}
	errs, err := n.together(ctx, []call{first, second})
	if err == nil && errs[1] == nil {
		n.mu.Lock()
		n.batches = true
		n.mu.Unlock()
	}
	if err == nil {
		err = errs[0]
		if err == nil || kindOf(errs[1]) == limited {
			err = errs[1]
		}
		if errs[1] == nil || kindOf(err) == limited {
			return err
		}
	}
	if k := kindOf(err); ctx.Err() != nil || known || k == limited || k == refused {
		return err
	}
	// This may be what the node says to any batch.
	n.mu.Lock()
	n.unbatch++
	try := n.unbatch >= batchAttempts || kindOf(err) == asked
	n.mu.Unlock()
	if !try {
		return err
	}
	err = n.inTurn(ctx, first, second)
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		n.unbatch = batchAttempts
		n.log.Info("takes no batches", "host", n.host)
	} else {
		n.unbatch = 0
	}
	return err
}

func (n *node) inTurn(ctx context.Context, first, second call) error {
	if err := n.one(ctx, first.method, first.result, first.args...); err != nil {
		return err
	}
	return n.one(ctx, second.method, second.result, second.args...)
}

// check asks for the id of the chain, once. The caller has a slot.
func (n *node) check(ctx context.Context, want uint64) error {
	n.mu.Lock()
	known := n.chain
	n.mu.Unlock()
	if known == want {
		return nil
	}
	var id hexutil.Big
	if err := n.one(ctx, "eth_chainId", &id); err != nil {
		return err
	}
	if got := id.ToInt(); !got.IsUint64() || got.Uint64() != want {
		return n.fails(fatal, fmt.Errorf("it is a node of chain %s, not of chain %d", got, want))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.chain = want
	return nil
}

// enter waits for a slot. It returns false if the node has to rest by then.
func (n *node) enter(ctx context.Context) (ok bool, err error) {
	select {
	case n.slots <- struct{}{}:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	if n.resting() > 0 {
		n.leave()
		return false, nil
	}
	return true, nil
}

func (n *node) leave() { <-n.slots }

// resting is for how long the node is not to be asked.
func (n *node) resting() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return max(0, time.Until(n.rest))
}

// lastFailure is why the node rests.
func (n *node) lastFailure() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.why
}

// outcome says how a question that began at a time went. A node that refuses the question rests
// only if it is to be asked again.
func (n *node) outcome(begun time.Time, err error, again bool) {
	var f *failure
	if !errors.As(err, &f) {
		n.succeeded(begun)
		return
	}
	if f.kind == asked && !again {
		return // an answer all the same
	}
	n.failed(begun, f)
}

// succeeded says that a request that began at a time was answered.
func (n *node) succeeded(begun time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answered = time.Now()
	n.since++
	if begun.Before(n.failedAt) {
		return
	}
	n.waits.Reset()
	if limit := n.limiter.Limit(); limit != rate.Inf && limit != rate.Limit(n.o.Rate) && time.Since(n.paced) > quickerEvery {
		n.paced, n.since = time.Now(), 0
		limit *= quicker
		if n.o.Rate > 0 {
			limit = min(limit, rate.Limit(n.o.Rate))
		}
		n.limiter.SetLimit(limit)
	}
}

// failed says that a request that began at a time had a passing failure, and lets the node rest.
// Requests that were under way at the time of another failure do not make the rest longer.
func (n *node) failed(begun time.Time, f *failure) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cost.Retries++
	if f.kind == limited {
		n.cost.Limited++
	}
	now := time.Now()
	if !n.failedAt.IsZero() && begun.Before(n.failedAt) && f.after < 0 {
		return
	}
	wait := n.waits.NextBackOff()
	if f.after >= 0 {
		wait = max(f.after, firstRest/10)
	}
	if f.kind == limited && !begun.Before(n.failedAt) {
		n.slower(now)
	}
	n.failedAt, n.why = now, f
	if until := now.Add(wait); until.After(n.rest) {
		n.cost.Waited += until.Sub(later(n.rest, now))
		n.rest = until
	}
	level := slog.LevelInfo
	if n.cost.Retries == 1 {
		level = slog.LevelWarn // it explains to a person why nothing moves
	}
	n.log.Log(context.Background(), level, "trying again", "host", n.host, "after", wait.Round(time.Millisecond), "error", f.err)
}

// slower sets the pace to a little less than what the node was found to allow: its answers since
// the last change, over the time since then, rests included.
func (n *node) slower(now time.Time) {
	limit := n.limiter.Limit()
	elapsed := now.Sub(n.paced)
	switch {
	case n.since > 0 && elapsed >= measured:
		limit = min(limit, rate.Limit(paceAfter*float64(n.since)/elapsed.Seconds()))
	case limit == rate.Inf:
		limit = rate.Limit(paceAfter * float64(max(1, n.since)) / measured.Seconds())
	default: // nothing can be said but that it is too fast
		limit *= paceAfter
	}
	n.limiter.SetLimit(max(slowestPace, limit))
	n.paced, n.since = now, 0
	n.log.Debug("slower", "host", n.host, "requests per second", float64(n.limiter.Limit()))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// breaks says that the node refuses everything. It is not asked any more, unless it has answered
// before: then its refusal may pass. It reports whether it is broken.
func (n *node) breaks(err error) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.answered.IsZero() {
		return false
	}
	if n.broken == nil {
		n.log.Warn("not asked any more", "host", n.host, "error", err)
	}
	n.broken = err
	return true
}

func (n *node) isBroken() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.broken
}

// lastAnswer is when the last answer came.
func (n *node) lastAnswer() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.answered
}

// halved counts a job that was too large.
func (n *node) halved(j *job, err error) {
	n.log.Debug("too large", "host", n.host, "from", j.from, "to", j.to, "error", err)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cost.Halved++
}

func (n *node) costs() Cost {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.cost
	c.Calls = maps.Clone(c.Calls)
	c.Sent, c.Received = n.sent.Load(), n.received.Load()
	return c
}
