package render

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	json "github.com/goccy/go-json"

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

func (e *efpRenderer) findProfileEnds() {
	e.profileEnds = make([]profileEnds, len(e.Accounts))
	for account := range e.profileEnds {
		e.profileEnds[account] = endsOf(e.profile(uint32(account)))
	}
}

// endsOf returns the ends of the profile of an account.
func (e *efpRenderer) endsOf(account uint32) profileEnds {
	if e.profileEnds == nil {
		return endsOf(e.profile(account))
	}
	return e.profileEnds[account]
}

// shownTexts returns name, avatar and header of an account as JSON strings.
func (e *efpRenderer) shownTexts(account uint32) (name, avatar, header []byte) {
	return textsOf(e.profile(account), e.endsOf(account))
}

// orNull returns null for an empty JSON string.
func orNull(text []byte) []byte {
	if len(text) == len(emptyText) {
		return []byte("null")
	}
	return text
}

// appendAccount appends an answer to /account without its closing brace.
func (e *efpRenderer) appendAccount(b []byte, account uint32) []byte {
	p := e.profile(account)
	b = append(b, `{"address":"`...)
	b = e.Accounts[account].Append(b)
	b = append(b, `","ens":`...)
	b = append(b, p.ENS[:len(p.ENS)-1]...)
	b = append(b, `,"updated_at":"`...)
	b = appendTime(b, p.Fresh)
	return append(b, `"}`...)
}

// appendListAccount appends the answer to /account of a list.
func (e *efpRenderer) appendListAccount(b []byte, list uint32) []byte {
	account := e.Owners[list]
	b = e.appendAccount(b, account)
	b = append(b, `,"is_primary_list":`...)
	b = strconv.AppendBool(b, e.isPrimary(list))
	b = append(b, `,"primary_list":`...)
	return append(e.appendPrimary(b, account), '}')
}

// appendLists appends the answer to /lists.
func (e *efpRenderer) appendLists(b []byte, account uint32) []byte {
	b = append(b, `{"primary_list":`...)
	b = e.appendPrimary(b, account)
	b = append(b, `,"lists":[`...)
	for i, list := range e.listsOf(account) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '"')
		b = append(b, e.Tokens[list]...)
		b = append(b, '"')
	}
	return append(b, "]}"...)
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
func (e *efpRenderer) appendFollowingFields(b []byte, r PackedRecord) []byte {
	b = append(b, `{"version":1,"record_type":"address","data":"`...)
	b = e.Accounts[r.Data].Append(b)
	b = append(b, `","address":"`...)
	b = e.Accounts[r.Data].Append(b)
	b = append(b, `","tags":`...)
	return append(b, e.TagSets[r.Tags].json...)
}

// followingSize estimates the bytes of a page of follows.
func (e *efpRenderer) followingSize(follows []PackedRecord) int {
	size := 0
	for _, r := range follows[max(0, len(follows)-site.DefaultLimit):] {
		size += e.recordSize(r) + len(`,"address":""`) + site.AddressTextLen
	}
	return size
}

// appendFollowingPage appends the answer to /following: the last of the list's follows.
func (e *efpRenderer) appendFollowingPage(b []byte, follows []PackedRecord) []byte {
	b = append(b, `{"following":[`...)
	last := max(0, len(follows)-site.DefaultLimit)
	for i := len(follows) - 1; i >= last; i-- {
		if i < len(follows)-1 {
			b = append(b, ',')
		}
		b = append(e.appendFollowingFields(b, follows[i]), '}')
	}
	return append(b, "]}"...)
}

// appendSearchFollowing appends the answer to /searchFollowing without parameters.
func (e *efpRenderer) appendSearchFollowing(b []byte, follows []PackedRecord) []byte {
	b = append(b, `{"following":[`...)
	for i, r := range firstPage(follows) {
		if i > 0 {
			b = append(b, ',')
		}
		p := e.profile(r.Data)
		b = e.appendFollowingFields(b, r)
		b = append(b, `,"ens":`...)
		b = append(b, p.ENS[:p.SearchLen]...)
		b = append(b, "}}"...)
	}
	return append(b, "]}"...)
}

