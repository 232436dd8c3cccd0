package shards

import (
	"encoding/hex"
	"fmt"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
)

// MaxDelta is the maximum size of a delta's text in bytes. Beyond it, the publisher puts the shards again: a browser
// that checks an answer reads the delta, compressed to a third, and every publish puts the deltas that change.
const MaxDelta = 96 << 10

// A Delta has the changes to a group of shards since these were put.
type Delta struct {
	Name   string  `json:"delta"` // first shard of the group
	Shards []Patch `json:"shards"`
}

// A Patch has the changes to one shard.
type Patch struct {
	Shard   string       `json:"shard"`
	SHA256  site.SHA256  `json:"sha256"`  // digest of the changed shard's text
	Objects []site.Entry `json:"objects"` // new and altered objects, sorted by key
	Gone    []site.Key   `json:"gone"`    // removed keys, sorted
}

// GroupDigits returns the number of leading digits that the names of a group's shards share.
func GroupDigits(shardDigits int) int { return min(shardDigits-1, 2) }

// Group returns the name of the first shard in a shard's group.
func Group(shard string) string {
	common := GroupDigits(len(shard))
	return shard[:common] + strings.Repeat("0", len(shard)-common)
}

// NewPatch returns the patch from the entries of the stored shard to the current ones, whose text has the digest.
// Both must be sorted by key. The patch shares the memory of the entries.
func NewPatch(shard string, put, now []site.Entry, digest site.SHA256) Patch {
	p := Patch{Shard: shard, SHA256: digest}
	for _, c := range site.Diff(put, now) {
		if c.Reason == site.Gone {
			p.Gone = append(p.Gone, c.Key)
		} else {
			p.Objects = append(p.Objects, c.Entry)
		}
	}
	return p
}

// Append appends the text of the delta to b.
func (d Delta) Append(b []byte) []byte {
	b = append(b, `{"delta":`...)
	b = rawjson.AppendString(b, d.Name)
	b = append(b, `,"shards":[`...)
	for i, p := range d.Shards {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"shard":`...)
		b = rawjson.AppendString(b, p.Shard)
		b = append(b, `,"sha256":"`...)
		b = hex.AppendEncode(b, p.SHA256[:])
		b = append(b, `","objects":[`...)
		for i, e := range p.Objects {
			if i > 0 {
				b = append(b, ',')
			}
			b = e.Append(b)
		}
		b = append(b, `],"gone":[`...)
		for i, key := range p.Gone {
			if i > 0 {
				b = append(b, ',')
			}
			b = rawjson.AppendString(b, string(key))
		}
		b = append(b, "]}"...)
	}
	return append(b, "]}"...)
}

// Patch returns the patch of a shard, or nil.
func (d *Delta) Patch(shard string) *Patch {
	if d == nil {
		return nil
	}
	for i := range d.Shards {
		if d.Shards[i].Shard == shard {
			return &d.Shards[i]
		}
	}
	return nil
}

// ParseDelta decodes the object of a delta, which is named after the first shard of its group.
func ParseDelta(name string, body []byte) (*Delta, error) {
	key := site.DeltaKey(name)
	text, err := unpack(key, body, maxDelta)
	if err != nil {
		return nil, err
	}
	var d Delta
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", key, err, site.ErrMalformed)
	}
	if d.Name != name {
		return nil, fmt.Errorf("read %s: it is not the delta %q: %w", key, name, site.ErrMalformed)
	}
	last := ""
	for _, p := range d.Shards {
		if len(p.Shard) != len(name) || Group(p.Shard) != name || p.Shard <= last {
			return nil, fmt.Errorf("read %s: the shard %q is not of it, or out of order: %w", key, p.Shard, site.ErrMalformed)
		}
		last = p.Shard
		if !p.valid() {
			return nil, fmt.Errorf("read %s: the objects of the shard %q are malformed or out of order: %w", key, p.Shard, site.ErrMalformed)
		}
	}
	return &d, nil
}

func (p *Patch) valid() bool {
	for i, e := range p.Objects {
		if !e.Key.Valid() || site.ManifestShard(e.Key, len(p.Shard)) != p.Shard || e.Size < 0 || e.MD5 == (site.MD5{}) || e.SHA256 == (site.SHA256{}) ||
			i > 0 && p.Objects[i-1].Key >= e.Key {
			return false
		}
	}
	for i, key := range p.Gone {
		if !key.Valid() || site.ManifestShard(key, len(p.Shard)) != p.Shard || i > 0 && p.Gone[i-1] >= key {
			return false
		}
	}
	return true
}

// apply returns the current entries of a shard, given the stored ones.
func (p *Patch) apply(put []site.Entry) []site.Entry {
	now := make([]site.Entry, 0, len(put)+len(p.Objects))
	objects, gone := p.Objects, p.Gone
	for _, e := range put {
		for len(objects) > 0 && objects[0].Key < e.Key {
			now, objects = append(now, objects[0]), objects[1:]
		}
		for len(gone) > 0 && gone[0] < e.Key {
			gone = gone[1:]
		}
		switch {
		case len(objects) > 0 && objects[0].Key == e.Key:
			now, objects = append(now, objects[0]), objects[1:]
		case len(gone) > 0 && gone[0] == e.Key:
		default:
			now = append(now, e)
		}
	}
	return append(now, objects...)
}
