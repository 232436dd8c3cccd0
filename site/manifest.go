package site

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"

	json "github.com/goccy/go-json"
)

// MD5 is the digest of an object. It is also the ETag that S3 gives to a plain
// PUT, so that a bucket can be verified by listing alone. It guards against loss,
// not against an attacker.
type MD5 [md5.Size]byte

// Sum is the digest of a body.
func Sum(body []byte) MD5 { return md5.Sum(body) }

// String is the digest in hexadecimal, as in an ETag.
func (m MD5) String() string { return hex.EncodeToString(m[:]) }

// MarshalText writes the digest in hexadecimal.
func (m MD5) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads 32 hexadecimal digits.
func (m *MD5) UnmarshalText(text []byte) error {
	if len(text) != hex.EncodedLen(len(m)) {
		return fmt.Errorf("md5 %q: expected %d digits", text, hex.EncodedLen(len(m)))
	}
	_, err := hex.Decode(m[:], text)
	return err
}

// An Entry says what one object is.
type Entry struct {
	Key  Key   `json:"key"`
	Size int64 `json:"size"`
	MD5  MD5   `json:"md5"`
}

// A Manifest is one shard of what a site holds: all objects but the manifest and
// the root, in the order of their keys.
type Manifest struct {
	Shard   string  `json:"shard"`
	Objects []Entry `json:"objects"`
}

// Append appends the encoded shard to b.
func (m Manifest) Append(b []byte) []byte {
	b = append(b, `{"shard":`...)
	b = AppendString(b, m.Shard)
	b = append(b, `,"objects":[`...)
	for i, e := range m.Objects {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"key":`...)
		b = AppendString(b, string(e.Key))
		b = append(b, `,"size":`...)
		b = strconv.AppendInt(b, e.Size, 10)
		b = append(b, `,"md5":"`...)
		b = hex.AppendEncode(b, e.MD5[:])
		b = append(b, `"}`...)
	}
	return append(b, "]}"...)
}

// ParseManifest reads a shard and checks that it is one: its name, the order of
// its keys, and that the keys are keys.
func ParseManifest(shard string, body []byte) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(body, &m); err != nil {
		return Manifest{}, fmt.Errorf("read %s: %w", ManifestKey(shard), err)
	}
	if m.Shard != shard || m.Objects == nil {
		return Manifest{}, fmt.Errorf("read %s: it is not the shard %q", ManifestKey(shard), shard)
	}
	for i, e := range m.Objects {
		if !e.Key.Valid() || ManifestShard(e.Key, len(shard)) != shard || e.Size < 0 || e.MD5 == (MD5{}) ||
			i > 0 && m.Objects[i-1].Key >= e.Key {
			return Manifest{}, fmt.Errorf("read %s: object %d, %q, is malformed or out of order", ManifestKey(shard), i, e.Key)
		}
	}
	return m, nil
}

// A Change is an object that differs between two sites.
type Change struct {
	Entry
	Reason Reason
}

// A Reason is why an object changes.
type Reason string

// The reasons.
const (
	Added   Reason = "added"
	Altered Reason = "altered"
	Gone    Reason = "gone" // the Entry is the old one
)

// Diff lists what turns the objects of one shard into another's, in the order of
// the keys. Both must be sorted.
func Diff(live, next []Entry) []Change {
	var changes []Change
	for len(live) > 0 || len(next) > 0 {
		switch {
		case len(next) == 0 || len(live) > 0 && live[0].Key < next[0].Key:
			changes = append(changes, Change{live[0], Gone})
			live = live[1:]
		case len(live) == 0 || next[0].Key < live[0].Key:
			changes = append(changes, Change{next[0], Added})
			next = next[1:]
		default:
			if live[0] != next[0] {
				changes = append(changes, Change{next[0], Altered})
			}
			live, next = live[1:], next[1:]
		}
	}
	return slices.Clip(changes)
}
