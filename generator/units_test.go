package generator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/fixtures/graph"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/answers"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	snapshots "github.com/followpress/followpress/snapshot"
)

// unit returns an account with one of its lists, or with none, from the reference answers.
func (w *twin) unit(account, token string) *render.Unit {
	w.t.Helper()
	u := &render.Unit{Account: w.account(account), Token: token}
	for event, b := range w.badges[account] {
		if b.Participated {
			u.Badges = append(u.Badges, render.Badge{Event: uint32(event), TokenID: b.Collection.TokenID})
		}
	}
	for _, of := range w.tokens {
		if w.lists[of].account == account {
			u.Tokens = append(u.Tokens, of)
		}
	}
	slices.SortFunc(u.Tokens, site.CompareTokenIDs)
	for _, r := range w.lists[token].records {
		u.Records = append(u.Records, w.record(r))
	}
	for _, f := range pages[naiveFollower](w, "users/"+account+"/allFollowers", "followers") {
		holder := w.holder(f)
		if holder.Tags.State == rules.Follow && len(u.Page) < site.DefaultLimit {
			u.Page = append(u.Page, holder)
		}
		if len(f.Tags) > 0 {
			u.Tagged = append(u.Tagged, holder)
		}
	}
	slices.SortFunc(u.Tagged, func(a, b render.Follower) int { return site.CompareTokenIDs(a.Token, b.Token) })
	return u
}

func (w *twin) account(address string) *render.Account {
	w.t.Helper()
	p := w.person(address)
	a := &render.Account{Address: w.parse(address), Profile: render.EncodeProfile(p.ENS), Primary: w.primary[address]}
	if w.names[p.ENS.Name] != address {
		a.Profile.Name = ""
	}
	a.Counts[rules.Followers], a.Counts[rules.Following] = uint32(p.followers), uint32(p.following)
	for measure, rank := range map[rules.Measure]string{
		rules.Followers: p.Ranks.Followers, rules.Following: p.Ranks.Following, rules.Mutuals: p.Ranks.Mutuals, rules.Top8: p.Ranks.Top8, rules.Blocks: p.Ranks.Blocks,
	} {
		a.Ranks[measure] = uint32(number(w.t, rank))
	}
	return a
}