// followersSize estimates the bytes of a page of followers.
func (e *efpRenderer) followersSize(page []holder) int {
	size := 0
	for _, h := range page {
		size += followerBytes + len(e.Tokens[h.list]) + len(e.TagSets[e.recordOf(h).Tags].json)
	}
	return size
}

// appendFollowersPage appends the answer to /followers.
func (e *efpRenderer) appendFollowersPage(b []byte, page []holder, states []rules.State) []byte {
	b = append(b, `{"followers":[`...)
	for i, h := range page {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"efp_list_nft_token_id":"`...)
		b = append(b, e.Tokens[h.list]...)
		b = append(b, `","address":"`...)
		b = e.Accounts[e.Owners[h.list]].Append(b)
		b = append(b, `","tags":`...)
		b = append(b, e.TagSets[e.recordOf(h).Tags].json...)
		b = append(b, `,"is_following":`...)
		b = strconv.AppendBool(b, states[i]&rules.Follow != 0)
		b = append(b, `,"is_blocked":`...)
		b = strconv.AppendBool(b, states[i]&rules.Block != 0)
		b = append(b, `,"is_muted":`...)
		b = strconv.AppendBool(b, states[i]&rules.Mute != 0)
		b = append(b, `,"updated_at":"`...)
		b = appendTime(b, e.addedAt(h))
		b = append(b, `"}`...)
	}
	return append(b, "]}"...)
}

// numberTags numbers all tags by their bytes.
func (e *efpRenderer) numberTags() {
	numbers := map[string]uint32{}
	for _, set := range e.TagSets {
		for _, tag := range set.Tags {
			numbers[tag] = 0
		}
	}
	e.tags = e.tags[:0]
	for i, tag := range slices.Sorted(maps.Keys(numbers)) {
		numbers[tag] = uint32(i)
		e.tags = append(e.tags, string(site.AppendString(nil, tag)))
	}
	e.tagNumbers = make([][]uint32, len(e.TagSets))
	for i, set := range e.TagSets {
		for _, tag := range set.Tags {
			e.tagNumbers[i] = append(e.tagNumbers[i], numbers[tag])
		}
	}
}

// countListTags counts the tags in a list, or in none.
func (e *efpRenderer) countListTags(t *Scratch, list uint32) {
	t.numbers = t.numbers[:0]
	if list != None {
		for _, r := range e.RecordsOf(list).All() {
			if e.Holds(r) {
				t.numbers = append(t.numbers, e.tagNumbers[r.Tags]...)
			}
		}
	}
	t.countTags()
}

// countTaggedAs counts the tags that primary lists give an account, and sets t.tagged to the records
// with a tag.
func (e *efpRenderer) countTaggedAs(t *Scratch, account uint32) {
	t.numbers, t.tagged = t.numbers[:0], t.tagged[:0]
	for _, h := range e.holdersOf(account) {
		if tags := e.tagNumbers[e.recordOf(h).Tags]; len(tags) > 0 {
			t.numbers = append(t.numbers, tags...)
			t.tagged = append(t.tagged, h)
		}
	}
	slices.SortFunc(t.tagged, func(a, b holder) int { return cmp.Compare(e.tokenRank[a.list], e.tokenRank[b.list]) })
	t.countTags()
}

// countTags sorts t.numbers and counts them in t.counts.
func (t *Scratch) countTags() {
	slices.Sort(t.numbers)
	t.counts = t.counts[:0]
	for i, tag := range t.numbers {
		if i == 0 || t.numbers[i-1] != tag {
			t.counts = append(t.counts, tagRun{tag: tag})
		}
		t.counts[len(t.counts)-1].n++
	}
	t.byCount = append(t.byCount[:0], t.counts...)
	slices.SortStableFunc(t.byCount, func(a, b tagRun) int { return cmp.Compare(b.n, a.n) })
}

