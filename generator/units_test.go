package generator_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures/graph"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/answers"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	snapshots "github.com/followpress/followpress/snapshot"
)

// A unitSite makes a site from one unit after the other, without a graph. The model provides the
// data of units.
type unitSite struct {
	*model
	t        testing.TB
	config   site.Config
	renderer *render.Renderer
	objects  objects

	all      []string // accounts, sorted
	accounts map[string]*render.Account
	boards   [render.Boards][]string // accounts by measure, from rank 1 on
	listsOf  map[string][]*modelList // by account, by token ID
	holders  map[string][]unitHolder // by account, latest first
	added    map[recordKey]int64

	counted     map[string]bool // counted addresses
	listOps     int
	recommended []snapshots.Recommended
}

// A recordKey identifies a record of a list.
type recordKey struct {
	list       *modelList
	version    uint32
	kind, data string
}

// A unitHolder is a record of a primary list that holds an account.
type unitHolder struct {
	list *modelList
	at   int // index of the record
	render.Follower
}

func newUnitSite(t testing.TB, s snapshot, config site.Config) *unitSite {
	t.Helper()
	config, err := config.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	u := &unitSite{
		model: newModel(t, s), t: t, config: config, objects: objects{}, accounts: map[string]*render.Account{},
		listsOf: map[string][]*modelList{}, holders: map[string][]unitHolder{}, added: map[recordKey]int64{},
	}
	asOf, err := snapshots.ReadAsOf(s.fs())
	if err != nil {
		t.Fatal(err)
	}
	if u.renderer, err = render.New(config, asOf, u.events); err != nil {
		t.Fatal(err)
	}
	u.readTimes(s)
	u.readRest(s)
	u.findAccounts()
	u.countAll()
	u.findHolders()
	return u
}

// readTimes reads when the records were added; the first of repeated ones counts.
func (u *unitSite) readTimes(s snapshot) {
	u.t.Helper()
	for line := range strings.Lines(s["records.ndjson"]) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		row, err := snapshots.ParseTimedRecord([]byte(line))
		if err != nil {
			u.t.Fatal(err)
		}
		_, r, _, err := generator.ParseRecord([]byte(line), true)
		if err != nil {
			u.t.Fatal(err)
		}
		key := recordKey{u.byToken[row.TokenID], r.Version, r.RecordType, r.Data}
		if _, known := u.added[key]; !known && key.list != nil {
			u.added[key] = row.Added
		}
	}
}

func (u *unitSite) addedOf(l *modelList, r answers.Record) int64 {
	return u.added[recordKey{l, r.Version, r.RecordType, r.Data}]
}

// readRest reads fields that only the API efp shows.
func (u *unitSite) readRest(s snapshot) {
	u.t.Helper()
	u.counted = map[string]bool{}
	for _, row := range decodeRows[struct{ Address string }](u.t, s, "accounts") {
		u.counted[strings.ToLower(row.Address)] = true
	}
	for _, l := range u.lists {
		u.counted[l.account] = true
		for _, r := range l.records {
			if isHeld(r) {
				u.counted[r.Data] = true
			}
		}
	}
	seen := map[string]bool{}
	for _, row := range decodeRows[struct{ Address, Class string }](u.t, s, "recommended") {
		if address := strings.ToLower(row.Address); !seen[address] {
			seen[address] = true
			u.recommended = append(u.recommended, snapshots.Recommended{Address: u.address(address), Class: row.Class})
		}
	}
	for _, l := range u.lists {
		u.listOps += len(l.records)
	}
	if ops, err := snapshots.ReadListOps(s.fs()); err != nil {
		u.t.Fatal(err)
	} else if ops != nil {
		u.listOps = int(*ops)
	}
}

func (u *unitSite) address(text string) site.Address {
	u.t.Helper()
	a, err := site.ParseAddress(text)
	if err != nil {
		u.t.Fatal(err)
	}
	return a
}

