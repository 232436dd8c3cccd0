// Package units divides a site into units, such as lists or buckets, each of which renders some
// objects. The packages of kinds of units share the memory and the texts that are here.
package units

import (
	"context"
	"slices"
	"strconv"

	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/site"
)

// A Kind is a kind of units, such as lists. Each unit has some objects.
type Kind struct {
	Units   int
	Records func(unit int) int // number of records of a unit; nil if units have none
	Render  Render
}

// A Render renders a unit of a kind. Under a selection it may skip other objects.
type Render func(unit int, t *Scratch, emit render.Emitter)

// A Scratch is memory reused by the units of a chunk.
type Scratch struct {
	render.Scratch
	View    graph.View
	Holders []graph.Holder // holders of a bucket's accounts
	Leaders []render.Leader
	Read    uint32 // see graph.Graph.Touch
}

// A Found is the unit with the object of a key, if the site has it.
type Found struct {
	Render Render // nil if there is no such object
	Unit   int
}

// Among returns the unit with a number, if it exists.
func Among(units, unit int, render Render) Found {
	if unit < 0 || unit >= units {
		return Found{}
	}
	return Found{render, unit}
}

// Number returns the value of a text, or -1.
func Number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// Texts are objects of which each is a unit.
type Texts []render.Text

// Kind returns the kind of the texts.
func (ts Texts) Kind() Kind { return Kind{Units: len(ts), Render: ts.render} }

func (ts Texts) render(unit int, _ *Scratch, emit render.Emitter) {
	render.EmitText(emit, ts[unit].Body, ts[unit].Key)
}

// Find finds the unit of a key.
func (ts Texts) Find(key site.Key) Found {
	return Among(len(ts), slices.IndexFunc(ts, func(t render.Text) bool { return t.Key == key }), ts.render)
}

// A Partition sorts things into buckets by the hash of their texts.
type Partition struct {
	Digits  int      // hexadecimal digits of the names of buckets
	Names   []string // names of buckets
	offsets []uint32 // by bucket: index of its first thing; the last element is the total
	things  []uint32 // things of all buckets; the order within a bucket is the input's
}

// In returns the things in a bucket.
func (p *Partition) In(bucket int) []uint32 {
	return p.things[p.offsets[bucket]:p.offsets[bucket+1]]
}

// Find finds a bucket by name. The names are sorted.
func (p *Partition) Find(name string, render Render) Found {
	bucket, ok := slices.BinarySearch(p.Names, name)
	if !ok {
		return Found{}
	}
	return Found{render, bucket}
}

// NewPartition sorts things into the buckets with names of this many digits, by their texts.
func NewPartition(ctx context.Context, workers, digits int, things []uint32, text func(thing uint32) string) (Partition, error) {
	p := Partition{Digits: digits, Names: site.HashPrefixes(digits)}
	bucketOf := make([]uint16, len(things))
	err := inorder.Chunks(ctx, workers, len(things), func(i int) error {
		n, err := strconv.ParseUint(site.UserBucket(text(things[i]), digits), 16, 16)
		bucketOf[i] = uint16(n)
		return err
	})
	if err != nil {
		return Partition{}, err
	}
	p.offsets, p.things = graph.Group(things, bucketOf, len(p.Names))
	return p, nil
}
