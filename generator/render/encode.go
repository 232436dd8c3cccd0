package render

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
func (g *Graph) appendRecordFields(b []byte, r PackedRecord) []byte {
	k := g.kinds[r.Kind]
	b = append(b, `{"version":`...)
	b = strconv.AppendUint(b, uint64(k.Version), 10)
	b = append(b, `,"record_type":`...)
	b = site.AppendString(b, k.Type)
	b = append(b, `,"data":"`...)
	if r.Data&OtherData != 0 {
		b = append(b, g.Other[r.Data&^OtherData]...)
	} else {
		b = g.Accounts[r.Data].Append(b)
	}
	b = append(b, `","tags":`...)
	return append(b, g.TagSets[r.Tags].json...)
}

func (g *Graph) appendSearchEntry(b []byte, r PackedRecord) []byte {
	p := g.profile(r.Data)
	b = g.appendRecordFields(b, r)
	b = append(b, `,"ens":`...)
	b = append(b, p.ENS[:p.SearchLen]...)
	return append(b, "}}"...)
}

// recordSize estimates the bytes that appendRecordFields appends.
func (g *Graph) recordSize(r PackedRecord) int {
	size := len(`{"version":1,"record_type":"","data":"0x0000000000000000000000000000000000000000","tags":},`)
	if r.Data&OtherData != 0 {
		size += len(g.Other[r.Data&^OtherData])
	}
	return size + len(g.kinds[r.Kind].Type) + len(g.TagSets[r.Tags].json)
}

// entriesSize estimates the bytes that appendEntries appends.
func (g *Graph) entriesSize(follows []PackedRecord) int {
	size := 0
	for _, r := range follows {
		size += g.recordSize(r) + int(g.profile(r.Data).SearchLen) + len(`,"ens":}`)
	}
	return size
}

// appendRecords appends the answer to /records.
func (g *Graph) appendRecords(b []byte, list uint32) []byte {
	b = append(b, `{"records":[`...)
	for i, r := range g.RecordsOf(list).All() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(g.appendRecordFields(b, r), '}')
	}
	return append(b, "]}"...)
}

// appendEntries appends search entries with commas between them.
func (g *Graph) appendEntries(b []byte, follows []PackedRecord) []byte {
	for i, r := range follows {
		if i > 0 {
			b = append(b, ',')
		}
		b = g.appendSearchEntry(b, r)
	}
	return b
}

// firstPage returns the follows in the answer to a search without parameters.
func firstPage(follows []PackedRecord) []PackedRecord {
	return follows[:min(len(follows), site.DefaultLimit)]
}

// appendFollowing appends the answer to /searchFollowing without parameters.
func (g *Graph) appendFollowing(b []byte, follows []PackedRecord) []byte {
	b = append(b, `{"following":[`...)
	b = g.appendEntries(b, firstPage(follows))
	return append(b, "]}"...)
}

// appendShard appends the n-th search shard of a list with that many follows: those in the shard.
func (g *Graph) appendShard(b []byte, list uint32, total, n int, follows []PackedRecord) []byte {
	b = site.ShardHeader{
		List: g.Tokens[list], Total: total, Shard: n, Shards: searchShards(total), ShardSize: site.SearchShardSize,
	}.Append(b)
	b = g.appendEntries(b, follows)
	return append(b, "]}"...)
}

// appendDetails appends the answer to /details.
func (g *Graph) appendDetails(b []byte, r *Ranks, account uint32) []byte {
	b = append(b, `{"address":"`...)
	b = g.Accounts[account].Append(b)
	b = append(b, `","ens":`...)
	b = append(b, g.profile(account).ENS...)
	for m, member := range [Measures]string{
		`,"ranks":{"mutuals_rank":"`, `","followers_rank":"`, `","following_rank":"`, `","top8_rank":"`, `","blocks_rank":"`,
	} {
		b = append(b, member...)
		b = strconv.AppendUint(b, uint64(r.Rank[m][account]), 10)
	}
	b = append(b, `"},"primary_list":`...)
	return append(g.appendPrimary(b, account), '}')
}

// appendPrimary appends the token ID of the primary list of an account.
func (g *Graph) appendPrimary(b []byte, account uint32) []byte {
	if primary := g.Primary[account]; primary != None {
		b = append(b, '"')
		b = append(b, g.Tokens[primary]...)
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
func (texts eventTexts) size(held []AccountBadge) int {
	size := len(texts) * len(`{"eventId":"0000000000","participated":false,"collection":null},`)
	for _, b := range held {
		size += len(texts[b.Event].held) + userBytes
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
func (g *Graph) appendBadges(b []byte, field string, events eventTexts, account uint32) []byte {
	held := g.BadgesOf(account)
	b = append(b, '{')
	b = site.AppendString(b, field)
	b = append(b, ":["...)
	for i, e := range events {
		if i > 0 {
			b = append(b, ',')
		}
		if len(held) == 0 || held[0].Event != uint32(i) {
			b = append(b, e.absent...)
			continue
		}
		b = append(b, e.held...)
		b = append(b, held[0].TokenID...)
		b = append(b, `","owner":"`...)
		b = g.Accounts[account].Append(b)
		b = append(b, `"}}`...)
		held = held[1:]
	}
	return append(b, "]}"...)
}

// A Leader is an account on a leaderboard.
type Leader struct {
	Address site.Address
	Count   uint32
}

// appendLeaderboard appends the first accounts of a leaderboard.
func appendLeaderboard(b []byte, board site.Board, leaders []Leader) []byte {
	_, member := boardMember(board)
	b = append(b, '[')
	for i, leader := range leaders {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"rank":`...)
		b = strconv.AppendInt(b, int64(i+1), 10)
		b = append(b, `,"address":"`...)
		b = leader.Address.Append(b)
		b = append(b, member...)
		b = strconv.AppendUint(b, uint64(leader.Count), 10)
		b = append(b, `"}`...)
	}
	return append(b, ']')
}

// boardMember returns what a leaderboard counts, and the text before the count in its entries.
func boardMember(board site.Board) (m Measure, member string) {
	switch board {
	case site.Following:
		return Following, `","following_count":"`
	case site.Blocked:
		return Blocks, `","blocked_by_count":"`
	case site.Blocks:
		return Blocking, `","blocks_count":"`
	case site.Muted:
		return Muted, `","muted_by_count":"`
	case site.Mutes:
		return Muting, `","mutes_count":"`
	case site.Mutuals:
		return Mutuals, `","mutuals_count":"`
	}
	return Followers, `","followers_count":"`
}

// searchShards is the number of search shards of a list with that many follows. A list that fits
// on the first page needs none.
func searchShards(follows int) int {
	if follows < site.DefaultLimit {
		return 0
	}
	return (follows + site.SearchShardSize - 1) / site.SearchShardSize
}
