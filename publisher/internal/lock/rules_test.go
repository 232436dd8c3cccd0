package lock

import (
	"maps"
	"testing"
	"time"

	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/site"
)

// The headers of an object are known only if all runs that may have put it, allowing for clock
// differences, put the same ones.
func TestRulesOfObjects(t *testing.T) {
	const pattern = "/p"
	begun := time.Unix(1e9, 0)
	rules := func(text string) map[string]site.MD5 { return map[string]site.MD5{pattern: site.Sum([]byte(text))} }
	live := &site.Root{HeaderRules: rules("live")}
	first, second := Run{Since: begun, HeaderRules: rules("first")}, Run{Since: begun.Add(time.Hour), HeaderRules: rules("second")}
	for _, c := range []struct {
		name string
		runs []Run
		live *site.Root
		put  time.Duration // after the first run began
		want string        // "" if unknown
	}{
		{"no run is named", nil, live, time.Hour, "live"},
		{"nothing is named", nil, nil, time.Hour, ""},
		{"long before the run", []Run{first}, live, -clockSlack - 1, "live"},
		{"hardly before the run", []Run{first}, live, -clockSlack + 1, ""},
		{"while earlier requests may arrive", []Run{first}, live, requests.Lateness - 1, ""},
		{"long after it began", []Run{first}, live, requests.Lateness, "first"},
		{"before a first publish", []Run{first}, nil, -clockSlack - 1, ""},
		{"hardly before a first publish", []Run{first}, nil, -clockSlack, "first"},
		{"of the first of two", []Run{first, second}, nil, 30 * time.Minute, "first"},
		{"of one of two", []Run{first, second}, live, time.Hour, ""},
		{"of the second of two, or of a late request of the first", []Run{first, second}, live, 2*time.Hour - 1, ""},
		{"of the second of two", []Run{first, second}, live, 2 * time.Hour, "second"},
		{"of two with the same", []Run{first, {Since: begun.Add(time.Hour), HeaderRules: rules("first")}}, live, time.Hour, "first"},
	} {
		got, ok := (&Mark{Runs: c.runs}).RulesAt(begun.Add(c.put), pattern, c.live)
		if ok != (c.want != "") || ok && got != site.Sum([]byte(c.want)) {
			t.Errorf("%s: got %v, known %v, want %q", c.name, got, ok, c.want)
		}
	}
}

// Leftovers are found of every site that may have some: the live one, those of marked runs, and the
// next one.
func TestConfigsOfLeftovers(t *testing.T) {
	live, next := site.Root{Config: site.Config{BasePath: "live"}}, site.Root{Config: site.Config{BasePath: "next"}}
	found := map[string]bool{}
	for _, c := range (&Mark{Runs: []Run{{Config: site.Config{BasePath: "marked"}}}}).Configs(&live, &next) {
		found[c.BasePath] = true
	}
	if want := map[string]bool{"live": true, "next": true, "marked": true}; !maps.Equal(found, want) {
		t.Errorf("base paths: got %v, want %v", found, want)
	}
}
