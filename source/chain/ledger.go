package chain

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain/provider"
	"github.com/followpress/followpress/source/replay"
)

// A question is a kind of value that a contract can be asked for.
type question uint8

const (
	supply   question = iota // registry: number of tokens
	ops                      // records: number of operations of a slot
	owner                    // registry: owner of a token
	location                 // registry: where a token's records are
	user                     // records: value of the key user of a slot
	primary                  // account metadata: value of the key primary-list of an account
)

// counts reports whether the answer is a number that never shrinks, so that a smaller one is
// outdated.
func (q question) counts() bool { return q <= ops }

// The metadata keys that a snapshot depends on.
const (
	userKey    = "user"
	primaryKey = "primary-list"
)

// functions are the contract functions for the questions, in their order.
var functions = func() (ids [][]byte) {
	for _, f := range []string{
		"totalSupply()", "getListOpCount(uint256)", "ownerOf(uint256)", "getListStorageLocation(uint256)",
		"getMetadataValue(uint256,string)", "getValue(address,string)",
	} {
		ids = append(ids, crypto.Keccak256([]byte(f))[:4])
	}
	return ids
}()

// A subject is a question about one thing.
type subject struct {
	question
	contract site.Address
	id       source.Word // a token, a slot, or an account after 12 zeros
}

func (s subject) compare(other subject) int {
	return cmp.Or(cmp.Compare(s.question, other.question), bytes.Compare(s.contract[:], other.contract[:]), bytes.Compare(s.id[:], other.id[:]))
}

// String names the contract and the function.
func (s subject) String() string {
	text := map[question]string{
		supply: "number of tokens", ops: "operations of slot %s", owner: "owner of token %s", location: "location of token %s",
		user: "user of slot %s", primary: "primary list of %s",
	}[s.question]
	switch s.question {
	case supply:
	case owner, location:
		text = fmt.Sprintf(text, s.id.Decimal())
	case primary:
		text = fmt.Sprintf(text, common.Address(s.id[12:]))
	default:
		text = fmt.Sprintf(text, s.id)
	}
	return fmt.Sprintf("contract %s, %s", s.contract, text)
}

func (s subject) call() provider.Call {
	data := make([]byte, 0, 4+4*len(s.id))
	data = append(data, functions[s.question]...)
	if s.question != supply {
		data = append(data, s.id[:]...)
	}
	switch afterBoth := 2 * uint64(len(s.id)); s.question { // offset of the second argument
	case user:
		data = provider.AppendBytes(provider.AppendWord(data, afterBoth), userKey)
	case primary:
		data = provider.AppendBytes(provider.AppendWord(data, afterBoth), primaryKey)
	}
	return provider.Call{To: common.Address(s.contract), Data: data}
}

// answer decodes an answer: 32 bytes, or a value of any length. ok is false if it is neither.
func (s subject) answer(result []byte) (value []byte, ok bool) {
	if len(result) == 0 {
		return nil, false
	}
	if s.question <= owner {
		return result, len(result) == len(s.id)
	}
	at, ok := provider.WordAt(result, 0)
	if !ok {
		return nil, false
	}
	return provider.BytesAt(result, at)
}

// show formats an answer for people.
func (s subject) show(value []byte) string {
	const most = 100
	switch {
	case s.question <= ops:
		return new(big.Int).SetBytes(value).String()
	case s.question == owner:
		return common.Address(value[12:]).String()
	case len(value) > most:
		return fmt.Sprintf("%s… (%d bytes)", hexutil.Bytes(value[:most]), len(value))
	}
	return hexutil.Bytes(value).String()
}

// A ledger adds up the logs of a chain's contracts.
type ledger struct {
	ops    map[subject]uint64
	values map[subject][]byte
}

func newLedger() *ledger { return &ledger{map[subject]uint64{}, map[subject][]byte{}} }

func (l *ledger) add(e *source.Event) {
	s := subject{contract: e.Contract.Address, id: e.Subject}
	value := e.Value
	switch {
	case e.Kind == source.Op:
		s.question = ops
		l.ops[s]++
		return
	case e.Kind == source.Transfer:
		var word source.Word
		copy(word[len(word)-len(value):], value)
		s.question, value = owner, word[:]
	case e.Kind == source.Location:
		s.question = location
	case e.Kind == source.AccountMetadata && e.Key == primaryKey:
		s.question = primary
	case e.Kind == source.ListMetadata && e.Key == userKey:
		s.question = user
	default:
		return
	}
	l.values[s] = bytes.Clone(value)
}