func (u *unitSite) findAccounts() {
	for _, l := range u.lists {
		u.listsOf[l.account] = append(u.listsOf[l.account], l)
	}
	for _, lists := range u.listsOf {
		slices.SortFunc(lists, func(a, b *modelList) int { return site.CompareTokenIDs(a.token, b.token) })
	}
	known := maps.Clone(u.model.accounts)
	if u.config.EFP() { // shows badges of anybody
		for account, badges := range u.badges {
			if slices.ContainsFunc(u.events, func(e site.Event) bool { return badges[e.ID] != "" }) {
				known[account] = true
			}
		}
	}
	u.all = slices.Sorted(maps.Keys(known))
	for _, account := range u.all {
		a := &render.Account{Address: u.address(account), Primary: u.primary[account]}
		if p, ok := u.profiles[account]; ok {
			a.Profile = render.EncodeProfile(p)
			if u.names[p.Name] != account {
				a.Profile.Name = ""
			}
		}
		u.accounts[account] = a
	}
}

// countAll counts and ranks all accounts.
func (u *unitSite) countAll() {
	var counts [render.Boards]map[string]int
	counts[rules.Followers], counts[rules.Following], counts[rules.Mutuals], counts[rules.Top8], counts[rules.Blocks] = u.counts()
	counts[rules.Blocking], counts[rules.Muted], counts[rules.Muting] = map[string]int{}, map[string]int{}, map[string]int{}
	for account, token := range u.primary {
		for _, r := range u.byToken[token].records {
			if isHeld(r) && slices.Contains(r.Tags, "block") {
				counts[rules.Blocking][account]++
			}
			if isHeld(r) && slices.Contains(r.Tags, "mute") {
				counts[rules.Muting][account]++
				counts[rules.Muted][r.Data]++
			}
		}
	}
	for m, count := range counts {
		u.boards[m] = order(count)
		for i, account := range u.boards[m] {
			a := u.accounts[account]
			a.Counts[m] = uint32(count[account])
			if m < int(render.Measures) {
				a.Ranks[m] = uint32(i + 1)
			}
		}
	}
}

func isHeld(r answers.Record) bool { return r.Version == 1 && isAddress(r) }

// findHolders finds the holders of each account.
func (u *unitSite) findHolders() {
	for account, token := range u.primary {
		l := u.byToken[token]
		for at, r := range l.records {
			if isHeld(r) {
				u.holders[r.Data] = append(u.holders[r.Data], unitHolder{l, at, render.Follower{
					Token: token, Account: u.address(account), Tags: formOf(r).TagSet, Added: u.addedOf(l, r), State: u.state(r.Data, account),
				}})
			}
		}
	}
	for _, holders := range u.holders {
		slices.SortFunc(holders, func(a, b unitHolder) int {
			return cmp.Or(cmp.Compare(shown(b.Added), shown(a.Added)), site.CompareTokenIDs(b.Token, a.Token))
		})
	}
}

// shown returns a time as shown by the API.
func shown(added int64) int64 {
	if added == snapshots.NoTime {
		return 0
	}
	return added
}

// state returns the state of an account in the primary list of another one.
func (u *unitSite) state(account, of string) (s rules.State) {
	token, ok := u.primary[account]
	if !ok {
		return 0
	}
	for _, r := range u.byToken[token].records {
		if !isHeld(r) || r.Data != of {
			continue
		}
		if slices.Contains(r.Tags, "block") {
			s |= rules.Block
		}
		if slices.Contains(r.Tags, "mute") {
			s |= rules.Mute
		}
		if s == 0 {
			s = rules.Follow
		}
	}
	return s
}

func formOf(r answers.Record) *render.RecordForm {
	form := render.NewRecordForm(r.Version, r.RecordType, r.Tags)
	return &form
}

