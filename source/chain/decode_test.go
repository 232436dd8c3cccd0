package chain

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
)

var (
	base     = source.Production().Chains[0]
	registry = history.Address(base.Registry.Address)
	accounts = history.Address(base.Accounts.Address)
	records  = history.Address(base.Records[0].Address)
)

// raw makes a log of a node of a log of a history.
func raw(l history.Log, block, index uint64) types.Log {
	log := types.Log{Address: l.Address, Data: l.Data, BlockNumber: block, Index: uint(index)}
	for _, topic := range l.Topics {
		log.Topics = append(log.Topics, topic)
	}
	return log
}

func TestTopicsAreThoseOfTheContracts(t *testing.T) {
	for want, shape := range map[history.Word]string{
		history.TopicTransfer: "Transfer", history.TopicLocation: "UpdateListStorageLocation", history.TopicAccountMetadata: "UpdateAccountMetadata",
		history.TopicListOp: "ListOp", history.TopicListMetadata: "UpdateListMetadata",
	} {
		if got := shapes[want].name; got != shape {
			t.Errorf("topic %x: got %q, want %q", want, got, shape)
		}
	}
	if got := len(newDecoder(base).topics()); got != 5 {
		t.Errorf("Base: got %d topics, want 5", got)
	}
	if got := newDecoder(source.Production().Chains[1]).topics(); len(got) != 2 || !slices.Contains(got, common.Hash(history.TopicListOp)) {
		t.Errorf("OP Mainnet: got topics %v, want the two of records", got)
	}
}

func TestDecode(t *testing.T) {
	slot, account, other := history.Number(258), history.Address{1, 2}, history.Address{3}
	odd := []byte{0xff, 0, 'x'}
	contract := func(a history.Address) source.Contract { return source.Contract{Chain: 8453, Address: site.Address(a)} }
	for name, test := range map[string]struct {
		log    history.Log
		want   source.Event
		tokens int64
	}{
		"mint":             {history.Transfer(registry, history.Address{}, account, slot), source.Event{Kind: source.Transfer, Contract: contract(registry), Value: account[:]}, 1},
		"transfer":         {history.Transfer(registry, other, account, slot), source.Event{Kind: source.Transfer, Contract: contract(registry), Value: account[:]}, 0},
		"burn":             {history.Transfer(registry, other, history.Address{}, slot), source.Event{Kind: source.Transfer, Contract: contract(registry), Value: make([]byte, 20)}, -1},
		"location":         {history.Location(registry, slot, odd), source.Event{Kind: source.Location, Contract: contract(registry), Value: odd}, 0},
		"account metadata": {history.AccountMetadata(accounts, account, "primary-list", odd), source.Event{Kind: source.AccountMetadata, Contract: contract(accounts), Subject: source.Word(history.AddressWord(account)), Key: "primary-list", Value: odd}, 0},
		"op":               {history.Op(records, slot, bytes.Repeat(odd, 33)), source.Event{Kind: source.Op, Contract: contract(records), Value: bytes.Repeat(odd, 33)}, 0},
		"empty op":         {history.Op(records, slot, nil), source.Event{Kind: source.Op, Contract: contract(records)}, 0},
		"list metadata":    {history.ListMetadata(records, slot, "\xff\x00", nil), source.Event{Kind: source.ListMetadata, Contract: contract(records), Key: "\xff\x00"}, 0},
	} {
		log := raw(test.log, 20180001, 7)
		test.want.Block, test.want.Index, test.want.Time = 20180001, 7, source.NoTime
		if test.want.Subject == (source.Word{}) {
			test.want.Subject = source.Word(slot)
		}
		got, tokens, ok, err := newDecoder(base).decode(&log)
		if err != nil || !ok || tokens != test.tokens || !equal(got, test.want) {
			t.Errorf("%s: got %+v, %d, %v, %v, want %+v, %d", name, got, tokens, ok, err, test.want, test.tokens)
		}
	}
}

func equal(a, b source.Event) bool {
	return a.Kind == b.Kind && a.Contract == b.Contract && a.Block == b.Block && a.Index == b.Index && a.Time == b.Time &&
		a.Subject == b.Subject && a.Key == b.Key && bytes.Equal(a.Value, b.Value)
}

// Irrelevant events are ignored, even from our contracts.
func TestDecodeLeavesOut(t *testing.T) {
	for name, log := range map[string]history.Log{
		"no topics":            {Address: registry},
		"Approval":             {Address: registry, Topics: []history.Word{{0x8c}, {}, {}, {}}},
		"op of the registry":   history.Op(registry, history.Word{}, []byte{1}),
		"transfer of records":  history.Transfer(records, history.Address{}, history.Address{1}, history.Word{}),
		"location of accounts": history.Location(accounts, history.Word{}, nil),
	} {
		log := raw(log, 1, 1)
		if _, tokens, ok, err := newDecoder(base).decode(&log); ok || err != nil || tokens != 0 {
			t.Errorf("%s: got %v, %v, want neither event nor error", name, ok, err)
		}
	}
}

// What cannot come from our contracts is an error that says where it is.
func TestDecodeRefuses(t *testing.T) {
	op := history.Op(records, history.Word{}, []byte("operation"))
	metadata := history.ListMetadata(records, history.Word{}, "user", []byte("value"))
	cut := func(l history.Log, n int) history.Log { l.Data = l.Data[:n]; return l }
	topics := func(l history.Log, topics ...history.Word) history.Log { l.Topics = topics; return l }
	far := slices.Clone(op.Data)
	far[0] = 0x80
	for name, log := range map[string]history.Log{
		"another contract": history.Op(history.Address{9}, history.Word{}, nil),
		"no data":          cut(op, 0),
		"half a word":      cut(op, 16),
		"no length":        cut(op, 32),
		"no value":         cut(op, 64),
		"a key only":       cut(metadata, 128),
		"far offset":       {Address: records, Topics: op.Topics, Data: far},
		"no slot":          topics(op, op.Topics[0]),
		"two slots":        topics(op, op.Topics[0], op.Topics[1], op.Topics[1]),
		"no token":         topics(history.Transfer(registry, history.Address{}, history.Address{}, history.Word{}), history.TopicTransfer, history.Word{}, history.Word{}),
		"no address":       topics(history.Transfer(registry, history.Address{}, history.Address{}, history.Word{}), history.TopicTransfer, history.Word{1}, history.Word{}, history.Word{}),
		"no account":       topics(history.AccountMetadata(accounts, history.Address{}, "", nil), history.TopicAccountMetadata, history.Word{0: 1}),
	} {
		log := raw(log, 20180123, 45)
		_, _, ok, err := newDecoder(base).decode(&log)
		if ok || err == nil || !strings.Contains(err.Error(), "chain 8453, block 20180123, log 45") {
			t.Errorf("%s: got %v, %v, want an error that says where the log is", name, ok, err)
		}
	}
}
