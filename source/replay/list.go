package replay

import (
	"cmp"
	"slices"
	"strings"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
)

// A List replays the operations of one slot. The zero List is empty and ready to use. Only one
// goroutine at a time may use it.
//
// Memory and time are in proportion to the number of operations.
type List struct {
	addresses map[site.Address]uint32 // entries of address records that were not removed
	others    map[string]uint32       // entries of other records, by version, type and data
	entries   []entry
	order     []uint32 // entries in the order in which they became present
	tagged    map[taggedEntry]struct{}
	tags      tagTexts

	records []snapshot.Record // result of Records
	sorted  []taggedEntry
	texts   []string
}

// An entry is a record from its first add or tag until its removal. If it is added again later,
// that is another entry.
type entry struct {
	state   state
	address site.Address
	other   string // version, type and data; "" for an address
	added   int64
	at      int // index in List.records
}

type state byte

const (
	aside   state = iota // has tags but was not added yet
	present              // was added
	gone                 // was removed
)

type taggedEntry struct{ entry, tag uint32 }

// tagTexts numbers the texts of tags. Most lists use the same few, so they survive a Reset.
type tagTexts struct {
	number map[string]uint32
	text   []string
}

func (t *tagTexts) numberOf(text []byte) uint32 {
	n, ok := t.number[string(text)]
	if !ok {
		n = uint32(len(t.text))
		t.text = append(t.text, string(text))
		if t.number == nil {
			t.number = map[string]uint32{}
		}
		t.number[t.text[n]] = n
	}
	return n
}

// maxKept is the size up to which Reset reuses maps: clearing a map takes time in proportion to its
// largest size.
const maxKept = 256

// Reset makes the list empty. It keeps memory for reuse.
func (l *List) Reset() {
	if len(l.entries) > maxKept || l.addresses == nil {
		l.addresses, l.others = map[site.Address]uint32{}, map[string]uint32{}
	} else {
		clear(l.addresses)
		clear(l.others)
	}
	if len(l.tags.text) > maxKept {
		l.tags = tagTexts{}
	}
	l.tagged = nil
	clear(l.entries) // releases strings
	l.entries, l.order = l.entries[:0], l.order[:0]
}

// Apply applies an operation and keeps no part of b. time is that of its block in milliseconds
// since the Unix epoch, or source.NoTime. Apply returns "" if the operation had its effect or
// needed none, like adding a record twice; otherwise the operation was ignored for the returned
// Reason.
func (l *List) Apply(b []byte, time int64) Reason {
	_, ignored := l.Perform(b, time)
	return ignored
}

// Perform is Apply, and reports whether the effect is visible to readers: a record was added or
// removed, or a present one gained or lost a tag.
func (l *List) Perform(b []byte, time int64) (visible bool, ignored Reason) {
	o, ignored := parseOp(b)
	if ignored != "" {
		return false, ignored
	}
	return l.apply(o, time).visible(), ""
}

// An effect describes the effect of a valid operation to people.
type effect string

const (
	added          effect = "added"
	alreadyPresent effect = "was there already, and keeps its place"
	removed        effect = "removed"
	forgotten      effect = "was not there; tags that were kept for it are dropped"
	notPresent     effect = "was not there"
	tagged         effect = "tagged"
	keptAside      effect = "tagged, which counts once the record is added"
	alreadyTagged  effect = "had the tag already"
	untagged       effect = "untagged"
	noLongerAside  effect = "untagged, which never counted, because the record was not added"
	notTagged      effect = "did not have the tag"
)

// visible reports whether the effect changes the records or tags of a snapshot.
func (e effect) visible() bool {
	return e == added || e == removed || e == tagged || e == untagged
}

