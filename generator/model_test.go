package generator_test

import (
	"bytes"
	"cmp"
	stdjson "encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/twin/answers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/refresh"
)

// A model reads and answers a snapshot in the plainest way: rows decoded by encoding/json, maps,
// and loops straight from the design. Tests compare the generator with it.
type model struct {
	lists    []*modelList // in the snapshot's order
	byToken  map[string]*modelList
	accounts map[string]bool   // every address in the snapshot
	primary  map[string]string // account → token id of its primary list
	profiles map[string]site.Profile
	names    map[string]string // lookup name → account
	events   []site.Event
	badges   map[string]map[uint64]string // account → event → token id
}

type modelList struct {
	token, account string
	records        []answers.Record
}

func newModel(t testing.TB, s snapshot) *model {
	t.Helper()
	return newRefreshedModel(t, s, nil)
}

// newRefreshedModel reads a snapshot, and merges refreshed data.
func newRefreshedModel(t testing.TB, s snapshot, r refreshed) *model {
	t.Helper()
	m := &model{
		byToken: map[string]*modelList{}, accounts: map[string]bool{}, primary: map[string]string{},
		profiles: map[string]site.Profile{}, names: map[string]string{}, badges: map[string]map[uint64]string{},
	}
	m.readLists(t, s)
	m.readAccounts(t, s)
	before := maps.Clone(m.profiles)
	m.mergeProfiles(t, r)
	m.chooseNames(before)
	m.readRecords(t, s)
	m.readBadges(t, s)
	m.mergeBadges(t, s, r)
	return m
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

func (m *model) readLists(t testing.TB, s snapshot) {
	t.Helper()
	for _, row := range decodeRows[struct {
		TokenID string `json:"token_id"`
		Owner   string
		User    string
	}](t, s, "lists") {
		l := &modelList{token: row.TokenID, account: strings.ToLower(cmp.Or(row.User, row.Owner))}
		m.lists = append(m.lists, l)
		m.byToken[l.token] = l
		m.accounts[l.account] = true
	}
}

func (m *model) readAccounts(t testing.TB, s snapshot) {
	t.Helper()
	for _, row := range decodeRows[struct {
		Address string
		Primary string `json:"primary_list"`
		ENS     *modelENS
	}](t, s, "accounts") {
		account := strings.ToLower(row.Address)
		m.accounts[account] = true
		if l := m.byToken[row.Primary]; l != nil && l.account == account {
			m.primary[account] = row.Primary
		}
		if row.ENS == nil {
			continue
		}
		e := row.ENS
		m.profiles[account] = e.profile(t)
	}
}

// A modelENS is an ens object of a snapshot or a refresh.
type modelENS struct {
	Name, Avatar, Header, Display, Resolver string
	Fresh                                   int64
	Records, Chains, Errors                 anyObject
}

func (e modelENS) profile(t testing.TB) site.Profile {
	t.Helper()
	return site.Profile{Name: e.Name, Avatar: e.Avatar, Header: e.Header, Display: e.Display,
		Records: e.Records.encode(t), Chains: e.Chains.encode(t), Fresh: e.Fresh, Resolver: e.Resolver, Errors: e.Errors.encode(t)}
}

// refreshedAccount returns the account of a refreshed object, "" for none.
func (m *model) refreshedAccount(key site.Key, kind, address string) string {
	token, ok := strings.CutPrefix(string(key), kind+"/")
	l := m.byToken[token]
	if !ok || l == nil || address != "" && strings.ToLower(address) != l.account {
		return ""
	}
	return l.account
}

func (m *model) mergeProfiles(t testing.TB, r refreshed) {
	t.Helper()
	for _, key := range r.keys() {
		var in struct {
			Address string
			modelENS
		}
		if !strings.HasPrefix(string(key), "details/") {
			continue
		}
		if err := stdjson.Unmarshal([]byte(r[key]), &in); err != nil {
			t.Fatalf("%s: got %v, want JSON", key, err)
		}
		account := m.refreshedAccount(key, "details", in.Address)
		in.Fresh = max(in.Fresh, 0)
		if has, ok := m.profiles[account]; account != "" && (!ok || in.Fresh > has.Fresh) {
			m.profiles[account] = in.profile(t)
		}
	}
}

func (m *model) mergeBadges(t testing.TB, s snapshot, r refreshed) {
	t.Helper()
	var meta struct {
		AsOf time.Time `json:"as_of"`
	}
	if err := stdjson.Unmarshal([]byte(s["meta.json"]), &meta); err != nil {
		t.Fatal(err)
	}
	latest := map[string]map[string]int64{} // account → event → when it was fetched
	for _, key := range r.keys() {
		if !strings.HasPrefix(string(key), "badges/") {
			continue
		}
		var in refresh.KeptBadges
		if err := stdjson.Unmarshal([]byte(r[key]), &in); err != nil {
			t.Fatalf("%s: got %v, want JSON", key, err)
		}
		account := m.refreshedAccount(key, "badges", in.Address)
		if account == "" || !time.UnixMilli(in.Fetched).After(meta.AsOf) {
			continue
		}
		if latest[account] == nil {
			latest[account] = map[string]int64{}
		}
		for _, b := range in.Badges {
			for _, e := range m.events {
				if strconv.FormatUint(e.ID, 10) != b.EventID || in.Fetched <= latest[account][b.EventID] {
					continue
				}
				latest[account][b.EventID] = in.Fetched
				delete(m.badges[account], e.ID)
				if m.badges[account] == nil {
					m.badges[account] = map[uint64]string{}
				}
				if b.Participated {
					m.badges[account][e.ID] = b.Collection.TokenID
				}
			}
		}
	}
}

// chooseNames gives names first to accounts that had them before refreshes, then to those renamed
// by a refresh.
func (m *model) chooseNames(before map[string]site.Profile) {
	for _, byRefresh := range []bool{false, true} {
		chosen := map[string]string{}
		for account, p := range m.profiles {
			if !site.LookupName(p.Name) || (before[account].Name != p.Name) != byRefresh {
				continue
			}
			has, taken := chosen[p.Name]
			if !taken || p.Fresh > m.profiles[has].Fresh || p.Fresh == m.profiles[has].Fresh && account < has {
				chosen[p.Name] = account
			}
		}
		for name, account := range chosen {
			if m.names[name] == "" {
				m.names[name] = account
			}
		}
	}
}

// An anyObject is a JSON object of which only texts are shown.
type anyObject map[string]any

func (o *anyObject) UnmarshalJSON(b []byte) error {
	d := stdjson.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err := d.Decode((*map[string]any)(o))
	maps.DeleteFunc(*o, func(_ string, value any) bool {
		_, isText := value.(string)
		return !isText
	})
	return err
}

// encode returns the object as the site shows it; null and nothing give an empty object.
func (o anyObject) encode(t testing.TB) json.RawMessage {
	t.Helper()
	if o == nil {
		return json.RawMessage("{}")
	}
	return encode(t, map[string]any(o))
}

func (m *model) readRecords(t testing.TB, s snapshot) {
	t.Helper()
	for _, row := range decodeRows[struct {
		TokenID string `json:"token_id"`
		Version uint32
		Type    string `json:"record_type"`
		Data    string
		Tags    []string
	}](t, s, "records") {
		l := m.byToken[row.TokenID]
		if l == nil {
			continue
		}
		r := answers.Record{Version: row.Version, RecordType: row.Type, Data: strings.ToLower(row.Data), Tags: row.Tags}
		if isAddress(r) {
			m.accounts[r.Data] = true
		}
		i := slices.IndexFunc(l.records, func(other answers.Record) bool {
			return other.Version == r.Version && other.RecordType == r.RecordType && other.Data == r.Data
		})
		if i < 0 {
			i = len(l.records)
			l.records = append(l.records, r)
		} else {
			l.records[i].Tags = append(l.records[i].Tags, r.Tags...)
		}
		slices.Sort(l.records[i].Tags)
		l.records[i].Tags = append([]string{}, slices.Compact(l.records[i].Tags)...)
	}
}

func (m *model) readBadges(t testing.TB, s snapshot) {
	t.Helper()
	m.events = decodeRows[site.Event](t, s, "events")
	iso := regexp.MustCompile(`^(20\d\d-\d\d-\d\d)([T ].*)?$`)
	for i := range m.events {
		e := &m.events[i]
		for _, date := range []*string{&e.StartDate, &e.EndDate, &e.ExpiryDate} {
			if found := iso.FindStringSubmatch(*date); found != nil {
				if day, err := time.Parse(time.DateOnly, found[1]); err == nil {
					*date = day.Format("02-Jan-2006")
				}
			}
		}
	}
	for _, row := range decodeRows[struct {
		EventID string `json:"event_id"`
		TokenID string `json:"token_id"`
		Owner   string
	}](t, s, "badges") {
		event, err := strconv.ParseUint(row.EventID, 10, 64)
		if err != nil {
			continue // more digits than any event has
		}
		owner := strings.ToLower(row.Owner)
		if m.badges[owner] == nil {
			m.badges[owner] = map[uint64]string{}
		}
		if has, ok := m.badges[owner][event]; !ok || site.CompareTokenIDs(row.TokenID, has) < 0 {
			m.badges[owner][event] = row.TokenID
		}
	}
}

func isAddress(r answers.Record) bool {
	_, err := site.ParseAddress(r.Data)
	return err == nil && r.RecordType == "address"
}

func isFollow(r answers.Record) bool {
	return isHeld(r) && !slices.Contains(r.Tags, "block") && !slices.Contains(r.Tags, "mute")
}

func (l *modelList) follows() []answers.Record {
	return slices.DeleteFunc(slices.Clone(l.records), func(r answers.Record) bool { return !isFollow(r) })
}

// counts returns the five counts of section 2 of the design, by account.
func (m *model) counts() (followers, following, mutuals, top8, blocks map[string]int) {
	followers, following, mutuals = map[string]int{}, map[string]int{}, map[string]int{}
	top8, blocks = map[string]int{}, map[string]int{}
	follows := map[string]map[string]bool{} // from → to
	for a, token := range m.primary {
		follows[a] = map[string]bool{}
		for _, r := range m.byToken[token].records {
			if isFollow(r) {
				follows[a][r.Data] = true
				if slices.Contains(r.Tags, "top8") {
					top8[r.Data]++
				}
			}
			if isHeld(r) && slices.Contains(r.Tags, "block") {
				blocks[r.Data]++
			}
		}
	}
	for a, all := range follows {
		for b := range all {
			following[a]++
			followers[b]++
			if a != b && follows[b][a] {
				mutuals[a]++
			}
		}
	}
	return followers, following, mutuals, top8, blocks
}

// order returns the accounts with a count, from rank 1 on.
func order(count map[string]int) []string {
	var ranked []string
	for account, n := range count {
		if n > 0 {
			ranked = append(ranked, account)
		}
	}
	slices.SortFunc(ranked, func(a, b string) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), strings.Compare(a, b))
	})
	return ranked
}

