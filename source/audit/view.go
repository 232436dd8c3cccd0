package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain/provider"
)

// errMoved means that a view moved to a later block, so that earlier answers no longer match later
// ones.
var errMoved = errors.New("the view has moved")

// mostMoves limits how often a view may move during the comparison of one batch.
const mostMoves = 4

// A view is the state of the contracts of one chain after the block of the site or, if no node has
// that state, after a later block.
type view struct {
	chain  source.Chain
	nodes  *provider.Chain
	input  provider.Block // block of the site
	hashed bool           // whether the site names its hash
	at     provider.Block // block after which contracts are asked
	since  *changes       // changes in the blocks from input to at; nil if they are equal
	host   string         // host of the last answer
	ahead  []string       // hosts that treat a call as part of the next block
	untrue []string       // hosts that answer after other blocks than requested
}

func openView(ctx context.Context, c source.Chain, in site.ChainInput, urls []string, o provider.Options) (*view, error) {
	hash := common.HexToHash(in.Hash)
	if in.Hash != "" && (len(in.Hash) != len("0x")+2*len(hash) || hash == (common.Hash{})) {
		return nil, fmt.Errorf("chain %d: invalid block hash %s", c.ID, site.Quoted(in.Hash))
	}
	nodes, err := provider.Dial(ctx, c.ID, urls, o)
	if err != nil {
		return nil, err
	}
	v := &view{chain: c, nodes: nodes, hashed: in.Hash != ""}
	if v.input, err = nodes.Block(ctx, in.Block); err != nil {
		nodes.Close()
		return nil, err
	}
	if in.Hash != "" && v.input.Hash != hash { // databases and states of earlier moments have no hash
		nodes.Close()
		return nil, fmt.Errorf("chain %d: block %d is %s on the nodes but %s in the audited data, which is of another chain or a replaced block",
			c.ID, in.Block, v.input.Hash, hash)
	}
	v.at = v.input
	nodes.At(&v.input)
	return v, nil
}

// call calls contracts after the block of the view. It returns errMoved if no node has that state;
// the view has then moved to another block.
func (v *view) call(ctx context.Context, calls []provider.Call) ([][]byte, error) {
	answers, err := v.callAll(ctx, [][]provider.Call{calls})
	if err != nil {
		return nil, err
	}
	return answers[0], nil
}

// callAll is call for several requests at once.
func (v *view) callAll(ctx context.Context, requests [][]provider.Call) ([][][]byte, error) {
	for {
		states, errs := make([]provider.State, len(requests)), make([]error, len(requests))
		var all sync.WaitGroup
		for i, calls := range requests {
			all.Go(func() {
				calls := append([]provider.Call{call(multicall3, blockNumber)}, calls...)
				states[i], errs[i] = v.nodes.Call(ctx, calls, v.at, v.untrue)
			})
		}
		all.Wait()
		if err := errors.Join(errs...); errors.Is(err, provider.ErrNoState) && ctx.Err() == nil {
			if failed := v.move(ctx); failed != nil {
				return nil, fmt.Errorf("%w; %w", err, failed)
			}
			return nil, fmt.Errorf("%w: %w", errMoved, err)
		} else if err != nil {
			return nil, err
		}
		known := len(v.untrue)
		answers := make([][][]byte, len(requests))
		for i, s := range states {
			v.host, answers[i] = s.Host, s.Results[1:]
			if err := v.doubt(ctx, s); err != nil {
				return nil, err
			}
		}
		if len(v.untrue) == known {
			return answers, nil
		}
	}
}

// doubt records a host that answered after a later block than requested, as some always do. A
// smaller number is that of the chain below, which contracts of some chains see. Other hosts treat
// a call as part of the next block.
func (v *view) doubt(ctx context.Context, s provider.State) error {
	n, err := asNumber(s.Results[0])
	if err != nil || n <= v.at.Number || slices.Contains(v.untrue, s.Origin) || n == v.at.Number+1 && slices.Contains(v.ahead, s.Origin) {
		return nil //nolint:nilerr // there is no Multicall3
	}
	if n == v.at.Number+1 {
		before := provider.Block{Number: v.at.Number - 1}
		again, err := v.nodes.Call(ctx, []provider.Call{call(multicall3, blockNumber)}, before, v.untrue)
		if ctx.Err() != nil {
			return err
		}
		if err == nil && again.Origin == s.Origin {
			if m, err := asNumber(again.Results[0]); err == nil && m == v.at.Number {
				v.ahead = append(v.ahead, s.Origin)
				return nil
			}
		}
	}
	v.untrue = append(v.untrue, s.Origin)
	return nil
}

