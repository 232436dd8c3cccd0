package generator_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/client"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/templates/openapi"
)

// A twin is a site with the reference answers.
type twin struct {
	*reference
	objects objects
	people  map[string]person
	holders map[string][]naiveRow
}

func newTwin(t testing.TB, s snapshot, config site.Config) *twin {
	t.Helper()
	return &twin{newReference(t, s, config), inMemory(t, s, generator.Options{Config: config}), map[string]person{}, map[string][]naiveRow{}}
}

// readSnapshot reads the files of a snapshot, unpacked.
func readSnapshot(t testing.TB, fsys fs.FS) snapshot {
	t.Helper()
	s := snapshot{}
	names, err := fs.Glob(fsys, "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		file, err := fsys.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		content := io.Reader(file)
		if strings.HasSuffix(name, ".gz") {
			if content, err = gzip.NewReader(file); err != nil {
				t.Fatal(err)
			}
		}
		body, err := io.ReadAll(content)
		if err != nil {
			t.Fatal(err)
		}
		s[strings.TrimSuffix(name, ".gz")] = string(body)
	}
	return s
}

// wantFiles returns the paths, below the base path, of all answers that are files.
func (w *twin) wantFiles() []string {
	paths := []string{"leaderboard/ranked", "leaderboard/count", "stats", "discover"}
	for _, board := range w.config.Boards() {
		paths = append(paths, "leaderboard/"+string(board))
	}
	user := func(user string) {
		for _, object := range []string{"account", "details", "stats", "lists", "badges", "following", "followers", "tags", "taggedAs"} {
			paths = append(paths, "users/"+user+"/"+object)
		}
	}
	for _, address := range w.addresses() {
		user(address)
		if w.primary[address] != "" {
			paths = append(paths, "users/"+address+"/searchFollowing")
		}
	}
	if w.config.Names != site.NamesLookup {
		for name := range w.names {
			user(name)
			paths = append(paths, "users/"+name+"/searchFollowing")
		}
	}
	for _, token := range w.tokens {
		for _, object := range []string{"records", "details", "badges", "searchFollowing", "account", "stats", "following", "followers", "tags", "taggedAs"} {
			paths = append(paths, "lists/"+token+"/"+object)
		}
	}
	slices.Sort(paths)
	return paths
}

// checkFiles compares every object that is an answer with the reference.
func (w *twin) checkFiles() {
	w.t.Helper()
	var got []string
	for key, body := range w.objects {
		if path, ok := strings.CutPrefix(string(key), w.config.BasePath+"/"); ok {
			got = append(got, path)
			if want := w.answer(path, ""); body != want {
				w.t.Errorf("%s:\n got %.700s\nwant %.700s", key, body, want)
			}
		}
	}
	slices.Sort(got)
	if want := w.wantFiles(); !slices.Equal(got, want) {
		w.t.Errorf("answers that are objects: got %q\nwant %q", got, want)
	}
	for _, board := range w.config.Boards() {
		for limit := 1; limit <= w.config.LeaderboardMax; limit++ {
			key := site.LeaderboardLimitKey(board, limit)
			if want := w.answer("leaderboard/"+string(board), fmt.Sprintf("limit=%d", limit)); w.objects[key] != want {
				w.t.Errorf("%s:\n got %.700s\nwant %.700s", key, w.objects[key], want)
			}
		}
	}
	want, err := openapi.Describe(w.config)
	if err != nil || w.objects[site.OpenAPIKey] != string(want) {
		w.t.Errorf("%s: got %.100s, want the description of the API (%v)", site.OpenAPIKey, w.objects[site.OpenAPIKey], err)
	}
	for _, f := range client.Files() {
		if w.objects[site.ClientKey(f.Name)] != string(f.Body) {
			w.t.Errorf("%s: got another text than that of the library", site.ClientKey(f.Name))
		}
	}
	const stranger = "0x123456789012345678901234567890123456789f"
	for _, object := range site.UserObjects() {
		key := site.UnknownKey(object)
		body := strings.ReplaceAll(w.objects[key], site.Address{}.String(), stranger)
		if want := w.answer("users/"+stranger+"/"+string(object), ""); body != want {
			w.t.Errorf("%s:\n got %.700s\nwant %.700s", key, body, want)
		}
	}
}

