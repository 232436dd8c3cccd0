package source_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
)

// rows is an AccountWriter that collects the rows.
type rows []snapshot.Account

func (r *rows) WriteAccount(a snapshot.Account) error {
	*r = append(*r, a)
	return nil
}

var _ source.AccountWriter = (*snapshot.Writer)(nil)

func of(profiles ...source.Profile) source.Profiles {
	return func(yield func(source.Profile, error) bool) {
		for _, p := range profiles {
			if !yield(p, nil) {
				return
			}
		}
	}
}

func profileOf(address byte, name string, fresh int64) source.Profile {
	return source.Profile{Address: site.Address{address}, ENS: site.Profile{Name: name, Fresh: fresh}}
}

func TestWriteAccounts(t *testing.T) {
	g := &source.Graph{
		Primary: map[site.Address]string{{2}: "20", {5}: "50"},
		Held:    map[site.Address]uint32{{9}: 4}, // neither names a list nor has a profile: no row
	}
	var got rows
	err := source.WriteAccounts(&got, g,
		of(profileOf(1, "one", 1), profileOf(2, "two", 7), profileOf(3, "three", 3)),
		of(),
		of(profileOf(2, "newer", 8), profileOf(3, "as new", 3), profileOf(4, "four", 0)))
	if err != nil {
		t.Fatal(err)
	}
	ens := func(name string, fresh int64) *site.Profile { return &site.Profile{Name: name, Fresh: fresh} }
	want := rows{
		{Address: site.Address{1}, ENS: ens("one", 1)},
		{Address: site.Address{2}, Primary: "20", ENS: ens("newer", 8)},
		{Address: site.Address{3}, ENS: ens("three", 3)},
		{Address: site.Address{4}, ENS: ens("four", 0)},
		{Address: site.Address{5}, Primary: "50"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("rows: got %+v, want %+v", got, want)
	}
}

func TestWriteAccountsErrors(t *testing.T) {
	broken := errors.New("disk on fire")
	for name, tc := range map[string]struct {
		profiles source.Profiles
		want     string
	}{
		"not in order":  {of(profileOf(2, "", 0), profileOf(1, "", 0)), "comes after 0x0200"},
		"address twice": {of(profileOf(2, "", 0), profileOf(2, "", 0)), "comes after 0x0200"},
		"broken at once": {func(yield func(source.Profile, error) bool) {
			yield(source.Profile{}, broken)
		}, "disk on fire"},
		"broken later": {func(yield func(source.Profile, error) bool) {
			_ = yield(profileOf(1, "", 0), nil) && yield(source.Profile{}, broken)
		}, "disk on fire"},
	} {
		t.Run(name, func(t *testing.T) {
			var got rows
			err := source.WriteAccounts(&got, &source.Graph{}, of(profileOf(3, "", 0)), tc.profiles)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

// TestWriteAccountsRandomly compares the merge with maps.
func TestWriteAccountsRandomly(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		g := &source.Graph{Primary: map[site.Address]string{}}
		want := map[site.Address]snapshot.Account{}
		for range random.IntN(20) {
			a := site.Address{byte(random.IntN(30))}
			g.Primary[a] = fmt.Sprint(a[0])
			want[a] = snapshot.Account{Address: a, Primary: g.Primary[a]}
		}
		var sources []source.Profiles
		for i := range random.IntN(4) {
			chosen := map[site.Address]source.Profile{}
			for range random.IntN(20) {
				p := profileOf(byte(random.IntN(30)), fmt.Sprint(i), random.Int64N(4))
				chosen[p.Address] = p
			}
			inOrder := slices.SortedFunc(maps.Values(chosen), func(a, b source.Profile) int { return int(a.Address[0]) - int(b.Address[0]) })
			for _, p := range inOrder {
				row := want[p.Address]
				row.Address = p.Address
				if row.ENS == nil || p.ENS.Fresh > row.ENS.Fresh {
					row.ENS = &p.ENS
				}
				want[p.Address] = row
			}
			sources = append(sources, of(inOrder...))
		}
		var got rows
		if err := source.WriteAccounts(&got, g, sources...); err != nil {
			t.Fatal(err)
		}
		inOrder := slices.SortedFunc(maps.Values(want), func(a, b snapshot.Account) int { return int(a.Address[0]) - int(b.Address[0]) })
		if !slices.EqualFunc(got, inOrder, func(a, b snapshot.Account) bool { return reflect.DeepEqual(a, b) }) {
			t.Fatalf("seed %d: got %+v, want %+v", seed, got, inOrder)
		}
	}
}

func TestParseBudget(t *testing.T) {
	for text, want := range map[string]source.Budget{"2000": {Requests: 2000}, "30m": {Time: 30 * 60e9}, "1h30m": {Time: 90 * 60e9}} {
		var got source.Budget
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "0s", "-3m", "30 m", "all", "1.5", "99999999999999999999"} {
		if got, err := source.ParseBudget(text); err == nil {
			t.Errorf("%q: got %+v, want an error", text, got)
		}
	}
}
