// Package provider asks the nodes of a chain for logs and blocks by JSON-RPC over HTTP. It expects
// nodes to limit, refuse, truncate, lag and disagree. It returns an answer only after all possible
// checks, and an error otherwise.
//
// The API may change in any release.
package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"golang.org/x/sync/errgroup"
)

// Values of Options.Finality.
const (
	Finalized = "finalized" // never undone; some 15 minutes old
	Safe      = "safe"      // undone only if the chain fails; some minutes old
	Latest    = "latest"    // may be undone at any time
)

var (
	// ErrBehind means that no node has the block yet.
	ErrBehind = errors.New("behind")
	// ErrDisagree means that nodes keep giving different answers to the same question.
	ErrDisagree = errors.New("nodes disagree")
)

// Options configure requests to nodes. Zero values are the defaults.
type Options struct {
	Finality    string        // finality of the head block; "" means Finalized
	Quorum      int           // number of hosts that must give the same answer; 0 means 1
	Concurrency int           // concurrent requests per host; 0 means 8
	Rate        float64       // requests per second and host; 0 means no limit except the node's
	Shares      *Shares       // counts requests together with other chains that have the same options; nil for this chain only
	MaxRange    uint64        // maximum blocks per request for logs; 0 means 10,000
	Batch       int           // maximum calls per request; 0 means 100; 1 means no batches
	Timeout     time.Duration // limit for one request; 0 means one minute
	Patience    time.Duration // limit without an answer to a question; 0 means five minutes
	MaxAnswer   int64         // maximum bytes of an uncompressed answer; 0 means 32 MiB; larger answers are fetched in parts; receipts of a block may have 4 times as many
	Log         *slog.Logger  // logs each retry; nil for none
	// Heard is called after each attempt at a node, with the host as named in errors; err is nil
	// for an answer. It is called concurrently, and must return quickly. nil for none.
	Heard func(chain uint64, host string, err error)

	Transport http.RoundTripper // nil for a default one
}

func (o *Options) check() error {
	o.Finality = cmp.Or(o.Finality, Finalized)
	if !slices.Contains([]string{Finalized, Safe, Latest}, o.Finality) {
		return fmt.Errorf("finality is %q, not %s, %s or %s", o.Finality, Finalized, Safe, Latest)
	}
	if o.Quorum < 0 || o.Concurrency < 0 || o.Rate < 0 || o.Batch < 0 || o.Timeout < 0 || o.Patience < 0 || o.MaxAnswer < 0 {
		return errors.New("an option of requests is negative")
	}
	o.Shares = cmp.Or(o.Shares, new(Shares))
	o.Quorum = cmp.Or(o.Quorum, 1)
	o.Concurrency = cmp.Or(o.Concurrency, 8)
	o.MaxRange = cmp.Or(o.MaxRange, 10_000)
	o.Batch = cmp.Or(o.Batch, 100)
	o.Timeout = cmp.Or(o.Timeout, time.Minute)
	o.Patience = cmp.Or(o.Patience, 5*time.Minute)
	o.MaxAnswer = cmp.Or(o.MaxAnswer, 32<<20)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return nil
}

// A Block is a block as nodes describe it. Hashes are never computed here, because some chains have
// headers that no library knows.
type Block struct {
	Number uint64
	Hash   common.Hash
	Time   int64 // in seconds since the Unix epoch
}

// Blocks is the answer for a range of blocks.
type Blocks struct {
	From, To uint64 // both inclusive
	// Last is block To, fetched from the same node after its logs: a lagging node returns no logs
	// and no error, but does not have the block.
	Last Block
	// Logs are the logs of the range in order, without removed ones. Each has one of the requested
	// addresses and topics, lies in the range, and is the only one with its block and index. Logs
	// of one block have the same block hash. It equals the hash of Last in block To, and the hash
	// on the node's chain in blocks that are not final. BlockTimestamp is in seconds, 0 if the node omits it.
	Logs []types.Log
}

