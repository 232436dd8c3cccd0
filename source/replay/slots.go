package replay

import (
	"slices"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
)

// Slots writes the records and the visible operations of slots, for all lists that have them. It leaves
// out what anybody could put there for little money to stop everybody's snapshot, or to make it a
// thousand times as large. Set To and Held. It may be used by one goroutine at a time.
type Slots struct {
	To      Writer
	Held    map[site.Address]uint32 // how many lists follow an account
	Records uint64                  // that were written
	Ignored map[Reason]uint64       // records, by LongRecord and SharedSlot; what ops lacks, by UntimedOp, LongOp and SharedOp; nil for none

	sharing
	shown []string // lists that have the records of the last slot
	log   opLog
}

// sharing says which lists have the records of a slot that others have before them.
type sharing struct {
	shared int // bytes of the rows of lists beyond alwaysShared
}

// has reports whether a list has them: the ith of its slot, whose rows have that size. Lists must come
// in the order in which they are written.
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

var ( // that tests make smaller
	// alwaysShared is how many lists of a slot have all its records, whatever others share. If that
	// were only the first one, whoever has an old list and uses up the limit by others could move it
	// to the slot of a newer list, which would have no records then.
	alwaysShared = 8
	// mostShared bounds sharing.shared. It is far above what was ever seen.
	mostShared = 512 << 20
)

// Write writes the records of a slot for each of the lists, by their token ids. The first ones have
// all of them; a later one has all or, beyond the limit, none. It changes the slice of records.
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

// fitting are the records that fit into rows, and about the size of these. It changes the slice.
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

// rowBytes is about the size of a record's row.
func rowBytes(r snapshot.Record) int {
	size := 100 + 2*len(r.Data)
	for _, tag := range r.Tags {
		size += len(tag) + len(`"",`)
	}
	return size
}

// tooLong reports whether a record might not fit into a row of a snapshot, which has at most 16 MiB.
// Such a record is left out as a whole: without its tags it could be a follow.
func tooLong(r snapshot.Record) bool {
	const (
		maxRow    = 16<<20 - 1<<10 // without the other members
		maxEscape = 6              // bytes of JSON for a byte of text
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
