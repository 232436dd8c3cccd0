package render

import (
	"bytes"
	"fmt"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// Limits of what the explorer reads beside the objects of the API.
const (
	TopAccounts    = 2_000 // most accounts of a topObject
	topAvatarBytes = 200   // of the longest avatar in a topObject
	startAccounts  = 50    // most accounts of the start
	startBytes     = 8_000 // most bytes of their rows, so that the start is there at once over any network
	NetworkTags    = 50    // most tags of a Network
)

// StartKey is the explorer's object for its first view.
var StartKey = site.ExplorerKey("start")

// A topObject is the object TopKey: the first accounts of the leaderboard of followers.
type topObject struct {
	Total    int          // accounts with a follower
	Accounts []topAccount // at most TopAccounts, in the order of the leaderboard
}

// A topAccount is an account of a Top.
type topAccount struct {
	Address   site.Address
	Name      []byte // JSON string, "" for none
	Followers uint32
	List      string // primary list, "" for none
	Avatar    []byte // JSON string, "" for none and for one that is longer than topAvatarBytes
}

// Append appends the object as JSON to b.
func (t topObject) Append(b []byte) []byte {
	b = fmt.Appendf(b, `{"total":%d,"accounts":[`, t.Total)
	for _, a := range t.Accounts {
		b = append(a.append(b), ',')
	}
	return append(withoutComma(b), "]}"...)
}

func (a *topAccount) append(b []byte) []byte {
	return fmt.Appendf(b, `["%s",%s,%d,"%s",%s]`, a.Address, a.Name, a.Followers, a.List, a.Avatar)
}

// start is the object StartKey: the same of the first accounts only, as many as have room.
func (t topObject) start() topObject {
	size := 0
	for i := range t.Accounts[:min(len(t.Accounts), startAccounts)] {
		size += len(t.Accounts[i].append(nil)) + len(",")
		if size > startBytes {
			return topObject{t.Total, t.Accounts[:i]}
		}
	}
	return topObject{t.Total, t.Accounts[:min(len(t.Accounts), startAccounts)]}
}

// A Network is the object NetworkKey: the sizes of a graph, and how accounts and records are distributed.
type Network struct {
	AsOf      string      // time of the snapshot, RFC 3339
	Counts    site.Counts // of which it shows all but events, objects and bytes; of accounts, those that have a profile or a list, or that a list holds
	Followers []DegreeCount
	Following []DegreeCount   // of accounts with a primary list
	Tags      []LabelledCount // the NetworkTags most used ones on records of primary lists, then by their bytes
	Growth    []LabelledCount // records of primary lists by the month in which they were added, as far as that is known
}

// A DegreeCount says how many accounts have as many followers, or follow as many others. Its degree is at least 1.
type DegreeCount struct{ Degree, Accounts int }

// A LabelledCount says how many records have a tag, or were added in a month such as 2026-01 (UTC).
type LabelledCount struct {
	Label   string
	Records int
}

// Append appends the object as JSON to b.
func (n Network) Append(b []byte) []byte {
	b = append(b, `{"as_of":`...)
	b = rawjson.AppendString(b, n.AsOf)
	for _, size := range []struct {
		name  string
		count int
	}{
		{"accounts", n.Counts.Accounts}, {"lists", n.Counts.Lists}, {"primary_lists", n.Counts.Primary},
		{"records", n.Counts.Records}, {"follows", n.Counts.Follows}, {"names", n.Counts.Names},
	} {
		b = fmt.Appendf(b, `,"%s":%d`, size.name, size.count)
	}
	b = appendDegrees(append(b, `,"followers":[`...), n.Followers)
	b = appendDegrees(append(b, `],"following":[`...), n.Following)
	b = appendLabelled(append(b, `],"tags":[`...), n.Tags)
	b = appendLabelled(append(b, `],"growth":[`...), n.Growth)
	return append(b, "]}"...)
}

func appendDegrees(b []byte, all []DegreeCount) []byte {
	for _, d := range all {
		b = fmt.Appendf(b, "[%d,%d],", d.Degree, d.Accounts)
	}
	return withoutComma(b)
}

func appendLabelled(b []byte, all []LabelledCount) []byte {
	for _, l := range all {
		b = fmt.Appendf(rawjson.AppendString(append(b, '['), l.Label), ",%d],", l.Records)
	}
	return withoutComma(b)
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

// Top renders the explorer's objects TopKey and StartKey: the first accounts by followers, of so many that have one.
func Top(accounts []Account, total int) (top, start []byte) {
	t := topObject{Total: total}
	for i := range accounts[:min(len(accounts), TopAccounts)] {
		t.Accounts = append(t.Accounts, accounts[i].topAccount())
	}
	return t.Append(nil), t.start().Append(nil)
}

// tooLong reports whether the text of a JSON string has more than site.TopAvatarBytes.
func tooLong(encoded []byte) bool {
	n := len(encoded) - len(emptyText)
	if n <= topAvatarBytes || !bytes.ContainsRune(encoded, '\\') {
		return n > topAvatarBytes
	}
	var avatar string
	err := json.Unmarshal(encoded, &avatar)
	return err != nil || len(avatar) > topAvatarBytes
}