// ranks returns the ranks of an account.
func (m *model) ranks() func(account string) site.Ranks {
	followers, following, mutuals, top8, blocks := m.counts()
	position := func(count map[string]int) func(string) string {
		at := map[string]int{}
		for i, account := range order(count) {
			at[account] = i + 1
		}
		return func(account string) string { return strconv.Itoa(at[account]) }
	}
	r := [...]func(string) string{position(mutuals), position(followers), position(following), position(top8), position(blocks)}
	return func(a string) site.Ranks {
		return site.Ranks{Mutuals: r[0](a), Followers: r[1](a), Following: r[2](a), Top8: r[3](a), Blocks: r[4](a)}
	}
}

func (m *model) profile(account string) site.Profile {
	if p, ok := m.profiles[account]; ok {
		return p
	}
	return site.Profile{Records: json.RawMessage("{}"), Chains: json.RawMessage("{}"), Errors: json.RawMessage("{}")}
}

func (m *model) searchEntries(follows []answers.Record) []answers.SearchEntry {
	entries := []answers.SearchEntry{}
	for _, r := range follows {
		p := m.profile(r.Data)
		entries = append(entries, answers.SearchEntry{Record: r, ENS: answers.SearchProfile{Name: p.Name, Avatar: p.Avatar}})
	}
	return entries
}

