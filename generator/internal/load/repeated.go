package load

import (
	"cmp"
	"context"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/site/rules"
)

// mergeRepeated merges equal records of a list into the first one, which gets all their tags.
func (l *loader) mergeRepeated(ctx context.Context) error {
	g := l.graph
	lengths := make([]uint32, len(g.Tokens))
	var merged mergedForms
	group, ctx := errgroup.WithContext(ctx)
	const chunk = 1024
	group.SetLimit(l.Workers)
	for from := 0; from < len(g.Tokens); from += chunk {
		group.Go(func() error {
			m := merger{graph: g, merged: &merged}
			for list := from; list < min(from+chunk, len(g.Tokens)); list++ {
				lengths[list] = m.merge(uint32(list))
			}
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	g.Records.Use(g.ByNumber)
	for _, to := range merged.all {
		g.Records.SetForm(to.at, to.form)
	}
	before, kept := g.Records.Len(), uint64(0)
	for list, length := range lengths {
		begin, end := g.Offsets[list], g.Offsets[list]+uint64(length)
		g.Offsets[list] = kept
		if l.timed() && begin != kept {
			copy(g.Added[kept:], g.Added[begin:end])
		}
		kept += g.Records.CopyWithin(kept, begin, end)
	}
	g.Offsets[len(g.Tokens)] = kept
	l.Report.Repeated = before - int(kept)
	g.Records.Truncate(kept)
	if l.timed() {
		g.Added = g.Added[:kept]
	}
	return nil
}

// mergedForms are the forms of merged records. Their numbers may need more bytes than records have
// now, so they are set last.
type mergedForms struct {
	mu  sync.Mutex
	all []mergedForm
}

type mergedForm struct {
	at   uint64 // index of the record before compaction
	form uint32
}

// A merger merges equal records, one list after another. It reuses its memory.
type merger struct {
	graph   *graph.Graph
	merged  *mergedForms
	seen    []uint32 // hash table of record indexes plus 1
	repeats []repeat
	tags    []string
}

// A repeat is a row whose tags go to an earlier record of its list.
type repeat struct {
	first uint32 // index of the earlier record
	tags  uint32
}

// merge compacts the remaining records of a list, with their times, and returns their number.
func (m *merger) merge(list uint32) uint32 {
	records := m.graph.RecordsOf(list)
	var added []int64
	if m.graph.Added != nil {
		added = m.graph.AddedOf(list)
	}
	slots := bits.Len(uint(2 * records.Len()))
	if len(m.seen) < 1<<slots {
		m.seen = make([]uint32, 1<<slots)
	}
	seen := m.seen[:1<<slots]
	clear(seen)
	m.repeats = m.repeats[:0]
	kept := 0
	for i, r := range records.All() {
		slot := firstSlot(seen, &records, r)
		if *slot == 0 {
			*slot = uint32(kept + 1)
			if kept != i {
				records.Move(kept, i)
				if added != nil {
					added[kept] = added[i]
				}
			}
			kept++
		} else if first := *slot - 1; records.At(int(first)).Tags != r.Tags {
			m.repeats = append(m.repeats, repeat{first, r.Tags})
		}
	}
	m.mergeTags(list, &records)
	return uint32(kept)
}

// spread hashes numbers. It is random, so that no snapshot can cause collisions on purpose.
var spread = rand.Uint64() | 1

// firstSlot returns the slot of the first record with the identity of r, or an empty one. len(seen)
// is a power of 2.
func firstSlot(seen []uint32, records *graph.RecordList, r graph.PackedRecord) *uint32 {
	at := (uint64(r.Data) | uint64(r.Kind)<<32) * spread >> (bits.LeadingZeros(uint(len(seen)-1)) & 63)
	for ; ; at++ {
		slot := &seen[at&uint64(len(seen)-1)]
		if *slot == 0 {
			return slot
		}
		if first := records.At(int(*slot - 1)); first.Identity() == r.Identity() {
			return slot
		}
	}
}

// mergeTags adds the tags of repeats to records of a list. It adds only final sets to the graph:
// with intermediate sets, memory would grow with the square of the repeats.
func (m *merger) mergeTags(list uint32, records *graph.RecordList) {
	if len(m.repeats) == 0 {
		return
	}
	slices.SortFunc(m.repeats, func(a, b repeat) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.tags, b.tags))
	})
	repeats := slices.Compact(m.repeats)
	m.merged.mu.Lock()
	defer m.merged.mu.Unlock()
	forms := &m.graph.Forms
	for len(repeats) > 0 {
		first := repeats[0].first
		into := records.At(int(first))
		m.tags = append(m.tags[:0], forms.TagSets[into.Tags].Tags...)
		for ; len(repeats) > 0 && repeats[0].first == first; repeats = repeats[1:] {
			m.tags = append(m.tags, forms.TagSets[repeats[0].tags].Tags...)
		}
		n := forms.WithTags(into.Kind, rules.MergeTags(m.tags))
		m.merged.all = append(m.merged.all, mergedForm{m.graph.Offsets[list] + uint64(first), n})
	}
}
