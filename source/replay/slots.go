package replay

import (
	"slices"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
)

// Slots writes the records and visible operations of slots, for all lists that have them. It omits
// rows that would let an attacker cheaply block everybody's snapshot or multiply its size. Set To
// and Held. Only one goroutine at a time may use it.
type Slots struct {
	To      Writer
	Held    map[site.Address]uint32 // number of lists that follow each account
	Records uint64                  // records written
	Ignored map[Reason]uint64       // records by LongRecord and SharedSlot; rows missing from ops by UntimedOp, LongOp and SharedOp; nil for none

	sharing
	shown []string // lists that have the records of the last slot
	log   opLog
}

// sharing decides which of several lists with the same slot get its records.
type sharing struct {
	shared int // bytes of the rows of lists beyond alwaysShared
}

// has reports whether the ith list of its slot gets records of this size. Lists must come in the
// order in which they are written.
func (s *sharing) has(i, size int) bool {
	if i < alwaysShared {
		return true
	}
	if size > mostShared-s.shared {
		return false
	}
	s.shared += size
	return true
}

var ( // variables, so that tests can lower them
	// alwaysShared lists of a slot get all its records, whatever others share. If only the first
	// list did, the owner of an old list could use up the limit. Then he could move the old list
	// to the slot of a newer list, which would lose its records.
	alwaysShared = 8
	// mostShared limits sharing.shared, far above any value seen.
	mostShared = 512 << 20
)

// Write writes the records of a slot for each of the lists. The first lists get all records; a
// later one gets all or, beyond the limit, none. Write changes the slice records.
func (s *Slots) Write(records []snapshot.Record, tokenIDs []string) error {
	all := len(records)
	records, size := fitting(records)
	s.ignore(LongRecord, all-len(records))
	s.shown = nil
	for i, id := range tokenIDs {
		if !s.has(i, size) {
			s.ignore(SharedSlot, len(records))
			continue
		}
		s.shown = tokenIDs[:i+1]
		for _, r := range records {
			r.TokenID = id
			if err := s.To.WriteRecord(r); err != nil {
				return err
			}
			if account, ok := follow(r); ok {
				s.Held[account]++
			}
		}
		s.Records += uint64(len(records))
	}
	return nil
}

// fitting returns the records that fit into rows, and their approximate size. It changes the slice.
func fitting(records []snapshot.Record) (fit []snapshot.Record, size int) {
	fit = slices.DeleteFunc(records, tooLong)
	for _, r := range fit {
		size += rowBytes(r)
	}
	return fit, size
}

func (s *Slots) ignore(reason Reason, n int) {
	if n == 0 {
		return
	}
	if s.Ignored == nil {
		s.Ignored = map[Reason]uint64{}
	}
	s.Ignored[reason] += uint64(n)
}

// rowBytes returns the approximate size of a record's row.
func rowBytes(r snapshot.Record) int {
	size := 100 + 2*len(r.Data)
	for _, tag := range r.Tags {
		size += len(tag) + len(`"",`)
	}
	return size
}

// tooLong reports whether a record might exceed the 16 MiB of a snapshot's row. The record is then
// omitted completely: without its tags it could look like a follow.
func tooLong(r snapshot.Record) bool {
	const (
		maxRow    = 16<<20 - 1<<10 // without the other members
		maxEscape = 6              // bytes of JSON per byte of text
	)
	size := 2 * len(r.Data)
	for _, tag := range r.Tags {
		size += maxEscape*len(tag) + len(`"",`)
	}
	return size > maxRow
}

// follow returns the account that a record follows. ok is false if it follows none.
func follow(r snapshot.Record) (account site.Address, ok bool) {
	account, ok = r.Address()
	return account, ok && rules.IsFollow(rules.Kind{Version: r.Version, Type: r.Type}, r.Tags)
}
