package generator

import (
	"strconv"

	"github.com/followpress/followpress/site"
)

// The encoders append JSON to a buffer, which is reused for the next object, because a site has
// hundreds of thousands of them. Their output equals go-json's for the shapes of package site;
// tests compare the two.

// Estimated sizes of parts of objects, which are needed before rendering.
const (
	objectBytes = 512 // without the items that the object lists
	userBytes   = 128 // an address or a name, and a number
)

func appendTags(b []byte, tags []string) []byte {
	b = append(b, '[')
	for i, tag := range tags {
		if i > 0 {
			b = append(b, ',')
		}
		b = site.AppendString(b, tag)
	}
	return append(b, ']')
}

// appendRecordFields appends a record without its closing brace.
func (g *graph) appendRecordFields(b []byte, r record) []byte {
	k := g.kinds[r.kind]
	b = append(b, `{"version":`...)
	b = strconv.AppendUint(b, uint64(k.version), 10)
	b = append(b, `,"record_type":`...)
	b = site.AppendString(b, k.recordType)
	b = append(b, `,"data":"`...)
	if r.data&otherData != 0 {
		b = append(b, g.other[r.data&^otherData]...)
	} else {
		b = g.accounts[r.data].Append(b)
	}
	b = append(b, `","tags":`...)
	return append(b, g.tagSets[r.tags].json...)
}

func (g *graph) appendSearchEntry(b []byte, r record) []byte {
	p := g.profile(r.data)
	b = g.appendRecordFields(b, r)
	b = append(b, `,"ens":`...)
	b = append(b, p.ens[:p.searchLen]...)
	return append(b, "}}"...)
}

// recordSize estimates the bytes that appendRecordFields appends.
func (g *graph) recordSize(r record) int {
	size := len(`{"version":1,"record_type":"","data":"0x0000000000000000000000000000000000000000","tags":},`)
	if r.data&otherData != 0 {
		size += len(g.other[r.data&^otherData])
	}
	return size + len(g.kinds[r.kind].recordType) + len(g.tagSets[r.tags].json)
}

// entriesSize estimates the bytes that appendEntries appends.
func (g *graph) entriesSize(follows []record) int {
	size := 0
	for _, r := range follows {
		size += g.recordSize(r) + int(g.profile(r.data).searchLen) + len(`,"ens":}`)
	}
	return size
}

// appendRecords appends the answer to /records.
func (g *graph) appendRecords(b []byte, list uint32) []byte {
	b = append(b, `{"records":[`...)
	for i, r := range g.recordsOf(list).all() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(g.appendRecordFields(b, r), '}')
	}
	return append(b, "]}"...)
}

// appendEntries appends search entries with commas between them.
func (g *graph) appendEntries(b []byte, follows []record) []byte {
	for i, r := range follows {
		if i > 0 {
			b = append(b, ',')
		}
		b = g.appendSearchEntry(b, r)
	}
	return b
}

// firstPage returns the follows in the answer to a search without parameters.
func firstPage(follows []record) []record {
	return follows[:min(len(follows), site.DefaultLimit)]
}

// appendFollowing appends the answer to /searchFollowing without parameters.
func (g *graph) appendFollowing(b []byte, follows []record) []byte {
	b = append(b, `{"following":[`...)
	b = g.appendEntries(b, firstPage(follows))
	return append(b, "]}"...)
}

// appendShard appends the n-th search shard of a list with that many follows: those in the shard.
func (g *graph) appendShard(b []byte, list uint32, total, n int, follows []record) []byte {
	b = site.ShardHeader{
		List: g.tokens[list], Total: total, Shard: n, Shards: searchShards(total), ShardSize: site.SearchShardSize,
	}.Append(b)
	b = g.appendEntries(b, follows)
	return append(b, "]}"...)
}