// TestFilesEqualTwin compares all files of many sites with the reference answers. The reference
// passes the conformance suites, see package naive.
func TestFilesEqualTwin(t *testing.T) {
	t.Parallel()
	configs := []site.Config{
		{API: site.APIEFP, LeaderboardMax: 10, Names: site.NamesLookup},
		{API: site.APIEFP, LeaderboardMax: 60, BadgesField: `po"aps<é>`, BasePath: "graph/v2.0", ProfileURL: "https://people.example/{address}"},
		{API: site.APIEFP, LeaderboardMax: 12},
	}
	snapshots := []fs.FS{committedSnapshots(t)["conformance-efp"]}
	for seed := range uint64(servers.Rounds(2, 18)) {
		snapshots = append(snapshots, naive.Random(seed))
	}
	for i, files := range snapshots {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			w := newTwin(t, readSnapshot(t, files), configs[i%3])
			if err := check(w.objects); err != nil {
				t.Error(err)
			}
			w.checkFiles()
			w.checkShards()
		})
	}
}

// TestLongTablesEqualTwin uses an account held by more than 1,000 primary lists, which holds as
// many: shards and heads.
func TestLongTablesEqualTwin(t *testing.T) {
	t.Parallel()
	w := newTwin(t, hub(1030), site.Config{API: site.APIEFP, LeaderboardMax: 100}) // the reference sorts for each page
	w.checkFiles()
	w.checkShards()
	for _, key := range []site.Key{site.ListHeadKey("77"), site.FollowerHeadKey(alice)} {
		if _, ok := w.objects[key]; !ok {
			t.Errorf("%s: got no object, want one", key)
		}
	}
}

// TestRoundedFollowersEqualTwin uses a few accounts held by hundreds.
func TestRoundedFollowersEqualTwin(t *testing.T) {
	t.Parallel()
	w := newTwin(t, readSnapshot(t, naive.Random(3)), site.Config{API: site.APIEFP, LeaderboardMax: 10})
	w.checkShards()
	rounded := 0
	for _, token := range w.tokens {
		for _, r := range w.heldRows(token) {
			if r.row[2] != w.person(r.address).followers {
				rounded++
			}
		}
	}
	if rounded < 100 {
		t.Errorf("got %d rows with a rounded number, want many", rounded)
	}
}

// hub returns a graph of n accounts, in which alice and everybody else hold each other, and some
// hold others.
func hub(n int) snapshot {
	r := rand.New(rand.NewPCG(12, 0))
	tags := []string{"", "", "", `"block"`, `"mute"`, `"top8"`, `"block","mute"`}
	address := func(i int) string { return fmt.Sprintf("0x%040x", 1+i*7919%n) }
	var lists, accounts, records []string
	hold := func(token, address string) {
		added := ""
		if r.IntN(3) > 0 {
			added = fmt.Sprintf(`,"added":"2024-10-14T19:45:%02d.%03dZ"`, r.IntN(60), r.IntN(2)*617)
		}
		records = append(records, fmt.Sprintf(`{"token_id":"%s","version":1,"record_type":"address","data":"%s","tags":[%s]%s}`,
			token, address, tags[r.IntN(len(tags))], added))
	}
	lists = append(lists, `{"token_id":"77","owner":"`+alice+`"}`)
	accounts = append(accounts, `{"address":"`+alice+`","primary_list":"77","ens":{"name":"alice.eth"}}`)
	for i := range n {
		token := strconv.Itoa(100 + i*271%n)
		lists = append(lists, `{"token_id":"`+token+`","owner":"`+address(i)+`"}`)
		accounts = append(accounts, fmt.Sprintf(`{"address":"%s","primary_list":"%s","ens":{"name":"n%d","header":"h"}}`, address(i), token, i))
		for range r.IntN(4) {
			hold(token, address(i*i%(1+r.IntN(n))))
		}
		hold(token, alice)
		hold("77", address(i))
	}
	return emptySnapshot().adding("lists", lists...).adding("accounts", accounts...).adding("records", records...)
}

// This file computes the rows that answers are made from, from the answers of the reference.

// A person holds the fields of an account that rows show.
type person struct {
	site.ListDetails
	followers, following int
}

