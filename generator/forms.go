package generator

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"sync"

	"github.com/followpress/followpress/snapshot"
)

// forms number what records have in common, and data that is not an address. Their numbers depend on
// the order in which workers come, and nothing else does. While records are read, mu guards them.
type forms struct {
	mu       sync.Mutex
	formOf   map[form]uint32
	kinds    []kind
	kindOf   map[kind]uint32
	tagSets  []tagSet
	tagSetOf map[string]uint32
	other    []string // data that is not an address
	otherOf  map[string]uint32
	byNumber []form
}

// A kind is the version and type of a record; there are few.
type kind struct {
	version    uint32
	recordType string
}

// followable reports whether records of this kind can be follows or blocks.
func (k kind) followable() bool { return k.version == 1 && k.recordType == snapshot.TypeAddress }

// A tagSet is a set of tags of records; most records share a few.
type tagSet struct {
	tags              []string // sorted by bytes
	json              string   // the array as the API writes it
	block, mute, top8 bool
}

func (f *forms) initForms() {
	f.formOf, f.kindOf, f.tagSetOf, f.otherOf = map[form]uint32{}, map[kind]uint32{}, map[string]uint32{}, map[string]uint32{}
	f.tagSet(nil)
}

// form returns the number of a form.
func (f *forms) form(of form) uint32 {
	if n, ok := f.formOf[of]; ok {
		return n
	}
	n := uint32(len(f.byNumber))
	f.formOf[of] = n
	f.byNumber = append(f.byNumber, of)
	return n
}

func (f *forms) kind(version uint32, recordType string) uint32 {
	k := kind{version, recordType}
	if id, ok := f.kindOf[k]; ok {
		return id
	}
	id := uint32(len(f.kinds))
	k.recordType = strings.Clone(recordType) // do not keep the whole line in memory
	f.kindOf[k] = id
	f.kinds = append(f.kinds, k)
	return id
}

// tagSet returns the number of a sorted set of tags.
func (f *forms) tagSet(tags []string) uint32 {
	text := appendTags(nil, tags)
	if id, ok := f.tagSetOf[string(text)]; ok {
		return id
	}
	id := uint32(len(f.tagSets))
	set := tagSet{tags: slices.Clone(tags), json: string(text)}
	for i, tag := range set.tags {
		set.block = set.block || tag == "block"
		set.mute = set.mute || tag == "mute"
		set.top8 = set.top8 || tag == "top8"
		set.tags[i] = strings.Clone(tag) // do not keep the whole line in memory
	}
	f.tagSetOf[set.json] = id
	f.tagSets = append(f.tagSets, set)
	return id
}

// otherText returns the number of data that is not an address.
func (f *forms) otherText(data []byte) (uint32, error) {
	text := hex.AppendEncode([]byte("0x"), data)
	f.mu.Lock()
	defer f.mu.Unlock()
	if id, ok := f.otherOf[string(text)]; ok {
		return id, nil
	}
	id := uint32(len(f.other))
	f.other = append(f.other, string(text))
	f.otherOf[f.other[id]] = id
	return id, checkSize("texts", len(f.other))
}

// A formCache knows the numbers of the forms that one worker has met, so that it needs no lock.
type formCache struct {
	forms *forms
	of    map[string]uint32
	key   []byte
}

// Limits of the cache: forms, and bytes of the key of one.
const (
	maxCachedForms = 1 << 12
	maxCachedForm  = 1 << 10
)

// number returns the number of the form of a record.
func (c *formCache) number(r *snapshot.Record) uint32 {
	c.key = binary.AppendUvarint(c.key[:0], uint64(r.Version))
	c.key = append(binary.AppendUvarint(c.key, uint64(len(r.Type))), r.Type...)
	for _, tag := range r.Tags {
		c.key = append(binary.AppendUvarint(c.key, uint64(len(tag))), tag...)
	}
	if n, ok := c.of[string(c.key)]; ok {
		return n
	}
	c.forms.mu.Lock()
	n := c.forms.form(form{kind: c.forms.kind(r.Version, r.Type), tags: c.forms.tagSet(r.Tags)})
	c.forms.mu.Unlock()
	if len(c.key) > maxCachedForm {
		return n
	}
	if len(c.of) == maxCachedForms {
		clear(c.of)
	}
	c.of[string(c.key)] = n
	return n
}
