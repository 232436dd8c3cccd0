package explorer

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/followpress/followpress/fixtures/servers"
)

// largest is what the first view may be as browsers load it, gzipped.
const largest = 60 << 10

func TestNames(t *testing.T) {
	hashed := regexp.MustCompile(`^[a-z]+-[A-Z0-9]{8}\.(js|css)$`)
	last := ""
	for _, f := range Files() {
		if f.Name != Page && f.Name != Worker && !hashed.MatchString(f.Name) {
			t.Errorf("got the name %s, want %s, %s or one like %s", f.Name, Page, Worker, hashed)
		}
		if f.Name <= last {
			t.Errorf("got %s after %s, want the names sorted", f.Name, last)
		}
		last = f.Name
	}
}

// The first view is the page and all that it names.
func TestFirstView(t *testing.T) {
	bodies := map[string][]byte{}
	for _, f := range Files() {
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
		t.Error("the page has a script or a style of its own, which its policy forbids")
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

// The copies of libraries are those of the versions that package-lock.json names.
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
			t.Errorf("%s: got another file than the package has: copy it again", name)
		}
		return nil
	})
	if err != nil || copies < len(libraries)-1 {
		t.Errorf("compared %d files: %v", copies, err)
	}
}

func TestTypes(t *testing.T) {
	servers.Wanted(t)
	if output, err := exec.Command("node_modules/.bin/tsc", "--project", ".").CombinedOutput(); err != nil {
		t.Errorf("tsc: %v\n%s", err, output)
	}
}
