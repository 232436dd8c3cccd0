package render

import (
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
	p := a.Profile.OrEmpty()
	b = append(b, `{"address":"`...)
	b = a.Address.Append(b)
	b = append(b, `","ens":`...)
	b = append(b, p.ENS[:len(p.ENS)-1]...)
	b = append(b, `,"updated_at":"`...)
	b = appendTime(b, p.Fresh)
	return append(b, `"}`...)
}

// appendListAccount appends the answer to /account of a list.
func (v *View) appendListAccount(b []byte) []byte {
	b = v.Account.appendAccount(b)
	b = append(b, `,"is_primary_list":`...)
	b = strconv.AppendBool(b, v.isPrimary())
	b = append(b, `,"primary_list":`...)
	return append(v.Account.appendPrimary(b), '}')
}

// appendLists appends the answer to /lists.
func (v *View) appendLists(b []byte) []byte {
	b = append(b, `{"primary_list":`...)
	b = v.Account.appendPrimary(b)
	b = append(b, `,"lists":[`...)
	for _, token := range v.Tokens {
		b = append(append(append(b, '"'), token...), `",`...)
	}
	return append(WithoutComma(b), "]}"...)
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
	b = all.Address(i).Append(b)
	b = append(b, `","tags":`...)
	return append(b, all.Form(i).JSON...)
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
	return append(WithoutComma(b), "]}"...)
}

// appendSearchFollowing appends the answer to /searchFollowing without parameters.
func appendSearchFollowing(b []byte, all records, follows []uint32) []byte {
	b = append(b, `{"following":[`...)
	for _, i := range firstPage(follows) {
		shown := all.Shown(int(i))
		b = appendFollowingFields(b, all, int(i))
		b = append(b, `,"ens":`...)
		b = append(b, shown.searched()...)
		b = append(b, "}},"...)
	}
	return append(WithoutComma(b), "]}"...)
}

// followersSize estimates the bytes of a page of followers.
func followersSize(page []Follower) int {
	size := 0
	for i := range page {
		size += followerBytes + len(page[i].Token) + len(page[i].Tags.JSON)
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
		b = append(b, f.Tags.JSON...)
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
	return append(WithoutComma(b), "]}"...)
}

func appendAddressHead(b []byte, address string) []byte {
	return append(append(append(b, `{"address":"`...), address...), '"')
}

func appendTokenHead(b []byte, token string) []byte {
	return append(append(append(b, `{"token_id":"`...), token...), '"')
}
