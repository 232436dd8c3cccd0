package generator_test

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/explorer"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/site"
)

// exploring returns options with the explorer.
func exploring(o generator.Options) generator.Options {
	o.Config.Explorer = true
	return o
}

// explorerObjects returns the keys that only a site with the explorer has.
func explorerObjects() []site.Key {
	keys := []site.Key{site.IndexKey, site.TopKey, render.StartKey, site.NetworkKey}
	for _, f := range explorer.Files(site.Config{Explorer: true}) {
		keys = append(keys, site.ExplorerKey(f.Name))
	}
	slices.Sort(keys)
	return keys
}

// TestExplorerEqualsTheTwin compares the explorer's objects with the naive twin, on random graphs.
func TestExplorerEqualsTheTwin(t *testing.T) {
	t.Parallel()
	snapshots := []fs.FS{afero.NewIOFS(emptySnapshot().fs())}
	for seed := range uint64(servers.Rounds(7, 20)) {
		snapshots = append(snapshots, naive.Random(seed))
	}
	for n, fsys := range snapshots {
		g, err := naive.Load(fsys, naive.Config{})
		if err != nil {
			t.Fatal(err)
		}
		for api, o := range map[string]generator.Options{site.APISpec: small, site.APIEFP: smallEFP} {
			got := inMemory(t, readSnapshot(t, fsys), exploring(o))
			if want := string(g.Top()); got[site.TopKey] != want {
				t.Errorf("snapshot %d, %s: %s: got %s\nwant %s", n, api, site.TopKey, got[site.TopKey], want)
			}
			if want := string(g.Start()); got[render.StartKey] != want {
				t.Errorf("snapshot %d, %s: %s: got %s\nwant %s", n, api, render.StartKey, got[render.StartKey], want)
			}
			if want := string(g.Network(api == site.APIEFP)); got[site.NetworkKey] != want {
				t.Errorf("snapshot %d, %s: %s: got %s\nwant %s", n, api, site.NetworkKey, got[site.NetworkKey], want)
			}
		}
	}
}

// TestManyAccountsOfTheExplorer: the explorer shows the first 2,000 accounts, however few
// leaderboards show.
func TestManyAccountsOfTheExplorer(t *testing.T) {
	t.Parallel()
	s := emptySnapshot().adding("accounts",
		`{"address":"`+alice+`","primary_list":"1","ens":{"name":"alice.eth"}}`,
		// The limit of avatars applies to the decoded text: this one has 200 bytes, and more in
		// JSON.
		`{"address":"0x`+fmt.Sprintf("%040x", 1)+`","ens":{"avatar":"`+strings.Repeat(`\"`, 100)+strings.Repeat("x", 100)+`"}}`,
		`{"address":"0x`+fmt.Sprintf("%040x", 2)+`","ens":{"avatar":"`+strings.Repeat(`\"`, 100)+strings.Repeat("x", 101)+`"}}`,
		`{"address":"0x`+fmt.Sprintf("%040x", 3)+`","ens":{"avatar":"`+strings.Repeat(`x`, 201)+`"}}`)
	s = s.adding("lists", `{"token_id":"1","owner":"`+alice+`"}`)
	s = s.adding("records", repeatedRows(2100, func(i int) string { return recordRow("1", fmt.Sprintf("0x%040x", i+1), "") })...)
	fsys := fstest.MapFS{}
	for name, text := range s {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	g, err := naive.Load(fsys, naive.Config{})
	if err != nil {
		t.Fatal(err)
	}
	got := inMemory(t, s, exploring(small))
	if got[site.TopKey] != string(g.Top()) || strings.Count(got[site.TopKey], "[") != 2001 || !strings.HasPrefix(got[site.TopKey], `{"total":2100,`) {
		t.Errorf("%s: got %.300s, want %.300s", site.TopKey, got[site.TopKey], g.Top())
	}
	if got[render.StartKey] != string(g.Start()) || strings.Count(got[render.StartKey], "[") != 51 || len(got[render.StartKey]) > 8100 {
		t.Errorf("%s: got %.300s, want %.300s", render.StartKey, got[render.StartKey], g.Start())
	}
	if n := strings.Count(got[site.LeaderboardLimitKey(site.Followers, small.Config.LeaderboardMax)], `"rank"`); n != small.Config.LeaderboardMax {
		t.Errorf("leaderboard: got %d accounts, want %d", n, small.Config.LeaderboardMax)
	}
	if n := len(inMemory(t, emptySnapshot(), exploring(smallEFP))[site.NetworkKey]); n == 0 {
		t.Errorf("%s of an empty graph: got nothing", site.NetworkKey)
	}
}

// TestExplorerIsAllThatItAdds: the explorer adds its objects and changes no other.
func TestExplorerIsAllThatItAdds(t *testing.T) {
	t.Parallel()
	for api, o := range map[string]generator.Options{site.APISpec: small, site.APIEFP: smallEFP} {
		s := randomSnapshot(11, shape{accounts: 25, lists: 18, records: 350, events: 5, badges: 60, hostile: true})
		without, with := inMemory(t, s, o), inMemory(t, s, exploring(o))
		var added []site.Key
		for key, body := range with {
			before, ok := without[key]
			switch {
			case key == site.RootKey || strings.HasPrefix(string(key), "_manifest/"):
			case !ok:
				added = append(added, key)
			case before != body:
				t.Errorf("%s: %s: got another object than without the explorer", api, key)
			}
		}
		slices.Sort(added)
		if !slices.Equal(added, explorerObjects()) {
			t.Errorf("%s: got the objects %q of the explorer, want %q", api, added, explorerObjects())
		}
		for key := range maps.Keys(without) {
			if _, ok := with[key]; !ok {
				t.Errorf("%s: %s: got no object with the explorer", api, key)
			}
		}
		if strings.Contains(without[site.RootKey], "explore") {
			t.Errorf("%s: got the root %s, want it without the explorer", api, without[site.RootKey])
		}
	}
}

// TestSettingsOfTheExplorer: only the page and the root depend on the sources of pictures, however
// these are written, and on keys.
func TestSettingsOfTheExplorer(t *testing.T) {
	t.Parallel()
	const key = "follow.example+1a2b3c4d+AbCd"
	s := randomSnapshot(12, shape{accounts: 9, lists: 6, records: 30})
	with := func(pictures, keys string) objects {
		o := exploring(small)
		o.Config.Pictures, o.Config.ExplorerKeys = pictures, keys
		return inMemory(t, s, o)
	}
	usual, some := with("", ""), with("b.example,A.example", key)
	if !maps.Equal(some, with("a.example b.example", key)) {
		t.Error("the same hosts in another order: got another site")
	}
	for name, body := range some {
		if usual[name] != body && name != site.RootKey && name != site.ExplorerPageKey && !strings.HasPrefix(string(name), "_manifest/") {
			t.Errorf("%s: got another object than without settings", name)
		}
	}
	for name, pictures := range map[site.Key]string{
		site.ExplorerPageKey: "img-src blob: https://a.example https://b.example; connect-src 'self' https://a.example https://b.example;", site.RootKey: `"pictures":"a.example b.example"`,
	} {
		text := strings.NewReplacer("&#39;", "'", "&#43;", "+").Replace(some[name])
		if !strings.Contains(text, pictures) || !strings.Contains(text, key) {
			t.Errorf("%s: got %s, want in it %s and %s", name, text, pictures, key)
		}
	}
}