// Dial prepares requests to the nodes of a chain at http and https URLs. It asks each node for its
// chain ID, and fails if one differs. An unreachable URL is tried again before it is used; Dial fails
// only if none is reachable for half a minute. Errors contain only the host of a URL, because the rest
// may be a key.
func Dial(ctx context.Context, chain uint64, urls []string, o Options) (*Chain, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &Chain{id: chain, o: o}
	for i, text := range urls {
		n, err := c.newNode(i, text, urls[:i])
		if err != nil {
			c.Close()
			return nil, err
		}
		c.nodes = append(c.nodes, n)
	}
	if origins := c.origins(); len(origins) < o.Quorum || len(origins) == 0 {
		c.Close()
		return nil, fmt.Errorf("chain %d has %d hosts, but the quorum is %d", chain, len(origins), o.Quorum)
	}
	if err := c.checkChains(ctx); err != nil {
		c.Close()
		return nil, fmt.Errorf("chain %d: %w", chain, err)
	}
	return c, nil
}

// newNode returns the node at the URL with number i. Its errors contain no part of a URL that may
// be a key.
func (c *Chain) newNode(i int, text string, before []string) (*node, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("chain %d: URL number %d is invalid", c.id, i+1)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("chain %d, %s: %s is not http or https", c.id, u.Host, u.Scheme)
	}
	if slices.Contains(before, text) {
		return nil, fmt.Errorf("chain %d, %s: duplicate URL", c.id, u.Host)
	}
	name, same := u.Host, 1
	for _, other := range c.nodes {
		if other.origin == originOf(u) {
			same++
			name = fmt.Sprintf("%s (%d)", u.Host, same)
		}
	}
	return newNode(u, name, &c.o), nil
}

func (c *Chain) origins() map[string]bool {
	all := map[string]bool{}
	for _, n := range c.nodes {
		all[n.origin] = true
	}
	return all
}

// checkChains asks all nodes for their chain IDs. It returns when all were asked and one has
// answered.
func (c *Chain) checkChains(ctx context.Context) error {
	errs := make([]error, len(c.nodes))
	var all sync.WaitGroup
	for i, n := range c.nodes {
		all.Go(func() { errs[i] = c.attempt(ctx, n, true, func() error { return nil }) })
	}
	all.Wait()
	for _, err := range errs {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if kindOf(err) == fatal {
			return err
		}
	}
	if slices.Contains(errs, nil) {
		return nil
	}
	_, err := c.ask(ctx, asking{insist: 1, patience: dialPatience}, func(context.Context, *node) error { return nil })
	return err
}

// A Chain asks the nodes of one chain. It is safe for concurrent use.
type Chain struct {
	id    uint64
	o     Options
	nodes []*node
	final atomic.Uint64         // blocks up to this one are known to be final
	first atomic.Int64          // number of the node to ask first
	head  atomic.Pointer[Block] // last result of Head; nodes that lack it are not asked
}

// Close closes idle connections.
func (c *Chain) Close() {
	for _, n := range c.nodes {
		n.http.CloseIdleConnections()
	}
}

// Head returns the newest block with the finality of the options. It skips nodes whose head is
// before block least, and returns ErrBehind if all are. With a quorum it returns the newest block
// that this number of hosts has.
//
// From then on all other answers come from nodes that have this block, with its hash.
func (c *Chain) Head(ctx context.Context, least uint64) (Block, error) {
	var head Block
	var used []string
	var last *node
	c.head.Store(nil)
	for range c.o.Quorum {
		var one Block
		n, err := c.ask(ctx, asking{except: used, insist: 2}, func(ctx context.Context, n *node) (err error) {
			one, err = n.block(ctx, c.o.Finality)
			if err == nil && one.Number < least {
				err = n.failure(behind, fmt.Errorf("its %s block is %d, before %d: %w", c.o.Finality, one.Number, least, ErrBehind))
			}
			return err
		})
		if err != nil {
			hint := ""
			if c.o.Finality != Latest && kindOf(err) == asked {
				hint = "; choose another last block with --finality"
			}
			return Block{}, fmt.Errorf("chain %d: the %s block: %w%s", c.id, c.o.Finality, err, hint)
		}
		if len(used) == 0 || one.Number < head.Number {
			head = one
		}
		used, last = append(used, n.origin), n
	}
	if c.o.Quorum > 1 {
		var err error
		if head, err = c.Block(ctx, head.Number); err != nil {
			return Block{}, err
		}
	} else {
		last.head.Store(&head)
	}
	c.final.Store(c.findFinal(ctx, last))
	c.head.Store(&head)
	return head, nil
}

