package replay_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/followpress/followpress/site"
	siteop "github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/snapshot/memory"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/replay"
)

// The codes of operations.
const (
	add = iota + 1
	remove
	tag
	untag
)

// account returns an address of 20 equal bytes.
func account(n byte) (a site.Address) {
	for i := range a {
		a[i] = n
	}
	return a
}

// op encodes an operation on an account's record.
func op(code byte, record byte, tag ...string) []byte {
	a := account(record)
	return append(append([]byte{1, code, 1, 1}, a[:]...), strings.Join(tag, "")...)
}

func bytesOf(n int) []byte { return make([]byte, n) }

// show writes records as the tests below do: version.type:first byte of the data, tags, time.
func show(records []snapshot.Record) string {
	var b strings.Builder
	for i, r := range records {
		if i > 0 {
			b.WriteString(" ")
		}
		if r.Type != "address" || r.Version != 1 {
			fmt.Fprintf(&b, "%d.%s:", r.Version, r.Type)
		}
		data := fmt.Sprintf("%x", r.Data)
		if r.Type == "address" {
			data = fmt.Sprintf("%x", r.Data[0])
		}
		b.WriteString(data)
		for _, t := range r.Tags {
			fmt.Fprintf(&b, "#%s", t)
		}
		fmt.Fprintf(&b, "@%d", r.Added)
	}
	return b.String()
}

// An operation that is ignored changes nothing, whatever was there before.
func TestIgnoredOperations(t *testing.T) {
	for name, test := range map[string]struct {
		op   []byte
		want replay.Reason
	}{
		"nothing":               {nil, replay.OpLength},
		"version only":          {[]byte{1}, replay.OpLength},
		"version 0":             {append([]byte{0}, op(add, 2)[1:]...), replay.OpVersion},
		"version 2":             {append([]byte{2}, op(remove, 1)[1:]...), replay.OpVersion},
		"code 0":                {op(0, 1), replay.OpCode},
		"code 5":                {op(5, 1), replay.OpCode},
		"no record":             {[]byte{1, add}, replay.OpLength},
		"three bytes":           {[]byte{1, add, 1}, replay.OpLength},
		"no data":               {[]byte{1, add, 1, 1}, replay.OpLength},
		"no data, other":        {[]byte{1, add, 9, 9}, replay.OpLength},
		"short address":         {op(add, 1)[:23], replay.RecordLength},
		"long address":          {append(op(add, 1), 1), replay.RecordLength},
		"long address, removed": {append(op(remove, 1), 1), replay.RecordLength},
		"short address, tagged": {op(tag, 1)[:23], replay.RecordLength},
		"empty tag":             {op(tag, 1), replay.TagEmpty},
		"empty tag, removed":    {op(untag, 1), replay.TagEmpty},
		"long tag":              {op(tag, 1, strings.Repeat("x", 256)), replay.TagLength},
		"tag not UTF-8":         {op(tag, 1, "a\xff"), replay.TagUTF8},
		"tag of a surrogate":    {op(tag, 1, "\xed\xa0\x80"), replay.TagUTF8},
		"tag with NUL":          {op(tag, 1, "a\x00"), replay.TagNUL},
		"tag of other record":   {append([]byte{1, tag, 1, 2}, bytesOf(30)...), replay.TagRecord},
	} {
		t.Run(name, func(t *testing.T) {
			var l replay.List
			l.Apply(op(add, 1), 5)
			l.Apply(op(tag, 1, "a"), 5)
			if got := l.Apply(test.op, 6); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if got, want := show(l.Records()), "1#a@5"; got != want {
				t.Errorf("records: got %q, want %q", got, want)
			}
		})
	}
}

func TestParseLocation(t *testing.T) {
	place := source.Place{Contract: source.Contract{Chain: 8453, Address: account(7)}, Slot: source.Word{31: 9}}
	valid := location(place)
	changed := func(at int, to byte) []byte {
		b := slices.Clone(valid)
		b[at] = to
		return b
	}
	for name, test := range map[string]struct {
		location []byte
		want     replay.Reason
	}{
		"valid":                      {valid, ""},
		"nothing":                    {nil, replay.LocationLength},
		"short":                      {valid[:85], replay.LocationLength},
		"long":                       {append(slices.Clone(valid), 0), replay.LocationLength},
		"version":                    {changed(0, 2), replay.LocationVersion},
		"type":                       {changed(1, 2), replay.LocationType},
		"chain of more than 64 bits": {changed(25, 1), replay.LocationPlace},
	} {
		got, ignored := replay.ParseLocation(test.location)
		if ignored != test.want {
			t.Errorf("%s: got %q, want %q", name, ignored, test.want)
		}
		if test.want == "" && got != place {
			t.Errorf("%s: got %v, want %v", name, got, place)
		}
	}
}

