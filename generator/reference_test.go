package generator_test

import (
	stdjson "encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures/graph"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/internal/twin/answers"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/refresh"
)

// A reference is a graph as package naive reads and answers it. Tests derive the objects of a site
// from its answers.
type reference struct {
	t        testing.TB
	config   site.Config
	graph    *naive.Graph
	tokens   []string                 // token IDs of all lists, sorted as texts
	lists    map[string]referenceList // by token ID
	accounts map[string]bool          // every address of an account, a list, or a record of any version
	owners   map[string]bool          // owners of badges of known events
	primary  map[string]string        // account → token ID of its primary list
	details  map[string]site.ListDetails
	names    map[string]string // lookup name → account
	badges   map[string][]refresh.Badge
	events   int
}

type referenceList struct {
	account string
	records []answers.Record
}

func newReference(t testing.TB, s snapshot, config site.Config) *reference {
	t.Helper()
	config, err := config.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	r := &reference{
		t: t, config: config, lists: map[string]referenceList{}, accounts: map[string]bool{}, owners: map[string]bool{},
		primary: map[string]string{}, details: map[string]site.ListDetails{}, names: map[string]string{}, badges: map[string][]refresh.Badge{},
	}
	if r.graph, err = naive.Load(afero.NewIOFS(s.fs()), naive.Config{
		BasePath: config.BasePath, BadgesField: config.BadgesField, LeaderboardMax: config.LeaderboardMax, ProfileURL: config.ProfileURL,
	}); err != nil {
		t.Fatal(err)
	}
	for address, name := range r.graph.Named() {
		r.accounts[address] = true
		if name != "" {
			r.names[name] = address
		}
		r.readLists(address)
	}
	for address := range r.accounts {
		r.readAccount(address)
	}
	r.readOwners(s)
	slices.Sort(r.tokens)
	return r
}

func (r *reference) readLists(account string) {
	r.t.Helper()
	of := decode[struct {
		Primary *string `json:"primary_list"`
		Lists   []string
	}](r.t, r.answer("users/"+account+"/lists", ""))
	if of.Primary != nil {
		r.primary[account] = *of.Primary
	}
	for _, token := range of.Lists {
		l := referenceList{account, decode[answers.ListRecords](r.t, r.answer("lists/"+token+"/records", "")).Records}
		r.tokens, r.lists[token] = append(r.tokens, token), l
		for _, record := range l.records {
			if isAddress(record) {
				r.accounts[record.Data] = true
			}
		}
	}
}

func (r *reference) readAccount(address string) {
	r.t.Helper()
	r.details[address] = decode[site.ListDetails](r.t, r.answer("users/"+address+"/details", ""))
	r.badges[address] = decode[map[string][]refresh.Badge](r.t, r.answer("users/"+address+"/badges", ""))[r.config.BadgesField]
}

// readOwners reads the tables of events and badges, since no answer lists all owners of badges.
func (r *reference) readOwners(s snapshot) {
	r.t.Helper()
	r.events = len(decodeRows[struct{}](r.t, s, "events"))
	for _, row := range decodeRows[struct{ Owner string }](r.t, s, "badges") {
		owner := strings.ToLower(row.Owner)
		r.readAccount(owner)
		r.owners[owner] = slices.ContainsFunc(r.badges[owner], func(b refresh.Badge) bool { return b.Participated })
	}
}

// decodeRows decodes a table without invalid rows.
func decodeRows[Row any](t testing.TB, s snapshot, table string) []Row {
	t.Helper()
	var rows []Row
	for line := range strings.Lines(s[table+".ndjson"]) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var row Row
		if err := stdjson.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%s: got %v in %s, want JSON", table, err, line)
		}
		rows = append(rows, row)
	}
	return rows
}

// answer returns the reference answer, which must be a 200.
func (r *reference) answer(path, query string) string {
	r.t.Helper()
	var segments []string
	for segment := range strings.SplitSeq(r.config.BasePath+"/"+path, "/") {
		segments = append(segments, url.PathEscape(segment))
	}
	status, _, body := r.graph.Answer("GET", "/"+strings.Join(segments, "/"), query, nil)
	if status != 200 {
		r.t.Fatalf("%s?%s: got %d from the reference, want 200", path, query, status)
	}
	return string(body)
}

// addresses returns the addresses of all accounts that the site shows, sorted. The API efp shows
// owners of badges too.
func (r *reference) addresses() (all []string) {
	for address := range r.accounts {
		all = append(all, address)
	}
	for owner, participates := range r.owners {
		if participates && r.config.EFP() && !r.accounts[owner] {
			all = append(all, owner)
		}
	}
	slices.Sort(all)
	return all
}

func isAddress(r answers.Record) bool {
	_, err := site.ParseAddress(r.Data)
	return err == nil && r.RecordType == "address"
}

func isHeld(r answers.Record) bool { return r.Version == 1 && isAddress(r) }