// findFinal asks a node for the number of its newest final block; it returns 0 if the node does not
// know.
func (c *Chain) findFinal(ctx context.Context, n *node) uint64 {
	if c.o.Finality == Finalized {
		return 0 // everything that is read is final
	}
	var b Block
	err := c.attempt(ctx, n, false, func() (err error) {
		b, err = n.block(ctx, Finalized)
		return err
	})
	if err != nil {
		c.o.Log.Info("no final block", "host", n.host, "error", err)
	}
	return b.Number
}

func (c *Chain) isFinal(number uint64) bool {
	return c.o.Finality == Finalized || number <= c.final.Load()
}

// Block returns a block. It returns ErrBehind if no node has it.
func (c *Chain) Block(ctx context.Context, number uint64) (Block, error) {
	head := c.head.Load()
	if head != nil && head.Number == number {
		head = nil // the block may have been replaced
	}
	b, err := agree(ctx, c, asking{insist: 2}, func(ctx context.Context, n *node) (Block, error) {
		if err := n.follows(ctx, head); err != nil {
			return Block{}, err
		}
		b, err := n.block(ctx, hexutil.EncodeUint64(number))
		if err == nil && b.Number != number {
			err = n.failure(passing, fmt.Errorf("it answers block %d", b.Number))
		}
		return b, err
	}, otherHash)
	if err != nil {
		return Block{}, fmt.Errorf("chain %d: block %d: %w", c.id, number, err)
	}
	return b, nil
}

// Times returns the times of blocks in seconds since the Unix epoch. blocks has the hashes found in
// logs; if a node's hash differs, other nodes are asked, and then the error is ErrDisagree. A zero
// hash is not compared.
func (c *Chain) Times(ctx context.Context, blocks map[uint64]common.Hash) (map[uint64]int64, error) {
	times := make(map[uint64]int64, len(blocks))
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(c.workers())
	for some := range slices.Chunk(slices.Sorted(maps.Keys(blocks)), c.o.Batch) {
		g.Go(func() error {
			found, err := agree(ctx, c, asking{insist: 2}, func(ctx context.Context, n *node) (map[uint64]int64, error) {
				if err := n.follows(ctx, c.head.Load()); err != nil {
					return nil, err
				}
				return n.times(ctx, some, blocks)
			}, otherTimes)
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(times, found)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("chain %d: times of blocks: %w", c.id, err)
	}
	return times, nil
}

func otherTimes(a, b map[uint64]int64) string {
	for number, time := range a {
		if b[number] != time {
			return fmt.Sprintf("block %d has the times %d and %d", number, time, b[number])
		}
	}
	return ""
}

// Cost returns the use so far, a row per URL in the order of Dial.
func (c *Chain) Cost() []Cost {
	all := make([]Cost, len(c.nodes))
	for i, n := range c.nodes {
		all[i] = n.costs()
	}
	return all
}

// A Cost is the use of one URL.
type Cost struct {
	Host     string           `json:"host"`
	Requests int64            `json:"requests"` // HTTP requests; a batch counts once
	Calls    map[string]int64 `json:"calls"`    // calls by method; providers charge for these
	Sent     int64            `json:"sent"`     // bytes, including HTTP and TLS overhead
	Received int64            `json:"received"` // bytes, including HTTP and TLS overhead, as compressed
	Retries  int64            `json:"retries"`  // temporarily failed requests
	Limited  int64            `json:"limited"`  // requests beyond a rate limit, part of Retries
	Halved   int64            `json:"halved"`   // requests for logs whose range was too large
	Waited   time.Duration    `json:"waited"`   // pauses after failures, in nanoseconds
}
