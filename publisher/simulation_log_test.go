package publisher

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/followpress/followpress/site"
	contracts "github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/bundle"
)

// Some publishers of the simulation put a log of events, too, each as far as it has read the chain. Whatever happens, a
// reader of the log finds an index that names bundles which are there and right, and no full bundle that is named changes.
// Without a lock that does not hold.

// faultLog counts publishers with a log.
const faultLog = "publishers with a log of events"

// rowsRead is how many events each state has: less than a bundle, one, one and some, and more.
var rowsRead = []int{4_000, 9_990, bundle.MaxRows, 10_020, 20_500}

// simulatedLogs are what states of a chain make of each other's logs. They are made once, outside of bubbles.
type simulatedLogs struct {
	extends map[extension]extended
	indexes map[site.MD5]int                            // the states by the sums of their indexes
	right   map[site.MD5]map[site.Key]map[site.MD5]bool // by index and bundle, the sums of what a reader takes for it
	full    map[site.Key]site.MD5                       // full bundles
}

// An extension is what a state makes of the log that is there, that of another state or none (-1).
type extension struct{ was, state int }

type extended struct {
	objects []LogObject // the index last
	report  LogReport
}

var logsOfTests = sync.OnceValue(func() *simulatedLogs {
	l, err := makeLogs()
	if err != nil {
		panic(err)
	}
	return l
})

func makeLogs() (*simulatedLogs, error) {
	l := &simulatedLogs{extends: map[extension]extended{}, indexes: map[site.MD5]int{}, right: map[site.MD5]map[site.Key]map[site.MD5]bool{}, full: map[site.Key]site.MD5{}}
	bodies := map[site.Key]map[site.MD5][]byte{} // all that a bundle may be
	indexes := make([][]byte, len(rowsRead))
	for was := -1; was < len(rowsRead); was++ { // an index of -1 is made first
		for state := range rowsRead {
			var index *bundle.Index
			if was >= 0 {
				var err error
				if index, err = bundle.ParseIndex(indexes[was]); err != nil {
					return nil, err
				}
			}
			e, body, err := extend(index, rowsRead[state])
			if err != nil {
				return nil, fmt.Errorf("%d rows after those of %d: %w", rowsRead[state], was, err)
			}
			if was < 0 {
				indexes[state], l.indexes[site.Sum(body)] = body, state
			}
			l.extends[extension{was, state}] = e
			for _, o := range e.objects[:max(0, len(e.objects)-1)] {
				if bodies[o.Key] == nil {
					bodies[o.Key] = map[site.MD5][]byte{}
				}
				bodies[o.Key][site.Sum(o.Body)] = o.Body
				if o.Full {
					l.full[o.Key] = site.Sum(o.Body)
				}
			}
		}
	}
	return l, l.judge(indexes, bodies)
}

// judge asks the reader which objects it takes for the bundles of each index.
func (l *simulatedLogs) judge(indexes [][]byte, bodies map[site.Key]map[site.MD5][]byte) error {
	for _, body := range indexes {
		x, err := bundle.ParseIndex(body)
		if err != nil {
			return err
		}
		right := map[site.Key]map[site.MD5]bool{}
		for i := range x.Bundles {
			name := x.Bundles[i].Name()
			key := site.LogKey(name)
			right[key] = map[site.MD5]bool{}
			for sum, candidate := range bodies[key] {
				_, damaged, err := bundle.Verify(context.Background(), func(_ context.Context, asked string, _ int64) ([]byte, error) {
					switch asked {
					case bundle.IndexName:
						return body, nil
					case name:
						return candidate, nil
					}
					return nil, bundle.ErrNone
				}, len(x.Bundles))
				if err != nil {
					return err
				}
				right[key][sum] = !slices.ContainsFunc(damaged, func(err error) bool { return strings.Contains(err.Error(), "_log/"+name+",") })
			}
		}
		l.right[site.Sum(body)] = right
	}
	return nil
}

