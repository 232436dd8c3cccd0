package replay

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
)

// A Replay collects events and makes lists of them. It keeps the valid operations, about 65 bytes
// each, and the state set by other events. Only one goroutine at a time may use it.
type Replay struct {
	registry  source.Contract
	accounts  source.Contract
	contracts map[source.Contract]uint32 // numbers of the records contracts

	last    map[uint64]point // by chain
	tokens  map[source.Word]*token
	slots   map[slotKey]*slot
	primary map[site.Address]source.Word
	ops     []storedOp
	arena   arena
	report  Report

	marked *mark    // nil before Mark
	rows   *touched // nil before Rows
}

// A point is the position of an event in its chain.
type point struct {
	block uint64
	index uint32
}

func (p point) compare(q point) int {
	return cmp.Or(cmp.Compare(p.block, q.block), cmp.Compare(p.index, q.index))
}

// A token is a list. Its location may be set before it is minted.
type token struct {
	id     source.Word
	owner  site.Address // zero before it is minted
	placed bool         // whether slot is known
	slot   slotKey
}

// A slotKey is a compact source.Place.
type slotKey struct {
	contract uint32
	slot     source.Word
}

// A slot has its operations as a linked list through Replay.ops.
type slot struct {
	user        site.Address // zero if not set
	first, last int32        // none if there are no operations
	count       uint32       // number of operations
}

const none = -1

type storedOp struct {
	time  int64
	block uint64
	op    position
	index uint32 // log index in the block
	next  int32
}

// New returns a Replay for the events of a deployment.
func New(d *source.Deployment) *Replay {
	r := &Replay{
		registry:  d.Registry(),
		accounts:  d.Accounts(),
		contracts: map[source.Contract]uint32{},
		last:      map[uint64]point{},
		tokens:    map[source.Word]*token{},
		slots:     map[slotKey]*slot{},
		primary:   map[site.Address]source.Word{},
		report:    Report{Ignored: map[Reason]uint64{}},
	}
	for _, c := range d.Chains {
		for _, s := range c.Records {
			r.contracts[source.Contract{Chain: c.ID, Address: s.Address}] = uint32(len(r.contracts))
		}
	}
	return r
}

// Add adds an event and keeps no part of it. Events of one chain must be added in order. Add fails
// if they are not, or if an event's contract is not part of the deployment.
func (r *Replay) Add(e source.Event) error {
	if err := r.add(e); err != nil {
		return fmt.Errorf("chain %d, block %d, log %d: %w", e.Contract.Chain, e.Block, e.Index, err)
	}
	return nil
}

func (r *Replay) add(e source.Event) error {
	at := point{e.Block, e.Index}
	if last, ok := r.last[e.Contract.Chain]; ok && at.compare(last) <= 0 {
		return fmt.Errorf("after block %d, log %d: events must be in the order of the chain", last.block, last.index)
	}
	contract, err := r.checkContract(e)
	if err != nil {
		return err
	}
	r.keepLast(e.Contract.Chain)
	r.last[e.Contract.Chain] = at
	r.report.Events++
	switch e.Kind {
	case source.Transfer:
		t := r.token(e.Subject)
		r.keepToken(t)
		t.owner = site.Address(e.Value)
	case source.Location:
		r.ignore(r.locate(r.token(e.Subject), e.Value))
	case source.AccountMetadata:
		r.ignore(r.setPrimary(accountOf(e), e.Key, e.Value))
	case source.ListMetadata:
		r.ignore(r.setUser(slotKey{contract, e.Subject}, e.Key, e.Value))
	case source.Op:
		r.report.ListOps++
		_, ignored := parseOp(e.Value)
		r.ignore(ignored)
		if ignored == "" {
			return r.store(slotKey{contract, e.Subject}, e)
		}
	}
	return nil
}

// checkContract checks that the contract of an event emits such events, and returns the number of a
// records contract.
func (r *Replay) checkContract(e source.Event) (uint32, error) {
	contract, ok := uint32(0), false
	switch e.Kind {
	case source.Transfer:
		ok = e.Contract == r.registry
		if ok && len(e.Value) != len(site.Address{}) {
			return 0, fmt.Errorf("transfer to an owner of %d bytes", len(e.Value))
		}
	case source.Location:
		ok = e.Contract == r.registry
	case source.AccountMetadata:
		ok = e.Contract == r.accounts
	case source.Op, source.ListMetadata:
		contract, ok = r.contracts[e.Contract]
	default:
		return 0, fmt.Errorf("unknown kind of event %d", e.Kind)
	}
	if !ok {
		return 0, fmt.Errorf("event of %s, which is not a contract of the deployment for that", e.Contract.Address)
	}
	return contract, nil
}

func (r *Replay) ignore(reason Reason) {
	if reason != "" {
		r.report.Ignored[reason]++
	}
}

func (r *Replay) token(id source.Word) *token {
	t, ok := r.tokens[id]
	if !ok {
		t = &token{id: id}
		r.tokens[id] = t
		r.undoBy(func() { delete(r.tokens, id) })
	}
	return t
}

func (r *Replay) slot(key slotKey) *slot {
	s, ok := r.slots[key]
	if !ok {
		s = &slot{first: none, last: none}
		r.slots[key] = s
		r.undoBy(func() { delete(r.slots, key) })
	}
	return s
}

func (r *Replay) locate(t *token, location []byte) Reason {
	place, ignored := ParseLocation(location)
	contract, known := r.contracts[place.Contract]
	if ignored == "" && !known {
		ignored = LocationPlace
	}
	r.keepToken(t)
	t.placed, t.slot = ignored == "", slotKey{contract, place.Slot}
	return ignored
}

func (r *Replay) setPrimary(account site.Address, key string, value []byte) Reason {
	if key != keyPrimaryList {
		return OtherKey
	}
	r.keepPrimary(account)
	if token, ok := primary(value); ok {
		r.primary[account] = token
		return ""
	}
	delete(r.primary, account)
	return primaryIgnored(value)
}

// primaryIgnored returns the reason why a value names no primary list. An empty value does so on
// purpose.
func primaryIgnored(value []byte) Reason {
	if len(value) == 0 {
		return ""
	}
	return PrimaryLength
}

func (r *Replay) setUser(key slotKey, name string, value []byte) Reason {
	switch name {
	case keyManager:
		return ""
	case keyUser:
		s := r.slot(key)
		r.keepSlot(key, s)
		s.user, _ = User(value)
		return userIgnored(value)
	}
	return OtherKey
}

// userIgnored returns the reason why a value sets no user. Empty values and the zero address do so
// on purpose.
func userIgnored(value []byte) Reason {
	if len(value) == 0 || len(value) == len(site.Address{}) {
		return ""
	}
	return UserLength
}

// accountOf returns the account of an AccountMetadata event.
func accountOf(e source.Event) site.Address {
	return site.Address(e.Subject[len(e.Subject)-len(site.Address{}):])
}

const maxOps = 1<<31 - 1

func (r *Replay) store(key slotKey, e source.Event) error {
	if len(r.ops) == maxOps {
		return errors.New("too many operations")
	}
	s, n := r.slot(key), int32(len(r.ops))
	r.keepSlot(key, s)
	r.ops = append(r.ops, storedOp{time: e.Time, block: e.Block, index: e.Index, op: r.arena.keep(e.Value), next: none})
	if s.last == none {
		s.first = n
	} else {
		r.ops[s.last].next = n
	}
	s.last = n
	s.count++
	return nil
}

// Report returns the counts of events read, rows written and events ignored so far.
func (r *Replay) Report() *Report { return &r.report }
