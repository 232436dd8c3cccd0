package report_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/report"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

var update = flag.Bool("update", false, "write the golden files again")

// day is the date of all reports of the tests.
var day = time.Date(2026, 11, 22, 3, 17, 0, 0, time.UTC)

// A counted site counts the reads of its objects.
type counted struct {
	memsite.Site
	read func(key site.Key)
}

// GetAdmitted implements storage.Reader.
func (s counted) GetAdmitted(ctx context.Context, key site.Key, admit func(context.Context, int64) error) ([]byte, error) {
	if s.read != nil {
		s.read(key)
	}
	body, err := s.Get(ctx, key)
	if err == nil {
		err = admit(ctx, int64(len(body)))
	}
	return body, err
}

// sideOf returns one side of a comparison.
func sideOf(name string, s memsite.Site) report.Side {
	return report.Side{Site: counted{Site: s}, Name: name}
}

// compare returns the report of two comparable sites.
func compare(t testing.TB, from, to memsite.Site, o report.Options) *report.Report {
	t.Helper()
	o.Date = day
	r, err := report.Compare(t.Context(), sideOf("old", from), sideOf("new", to), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// refused returns the error of a comparison.
func refused(t testing.TB, from, to memsite.Site) string {
	t.Helper()
	r, err := report.Compare(t.Context(), sideOf("old", from), sideOf("new", to), report.Options{})
	if err == nil {
		t.Fatalf("got a report, want an error: %s", r)
	}
	return err.Error()
}

// A snapshot holds the text of tables by file, unpacked.
type snapshot map[string]string

func read(t testing.TB, fsys fs.FS) snapshot {
	t.Helper()
	s := snapshot{}
	names, err := fs.Glob(fsys, "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		body, err := fs.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		if plain, packed := strings.CutSuffix(name, ".gz"); packed {
			unpacked, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if body, err = io.ReadAll(unpacked); err != nil {
				t.Fatal(err)
			}
			name = plain
		}
		s[name] = string(body)
	}
	return s
}

// generate makes the site of a snapshot.
func generate(t testing.TB, s snapshot, c site.Config) memsite.Site {
	t.Helper()
	files := fstest.MapFS{}
	for name, text := range s {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	made, _, err := generator.ToMemory(t.Context(), afero.FromIOFS{FS: files}, generator.Options{Config: c, SkipInvalid: true})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := memsite.Read(made)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// hostileName would be markup if it were not escaped, and reverses the text after it.
const hostileName = "<script>alert('\u202e')</script>`|[x](javascript:1)@all"

// demo returns the site of the demo, and that of a changed copy.
func demo(t testing.TB, api string) (from, to memsite.Site) {
	t.Helper()
	before := read(t, fixtures.Demo())
	after := snapshot{}
	for name, text := range before {
		after[name] = text
	}
	records := slices.Collect(strings.Lines(before["records.ndjson"]))
	var kept []string
	for i, row := range records {
		switch {
		case i%11 == 4 || strings.HasPrefix(row, `{"token_id":"41"`):
		case i%29 == 7:
			kept = append(kept, strings.Replace(row, `"tags":[`, `"tags":["new tag",`, 1))
		default:
			kept = append(kept, row)
		}
	}
	for _, list := range []string{"4", "7", "9"} {
		kept = append(kept, `{"token_id":"`+list+`","version":1,"record_type":"address","data":"0x00000000000000000000000000000000000000aa","tags":["`+"<b>|*bold*"+`"]}`+"\n")
	}
	kept = append(kept, `{"token_id":"9000","version":1,"record_type":"address","data":"0x974b780c0cfb5343cbb4a44384cf9a10f80eb9cd"}`+"\n")
	after["records.ndjson"] = strings.Join(kept, "")
	after["lists.ndjson"] += `{"token_id":"9000","owner":"0x00000000000000000000000000000000000000aa"}` + "\n"
	var lists []string
	for row := range strings.Lines(after["lists.ndjson"]) {
		if !strings.HasPrefix(row, `{"token_id":"41"`) {
			lists = append(lists, row)
		}
	}
	after["lists.ndjson"] = strings.Join(lists, "")
	after["accounts.ndjson"] = strings.ReplaceAll(after["accounts.ndjson"], `"name":"miralund.eth"`, `"name":"`+hostileName+`"`)
	after["accounts.ndjson"] = strings.ReplaceAll(after["accounts.ndjson"], `"avatar":"https://img.example/avatars/tobi.png"`, `"avatar":"javascript:alert(1)"`)
	after["meta.json"] = `{"format":1,"as_of":"2026-11-22T00:00:00Z"}`
	c := site.Config{API: api}
	return generate(t, before, c), generate(t, after, c)
}

// golden compares text with a golden file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got %d bytes that differ from the %d of the golden file; look at what -update changes:\n%.2000s", name, len(got), len(want), got)
	}
}

// stored puts a site into a folder as a bucket.
func stored(t testing.TB, s memsite.Site) *storage.Local {
	t.Helper()
	bucket := storage.OpenLocal(t.TempDir())
	bucket.NoSync = true
	for key, body := range s {
		o := storage.Object{Entry: site.Entry{Key: key, Size: int64(len(body)), MD5: site.Sum([]byte(body))}, Body: []byte(body)}
		if _, err := bucket.Put(t.Context(), o, storage.Always); err != nil {
			t.Fatal(err)
		}
	}
	return bucket
}
