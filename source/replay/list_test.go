package replay_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
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

func TestList(t *testing.T) {
	long := strings.Repeat("x", 255)
	for name, test := range map[string]struct {
		ops  [][]byte
		want string // operation n is of the time n
	}{
		"nothing":                  {},
		"chain order":              {[][]byte{op(add, 2), op(add, 1), op(add, 3)}, "2@0 1@1 3@2"},
		"add twice":                {[][]byte{op(add, 1), op(add, 2), op(add, 1)}, "1@0 2@1"},
		"remove":                   {[][]byte{op(add, 1), op(add, 2), op(remove, 1)}, "2@1"},
		"remove, then add again":   {[][]byte{op(add, 1), op(add, 2), op(remove, 1), op(add, 1)}, "2@1 1@3"},
		"tags, by bytes":           {[][]byte{op(add, 1), op(tag, 1, "top8"), op(tag, 1, "block"), op(tag, 1, "B")}, "1#B#block#top8@0"},
		"tag twice":                {[][]byte{op(add, 1), op(tag, 1, "a"), op(tag, 1, "a"), op(untag, 1, "a")}, "1@0"},
		"tags go with the record":  {[][]byte{op(add, 1), op(tag, 1, "a"), op(remove, 1), op(add, 1)}, "1@3"},
		"tag before the record":    {[][]byte{op(tag, 1, "a"), op(add, 2), op(add, 1)}, "2@1 1#a@2"},
		"tag without record":       {[][]byte{op(tag, 1, "a")}, ""},
		"untag before the record":  {[][]byte{op(tag, 1, "a"), op(tag, 1, "b"), op(untag, 1, "a"), op(add, 1)}, "1#b@3"},
		"removal clears such tags": {[][]byte{op(tag, 1, "a"), op(remove, 1), op(add, 1)}, "1@2"},
		"tag after that removal":   {[][]byte{op(tag, 1, "a"), op(remove, 1), op(tag, 1, "b"), op(add, 1)}, "1#b@3"},
		"not there":                {[][]byte{op(remove, 1), op(untag, 1, "a"), op(add, 1), op(untag, 1, "a")}, "1@2"},
		"tags as they are":         {[][]byte{op(add, 1), op(tag, 1, " BLOCK "), op(tag, 1, "é"), op(tag, 1, long)}, "1# BLOCK #" + long + "#é@0"},
		"other records":            {[][]byte{{1, add, 0x80, 0x81, 'a'}, {1, add, 1, 2, 3}, {1, add, 2, 1, 4}, {1, remove, 0x80, 0x81, 'a'}}, "1.2:03@1 2.1:04@2"},
		"prefix of another":        {[][]byte{{1, add, 3, 4, 5, 6}, {1, remove, 3, 4, 5}, {1, add, 3, 4, 5}}, "3.4:0506@0 3.4:05@2"},
	} {
		t.Run(name, func(t *testing.T) {
			var l replay.List
			for i, op := range test.ops {
				if ignored := l.Apply(op, int64(i)); ignored != "" {
					t.Errorf("operation %d, %x: ignored (%s)", i, op, ignored)
				}
			}
			if got := show(l.Records()); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			l.Reset()
			if got := show(l.Records()); got != "" {
				t.Errorf("after Reset: got %q, want nothing", got)
			}
		})
	}
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

func TestMetadata(t *testing.T) {
	a := account(3)
	for _, test := range []struct {
		value []byte
		want  bool
	}{
		{a[:], true}, {nil, false}, {a[:19], false}, {append(bytesOf(12), a[:]...), false}, {bytesOf(20), false},
	} {
		if got, ok := replay.User(test.value); ok != test.want || ok && got != a {
			t.Errorf("user %x: got %v, %v", test.value, got, ok)
		}
	}
	for _, test := range []struct {
		value []byte
		want  string // "" for none
	}{
		{nil, ""}, {bytesOf(31), ""}, {bytesOf(33), ""}, {bytesOf(32), "0"}, {append(bytesOf(30), 1, 0), "256"},
	} {
		if got, ok := replay.PrimaryList(test.value); ok != (test.want != "") || got != test.want {
			t.Errorf("primary list %x: got %q, %v, want %q", test.value, got, ok, test.want)
		}
	}
}
