package rules_test

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/site/rules"
)

func TestRecords(t *testing.T) {
	address := rules.Kind{Version: 1, Type: rules.TypeAddress}
	for _, test := range []struct {
		kind    rules.Kind
		tags    []string
		holds   bool
		state   rules.State // state of the tags
		follows bool
		top8    bool // by the tags
	}{
		{address, nil, true, rules.Follow, true, false},
		{address, []string{"efp", "top8"}, true, rules.Follow, true, true},
		{address, []string{"block"}, true, rules.Block, false, false},
		{address, []string{"mute", "top8"}, true, rules.Mute, false, false},
		{address, []string{"top8", "mute", "block", "block"}, true, rules.Block | rules.Mute, false, false},
		{address, []string{"Block", " mute", "", "TOP8"}, true, rules.Follow, true, false},
		{rules.Kind{Version: 2, Type: rules.TypeAddress}, nil, false, rules.Follow, false, false},
		{rules.Kind{Version: 1, Type: "2"}, []string{"block"}, false, rules.Block, false, false},
	} {
		if got := test.kind.Holds(); got != test.holds {
			t.Errorf("%v.Holds(): got %t, want %t", test.kind, got, test.holds)
		}
		if got := rules.StateOf(test.tags); got != test.state {
			t.Errorf("StateOf(%q): got %b, want %b", test.tags, got, test.state)
		}
		if got := rules.IsFollow(test.kind, test.tags); got != test.follows {
			t.Errorf("IsFollow(%v, %q): got %t, want %t", test.kind, test.tags, got, test.follows)
		}
		if got := rules.IsTop8(test.tags); got != test.top8 {
			t.Errorf("IsTop8(%q): got %t, want %t", test.tags, got, test.top8)
		}
	}
	if got, want := rules.MergeTags([]string{"top8", "B", "a", "top8", "B"}), []string{"B", "a", "top8"}; !slices.Equal(got, want) {
		t.Errorf("MergeTags: got %q, want %q", got, want)
	}
}

func TestCounted(t *testing.T) {
	for _, test := range []struct {
		state        rules.State
		top8         bool
		holder, held []rules.Measure
	}{
		{0, false, nil, nil},
		{rules.Follow, false, []rules.Measure{rules.Following}, []rules.Measure{rules.Followers}},
		{rules.Follow, true, []rules.Measure{rules.Following}, []rules.Measure{rules.Followers, rules.Top8}},
		{rules.Block, true, []rules.Measure{rules.Blocking}, []rules.Measure{rules.Blocks}},
		{rules.Mute, false, []rules.Measure{rules.Muting}, []rules.Measure{rules.Muted}},
		{rules.Block | rules.Mute, false, []rules.Measure{rules.Blocking, rules.Muting}, []rules.Measure{rules.Blocks, rules.Muted}},
	} {
		if holder, held := rules.Counted(test.state, test.top8); !slices.Equal(holder, test.holder) || !slices.Equal(held, test.held) {
			t.Errorf("Counted(%b, %t): got %v and %v, want %v and %v", test.state, test.top8, holder, held, test.holder, test.held)
		}
	}
	if !rules.IsMutual("a", "b", true) || rules.IsMutual("a", "b", false) || rules.IsMutual("a", "a", true) {
		t.Error("IsMutual: the result differs from two follow checks")
	}
}

func TestOneBadge(t *testing.T) {
	got := rules.OneBadge([]string{"b2", "a3", "b1", "a3"}, func(a, b string) int { return cmp.Compare(a[0], b[0]) }, strings.Compare)
	if want := []string{"a3", "b1"}; !slices.Equal(got, want) {
		t.Errorf("badges: got %q, want %q", got, want)
	}
}

func TestAccounts(t *testing.T) {
	owner, user := "owner", "user"
	if got := rules.AccountOf(owner, &user); got != user {
		t.Errorf("account of a list with a user: got %s, want %s", got, user)
	}
	if got := rules.AccountOf(owner, nil); got != owner {
		t.Errorf("account of a list without a user: got %s, want %s", got, owner)
	}
	for n, loses := range []rules.Namesake{
		{Fresh: 4, Address: [20]byte{0}}, {Fresh: 5, Address: [20]byte{2}}, {Fresh: 5, Address: [20]byte{1, 1}},
		{Refreshed: true, Fresh: 6, Address: [20]byte{0}}, // a refresh takes no name from another account
	} {
		if has := (rules.Namesake{Fresh: 5, Address: [20]byte{1}}); has.Compare(loses) >= 0 || loses.Compare(has) <= 0 {
			t.Errorf("namesake %d: %v has the name, want %v", n, loses, has)
		}
	}
}

func TestRefreshedBadges(t *testing.T) {
	r := rules.RefreshedBadges[string]{AsOf: 100}
	for object, b := range []struct {
		at, token string
		fetched   int64
	}{
		{"old", "1", 100}, {"new", "2", 101}, {"new", "3", 101}, {"newer", "4", 101}, {"newer", "5", 102}, {"newer", "6", 101}, {"none", "", 101},
	} {
		r.Add(b.at, b.token, b.fetched, object)
	}
	if got, want := maps.Collect(r.All()), map[string]string{"new": "2", "newer": "5"}; !maps.Equal(got, want) {
		t.Errorf("badges: got %v, want %v", got, want)
	}
	for at, want := range map[string]bool{"old": false, "new": true, "none": true, "other": false} {
		if got := r.Decide(at); got != want {
			t.Errorf("decided on %s: got %t, want %t", at, got, want)
		}
	}
	if got := r.Objects(); got != 3 {
		t.Errorf("objects: got %d, want 3", got)
	}
}
