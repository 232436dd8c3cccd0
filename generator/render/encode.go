package render

import (
	"fmt"
	"strconv"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/site/scan"
)

// appendRecordStart appends a record up to the end of its data.
func appendRecordStart(b []byte, all records, i int) []byte {
	f := all.Form(i)
	b = append(b, `{"version":`...)
	b = strconv.AppendUint(b, uint64(f.Version), 10)
	b = append(b, `,"record_type":`...)
	b = rawjson.AppendString(b, f.Type)
	b = append(b, `,"data":"`...)
	if text := all.Text(i); text != "" {
		return append(b, text...)
	}
	return all.Address(i).Append(b)
}

// appendRecordFields appends a record without its closing brace.
func appendRecordFields(b []byte, all records, i int) []byte {
	b = append(appendRecordStart(b, all, i), `","tags":`...)
	return append(b, all.Form(i).JSON...)
}

func appendSearchEntry(b []byte, all records, i int) []byte {
	shown := all.Shown(i)
	b = appendRecordFields(b, all, i)
	b = append(b, `,"ens":`...)
	b = append(b, shown.searched()...)
	return append(b, "}}"...)
}

// recordSize estimates the bytes that appendRecordFields appends.
func recordSize(all records, i int) int {
	f := all.Form(i)
	return len(`{"version":1,"record_type":"","data":"0x0000000000000000000000000000000000000000","tags":},`) +
		len(all.Text(i)) + len(f.Type) + len(f.JSON)
}

func recordsSize(all records) int {
	size := 0
	for i := range all.Len() {
		size += recordSize(all, i)
	}
	return size
}

// entriesSize estimates the bytes that appendEntries appends.
func entriesSize(all records, follows []uint32) int {
	size := 0
	for n, i := range follows {
		if n%AheadRows == 0 {
			all.Ahead(int(i), int(follows[min(n+AheadRows, len(follows))-1])+1)
		}
		size += recordSize(all, int(i)) + int(all.Shown(int(i)).SearchLen) + len(`,"ens":}`)
	}
	return size
}

// appendRecords appends the answer to /records.
func appendRecords(b []byte, all records) []byte {
	b = append(b, `{"records":[`...)
	for i := range all.Len() {
		if i%AheadRows == 0 {
			all.Ahead(i, i+AheadRows)
		}
		b = append(appendRecordFields(b, all, i), "},"...)
	}
	return append(WithoutComma(b), "]}"...)
}

// appendFollows appends the indexes of follows among records.
func appendFollows(to []uint32, all records) []uint32 {
	for i := range all.Len() {
		if all.State(i) == rules.Follow {
			to = append(to, uint32(i))
		}
	}
	return to
}

// appendEntries appends search entries with commas between them.
func appendEntries(b []byte, all records, follows []uint32) []byte {
	for _, i := range follows {
		b = append(appendSearchEntry(b, all, int(i)), ',')
	}
	return WithoutComma(b)
}

// firstPage returns the follows in the answer to a search without parameters.
func firstPage(follows []uint32) []uint32 { return follows[:min(len(follows), site.DefaultLimit)] }

// appendFollowing appends the answer to /searchFollowing without parameters.
func appendFollowing(b []byte, all records, follows []uint32) []byte {
	b = append(b, `{"following":[`...)
	b = appendEntries(b, all, firstPage(follows))
	return append(b, "]}"...)
}

// appendShard appends the n-th search shard of a list with total follows. follows are those in the
// shard.
func appendShard(b []byte, token string, total, n int, all records, follows []uint32) []byte {
	b = scan.ShardHeader{
		List: token, Total: total, Shard: n, Shards: SearchShards(total), ShardSize: site.SearchShardSize,
	}.Append(b)
	b = appendEntries(b, all, follows)
	return append(b, "]}"...)
}

// appendDetails appends the answer to /details.
func (a *Account) appendDetails(b []byte) []byte {
	b = append(b, `{"address":"`...)
	b = a.Address.Append(b)
	b = append(b, `","ens":`...)
	b = append(b, a.Profile.OrEmpty().ENS...)
	for m, member := range [Measures]string{
		`,"ranks":{"mutuals_rank":"`, `","followers_rank":"`, `","following_rank":"`, `","top8_rank":"`, `","blocks_rank":"`,
	} {
		b = append(b, member...)
		b = strconv.AppendUint(b, uint64(a.Ranks[m]), 10)
	}
	b = append(b, `"},"primary_list":`...)
	return append(a.appendPrimary(b), '}')
}

func (a *Account) appendPrimary(b []byte) []byte {
	if a.Primary == "" {
		return append(b, "null"...)
	}
	return append(append(append(b, '"'), a.Primary...), '"')
}

// eventText is the account-independent part of an event's badge item.
type eventText struct {
	absent string // complete item of an account without the badge
	held   string // item of an account with the badge, up to the token ID
}

type eventTexts []eventText

// size estimates the bytes that appendBadges appends for an account with these badges.
func (texts eventTexts) size(held []Badge) int {
	size := len(texts) * len(`{"eventId":"0000000000","participated":false,"collection":null},`)
	for _, b := range held {
		size += len(texts[b.Event].held) + UserBytes
	}
	return size
}

func encodeEvents(events []site.Event) eventTexts {
	texts := make(eventTexts, len(events))
	for i, e := range events {
		id := strconv.FormatUint(e.ID, 10)
		texts[i].absent = `{"eventId":"` + id + `","participated":false,"collection":null}`
		b := []byte(`{"eventId":"` + id + `","participated":true,"collection":{"event":{"id":` + id)
		for _, member := range []struct{ name, value string }{
			{"fancy_id", e.FancyID}, {"name", e.Name}, {"event_url", e.EventURL}, {"image_url", e.ImageURL},
			{"country", e.Country}, {"city", e.City}, {"description", e.Description},
		} {
			b = appendMember(b, member.name, member.value)
		}
		b = fmt.Appendf(b, `,"year":%d`, e.Year)
		b = appendMember(b, "start_date", e.StartDate)
		b = appendMember(b, "end_date", e.EndDate)
		b = appendMember(b, "expiry_date", e.ExpiryDate)
		texts[i].held = string(append(b, `},"tokenId":"`...))
	}
	return texts
}

// appendBadges appends the answer to /badges: one item per event, in the order of events.
func (v *View) appendBadges(b []byte, field string, events eventTexts) []byte {
	held := v.Badges
	b = append(b, '{')
	b = rawjson.AppendString(b, field)
	b = append(b, ":["...)
	for i, e := range events {
		if len(held) == 0 || held[0].Event != uint32(i) {
			b = append(append(b, e.absent...), ',')
			continue
		}
		b = append(b, e.held...)
		b = append(b, held[0].TokenID...)
		b = append(b, `","owner":"`...)
		b = v.Account.Address.Append(b)
		b = append(b, `"}},`...)
		held = held[1:]
	}
	return append(WithoutComma(b), "]}"...)
}