func (l *List) apply(o op.Operation, time int64) effect {
	if l.addresses == nil {
		l.Reset()
	}
	n, known := l.find(o)
	switch o.Code {
	case op.Follow:
		if !known {
			n = l.enter(o)
		}
		return l.add(n, time)
	case op.Unfollow:
		if !known {
			return notPresent
		}
		return l.remove(n)
	case op.Tag:
		if !known {
			n = l.enter(o)
		}
		return l.tag(taggedEntry{n, l.tags.numberOf(o.Tag)})
	default:
		if !known {
			return notTagged
		}
		return l.untag(taggedEntry{n, l.tags.numberOf(o.Tag)})
	}
}

func (l *List) add(n uint32, time int64) effect {
	e := &l.entries[n]
	if e.state == present {
		return alreadyPresent
	}
	e.state, e.added = present, time
	l.order = append(l.order, n)
	return added
}

func (l *List) remove(n uint32) effect {
	e := &l.entries[n]
	was := e.state
	e.state = gone
	if e.other == "" {
		delete(l.addresses, e.address)
	} else {
		delete(l.others, e.other)
	}
	if was == aside {
		return forgotten
	}
	return removed
}

func (l *List) tag(t taggedEntry) effect {
	if _, ok := l.tagged[t]; ok {
		return alreadyTagged
	}
	if l.tagged == nil {
		l.tagged = map[taggedEntry]struct{}{}
	}
	l.tagged[t] = struct{}{}
	if l.entries[t.entry].state == aside {
		return keptAside
	}
	return tagged
}

func (l *List) untag(t taggedEntry) effect {
	if _, ok := l.tagged[t]; !ok {
		return notTagged
	}
	delete(l.tagged, t)
	if l.entries[t.entry].state == aside {
		return noLongerAside
	}
	return untagged
}

func (l *List) find(o op.Operation) (n uint32, known bool) {
	if isUsual(o) {
		n, known = l.addresses[site.Address(o.Record[recordHeader:])]
	} else {
		n, known = l.others[string(o.Record)]
	}
	return n, known
}

func (l *List) enter(o op.Operation) uint32 {
	n := uint32(len(l.entries))
	if isUsual(o) {
		address := site.Address(o.Record[recordHeader:])
		l.entries = append(l.entries, entry{address: address})
		l.addresses[address] = n
	} else {
		other := string(o.Record)
		l.entries = append(l.entries, entry{other: other})
		l.others[other] = n
	}
	return n
}

// Records returns the present records in the order in which they were added, without TokenID, and
// with sorted tags. They are valid until the next method call.
func (l *List) Records() []snapshot.Record {
	l.records = slices.Grow(l.records[:0], len(l.order))
	for _, n := range l.order {
		e := &l.entries[n]
		if e.state != present {
			continue
		}
		e.at = len(l.records)
		r := snapshot.Record{Added: e.added}
		if e.other == "" {
			r.Version, r.Type, r.Data = uint32(usualHeader[0]), rules.TypeAddress, e.address[:]
		} else {
			kind := op.KindOf(e.other[0], e.other[1])
			r.Version, r.Type, r.Data = kind.Version, kind.Type, []byte(e.other[recordHeader:])
		}
		l.records = append(l.records, r)
	}
	l.sortTags()
	for from := 0; from < len(l.sorted); {
		n := l.sorted[from].entry
		to := from
		for to < len(l.sorted) && l.sorted[to].entry == n {
			to++
		}
		l.records[l.entries[n].at].Tags = l.texts[from:to:to]
		from = to
	}
	return l.records
}

// sortTags sets the texts of tags, sorted, and grouped by entry.
func (l *List) sortTags() {
	l.sorted, l.texts = l.sorted[:0], l.texts[:0]
	for t := range l.tagged {
		if l.entries[t.entry].state == present {
			l.sorted = append(l.sorted, t)
		}
	}
	text := l.tags.text
	slices.SortFunc(l.sorted, func(a, b taggedEntry) int {
		return cmp.Or(cmp.Compare(a.entry, b.entry), strings.Compare(text[a.tag], text[b.tag]))
	})
	for _, t := range l.sorted {
		l.texts = append(l.texts, text[t.tag])
	}
}
