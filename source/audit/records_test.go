package audit

import (
	"slices"
	"strings"
	"testing"
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
		"another order":                        {[]Record{b, a}, []Record{a, b}, "another order"},
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
