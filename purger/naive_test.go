package purger_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/purger"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/tags"
)

// A snapshot has the rows of each table. meta.json is a table with one row.
type snapshot map[string][]map[string]any

func readSnapshot(t *testing.T, files fs.FS) snapshot {
	t.Helper()
	s := snapshot{}
	names, err := fs.Glob(files, "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".gz") {
			packed, err := gzip.NewReader(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if data, err = io.ReadAll(packed); err != nil {
				t.Fatal(err)
			}
		}
		table, _, _ := strings.Cut(name, ".")
		s[table] = []map[string]any{}
		for rows := json.NewDecoder(bufio.NewReader(bytes.NewReader(data))); ; {
			rows.UseNumber()
			var row map[string]any
			if err := rows.Decode(&row); err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			s[table] = append(s[table], row)
		}
	}
	return s
}

func (s snapshot) files(t *testing.T) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	for table, rows := range s {
		name := table + ".ndjson"
		if table == "meta" {
			name = "meta.json"
		}
		var text bytes.Buffer
		for _, row := range rows {
			if err := json.NewEncoder(&text).Encode(row); err != nil {
				t.Fatal(err)
			}
		}
		files[name] = &fstest.MapFile{Data: text.Bytes()}
	}
	return files
}

// changes are ways in which a snapshot may differ from the one before. Each returns false if it
// found nothing to change.
var changes = map[string]func(r *rand.Rand, s snapshot) bool{
	"a record less": func(r *rand.Rand, s snapshot) bool { return s.drop(r, "records") },
	"a record more": func(r *rand.Rand, s snapshot) bool {
		row := s.copyOf(r, "records")
		if other := s.one(r, "records"); row != nil {
			row["data"] = other["data"]
			s["records"] = slices.Insert(s["records"], r.IntN(len(s["records"])), row)
		}
		return row != nil
	},
	"another account followed": func(r *rand.Rand, s snapshot) bool {
		return s.set(r, "records", "data", fmt.Sprintf("0x%040x", 0x900000+r.IntN(3)))
	},
	"tags":   func(r *rand.Rand, s snapshot) bool { return s.set(r, "records", "tags", s.one(r, "records")["tags"]) },
	"a mute": func(r *rand.Rand, s snapshot) bool { return s.set(r, "records", "tags", []string{"mute"}) },
	"the time of a record": func(r *rand.Rand, s snapshot) bool {
		return s.set(r, "records", "added", fmt.Sprintf("20%02d-02-03T04:05:06Z", 10+r.IntN(30)))
	},
	"the order of records": func(r *rand.Rand, s snapshot) bool {
		r.Shuffle(len(s["records"]), func(i, j int) { s["records"][i], s["records"][j] = s["records"][j], s["records"][i] })
		return true
	},
	"a list less": func(r *rand.Rand, s snapshot) bool { return s.drop(r, "lists") },
	"a list that is lent": func(r *rand.Rand, s snapshot) bool {
		return s.set(r, "lists", "user", s.one(r, "lists")["owner"])
	},
	"a primary list": func(r *rand.Rand, s snapshot) bool {
		return s.set(r, "accounts", "primary_list", s.one(r, "lists")["token_id"])
	},
	"no primary list": func(r *rand.Rand, s snapshot) bool { return s.set(r, "accounts", "primary_list", nil) },
	"an account less": func(r *rand.Rand, s snapshot) bool { return s.drop(r, "accounts") },
	"a name": func(r *rand.Rand, s snapshot) bool {
		return s.setProfile(r, "name", []string{"new.eth", "alice.eth", "кот.eth", ""}[r.IntN(4)])
	},
	"an avatar":    func(r *rand.Rand, s snapshot) bool { return s.setProfile(r, "avatar", "https://img.example/new") },
	"a header":     func(r *rand.Rand, s snapshot) bool { return s.setProfile(r, "header", "https://img.example/new") },
	"a text":       func(r *rand.Rand, s snapshot) bool { return s.setProfile(r, "records", map[string]any{"new": "text"}) },
	"a fresh name": func(r *rand.Rand, s snapshot) bool { return s.setProfile(r, "fresh", 1800000000000) },
	"a badge": func(r *rand.Rand, s snapshot) bool {
		return s.set(r, "badges", "owner", fmt.Sprintf("0x%040x", 0x1000))
	},
	"an event": func(r *rand.Rand, s snapshot) bool { return s.drop(r, "events") },
	"a recommendation": func(r *rand.Rand, s snapshot) bool {
		return s.set(r, "recommended", "class", "new")
	},
	"a recommendation less": func(r *rand.Rand, s snapshot) bool { return s.drop(r, "recommended") },
	"a later time":          func(r *rand.Rand, s snapshot) bool { return s.set(r, "meta", "as_of", "2027-01-01T00:00:00Z") },
	"a count":               func(r *rand.Rand, s snapshot) bool { return s.set(r, "meta", "list_ops", 123456) },
}

