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
	TopAccounts    = 2_000 // maximum accounts of the object TopKey
	topAvatarBytes = 200   // maximum length of an avatar in them
	startAccounts  = 50    // maximum accounts of the start
	startBytes     = 8_000 // maximum bytes of their rows, so that the start loads fast over any network
	NetworkTags    = 50    // maximum tags of a Network
)

// StartKey is the key of the explorer's first view.
var StartKey = site.ExplorerKey("start")

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
	return WithoutComma(b)
}

func appendLabelled(b []byte, all []LabelledCount) []byte {
	for _, l := range all {
		b = fmt.Appendf(rawjson.AppendString(append(b, '['), l.Label), ",%d],", l.Records)
	}
	return WithoutComma(b)
}

// appendTop appends the row of an account in the explorer's objects TopKey and StartKey: its address,
// name, followers, primary list, and its avatar unless that is long.
func (a *Account) appendTop(b []byte) []byte {
	name, avatar, _ := a.Texts()
	if tooLong(avatar) {
		avatar = []byte(emptyText)
	}
	return fmt.Appendf(b, `["%s",%s,%d,"%s",%s]`, a.Address, name, a.Counts[rules.Followers], a.Primary, avatar)
}

// Top renders the explorer's objects TopKey and StartKey: the first accounts of the leaderboard of
// followers. total counts all accounts with a follower.
func Top(accounts []Account, total int) (top, start []byte) {
	var rows [][]byte
	size, first := 0, 0
	for i := range accounts[:min(len(accounts), TopAccounts)] {
		rows = append(rows, accounts[i].appendTop(nil))
		if size += len(rows[i]) + len(","); i < startAccounts && size <= startBytes {
			first++
		}
	}
	object := func(rows [][]byte) []byte {
		return append(appendJoined(fmt.Appendf(nil, `{"total":%d,"accounts":[`, total), rows), "]}"...)
	}
	return object(rows), object(rows[:first])
}

// tooLong reports whether the text of a JSON string is longer than topAvatarBytes.
func tooLong(encoded []byte) bool {
	n := len(encoded) - len(emptyText)
	if n <= topAvatarBytes || !bytes.ContainsRune(encoded, '\\') {
		return n > topAvatarBytes
	}
	var avatar string
	err := json.Unmarshal(encoded, &avatar)
	return err != nil || len(avatar) > topAvatarBytes
}
