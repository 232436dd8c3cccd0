package render

import (
	"strconv"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// An Account is what objects show of an account.
type Account struct {
	Address site.Address
	Profile Profile          // its Name is "" if another account has the name
	Primary string           // token ID of the primary list; "" for none
	Counts  [Boards]uint32   // by measure
	Ranks   [Measures]uint32 // by measure; 0 is unranked

	ends profileEnds // of the profile; zero if they were not looked for
}

func (e *efpRenderer) shown(account uint32) Account {
	return e.Graph.shown(e.ranks, e.profileEnds, account)
}

// texts returns name, avatar and header as JSON strings.
func (a *Account) texts() (name, avatar, header []byte) {
	p := a.Profile.orEmpty()
	ends := a.ends
	if ends.name == 0 {
		ends = endsOf(p)
	}
	return textsOf(p, ends)
}

func textsOf(p Profile, ends profileEnds) (name, avatar, header []byte) {
	return p.ENS[nameStart:ends.name], p.ENS[int(ends.name)+avatarMember : p.SearchLen], p.ENS[int(p.SearchLen)+headerMember : ends.header]
}

// orEmpty returns the profile, or an empty one for none.
func (p Profile) orEmpty() Profile {
	if len(p.ENS) == 0 {
		return emptyProfile
	}
	return p
}

// appendPerson appends an entry with address, name, avatar and header, without the closing brace.
func (a *Account) appendPerson(b []byte) []byte {
	name, avatar, header := a.texts()
	b = append(b, `{"address":"`...)
	b = a.Address.Append(b)
	b = append(append(b, `","name":`...), orNull(name)...)
	b = append(append(b, `,"avatar":`...), orNull(avatar)...)
	return append(append(b, `,"header":`...), orNull(header)...)
}

// appendRanked appends an entry of the answer to /leaderboard/ranked.
func (a *Account) appendRanked(b []byte, lastUpdated string) []byte {
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
	name, avatar, header := a.texts()
	b = append(b, `["`...)
	b = a.Address.Append(b)
	b = append(b, '"')
	b = appendTexts(b, name, avatar, header)
	b = appendNumbers(b, rankedRanks, a.Ranks[:])
	b = appendNumbers(b, rankedCounts, a.Counts[:])
	return append(b, ']')
}

// AppendRecommended appends the row of a recommended account, which is nil if nothing is known of the
// address.
func AppendRecommended(b []byte, address site.Address, class string, a *Account) []byte {
	b = append(b, `["`...)
	b = address.Append(b)
	b = append(b, '"')
	if a == nil {
		b = append(b, `,"","",""`...)
	} else {
		name, avatar, header := a.texts()
		b = appendTexts(b, name, avatar, header)
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
	b = appendTexts(b, recordsText(a.Profile.orEmpty()))
	b = append(b, ',')
	b = strconv.AppendUint(b, uint64(a.Counts[rules.Followers]), 10)
	b = append(b, ',')
	b = strconv.AppendUint(b, uint64(a.Counts[rules.Following]), 10)
	b = appendNumbers(b, detailRanks, a.Ranks[:])
	return append(b, ']')
}

// appendNumbers appends numbers of an account as an array, after a comma.
func appendNumbers(b []byte, all []namedMeasure, numbers []uint32) []byte {
	b = append(b, ",["...)
	for _, m := range all {
		b = append(strconv.AppendUint(b, uint64(numbers[m.Measure]), 10), ',')
	}
	return append(withoutComma(b), ']')
}

// topAccount is an account as the explorer's object TopKey shows it.
func (a *Account) topAccount() topAccount {
	p := a.Profile.orEmpty()
	name := textEnd(p.ENS, nameStart)
	row := topAccount{
		Address: a.Address, Name: p.ENS[nameStart:name], Followers: a.Counts[rules.Followers], List: a.Primary,
		Avatar: p.ENS[name+avatarMember : p.SearchLen],
	}
	if tooLong(row.Avatar) {
		row.Avatar = []byte(emptyText)
	}
	return row
}

// Top renders the explorer's object TopKey: the first accounts by followers, of so many that have one.
func Top(accounts []Account, total int) []byte {
	t := topObject{Total: total}
	for i := range accounts[:min(len(accounts), TopAccounts)] {
		t.Accounts = append(t.Accounts, accounts[i].topAccount())
	}
	return t.Append(nil)
}
