package render

import (
	"strconv"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// An Account holds the fields of an account that objects show.
type Account struct {
	Address site.Address
	Profile Profile          // its Name is "" if another account has the name
	Primary string           // token ID of the primary list; "" for none
	Counts  [Boards]uint32   // by measure
	Ranks   [Measures]uint32 // by measure; 0 means unranked

	Ends TextEnds // ends in the profile; zero if not computed
}

// Texts returns name, avatar and header as JSON strings.
func (a *Account) Texts() (name, avatar, header []byte) {
	p := a.Profile.OrEmpty()
	ends := a.Ends
	if ends.Name == 0 {
		ends = EndsOf(p)
	}
	return TextsOf(p, ends)
}

// appendPerson appends an entry with address, name, avatar and header, without the closing brace.
func (a *Account) appendPerson(b []byte) []byte {
	name, avatar, header := a.Texts()
	b = append(b, `{"address":"`...)
	b = a.Address.Append(b)
	b = append(append(b, `","name":`...), orNull(name)...)
	b = append(append(b, `,"avatar":`...), orNull(avatar)...)
	return append(append(b, `,"header":`...), orNull(header)...)
}

// appendRankedEntry appends an entry of the answer to /leaderboard/ranked.
func (a *Account) appendRankedEntry(b []byte, lastUpdated string) []byte {
	b = a.appendPerson(b)
	for _, m := range rankedRanks {
		b = appendMeasure(b, m.name+`_rank`, a.Ranks[m.Measure])
	}
	for _, m := range rankedCounts {
		b = appendMeasure(b, m.name, a.Counts[m.Measure])
	}
	b = append(b, `,"updated_at":"`...)
	b = append(b, lastUpdated...)
	return append(b, `"}`...)
}

// AppendPerson appends the entry of an account in the answer to /discover.
func AppendPerson(b []byte, a *Account) []byte {
	b = a.appendPerson(b)
	b = appendMeasure(b, "followers", a.Counts[rules.Followers])
	b = appendMeasure(b, "following", a.Counts[rules.Following])
	return append(b, '}')
}

// AppendRankedRow appends the row of an account in a shard of the ranked accounts.
func AppendRankedRow(b []byte, a *Account) []byte {
	name, avatar, header := a.Texts()
	b = append(b, `["`...)
	b = a.Address.Append(b)
	b = append(b, '"')
	b = AppendTexts(b, name, avatar, header)
	b = appendNumbers(b, rankedRanks, a.Ranks[:])
	b = appendNumbers(b, rankedCounts, a.Counts[:])
	return append(b, ']')
}

// AppendRecommended appends the row of a recommended account. a is nil if nothing is known about
// the address.
func AppendRecommended(b []byte, address site.Address, class string, a *Account) []byte {
	b = append(b, `["`...)
	b = address.Append(b)
	b = append(b, '"')
	if a == nil {
		b = append(b, `,"","",""`...)
	} else {
		name, avatar, header := a.Texts()
		b = AppendTexts(b, name, avatar, header)
	}
	b = append(b, ',')
	if class == "" {
		b = append(b, "null"...)
	} else {
		b = rawjson.AppendString(b, class)
	}
	if a == nil {
		return append(b, ",{},0,0,[0,0,0,0,0]]"...)
	}
	b = AppendTexts(b, recordsText(a.Profile.OrEmpty()))
	b = append(b, ',')
	b = strconv.AppendUint(b, uint64(a.Counts[rules.Followers]), 10)
	b = append(b, ',')
	b = strconv.AppendUint(b, uint64(a.Counts[rules.Following]), 10)
	b = appendNumbers(b, detailRanks, a.Ranks[:])
	return append(b, ']')
}

// A Badge is a token of an event.
type Badge struct {
	Event   uint32 // index into the events
	TokenID string
}
