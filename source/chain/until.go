package chain

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
)

// A Moment is a time, or a block of a chain.
type Moment struct {
	Time  time.Time
	Chain uint64 // EIP-155 chain ID; 0 for a time
	Block uint64
}

// ParseMoment parses a time in RFC 3339, a date, which means its start in UTC, or CHAIN:BLOCK.
func ParseMoment(text string) (Moment, error) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return Moment{Time: at.UTC().Truncate(time.Millisecond)}, nil
		}
	}
	id, number, _ := strings.Cut(text, ":")
	chain, err := strconv.ParseUint(id, 10, 64)
	block, failed := strconv.ParseUint(number, 10, 64)
	if err != nil || failed != nil || chain == 0 {
		return Moment{}, fmt.Errorf("%s is neither a time like 2026-01-31T00:00:00Z, nor a date, nor a chain's id, a colon and a block", site.Quoted(text))
	}
	return Moment{Chain: chain, Block: block}, nil
}

// A Past is the content of a State at a Moment.
type Past struct {
	state *State
	at    Moment
	cut   map[uint64]cut // by chain
	asOf  int64          // in milliseconds since the Unix epoch
}

// A cut ends the events of a chain before the first one after block or time.
type cut struct {
	block uint64
	time  int64 // in milliseconds since the Unix epoch
}

// Until returns the content of the State at a Moment. For a time, it has the events of each chain
// before the first one of a later block. For a block, it has the events of its chain up to the
// block, and of the other chains up to the time of that block. If the block has no event, the time
// is that of the last event before it: the other times known to the State depend on where runs
// ended. Until fails if a chain was not read as far or if its last Sync did not complete.
func (s *State) Until(m Moment) (*Past, error) {
	p := &Past{state: s, at: m, cut: map[uint64]cut{}, asOf: m.Time.UnixMilli()}
	if m.Chain != 0 {
		if err := p.findTime(); err != nil {
			return nil, err
		}
	}
	for _, c := range s.deployment.Chains {
		top, err := s.complete(c)
		if err != nil {
			return nil, err
		}
		if c.ID == m.Chain {
			p.cut[c.ID] = cut{m.Block, math.MaxInt64}
			continue
		}
		if p.asOf > milliseconds(top.Time) {
			return nil, fmt.Errorf("%s is %s: chain %d (%s) was read up to block %d of %s only: read more without --until, or name an earlier moment",
				p.name(), text(p.asOf), c.ID, c.Name, top.Block, text(milliseconds(top.Time)))
		}
		p.cut[c.ID] = cut{math.MaxUint64, p.asOf}
	}
	return p, nil
}

func (p *Past) name() string {
	if p.at.Chain == 0 {
		return "the time"
	}
	return fmt.Sprintf("the time of block %d of chain %d", p.at.Block, p.at.Chain)
}

func text(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano) }

// findTime finds the time of a block, or of the last block before it with an event.
func (p *Past) findTime() error {
	s, m := p.state, p.at
	at := slices.IndexFunc(s.deployment.Chains, func(c source.Chain) bool { return c.ID == m.Chain })
	if at < 0 {
		return fmt.Errorf("the deployment has no chain %d", m.Chain)
	}
	c := s.deployment.Chains[at]
	top, err := s.complete(c)
	if err != nil {
		return err
	}
	if m.Block > top.Block {
		return fmt.Errorf("chain %d (%s) was read up to block %d only: read more without --until, or name an earlier block", c.ID, c.Name, top.Block)
	}
	ms, found := int64(0), false
	_, err = read(s.folder(c), c, point{}, top, func(e source.Event) bool {
		if e.Block > m.Block {
			return false
		}
		if e.Time != source.NoTime {
			ms, found = e.Time, true
		}
		return true
	})
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("the state knows no time up to block %d of chain %d (%s): nothing had happened by then; name a later block, or a time", m.Block, c.ID, c.Name)
	}
	p.asOf = ms
	return nil
}

// AsOf returns the time of the Past, at which all chains except the Moment's are cut.
func (p *Past) AsOf() time.Time { return time.UnixMilli(p.asOf).UTC() }

// Chains returns for each chain the last block with events in the Past, and for the Moment's chain
// its block. The blocks have no hash: the State only knows the hashes of blocks where a Sync ended,
// which differ between States.
func (p *Past) Chains() ([]site.ChainInput, error) {
	of := map[uint64]*site.ChainInput{}
	for e, err := range p.Events() {
		if err != nil {
			return nil, err
		}
		c := of[e.Contract.Chain]
		if c == nil {
			c = &site.ChainInput{ChainID: e.Contract.Chain}
			of[c.ChainID] = c
		}
		c.Block = e.Block
		c.Events++
	}
	var all []site.ChainInput
	for _, c := range p.state.deployment.Chains {
		in := of[c.ID]
		if in == nil { // before the contracts
			in = &site.ChainInput{ChainID: c.ID, Block: max(1, firstBlock(c)) - 1}
		}
		if c.ID == p.at.Chain {
			in.Block = p.at.Block
		}
		all = append(all, *in)
	}
	return all, nil
}

// Events yields the events of all chains up to the Moment, like State.Events.
func (p *Past) Events() source.Events {
	return p.state.events(func(c source.Chain, yield func(source.Event) bool) (more bool, err error) {
		top, err := p.state.complete(c)
		if err != nil {
			return false, err
		}
		more = true
		_, err = read(p.state.folder(c), c, point{}, top, func(e source.Event) bool {
			if end := p.cut[c.ID]; e.Block > end.block || e.Time > end.time {
				return false
			}
			more = yield(e)
			return more
		})
		return more, err
	})
}
