package spool

import (
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A fullDisk takes some bytes and then fails.
type fullDisk struct {
	*os.File
	left int64
}

func (f *fullDisk) WriteAt(p []byte, at int64) (int, error) {
	n, err := f.File.WriteAt(p[:min(int64(len(p)), f.left-at)], at)
	if err == nil && n < len(p) {
		err = syscall.ENOSPC
	}
	return n, err
}

// Records come back part by part, in order and unchanged, whether they are in memory, in the file,
// or in memory because no file can be made or the disk is full.
func TestSpool(t *testing.T) {
	for _, c := range []struct {
		name    string
		records int // 1 KB each on average
		tmp     func(t *testing.T) string
		inFile  bool
	}{
		{"in memory", 500, (*testing.T).TempDir, false},
		{"in a file", 40_000, (*testing.T).TempDir, true},
		{"full disk", 40_000, (*testing.T).TempDir, true},
		{"no file", 40_000, func(t *testing.T) string { return filepath.Join(t.TempDir(), "absent") }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("TMPDIR", c.tmp(t))
			random := rand.New(rand.NewPCG(1, 2))
			var log strings.Builder
			scratch := New(slog.New(slog.NewTextHandler(&log, nil)), Memory)
			defer scratch.Close()
			if c.name == "full disk" {
				file, err := os.Create(filepath.Join(t.TempDir(), "file"))
				if err != nil {
					t.Fatal(err)
				}
				scratch.file = &fullDisk{file, 1_000_100}
			}
			spool := scratch.List(7)
			want := make([][]string, 7)
			longest := strings.Repeat("x", 3*scratchChunk)
			for i := range c.records {
				part := random.IntN(6) // the last part stays empty
				record := longest[:random.IntN(2000)]
				if i%1000 == 0 {
					record = longest
				}
				spool.Add(part, []byte(record))
				want[part] = append(want[part], record)
			}
			if spool.Records != c.records || scratch.file != nil != c.inFile {
				t.Errorf("got %d records, a file %v, want %d, %v", spool.Records, scratch.file != nil, c.records, c.inFile)
			}
			if most := Memory; c.name == "in a file" && scratch.memory > most {
				t.Errorf("memory: got %d bytes, want at most %d", scratch.memory, most)
			}
			for part := range want {
				var got []string
				for record, err := range spool.all(part) {
					if err != nil {
						t.Fatal(err)
					}
					got = append(got, record)
				}
				if !slices.Equal(got, want[part]) {
					t.Errorf("part %d: got %d other records, want the %d that were added", part, len(got), len(want[part]))
				}
			}
			if warned := strings.Count(log.String(), "TMPDIR"); warned != map[bool]int{true: 1}[c.name == "no file" || c.name == "full disk"] {
				t.Errorf("warned: got %d times, %s", warned, log.String())
			}
			if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
				t.Errorf("the file has a name: %s", left[0].Name())
			}
		})
	}
}

// The stored fields of entries and listed objects come back.
func TestSpooledValues(t *testing.T) {
	spool := New(slog.New(slog.DiscardHandler), Memory).List(1)
	infos := []storage.Info{
		{Key: "a/b", Size: 7, ETag: site.Sum(nil).String(), Modified: time.Unix(1_700_000_000, 5).UTC()},
		{Key: site.Key(strings.Repeat("k", 5000)), ETag: strings.Repeat("e", 300), Size: 1 << 50},
		{},
	}
	for _, info := range infos {
		spool.AddInfo(0, info)
	}
	i := 0
	for info, err := range spool.Infos(0) {
		if err != nil || info != infos[i] || info.Modified.IsZero() != infos[i].Modified.IsZero() {
			t.Errorf("got %v, %v, want %v", info, err, infos[i])
		}
		i++
	}
	spool = New(slog.New(slog.DiscardHandler), Memory).List(1)
	entries := []site.Entry{{Key: "a", Size: 1 << 40, MD5: site.Sum([]byte("a"))}, {Key: site.Key(strings.Repeat("k", 300)), Size: requests.AnySize}, {}}
	for _, e := range entries {
		spool.AddEntry(0, e)
	}
	if got := entriesOf(t, spool); !slices.Equal(got, entries) {
		t.Errorf("got %v, want %v", got, entries)
	}
}

func entriesOf(t *testing.T, s *Spool) (entries []site.Entry) {
	t.Helper()
	for e, err := range s.Entries(0) {
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	return entries
}
