package generator_test

import (
	"cmp"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
