package pieces

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// built makes the pieces of a table of records.
func built(t *testing.T, rows []string) map[site.SHA256]Piece {
	t.Helper()
	files := afero.NewMemMapFs()
	if err := afero.WriteFile(files, "records.ndjson", []byte(strings.Join(rows, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	digest, err := snapshot.TableDigest(t.Context(), files, snapshot.TableRecords, true)
	if err != nil {
		t.Fatal(err)
	}
	root := &site.Root{Inputs: &site.Inputs{Tables: map[string]site.SHA256{"records": digest}}}
	source, bodies := Source{Snapshot: files}, map[site.SHA256]Piece{}
	_, err = source.Build(t.Context(), root, func(p Piece, body []byte) error {
		bodies[p.SHA256] = p
		text, err := p.unpack(body)
		if err == nil && (int64(len(text)) != p.Text || p.SHA256 != site.Sum256(body)) {
			err = fmt.Errorf("a piece of %d bytes of text says %+v", len(text), p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bodies
}

func record(list, about int) string {
	return fmt.Sprintf(`{"token_id":"%d","version":1,"record_type":"address","data":"0x%040x"}`, list, about*7919)
}

// TestFewPiecesChange: a row that is added, changed or removed, wherever it is, changes one piece or two.
func TestFewPiecesChange(t *testing.T) {
	const rows = 60_000
	var all []string
	for i := range rows {
		all = append(all, record(1+i/50, i))
	}
	before := built(t, all)
	if len(before) < 8 || len(before) > 60 {
		t.Fatalf("got %d pieces of %d rows, want about one for 500 KiB", len(before), rows)
	}
	for name, changed := range map[string][]string{
		"added at the beginning": append([]string{record(1, 1<<40)}, all...),
		"added in between":       append(append(append([]string{}, all[:rows/3]...), record(1+rows/3/50, 1<<40)), all[rows/3:]...),
		"added at the end":       append(append([]string{}, all...), record(rows, 1<<40)),
		"removed":                append(append([]string{}, all[:rows/2]...), all[rows/2+1:]...),
		"changed":                append(append(append([]string{}, all[:rows/4]...), record(1+rows/4/50, 1<<40)), all[rows/4+1:]...),
	} {
		t.Run(name, func(t *testing.T) {
			after := built(t, changed)
			put := 0
			for digest := range after {
				if _, ok := before[digest]; !ok {
					put++
				}
			}
			if put < 1 || put > 2 {
				t.Errorf("%d of %d pieces are new, want one or two", put, len(after))
			}
		})
	}
}

// TestBounds: a piece has no more text than an index may say, whatever the rows are.
func TestBounds(t *testing.T) {
	long := fmt.Sprintf(`{"token_id":"1","version":1,"record_type":"x","data":"0x%s"}`, strings.Repeat("a", 15<<20))
	bodies := built(t, []string{record(1, 1), long, strings.Replace(long, "0xa", "0xb", 1), record(1, 2)})
	for _, p := range bodies {
		if p.Text > maxPieceText || p.Bytes > maxPieceBytes {
			t.Errorf("got %+v", p)
		}
	}
}

// TestOther: a snapshot that is not the one of the root is refused.
func TestOther(t *testing.T) {
	files := afero.NewMemMapFs()
	if err := afero.WriteFile(files, "lists.ndjson", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]*site.Inputs{
		"no inputs":     nil,
		"another table": {Tables: map[string]site.SHA256{"lists": site.Sum256([]byte("x"))}},
		"refreshed":     {Refreshed: &site.SHA256{}},
		"ranks":         {Ranks: &site.SHA256{}},
	} {
		source := Source{Snapshot: files}
		if _, err := source.Build(t.Context(), &site.Root{Inputs: in}, func(Piece, []byte) error { return nil }); err == nil || !strings.Contains(err.Error(), ErrOther.Error()) {
			t.Errorf("%s: got %v, want %v", name, err, ErrOther)
		}
	}
}