// one returns a row of a table, or an empty row.
func (s snapshot) one(r *rand.Rand, table string) map[string]any {
	if len(s[table]) == 0 {
		return map[string]any{}
	}
	return s[table][r.IntN(len(s[table]))]
}

func (s snapshot) copyOf(r *rand.Rand, table string) map[string]any {
	if len(s[table]) == 0 {
		return nil
	}
	row := map[string]any{}
	for member, value := range s.one(r, table) {
		row[member] = value
	}
	return row
}

func (s snapshot) drop(r *rand.Rand, table string) bool {
	if len(s[table]) == 0 {
		return false
	}
	i := r.IntN(len(s[table]))
	s[table] = slices.Delete(s[table], i, i+1)
	return true
}

func (s snapshot) set(r *rand.Rand, table, member string, value any) bool {
	s.one(r, table)[member] = value
	return len(s[table]) > 0
}

func (s snapshot) setProfile(r *rand.Rand, member string, value any) bool {
	row := s.one(r, "accounts")
	profile, ok := row["ens"].(map[string]any)
	if !ok {
		profile = map[string]any{}
	}
	profile[member], row["ens"] = value, profile
	return len(s["accounts"]) > 0
}

// settings are the ways in which its operator may change a site, on which computed answers depend.
var settings = map[string]func(*site.Config){
	"where profiles are":        func(c *site.Config) { c.ProfileURL = "https://people.example/" + site.AddressPlaceholder },
	"the limit of leaderboards": func(c *site.Config) { c.LeaderboardMax = 20 },
	"the name of badges":        func(c *site.Config) { c.BadgesField = "tokens" },
	"an explorer":               func(c *site.Config) { c.Explorer = !c.Explorer },
	"pages":                     func(c *site.Config) { c.Pages, c.PublicURL = true, "https://graph.example" },
}

// An edition is one of two sites, and its wanted answers.
type edition struct {
	graph *naive.Graph
	site  memsite.Site
}

