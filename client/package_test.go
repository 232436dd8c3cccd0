package client_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/testenv/servers"
)

// largestPackage bounds the npm tarball, in bytes.
const largestPackage = 38 << 10

// The npm package resolves in every module system except require. It has its license and no test
// files.
func TestPackage(t *testing.T) {
	servers.Wanted(t)
	dir := t.TempDir()
	var packed []struct {
		Filename string
		Size     int
		Files    []struct{ Path string }
	}
	if err := json.Unmarshal(program(t, "npm", "pack", "--json", "--pack-destination", dir), &packed); err != nil || len(packed) != 1 {
		t.Fatalf("npm pack: got %d packages and error %v, want 1", len(packed), err)
	}
	if size := packed[0].Size; size > largestPackage {
		t.Errorf("tarball: got %d bytes, want at most %d", size, largestPackage)
	} else {
		t.Logf("tarball: %d bytes", size)
	}
	var files []string
	for _, f := range packed[0].Files {
		files = append(files, f.Path)
	}
	slices.Sort(files)
	const want = "LICENSE README.md followpress.d.ts followpress.js history.js lib/uqr/LICENSE lib/uqr/index.mjs" +
		" package.json proof.js qr.js relations.js shim.d.ts shim.js"
	if got := strings.Join(files, " "); got != want {
		t.Errorf("files: got %s, want %s", got, want)
	}
	tarball := filepath.Join(dir, packed[0].Filename)
	tools := filepath.Join("..", "internal", "tools", "packages", "node_modules", ".bin")
	program(t, filepath.Join(tools, "attw"), tarball)
	program(t, filepath.Join(tools, "publint"), "run", "--strict", tarball)
}

// program runs an installed program and returns its output. A failure ends the test.
func program(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		t.Fatalf("%s: %v; `make test-tools` installs it\n%s", name, err, out)
	}
	return out
}

// The npm site shows the README, so its links are absolute, and links into the repository lead to existing
// files.
func TestPackageTexts(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllSubmatch(readme, -1) {
		target := string(link[1])
		if !strings.HasPrefix(target, "https://") {
			t.Errorf("README.md: got the relative link %s, want a URL", target)
		}
		if file, ok := strings.CutPrefix(target, "https://github.com/followpress/followpress/blob/main/"); ok {
			if _, err := os.Stat(filepath.Join("..", file)); err != nil {
				t.Errorf("README.md: %v", err)
			}
		}
	}
	ours, err := os.ReadFile("../LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	if packaged, err := os.ReadFile("LICENSE"); err != nil || !bytes.Equal(packaged, ours) {
		t.Errorf("LICENSE: got error %v or another text than ../LICENSE, want a copy", err)
	}
}
