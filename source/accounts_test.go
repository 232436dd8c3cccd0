package source_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/big"
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

// TestProfilesTold: a service's profiles and their times count, with any primary lists.
func TestProfilesTold(t *testing.T) {
	const rest = `","avatar":"","header":"","display":"","records":{},"chains":{},"fresh":`
	const end = `,"resolver":"","errors":{}}}`
	row := func(text string) []byte {
		sum := sha256.Sum256([]byte(text))
		return sum[:]
	}
	g := &source.Graph{Primary: map[site.Address]string{{2}: "20", {5}: "50"}}
	err := source.WriteAccounts(&rows{}, g,
		of(profileOf(1, "one", 61_000), profileOf(2, "two", 7)),
		of(profileOf(2, "newer", 90_500), profileOf(3, "untimed", 0)))
	if err != nil {
		t.Fatal(err)
	}
	want := row(`{"address":"0x0100000000000000000000000000000000000000","ens":{"name":"one` + rest + `61000` + end)
	want = append(want, row(`{"address":"0x0200000000000000000000000000000000000000","ens":{"name":"newer`+rest+`90500`+end)...)
	want = append(want, row(`{"address":"0x0300000000000000000000000000000000000000","ens":{"name":"untimed`+rest+`0`+end)...)
	if got, want := *g.Profiles, (site.ServiceInput{From: "1970-01-01T00:01:01Z", Until: "1970-01-01T00:01:30Z", Digest: site.Sum256(want)}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	none := &source.Graph{Primary: g.Primary}
	if err := source.WriteAccounts(&rows{}, none); err != nil || none.Profiles != nil {
		t.Errorf("no profiles: got %+v and the error %v, want nothing", none.Profiles, err)
	}
}

// TestFrom: the source that is named has nothing that may be secret.
func TestFrom(t *testing.T) {
	for service, want := range map[string]string{
		"":                            "",
		"https://ens.example":         "https://ens.example",
		"https://ens.example:8443/v1": "https://ens.example:8443/v1",
		"https://user:word@ens.example/v1?key=secret#secret": "https://ens.example/v1",
		"https://secret@ens.example?":                        "https://ens.example",
		"https://ens.example/%zz?secret":                     "",
		"https://ens.example/" + strings.Repeat("x", 2048):   "",
	} {
		var in site.ServiceInput
		if source.From(&in, service); in.Source != want {
			t.Errorf("%s: got %s, want %s", service, in.Source, want)
		}
	}
	source.From(nil, "https://ens.example")
}

func TestDecimal(t *testing.T) {
	most := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1)).String()
	for text, want := range map[string]source.Word{
		"0":                    {},
		"255":                  {31: 255},
		"256":                  {30: 1},
		"18446744073709551616": {23: 1},
	} {
		if got := want.Decimal(); got != text {
			t.Errorf("Decimal of %s: got %s, want %s", want, got, text)
		}
		if got, err := source.ParseDecimal(text); err != nil || got != want {
			t.Errorf("ParseDecimal(%q): got %s, %v, want %s", text, got, err, want)
		}
	}
	if w, err := source.ParseDecimal(most); err != nil || w.Decimal() != most {
		t.Errorf("ParseDecimal(%q): got %s, %v", most, w, err)
	}
	tooLarge := new(big.Int).Lsh(big.NewInt(1), 256).String()
	for _, text := range []string{"", "01", "-1", "+1", "1.0", "0x1", "1e3", tooLarge} {
		if w, err := source.ParseDecimal(text); err == nil {
			t.Errorf("ParseDecimal(%q): got %s, want an error", text, w)
		}
	}
}
