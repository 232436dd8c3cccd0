package generator_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures/graph"
	"github.com/followpress/followpress/fixtures/odd"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
)

// small is a configuration with leaderboards small enough for a tiny graph. Syncing would wait for
// the files of all other tests; only TestPowerFailure does it.
var small = generator.Options{Config: site.Config{LeaderboardMax: 10}, NoSync: true}

// smallEFP is small for the API efp.
var smallEFP = generator.Options{Config: site.Config{API: site.APIEFP, LeaderboardMax: 10}, NoSync: true}

type objects = memsite.Site

// stages is a Progress that calls a function as each stage begins.
type stages func(name string)

func (s stages) Stage(name string, _ int64) { s(name) }
func (stages) AddBytes(int64, int64)        {}

// inMemory makes the site of a snapshot in memory.
func inMemory(t testing.TB, s snapshot, o generator.Options) objects {
	t.Helper()
	files, _, err := generator.ToMemory(t.Context(), s.fs(), o)
	if err != nil {
		t.Fatal(err)
	}
	return readTree(t, files)
}

// onDisk makes the site of a snapshot at path.
func onDisk(t testing.TB, s snapshot, path string, o generator.Options) *summary.Report {
	t.Helper()
	report, err := generator.ToPath(t.Context(), s.fs(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// readFolder reads every file below a folder.
func readFolder(t testing.TB, path string) objects {
	t.Helper()
	return readTree(t, afero.NewBasePathFs(afero.NewOsFs(), path))
}

func readTree(t testing.TB, files afero.Fs) objects {
	t.Helper()
	o, err := memsite.Read(files)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// readTar reads a tar file and fails on anything in it that is not a plain object.
func readTar(t testing.TB, path string) objects {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	o := objects{}
	last := ""
	for archive := tar.NewReader(file); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%s: got %v, want a tar file", path, err)
		}
		body, err := io.ReadAll(archive)
		if err != nil {
			t.Fatalf("%s: %s: got %v, want its bytes", path, header.Name, err)
		}
		if _, twice := o[site.Key(header.Name)]; twice || header.Typeflag != tar.TypeReg || header.Mode != 0o644 {
			t.Fatalf("%s: %s: got a repeated or irregular entry, want a plain file once: %+v", path, header.Name, header)
		}
		o[site.Key(header.Name)] = string(body)
		last = header.Name
	}
	if last != string(site.RootKey) {
		t.Errorf("last entry of %s: got %s, want the root, for readers of a stream", path, last)
	}
	return o
}

// check tests the invariants of every site: the root and the manifest name exactly the existing
// objects, with their sizes and digests, and every key has a route.
func check(o objects) error {
	root, err := site.ParseRoot([]byte(o[site.RootKey]))
	if err != nil {
		return err
	}
	again, err := root.Encode()
	if err != nil {
		return err
	}
	if string(again) != o[site.RootKey] {
		return fmt.Errorf("the root comes back as %s\nwant %s", again, o[site.RootKey])
	}
	known := map[site.Key]bool{site.RootKey: true}
	counts := root.Counts
	digests := shards.NewDigests(root.ShardDigits)
	for _, shard := range site.HashPrefixes(root.ShardDigits) {
		key := site.ManifestKey(shard)
		known[key] = true
		m, err := shards.Parse(shard, []byte(o[key]))
		if err != nil {
			return err
		}
		text := m.Append(nil)
		if again := shards.Pack(text); string(again) != o[key] {
			return fmt.Errorf("%s comes back as another object", key)
		}
		if err := digests.Set(shard, site.Sum256(text)); err != nil {
			return err
		}
		for _, e := range m.Objects {
			known[e.Key] = true
			counts.Objects--
			counts.Bytes -= e.Size
			body, ok := o[e.Key]
			if want := site.NewEntry(e.Key, []byte(body)); !ok || e != want {
				return fmt.Errorf("%s says %+v of an object that is %+v (there: %t)", key, e, want, ok)
			}
			if in := site.ManifestShard(e.Key, root.ShardDigits); in != shard {
				return fmt.Errorf("%s holds %q, which belongs into shard %s", key, e.Key, in)
			}
		}
	}
	named, indexes := digests.Tree()
	if !maps.Equal(named, root.Manifest) {
		return fmt.Errorf("the root does not name the manifest")
	}
	for _, index := range indexes {
		key := site.ManifestKey(index.Name)
		if known[key] = true; o[key] != string(index.Body) {
			return fmt.Errorf("%s does not name its shards", key)
		}
	}
	if counts.Objects != 0 || counts.Bytes != 0 {
		return fmt.Errorf("the root counts %d objects and %d bytes more than there are", counts.Objects, counts.Bytes)
	}
	for key := range o {
		if _, ok := root.Config.RouteOf(key); !ok || !key.Valid() {
			return fmt.Errorf("no route has the key %q", key)
		}
		if !known[key] {
			return fmt.Errorf("%q is in no manifest", key)
		}
	}
	return nil
}

// A fileState tells whether a file was touched.
type fileState struct {
	inode   uint64
	changed time.Time // modification time of the contents
	body    string
}

// stateOf returns the state of every file below a folder, and of the folder.
func stateOf(t testing.TB, root string) map[string]fileState {
	t.Helper()
	state := map[string]fileState{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		s := fileState{inode: info.Sys().(*syscall.Stat_t).Ino}
		if entry.Type().IsRegular() {
			body, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			s.body, s.changed = string(body), info.ModTime()
		}
		state[strings.TrimPrefix(path, root)] = s
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// untouched fails the test if anything below a folder has changed.
func untouched(t testing.TB, root string, before map[string]fileState) {
	t.Helper()
	after := stateOf(t, root)
	var touched []string
	for path := range after {
		if _, ok := before[path]; !ok {
			touched = append(touched, path+" was not there before")
		}
	}
	for path, was := range before {
		if is, ok := after[path]; !ok {
			touched = append(touched, path+" is gone")
		} else if is != was {
			touched = append(touched, path+" is another file, or was written to")
		}
	}
	if len(touched) > 0 {
		slices.Sort(touched)
		t.Errorf("%s: got %d changes, such as %s, want none", root, len(touched), touched[0])
	}
}

// alone fails the test if there is anything else next to a path, such as a work folder left behind.
func alone(t testing.TB, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() != filepath.Base(path) {
			t.Errorf("got %s left next to %s, want nothing", entry.Name(), path)
		}
	}
}

// wantError fails the test unless err is one line that holds every text.
func wantError(t testing.TB, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("got no error, want one with %q", texts)
		return
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error: got %q, want one line", err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error: got %q, want %q in it", err, text)
		}
	}
}

// manifestText returns the text of an object of the manifest.
func manifestText(t testing.TB, body string) string {
	t.Helper()
	r, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

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
