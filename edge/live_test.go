package edge_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/site"
)

var update = flag.Bool("update", false, "write the golden files")

// Options without Live do not change any file.
func TestFilesWithoutLive(t *testing.T) {
	var got strings.Builder
	for _, kind := range edge.Kinds() {
		for _, config := range []site.Config{{}, {API: site.APIEFP, Names: site.NamesCopies, Explorer: true}, {API: site.APIEFP, Names: site.NamesLookup}} {
			config, err := config.WithDefaults()
			if err != nil {
				t.Fatal(err)
			}
			for _, fallback := range []string{"", "http://fallback.example.org/below"} {
				files := renderAll(t, kind, edge.Options{Config: config, Bucket: "http://bucket.example.org/a", Fallback: fallback})
				for _, name := range slices.Sorted(maps.Keys(files)) {
					fmt.Fprintf(&got, "%s %s %s %s %x\n", config.API, config.Names, fallback, name, sha256.Sum256([]byte(files[name])))
				}
			}
		}
	}
	golden := filepath.Join("testdata", "without-live")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, "testdata", "without-live", got.String())
	}
	if want, err := os.ReadFile(golden); err != nil || got.String() != string(want) {
		t.Errorf("%v; got\n%s\nwant the sums of %s: after a change of what all edges do, go test ./edge -run %s -update", err, got.String(), golden, t.Name())
	}
}
