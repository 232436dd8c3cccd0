package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/databases"
	siteop "github.com/followpress/followpress/site/op"
)

// TestOpsOfPartialEvents: if events begin later than records, as in v2, the earlier records are
// inferred from the tables, so that removals and tags of old records are visible.
func TestOpsOfPartialEvents(t *testing.T) {
	server := databases.Start(t)
	const add, remove, tag, untag = 1, 2, 3, 4
	h := chain(mint(0, 1), mint(1, 2),
		[]history.Log{op(0, add, 7, ""), op(0, add, 8, ""), op(0, tag, 8, "old"), op(0, add, 9, ""), op(1, add, 7, "")}, // not in the events
		[]history.Log{
			op(0, remove, 7, ""), op(0, untag, 8, "old"), op(0, tag, 8, "new"), op(0, add, 5, ""), op(0, add, 5, ""), op(0, tag, 6, "aside"),
			op(1, remove, 3, ""), op(1, add, 4, ""), op(1, remove, 4, ""),
		})
	show := func(ops []history.VisibleOp) string {
		var lines []string
		for _, o := range ops {
			parsed, ignored := siteop.Parse([]byte(o.Data))
			if ignored != "" {
				t.Fatal(ignored)
			}
			text := fmt.Sprintf("%s %s %d", o.Token, parsed.Code, parsed.Data()[19])
			if parsed.Tag != nil {
				text += "#" + string(parsed.Tag)
			}
			lines = append(lines, text)
		}
		return strings.Join(lines, "; ")
	}
	const late = "0 unfollow 7; 0 untag 8#old; 0 tag 8#new; 0 follow 5; "
	for _, c := range []struct {
		name, change, want string
	}{
		{"all events", "", "0 follow 7; 0 follow 8; 0 tag 8#old; 0 follow 9; 1 follow 7; " + late + "1 follow 4; 1 unfollow 4"},
		// Nobody can tell whether list 1 held account 3.
		{"late events", fmt.Sprintf("DELETE FROM events WHERE block_number <= %d", h.Blocks[2].Number), late + "1 unfollow 3; 1 follow 4; 1 unfollow 4"},
		{"no events", "DELETE FROM events", ""},
		{"no table of events", "DROP TABLE events", "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dsn := filled(t, server, h, false)
			databases.Exec(t, dsn, c.change)
			got := read(t, dsn)
			text := show(got.ops)
			if got.ops == nil {
				text = "none"
			}
			if text != c.want {
				t.Errorf("got %s, want %s", text, c.want)
			}
			switch from := got.graph.OpsFrom; {
			case (from == nil) != (got.ops == nil):
				t.Errorf("complete from %v, want that if there are events", from)
			case len(got.ops) > 0 && from.UnixMilli() > got.ops[0].Time:
				t.Errorf("complete from %v, after the first operation", from)
			case len(got.ops) == 0 && from != nil && !from.Equal(got.graph.AsOf):
				t.Errorf("complete from %v, want from the end", from)
			}
		})
	}
}
