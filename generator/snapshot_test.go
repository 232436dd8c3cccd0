package generator_test

import (
	"bytes"
	stdjson "encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures/graph"
	"github.com/followpress/followpress/fixtures/odd"
)

// A snapshot holds the text of its files, by name.
type snapshot map[string]string

// emptySnapshot has all the tables and no row.
func emptySnapshot() snapshot {
	return snapshot{
		"meta.json":    `{"format":1,"as_of":"2026-11-20T00:00:00Z"}`,
		"lists.ndjson": "", "records.ndjson": "", "accounts.ndjson": "", "events.ndjson": "", "badges.ndjson": "",
	}
}

// A copy of s that has another text of one file.
func (s snapshot) with(name, text string) snapshot {
	s = maps.Clone(s)
	s[name] = text
	return s
}

// adding returns the snapshot with more rows in one table.
func (s snapshot) adding(table string, rows ...string) snapshot {
	name := table + ".ndjson"
	return s.with(name, s[name]+strings.Join(rows, "\n")+"\n")
}

func (s snapshot) without(name string) snapshot {
	s = maps.Clone(s)
	delete(s, name)
	return s
}

// compressed returns the snapshot with its tables as .ndjson.gz or .ndjson.zst.
func (s snapshot) compressed(t testing.TB, ending string) snapshot {
	t.Helper()
	packed := snapshot{}
	for name, text := range s {
		if strings.HasSuffix(name, ".ndjson") {
			name, text = name+ending, odd.Pack(text, ending)
		}
		packed[name] = text
	}
	return packed
}

func (s snapshot) fs() afero.Fs {
	files := fstest.MapFS{}
	for name, text := range s {
		files[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return afero.FromIOFS{FS: files}
}

// write writes the snapshot into a folder of the test.
func (s snapshot) write(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range s {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// syntheticSnapshot returns a graph made by package fixtures/graph.
func syntheticSnapshot(t testing.TB, o graph.Options) snapshot {
	t.Helper()
	files := map[string]*bytes.Buffer{}
	_, err := graph.Write(t.Context(), o, func(name string) (io.WriteCloser, error) {
		files[name] = new(bytes.Buffer)
		return nopCloser{files[name]}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := snapshot{}
	for name, text := range files {
		s[name] = text.String()
	}
	return s
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// A shape is the size of a random snapshot, and the kind of its texts.
type shape struct {
	accounts, lists, records, events, badges int
	hostile                                  bool // every text may hold anything
}

// randomSnapshot makes a valid snapshot that involves every rule of the format.
func randomSnapshot(seed uint64, s shape) snapshot {
	return odd.Snapshot(seed, odd.Shape{
		Accounts: s.accounts, Lists: s.lists, Records: s.records, Events: s.events, Badges: s.badges, Hostile: s.hostile,
	})
}

// quote returns a JSON string as encoding/json writes it.
func quote(text string) string {
	b, err := stdjson.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}
