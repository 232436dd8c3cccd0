package replay_test

import (
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/replay"
)

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
