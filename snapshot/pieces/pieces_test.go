package pieces

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

func TestMain(m *testing.M) {
	tempdir.InMemory()
	m.Run()
}

// built makes the pieces of a table of records.
func built(t *testing.T, rows []string) map[site.SHA256]Piece {
	t.Helper()
	files := afero.NewMemMapFs()
	if err := afero.WriteFile(files, "records.ndjson", []byte(strings.Join(rows, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var digest snapshot.Digest
	if err := digest.AddTable(t.Context(), files, snapshot.TableRecords, true); err != nil {
		t.Fatal(err)
	}
	root := &site.Root{Inputs: &site.Inputs{Tables: map[string]site.SHA256{"records": digest.Sum()}}}
	source, bodies := Source{Snapshot: files}, map[site.SHA256]Piece{}
	_, err := source.Build(t.Context(), root, func(p Piece, body []byte) error {
		bodies[p.SHA256] = p
		text, err := p.unpack(body)
		if err == nil && (int64(len(text)) != p.Text || p.SHA256 != site.Sum256(body)) {
			err = fmt.Errorf("a piece of %d bytes of text: got %+v", len(text), p)
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

// TestBounds: a piece never has more text than an index allows, whatever the rows are.
func TestBounds(t *testing.T) {
	long := fmt.Sprintf(`{"token_id":"1","version":1,"record_type":"x","data":"0x%s"}`, strings.Repeat("a", 15<<20))
	bodies := built(t, []string{record(1, 1), long, strings.Replace(long, "0xa", "0xb", 1), record(1, 2)})
	for _, p := range bodies {
		if p.Text > maxPieceText || p.Bytes > maxPieceBytes {
			t.Errorf("got %+v", p)
		}
	}
}

// unsigned yields an object that nobody has signed, and another.
type unsigned struct{}

func (unsigned) Each(_ context.Context, found func(site.Key, []byte) error) error {
	return errors.Join(found("details/1", nil), found("details/2", []byte("signed")))
}

func TestUnsignedObjectsAreNoInputs(t *testing.T) {
	r := Record(unsigned{})
	defer r.Close()
	if err := r.Each(t.Context(), func(site.Key, []byte) error { return nil }); err != nil {
		t.Fatal(err)
	}
	var keys []site.Key
	_, err := r.each(func(p Piece, body []byte) error {
		text, err := p.unpack(body)
		return errors.Join(err, eachObject(text, func(key site.Key, _ []byte) error {
			keys = append(keys, key)
			return nil
		}))
	})
	if err != nil || !slices.Equal(keys, []site.Key{"details/2"}) {
		t.Errorf("got the inputs %q and %v, want details/2", keys, err)
	}
}

// TestOther: a snapshot that does not match the root is rejected.
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

// TestParseIndex: an index whose pieces are like none is refused before one is read.
func TestParseIndex(t *testing.T) {
	one := Piece{SHA256: site.Sum256([]byte("1")), Bytes: 10, Text: 20}
	other := Piece{SHA256: site.Sum256([]byte("2")), Bytes: 10, Text: 20}
	with := func(change func(*Piece)) Piece {
		p := one
		change(&p)
		return p
	}
	tables := func(all ...Piece) Index { return Index{Format: format, Tables: map[string][]Piece{"lists": all}} }
	for name, c := range map[string]struct {
		index Index
		ok    bool
	}{
		"two pieces":                     {tables(one, other), true},
		"one piece twice":                {tables(one, one), true},
		"one piece with two sizes":       {tables(one, with(func(p *Piece) { p.Bytes++ })), false},
		"one piece with two texts":       {tables(one, with(func(p *Piece) { p.Text++ })), false},
		"the same in another table":      {Index{Format: format, Tables: map[string][]Piece{"lists": {one}, "records": {with(func(p *Piece) { p.Text++ })}}}, false},
		"the most text":                  {tables(with(func(p *Piece) { p.Text = maxPieceText })), true},
		"more text":                      {tables(with(func(p *Piece) { p.Text = maxPieceText + 1 })), false},
		"the most bytes":                 {tables(with(func(p *Piece) { p.Bytes = maxPieceBytes })), true},
		"more bytes":                     {tables(with(func(p *Piece) { p.Bytes = maxPieceBytes + 1 })), false},
		"no text":                        {tables(with(func(p *Piece) { p.Text = 0 })), false},
		"no bytes":                       {tables(with(func(p *Piece) { p.Bytes = 0 })), false},
		"ranks with the most text":       {Index{Format: format, Ranks: &Piece{SHA256: one.SHA256, Bytes: 10, Text: maxRanksText}}, true},
		"ranks with more":                {Index{Format: format, Ranks: &Piece{SHA256: one.SHA256, Bytes: 10, Text: maxRanksText + 1}}, false},
		"another format":                 {Index{Format: format + 1}, false},
		"refreshed data like no piece":   {Index{Format: format, Refreshed: []Piece{{}}}, false},
		"refreshed data with more texts": {Index{Format: format, Tables: map[string][]Piece{"lists": {one}}, Refreshed: []Piece{with(func(p *Piece) { p.Text++ })}}, false},
	} {
		text, err := c.index.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseIndex(text); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrIndex) {
			t.Errorf("%s: got %v, want one: %t", name, err, !c.ok)
		}
	}
}

// TestMatches: an index has the parts named by the root, and not much more text than the site or
// the fetched objects.
func TestMatches(t *testing.T) {
	digest := site.Sum256([]byte("x"))
	piece := func(n byte, bytes, text int64) Piece { return Piece{SHA256: site.SHA256{n}, Bytes: bytes, Text: text} }
	const kib, mib = 1 << 10, 1 << 20
	small := piece(1, 10, 20)
	for name, c := range map[string]struct {
		inputs site.Inputs
		index  Index
		shown  int64 // bytes of the site
		ok     bool
	}{
		"tables":                         {site.Inputs{Tables: map[string]site.SHA256{"lists": digest}}, Index{Tables: map[string][]Piece{"lists": {small}}}, 0, true},
		"a table less":                   {site.Inputs{Tables: map[string]site.SHA256{"lists": digest}}, Index{}, 0, false},
		"a table more":                   {site.Inputs{}, Index{Tables: map[string][]Piece{"lists": {small}}}, 0, false},
		"ranks":                          {site.Inputs{Ranks: &digest}, Index{Ranks: &small}, 0, true},
		"no ranks":                       {site.Inputs{Ranks: &digest}, Index{}, 0, false},
		"ranks that the root lacks":      {site.Inputs{}, Index{Ranks: &small}, 0, false},
		"refreshed data":                 {site.Inputs{Refreshed: &digest}, Index{Refreshed: []Piece{small}}, 0, true},
		"none, as nothing was merged":    {site.Inputs{Refreshed: &digest}, Index{}, 0, true},
		"such that the root lacks":       {site.Inputs{}, Index{Refreshed: []Piece{small}}, 0, false},
		"as much as any site has":        {site.Inputs{Refreshed: &digest}, Index{Refreshed: []Piece{piece(1, kib, alwaysText)}}, 0, true},
		"far more than the site":         {site.Inputs{Refreshed: &digest}, Index{Refreshed: []Piece{piece(1, 64*mib, alwaysText+mib)}}, 0, false},
		"far more than is fetched":       {site.Inputs{Refreshed: &digest}, Index{Refreshed: []Piece{piece(1, kib, alwaysText+mib)}}, 1 << 40, false},
		"in proportion to both":          {site.Inputs{Refreshed: &digest}, Index{Refreshed: []Piece{piece(1, 8*kib, alwaysText+mib)}}, mib, true},
		"a piece that is named 99 times": {site.Inputs{Refreshed: &digest}, Index{Refreshed: slices.Repeat([]Piece{piece(1, 2*kib, mib)}, 99)}, 1 << 40, false},
		"99 pieces":                      {site.Inputs{Refreshed: &digest}, Index{Refreshed: ninetyNine(piece)}, 1 << 40, true},
	} {
		root := &site.Root{Inputs: &c.inputs, Counts: site.Counts{Bytes: c.shown}}
		if err := c.index.matches(root); (err == nil) != c.ok {
			t.Errorf("%s: got %v, want an error: %t", name, err, !c.ok)
		}
	}
}

func ninetyNine(piece func(n byte, bytes, text int64) Piece) (all []Piece) {
	for n := range byte(99) {
		all = append(all, piece(n, 2<<10, 1<<20))
	}
	return all
}

// TestRanksAreThoseOfTheRoot: the index may name any piece.
func TestRanksAreThoseOfTheRoot(t *testing.T) {
	p, err := newPacker(nil)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte("ranks")
	body := p.zstd.EncodeAll(text, nil)
	piece := Piece{SHA256: site.Sum256(body), Bytes: int64(len(body)), Text: int64(len(text))}
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, piecesFolder), 0o755), os.WriteFile(filepath.Join(dir, piecesFolder, piece.SHA256.String()), body, 0o644)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"ranks": nil, "others": ErrAltered} {
		digest := site.Sum256([]byte(name))
		f := &Fetched{Index: &Index{Ranks: &piece}, dir: dir, root: &site.Root{Inputs: &site.Inputs{Ranks: &digest}}}
		if got, err := f.Ranks(); !errors.Is(err, want) || err == nil && string(got) != "ranks" {
			t.Errorf("the root names the %s: got %q and %v, want %v", name, got, err, want)
		}
	}
}

// TestOwnFolder: a folder with foreign files is not used.
func TestOwnFolder(t *testing.T) {
	for name, c := range map[string]struct {
		file string // in the folder
		want error
	}{
		"nothing":                        {"", nil},
		"an empty folder":                {ownFolder + "/", nil},
		"a folder of somebody's":         {ownFolder + "/notes.txt", ErrNotOwn},
		"one of an earlier run":          {ownFolder + "/" + ownMarker, nil},
		"a folder in the marker's place": {ownFolder + "/" + ownMarker + "/x", ErrNotOwn},
		"a file":                         {ownFolder, ErrNotOwn},
	} {
		dir := t.TempDir()
		var err error
		if path := filepath.Join(dir, c.file); strings.HasSuffix(c.file, "/") {
			err = os.Mkdir(path, 0o755)
		} else if c.file != "" {
			err = errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Own(dir); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if c.want == nil {
			if _, err := Own(dir); err != nil {
				t.Errorf("%s, again: got %v", name, err)
			}
		}
	}
}
