package audit

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
)

// Rows are equal only if they are the records of the contract, each once, in their order.
func TestOtherRecords(t *testing.T) {
	record := func(kind, data string, tags ...string) Record { return Record{1, kind, data, tags} }
	a, b, c := record("address", "a"), record("address", "b"), record("address", "c")
	for name, test := range map[string]struct {
		said, are []Record
		want      string // a part of it; "" for equal
	}{
		"equal":                                {[]Record{a, b}, []Record{a, b}, ""},
		"none":                                 {nil, nil, ""},
		"the last one again, and again":        {[]Record{a, b, b, b}, []Record{a, b}, "more than once " + b.String() + " (and 1 more)"},
		"the first one again":                  {[]Record{a, b, a}, []Record{a, b}, "more than once " + a.String()},
		"twice, at first with another tag":     {[]Record{record("address", "a", "block"), b, a}, []Record{a, b}, "more than once " + a.String()},
		"twice, then with another tag":         {[]Record{a, b, record("address", "a", "block")}, []Record{a, b}, "more than once " + a.String()},
		"one that the contract has not, twice": {[]Record{a, c, c}, []Record{a}, "has not, " + c.String() + "; it has more than once " + c.String()},
		"one more":                             {[]Record{a, b, c}, []Record{a, b}, "has not, " + c.String()},
		"one less":                             {[]Record{a}, []Record{a, b}, "lacks " + b.String()},
		"another order":                        {[]Record{b, a}, []Record{a, b}, "wrong order"},
		"a slash in the type":                  {[]Record{record("x/y", "z")}, []Record{record("x", "y/z")}, "lacks"},
		"a slash in a type of two":             {[]Record{record("x", "y/z"), record("x/y", "z")}, []Record{record("x", "y/z"), record("x/y", "z")}, ""},
	} {
		got := otherRecords(test.said, test.are)
		if test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	two := []Record{record("x", "y/z"), record("x/y", "z")}
	if got := merged(slices.Clone(two)); len(got) != 2 {
		t.Errorf("got %v, want that both stay", got)
	}
}

// TestOwnersBefore: of several transfers after a block, the first one tells the owner at that block.
func TestOwnersBefore(t *testing.T) {
	chain := history.Production()[0]
	if chain.Registry == nil {
		t.Fatal("the chain has no registry")
	}
	address := func(n byte) history.Address { return history.Address{19: n} }
	c := newChanges(source.Chain{ID: chain.ID, Registry: &source.Start{Address: site.Address(*chain.Registry)}})
	for _, l := range []history.Log{
		history.Transfer(*chain.Registry, address(1), address(2), history.Number(7)),
		history.Transfer(*chain.Registry, address(2), address(3), history.Number(7)),
		history.Transfer(*chain.Registry, address(0), address(4), history.Number(8)), // minted
		history.Transfer(*chain.Registry, address(4), address(5), history.Number(8)),
	} {
		log := types.Log{Address: l.Address, Data: l.Data}
		for _, topic := range l.Topics {
			log.Topics = append(log.Topics, topic)
		}
		if err := c.add(&log); err != nil {
			t.Fatal(err)
		}
	}
	want := map[source.Word]site.Address{{31: 7}: site.Address(address(1)), {31: 8}: {}}
	if !maps.Equal(c.owners, want) || c.minted != 1 {
		t.Errorf("got the owners %v, and %d minted, want %v, and 1", c.owners, c.minted, want)
	}
}
