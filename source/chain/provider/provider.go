// Package provider asks the nodes of a chain for logs and blocks by JSON-RPC over HTTP. It expects
// little of them: they may limit, refuse, cut off, lag behind, or disagree. An answer is returned
// only after it has passed all checks that are possible; otherwise there is an error.
//
// The API may change until version 1.
package provider

import (
	"context"
	"errors"
	"log/slog"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// The values of Options.Finality.
const (
	Finalized = "finalized" // never undone; some 15 minutes old
	Safe      = "safe"      // undone only if the chain fails; some minutes old
	Latest    = "latest"    // may be undone at any time
)

var (
	// ErrBehind means that no node has a block yet.
	ErrBehind = errors.New("behind")
	// ErrDisagree means that nodes go on giving different answers to the same question.
	ErrDisagree = errors.New("nodes disagree")
)

// Options say how to talk to nodes. The zero value means the defaults.
type Options struct {
	Finality    string        // which block is the head; "" means Finalized
	Quorum      int           // how many hosts must give the same answer; 0 means 1
	Spread      bool          // share the requests among all URLs; otherwise the next one is asked only after a failure
	Concurrency int           // requests in flight for each URL; 0 means 8
	Rate        float64       // requests per second for each URL; 0 means no limit but what the node tells
	MaxRange    uint64        // blocks in one request for logs, at most; 0 means 10,000
	Batch       int           // calls in one request, at most; 0 means 100; 1 means that the node takes no batches
	Timeout     time.Duration // of one request; 0 means one minute
	Patience    time.Duration // give up after this time without the answer to a question; 0 means five minutes
	MaxAnswer   int64         // bytes of an answer, at most, without compression; 0 means 256 MiB
	Log         *slog.Logger  // is told of each retry, of learnt limits; nil means none
}

// A Block is what the answers of a node say of a block. The hash is never computed here: chains
// have headers that no library knows.
type Block struct {
	Number uint64
	Hash   common.Hash
	Time   int64 // in seconds since the Unix epoch
}

// A Part is the answer for a range of blocks.
type Part struct {
	From, To uint64 // both included
	// Last is block To, asked from the same node after its logs: a node that lags answers without
	// logs and without an error, but does not have the block.
	Last Block
	// Logs are the logs of the range in their order, without removed ones. Each has one of the
	// addresses and topics that were asked for, lies in the range, and is the only one with its
	// block and index. Those of one block have the same hash, in block To that of Last.
	// BlockTimestamp, in seconds, is 0 if the node does not say it.
	Logs []types.Log
}

// Dial prepares requests to the nodes of a chain by http and https URLs. It asks each one for the
// id of its chain; another one is an error. A URL that cannot be reached is asked again before it
// is used; only if none can be reached this is an error. No error has any part of a URL but its
// host, because the rest may be a key.
func Dial(ctx context.Context, chain uint64, urls []string, o Options) (*Chain, error) {
	return nil, errors.ErrUnsupported
}

// A Chain asks the nodes of one chain. It may be used from many goroutines.
type Chain struct{}

// Close closes idle connections.
func (c *Chain) Close() {}

// Head returns the newest block with the finality of the options. A node whose head is before
// block least lags; others are asked then. The error is ErrBehind if all of them do.
func (c *Chain) Head(ctx context.Context, least uint64) (Block, error) {
	return Block{}, errors.ErrUnsupported
}

// Block returns a block. The error is ErrBehind if no node has it.
func (c *Chain) Block(ctx context.Context, number uint64) (Block, error) {
	return Block{}, errors.ErrUnsupported
}

// Times returns the times of blocks in seconds since the Unix epoch. The hashes are those that
// logs had; if a node has another one, others are asked, and then the error is ErrDisagree. A zero
// hash is not compared.
func (c *Chain) Times(ctx context.Context, blocks map[uint64]common.Hash) (map[uint64]int64, error) {
	return nil, errors.ErrUnsupported
}

// Logs asks for the logs of contracts in a range of blocks, both ends included, whose first topic
// is one of those given. Requests are made side by side. It calls done for each part in the order
// of blocks, one at a time and from the calling goroutine; the parts cover the range without gaps.
// An error of done ends Logs with that error; the parts before stay valid.
func (c *Chain) Logs(ctx context.Context, addresses []common.Address, topics []common.Hash, from, to uint64, done func(Part) error) error {
	return errors.ErrUnsupported
}

// TotalSupply returns totalSupply() of a contract after a block. It is not known if no node has the
// state of that block any more.
func (c *Chain) TotalSupply(ctx context.Context, contract common.Address, at Block) (n *big.Int, known bool, err error) {
	return nil, false, errors.ErrUnsupported
}

// Cost returns what was spent so far, a row for each URL in the order of Dial.
func (c *Chain) Cost() []Cost { return nil }

// A Cost is what requests to one URL have cost.
type Cost struct {
	Host     string           `json:"host"`
	Requests int64            `json:"requests"` // HTTP requests; a batch is one
	Calls    map[string]int64 `json:"calls"`    // calls by method; providers charge for these
	Sent     int64            `json:"sent"`     // bytes, with all that HTTP and TLS add
	Received int64            `json:"received"` // bytes, likewise, compressed if they came so
	Retries  int64            `json:"retries"`  // requests that failed for a passing reason
	Limited  int64            `json:"limited"`  // those of them that were beyond a rate
	Halved   int64            `json:"halved"`   // requests for logs whose range was too large
	Waited   time.Duration    `json:"waited"`   // in which no request was made after failures, in nanoseconds
}
