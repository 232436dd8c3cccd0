package graph

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"sync"

	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site/rules"
)

// Forms number the forms of records, and data that is not an address. Only these numbers depend on
// the order in which workers come. While records are read, mu guards the fields.
type Forms struct {
	mu       sync.Mutex
	formOf   map[Form]uint32
	kinds    []rules.Kind
	holds    []bool // by kind: whether records of the kind hold an account
	kindOf   map[rules.Kind]uint32
	TagSets  []render.TagSet
	tagSetOf map[string]uint32
	Other    []string // data that is not an address
	otherOf  map[string]uint32
	ByNumber []Form
}

func (f *Forms) initForms() {
	f.formOf, f.kindOf, f.tagSetOf, f.otherOf = map[Form]uint32{}, map[rules.Kind]uint32{}, map[string]uint32{}, map[string]uint32{}
	f.tagSet(nil)
}

func (f *Forms) form(of Form) uint32 {
	if n, ok := f.formOf[of]; ok {
		return n
	}
	n := uint32(len(f.ByNumber))
	f.formOf[of] = n
	f.ByNumber = append(f.ByNumber, of)
	return n
}

func (f *Forms) kind(version uint32, recordType string) uint32 {
	k := rules.Kind{Version: version, Type: recordType}
	if id, ok := f.kindOf[k]; ok {
		return id
	}
	id := uint32(len(f.kinds))
	k.Type = strings.Clone(recordType) // do not retain the whole line
	f.kindOf[k] = id
	f.kinds, f.holds = append(f.kinds, k), append(f.holds, k.Holds())
	return id
}

// HoldsKind reports whether a list holds an account by a record of this kind.
func (f *Forms) HoldsKind(kind uint32) bool { return f.holds[kind] }

func (f *Forms) tagSet(tags []string) uint32 {
	set := *render.NewTagSet(tags)
	if id, ok := f.tagSetOf[set.JSON]; ok {
		return id
	}
	id := uint32(len(f.TagSets))
	set.Tags = slices.Clone(tags)
	for i, tag := range tags {
		set.Tags[i] = strings.Clone(tag) // do not retain the whole line
	}
	f.tagSetOf[set.JSON] = id
	f.TagSets = append(f.TagSets, set)
	return id
}

// Number returns the number of the form of a record. It may be called concurrently.
func (f *Forms) Number(version uint32, recordType string, tags []string) uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.form(Form{Kind: f.kind(version, recordType), Tags: f.tagSet(tags)})
}

// WithTags returns the number of the form with a kind and a sorted set of tags.
func (f *Forms) WithTags(kind uint32, tags []string) uint32 {
	return f.form(Form{Kind: kind, Tags: f.tagSet(tags)})
}

// OtherText returns the number of data that is not an address.
func (f *Forms) OtherText(data []byte) uint32 {
	text := hex.AppendEncode([]byte("0x"), data)
	f.mu.Lock()
	defer f.mu.Unlock()
	if id, ok := f.otherOf[string(text)]; ok {
		return id
	}
	id := uint32(len(f.Other))
	f.Other = append(f.Other, string(text))
	f.otherOf[f.Other[id]] = id
	return id
}

// A FormCache caches form numbers for one goroutine, without a lock.
type FormCache struct {
	forms *Forms
	of    map[string]uint32
	key   []byte
}

// Limits of the cache: forms, and bytes of the key of one.
const (
	maxCachedForms = 1 << 12
	maxCachedForm  = 1 << 10
)

// NewFormCache returns an empty cache.
func NewFormCache(forms *Forms) FormCache { return FormCache{forms: forms, of: map[string]uint32{}} }

// Number returns the number of the form of a record. tags must be sorted.
func (c *FormCache) Number(version uint32, recordType string, tags []string) uint32 {
	c.key = binary.AppendUvarint(c.key[:0], uint64(version))
	c.key = append(binary.AppendUvarint(c.key, uint64(len(recordType))), recordType...)
	for _, tag := range tags {
		c.key = append(binary.AppendUvarint(c.key, uint64(len(tag))), tag...)
	}
	if n, ok := c.of[string(c.key)]; ok {
		return n
	}
	n := c.forms.Number(version, recordType, tags)
	if len(c.key) > maxCachedForm {
		return n
	}
	if len(c.of) == maxCachedForms {
		clear(c.of)
	}
	c.of[string(c.key)] = n
	return n
}