// appendDetails appends the answer to /details.
func (g *graph) appendDetails(b []byte, r *ranks, account uint32) []byte {
	b = append(b, `{"address":"`...)
	b = g.accounts[account].Append(b)
	b = append(b, `","ens":`...)
	b = append(b, g.profile(account).ens...)
	for m, member := range [measures]string{
		`,"ranks":{"mutuals_rank":"`, `","followers_rank":"`, `","following_rank":"`, `","top8_rank":"`, `","blocks_rank":"`,
	} {
		b = append(b, member...)
		b = strconv.AppendUint(b, uint64(r.rank[m][account]), 10)
	}
	b = append(b, `"},"primary_list":`...)
	return append(g.appendPrimary(b, account), '}')
}

// appendPrimary appends the token ID of the primary list of an account.
func (g *graph) appendPrimary(b []byte, account uint32) []byte {
	if primary := g.primary[account]; primary != none {
		b = append(b, '"')
		b = append(b, g.tokens[primary]...)
		return append(b, '"')
	}
	return append(b, "null"...)
}

// eventText is the part of an event's badge item that does not depend on the account.
type eventText struct {
	absent string // the whole item of an account without the badge
	held   string // the beginning of the item of an account with the badge, up to the token's ID
}

// eventTexts are those of all events, in their order.
type eventTexts []eventText

// size estimates the bytes that appendBadges appends for an account with these badges.
func (texts eventTexts) size(held []badge) int {
	size := len(texts) * len(`{"eventId":"0000000000","participated":false,"collection":null},`)
	for _, b := range held {
		size += len(texts[b.event].held) + userBytes
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
		b = append(b, `,"year":`...)
		b = strconv.AppendInt(b, int64(e.Year), 10)
		b = appendMember(b, "start_date", e.StartDate)
		b = appendMember(b, "end_date", e.EndDate)
		b = appendMember(b, "expiry_date", e.ExpiryDate)
		texts[i].held = string(append(b, `},"tokenId":"`...))
	}
	return texts
}

func appendMember(b []byte, name, value string) []byte {
	b = append(b, `,"`...)
	b = append(b, name...)
	b = append(b, `":`...)
	return site.AppendString(b, value)
}

// appendBadges appends the answer to /badges: one item per event, in the order of events.
func (g *graph) appendBadges(b []byte, field string, events eventTexts, account uint32) []byte {
	held := g.badgesOf(account)
	b = append(b, '{')
	b = site.AppendString(b, field)
	b = append(b, ":["...)
	for i, e := range events {
		if i > 0 {
			b = append(b, ',')
		}
		if len(held) == 0 || held[0].event != uint32(i) {
			b = append(b, e.absent...)
			continue
		}
		b = append(b, e.held...)
		b = append(b, held[0].tokenID...)
		b = append(b, `","owner":"`...)
		b = g.accounts[account].Append(b)
		b = append(b, `"}}`...)
		held = held[1:]
	}
	return append(b, "]}"...)
}

// appendLeaderboard appends the first accounts of a leaderboard.
func (g *graph) appendLeaderboard(b []byte, r *ranks, board site.Board, limit int) []byte {
	m, member := boardMember(board)
	b = append(b, '[')
	for i, account := range r.first[m][:min(limit, len(r.first[m]))] {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"rank":`...)
		b = strconv.AppendInt(b, int64(i+1), 10)
		b = append(b, `,"address":"`...)
		b = g.accounts[account].Append(b)
		b = append(b, member...)
		b = strconv.AppendUint(b, uint64(r.count[m][account]), 10)
		b = append(b, `"}`...)
	}
	return append(b, ']')
}

// boardMember returns what a leaderboard counts, and the text before the count in its entries.
func boardMember(board site.Board) (m measure, member string) {
	switch board {
	case site.Following:
		return following, `","following_count":"`
	case site.Blocked:
		return blocks, `","blocked_by_count":"`
	case site.Blocks:
		return blocking, `","blocks_count":"`
	case site.Muted:
		return muted, `","muted_by_count":"`
	case site.Mutes:
		return muting, `","mutes_count":"`
	case site.Mutuals:
		return mutuals, `","mutuals_count":"`
	}
	return followers, `","followers_count":"`
}

// searchShards is the number of search shards of a list with that many follows. A list that fits
// on the first page needs none.
func searchShards(follows int) int {
	if follows < site.DefaultLimit {
		return 0
	}
	return (follows + site.SearchShardSize - 1) / site.SearchShardSize
}
