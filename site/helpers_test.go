package site_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/twin/answers"
	"github.com/followpress/followpress/site"
)

const (
	alice      = "0xabcdefabcdefabcdefabcdefabcdefabcdefabcd"
	aliceUpper = "0XABCDEFABCDEFABCDEFABCDEFABCDEFABCDEFABCD"

	// largestTokenID is 2^256-1.
	largestTokenID = "115792089237316195423570985008687907853269984665640564039457584007913129639935"
)

// configs returns the default configuration and some with other base paths.
func configs(t testing.TB) []site.Config {
	t.Helper()
	var all []site.Config
	for _, base := range []string{"", "x", "a/b/c"} {
		c, err := site.Config{BasePath: base}.WithDefaults()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	all = append(all, efpConfig(t, site.NamesCopies), efpConfig(t, site.NamesLookup))
	return append(all, withExplorer(all[1]), withExplorer(efpConfig(t, site.NamesCopies)), withHistory(withExplorer(efpConfig(t, site.NamesLookup))), withPages(efpConfig(t, site.NamesCopies)))
}

func withPages(c site.Config) site.Config {
	c.Pages, c.PublicURL = true, "https://graph.example/at"
	return c
}

func withHistory(c site.Config) site.Config {
	c.HistoryWindow = site.Window(site.DefaultHistoryWindow)
	return c
}

func withExplorer(c site.Config) site.Config {
	c.Explorer = true
	return c
}

func efpConfig(t testing.TB, names string) site.Config {
	t.Helper()
	c, err := site.Config{API: site.APIEFP, Names: names}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func defaultConfig(t testing.TB) site.Config { return configs(t)[0] }

// encode returns the JSON of v by go-json, which the encoders of this package must produce too.
func encode(t testing.TB, v any) string {
	t.Helper()
	body, err := json.MarshalWithOption(v, json.DisableHTMLEscape())
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// escapedPath returns the path of a URL whose decoded path is the key.
func escapedPath(key site.Key) string {
	var path strings.Builder
	for segment := range strings.SplitSeq(string(key), "/") {
		path.WriteString("/" + url.PathEscape(segment))
	}
	return path.String()
}

// newRandom returns a source that gives the same values in every run.
func newRandom() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// pieces are the parts of random texts: ordinary letters, letters with special case, composition or JSON encoding,
// and parts of the JSON that this package searches for.
var pieces = []string{
	"a", "B", "z.eth", "0", "7", " ", "'", "<", "&", "%", "_", "/", ":", ",", "{", "}", "[", "]",
	`"`, `\`, `\"`, `","`, `":"`, `":[`, `},{"version":`, `[{"version":`, `,"tags":[`, `"tags":[`, `"data":"`,
	`"ens":{"name":"`, `"entries":`, `]}`, `"}}`,
	"é", "e\u0301", "É", "\u0301", "ß", "ẞ", "Σ", "ς", "\u0130", "\u212A", "К", "日本語", "🦊", "❤\uFE0F", "\u200F",
	"\u2028", "\u2029", "\uFFFD", "\n", "\t", "\b", "\f", "\r", "\x00", "\x1f", "\x7f",
}

func randomText(random *rand.Rand, longest int) string {
	var text strings.Builder
	for range random.IntN(longest + 1) {
		text.WriteString(pick(random, pieces))
	}
	return text.String()
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

// randomEntries are search entries with awkward texts.
func randomEntries(random *rand.Rand) []answers.SearchEntry {
	return randomEntriesOf(random, random.IntN(6))
}

func randomEntriesOf(random *rand.Rand, n int) []answers.SearchEntry {
	entries := make([]answers.SearchEntry, n)
	for i := range entries {
		entries[i] = answers.SearchEntry{
			Record: answers.Record{
				Version: 1, RecordType: "address", Data: randomAddress(random).String(), Tags: make([]string, random.IntN(3)),
			},
			ENS: answers.SearchProfile{Name: randomText(random, 5), Avatar: randomText(random, 2)},
		}
		for j := range entries[i].Tags {
			entries[i].Tags[j] = randomText(random, 3)
		}
	}
	return entries
}

// randomRecords are records as a list may hold them, of other versions and types too.
func randomRecords(random *rand.Rand) []answers.Record {
	records := []answers.Record{}
	for _, e := range randomEntries(random) {
		e.Version, e.RecordType = random.Uint32(), randomText(random, 3)
		if random.IntN(2) == 0 {
			e.Data = randomText(random, 3)
		}
		records = append(records, e.Record)
	}
	return records
}

func randomAddress(random *rand.Rand) (address site.Address) {
	for i := range address {
		address[i] = byte(random.Uint32())
	}
	return address
}

// randomObjects returns sorted manifest entries with so few keys that two calls share some.
func randomObjects(random *rand.Rand) []site.Entry {
	objects := []site.Entry{}
	for i := range 12 {
		if random.IntN(2) == 0 {
			objects = append(objects, site.Entry{
				Key: site.Key(fmt.Sprintf("api/v1/lists/%02d/records", i)), Size: random.Int64N(2), MD5: site.MD5{byte(random.IntN(2))},
			})
		}
	}
	return objects
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func equalSlices[T comparable](t testing.TB, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\ngot  %v\nwant %v", what, got, want)
	}
}