// add adds an object, which must be new.
func (u *unitSite) add(key site.Key, body []byte) {
	if _, ok := u.objects[key]; ok {
		u.t.Errorf("%s: got it twice", key)
	}
	u.objects[key] = string(body)
}

// unit returns the unit of an account with one of its lists, or with nil.
func (u *unitSite) unit(account string, l *modelList) *render.Unit {
	unit := &render.Unit{Account: u.accounts[account]}
	for i, e := range u.events {
		if token, ok := u.badges[account][e.ID]; ok {
			unit.Badges = append(unit.Badges, render.Badge{Event: uint32(i), TokenID: token})
		}
	}
	for _, own := range u.listsOf[account] {
		unit.Tokens = append(unit.Tokens, own.token)
	}
	if l != nil {
		unit.Token = l.token
		for _, r := range l.records {
			unit.Records = append(unit.Records, u.record(r))
		}
	}
	for _, h := range u.holders[account] {
		if len(unit.Page) < site.DefaultLimit && areOfFollow(h.Tags.Tags) {
			unit.Page = append(unit.Page, h.Follower)
		}
		if len(h.Tags.Tags) > 0 {
			unit.Tagged = append(unit.Tagged, h.Follower)
		}
	}
	slices.SortFunc(unit.Tagged, func(a, b render.Follower) int { return site.CompareTokenIDs(a.Token, b.Token) })
	return unit
}

// record returns an entry of a list, with no more of the profile than required.
func (u *unitSite) record(r answers.Record) render.Record {
	out := render.Record{Form: formOf(r)}
	if !isAddress(r) {
		out.Data = r.Data
		return out
	}
	a := u.accounts[r.Data]
	out.Address, out.Followers = a.Address, a.Counts[rules.Followers]
	if p := a.Profile; len(p.ENS) > 0 {
		out.ENS, out.SearchLen = p.ENS[:p.SearchLen], p.SearchLen
		if u.config.EFP() {
			out.ENS = p.ENS[:render.HeaderEnd(p.ENS, p.SearchLen)]
		}
	}
	return out
}

// renderAll renders everything except the explorer's overview of the graph.
func (u *unitSite) renderAll() objects {
	u.t.Helper()
	for _, account := range u.all {
		for _, l := range u.listsOf[account] {
			u.render(u.unit(account, l))
		}
		if u.primary[account] == "" {
			u.render(u.unit(account, nil))
		}
	}
	u.renderer.Fixed(u.add)
	for _, board := range u.config.Boards() {
		measure := render.BoardMeasure(board)
		var first []render.Leader
		for _, account := range u.boards[measure][:min(u.config.LeaderboardMax, len(u.boards[measure]))] {
			first = append(first, render.Leader{Address: u.accounts[account].Address, Count: u.accounts[account].Counts[measure]})
		}
		u.renderer.Leaderboards(board, first, u.add)
	}
	if u.config.Explorer {
		top := u.boards[rules.Followers]
		most, start := render.Top(u.several(top[:min(len(top), render.TopAccounts)]), len(top))
		u.add(site.TopKey, most)
		u.add(render.StartKey, start)
	}
	if u.config.EFP() {
		u.addBuckets()
		u.addFollowerShards()
		u.addRanked()
		u.addRecommended()
		u.addSummaries()
	} else {
		u.addUserBuckets()
	}
	return u.objects
}

func (u *unitSite) render(unit *render.Unit) {
	u.t.Helper()
	if err := u.renderer.Unit(unit, u.add); err != nil {
		u.t.Error(err)
	}
}

func (u *unitSite) several(accounts []string) (all []render.Account) {
	for _, account := range accounts {
		all = append(all, *u.accounts[account])
	}
	return all
}

