package generate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/followpress/followpress/storage"
)

// The error for an argument that is not a snapshot folder names its type and the flag that accepts
// it.
func TestWhatIsNoSnapshot(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) string {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for path, want := range map[string]string{
		write("site.tar"):                          "is a file, and a snapshot is a folder; for a generated site use --site",
		write("accounts.ndjson"):                   "is a file, and a snapshot is a folder; name the folder with meta.json",
		filepath.Dir(write("site/_site")):          "is a site, not a snapshot; use --site",
		filepath.Dir(write("snapshot/meta.json")):  "",
		filepath.Dir(write("both/meta.json")):      "",
		filepath.Dir(write("both/_site")):          "",
		filepath.Dir(write("tables/lists.ndjson")): "", // reading says that meta.json is missing
		filepath.Join(dir, "nothing"):              "",
		"https://x.example/snapshot":               "is a URL; a snapshot is a folder",
	} {
		_, closeFiles, err := OpenSnapshot(t.Context(), path, storage.S3Options{})
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path)) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
		if err == nil {
			if err := closeFiles(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Pages need the address of the site, and the error names the flag.
func TestPagesNeedAnAddress(t *testing.T) {
	c := Content{API: "efp", Pages: true}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "--public-url") {
		t.Errorf("got %v, want an error that names --public-url", err)
	}
	c.PublicURL = "https://graph.example"
	if err := c.Validate(); err != nil {
		t.Errorf("with an address: %v", err)
	}
}