func newEdition(t *testing.T, s snapshot, c site.Config) edition {
	t.Helper()
	files := s.files(t)
	graph, err := naive.Load(files, naive.Config{BadgesField: c.BadgesField, LeaderboardMax: c.LeaderboardMax, ProfileURL: c.ProfileURL})
	if err != nil {
		t.Fatal(err)
	}
	memory, _, err := generator.ToMemory(t.Context(), afero.FromIOFS{FS: files}, generator.Options{Config: c, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := memsite.Read(memory)
	if err != nil {
		t.Fatal(err)
	}
	return edition{graph, objects}
}

// changedKeys returns the keys that a publish of one site over the other puts and deletes.
func changedKeys(before, after memsite.Site) (keys []site.Key) {
	for key, body := range after {
		if was, ok := before[key]; key != site.RootKey && (!ok || was != body) {
			keys = append(keys, key)
		}
	}
	for key := range before {
		if _, ok := after[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// A forgotten describes which URLs a purge covers.
type forgotten struct {
	purger.Purge
	each []*regexp.Regexp
}

func forget(p purger.Purge) forgotten {
	f := forgotten{Purge: p}
	for _, pattern := range p.Each {
		f.each = append(f.each, regexp.MustCompile("^"+strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, "[^/]+")+"$"))
	}
	return f
}

func (f forgotten) covers(url string) bool {
	path, _, _ := strings.Cut(url, "?")
	return f.All || slices.Contains(f.Exact, url) || slices.Contains(f.Wide, path) ||
		slices.ContainsFunc(f.Wide, func(w string) bool { return strings.HasSuffix(w, "/") && strings.HasPrefix(path, w) }) ||
		slices.ContainsFunc(f.each, func(e *regexp.Regexp) bool { return e.MatchString(path) })
}

// TestEveryAnswerThatChangedIsPurged changes random graphs or the settings of their sites, and compares the answers before and
// after with the purge of the objects that changed.
func TestEveryAnswerThatChangedIsPurged(t *testing.T) {
	t.Parallel()
	names := slices.Concat(slices.Sorted(maps.Keys(changes)), slices.Sorted(maps.Keys(settings)))
	different := map[string]int{}
	rounds, most := servers.Rounds(1, 2)*len(names), servers.Rounds(100, 500)
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 3))
		c := site.Config{API: site.APIEFP}
		if r.IntN(3) == 0 {
			c.Names = site.NamesLookup
		}
		c, err := c.WithDefaults()
		if err != nil {
			t.Fatal(err)
		}
		s := readSnapshot(t, naive.Random(uint64(r.IntN(servers.Rounds(2, 40)))))
		before := newEdition(t, s, c)
		change, next := names[int(seed)%len(names)], c
		set, isSetting := settings[change]
		if isSetting {
			set(&next)
		} else if !changes[change](r, s) {
			continue
		}
		after := newEdition(t, s, next)
		keys := changedKeys(before.site, after.site)
		purge := forget(purger.URLs(c, next, keys))
		if purge.All != isSetting {
			t.Errorf("seed %d, %s: purges everything: got %v, want that of a changed setting only", seed, change, purge.All)
		}
		tagged := c
		tagged.Tags = "fastly"
		few, all := purger.Tags(tagged, keys, 20+r.IntN(60)), purger.Tags(tagged, keys, 10_000)
		requests := append(naive.Requests(r, before.graph, most), naive.Requests(r, after.graph, most)...)
		for _, request := range requests {
			_, _, was := before.graph.Answer(request.Method, request.Path, request.RawQuery, request.Body)
			_, _, is := after.graph.Answer(request.Method, request.Path, request.RawQuery, request.Body)
			if request.Method != "GET" || bytes.Equal(was, is) {
				continue
			}
			resolution := c.Resolve(request.Method, request.Path, request.RawQuery)
			if resolution.Route == nil || resolution.Key == "" {
				t.Errorf("seed %d, %s, %s: got no route, want one whose answer changed", seed, change, request)
				continue
			}
			url := resolution.Key.URLPath()
			if resolution.Query != "" {
				url += "?" + resolution.Query
			}
			different[resolution.Route.Pattern]++
			for _, purged := range [][]string{few, all} {
				has := tags.Of(tagged, resolution.Route, resolution.Key)
				if !isSetting && purged != nil && !slices.ContainsFunc(has, func(tag string) bool { return slices.Contains(purged, tag) }) {
					t.Errorf("seed %d, %s: the changed answer %s has the tags %q, none of which is purged: %q", seed, change, url, has, purged)
				}
			}
			if !purge.covers(url) {
				t.Errorf("seed %d, %s: %s is not purged, but its answer changed.\nbefore %.300s\nafter  %.300s\nobjects %.600q", seed, change, url, was, is, keys)
				break
			}
		}
	}
	if len(different) < servers.Rounds(20, 40) {
		t.Errorf("routes with answers that changed: got %d, want nearly all: %v", len(different), different)
	}
}
