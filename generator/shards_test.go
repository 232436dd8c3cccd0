package generator_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/site"
)

// This file computes the rows that answers are made from, from the answers of the reference.

// A person holds the fields of an account that rows show.
type person struct {
	name, avatar, header string
	records              anyObject
	followers, following int
	ranks                site.Ranks
}

func (w *twin) person(address string) person {
	w.t.Helper()
	if p, ok := w.people[address]; ok {
		return p
	}
	details := decode[struct {
		ENS   modelENS
		Ranks site.Ranks
	}](w.t, w.answer("users/"+address+"/details", ""))
	stats := decode[struct {
		Followers int `json:"followers_count"`
		Following int `json:"following_count"`
	}](w.t, w.answer("users/"+address+"/stats", ""))
	p := person{details.ENS.Name, details.ENS.Avatar, details.ENS.Header, details.ENS.Records, stats.Followers, stats.Following, details.Ranks}
	w.people[address] = p
	return p
}

func number(t testing.TB, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

type array = []any

// A naiveRow is a row with its address, and whether the record is a follow.
type naiveRow struct {
	address string
	follow  bool
	row     array
}

func areOfFollow(tags []string) bool {
	return !slices.Contains(tags, "block") && !slices.Contains(tags, "mute")
}

// heldRows returns the rows of the accounts in a list.
func (w *twin) heldRows(list *modelList) []naiveRow {
	rows := []naiveRow{}
	for _, r := range list.records {
		if isHeld(r) {
			p := w.person(r.Data)
			row := array{r.Data, r.Tags, p.followers, p.name, p.avatar}
			if r.Version != 1 {
				row = append(row, r.Version)
			}
			rows = append(rows, naiveRow{r.Data, areOfFollow(r.Tags), row})
		}
	}
	if len(rows) <= 1000 {
		roundFollowers(rows)
	}
	return rows
}

// roundFollowers keeps the first two digits of each follower count, and counts up for larger ones
// with the same digits.
func roundFollowers(rows []naiveRow) {
	begin := func(n int) string { return strconv.Itoa(n)[:2] + strings.Repeat("0", len(strconv.Itoa(n))-2) }
	exact := map[int]bool{}
	for _, r := range rows {
		exact[r.row[2].(int)] = true
	}
	for _, r := range rows {
		n := r.row[2].(int)
		if n < 100 {
			continue
		}
		rounded, _ := strconv.Atoi(begin(n))
		for other := range exact {
			if other < n && other >= 100 && begin(other) == begin(n) {
				rounded++
			}
		}
		r.row[2] = rounded
	}
}

// A naiveFollower is an entry of followers.
type naiveFollower struct {
	List    string `json:"efp_list_nft_token_id"`
	Address string
	Tags    []string
	Follow  bool      `json:"is_following"`
	Block   bool      `json:"is_blocked"`
	Mute    bool      `json:"is_muted"`
	Time    time.Time `json:"updated_at"`
}

// holderRows returns the rows of the holders of an account.
func (w *twin) holderRows(address string) []naiveRow {
	if rows, ok := w.holders[address]; ok {
		return rows
	}
	rows := []naiveRow{}
	for _, f := range pages[naiveFollower](w, "users/"+address+"/allFollowers", "followers") {
		p, state := w.person(f.Address), 0
		for i, bit := range []bool{f.Follow, f.Block, f.Mute} {
			if bit {
				state |= 1 << i
			}
		}
		rows = append(rows, naiveRow{f.Address, areOfFollow(f.Tags), array{
			f.List, f.Address, f.Tags, state, f.Time.UnixMilli(), p.followers, p.name, p.avatar, p.header, number(w.t, p.ranks.Mutuals),
		}})
	}
	w.holders[address] = rows
	return rows
}

// pages reads all pages of an answer.
func pages[Entry any](w *twin, path, member string) []Entry {
	w.t.Helper()
	all := []Entry{}
	for {
		page := decode[map[string][]Entry](w.t, w.answer(path, fmt.Sprintf("limit=1000&offset=%d", len(all))))[member]
		all = append(all, page...)
		if len(page) < 1000 {
			return all
		}
	}
}

func entriesOf(rows []naiveRow) array {
	entries := array{}
	for _, r := range rows {
		entries = append(entries, r.row)
	}
	return entries
}

// addTable adds the shards and the head of rows to want, if they are too many for a bucket, and
// returns the rows of the bucket. heads are the paths of the answers whose first entries are in the
// head.
func (w *twin) addTable(want objects, folder, member, owner string, heads []string, rows []naiveRow) array {
	w.t.Helper()
	if len(rows) <= 20 {
		return entriesOf(rows)
	}
	start := fmt.Sprintf(`{"%s":"%s",`, member, owner)
	countFollows := func(rows []naiveRow) (n int) {
		for _, r := range rows {
			if r.follow {
				n++
			}
		}
		return n
	}
	for n, shard := range w.shards(entriesOf(rows), 1000) {
		follows := fmt.Sprintf(`"follows":%d,"before":%d,`, countFollows(rows), countFollows(rows[:1000*n]))
		want[site.Key(fmt.Sprintf("%s/%s/%d", folder, owner, n))] = start + follows + shard[1:]
	}
	if len(rows) <= 1000 {
		return array{}
	}
	first := map[int]bool{}
	for _, path := range heads {
		for _, sort := range []string{"latest", "earliest", "followers"} {
			for _, page := range decode[map[string][]struct{ Address string }](w.t, w.answer(path, "limit=100&sort="+sort)) {
				for _, entry := range page {
					first[slices.IndexFunc(rows, func(r naiveRow) bool { return r.address == entry.Address })] = true
				}
			}
		}
	}
	places, entries := slices.Sorted(maps.Keys(first)), array{}
	for _, place := range places {
		entries = append(entries, rows[place].row)
	}
	want[site.Key(folder+"/"+owner+"/head")] = fmt.Sprintf(`%s"total":%d,"places":%s,"entries":%s}`, start, len(rows), text(w.t, places), text(w.t, entries))
	return array{}
}

// shards cuts entries into shards; there is always one.
func (w *twin) shards(entries array, size int) []string {
	w.t.Helper()
	chunks := slices.Collect(slices.Chunk(entries, size))
	if len(chunks) == 0 {
		chunks = []array{{}}
	}
	var all []string
	for n, chunk := range chunks {
		all = append(all, text(w.t, struct {
			Total   int   `json:"total"`
			Shard   int   `json:"shard"`
			Shards  int   `json:"shards"`
			Size    int   `json:"shard_size"`
			Entries array `json:"entries"`
		}{len(entries), n, len(chunks), size, chunk}))
	}
	return all
}

// checkShards compares every shard, head and bucket.
func (w *twin) checkShards() {
	w.t.Helper()
	want := objects{}
	w.addLists(want)
	w.addAccounts(want)
	w.addRanked(want)
	for n, shard := range w.shards(w.recommendedRows(), 1000) {
		want[site.RecommendedShardKey(n)] = shard
	}
	want[site.DiscoverShardKey] = w.answer("discover", "limit=1000")
	for key, body := range w.objects {
		if strings.HasPrefix(string(key), "_search/") {
			if want, ok := want[key]; !ok || body != want {
				w.t.Errorf("%s (wanted: %t):\n got %.900s\nwant %.900s", key, ok, body, want)
			}
		}
	}
	for key := range want {
		if _, ok := w.objects[key]; !ok {
			w.t.Errorf("%s: got no object, want one", key)
		}
	}
}

// heldIn returns the number of accounts in a list.
func (w *twin) heldIn(token string) int {
	if token == "" {
		return 0
	}
	return len(w.heldRows(w.model.byToken[token]))
}

func (w *twin) addLists(want objects) {
	type bucket struct {
		Bucket string           `json:"bucket"`
		Lists  map[string]array `json:"lists"`
	}
	buckets := map[string]bucket{}
	digits := decode[site.Root](w.t, w.objects[site.RootKey]).TokenDigits
	for _, name := range site.HashPrefixes(digits) {
		buckets[name] = bucket{name, map[string]array{}}
	}
	for _, l := range w.model.lists {
		rows := w.heldRows(l)
		path := "lists/" + l.token
		packed := w.addTable(want, "_search/lists", "list", l.token, []string{path + "/following", path + "/allFollowing"}, rows)
		buckets[site.UserBucket(l.token, digits)].Lists[l.token] = array{
			l.account, w.model.primary[l.account] == l.token, len(rows), len(w.holderRows(l.account)), packed,
		}
	}
	for name, bucket := range buckets {
		want[site.TokenBucketKey(name)] = text(w.t, bucket)
	}
}

func (w *twin) addAccounts(want objects) {
	type bucket struct {
		Bucket   string           `json:"bucket"`
		Names    map[string]array `json:"names"`
		Accounts map[string]array `json:"accounts"`
	}
	buckets := map[string]bucket{}
	digits := decode[site.Root](w.t, w.objects[site.RootKey]).BucketDigits
	for _, name := range site.HashPrefixes(digits) {
		buckets[name] = bucket{name, map[string]array{}, map[string]array{}}
	}
	for _, address := range w.addresses() {
		rows, path := w.holderRows(address), "users/"+address
		packed := w.addTable(want, "_search/followers", "address", address, []string{path + "/followers", path + "/allFollowers"}, rows)
		token := w.model.primary[address]
		buckets[site.UserBucket(address, digits)].Accounts[address] = array{token, w.heldIn(token), len(rows), packed}
	}
	for name, address := range w.model.names {
		token := w.model.primary[address]
		buckets[site.UserBucket(name, digits)].Names[name] = array{address, token, w.heldIn(token), len(w.holderRows(address))}
	}
	for name, bucket := range buckets {
		want[site.UserBucketKey(name)] = text(w.t, bucket)
	}
}

// addRanked makes the shards of ranked accounts from the whole orders, which the reference answers
// page by page.
func (w *twin) addRanked(want objects) {
	type ranking struct {
		Address                                     string
		Mutuals, Following, Followers, Blocks, Top8 string
		MutualsRank                                 string `json:"mutuals_rank"`
		FollowersRank                               string `json:"followers_rank"`
		FollowingRank                               string `json:"following_rank"`
		BlocksRank                                  string `json:"blocks_rank"`
		Top8Rank                                    string `json:"top8_rank"`
	}
	order := func(sort string) (all []ranking) {
		for {
			page := decode[struct{ Results []ranking }](w.t, w.answer("leaderboard/ranked", fmt.Sprintf("sort=%s&limit=%d&offset=%d", sort, w.config.LeaderboardMax, len(all)))).Results
			all = append(all, page...)
			if len(page) < w.config.LeaderboardMax {
				return all
			}
		}
	}
	place, entries := map[string]int{}, array{}
	for i, r := range order("mutuals") {
		p := w.person(r.Address)
		place[r.Address] = i
		numbers := array{}
		for _, n := range []string{r.MutualsRank, r.FollowersRank, r.FollowingRank, r.BlocksRank, r.Top8Rank, r.Mutuals, r.Following, r.Followers, r.Blocks, r.Top8} {
			numbers = append(numbers, number(w.t, n))
		}
		entries = append(entries, array{r.Address, p.name, p.avatar, p.header, numbers[:5], numbers[5:]})
	}
	for n, shard := range w.shards(entries, 1000) {
		want[site.RankedShardKey(n)] = shard
	}
	for _, sort := range site.RankedSorts() {
		places := array{}
		for _, r := range order(sort) {
			places = append(places, place[r.Address])
		}
		for n, shard := range w.shards(places, 10_000) {
			want[site.RankedOrderKey(sort, n)] = shard
		}
	}
}

// recommendedRows returns the rows of the table as an unrelated account gets them.
func (w *twin) recommendedRows() array {
	const stranger = "users/0x123456789012345678901234567890123456789f/recommended"
	rows := array{}
	for _, r := range pages[struct {
		Address string
		Class   *string
	}](w, stranger, "recommended") {
		p := w.person(r.Address)
		class := any(nil)
		if r.Class != nil && *r.Class != "" {
			class = *r.Class
		}
		ranks := array{}
		for _, n := range []string{p.ranks.Mutuals, p.ranks.Followers, p.ranks.Following, p.ranks.Top8, p.ranks.Blocks} {
			ranks = append(ranks, number(w.t, n))
		}
		rows = append(rows, array{r.Address, p.name, p.avatar, p.header, class, p.records.encode(w.t), p.followers, p.following, ranks})
	}
	return rows
}
