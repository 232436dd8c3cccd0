package generator_test

import (
	"archive/tar"
	"bufio"
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
)

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