// location encodes a place.
func location(p source.Place) []byte {
	b := append([]byte{1, 1}, bytesOf(24)...)
	for shift := 56; shift >= 0; shift -= 8 {
		b = append(b, byte(p.Chain>>shift))
	}
	return append(append(b, p.Address[:]...), p.Slot[:]...)
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
	if _, err := memory.OpRows(nil); err != nil {
		t.Error(err)
	}
}

// TestLongOps: an operation that is too long for a row is counted, and its record is there.
func TestLongOps(t *testing.T) {
	events := number(transfer(1, 0x10), locate(1, location(place(5))),
		operate(place(5), append([]byte{1, add, 9, 9}, bytesOf(siteop.MaxBytes-4)...)), operate(place(5), append([]byte{1, add, 9, 9}, bytesOf(siteop.MaxBytes-3)...)))
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

func sequence(events []source.Event) func() source.Events {
	return func() source.Events {
		return func(yield func(source.Event, error) bool) {
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

func TestExplain(t *testing.T) {
	at5, at6 := place(5), source.Place{Contract: elsewhere, Slot: word(6)}
	unknown := place(5)
	unknown.Chain = 7
	a := account(0x10)
	token := bytesOf(31)
	events := number(
		primary(0x20, append(token, 1)...), user(at5, 0x20), operate(at5, op(tag, 3, "a\n")), operate(at5, op(add, 3)),
		transfer(1, 0x10), transfer(2, 0x10), locate(1, location(at5)), locate(2, location(at5)),
		operate(at5, op(add, 3)), operate(at5, op(add, 4)), operate(at5, op(tag, 4, "x")), operate(at5, op(untag, 4, "x")), operate(at5, op(remove, 4)),
		operate(at5, op(remove, 9)), operate(at5, op(tag, 9, "b")), operate(at5, op(tag, 9, "b")), operate(at5, op(remove, 9)), operate(at5, op(untag, 9, "b")),
		operate(at5, op(tag, 3)), operate(at5, []byte{1, add, 9, 8, 7}), operate(place(7), op(add, 3)), operate(at5, append([]byte{2}, bytesOf(200)...)),
		slotMetadata(at5, "manager", a[:]), slotMetadata(at5, "odd\x1b", nil), slotMetadata(at5, "user", a[:19]), user(at5, 0),
		locate(1, location(unknown)), locate(1, []byte{1, 2}), locate(1, location(at6)), user(at6, 0x21), operate(at6, op(add, 1)),
		transfer(1, 0x11), primary(0x21, append(token, 1)...), primary(0x22, append(token, 1)...), primary(0x22), primary(0x23), primary(0x20, 1),
		metadata(0x20, "other", nil),
	)
	events[len(events)-1].Time = source.NoTime
	for _, test := range []struct {
		token byte
		file  string
	}{{1, "moved"}, {2, "shared"}, {3, "missing"}} {
		var out strings.Builder
		if err := replay.Explain(sequence(events), deployment(), word(test.token), &out); err != nil {
			t.Fatal(err)
		}
		golden(t, "testdata/explain-"+test.file+".txt", out.String())
	}
}

var update = flag.Bool("update", false, "write the golden files")

// golden compares with a file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
}

func TestExplainReportsErrors(t *testing.T) {
	lost := errors.New("lost")
	failing := func() source.Events {
		return func(yield func(source.Event, error) bool) { yield(source.Event{}, lost) }
	}
	if err := replay.Explain(failing, deployment(), word(1), &strings.Builder{}); !errors.Is(err, lost) {
		t.Errorf("got %v, want %v", err, lost)
	}
	foreign := transfer(1, 1)
	foreign.Contract.Chain = 5
	if err := replay.Explain(sequence([]source.Event{foreign}), deployment(), word(1), &strings.Builder{}); err == nil {
		t.Error("event of an unknown contract: got no error")
	}
	if err := replay.Explain(sequence(slices.Repeat([]source.Event{transfer(1, 1)}, 2)), deployment(), word(1), &strings.Builder{}); err == nil {
		t.Error("event twice: got no error")
	}
}

// A plainList does what a List does, in the words of the rules and without care for speed.
type plainList struct {
	records []*plainRecord // present ones in order
	aside   map[string]map[string]bool
}

type plainRecord struct {
	record string // version, type and data
	tags   map[string]bool
	added  int64
}

func (l *plainList) apply(op string, time int64) (effective bool) {
	if len(op) < 5 || op[0] != 1 {
		return false
	}
	record := op[2:]
	isAddress := strings.HasPrefix(record, "\x01\x01")
	if isAddress && len(record) < 22 {
		return false
	}
	var tag string
	if code := op[1]; code == 3 || code == 4 {
		if !isAddress {
			return false
		}
		record, tag = record[:22], record[22:]
		if tag == "" || len(tag) > 255 || !utf8.ValidString(tag) || strings.Contains(tag, "\x00") {
			return false
		}
	} else if isAddress && len(record) != 22 {
		return false
	}
	at := slices.IndexFunc(l.records, func(r *plainRecord) bool { return r.record == record })
	switch op[1] {
	case 1:
		if at < 0 {
			tags := l.aside[record]
			delete(l.aside, record)
			if tags == nil {
				tags = map[string]bool{}
			}
			l.records = append(l.records, &plainRecord{record, tags, time})
		}
	case 2:
		delete(l.aside, record)
		if at >= 0 {
			l.records = slices.Delete(l.records, at, at+1)
		}
	case 3:
		if at >= 0 {
			l.records[at].tags[tag] = true
			break
		}
		if l.aside[record] == nil {
			l.aside[record] = map[string]bool{}
		}
		l.aside[record][tag] = true
	case 4:
		if at >= 0 {
			delete(l.records[at].tags, tag)
		} else {
			delete(l.aside[record], tag)
		}
	default:
		return false
	}
	return true
}

func (l *plainList) show() string {
	var rows []snapshot.Record
	for _, r := range l.records {
		row := snapshot.Record{Version: uint32(r.record[0]), Type: strconv.Itoa(int(r.record[1])), Data: []byte(r.record[2:]), Added: r.added}
		if strings.HasPrefix(r.record, "\x01\x01") {
			row.Type = "address"
		}
		for tag := range r.tags {
			row.Tags = append(row.Tags, tag)
		}
		slices.Sort(row.Tags)
		rows = append(rows, row)
	}
	return show(rows)
}

// FuzzList gives a List operations: each is a length and bytes, and bytes of a kind are replaced by
// the start of a valid operation so that records meet again.
func FuzzList(f *testing.F) {
	join := func(ops ...[]byte) []byte {
		var b []byte
		for _, op := range ops {
			b = append(append(b, byte(len(op))), op...)
		}
		return b
	}
	f.Add(join(op(add, 1), op(tag, 1, "a"), op(remove, 1), op(add, 1), op(untag, 1, "a")))
	f.Add(join([]byte{1, add, 3, 4, 5}, []byte{1, remove, 3, 4, 5}, []byte{1, add, 1, 1}, []byte{2, add, 1, 1, 5}))
	f.Add(join([]byte{200, add, 1}, []byte{200, tag, 1, 'x'}, []byte{200, remove, 1}, []byte{200, tag, 1, 0xff}, []byte{200, add, 1, 'x'}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var got replay.List
		got.Apply(op(add, 1), 1)
		got.Reset()
		want := plainList{aside: map[string]map[string]bool{}}
		for n := int64(0); len(b) > 0; n++ {
			length := min(int(b[0]), len(b)-1)
			one := b[1 : 1+length]
			b = b[1+length:]
			if len(one) > 2 && one[0] == 200 {
				one = op(one[1], one[2]&3, string(one[3:]))
			}
			before := slices.Clone(one)
			ignored := got.Apply(one, n)
			if effective := want.apply(string(one), n); effective != (ignored == "") {
				t.Fatalf("operation %x: ignored for %q, want %v", one, ignored, !effective)
			}
			if !bytes.Equal(one, before) {
				t.Fatalf("operation %x was changed to %x", before, one)
			}
			clear(one) // List keeps no part
		}
		if got, want := show(got.Records()), want.show(); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func FuzzParseLocation(f *testing.F) {
	f.Add(location(place(5)))
	f.Add([]byte{1, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ignored := replay.ParseLocation(b)
		if ignored == "" && !bytes.Equal(location(got), b) {
			t.Errorf("%x: got %+v, which is %x", b, got, location(got))
		}
	})
}
