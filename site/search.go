package site

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"unicode"
	"unicode/utf8"

	json "github.com/goccy/go-json"
	"golang.org/x/text/unicode/norm"
)

// Search shards, user buckets and answers are read here as bytes, without
// decoding them: a search looks at every entry and returns few, and returns
// those just as they are. What makes that sound is that a quotation mark inside
// a JSON string always has a backslash before it, so a text like {"version": is
// never part of a string, and that these objects are compact JSON with their
// members in a fixed order. Tests compare the results with a JSON decoder's.

// ErrMalformed says that an object is not what its key says.
var ErrMalformed = errors.New("malformed object")

const (
	entryStart = `{"version":`
	tagsMember = `,"tags":[`
	nameMember = `,"ens":{"name":"`
	// followStart begins every search entry: a follow is a record of version 1
	// with an address.
	followStart = entryStart + `1,"record_type":"address","data":"`
	noTags      = `","tags":[]`
	entriesName = `"entries":`
)

// A ShardHeader is what a search shard says about itself.
type ShardHeader struct {
	List      string `json:"list"`
	Total     int    `json:"total"`      // follows of the list
	Shard     int    `json:"shard"`      // number of this shard, from 0
	Shards    int    `json:"shards"`     // of the list
	ShardSize int    `json:"shard_size"` // entries in every shard but the last
}

// Append appends the beginning of a shard, up to its first entry. The entries,
// with commas between them, and "]}" follow.
func (h ShardHeader) Append(b []byte) []byte {
	b = append(b, `{"list":"`...)
	b = append(b, h.List...)
	b = append(b, `","total":`...)
	b = strconv.AppendInt(b, int64(h.Total), 10)
	b = append(b, `,"shard":`...)
	b = strconv.AppendInt(b, int64(h.Shard), 10)
	b = append(b, `,"shards":`...)
	b = strconv.AppendInt(b, int64(h.Shards), 10)
	b = append(b, `,"shard_size":`...)
	b = strconv.AppendInt(b, int64(h.ShardSize), 10)
	return append(b, `,`+entriesName+`[`...)
}

// ParseShardHeader reads what a search shard says about itself.
func ParseShardHeader(shard []byte) (ShardHeader, error) {
	before, _, ok := bytes.Cut(shard, []byte(`,`+entriesName))
	if !ok {
		return ShardHeader{}, fmt.Errorf("search shard without entries: %w", ErrMalformed)
	}
	var h ShardHeader
	if err := json.Unmarshal(append(bytes.Clone(before), '}'), &h); err != nil {
		return ShardHeader{}, fmt.Errorf("search shard: %w: %w", ErrMalformed, err)
	}
	if !ValidTokenID(h.List) || h.Total < 0 || h.ShardSize < 1 || h.Shards < 1 || h.Shard < 0 || h.Shard >= h.Shards || h.Total > h.Shards*h.ShardSize {
		return ShardHeader{}, fmt.Errorf("search shard %d of %d: %w", h.Shard, h.Shards, ErrMalformed)
	}
	return h, nil
}

// Entries walks over the records or search entries of an object (an answer to
// /records or /searchFollowing, or a search shard). What it yields are parts of
// the object.
func Entries(object []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		start := bytes.Index(object, []byte(`[`+entryStart))
		end := bytes.LastIndex(object, []byte(`]}`))
		if start < 0 || end < start {
			return
		}
		rest := object[start+1 : end]
		for {
			// No entry is shorter than its start: looking past that saves time.
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

// AppendWithoutTags appends an answer to /records without the tags of its records.
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

// A Matcher finds search entries by a term. It is not for concurrent use.
type Matcher struct {
	term    []byte
	scratch []byte
}

// NewMatcher makes a matcher for a term as Resolve gives it: folded and trimmed.
// An empty term matches every entry.
func NewMatcher(term string) *Matcher { return &Matcher{term: []byte(term)} }

// Match reports whether the term is a part of the entry's address or of its name,
// letter case ignored.
func (m *Matcher) Match(entry []byte) bool {
	if len(m.term) == 0 {
		return true
	}
	data, ok := bytes.CutPrefix(entry, []byte(followStart))
	if !ok || len(data) < AddressTextLen {
		return false
	}
	address, data := data[:AddressTextLen], data[AddressTextLen:]
	if bytes.Contains(address, m.term) {
		return true
	}
	name, ok := bytes.CutPrefix(data, []byte(noTags+nameMember)) // as most entries have it
	if !ok {
		_, name, ok = bytes.Cut(data, []byte(nameMember))
	}
	return ok && bytes.Contains(m.fold(jsonText(name)), m.term)
}

// jsonText is the text of the JSON string whose opening quotation mark is just
// before b. It allocates only if the text has escapes.
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

// fold is Fold without garbage for text in NFC, as names mostly are; the result
// is good until the next call.
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

// foldRunes folds text of which the first bytes are in scratch already.
func (m *Matcher) foldRunes(text []byte, folded int) []byte {
	if !norm.NFC.IsNormal(text) {
		text, folded = norm.NFC.Bytes(text), 0
	}
	lower := m.scratch[:folded]
	for _, r := range string(text[folded:]) { // the compiler makes no string of it
		lower = utf8.AppendRune(lower, unicode.ToLower(r))
	}
	m.scratch = lower
	if !norm.NFC.IsNormal(lower) {
		return norm.NFC.Bytes(lower)
	}
	return lower
}

// AppendUserBucket appends the object that maps users to lists. users must be
// sorted and tokenID gives each one's list, "" for none.
func AppendUserBucket(b []byte, bucket string, users []string, tokenID func(user string) string) []byte {
	b = append(b, `{"bucket":"`...)
	b = append(b, bucket...)
	b = append(b, `","users":{`...)
	for i, user := range users {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendString(b, user)
		b = append(b, `:"`...)
		b = append(b, tokenID(user)...)
		b = append(b, '"')
	}
	return append(b, "}}"...)
}

// FindUser looks a user up in its bucket. A known user without a primary list
// has the tokenID "".
func FindUser(bucket []byte, user string) (tokenID string, known bool) {
	_, users, _ := bytes.Cut(bucket, []byte(`"users":`))
	member := append(AppendString(nil, user), `:"`...)
	for at := 0; ; at++ {
		i := bytes.Index(users[at:], member)
		if i < 0 {
			return "", false
		}
		at += i
		// After a backslash it is the end of a longer name that holds a quotation mark.
		if at > 0 && (users[at-1] == '{' || users[at-1] == ',') {
			value, _, ok := bytes.Cut(users[at+len(member):], []byte(`"`))
			return string(value), ok
		}
	}
}