func (m *model) badgeItems(account string) []site.Badge {
	items := []site.Badge{}
	for _, e := range m.events {
		item := site.Badge{EventID: strconv.FormatUint(e.ID, 10)}
		if token, ok := m.badges[account][e.ID]; ok {
			item.Participated = true
			item.Collection = &site.Collection{Event: e, TokenID: token, Owner: account}
		}
		items = append(items, item)
	}
	return items
}

// objects returns every object of the site except the manifest and the root.
func (m *model) objects(t testing.TB, c site.Config) objects {
	t.Helper()
	c, err := c.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	o := objects{}
	for _, p := range (site.Config{}).Problems() {
		o[p.Key()] = string(p.Body())
	}
	m.addLists(t, c, o)
	m.addUsers(t, c, o)
	m.addLeaderboards(t, c, o)
	return o
}

func (m *model) addLists(t testing.TB, c site.Config, o objects) {
	t.Helper()
	ranks := m.ranks()
	for _, l := range m.lists {
		details := site.ListDetails{Address: l.account, ENS: m.profile(l.account), Ranks: ranks(l.account)}
		if primary, ok := m.primary[l.account]; ok {
			details.PrimaryList = &primary
		}
		entries := m.searchEntries(l.follows())
		o[c.ListKey(l.token, site.Records)] = text(t, answers.ListRecords{Records: append([]answers.Record{}, l.records...)})
		o[c.ListKey(l.token, site.Details)] = text(t, details)
		o[c.ListKey(l.token, site.Badges)] = text(t, map[string]any{c.BadgesField: m.badgeItems(l.account)})
		o[c.ListKey(l.token, site.SearchFollowing)] = text(t, firstPage(entries))
		if len(entries) < 10 {
			continue
		}
		shards := slices.Collect(slices.Chunk(entries, 1000))
		for n, shard := range shards {
			o[site.SearchShardKey(l.token, n)] = text(t, searchShard{l.token, len(entries), n, len(shards), 1000, shard})
		}
	}
}

