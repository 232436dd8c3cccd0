package explorer

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
)

// largest is the size limit of the gzipped first view.
const largest = 48 << 10

func TestNames(t *testing.T) {
	hashed := regexp.MustCompile(`^[a-z]+-[A-Z0-9]{8}\.(js|css)$`)
	last := ""
	for _, f := range Files(site.Config{Explorer: true}) {
		if f.Name != Page && f.Name != Worker && !hashed.MatchString(f.Name) {
			t.Errorf("got the name %s, want %s, %s or one like %s", f.Name, Page, Worker, hashed)
		}
		if f.Name <= last {
			t.Errorf("got %s after %s, want the names sorted", f.Name, last)
		}
		last = f.Name
	}
}

// The first view is the page and all files that it names.
func TestFirstView(t *testing.T) {
	bodies := map[string][]byte{}
	for _, f := range Files(site.Config{Explorer: true}) {
		bodies[f.Name] = f.Body
	}
	names := regexp.MustCompile(`(?:href|src)="([a-z]+-[A-Z0-9]{8}\.\w+)"`).FindAllSubmatch(bodies[Page], -1)
	total := gzipped(t, bodies[Page])
	for _, name := range names {
		body, ok := bodies[string(name[1])]
		if !ok {
			t.Fatalf("the page names %s, which is no file", name[1])
		}
		total += gzipped(t, body)
	}
	t.Logf("%d bytes in %d files", total, len(names)+1)
	if len(names) < 2 || total > largest {
		t.Errorf("first view: got %d bytes gzipped in %d files, want at most %d, and a script and a style at least", total, len(names)+1, largest)
	}
	if bytes.Contains(bodies[Page], []byte("<script>")) || bytes.Contains(bodies[Page], []byte("style=")) {
		t.Error("the page has an inline script or style, which its policy forbids")
	}
}

// Files end with the licenses of the libraries in them, each once.
func TestLicences(t *testing.T) {
	found := map[string]bool{}
	for _, f := range Files(site.Config{Explorer: true}) {
		in := map[string]bool{}
		for _, match := range regexp.MustCompile(`/\*! (\S+)\n`).FindAllSubmatch(f.Body, -1) {
			library := string(match[1])
			text, err := sources.ReadFile("lib/" + library + "/LICENSE")
			if err != nil {
				t.Fatal(err)
			}
			if in[library] || !bytes.Contains(f.Body, bytes.TrimSpace(text)) {
				t.Errorf("%s: want the whole license of %s, once", f.Name, library)
			}
			in[library], found[library] = true, true
		}
	}
	if !found["preact"] || !found["uplot"] {
		t.Errorf("got the licences of %v, want those of preact and uplot among them", found)
	}
}

func gzipped(t *testing.T, body []byte) int {
	t.Helper()
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(body); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return packed.Len()
}

// The copies of libraries have the versions in package-lock.json.
func TestLibraries(t *testing.T) {
	servers.Wanted(t)
	copies := 0
	err := fs.WalkDir(sources, "lib", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		copies++
		got, err := sources.ReadFile(name)
		if err != nil {
			return err
		}
		want, err := os.ReadFile(filepath.Join("node_modules", strings.TrimPrefix(name, "lib/")))
		if err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: differs from the package's file; copy it again", name)
		}
		return nil
	})
	if err != nil || copies < len(libraries)-2 {
		t.Errorf("compared %d files: %v", copies, err)
	}
}

// The types check: the page and its worker have different browser APIs.
func TestTypes(t *testing.T) {
	servers.Wanted(t)
	for _, project := range []string{"tsconfig.json", "tsconfig.worker.json"} {
		if output, err := exec.Command("node_modules/.bin/tsc", "--project", project).CombinedOutput(); err != nil {
			t.Errorf("tsc --project %s: %v\n%s", project, err, output)
		}
	}
}

// The parts that need no browser keep their promises. For example, a search equals filtering and sorting.
func TestUnits(t *testing.T) {
	servers.Wanted(t)
	scripts, err := filepath.Glob("testdata/*.ts")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("got the scripts %v: %v", scripts, err)
	}
	for _, name := range scripts {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		built := bundle(api.BuildOptions{
			Stdin:  &api.StdinOptions{Contents: string(source), Sourcefile: filepath.ToSlash(name), Loader: api.LoaderTS},
			Format: api.FormatESModule,
		})
		script := filepath.Join(t.TempDir(), "units.mjs")
		if err := os.WriteFile(script, built.OutputFiles[0].Contents, 0o600); err != nil {
			t.Fatal(err)
		}
		runNode(t, script, string(fixtures.Texts()))
	}
}

// The worker caches visited objects, within bounds, and ignores other requests.
func TestWorker(t *testing.T) {
	servers.Wanted(t)
	var names []string
	script := filepath.Join(t.TempDir(), Worker)
	for _, f := range Files(site.Config{Explorer: true}) {
		names = append(names, f.Name)
		if f.Name != Worker {
			continue
		}
		if err := os.WriteFile(script, f.Body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == Page || name == Worker })
	list, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	runNode(t, "testdata/worker.mjs", script, string(list))
}

func runNode(t *testing.T, arguments ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if output, err := exec.CommandContext(ctx, "node", arguments...).CombinedOutput(); err != nil {
		t.Errorf("node %v: %v\n%s", arguments, err, output)
	}
}

// Only the modules that make texts safe to show, request and follow may cast to those types.
func TestCasts(t *testing.T) {
	makers := map[string]string{
		"src/text.ts": "Text", "src/texts/own.ts": "Text", "src/place.ts": "Href", "src/ui/links.ts": "Href", "src/ui/frame.tsx": "Href", "src/data/reports.ts": "Href",
		"src/pictures/draw.ts": "PictureURL", "src/brand.ts": "Href PictureURL",
	}
	cast := regexp.MustCompile(`\bas (Text|Href|PictureURL|any|never|unknown as \w+)\b|<any>|: any\b|@ts-|\.(innerHTML|outerHTML|insertAdjacentHTML)\b`)
	own := regexp.MustCompile(`from '[^']*/own'`)
	err := fs.WalkDir(sources, "src", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == "src/elements.d.ts" {
			return err
		}
		body, err := sources.ReadFile(name)
		if path.Dir(name) != "src/texts" && own.Match(body) {
			t.Errorf("%s: imports own.ts, which only modules of src/texts may import", name)
		}
		for _, found := range cast.FindAllSubmatch(body, -1) {
			if kind := string(found[1]); !slices.Contains(strings.Fields(makers[name]), kind) {
				t.Errorf("%s: got %q, want a function that returns it", name, found[0])
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