func isFollow(r answers.Record) bool { return isHeld(r) && areOfFollow(r.Tags) }

func areOfFollow(tags []string) bool {
	return !slices.Contains(tags, "block") && !slices.Contains(tags, "mute")
}

func (l referenceList) follows() []answers.Record {
	return slices.DeleteFunc(slices.Clone(l.records), func(r answers.Record) bool { return !isFollow(r) })
}

// specObjects returns all objects of a site of the API spec, except the manifest and the root.
func (r *reference) specObjects() objects {
	r.t.Helper()
	o := objects{}
	for _, p := range r.config.Problems() {
		o[p.Key()] = string(p.Body())
	}
	for _, token := range r.tokens {
		r.addSpecList(token, o)
	}
	r.addSpecUsers(o)
	for _, board := range r.config.Boards() {
		for limit := 1; limit <= r.config.LeaderboardMax; limit++ {
			o[site.LeaderboardLimitKey(board, limit)] = r.answer("leaderboard/"+string(board), fmt.Sprint("limit=", limit))
		}
		o[r.config.LeaderboardKey(board)] = o[site.LeaderboardLimitKey(board, 10)]
	}
	return o
}

// A searchShard is a shard of a list's follows, see section 6 of the design.
type searchShard struct {
	List      string                `json:"list"`
	Total     int                   `json:"total"`
	Shard     int                   `json:"shard"`
	Shards    int                   `json:"shards"`
	ShardSize int                   `json:"shard_size"`
	Entries   []answers.SearchEntry `json:"entries"`
}

func (r *reference) addSpecList(token string, o objects) {
	r.t.Helper()
	l, key := r.lists[token], func(object site.ListObject) site.Key { return r.config.ListKey(token, object) }
	o[key(site.Records)] = text(r.t, answers.ListRecords{Records: l.records})
	o[key(site.Details)] = text(r.t, r.details[l.account])
	o[key(site.Badges)] = text(r.t, map[string]any{r.config.BadgesField: r.badges[l.account]})
	entries := r.searchEntries(token)
	o[key(site.SearchFollowing)] = text(r.t, firstPage(entries))
	if len(entries) < 10 {
		return
	}
	shards := slices.Collect(slices.Chunk(entries, 1000))
	for n, shard := range shards {
		o[site.SearchShardKey(token, n)] = text(r.t, searchShard{token, len(entries), n, len(shards), 1000, shard})
	}
}

// searchEntries returns the follows of a list, or none for no list.
func (r *reference) searchEntries(token string) []answers.SearchEntry {
	entries := []answers.SearchEntry{}
	for _, record := range r.lists[token].follows() {
		p := r.details[record.Data].ENS
		entries = append(entries, answers.SearchEntry{Record: record, ENS: answers.SearchProfile{Name: p.Name, Avatar: p.Avatar}})
	}
	return entries
}

func firstPage(entries []answers.SearchEntry) answers.FollowingPage {
	return answers.FollowingPage{Following: entries[:min(10, len(entries))]}
}

// A userBucket leads from users to lists, see section 6 of the design.
type userBucket struct {
	Bucket string            `json:"bucket"`
	Users  map[string]string `json:"users"`
}

func (r *reference) addSpecUsers(o objects) {
	r.t.Helper()
	users := map[string]string{} // → token ID
	for account, token := range r.primary {
		users[account] = token
	}
	for name, account := range r.names {
		users[name] = r.primary[account]
	}
	digits := r.config.BucketDigits(len(users))
	buckets := map[string]userBucket{}
	for _, bucket := range site.HashPrefixes(digits) {
		buckets[bucket] = userBucket{bucket, map[string]string{}}
	}
	for user, token := range users {
		o[r.config.UserKey(user)] = text(r.t, firstPage(r.searchEntries(token)))
		buckets[site.UserBucket(user, digits)].Users[user] = token
	}
	for name, bucket := range buckets {
		o[site.UserBucketKey(name)] = text(r.t, bucket)
	}
}

// specCounts returns the counts in the root of a site with these objects.
func (r *reference) specCounts(o objects) site.Counts {
	c := site.Counts{
		Accounts: len(r.accounts), Lists: len(r.tokens), Primary: len(r.primary), Names: len(r.names),
		Events: r.events, Objects: len(o),
	}
	for _, l := range r.lists {
		c.Records += len(l.records)
		c.Follows += len(l.follows())
	}
	for _, body := range o {
		c.Bytes += int64(len(body))
	}
	return c
}