// searchShard is a search shard, see section 6 of the design.
type searchShard struct {
	List      string                `json:"list"`
	Total     int                   `json:"total"`
	Shard     int                   `json:"shard"`
	Shards    int                   `json:"shards"`
	ShardSize int                   `json:"shard_size"`
	Entries   []answers.SearchEntry `json:"entries"`
}

// userBucket is a bucket of users, see section 6 of the design.
type userBucket struct {
	Bucket string            `json:"bucket"`
	Users  map[string]string `json:"users"`
}

func firstPage(entries []answers.SearchEntry) answers.FollowingPage {
	return answers.FollowingPage{Following: entries[:min(10, len(entries))]}
}

func (m *model) addUsers(t testing.TB, c site.Config, o objects) {
	t.Helper()
	users := map[string]string{} // → token id
	for account, token := range m.primary {
		users[account] = token
	}
	for name, account := range m.names {
		users[name] = m.primary[account]
	}
	digits := site.Config{}.BucketDigits(len(users))
	buckets := map[string]userBucket{}
	for _, bucket := range site.HashPrefixes(digits) {
		buckets[bucket] = userBucket{bucket, map[string]string{}}
	}
	for user, token := range users {
		page := firstPage(nil)
		page.Following = []answers.SearchEntry{}
		if token != "" {
			page = firstPage(m.searchEntries(m.byToken[token].follows()))
		}
		o[c.UserKey(user)] = text(t, page)
		buckets[site.UserBucket(user, digits)].Users[user] = token
	}
	for name, bucket := range buckets {
		o[site.UserBucketKey(name)] = text(t, bucket)
	}
}

func (m *model) addLeaderboards(t testing.TB, c site.Config, o objects) {
	t.Helper()
	followerCounts, followingCounts, _, _, _ := m.counts()
	followers, following := []answers.FollowersEntry{}, []answers.FollowingEntry{}
	for i, account := range order(followerCounts) {
		followers = append(followers, answers.FollowersEntry{Rank: i + 1, Address: account, Followers: fmt.Sprint(followerCounts[account])})
	}
	for i, account := range order(followingCounts) {
		following = append(following, answers.FollowingEntry{Rank: i + 1, Address: account, Following: fmt.Sprint(followingCounts[account])})
	}
	for limit := 1; limit <= c.LeaderboardMax; limit++ {
		o[site.LeaderboardLimitKey(site.Followers, limit)] = text(t, followers[:min(limit, len(followers))])
		o[site.LeaderboardLimitKey(site.Following, limit)] = text(t, following[:min(limit, len(following))])
	}
	for _, board := range (site.Config{}).Boards() {
		o[c.LeaderboardKey(board)] = o[site.LeaderboardLimitKey(board, 10)]
	}
}

// siteCounts returns the counts in the root of the site.
func (m *model) siteCounts(o objects) site.Counts {
	c := site.Counts{
		Accounts: len(m.accounts), Lists: len(m.lists), Primary: len(m.primary), Names: len(m.names),
		Events: len(m.events), Objects: len(o),
	}
	for _, l := range m.lists {
		c.Records += len(l.records)
		c.Follows += len(l.follows())
	}
	for _, body := range o {
		c.Bytes += int64(len(body))
	}
	return c
}

// encode returns go-json's encoding, which the site's must equal.
func encode(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.MarshalWithOption(v, json.DisableHTMLEscape())
	if err != nil {
		t.Fatalf("encode %T: got %v, want no error", v, err)
	}
	return bytes.TrimSpace(b)
}

func text(t testing.TB, v any) string {
	t.Helper()
	return string(encode(t, v))
}
