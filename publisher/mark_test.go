package publisher

import (
	"maps"
	"slices"
	"testing"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

// The headers of an object are known only if all runs that may have put it, by clocks that may be apart,
// put the same ones.
func TestRulesOfObjects(t *testing.T) {
	const pattern = "/p"
	begun := time.Unix(1e9, 0)
	rules := func(text string) map[string]site.MD5 { return map[string]site.MD5{pattern: site.Sum([]byte(text))} }
	live := &site.Root{HeaderRules: rules("live")}
	first, second := markedRun{Since: begun, HeaderRules: rules("first")}, markedRun{Since: begun.Add(time.Hour), HeaderRules: rules("second")}
	for _, c := range []struct {
		name string
		runs []markedRun
		live *site.Root
		put  time.Duration // after the first run began
		want string        // "" if it is not known
	}{
		{"no run is named", nil, live, time.Hour, "live"},
		{"nothing is named", nil, nil, time.Hour, ""},
		{"long before the run", []markedRun{first}, live, -clockSlack - 1, "live"},
		{"hardly before the run", []markedRun{first}, live, -clockSlack + 1, ""},
		{"while earlier requests may arrive", []markedRun{first}, live, lateness - 1, ""},
		{"long after it began", []markedRun{first}, live, lateness, "first"},
		{"before a first publish", []markedRun{first}, nil, -clockSlack - 1, ""},
		{"hardly before a first publish", []markedRun{first}, nil, -clockSlack, "first"},
		{"of the first of two", []markedRun{first, second}, nil, 30 * time.Minute, "first"},
		{"of one of two", []markedRun{first, second}, live, time.Hour, ""},
		{"of the second of two, or of a late request of the first", []markedRun{first, second}, live, 2*time.Hour - 1, ""},
		{"of the second of two", []markedRun{first, second}, live, 2 * time.Hour, "second"},
		{"of two with the same", []markedRun{first, {Since: begun.Add(time.Hour), HeaderRules: rules("first")}}, live, time.Hour, "first"},
	} {
		got, ok := (&mark{Runs: c.runs}).rulesAt(begun.Add(c.put), pattern, c.live)
		if ok != (c.want != "") || ok && got != site.Sum([]byte(c.want)) {
			t.Errorf("%s: got %v, known %v, want %q", c.name, got, ok, c.want)
		}
	}
}

// A mark names the live site and all runs, successive ones with the same rules once, whoever else writes
// it meanwhile.
func TestMarkNames(t *testing.T) {
	sites := simulatedSites()
	live, same, older, moved := &sites[0].root, &sites[1].root, &sites[len(sites)/2].root, &sites[4].root
	named := func(roots ...*site.Root) (runs []markedRun) {
		for _, root := range roots {
			runs = append(runs, markedRun{Config: root.Config, HeaderRules: root.HeaderRules})
		}
		return runs
	}
	for name, c := range map[string]struct {
		found     []*site.Root // named by the mark that there is
		meanwhile []*site.Root // named by one that arrives before this run's
		live      *site.Root
		next      *site.Root
		want      []*site.Root
	}{
		"a first publish":        {nil, nil, nil, older, []*site.Root{older}},
		"an update":              {nil, nil, live, older, []*site.Root{live, older}},
		"the same rules":         {[]*site.Root{live, older}, nil, live, older, []*site.Root{live, older}},
		"other headers":          {[]*site.Root{live}, nil, live, older, []*site.Root{live, older}},
		"another configuration":  {[]*site.Root{live}, nil, live, moved, []*site.Root{live, moved}},
		"the same rules again":   {[]*site.Root{older}, nil, live, same, []*site.Root{older, same}},
		"one that arrives late":  {nil, []*site.Root{moved}, live, older, []*site.Root{moved, older}},
		"one that is replaced":   {[]*site.Root{live}, []*site.Root{live, moved}, live, older, []*site.Root{live, moved, older}},
		"the same arrives late":  {nil, []*site.Root{live, older}, live, older, []*site.Root{live, older}},
		"one of unknown content": {[]*site.Root{}, nil, live, older, []*site.Root{older}},
	} {
		t.Run(name, func(t *testing.T) {
			calmly(t, conditional, func(t *testing.T, w *world) {
				meddle := func() {
					if c.meanwhile != nil {
						w.setMark(t, &mark{Runs: named(c.meanwhile...)})
					}
				}
				b := retrying(&meddled{w.calm("p", nil), site.MarkKey, meddle}, time.Minute)
				if c.found != nil {
					w.setMark(t, &mark{Runs: named(c.found...)})
				}
				found, err := readMark(t.Context(), b)
				if err != nil {
					t.Fatal(err)
				}
				runs, err := writeMark(t.Context(), b, found, c.live, c.next)
				if err != nil {
					t.Fatal(err)
				}
				stored, err := readMark(t.Context(), b)
				if err != nil {
					t.Fatal(err)
				}
				for of, got := range map[string][]markedRun{"stored": stored.Runs, "returned": runs} {
					if !slices.EqualFunc(got, named(c.want...), markedRun.sameRules) {
						t.Errorf("%s: got %v, want %v", of, got, named(c.want...))
					}
				}
			})
		})
	}
}

func (w *world) setMark(t *testing.T, m *mark) {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	w.set(site.MarkKey, text)
}

// Objects of every site that may have left some are found: of the live one, of marked runs, and of the next.
func TestConfigsOfLeftovers(t *testing.T) {
	sites := simulatedSites()
	live, next, marked := sites[0].root, sites[1].root, sites[4].root
	live.Config.BasePath, next.Config.BasePath = "live", "next"
	found := map[string]bool{}
	for _, c := range (&mark{Runs: []markedRun{{Config: marked.Config}}}).configs(&live, &next) {
		found[c.BasePath] = true
	}
	if want := map[string]bool{"live": true, "next": true, marked.Config.BasePath: true}; !maps.Equal(found, want) {
		t.Errorf("base paths: got %v, want %v", found, want)
	}
}