// TestSpecSiteEqualsTwin compares every byte of many sites of the API spec with the reference
// answers, encoded by go-json.
func TestSpecSiteEqualsTwin(t *testing.T) {
	t.Parallel()
	snapshots := map[string]snapshot{
		"empty": emptySnapshot(),
		// Lists of more than one search shard.
		"long lists": syntheticSnapshot(t, graph.Options{Accounts: 2600, Lists: 3, Records: 4000, Seed: 5}),
		"synthetic":  syntheticSnapshot(t, graph.Options{Accounts: 120, Lists: 150, Records: 1500, Seed: 6}),
	}
	for seed := range uint64(16) {
		snapshots["hostile "+strconv.FormatUint(seed, 10)] = randomSnapshot(1000+seed,
			shape{accounts: 25, lists: 18, records: 350, events: 5, badges: 60, hostile: true})
	}
	// Small graphs make ties, self-follows, mutes of blocked accounts, second lists and wrong
	// primaries coincide often.
	for seed := range uint64(30) {
		snapshots["tiny "+strconv.FormatUint(seed, 10)] = randomSnapshot(seed,
			shape{accounts: 2 + int(seed), lists: 1 + int(seed*4/3), records: int(seed * 5)})
	}
	usual := generator.Options{Config: site.Config{LeaderboardMax: 12, BadgesField: `po"aps<é>`, BasePath: "graph/v2.0"}}
	for name, s := range snapshots {
		t.Run(name, func(t *testing.T) {
			o := usual
			if strings.HasPrefix(name, "tiny") {
				o.Config.LeaderboardMax = 32 // all accounts
			}
			got, r := inMemory(t, s, o), newReference(t, s, o.Config)
			if err := check(got); err != nil {
				t.Error(err)
			}
			want := r.specObjects()
			root := decode[site.Root](t, got[site.RootKey])
			if counts := r.specCounts(want); root.Counts != counts {
				t.Errorf("counts of the root: got %+v, want %+v", root.Counts, counts)
			}
			if err := got.WithoutIndex().Compare(want); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMapsOfTexts: profiles of snapshots and of refreshes show texts only, and dates of events have
// the form of the specification. The report counts other values, and dates that cannot be parsed.
func TestMapsOfTexts(t *testing.T) {
	newer := refreshed{
		"details/1": `{"address":"` + alice + `","name":"alice.eth","records":{"a":"b","c":7,"d":null},"fresh":200}`,
		"details/2": `{"address":"` + bob + `","records":{"not newer":false},"fresh":50}`,
	}
	s := beforeRefreshes().adding("accounts",
		`{"address":"`+carol+`","ens":{"records":{"z":-12345678901234567890.50,"a":[1E400, -0 ,1.0],"":{"b":null},"n":null,"t":"é"},"chains":{"eth":"0x","60":true}}}`,
		`{"address":"0x`+strings.Repeat("d", 40)+`","ens":{"records":{"description":null,"avatar":null},"errors":{}}}`,
	).adding("lists", `{"token_id":"4","owner":"`+carol+`"}`)
	s = s.with("events.ndjson", strings.Replace(strings.Replace(s["events.ndjson"], `"start_date":"s"`, `"start_date":"2026-09-24T23:30:00-07:00"`, 1),
		`"end_date":"e"`, `"end_date":"25-Sep-2026"`, 1))
	files, report, err := generator.ToMemory(t.Context(), s.fs(), withRefreshed(newer))
	if err != nil {
		t.Fatal(err)
	}
	got := readTree(t, files)
	c, _ := site.Config{}.WithDefaults()
	for token, want := range map[string]string{
		"1": `"records":{"a":"b"},"chains":{},"fresh":200`,
		"4": `"records":{"t":"é"},"chains":{"eth":"0x"},"fresh":0`,
	} {
		if details := got[c.ListKey(token, site.Details)]; !strings.Contains(details, want) {
			t.Errorf("list %s: got %s, want in it %s", token, details, want)
		}
	}
	const dates = `"start_date":"24-Sep-2026","end_date":"25-Sep-2026","expiry_date":"x"`
	if badges := got[c.ListKey("2", site.Badges)]; !strings.Contains(badges, dates) {
		t.Errorf("badges: got %s, want in it %s", badges, dates)
	}
	if want := (summary.NoTextReport{Profiles: 2, Entries: 5}); report.NoTexts != want || report.OtherDates != 4 {
		t.Errorf("report: got %+v and %d other dates, want %+v and 4", report.NoTexts, report.OtherDates, want)
	}
	for _, line := range []string{
		"left out           2 profiles, 5 entries that are not strings\n",
		"events             4 dates that are not like 31-Jan-2026, shown unchanged\n",
	} {
		if !strings.Contains(report.String(), line) {
			t.Errorf("report: got\n%s, want in it\n%s", report, line)
		}
	}
}

// decode decodes the only JSON value of an object.
func decode[T any](t testing.TB, body string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("decode %T: got %v in %s, want no error", v, err, body)
	}
	return v
}

// encode returns go-json's encoding, which the site's must equal.
func encode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.MarshalWithOption(v, json.DisableHTMLEscape())
	if err != nil {
		t.Fatalf("encode %T: got %v, want no error", v, err)
	}
	return b
}

func text(t testing.TB, v any) string {
	t.Helper()
	return string(encode(t, v))
}

func itoa(n int) string { return strconv.Itoa(n) }