// tokens returns the number of tokens that exist after the logs of l and, unless it is nil, of
// later.
func (l *ledger) tokens(later *ledger) (n uint64) {
	for s, value := range l.values {
		if s.question == owner && later.valueOr(s, value) != (source.Word{}) {
			n++
		}
	}
	if later == nil {
		return n
	}
	for s, value := range later.values {
		if _, known := l.values[s]; !known && s.question == owner && source.Word(value) != (source.Word{}) {
			n++
		}
	}
	return n
}

// valueOr returns the ledger's value for s, or a default.
func (l *ledger) valueOr(s subject, or []byte) source.Word {
	if l != nil {
		if value, ok := l.values[s]; ok {
			or = value
		}
	}
	return source.Word(or)
}

// says returns the answer expected from a contract after the logs of l and, unless it is nil, of
// later.
func (l *ledger) says(s subject, later *ledger) []byte {
	number := func(n uint64) []byte { return common.BigToHash(new(big.Int).SetUint64(n)).Bytes() }
	switch s.question {
	case supply:
		return number(l.tokens(later))
	case ops:
		n := l.ops[s]
		if later != nil {
			n += later.ops[s]
		}
		return number(n)
	}
	for _, l := range []*ledger{later, l} {
		if l == nil {
			continue
		}
		if value, ok := l.values[s]; ok {
			return value
		}
	}
	if s.question == owner {
		return number(0)
	}
	return nil
}

// changed reports whether the logs of l change the value of s. l may be nil.
func (l *ledger) changed(s subject) bool {
	if l == nil {
		return false
	}
	_, changed := l.values[s]
	return changed
}

// Only the ledgers of all chains together show all relevant subjects: the slots and accounts of
// lists, including those without logs.
type ledgers map[uint64]*ledger

// subjects returns the questions for the contracts of a chain, counts first: about subjects in its
// logs, and about the slots and accounts of the lists on any chain.
func (all ledgers) subjects(c source.Chain) []subject {
	due := map[subject]bool{}
	add := func(contract site.Address, id source.Word, questions ...question) {
		for _, q := range questions {
			due[subject{q, contract, id}] = true
		}
	}
	account := func(id source.Word) {
		if c.Accounts != nil && id != (source.Word{}) {
			add(c.Accounts.Address, id, primary)
		}
	}
	if c.Registry != nil {
		add(c.Registry.Address, source.Word{}, supply)
		for id := range all[c.ID].tokens(nil) { // IDs have no gaps
			add(c.Registry.Address, source.Word(common.BigToHash(new(big.Int).SetUint64(id))), owner)
		}
	}
	for s := range all[c.ID].ops {
		add(s.contract, s.id, ops, user)
	}
	for s := range all[c.ID].values {
		switch s.question {
		case owner, location:
			add(s.contract, s.id, owner, location)
		case user:
			add(s.contract, s.id, ops, user)
		case primary:
			account(s.id)
		}
	}
	all.lists(account, func(p source.Place) {
		if hasRecords(c, p.Contract) {
			add(p.Address, p.Slot, ops, user)
		}
	})
	return slices.SortedFunc(maps.Keys(due), subject.compare)
}

// lists calls account with the owners and users of lists, and place with their places.
func (all ledgers) lists(account func(source.Word), place func(source.Place)) {
	for _, l := range all {
		for s, value := range l.values {
			switch s.question {
			case owner:
				account(source.Word(value))
			case location:
				if p, ignored := replay.ParseLocation(value); ignored == "" {
					place(p)
				}
			case user:
				if a, ok := replay.User(value); ok {
					account(source.Word(common.LeftPadBytes(a[:], len(source.Word{}))))
				}
			}
		}
	}
}

// hasRecords reports whether contract is a records contract of the chain.
func hasRecords(c source.Chain, contract source.Contract) bool {
	return contract.Chain == c.ID && slices.ContainsFunc(c.Records, func(r source.Start) bool { return r.Address == contract.Address })
}
