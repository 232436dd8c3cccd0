package site

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/rawjson"
)

// MD5 is the digest of an object. Most S3 servers use it as the ETag of a plain PUT, so that a listing suffices to
// verify a bucket. It detects loss and damage, not attackers.
type MD5 [md5.Size]byte

// Sum returns the digest of a body.
func Sum(body []byte) MD5 { return md5.Sum(body) }

// String returns 32 lower-case hexadecimal digits, as in an ETag.
func (m MD5) String() string { return hex.EncodeToString(m[:]) }

// MarshalText returns the result of String.
func (m MD5) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText parses 32 hexadecimal digits.
func (m *MD5) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(m)) {
		return fmt.Errorf("md5 %q: expected %d digits", text, hex.EncodedLen(len(m)))
	}
	_, err := hex.Decode(m[:], text)
	return err
}

// SHA256 is the digest that proofs rely on.
type SHA256 [sha256.Size]byte

// Sum256 returns the digest of a body.
func Sum256(body []byte) SHA256 { return sha256.Sum256(body) }

// String returns 64 lower-case hexadecimal digits.
func (s SHA256) String() string { return hex.EncodeToString(s[:]) }

// MarshalText returns the result of String.
func (s SHA256) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses 64 hexadecimal digits.
func (s *SHA256) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(s)) {
		return fmt.Errorf("sha256 %q: expected %d digits", text, hex.EncodedLen(len(s)))
	}
	_, err := hex.Decode(s[:], text)
	return err
}

// An Entry describes an object in the manifest. A put needs only key, size and MD5.
type Entry struct {
	Key    Key    `json:"key"`
	Size   int64  `json:"size"` // size of the body, in bytes
	MD5    MD5    `json:"md5"`
	SHA256 SHA256 `json:"sha256"` // zero if unknown, as in a listing
}

// NewEntry returns the entry of an object.
func NewEntry(key Key, body []byte) Entry {
	return Entry{Key: key, Size: int64(len(body)), MD5: Sum(body), SHA256: Sum256(body)}
}

// Same reports whether two entries describe the same object. An unknown SHA256 equals any.
func (e Entry) Same(other Entry) bool {
	if e.SHA256 == (SHA256{}) || other.SHA256 == (SHA256{}) {
		e.SHA256, other.SHA256 = SHA256{}, SHA256{}
	}
	return e == other
}

// A Manifest is a shard of the list of a site's objects, sorted by key. All shards together list every object except
// the manifest and the root. Package shards defines how they are stored.
type Manifest struct {
	Shard   string  `json:"shard"`
	Objects []Entry `json:"objects"`
}

// Append appends the shard as JSON to b. Equal shards give equal bytes.
func (m Manifest) Append(b []byte) []byte {
	b = append(b, `{"shard":`...)
	b = rawjson.AppendString(b, m.Shard)
	b = append(b, `,"objects":[`...)
	for i, e := range m.Objects {
		if i > 0 {
			b = append(b, ',')
		}
		b = e.Append(b)
	}
	return append(b, "]}"...)
}

// Append appends the entry as JSON to b.
func (e Entry) Append(b []byte) []byte {
	b = append(b, `{"key":`...)
	b = rawjson.AppendString(b, string(e.Key))
	b = append(b, `,"size":`...)
	b = strconv.AppendInt(b, e.Size, 10)
	b = append(b, `,"md5":"`...)
	b = hex.AppendEncode(b, e.MD5[:])
	if e.SHA256 != (SHA256{}) {
		b = append(b, `","sha256":"`...)
		b = hex.AppendEncode(b, e.SHA256[:])
	}
	return append(b, `"}`...)
}

// Bounds on the text of a manifest: an entry, {"key":"…","size":…,"md5":"…","sha256":"…"}, has at least leastEntry
// bytes and entryCommas commas, including the one before the next entry. Shorter elements, such as null, are not
// entries, and would decode to many times their size.
const (
	leastEntry  = 60
	entryCommas = 3
)

// ParseManifest decodes a shard. It fails unless the shard has that name, its keys are valid, sorted and belong to
// the shard, and every entry has its digests.
func ParseManifest(shard string, body []byte) (Manifest, error) {
	var m Manifest
	if commas(body) > len(body)*entryCommas/leastEntry {
		return Manifest{}, fmt.Errorf("read %s: more entries than its bytes can hold: %w", ManifestKey(shard), ErrMalformed)
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return Manifest{}, fmt.Errorf("read %s: %w", ManifestKey(shard), err)
	}
	if m.Shard != shard || m.Objects == nil {
		return Manifest{}, fmt.Errorf("read %s: it is not the shard %q", ManifestKey(shard), shard)
	}
	for i, e := range m.Objects {
		if !e.Key.Valid() || ManifestShard(e.Key, len(shard)) != shard || e.Size < 0 || e.MD5 == (MD5{}) || e.SHA256 == (SHA256{}) ||
			i > 0 && m.Objects[i-1].Key >= e.Key {
			return Manifest{}, fmt.Errorf("read %s: object %d, %q, is malformed or out of order", ManifestKey(shard), i, e.Key)
		}
	}
	return m, nil
}

// commas counts the commas in JSON outside strings.
func commas(body []byte) (n int) {
	inText := false
	for i := 0; i < len(body); i++ {
		switch {
		case body[i] == '"':
			inText = !inText
		case inText && body[i] == '\\':
			i++
		case !inText && body[i] == ',':
			n++
		}
	}
	return n
}

// A Change is an object that differs between two sites. The Entry is the new one, or the old one of a removed object.
type Change struct {
	Entry
	Reason Reason
	Was    Entry // old entry of an altered object; else zero
}

// A Reason describes how an object differs between two sites.
type Reason string

// The reasons.
const (
	Added   Reason = "added"   // only in the new site
	Altered Reason = "altered" // size or digest differ
	Gone    Reason = "gone"    // only in the old site
)

// Diff returns the changes from live to next, sorted by key. Both must be sorted by key. It modifies neither.
func Diff(live, next []Entry) []Change {
	var changes []Change
	for len(live) > 0 || len(next) > 0 {
		switch {
		case len(next) == 0 || len(live) > 0 && live[0].Key < next[0].Key:
			changes = append(changes, Change{Entry: live[0], Reason: Gone})
			live = live[1:]
		case len(live) == 0 || next[0].Key < live[0].Key:
			changes = append(changes, Change{Entry: next[0], Reason: Added})
			next = next[1:]
		default:
			if !live[0].Same(next[0]) {
				changes = append(changes, Change{Entry: next[0], Reason: Altered, Was: live[0]})
			}
			live, next = live[1:], next[1:]
		}
	}
	return slices.Clip(changes)
}