func (u *unitSite) addUserBuckets() {
	users := append(slices.Collect(maps.Keys(u.primary)), slices.Collect(maps.Keys(u.names))...)
	slices.Sort(users)
	digits := u.config.BucketDigits(len(users))
	for _, name := range site.HashPrefixes(digits) {
		in := slices.DeleteFunc(slices.Clone(users), func(user string) bool { return site.UserBucket(user, digits) != name })
		u.add(site.UserBucketKey(name), render.AppendUserBucket(nil, name, in, func(user string) string {
			return u.primary[cmp.Or(u.names[user], user)]
		}))
	}
}

// sizes returns the entry of an account in a bucket.
func (u *unitSite) sizes(account string) []byte {
	held := 0
	if l := u.byToken[u.primary[account]]; l != nil {
		held = len(slices.DeleteFunc(slices.Clone(l.records), func(r answers.Record) bool { return !isHeld(r) }))
	}
	return render.AppendSizes(nil, u.primary[account], held, len(u.holders[account]))
}

// followerRows returns the rows of the holders of an account.
func (u *unitSite) followerRows(account string) (rows [][]byte) {
	for _, h := range u.holders[account] {
		rows = append(rows, render.AppendFollowerRow(nil, render.FollowerRow{
			Token: h.Token, Account: u.accounts[h.list.account], Tags: h.Tags.Tags, State: h.State, Added: h.Added,
		}))
	}
	return rows
}

func (u *unitSite) addBuckets() {
	names, accounts := map[string][][]byte{}, map[string][][]byte{}
	digits := u.config.BucketDigits(len(u.all) + len(u.names))
	for _, name := range slices.Sorted(maps.Keys(u.names)) {
		b := append(rawjson.AppendString(nil, name), `:["`+u.names[name]+`",`...)
		bucket := site.UserBucket(name, digits)
		names[bucket] = append(names[bucket], append(append(b, u.sizes(u.names[name])...), ']'))
	}
	for _, account := range u.all {
		b := append(append([]byte(`"`+account+`":[`), u.sizes(account)...), ",["...)
		if len(u.holders[account]) <= site.PackedRows {
			b = append(b, bytes.Join(u.followerRows(account), []byte(","))...)
		}
		bucket := site.UserBucket(account, digits)
		accounts[bucket] = append(accounts[bucket], append(b, "]]"...))
	}
	for _, bucket := range site.HashPrefixes(digits) {
		u.add(site.UserBucketKey(bucket), render.UserBucketEFP(bucket, names[bucket], accounts[bucket]))
	}
	lists := map[string][][]byte{}
	digits = u.config.TokenDigits(len(u.lists))
	for _, token := range slices.Sorted(maps.Keys(u.byToken)) {
		l, bucket := u.byToken[token], site.UserBucket(token, digits)
		lists[bucket] = append(lists[bucket], u.renderer.AppendListEntry(nil, u.unit(l.account, l), len(u.holders[l.account])))
	}
	for _, bucket := range site.HashPrefixes(digits) {
		u.add(site.TokenBucketKey(bucket), render.TokenBucket(bucket, lists[bucket]))
	}
}

// addFollowerShards adds the shards and heads of the holders of accounts with many.
func (u *unitSite) addFollowerShards() {
	for _, account := range u.all {
		holders := u.holders[account]
		if len(holders) <= site.PackedRows {
			continue
		}
		rows := u.followerRows(account)
		isFollow := func(h unitHolder) bool { return areOfFollow(h.Tags.Tags) }
		follows, before := 0, []int{}
		for i, h := range holders {
			if i%site.SearchShardSize == 0 {
				before = append(before, follows)
			}
			if isFollow(h) {
				follows++
			}
		}
		for n := range before {
			shard := rows[n*site.SearchShardSize : min((n+1)*site.SearchShardSize, len(rows))]
			u.add(u.renderer.FollowerShard(account, len(rows), follows, before[n], n, shard))
		}
		if len(before) == 1 {
			continue
		}
		var places []uint32
		for _, of := range [][]int{u.inOrder(holders), u.reversed(holders), u.byFollowers(holders)} {
			ofFollows := slices.DeleteFunc(slices.Clone(of), func(i int) bool { return !isFollow(holders[i]) })
			for _, i := range append(slices.Clone(of[:site.HeadRows]), ofFollows[:min(site.HeadRows, len(ofFollows))]...) {
				places = append(places, uint32(i))
			}
		}
		slices.Sort(places)
		places = slices.Compact(places)
		var head [][]byte
		for _, place := range places {
			head = append(head, rows[place])
		}
		u.add(u.renderer.FollowerHead(account, len(rows), places, head))
	}
}