// move moves the view to the newest block.
func (v *view) move(ctx context.Context) error {
	v.untrue = nil
	for range mostMoves {
		newest, err := v.nodes.Newest(ctx)
		if err != nil {
			return err
		}
		if newest.Number <= v.input.Number {
			return fmt.Errorf("chain %d: no node has the state of block %d, and there is no later block", v.chain.ID, v.input.Number)
		}
		since, last := newChanges(v.chain), common.Hash{}
		err = v.nodes.Logs(ctx, addressesOf(v.chain), topics(), v.input.Number+1, newest.Number, func(b provider.Blocks) error {
			last = b.Last.Hash
			for i := range b.Logs {
				if err := since.add(&b.Logs[i]); err != nil {
					return fmt.Errorf("chain %d, block %d, log %d: %w", v.chain.ID, b.Logs[i].BlockNumber, b.Logs[i].Index, err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if last == newest.Hash {
			v.at, v.since = newest, since
			return nil
		}
	}
	return fmt.Errorf("chain %d: its newest blocks keep being replaced; try again later", v.chain.ID)
}

// settled returns errMoved if the block of the view was replaced.
func (v *view) settled(ctx context.Context) error {
	if v.since == nil {
		return nil
	}
	b, err := v.nodes.Block(ctx, v.at.Number)
	if err != nil {
		return err
	}
	if b.Hash == v.at.Hash {
		return nil
	}
	if err := v.move(ctx); err != nil {
		return err
	}
	return errMoved
}

func addressesOf(c source.Chain) (all []common.Address) {
	for _, s := range append(slices.Clone(c.Records), optional(c.Registry, c.Accounts)...) {
		all = append(all, common.Address(s.Address))
	}
	return all
}

func optional(starts ...*source.Start) (all []source.Start) {
	for _, s := range starts {
		if s != nil {
			all = append(all, *s)
		}
	}
	return all
}

func topics() (all []common.Hash) {
	for _, e := range contracts.Events {
		all = append(all, e.ID)
	}
	slices.SortFunc(all, common.Hash.Cmp)
	return all
}

// changes are the changes that logs show from the site's block to the view's.
type changes struct {
	chain    source.Chain
	minted   uint64
	owners   map[source.Word]site.Address // owners of tokens before their first transfer
	located  map[source.Word]bool         // tokens
	users    map[source.Place]bool
	primary  map[site.Address]bool
	ops      map[source.Place][][]byte // in order
	contract func(site.Address) source.Contract
}

func newChanges(c source.Chain) *changes {
	return &changes{
		chain: c, owners: map[source.Word]site.Address{}, located: map[source.Word]bool{}, users: map[source.Place]bool{},
		primary: map[site.Address]bool{}, ops: map[source.Place][][]byte{},
		contract: func(a site.Address) source.Contract { return source.Contract{Chain: c.ID, Address: a} },
	}
}

// add records the changes of a log.
func (c *changes) add(l *types.Log) error {
	event, values, err := decode(l)
	if err != nil {
		return err
	}
	is := func(s *source.Start) bool { return s != nil && common.Address(s.Address) == l.Address }
	switch event {
	case "Transfer", "UpdateListStorageLocation":
		if is(c.chain.Registry) {
			c.addOfRegistry(event, l)
		}
	case "UpdateAccountMetadata":
		if is(c.chain.Accounts) && values[0].(string) == primaryKey {
			c.primary[site.Address(l.Topics[1][12:])] = true
		}
	case "UpdateListMetadata", "ListOp":
		if slices.ContainsFunc(c.chain.Records, func(s source.Start) bool { return is(&s) }) {
			c.addOfRecords(event, values, l)
		}
	}
	return nil
}

// decode returns the name of a log's event, and its values that are not topics.
func decode(l *types.Log) (name string, values []any, err error) {
	event, err := contracts.EventByID(l.Topics[0])
	if err != nil {
		return "", nil, err
	}
	want := 1
	for _, in := range event.Inputs {
		if in.Indexed {
			want++
		}
	}
	if len(l.Topics) != want {
		return "", nil, fmt.Errorf("%s has %d topics", event.Name, len(l.Topics))
	}
	if values, err = event.Inputs.NonIndexed().Unpack(l.Data); err != nil {
		return "", nil, fmt.Errorf("%s: %w", event.Name, err)
	}
	return event.Name, values, nil
}

func (c *changes) addOfRegistry(event string, l *types.Log) {
	switch event {
	case "Transfer":
		token, from := source.Word(l.Topics[3]), site.Address(l.Topics[1][12:])
		if _, again := c.owners[token]; again {
			return
		}
		c.owners[token] = from
		if from == (site.Address{}) {
			c.minted++
		}
	case "UpdateListStorageLocation":
		c.located[source.Word(l.Topics[1])] = true
	}
}

func (c *changes) addOfRecords(event string, values []any, l *types.Log) {
	place := source.Place{Contract: c.contract(site.Address(l.Address)), Slot: source.Word(l.Topics[1])}
	switch {
	case event == "UpdateListMetadata" && values[0].(string) == userKey:
		c.users[place] = true
	case event == "ListOp":
		c.ops[place] = append(c.ops[place], values[0].([]byte))
	}
}
