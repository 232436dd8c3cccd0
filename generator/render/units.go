package render

import (
	"slices"
	"strconv"

	"github.com/followpress/followpress/site"
)

// A UnitKind is a kind of units, such as lists. Each unit has some objects.
type UnitKind struct {
	Units   int
	Records func(unit int) int // number of records of a unit; nil if units have none
	Render  unitRenderer
}

// A unitRenderer renders a unit of a kind. Under a selection it may skip other objects.
type unitRenderer func(unit int, t *Scratch, emit Emitter)

// An Emitter receives an object: its estimated size in bytes, a function that appends its body to a
// buffer, and its keys, several if objects share a body.
type Emitter func(size int, render func(b []byte) []byte, keys ...site.Key)

// emitText emits an object with a known body.
func emitText[T string | []byte](emit Emitter, text T, keys ...site.Key) {
	emit(len(text), func(b []byte) []byte { return append(b, text...) }, keys...)
}

// A Scratch is memory reused by the units of a chunk.
type Scratch struct {
	only    selection
	view    graphView
	follows []uint32 // indexes of the current list's follows
	held    []uint32 // indexes of the records that hold an account
	holders []holder // holders of a bucket's accounts
	places  []uint32 // places of a head's rows
	large   []uint32 // follower counts of a table
	page    []Follower
	tags    map[string]int // records by tag
	counts  []tagRun       // sorted by tag
	byCount []tagRun       // most frequent first
	keys    []site.Key
	leaders []Leader
	read    uint32 // see touch
}

// A tagRun is a tag with the number of records that carry it.
type tagRun struct {
	tag string
	n   int
}

// A foundUnit is the unit with the object of a key, if the site has it.
type foundUnit struct {
	render unitRenderer // nil if there is no such object
	unit   int
}

// among returns the unit with a number, if it exists.
func among(units, unit int, render unitRenderer) foundUnit {
	if unit < 0 || unit >= units {
		return foundUnit{}
	}
	return foundUnit{render, unit}
}

// number returns the value of a text, or -1.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

// find finds a bucket by name. The names are sorted.
func (p *partition) find(name string, render unitRenderer) foundUnit {
	bucket, ok := slices.BinarySearch(p.names, name)
	if !ok {
		return foundUnit{}
	}
	return foundUnit{render, bucket}
}
