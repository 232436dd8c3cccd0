package scan

import (
	"bytes"
	"fmt"
	"iter"
	"unicode/utf8"

	json "github.com/goccy/go-json"
	"golang.org/x/text/unicode/norm"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// This file scans search shards, user buckets and answers as bytes, because a search looks at every entry and returns
// a few of them unchanged. It relies on compact JSON with members in a fixed order. Quotation marks in JSON strings
// are escaped, so a text like {"version": is never part of a string. Tests compare the results with those of a JSON
// decoder.

const (
	entryStart  = `{"version":`
	tagsMember  = `,"tags":[`
	nameMember  = `,"ens":{"name":"`
	noTags      = `","tags":[]`
	entriesName = `"entries":`
)

// A heldStart is the start of entries that hold an account, in one version.
type heldStart struct {
	version uint32
	text    []byte
}

var heldStarts = func() (starts []heldStart) {
	for _, k := range rules.HeldKinds() {
		starts = append(starts, heldStart{k.Version, fmt.Appendf(nil, `%s%d,"record_type":"%s","data":"`, entryStart, k.Version, k.Type)})
	}
	return starts
}()

// cutHeldStart returns an entry from its address on. ok is false if the entry does not hold an account.
func cutHeldStart(entry []byte) (version uint32, data []byte, ok bool) {
	for _, start := range heldStarts {
		if data, ok = bytes.CutPrefix(entry, start.text); ok {
			return start.version, data, len(data) >= site.AddressTextLen
		}
	}
	return 0, nil, false
}

// A ShardHeader is the part of a search shard before its entries.
type ShardHeader struct {
	List      string // token ID
	Total     int    // follows of the list
	Shard     int    // number of this shard, from 0
	Shards    int    // number of shards of the list
	ShardSize int    // entries in every shard except the last
}

// Append appends the start of a shard, up to its first entry. The caller appends the entries, separated by commas,
// and "]}".
func (h ShardHeader) Append(b []byte) []byte {
	return fmt.Appendf(b, `{"list":"%s","total":%d,"shard":%d,"shards":%d,"shard_size":%d,%s[`, h.List, h.Total, h.Shard, h.Shards, h.ShardSize, entriesName)
}

// ParseShardHeader decodes the header of a search shard. Errors wrap ErrMalformed.
func ParseShardHeader(shard []byte) (ShardHeader, error) {
	before, _, ok := bytes.Cut(shard, []byte(entriesName)) // without the entries, which take long to parse
	if !ok {
		return ShardHeader{}, fmt.Errorf("search shard without entries: %w", site.ErrMalformed)
	}
	s, _, err := parseShard(append(bytes.Clone(before), entriesName+"[]}"...))
	if err != nil {
		return ShardHeader{}, err
	}
	if !site.ValidTokenID(s.Owner) || s.Size < 1 || s.Shard >= s.Shards || s.Total > s.Shards*s.Size {
		return ShardHeader{}, fmt.Errorf("search shard %d of %d: %w", s.Shard, s.Shards, site.ErrMalformed)
	}
	return ShardHeader{List: s.Owner, Total: s.Total, Shard: s.Shard, Shards: s.Shards, ShardSize: s.Size}, nil
}

// Entries yields the records or search entries of an answer to /records or /searchFollowing, or of a search shard.
// They are slices of the object, each a JSON object.
func Entries(object []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		start := bytes.Index(object, []byte(`[`+entryStart))
		end := bytes.LastIndex(object, []byte(`]}`))
		if start < 0 || end < start {
			return
		}
		rest := object[start+1 : end]
		for {
			// Every entry is at least as long as entryStart.
			from := min(len(entryStart), len(rest))
			i := bytes.Index(rest[from:], []byte(`},`+entryStart))
			if i < 0 {
				yield(rest)
				return
			}
			i += from
			if !yield(rest[:i+1]) {
				return
			}
			rest = rest[i+2:]
		}
	}
}

// AppendWithoutTags appends an answer to /records without the tags. b may be records[:0].
func AppendWithoutTags(b, records []byte) []byte {
	b = append(b, `{"records":[`...)
	first := true
	for record := range Entries(records) {
		if !first {
			b = append(b, ',')
		}
		first = false
		fields, _, _ := bytes.Cut(record, []byte(tagsMember))
		b = append(append(b, fields...), '}')
	}
	return append(b, "]}"...)
}

// A Matcher matches search entries with a term. It must not be used concurrently.
type Matcher struct {
	term    []byte
	scratch []byte
}

// NewMatcher returns a matcher for a folded and trimmed term, as in Ask.Term. An empty term matches every entry.
func NewMatcher(term string) *Matcher { return &Matcher{term: []byte(term)} }

// Match reports whether the address or name of an entry contains the term, regardless of letter case.
func (m *Matcher) Match(entry []byte) bool {
	if len(m.term) == 0 {
		return true
	}
	address, name, ok := searched(entry)
	return ok && (bytes.Contains(address, m.term) || bytes.Contains(m.fold(name), m.term))
}

// searched returns the searchable texts of an entry: its address, and its name before folding, nil if it has none. ok
// is false if it is not an entry.
func searched(entry []byte) (address, name []byte, ok bool) {
	_, data, ok := cutHeldStart(entry)
	if !ok {
		return nil, nil, false
	}
	address, data = data[:site.AddressTextLen], data[site.AddressTextLen:]
	name, ok = bytes.CutPrefix(data, []byte(noTags+nameMember)) // matches most entries
	if !ok {
		_, name, ok = bytes.Cut(data, []byte(nameMember))
	}
	if !ok {
		return address, nil, true
	}
	return address, jsonText(name), true
}

// jsonText decodes the JSON string whose opening quotation mark precedes b. It allocates only if the string has
// escapes.
func jsonText(b []byte) []byte {
	for end := 0; end < len(b); end++ {
		switch b[end] {
		case '"':
			return b[:end]
		case '\\':
			return unescape(b)
		}
	}
	return nil
}

func unescape(b []byte) []byte {
	end := 0
	for end < len(b) && b[end] != '"' {
		if b[end] == '\\' {
			end++
		}
		end++
	}
	var text string
	if end >= len(b) || json.Unmarshal(append(append([]byte{'"'}, b[:end]...), '"'), &text) != nil {
		return nil
	}
	return []byte(text)
}

// fold is the folding of search terms, without allocations for text in NFC, as most names are. The result is valid until the next call.
func (m *Matcher) fold(text []byte) []byte {
	lower := m.scratch[:0]
	for i, c := range text {
		if c >= utf8.RuneSelf {
			m.scratch = lower
			return m.foldRunes(text, i)
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower = append(lower, c)
	}
	m.scratch = lower
	return lower
}

// foldRunes folds text whose first `folded` bytes are already in scratch.
func (m *Matcher) foldRunes(text []byte, folded int) []byte {
	if !norm.NFC.IsNormal(text) {
		text, folded = norm.NFC.Bytes(text), 0
	}
	lower := m.scratch[:folded]
	for _, r := range string(text[folded:]) { // does not allocate
		lower = site.AppendLower(lower, r)
	}
	m.scratch = lower
	if !norm.NFC.IsNormal(lower) {
		return norm.NFC.Bytes(lower)
	}
	return lower
}

// FindUser finds a user in a user bucket. The tokenID of a known user without a primary list is "".
func FindUser(bucket []byte, user string) (tokenID string, known bool) {
	_, users, _ := bytes.Cut(bucket, []byte(`"users":`))
	value := find(users, user, '"')
	return string(bytes.Trim(value, `"`)), len(value) > 0
}
