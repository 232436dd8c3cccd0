package replay_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/replay"
)

// TestOps: rows are operations whose effect readers can see, in their order, for each list that has the slot.
func TestOps(t *testing.T) {
	at5, at6, there := place(5), place(6), source.Place{Contract: elsewhere, Slot: word(5)}
	set := func(token uint64, at source.Place) []source.Event {
		return []source.Event{transfer(byte(token), 0x10), locate(byte(token), location(at))}
	}
	// Events before the operations are of block 0, those of the operations number n of block n+1 and time n.
	for name, test := range map[string]struct {
		lists []source.Event
		ops   []source.Event
		want  string
	}{
		"add":             {set(1, at5), []source.Event{operate(at5, op(add, 1)), operate(at5, op(add, 1))}, "0:1 follow 1"},
		"remove":          {set(1, at5), []source.Event{operate(at5, op(remove, 1)), operate(at5, op(add, 1)), operate(at5, op(remove, 1)), operate(at5, op(remove, 1))}, "1:1 follow 1; 2:1 unfollow 1"},
		"removal of tags": {set(1, at5), []source.Event{operate(at5, op(add, 1)), operate(at5, op(tag, 1, "a")), operate(at5, op(remove, 1)), operate(at5, op(untag, 1, "a"))}, "0:1 follow 1; 1:1 tag 1#a; 2:1 unfollow 1"},
		"tags":            {set(1, at5), []source.Event{operate(at5, op(add, 1)), operate(at5, op(tag, 1, "a")), operate(at5, op(tag, 1, "a")), operate(at5, op(untag, 1, "b")), operate(at5, op(untag, 1, "a"))}, "0:1 follow 1; 1:1 tag 1#a; 4:1 untag 1#a"},
		"tags kept aside": {set(1, at5), []source.Event{operate(at5, op(tag, 1, "a")), operate(at5, op(tag, 1, "b")), operate(at5, op(untag, 1, "b")), operate(at5, op(add, 1)), operate(at5, op(untag, 1, "a"))}, "3:1 follow 1; 4:1 untag 1#a"},
		"dropped tags":    {set(1, at5), []source.Event{operate(at5, op(tag, 1, "a")), operate(at5, op(remove, 1)), operate(at5, op(add, 1))}, "2:1 follow 1"},
		"ignored":         {set(1, at5), []source.Event{operate(at5, op(tag, 1, "\xff")), operate(at5, op(9, 1)), operate(at5, nil)}, ""},
		"other records":   {set(1, at5), []source.Event{operate(at5, []byte{1, add, 9, 9, 7})}, "0:1 follow 7"},
		"no list":         {set(1, at5), []source.Event{operate(at6, op(add, 1))}, ""},
		"moved":           {slices.Concat(set(1, at5), []source.Event{locate(1, location(at6))}), []source.Event{operate(at5, op(add, 1)), operate(at6, op(add, 2))}, "1:1 follow 2"},
		"burned":          {slices.Concat(set(1, at5), []source.Event{transfer(1, 0)}), []source.Event{operate(at5, op(add, 1))}, ""},
		"shared":          {slices.Concat(set(10, at5), set(9, at5)), []source.Event{operate(at5, op(add, 1)), operate(at5, op(add, 2))}, "0:9 follow 1; 0:10 follow 1; 1:9 follow 2; 1:10 follow 2"},
		"other chains":    {slices.Concat(set(1, at5), set(2, there)), []source.Event{operate(at5, op(add, 1)), operate(there, op(add, 2)), operate(at5, op(add, 3))}, "0:1 follow 1; 1:2 follow 2; 2:1 follow 3"},
	} {
		t.Run(name, func(t *testing.T) {
			events := slices.Clone(test.lists)
			for i := range events {
				events[i].Index, events[i].Time = uint32(i), 0
			}
			for i, e := range test.ops {
				e.Block, e.Time = uint64(i+1), int64(i)
				events = append(events, e)
			}
			got, _, report := replayed(t, events)
			var short []string
			for _, row := range got.ops {
				at, what, _ := strings.Cut(row, " ")
				ms, _, _ := strings.Cut(at, ":")
				list, what, _ := strings.Cut(what, " ")
				verb, about, _ := strings.Cut(what, " ")
				record, tag, tagged := strings.Cut(about, "#")
				if tagged {
					tag = "#" + tag
				}
				short = append(short, fmt.Sprintf("%s:%s %s %s%s", ms, list, verb, strings.TrimLeft(record, "0"), tag))
			}
			if text := strings.Join(short, "; "); text != test.want {
				t.Errorf("got %q, want %q", text, test.want)
			}
			if report.Ops != uint64(len(got.ops)) {
				t.Errorf("the report has %d rows, want %d", report.Ops, len(got.ops))
			}
		})
	}
}