// tagsSize estimates the bytes of an answer to /tags or /taggedAs with the tags that were counted.
func (e *efpRenderer) tagsSize(t *Scratch) int {
	size := objectBytes
	for _, run := range t.counts {
		size += 2*len(e.tags[run.tag]) + countBytes + run.n*(taggedBytes+len(e.tags[run.tag]))
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
func (e *efpRenderer) appendTagCounts(b []byte, t *Scratch) []byte {
	b = append(b, `,"tags":[`...)
	for i, run := range t.counts {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, e.tags[run.tag]...)
	}
	b = append(b, `],"tagCounts":[`...)
	for i, run := range t.byCount {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"tag":`...)
		b = append(b, e.tags[run.tag]...)
		b = append(b, `,"count":`...)
		b = strconv.AppendInt(b, int64(run.n), 10)
		b = append(b, '}')
	}
	return append(b, `],"taggedAddresses":[`...)
}

// appendTagged appends an address once for each tag of a record, with a comma after each.
func (e *efpRenderer) appendTagged(b []byte, account uint32, r PackedRecord) []byte {
	for _, tag := range e.tagNumbers[r.Tags] {
		b = append(b, `{"address":"`...)
		b = e.Accounts[account].Append(b)
		b = append(b, `","tag":`...)
		b = append(b, e.tags[tag]...)
		b = append(b, "},"...)
	}
	return b
}

// appendListTags appends the rest of the answer to /tags.
func (e *efpRenderer) appendListTags(b []byte, t *Scratch, list uint32) []byte {
	b = e.appendTagCounts(b, t)
	if list != None {
		for _, r := range e.RecordsOf(list).All() {
			if e.Holds(r) {
				b = e.appendTagged(b, r.Data, r)
			}
		}
	}
	return append(withoutComma(b), "]}"...)
}

// appendTaggedAs appends the rest of the answer to /taggedAs.
func (e *efpRenderer) appendTaggedAs(b []byte, t *Scratch) []byte {
	b = e.appendTagCounts(b, t)
	for _, h := range t.tagged {
		b = e.appendTagged(b, e.Owners[h.list], e.recordOf(h))
	}
	return append(withoutComma(b), "]}"...)
}

// rankedLimit is the number of entries of the answer to /leaderboard/ranked.
func (e *efpRenderer) rankedLimit() int { return min(site.RankedLimit, e.config.LeaderboardMax) }

// appendRanked appends the answer to /leaderboard/ranked without parameters, with n accounts.
func (e *efpRenderer) appendRanked(b []byte, n int, account func(i int) *Account) []byte {
	b = append(b, `{"last_updated":"`...)
	b = append(b, e.lastUpdated...)
	b = append(b, `","results":[`...)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = account(i).appendRanked(b, e.lastUpdated)
	}
	return append(b, "]}"...)
}

// A namedMeasure is a measure with its name in ranked entries.
type namedMeasure struct {
	name string
	Measure
}

// The measures of ranked entries, in the order of their members.
var (
	rankedRanks  = []namedMeasure{{"mutuals", Mutuals}, {"followers", Followers}, {"following", Following}, {"blocks", Blocks}, {"top8", Top8}}
	rankedCounts = []namedMeasure{{"mutuals", Mutuals}, {"following", Following}, {"followers", Followers}, {"blocks", Blocks}, {"top8", Top8}}
)

// appendMeasure appends a member with a number as a text.
func appendMeasure(b []byte, name string, n uint32) []byte {
	b = append(b, `,"`...)
	b = append(b, name...)
	b = append(b, `":"`...)
	b = strconv.AppendUint(b, uint64(n), 10)
	return append(b, '"')
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
	b = append(b, `{"leaderboardCount":"`...)
	b = strconv.AppendInt(b, int64(s.Ranked), 10)
	return append(b, `"}`...)
}

func (s *Summaries) appendStats(b []byte) []byte {
	b = append(b, `{"stats":{"address_count":"`...)
	b = strconv.AppendInt(b, int64(s.Addresses), 10)
	b = append(b, `","list_count":"`...)
	b = strconv.AppendInt(b, int64(s.Lists), 10)
	b = append(b, `","list_op_count":"`...)
	b = strconv.AppendUint(b, s.ListOps, 10)
	b = append(b, `","user_count":"`...)
	b = strconv.AppendInt(b, int64(s.Primaries), 10)
	return append(b, `"}}`...)
}

// appendDiscover appends the answer to /discover with a limit.
func (s *Summaries) appendDiscover(b []byte, limit int) []byte {
	b = append(b, `{"latestFollows":[`...)
	b = appendJoined(b, s.Discover[:min(limit, len(s.Discover))])
	return append(b, "]}"...)
}

// appendJoined appends texts with commas between them.
func appendJoined(b []byte, texts [][]byte) []byte {
	for i, text := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, text...)
	}
	return b
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