func (w *twin) person(address string) person {
	w.t.Helper()
	if p, ok := w.people[address]; ok {
		return p
	}
	stats := decode[struct {
		Followers int `json:"followers_count"`
		Following int `json:"following_count"`
	}](w.t, w.answer("users/"+address+"/stats", ""))
	details := decode[site.ListDetails](w.t, w.answer("users/"+address+"/details", ""))
	p := person{details, stats.Followers, stats.Following}
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

// heldRows returns the rows of the accounts in a list.
func (w *twin) heldRows(token string) []naiveRow {
	rows := []naiveRow{}
	for _, r := range w.lists[token].records {
		if isHeld(r) {
			p := w.person(r.Data)
			rows = append(rows, naiveRow{r.Data, areOfFollow(r.Tags), array{r.Data, r.Tags, p.followers, p.ENS.Name, p.ENS.Avatar}})
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
			f.List, f.Address, f.Tags, state, f.Time.UnixMilli(), p.followers, p.ENS.Name, p.ENS.Avatar, p.ENS.Header, number(w.t, p.Ranks.Mutuals),
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

// heldIn returns the number of accounts in a list, 0 for no list.
func (w *twin) heldIn(token string) int { return len(w.heldRows(token)) }

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
	for _, token := range w.tokens {
		rows, account, path := w.heldRows(token), w.lists[token].account, "lists/"+token
		packed := w.addTable(want, "_search/lists", "list", token, []string{path + "/following", path + "/allFollowing"}, rows)
		buckets[site.UserBucket(token, digits)].Lists[token] = array{account, w.primary[account] == token, len(rows), len(w.holderRows(account)), packed}
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
		token := w.primary[address]
		buckets[site.UserBucket(address, digits)].Accounts[address] = array{token, w.heldIn(token), len(rows), packed}
	}
	for name, address := range w.names {
		token := w.primary[address]
		buckets[site.UserBucket(name, digits)].Names[name] = array{address, token, w.heldIn(token), len(w.holderRows(address))}
	}
	for name, bucket := range buckets {
		want[site.UserBucketKey(name)] = text(w.t, bucket)
	}
}

// A ranking is an entry of the ranked accounts.
type ranking struct {
	Address                                     string
	Mutuals, Following, Followers, Blocks, Top8 string
	MutualsRank                                 string `json:"mutuals_rank"`
	FollowersRank                               string `json:"followers_rank"`
	FollowingRank                               string `json:"following_rank"`
	BlocksRank                                  string `json:"blocks_rank"`
	Top8Rank                                    string `json:"top8_rank"`
}

// ranked returns all ranked accounts in an order, which the reference answers page by page.
func (r *reference) ranked(sort string) (all []ranking) {
	r.t.Helper()
	most := r.config.LeaderboardMax
	for {
		page := decode[struct{ Results []ranking }](r.t, r.answer("leaderboard/ranked", fmt.Sprintf("sort=%s&limit=%d&offset=%d", sort, most, len(all)))).Results
		all = append(all, page...)
		if len(page) < most {
			return all
		}
	}
}

// addRanked makes the shards of ranked accounts.
func (w *twin) addRanked(want objects) {
	place, entries := map[string]int{}, array{}
	for i, r := range w.ranked("mutuals") {
		p := w.person(r.Address)
		place[r.Address] = i
		numbers := array{}
		for _, n := range []string{r.MutualsRank, r.FollowersRank, r.FollowingRank, r.BlocksRank, r.Top8Rank, r.Mutuals, r.Following, r.Followers, r.Blocks, r.Top8} {
			numbers = append(numbers, number(w.t, n))
		}
		entries = append(entries, array{r.Address, p.ENS.Name, p.ENS.Avatar, p.ENS.Header, numbers[:5], numbers[5:]})
	}
	for n, shard := range w.shards(entries, 1000) {
		want[site.RankedShardKey(n)] = shard
	}
	for _, sort := range site.RankedSorts() {
		places := array{}
		for _, r := range w.ranked(sort) {
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
		for _, n := range []string{p.Ranks.Mutuals, p.Ranks.Followers, p.Ranks.Following, p.Ranks.Top8, p.Ranks.Blocks} {
			ranks = append(ranks, number(w.t, n))
		}
		rows = append(rows, array{r.Address, p.ENS.Name, p.ENS.Avatar, p.ENS.Header, class, p.ENS.Records, p.followers, p.following, ranks})
	}
	return rows
}
