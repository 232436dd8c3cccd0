package publisher

import (
	"slices"
	"testing"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/site"
)

// A mark names the live site and all runs, successive ones with the same rules once, even under
// concurrent writes.
func TestMarkNames(t *testing.T) {
	sites := simulatedSites()
	live, same, older, moved := &sites[0].root, &sites[1].root, &sites[len(sites)/2].root, &sites[4].root
	named := func(roots ...*site.Root) (runs []lock.Run) {
		for _, root := range roots {
			runs = append(runs, lock.Run{Config: root.Config, HeaderRules: root.HeaderRules})
		}
		return runs
	}
	for name, c := range map[string]struct {
		found     []*site.Root // named by the existing mark
		meanwhile []*site.Root // named by a mark that arrives before this run's
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
						w.setMark(t, &lock.Mark{Runs: named(c.meanwhile...)})
					}
				}
				b := retrying(&meddled{w.calm("p", nil), site.MarkKey, meddle}, time.Minute)
				if c.found != nil {
					w.setMark(t, &lock.Mark{Runs: named(c.found...)})
				}
				found, err := lock.ReadMark(t.Context(), b)
				if err != nil {
					t.Fatal(err)
				}
				runs, err := lock.WriteMark(t.Context(), b, found, c.live, c.next)
				if err != nil {
					t.Fatal(err)
				}
				stored, err := lock.ReadMark(t.Context(), b)
				if err != nil {
					t.Fatal(err)
				}
				for of, got := range map[string][]lock.Run{"stored": stored.Runs, "returned": runs} {
					if !slices.EqualFunc(got, named(c.want...), lock.Run.SameRules) {
						t.Errorf("%s: got %v, want %v", of, got, named(c.want...))
					}
				}
			})
		})
	}
}

func (w *world) setMark(t *testing.T, m *lock.Mark) {
	t.Helper()
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	w.set(site.MarkKey, text)
}
