package replay_test

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source/replay"
)

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
