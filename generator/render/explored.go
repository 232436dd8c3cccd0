package render

import (
	"bytes"
	"fmt"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// Limits of the objects that only the explorer reads.
const (
	TopAccounts    = 2_000 // maximum accounts of a topObject
	topAvatarBytes = 200   // maximum length of an avatar in a topObject
	startAccounts  = 50    // maximum accounts of the start
	startBytes     = 8_000 // maximum bytes of their rows, so that the start loads fast over any network
	NetworkTags    = 50    // maximum tags of a Network
)

// StartKey is the key of the explorer's first view.
var StartKey = site.ExplorerKey("start")

// A topObject is the object TopKey: the first accounts of the leaderboard of followers.
type topObject struct {
	Total    int          // accounts with a follower
	Accounts []topAccount // at most TopAccounts, in the order of the leaderboard
}

// A topAccount is an account of a topObject.
type topAccount struct {
	Address   site.Address
	Name      []byte // JSON string, "" for none
	Followers uint32
	List      string // primary list, "" for none
	Avatar    []byte // JSON string, "" for none or if longer than topAvatarBytes
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

// start returns the object StartKey: the first accounts only, within its limits.
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

// A Network is the object NetworkKey: the sizes of a graph, and the distributions of accounts and
// records.
type Network struct {
	AsOf      string      // time of the snapshot, RFC 3339
	Counts    site.Counts // all shown except events, objects and bytes; accounts with a profile or a list, or held by a list
	Followers []DegreeCount
	Following []DegreeCount   // only accounts with a primary list
	Tags      []LabelledCount // the NetworkTags most used tags on records of primary lists, then by bytes
	Growth    []LabelledCount // records of primary lists by the month when they were added, if known
}

// A DegreeCount counts accounts with the same number of followers, or of followed accounts. Degree
// is at least 1.
type DegreeCount struct{ Degree, Accounts int }

// A LabelledCount counts records with a tag, or added in a month such as 2026-01 (UTC).
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

// topAccount returns the account for the explorer's object TopKey.
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

// Top renders the explorer's objects TopKey and StartKey. accounts are the first ones by followers,
// total counts all with a follower.
func Top(accounts []Account, total int) (top, start []byte) {
	t := topObject{Total: total}
	for i := range accounts[:min(len(accounts), TopAccounts)] {
		t.Accounts = append(t.Accounts, accounts[i].topAccount())
	}
	return t.Append(nil), t.start().Append(nil)
}

// tooLong reports whether the text of a JSON string is longer than site.TopAvatarBytes.
func tooLong(encoded []byte) bool {
	n := len(encoded) - len(emptyText)
	if n <= topAvatarBytes || !bytes.ContainsRune(encoded, '\\') {
		return n > topAvatarBytes
	}
	var avatar string
	err := json.Unmarshal(encoded, &avatar)
	return err != nil || len(avatar) > topAvatarBytes
}
