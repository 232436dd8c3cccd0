package render

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// Estimated sizes of parts of objects of the API efp.
const (
	followerBytes = len(`{"efp_list_nft_token_id":"","address":"0x0000000000000000000000000000000000000000","tags":,` +
		`"is_following":false,"is_blocked":false,"is_muted":false,"updated_at":"1970-01-01T00:00:00.000Z"},`)
	taggedBytes = len(`{"address":"0x0000000000000000000000000000000000000000","tag":},`)
	countBytes  = len(`,{"tag":,"count":1000000},`)
)

// appendTime appends a time in milliseconds since the Unix epoch.
func appendTime(b []byte, ms int64) []byte {
	return time.UnixMilli(ms).UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z")
}

// profileEnds say where the first texts of an encoded profile end, of which searches show the name and
// the avatar, and more of the API efp the header too.
type profileEnds struct{ name, header uint32 }

const (
	nameStart    = len(`{"name":`)
	avatarMember = len(`,"avatar":`)
	headerMember = len(`,"header":`)
	emptyText    = `""`
)

func endsOf(p Profile) profileEnds {
	header := int(p.SearchLen) + headerMember
	return profileEnds{uint32(textEnd(p.ENS, nameStart)), uint32(textEnd(p.ENS, header))}
}

// textEnd returns the end of the JSON string that begins at start.
func textEnd(ens []byte, start int) int {
	for end := start + 1; ; end++ {
		end += bytes.IndexAny(ens[end:], `"\`)
		if ens[end] == '"' {
			return end + 1
		}
		end++ // the character after a backslash
	}
}

// orNull returns null for an empty JSON string.
func orNull(text []byte) []byte {
	if len(text) == len(emptyText) {
		return []byte("null")
	}
	return text
}

// appendAccount appends an answer to /account without its closing brace.
func (a *Account) appendAccount(b []byte) []byte {
	p := a.Profile.orEmpty()
	b = append(b, `{"address":"`...)
	b = a.Address.Append(b)
	b = append(b, `","ens":`...)
	b = append(b, p.ENS[:len(p.ENS)-1]...)
	b = append(b, `,"updated_at":"`...)
	b = appendTime(b, p.Fresh)
	return append(b, `"}`...)
}

// appendListAccount appends the answer to /account of a list.
func (v *view) appendListAccount(b []byte) []byte {
	b = v.account.appendAccount(b)
	b = append(b, `,"is_primary_list":`...)
	b = strconv.AppendBool(b, v.isPrimary())
	b = append(b, `,"primary_list":`...)
	return append(v.account.appendPrimary(b), '}')
}

// appendLists appends the answer to /lists.
func (v *view) appendLists(b []byte) []byte {
	b = append(b, `{"primary_list":`...)
	b = v.account.appendPrimary(b)
	b = append(b, `,"lists":[`...)
	for _, token := range v.tokens {
		b = append(append(append(b, '"'), token...), `",`...)
	}
	return append(withoutComma(b), "]}"...)
}

// appendFollowCounts appends the answer to /stats of a user or a list.
func appendFollowCounts(b []byte, followers uint32, following int) []byte {
	b = append(b, `{"followers_count":`...)
	b = strconv.AppendUint(b, uint64(followers), 10)
	b = append(b, `,"following_count":`...)
	b = strconv.AppendInt(b, int64(following), 10)
	return append(b, '}')
}

// appendFollowingFields appends a followed account without the closing brace.
func appendFollowingFields(b []byte, all records, i int) []byte {
	b = appendRecordStart(b, all, i)
	b = append(b, `","address":"`...)
	b = all.address(i).Append(b)
	b = append(b, `","tags":`...)
	return append(b, all.form(i).json...)
}

// followingSize estimates the bytes of a page of follows.
func followingSize(all records, follows []uint32) int {
	size := 0
	for _, i := range follows[max(0, len(follows)-site.DefaultLimit):] {
		size += recordSize(all, int(i)) + len(`,"address":""`) + site.AddressTextLen
	}
	return size
}

// appendFollowingPage appends the answer to /following: the last of the list's follows.
func appendFollowingPage(b []byte, all records, follows []uint32) []byte {
	b = append(b, `{"following":[`...)
	for n := range min(len(follows), site.DefaultLimit) {
		b = append(appendFollowingFields(b, all, int(follows[len(follows)-1-n])), "},"...)
	}
	return append(withoutComma(b), "]}"...)
}

// appendSearchFollowing appends the answer to /searchFollowing without parameters.
func appendSearchFollowing(b []byte, all records, follows []uint32) []byte {
	b = append(b, `{"following":[`...)
	for _, i := range firstPage(follows) {
		shown := all.shown(int(i))
		b = appendFollowingFields(b, all, int(i))
		b = append(b, `,"ens":`...)
		b = append(b, shown.searched()...)
		b = append(b, "}},"...)
	}
	return append(withoutComma(b), "]}"...)
}

// followersSize estimates the bytes of a page of followers.
func followersSize(page []Follower) int {
	size := 0
	for i := range page {
		size += followerBytes + len(page[i].Token) + len(page[i].Tags.json)
	}
	return size
}

// appendFollowersPage appends the answer to /followers.
func appendFollowersPage(b []byte, page []Follower) []byte {
	b = append(b, `{"followers":[`...)
	for i := range page {
		f := &page[i]
		b = append(b, `{"efp_list_nft_token_id":"`...)
		b = append(b, f.Token...)
		b = append(b, `","address":"`...)
		b = f.Account.Append(b)
		b = append(b, `","tags":`...)
		b = append(b, f.Tags.json...)
		b = append(b, `,"is_following":`...)
		b = strconv.AppendBool(b, f.State&rules.Follow != 0)
		b = append(b, `,"is_blocked":`...)
		b = strconv.AppendBool(b, f.State&rules.Block != 0)
		b = append(b, `,"is_muted":`...)
		b = strconv.AppendBool(b, f.State&rules.Mute != 0)
		b = append(b, `,"updated_at":"`...)
		b = appendTime(b, ShownTime(f.Added))
		b = append(b, `"},`...)
	}
	return append(withoutComma(b), "]}"...)
}

// A tagRun is a tag with the number of records that carry it.
type tagRun struct {
	tag string
	n   int
}

// countListTags counts the tags that the list gives those whom it holds.
func (t *Scratch) countListTags(v *view) {
	clear(t.tags)
	for i := range v.records.Len() {
		if v.records.state(i) != 0 {
			t.addTags(v.records.form(i).Tags)
		}
	}
	t.sortTags()
}

// countTaggedAs counts the tags that primary lists give the account.
func (t *Scratch) countTaggedAs(v *view) {
	clear(t.tags)
	for i := range v.tagged {
		t.addTags(v.tagged[i].Tags.Tags)
	}
	t.sortTags()
}

func (t *Scratch) addTags(tags []string) {
	if len(tags) > 0 && t.tags == nil {
		t.tags = map[string]int{}
	}
	for _, tag := range tags {
		t.tags[tag]++
	}
}

func (t *Scratch) sortTags() {
	t.counts = t.counts[:0]
	for tag, n := range t.tags {
		t.counts = append(t.counts, tagRun{tag, n})
	}
	slices.SortFunc(t.counts, func(a, b tagRun) int { return cmp.Compare(a.tag, b.tag) })
	t.byCount = append(t.byCount[:0], t.counts...)
	slices.SortStableFunc(t.byCount, func(a, b tagRun) int { return cmp.Compare(b.n, a.n) })
}

// tagsSize estimates the bytes of an answer to /tags or /taggedAs with the tags that were counted.
func (t *Scratch) tagsSize() int {
	size := objectBytes
	for _, run := range t.counts {
		size += 2*len(run.tag) + countBytes + run.n*(taggedBytes+len(run.tag))
	}
	return size
}

func appendAddressHead(b []byte, address string) []byte {
	return append(append(append(b, `{"address":"`...), address...), '"')
}

func appendTokenHead(b []byte, token string) []byte {
	return append(append(append(b, `{"token_id":"`...), token...), '"')
}

// appendTagCounts appends the part of an answer to /tags or /taggedAs before the tagged addresses.
func (t *Scratch) appendTagCounts(b []byte) []byte {
	b = append(b, `,"tags":[`...)
	for _, run := range t.counts {
		b = append(rawjson.AppendString(b, run.tag), ',')
	}
	b = append(withoutComma(b), `],"tagCounts":[`...)
	for _, run := range t.byCount {
		b = append(b, `{"tag":`...)
		b = rawjson.AppendString(b, run.tag)
		b = append(b, `,"count":`...)
		b = strconv.AppendInt(b, int64(run.n), 10)
		b = append(b, "},"...)
	}
	return append(withoutComma(b), `],"taggedAddresses":[`...)
}

// appendTagged appends an address once for each tag of a record, with a comma after each.
func appendTagged(b []byte, address site.Address, tags []string) []byte {
	for _, tag := range tags {
		b = append(b, `{"address":"`...)
		b = address.Append(b)
		b = append(b, `","tag":`...)
		b = rawjson.AppendString(b, tag)
		b = append(b, "},"...)
	}
	return b
}

// appendListTags appends the rest of the answer to /tags.
func (t *Scratch) appendListTags(b []byte, v *view) []byte {
	b = t.appendTagCounts(b)
	for i := range v.records.Len() {
		if tags := v.records.form(i).Tags; len(tags) > 0 && v.records.state(i) != 0 {
			b = appendTagged(b, v.records.address(i), tags)
		}
	}
	return append(withoutComma(b), "]}"...)
}

// appendTaggedAs appends the rest of the answer to /taggedAs.
func (t *Scratch) appendTaggedAs(b []byte, v *view) []byte {
	b = t.appendTagCounts(b)
	for i := range v.tagged {
		b = appendTagged(b, v.tagged[i].Account, v.tagged[i].Tags.Tags)
	}
	return append(withoutComma(b), "]}"...)
}

// rankedLimit is the number of entries of the answer to /leaderboard/ranked.
func rankedLimit(c site.Config) int { return min(site.RankedLimit, c.LeaderboardMax) }

// appendRanked appends the answer to /leaderboard/ranked without parameters, with n accounts.
func appendRanked(b []byte, lastUpdated string, n int, account func(i int) *Account) []byte {
	b = append(b, `{"last_updated":"`...)
	b = append(b, lastUpdated...)
	b = append(b, `","results":[`...)
	for i := range n {
		b = append(account(i).appendRanked(b, lastUpdated), ',')
	}
	return append(withoutComma(b), "]}"...)
}

// A namedMeasure is a measure with its name in ranked entries.
type namedMeasure struct {
	name string
	rules.Measure
}

// The measures of ranked entries, in the order of their members.
var (
	rankedRanks  = []namedMeasure{{"mutuals", rules.Mutuals}, {"followers", rules.Followers}, {"following", rules.Following}, {"blocks", rules.Blocks}, {"top8", rules.Top8}}
	rankedCounts = []namedMeasure{{"mutuals", rules.Mutuals}, {"following", rules.Following}, {"followers", rules.Followers}, {"blocks", rules.Blocks}, {"top8", rules.Top8}}
)

// appendMeasure appends a member with a number as a text.
func appendMeasure(b []byte, name string, n uint32) []byte {
	return fmt.Appendf(b, `,"%s":"%d"`, name, n)
}

// Summaries are what the objects show that exist once.
type Summaries struct {
	Ranked    int      // accounts on the board of ranked accounts
	Addresses int      // rows of accounts, accounts of lists, and addresses that a list holds
	Lists     int      // all of them
	Primaries int      // accounts with a primary list
	ListOps   uint64   // operations on lists
	Discover  [][]byte // entries of the accounts that were followed last, as AppendPerson makes them
}

func (s *Summaries) appendCount(b []byte) []byte {
	return fmt.Appendf(b, `{"leaderboardCount":"%d"}`, s.Ranked)
}

func (s *Summaries) appendStats(b []byte) []byte {
	return fmt.Appendf(b, `{"stats":{"address_count":"%d","list_count":"%d","list_op_count":"%d","user_count":"%d"}}`,
		s.Addresses, s.Lists, s.ListOps, s.Primaries)
}

// appendDiscover appends the answer to /discover with a limit.
func (s *Summaries) appendDiscover(b []byte, limit int) []byte {
	b = append(b, `{"latestFollows":[`...)
	b = appendJoined(b, s.Discover[:min(limit, len(s.Discover))])
	return append(b, "]}"...)
}

// appendJoined appends texts with commas between them.
func appendJoined(b []byte, texts [][]byte) []byte {
	for _, text := range texts {
		b = append(append(b, text...), ',')
	}
	return withoutComma(b)
}

// recordsText returns the member records of an encoded profile.
func recordsText(p Profile) []byte {
	var in struct {
		Records json.RawMessage `json:"records"`
	}
	if err := json.Unmarshal(p.ENS, &in); err != nil {
		return []byte("{}") // does not happen: the profile was encoded here
	}
	return in.Records
}