func (w *twin) parse(address string) site.Address {
	w.t.Helper()
	a, err := site.ParseAddress(address)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// record returns an entry of a list, with no more of the profile than required.
func (w *twin) record(r answers.Record) render.Record {
	w.t.Helper()
	form := render.NewRecordForm(r.Version, r.RecordType, r.Tags)
	out := render.Record{Form: &form}
	if !isAddress(r) {
		out.Data = r.Data
		return out
	}
	a := w.account(r.Data)
	p := a.Profile
	out.Address, out.Followers, out.ENS, out.SearchLen = a.Address, a.Counts[rules.Followers], p.ENS[:p.SearchLen], p.SearchLen
	if w.config.EFP() {
		out.ENS = p.ENS[:render.HeaderEnd(p.ENS, p.SearchLen)]
	}
	return out
}

func (w *twin) holder(f naiveFollower) render.Follower {
	w.t.Helper()
	h := render.Follower{Token: f.List, Account: w.parse(f.Address), Tags: render.NewTagSet(f.Tags), Added: f.Time.UnixMilli()}
	for state, has := range map[rules.State]bool{rules.Follow: f.Follow, rules.Block: f.Block, rules.Mute: f.Mute} {
		if has {
			h.State |= state
		}
	}
	return h
}

// checkUnits compares the objects of all units with the site: every object of a list, of an account
// with or without one, and of a name is rendered once, and is the same.
func (w *twin) checkUnits(s snapshot) {
	w.t.Helper()
	asOf, err := snapshots.ReadAsOf(s.fs())
	if err != nil {
		w.t.Fatal(err)
	}
	renderer, err := render.New(w.config, asOf, eventsOf(w.t, s))
	if err != nil {
		w.t.Fatal(err)
	}
	rendered := objects{}
	add := func(u *render.Unit) {
		if err := renderer.Unit(u, func(key site.Key, body []byte) {
			if _, ok := rendered[key]; ok {
				w.t.Errorf("%s is rendered twice", key)
			}
			rendered[key] = string(body)
		}); err != nil {
			w.t.Error(err)
		}
	}
	for _, token := range w.tokens {
		add(w.unit(w.lists[token].account, token))
	}
	for _, account := range w.addresses() {
		if w.primary[account] == "" {
			add(w.unit(account, ""))
		}
	}
	want := objects{}
	for key, body := range w.objects {
		for _, prefix := range []string{w.config.BasePath + "/lists/", w.config.BasePath + "/users/", "_search/lists/"} {
			if strings.HasPrefix(string(key), prefix) {
				want[key] = body
			}
		}
	}
	if err := rendered.Compare(want); err != nil {
		w.t.Error(err)
	}
}

// TestUnitsEqualSite: the objects of accounts and lists can be rendered without the graph. The tests
// of beam/ prove the same of all other objects.
func TestUnitsEqualSite(t *testing.T) {
	t.Parallel()
	all := map[string]snapshot{
		"empty": emptySnapshot(),
		"hub":   hub(1030), // shards and heads
		// An account held by some dozens, and long lists of others.
		"long lists": syntheticSnapshot(t, graph.Options{Accounts: 2600, Lists: 3, Records: 4000, Seed: 5}),
		"synthetic":  syntheticSnapshot(t, graph.Options{Accounts: 120, Lists: 150, Records: 1500, Seed: 6}),
		"many forms": manyForms(),
	}
	for name, files := range committedSnapshots(t) {
		all[name] = readSnapshot(t, files)
	}
	for seed := range uint64(servers.Rounds(1, 12)) {
		all[fmt.Sprint("random ", seed)] = readSnapshot(t, naive.Random(seed))
		all[fmt.Sprint("hostile ", seed)] = randomSnapshot(2000+seed, shape{accounts: 25, lists: 18, records: 350, events: 5, badges: 60, hostile: true})
	}
	configs := map[string]site.Config{
		"spec":   {API: site.APISpec, LeaderboardMax: 12, BadgesField: `po"aps<é>`, BasePath: "graph/v2.0", Explorer: true},
		"efp":    {API: site.APIEFP, LeaderboardMax: 12, Explorer: true},
		"lookup": {API: site.APIEFP, LeaderboardMax: 60, Names: site.NamesLookup},
	}
	for name, s := range all {
		for api, config := range configs {
			if name == "hub" && api == "spec" || api == "lookup" && slices.Contains([]string{"hub", "long lists", "conformance"}, name) {
				continue // without heads; large graphs, in which only the same objects of names are missing as in others
			}
			t.Run(name+" "+api, func(t *testing.T) {
				t.Parallel()
				newTwin(t, s, config).checkUnits(s)
			})
		}
	}
}

// manyForms returns a list whose records have more kinds and tags than a byte can count, before a
// list with a few.
func manyForms() snapshot {
	var records []string
	for i := range 700 {
		records = append(records, fmt.Sprintf(`{"token_id":"1","version":%d,"record_type":"address","data":"0x%040x","tags":["%d"]}`, 1+i%3, i, i*7919%700))
	}
	for i := range 30 {
		records = append(records, fmt.Sprintf(`{"token_id":"2","version":1,"record_type":"address","data":"0x%040x","tags":["x","%d"]}`, i, i))
	}
	return emptySnapshot().adding("records", records...).
		adding("lists", `{"token_id":"1","owner":"`+alice+`"}`, `{"token_id":"2","owner":"`+bob+`"}`).
		adding("accounts", `{"address":"`+alice+`","primary_list":"1"}`, `{"address":"`+bob+`","primary_list":"2"}`)
}

// TestUnitWithoutItsList: an account with a primary list is not rendered without it.
func TestUnitWithoutItsList(t *testing.T) {
	t.Parallel()
	for _, api := range []string{site.APISpec, site.APIEFP} {
		config, err := site.Config{API: api}.WithDefaults()
		if err != nil {
			t.Fatal(err)
		}
		renderer, err := render.New(config, "2026-11-20T00:00:00Z", nil)
		if err != nil {
			t.Fatal(err)
		}
		u := &render.Unit{Account: &render.Account{Primary: "1"}}
		err = renderer.Unit(u, func(key site.Key, _ []byte) { t.Errorf("%s: got %s, want no object", api, key) })
		wantError(t, err, "primary list")
	}
}
