package generator_test

import (
	"archive/tar"
	"bufio"
	"cmp"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
)

var update = flag.Bool("update", false, "rewrite the sites in testdata/golden")

// TestGolden compares whole sites with reviewed ones. Each file holds a snapshot, an explanation,
// and the site. After an intended change:
//
//	go test ./generator -run Golden -update && git diff generator/testdata
func TestGolden(t *testing.T) {
	names, err := filepath.Glob("testdata/golden/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatalf("golden files: got none, want some: %v", err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			body, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			comment, files := parseArchive(string(body))
			s, want := snapshot{}, objects{}
			for name, text := range files {
				if key, ok := strings.CutPrefix(name, "site/"); ok {
					text = strings.TrimSuffix(text, "\n")
					if strings.HasPrefix(key, string(site.ManifestKey(""))) {
						text = string(shards.Pack([]byte(text)))
					}
					want[site.Key(key)] = text
				} else {
					s[strings.TrimPrefix(name, "snapshot/")] = text
				}
			}
			var got objects
			if strings.HasPrefix(filepath.Base(name), "efp") {
				got = withoutTexts(inMemory(t, s, smallEFP))
			} else {
				got = inMemory(t, s, small)
			}
			if *update {
				overwrite(t, name, formatArchive(t, comment, s, got))
			} else if err := got.Compare(want); err != nil {
				t.Errorf("got another site than the golden one, want the same: %v\n(to accept: go test ./generator -run Golden -update)", err)
			}
		})
	}
}

// withoutTexts drops objects that do not depend on the snapshot, and the manifest and the root,
// which list them.
func withoutTexts(o objects) objects {
	o = o.WithoutIndex()
	maps.DeleteFunc(o, func(key site.Key, _ string) bool {
		return key == site.OpenAPIKey || strings.HasPrefix(string(key), string(site.ClientKey("")))
	})
	return o
}

// parseArchive reads a comment and files, each after a line of the form "-- name --".
func parseArchive(body string) (comment string, files map[string]string) {
	files = map[string]string{}
	name := ""
	for line := range strings.Lines(body) {
		if next, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(next, " --\n") {
			name = strings.TrimSuffix(next, " --\n")
			files[name] = ""
		} else if name == "" {
			comment += line
		} else {
			files[name] += line
		}
	}
	return comment, files
}

// formatArchive writes the format of parseArchive: the tables unchanged, then the site, the most
// interesting objects first.
func formatArchive(t testing.TB, comment string, s snapshot, o objects) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(comment)
	for _, name := range []string{"meta.json", "lists.ndjson", "accounts.ndjson", "records.ndjson", "events.ndjson", "badges.ndjson", "recommended.ndjson"} {
		if text, ok := s[name]; ok {
			b.WriteString("-- snapshot/" + name + " --\n" + text)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(o), func(a, b site.Key) int {
		return cmp.Or(cmp.Compare(rankInArchive(a), rankInArchive(b)), cmp.Compare(a, b))
	}) {
		body := o[key]
		if strings.HasPrefix(string(key), string(site.ManifestKey(""))) {
			body = manifestText(t, body) // for reviewers
		}
		b.WriteString("-- site/" + string(key) + " --\n" + body + "\n")
	}
	return b.String()
}

// rankInArchive puts the answers of the API before the search shards and the rest, and
// the manifest last.
func rankInArchive(key site.Key) int {
	for i, prefix := range []string{"_unknown/", "_search/", "_variants/", "_errors/", "_site", "_manifest/"} {
		if strings.HasPrefix(string(key), prefix) {
			return i + 1
		}
	}
	return 0
}

// rootsFile has a line for each site: the snapshot, the API, with or without pages, and the MD5 of
// the root.
const rootsFile = "testdata/roots.txt"

// TestRoots keeps sites stable: a root determines its whole site, so a code change without an
// effect on answers changes no line of testdata/roots.txt. SNAPSHOT_DIR names another snapshot,
// identified by its folder name (make test-equal). After an intended change:
//
//	go test ./generator -run Roots -update && git diff generator/testdata/roots.txt
func TestRoots(t *testing.T) {
	snapshots := committedSnapshots(t)
	if folder := os.Getenv("SNAPSHOT_DIR"); folder != "" {
		snapshots[filepath.Base(folder)] = os.DirFS(folder)
	}
	want := readRoots(t)
	got := maps.Clone(want)
	for name, files := range snapshots {
		for variant, config := range map[string]site.Config{
			site.APISpec: {API: site.APISpec}, site.APIEFP: {API: site.APIEFP}, "efp-pages": paged(generator.Options{Config: site.Config{API: site.APIEFP}}).Config,
		} {
			of := name + " " + variant
			got[of] = rootOf(t, files, config).String()
			if got[of] != want[of] && !*update {
				t.Errorf("%s: got the root %s, want %q\n(to accept: go test ./generator -run Roots -update)", of, got[of], want[of])
			}
		}
	}
	if *update {
		var lines strings.Builder
		for _, of := range slices.Sorted(maps.Keys(got)) {
			fmt.Fprintln(&lines, of, got[of])
		}
		overwrite(t, rootsFile, lines.String())
	}
}

// rootOf makes a site without the explorer, whose bundle depends on its libraries.
func rootOf(t *testing.T, files fs.FS, config site.Config) site.MD5 {
	t.Helper()
	out := filepath.Join(t.TempDir(), "site.tar")
	o := generator.Options{Config: config, NoSync: true}
	if _, err := generator.ToPath(t.Context(), afero.FromIOFS{FS: files}, out, o); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for archive := tar.NewReader(file); ; {
		header, err := archive.Next()
		if err != nil {
			t.Fatalf("look for the root: %v", err)
		}
		if header.Name == string(site.RootKey) {
			body, err := io.ReadAll(archive)
			if err != nil {
				t.Fatal(err)
			}
			return site.Sum(body)
		}
	}
}

// committedSnapshots returns the snapshots below fixtures.
func committedSnapshots(t *testing.T) map[string]fs.FS {
	t.Helper()
	all := map[string]fs.FS{"demo": fixtures.Demo()}
	for name, cases := range map[string]fs.FS{"conformance": fixtures.Conformance(), "conformance-efp": fixtures.ConformanceEFP()} {
		files, err := fs.Sub(cases, "snapshot")
		if err != nil {
			t.Fatal(err)
		}
		all[name] = files
	}
	return all
}

// readRoots reads rootsFile by snapshot and API.
func readRoots(t *testing.T) map[string]string {
	t.Helper()
	file, err := os.Open(rootsFile)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	roots := map[string]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		at := strings.LastIndexByte(lines.Text(), ' ')
		roots[lines.Text()[:at]] = lines.Text()[at+1:]
	}
	return roots
}