func (u *unitSite) inOrder(holders []unitHolder) (order []int) {
	for i := range holders {
		order = append(order, i)
	}
	return order
}

func (u *unitSite) reversed(holders []unitHolder) []int {
	order := u.inOrder(holders)
	slices.Reverse(order)
	return order
}

func (u *unitSite) byFollowers(holders []unitHolder) []int {
	order := u.inOrder(holders)
	slices.SortFunc(order, func(i, j int) int {
		a, b := u.accounts[holders[i].list.account], u.accounts[holders[j].list.account]
		return cmp.Or(cmp.Compare(b.Counts[rules.Followers], a.Counts[rules.Followers]), a.Address.Compare(b.Address))
	})
	return order
}

func (u *unitSite) addRanked() {
	byRank := func(m rules.Measure) []string {
		onBoard := slices.DeleteFunc(slices.Clone(u.all), func(account string) bool {
			return u.accounts[account].Ranks == [render.Measures]uint32{}
		})
		slices.SortStableFunc(onBoard, func(a, b string) int { // rank 0, meaning unranked, comes last
			return cmp.Compare(u.accounts[a].Ranks[m]-1, u.accounts[b].Ranks[m]-1)
		})
		return onBoard
	}
	board, places := byRank(rules.Mutuals), map[string]uint32{}
	var rows [][]byte
	for i, account := range board {
		places[account] = uint32(i)
		rows = append(rows, render.AppendRankedRow(nil, u.accounts[account]))
	}
	for n, shard := range shardsOf(rows, site.SearchShardSize) {
		u.add(u.renderer.RankedShard(len(board), n, shard))
	}
	for _, sort := range site.RankedSorts() {
		var order []uint32
		for _, account := range byRank(render.SortMeasure(sort)) {
			order = append(order, places[account])
		}
		for n, shard := range shardsOf(order, site.RankedOrderSize) {
			u.add(u.renderer.RankedOrder(sort, len(board), n, shard))
		}
	}
	u.renderer.Ranked(u.several(board[:min(len(board), site.RankedLimit)]), u.add)
}

// shardsOf cuts rows into shards, at least one.
func shardsOf[T any](rows []T, size int) [][]T {
	if len(rows) == 0 {
		return [][]T{nil}
	}
	return slices.Collect(slices.Chunk(rows, size))
}

func (u *unitSite) addRecommended() {
	var rows [][]byte
	for _, r := range u.recommended {
		rows = append(rows, render.AppendRecommended(nil, r.Address, r.Class, u.accounts[r.Address.String()]))
	}
	for n, shard := range shardsOf(rows, site.SearchShardSize) {
		u.add(u.renderer.RecommendedShard(len(rows), n, shard))
	}
}

func (u *unitSite) addSummaries() {
	s := render.Summaries{Addresses: len(u.counted), Lists: len(u.lists), Primaries: len(u.primary), ListOps: uint64(u.listOps)}
	type newest struct {
		unitHolder
		account string
	}
	var all []newest
	for _, account := range u.all {
		if a := u.accounts[account]; a.Ranks != [render.Measures]uint32{} {
			s.Ranked++
		}
		for _, h := range u.holders[account] {
			if h.Added != snapshots.NoTime && areOfFollow(h.Tags.Tags) {
				all = append(all, newest{h, account})
				break
			}
		}
	}
	slices.SortFunc(all, func(a, b newest) int {
		return cmp.Or(cmp.Compare(b.Added, a.Added), site.CompareTokenIDs(b.Token, a.Token), cmp.Compare(b.at, a.at))
	})
	for _, n := range all[:min(len(all), site.DiscoverMax)] {
		s.Discover = append(s.Discover, render.AppendPerson(nil, u.accounts[n.account]))
	}
	u.renderer.Summaries(s, u.add)
}