// extend makes what a state with so many rows puts where a log is, and the index.
func extend(was *bundle.Index, rows int) (e extended, index []byte, err error) {
	chain := bundle.Source{
		Chain:  bundle.Chain{ID: 1, Contracts: []string{"a"}, First: &bundle.Block{Block: 1, Hash: "0x" + strings.Repeat("0", 64)}},
		Points: []bundle.Mark{{Block: uint64(rows), Hash: [32]byte{byte(rows), byte(rows >> 8)}, Time: int64(rows) * 1000, Events: uint64(rows)}},
		Events: func(yield func(contracts.Event, error) bool) {
			for i := range rows {
				event := contracts.Event{Kind: contracts.Op, Contract: contracts.Contract{Chain: 1}, Block: uint64(i + 1), Time: int64(i+1) * 1000, Value: make([]byte, 24)}
				binary.BigEndian.PutUint64(event.Value, uint64(i))
				if !yield(event, nil) {
					return
				}
			}
		},
	}
	built, err := bundle.Build(context.Background(), []bundle.Source{chain}, was, func(o bundle.Object) error {
		e.objects = append(e.objects, LogObject{Key: site.LogKey(o.Name), Body: slices.Clone(o.Body), Full: o.Full, Replaces: o.Replaces})
		return nil
	})
	if err != nil {
		return e, nil, err
	}
	x := built.Index
	e.report = LogReport{Rows: x.Rows, Bundles: len(x.Bundles), Put: built.Put, Bytes: built.Bytes, Behind: built.Behind, Changed: built.Changed}
	if index, err = x.Body(); err == nil && built.Changed {
		e.objects = append(e.objects, LogObject{Key: site.LogIndexKey, Body: index})
	}
	return e, index, err
}

// A simulatedLog is the log of a state.
type simulatedLog struct{ state int }

// Extend puts what the state has prepared for the log that is there.
func (s simulatedLog) Extend(_ context.Context, index []byte, put func(LogObject) error) (LogReport, error) {
	was := -1
	if index != nil {
		var ok bool
		if was, ok = logsOfTests().indexes[site.Sum(index)]; !ok {
			return LogReport{}, errors.New("the index is no state's")
		}
	}
	e := logsOfTests().extends[extension{was, s.state}]
	if put == nil {
		return e.report, nil
	}
	for _, o := range e.objects {
		if err := put(o); err != nil {
			return e.report, err
		}
	}
	return e.report, nil
}

// log is the log that a publisher puts; nil for none.
func (w *world) log(name string) History {
	if w.locks != conditional || !w.chance(300, name, "log") {
		return nil
	}
	w.count(faultLog)
	return simulatedLog{int(w.draw(name, "rows read") % uint64(len(rowsRead)))}
}

func isLog(key site.Key) bool { return strings.HasPrefix(string(key), string(site.LogPrefix)) }

// isNamedFull reports whether an index names a bundle that is full: then no other body is right. A run that was cut off
// before its index may leave a bundle that is, and a state that has read less replaces it.
func (l *simulatedLogs) isNamedFull(index site.MD5, name site.Key) bool {
	bodies := 0
	for _, isRight := range l.right[index][name] {
		if isRight {
			bodies++
		}
	}
	return bodies == 1
}

// lookAtLog reads the log as it is after a change of one of its objects.
func (w *world) lookAtLog(r *arrival, key site.Key, before stored, o *stored) {
	if !isLog(key) || w.late {
		return
	}
	l := logsOfTests()
	index, ok := w.objects[site.LogIndexKey]
	if !ok {
		return
	}
	if sum, ok := l.full[key]; ok && before.sum == sum && (o == nil || o.sum != sum) && l.isNamedFull(index.sum, key) {
		w.fail("%s: %s changes %s, which is full", r.name, r.what, key)
	}
	for name, right := range l.right[index.sum] {
		if there, ok := w.objects[name]; !ok || !right[there.sum] {
			w.fail("%s: after %s a reader of the log finds no %s that the index names", r.name, r.what, name)
		}
	}
	if l.right[index.sum] == nil {
		w.fail("%s: %s puts an index that is no state's", r.name, r.what)
	}
}

// TestLeftBundleIsReplaced: a run that was cut off before its index has left a bundle with fewer rows.
func TestLeftBundleIsReplaced(t *testing.T) {
	simulatedSites() // outside of the bubble
	newFollower()
	left := logsOfTests().extends[extension{-1, 3}].objects
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, false)
		w.locks = conditional
		for _, o := range left[:len(left)-1] {
			w.objects[o.Key] = stored{body: o.Body, sum: site.Sum(o.Body), at: w.start}
		}
		p := w.process("publisher")
		p.calm = true
		s := w.site("site")
		o := w.options(p, s)
		o.History = simulatedLog{4}
		report, err := Publish(t.Context(), s, p, o)
		if err != nil || report.Log == nil || report.Log.Rows != 20_500 {
			t.Errorf("got %+v, %v, want a log of 20,500 rows", report.Log, err)
		}
		for _, failed := range w.failed {
			t.Error(failed)
		}
	})
}
