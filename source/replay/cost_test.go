package replay_test

import (
	"encoding/binary"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/replay"
)

// opOn is op for a numbered account.
func opOn(code byte, n int, tag string) []byte {
	a := numbered(n)
	return append(append([]byte{1, code, 1, 1}, a[:]...), tag...)
}

// hostileEvents are events that anybody may cause, of about n operations or lists.
var hostileEvents = map[string]func(n int) []source.Event{
	"one record added again and again": func(n int) []source.Event {
		return repeated(n, func(int) source.Event { return operate(place(1), op(add, 1)) })
	},
	"one record added and removed": func(n int) []source.Event {
		return repeated(n, func(i int) source.Event { return operate(place(1), op(byte(add+i%2), 1)) })
	},
	"one record of many tags": func(n int) []source.Event {
		return repeated(n, func(i int) source.Event { return operate(place(1), opOn(tag, 1, strconv.Itoa(i))) })
	},
	"tagged and removed": func(n int) []source.Event {
		return repeated(n, func(i int) source.Event {
			return operate(place(1), [][]byte{op(tag, 1, "a"), op(tag, 1, strconv.Itoa(i)), op(remove, 1)}[i%3])
		})
	},
	"records of one large list, all removed": func(n int) []source.Event {
		return repeated(n, func(i int) source.Event {
			if i < n/2 {
				return operate(place(1), opOn(add, i, ""))
			}
			return operate(place(1), opOn(remove, n-i-1, ""))
		})
	},
	"long other records": func(n int) []source.Event {
		long := strings.Repeat("x", 1000)
		return repeated(n/100, func(i int) source.Event {
			return operate(place(1), append([]byte{1, add, 9, 9}, long+strconv.Itoa(i)...))
		})
	},
	"a large list before many small ones": func(n int) []source.Event {
		large := repeated(n, func(i int) source.Event { return operate(place(1), opOn(add, i, "")) })
		return append(large, repeated(n, func(i int) source.Event {
			at := source.Place{Contract: records, Slot: wordOf(i / 3)}
			switch i % 3 {
			case 0:
				e := transfer(0, 1)
				e.Subject = at.Slot
				return e
			case 1:
				e := locate(0, location(at))
				e.Subject = at.Slot
				return e
			}
			return operate(at, op(add, 1))
		})...)
	},
	"many lists at a slot of many operations and no records": func(n int) []source.Event {
		lists := repeated(n, func(i int) source.Event {
			e := transfer(0, 1)
			if i%2 == 1 {
				e = locate(0, location(place(1)))
			}
			e.Subject = wordOf(i / 2)
			return e
		})
		return append(lists, repeated(n, func(i int) source.Event { return operate(place(1), op(byte(add+i%2), 1)) })...)
	},
	"slots of no list": func(n int) []source.Event {
		return repeated(n, func(i int) source.Event {
			return operate(source.Place{Contract: records, Slot: wordOf(i)}, op(add, 1))
		})
	},
}

func numbered(n int) (a site.Address) {
	binary.BigEndian.PutUint64(a[12:], uint64(n)+1)
	return a
}

func wordOf(n int) (w source.Word) {
	binary.BigEndian.PutUint64(w[24:], uint64(n))
	return w
}

func repeated(n int, event func(i int) source.Event) []source.Event {
	events := make([]source.Event, n)
	for i := range events {
		events[i] = event(i)
	}
	return events
}

// counted counts rows.
type counted struct{ lists, records, ops int }

func (c *counted) WriteList(snapshot.List) error     { c.lists++; return nil }
func (c *counted) WriteRecord(snapshot.Record) error { c.records++; return nil }

func (*counted) Begin(snapshot.Table) error { return nil }

func (c *counted) WriteOp(snapshot.Op) error { c.ops++; return nil }

// TestCostFollowsEvents: twice the events cost about twice the memory, whatever is in them. Time would
// be out of all proportion if anything were compared with everything.
func TestCostFollowsEvents(t *testing.T) {
	const patience = time.Minute
	n := servers.Rounds(5_000, 100_000)
	cost := func(events []source.Event) float64 {
		events = append(events, transfer(1, 1), locate(1, location(place(1))))
		for i := range events {
			events[i].Block = uint64(i)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := replay.New(deployment())
		for _, e := range events {
			if err := r.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Write(t.Context(), &counted{}); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	for name, events := range hostileEvents {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			once, twice := cost(events(n)), cost(events(2*n))
			t.Logf("%.1f and %.1f MB, %v", once/1e6, twice/1e6, time.Since(start))
			if ratio := twice / once; ratio > 2.7 {
				t.Errorf("%.1f MB for %d, and %.1f times that for twice as many: got more than in proportion", once/1e6, n, ratio)
			}
			if spent := time.Since(start); spent > patience {
				t.Errorf("%d operations take %v, want less than %v", 3*n, spent, patience)
			}
		})
	}
}
