package render

import "github.com/followpress/followpress/site"

// An Emitter receives an object: its estimated size in bytes, a function that appends its body to a
// buffer, and its keys, several if objects share a body.
type Emitter func(size int, render func(b []byte) []byte, keys ...site.Key)

// EmitText emits an object with a known body.
func EmitText[T string | []byte](emit Emitter, text T, keys ...site.Key) {
	emit(len(text), func(b []byte) []byte { return append(b, text...) }, keys...)
}

// A Scratch is memory reused by the objects of a chunk.
type Scratch struct {
	Only    Selection
	follows []uint32 // indexes of the current list's follows
	held    []uint32 // indexes of the records that hold an account
	places  []uint32 // places of a head's rows
	large   []uint32 // follower counts of a table
	page    []Follower
	tags    map[string]int // records by tag
	counts  []tagRun       // sorted by tag
	byCount []tagRun       // most frequent first
	keys    []site.Key
}

// A tagRun is a tag with the number of records that carry it.
type tagRun struct {
	tag string
	n   int
}

// followers returns the latest followers with their states in the list.
func (t *Scratch) followers(v *View) []Follower {
	if v.isPrimary() || len(v.Page) == 0 {
		return v.Page
	}
	t.page = append(t.page[:0], v.Page...)
	for i := range t.page {
		t.page[i].State = 0
	}
	for i := range v.Records.Len() {
		state := v.Records.State(i)
		if state == 0 {
			continue
		}
		address := v.Records.Address(i)
		for j := range t.page {
			if t.page[j].Account == address {
				t.page[j].State = state
			}
		}
	}
	return t.page
}
