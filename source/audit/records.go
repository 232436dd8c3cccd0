package audit

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/followpress/followpress/site/op"
)

// A Record is a record of a list, with its tags sorted by bytes.
type Record struct {
	Version uint32
	Type    string // "address", or the number of another type
	Data    string // raw bytes
	Tags    []string
}

// An identity identifies a record. It is a struct, because a type may contain any separator.
type identity struct {
	version    uint32
	kind, data string
}

func (r *Record) identity() identity { return identity{r.Version, r.Type, r.Data} }

func (r *Record) String() string {
	return fmt.Sprintf("record %s of version %d with data 0x%s", quoted(r.Type), r.Version, shortHex(r.Data))
}

// mostShown limits how much of a stranger's text an error shows.
const mostShown = 80

func shortHex(data string) string {
	if text := hex.EncodeToString([]byte(data)); len(text) <= mostShown {
		return text
	}
	return hex.EncodeToString([]byte(data[:mostShown/2])) + "…"
}

func quoted(text string) string {
	if len(text) > mostShown {
		text = strings.ToValidUTF8(text[:mostShown], "") + "…"
	}
	return fmt.Sprintf("%q", text)
}

// A shelf applies the operations of a slot one by one, and holds the resulting records.
type shelf struct {
	records map[string]*kept // by version, type and data, as in operations
	added   int              // number of records added so far
}

// kept is a record in the list, or only the tags of one that is not in the list.
type kept struct {
	record Record
	place  int // position in the list's order; 0 if the record is not in the list
	tags   map[string]struct{}
}

// apply applies an operation. It ignores one without effect.
func (s *shelf) apply(operation []byte) {
	o, ignored := op.Parse(operation)
	if ignored != "" {
		return
	}
	if s.records == nil {
		s.records = map[string]*kept{}
	}
	name := string(o.Record)
	k := s.records[name]
	if k == nil {
		k = &kept{tags: map[string]struct{}{}}
	}
	switch o.Code {
	case op.Follow:
		if k.place == 0 {
			s.added++
			kind := o.Kind()
			k.place, k.record = s.added, Record{Version: kind.Version, Type: kind.Type, Data: string(o.Data())}
		}
	case op.Unfollow: // removes tags too, even if there is no record
		delete(s.records, name)
		return
	case op.Tag:
		k.tags[string(o.Tag)] = struct{}{}
	case op.Untag:
		delete(k.tags, string(o.Tag))
	}
	if k.place > 0 || len(k.tags) > 0 {
		s.records[name] = k
	} else {
		delete(s.records, name)
	}
}

// all returns the records in the list, in the order in which they were added.
func (s *shelf) all() (records []Record) {
	there := slices.DeleteFunc(slices.Collect(maps.Values(s.records)), func(k *kept) bool { return k.place == 0 })
	slices.SortFunc(there, func(a, b *kept) int { return cmp.Compare(a.place, b.place) })
	for _, k := range there {
		k.record.Tags = slices.Sorted(maps.Keys(k.tags))
		records = append(records, k.record)
	}
	return records
}

// merged returns records without duplicates: a repeated row adds its tags to the first.
func merged(rows []Record) []Record {
	first := make(map[identity]int, len(rows))
	records := rows[:0]
	for _, r := range rows {
		id := r.identity()
		i, again := first[id]
		if !again {
			first[id] = len(records)
			records = append(records, r)
			continue
		}
		records[i].Tags = append(records[i].Tags, r.Tags...)
	}
	for i := range records {
		slices.Sort(records[i].Tags)
		records[i].Tags = slices.Compact(records[i].Tags)
	}
	return records
}

// otherRecords describes the first difference between records; "" for none. A contract has no
// record twice, but a site shows each row that it has, so a second row of a record is a difference.
func otherRecords(said, are []Record) string {
	by := make(map[identity]*Record, len(said))
	lacks, has, tags, twice := []string{}, []string{}, []string{}, []string{}
	for i := range said {
		id := said[i].identity()
		if _, again := by[id]; again {
			twice = append(twice, said[i].String())
			continue
		}
		by[id] = &said[i]
	}
	for i := range are {
		r, ok := by[are[i].identity()]
		switch {
		case !ok:
			lacks = append(lacks, are[i].String())
		case !slices.Equal(r.Tags, are[i].Tags):
			tags = append(tags, fmt.Sprintf("%s has the tags %s, and %s by the contract", r, tagsText(r.Tags), tagsText(are[i].Tags)))
		}
		delete(by, are[i].identity())
	}
	for i := range said {
		if by[said[i].identity()] == &said[i] {
			has = append(has, said[i].String())
		}
	}
	var texts []string
	for _, one := range []struct {
		name  string
		found []string
	}{{"it lacks ", lacks}, {"it has, and the contract has not, ", has}, {"it has more than once ", twice}, {"", tags}} {
		if len(one.found) == 0 {
			continue
		}
		text := one.name + one.found[0]
		if n := len(one.found); n > 1 {
			text += fmt.Sprintf(" (and %d more)", n-1)
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 && len(said) != len(are) {
		return fmt.Sprintf("it has %d, and the contract has %d", len(said), len(are))
	}
	if len(texts) == 0 {
		for i := range are {
			if said[i].identity() != are[i].identity() {
				return fmt.Sprintf("wrong order: number %d is %s, %s by the contract", i+1, &said[i], &are[i])
			}
		}
	}
	return strings.Join(texts, "; ")
}

func tagsText(tags []string) string {
	const most = 5
	var texts []string
	for _, t := range tags[:min(len(tags), most)] {
		texts = append(texts, quoted(t))
	}
	if len(tags) > most {
		texts = append(texts, fmt.Sprintf("and %d more", len(tags)-most))
	}
	return "[" + strings.Join(texts, ", ") + "]"
}