// checkUnits compares the rendered units with the site of a snapshot.
func checkUnits(t *testing.T, s snapshot, config site.Config) {
	t.Helper()
	got, want := newUnitSite(t, s, config).renderAll(), inMemory(t, s, generator.Options{Config: config})
	for key, body := range want {
		switch {
		case key == site.RootKey, strings.HasPrefix(string(key), string(site.ManifestKey(""))), key == site.NetworkKey:
			delete(want, key)
		case got[key] == "":
			t.Errorf("%s: got no object, want %.700s", key, body)
		case got[key] != body:
			t.Errorf("%s:\n got %.700s\nwant %.700s", key, got[key], body)
		}
	}
	for key, body := range got {
		if _, ok := want[key]; !ok {
			t.Errorf("%s: got %.700s, want no object", key, body)
		}
	}
}

// TestUnitsEqualSite: every object can be rendered without the graph, and none is missing or
// rendered twice.
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
		"spec":   {LeaderboardMax: 12, BadgesField: `po"aps<é>`, BasePath: "graph/v2.0", Explorer: true},
		"efp":    {API: site.APIEFP, LeaderboardMax: 12, Explorer: true},
		"lookup": {API: site.APIEFP, LeaderboardMax: 60, Names: site.NamesLookup},
	}
	for name, s := range all {
		for api, config := range configs {
			if name == "hub" && api == "spec" || name == "long lists" && api == "lookup" {
				continue // without heads; tables of names are short
			}
			t.Run(name+" "+api, func(t *testing.T) {
				t.Parallel()
				checkUnits(t, s, config)
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
		u := newUnitSite(t, hub(3), site.Config{API: api})
		err := u.renderer.Unit(u.unit(alice, nil), func(key site.Key, _ []byte) { t.Errorf("%s: got %s, want no object", api, key) })
		wantError(t, err, "primary list")
	}
}

// BenchmarkUnits renders a site unit by unit.
func BenchmarkUnits(b *testing.B) {
	for _, api := range []string{site.APISpec, site.APIEFP} {
		b.Run(api, func(b *testing.B) {
			u := newUnitSite(b, benchSnapshot(b), site.Config{API: api})
			var units []*render.Unit
			for _, account := range u.all {
				for _, l := range u.listsOf[account] {
					units = append(units, u.unit(account, l))
				}
				if u.primary[account] == "" {
					units = append(units, u.unit(account, nil))
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				objects, size := 0, int64(0)
				for _, unit := range units {
					if err := u.renderer.Unit(unit, func(_ site.Key, body []byte) { objects, size = objects+1, size+int64(len(body)) }); err != nil {
						b.Fatal(err)
					}
				}
				b.SetBytes(size)
				b.ReportMetric(float64(objects), "objects/op")
			}
		})
	}
}

// BenchmarkGraph renders the same objects, and some more, from a graph.
func BenchmarkGraph(b *testing.B) {
	for api, load := range map[string]func(context.Context, afero.Fs, int) (generator.Graph, error){
		site.APISpec: generator.Load, site.APIEFP: generator.LoadEFP,
	} {
		b.Run(api, func(b *testing.B) {
			g, err := load(b.Context(), benchSnapshot(b).fs(), 2)
			if err != nil {
				b.Fatal(err)
			}
			render, err := g.Renderer(b.Context(), site.Config{API: api})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				objects, size := render()
				b.SetBytes(size)
				b.ReportMetric(float64(objects), "objects/op")
			}
		})
	}
}
