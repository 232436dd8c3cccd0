package conventions

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// longestLine is the maximum line length, in bytes, that reviewers, diffs and editors can handle.
const longestLine = 20_000

// TestLinesAreShort: lines of all text files are short enough to review.
func TestLinesAreShort(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && file != "." && slices.Contains([]string{".git", ".tools", "node_modules", "out"}, entry.Name()) {
			return fs.SkipDir
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		body, err := os.ReadFile(file)
		if err != nil || !utf8.Valid(body) || bytes.IndexByte(body, 0) >= 0 {
			return err
		}
		files++
		for n, line := range strings.Split(string(body), "\n") {
			if len(line) > longestLine {
				t.Errorf("%s:%d: got a line of %d bytes, want at most %d", file, n+1, len(line), longestLine)
			}
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Errorf("text files: got %d, %v, want at least 100", files, err)
	}
}
