package generator_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/followpress/followpress/fixtures/graph"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/site"
)

// TestWorkersDoNotMatter makes one site with 1, 2 and 7 workers: in memory, as a
// folder and as a tar file.
func TestWorkersDoNotMatter(t *testing.T) {
	t.Parallel()
	s := syntheticSnapshot(t, graph.Options{Accounts: 70, Lists: 60, Records: 1200, Seed: 4})
	dir := t.TempDir()
	o := small
	o.Workers = 1
	want := inMemory(t, s, o)
	if err := check(want); err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{1, 2, 7} {
		o.Workers = workers
		if err := inMemory(t, s, o).Compare(want); err != nil {
			t.Errorf("in memory with %d workers: got another site, want the same: %v", workers, err)
		}
		path := filepath.Join(dir, fmt.Sprint(workers))
		onDisk(t, s, path, o)
		if err := readFolder(t, path).Compare(want); err != nil {
			t.Errorf("folder with %d workers: got another site, want the same: %v", workers, err)
		}
		onDisk(t, s, path+".tar", o)
		if err := readTar(t, path+".tar").Compare(want); err != nil {
			t.Errorf("tar file with %d workers: got another site, want the same: %v", workers, err)
		}
	}
	sameBytes(t, dir, "1.tar", "2.tar", "7.tar")
}

// TestLaterSnapshotEFP: a later snapshot of the same graph changes only objects that show its time,
// and none of an account or a list.
func TestLaterSnapshotEFP(t *testing.T) {
	s := hub(60)
	before, after := inMemory(t, s, smallEFP), inMemory(t, s.with("meta.json", `{"format":1,"as_of":"2026-11-21T03:04:05.678Z"}`), smallEFP)
	c, _ := smallEFP.Config.WithDefaults()
	for key, body := range after {
		if before[key] != body && key != c.RankedKey() && key != site.RootKey && !strings.HasPrefix(string(key), "_manifest/") {
			t.Errorf("%s: got %s at one time, want it unchanged: %s", key, before[key], body)
		}
	}
	if !strings.Contains(after[c.RankedKey()], `"2026-11-21T03:04:05.678Z"`) || len(after) != len(before) {
		t.Errorf("got %d objects instead of %d, or ranked without the time: %.200s", len(after), len(before), after[c.RankedKey()])
	}
}

// sameBytes fails the test unless the files have the same contents.
func sameBytes(t testing.TB, dir string, names ...string) {
	t.Helper()
	var first []byte
	for i, name := range names {
		body, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = body
		}
		if !bytes.Equal(body, first) {
			t.Errorf("%s: got other bytes than %s, want the same", name, names[0])
		}
	}
}

// TestWorkersDoNotMatterAtScale compares the roots of a graph that workers rank and group in many
// pieces.
func TestWorkersDoNotMatterAtScale(t *testing.T) {
	t.Parallel()
	files := syntheticSnapshot(t, graph.Options{Accounts: 8400, Lists: 8400, Records: 70_000, Seed: 5, Added: true}).fs()
	for _, api := range []string{site.APISpec, site.APIEFP} {
		var want []byte
		for _, workers := range []int{1, 7} {
			s, _, err := generator.Open(t.Context(), files, generator.Options{Workers: workers, Config: site.Config{API: api}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Get(t.Context(), site.RootKey)
			if closed := s.Close(); err != nil || closed != nil {
				t.Fatal(err, closed)
			}
			if want == nil {
				want = got
			} else if !bytes.Equal(got, want) {
				t.Errorf("%s with %d workers: got another root, want the same", api, workers)
			}
		}
	}
}