// TestOpsOrder: times that run backwards between the blocks of a chain, and chains with equal times.
func TestOpsOrder(t *testing.T) {
	at5, there := place(5), source.Place{Contract: elsewhere, Slot: word(5)}
	on := func(e source.Event, block uint64, index uint32, time int64) source.Event {
		e.Block, e.Index, e.Time = block, index, time
		return e
	}
	got, _, report := replayed(t, []source.Event{
		on(transfer(1, 0x10), 1, 0, 0), on(locate(1, location(at5)), 1, 1, 0), on(transfer(2, 0x10), 1, 2, 0), on(locate(2, location(there)), 1, 3, 0),
		on(operate(at5, op(add, 1)), 2, 0, 2000), on(operate(at5, op(add, 2)), 3, 0, 1000), on(operate(at5, op(add, 3)), 4, 7, 2000), on(operate(at5, op(add, 4)), 4, 8, 2000),
		on(operate(at5, op(add, 5)), 5, 0, source.NoTime),
		on(operate(there, op(add, 1)), 2, 0, 2000), on(operate(there, op(add, 2)), 3, 0, 2000), on(operate(there, op(add, 3)), 4, 0, 500),
	})
	want := []string{
		"500:1/4.0 2 follow 3", "1000:8453/3.0 1 follow 2",
		"2000:1/2.0 2 follow 1", "2000:1/3.0 2 follow 2", "2000:8453/2.0 1 follow 1", "2000:8453/4.7 1 follow 3", "2000:8453/4.8 1 follow 4",
	}
	if !slices.Equal(got.ops, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got.ops, "\n"), strings.Join(want, "\n"))
	}
	if n := report.Ignored[replay.UntimedOp]; n != 1 || report.Records != 8 {
		t.Errorf("got %d operations without a time, of %d records, want 1 of 8", n, report.Records)
	}
	if _, err := snapshot.OpRows(nil); err != nil {
		t.Error(err)
	}
}

// TestLongOps: an operation that is too long for a row is counted, and its record is there.
func TestLongOps(t *testing.T) {
	events := number(transfer(1, 0x10), locate(1, location(place(5))),
		operate(place(5), append([]byte{1, add, 9, 9}, bytesOf(snapshot.MaxOp-4)...)), operate(place(5), append([]byte{1, add, 9, 9}, bytesOf(snapshot.MaxOp-3)...)))
	var c counted
	r := replay.New(deployment())
	for _, e := range events {
		if err := r.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // counts are those of the last snapshot
		c = counted{}
		if _, err := r.Write(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
	}
	if c.records != 2 || c.ops != 1 || r.Report().Ignored[replay.LongOp] != 1 {
		t.Errorf("got %d records, %d operations and %v, want 2, 1 and one that is too long", c.records, c.ops, r.Report().Ignored)
	}
}

// TestSharedOps: lists that share a slot with many operations, but few records, cannot make the table large.
func TestSharedOps(t *testing.T) {
	const lists, ops = 3000, 3000 // 9 million rows
	var events []source.Event
	for n := range uint64(lists) {
		events = append(events, source.Event{Kind: source.Transfer, Contract: registry, Subject: wordOf(int(n)), Value: slices.Repeat([]byte{0x10}, 20)},
			source.Event{Kind: source.Location, Contract: registry, Subject: wordOf(int(n)), Value: location(place(5))})
	}
	for n := range ops {
		events = append(events, operate(place(5), op(byte(add+n%2), 1)))
	}
	events = append(events, number(operate(place(5), op(add, 2)))...)
	r := replay.New(deployment())
	for i, e := range events {
		e.Block, e.Index, e.Time = uint64(i), 0, int64(i)
		if err := r.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	var c counted
	if _, err := r.Write(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	missing := int(r.Report().Ignored[replay.SharedOp])
	if c.records != lists || c.ops+missing != lists*(ops+1) || missing == 0 || c.ops > math.MaxInt32 || c.ops*190 > 600<<20 || c.ops%(ops+1) != 0 {
		t.Errorf("got %d records, %d operations and %d that are not shared", c.records, c.ops, missing)
	}
}
