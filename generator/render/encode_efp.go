package render

import (
	"fmt"
	"strconv"

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

// appendFollowingPage appends the answer to /following: the last follows of the list.
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

func appendAddressHead(b []byte, address string) []byte {
	return append(append(append(b, `{"address":"`...), address...), '"')
}

func appendTokenHead(b []byte, token string) []byte {
	return append(append(append(b, `{"token_id":"`...), token...), '"')
}

// rankedLimit returns the number of entries in the answer to /leaderboard/ranked.
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

// Summaries are the contents of objects that exist once.
type Summaries struct {
	Ranked    int      // accounts on the board of ranked accounts
	Addresses int      // rows of accounts, accounts of lists, and addresses that a list holds
	Lists     int      // all lists
	Primaries int      // accounts with a primary list
	ListOps   uint64   // operations on lists
	Discover  [][]byte // entries of the accounts followed last, by AppendPerson
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
