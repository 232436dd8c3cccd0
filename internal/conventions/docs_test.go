package conventions

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/followpress/followpress/site"
)

// width is the maximum length of Markdown lines, except tables, code and long URLs.
const width = 100

// A page is a Markdown file.
type page struct {
	text    string
	prose   string          // text outside fenced code
	anchors map[string]bool // anchors of the headings
}

var (
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)

	// unread matches forms of Markdown that these tests do not parse: other fences, definitions of
	// references, HTML, titles of links.
	unread = regexp.MustCompile("(?m)^ *~~~|^ *\\[[^]]+\\]:|(?i:<(a|img)\\s)|\\]\\([^)\\s]+\\s+[\"'(]|\\]\\(<")
)

// pages reads all Markdown files by path, except the templates of .github.
func pages(t *testing.T) map[string]page {
	t.Helper()
	all := map[string]page{}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && file != "." && (strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"node_modules", "out", "testdata"}, entry.Name())) {
			return fs.SkipDir
		}
		if path.Ext(file) == ".md" {
			all[filepath.ToSlash(file)] = read(t, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func read(t *testing.T, file string) page {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := page{text: string(text), prose: fence.ReplaceAllString(string(text), ""), anchors: map[string]bool{}}
	for _, h := range heading.FindAllStringSubmatch(p.prose, -1) {
		p.anchors[anchor(h[1])] = true
	}
	return p
}

// anchor returns GitHub's anchor for a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

func TestLinks(t *testing.T) {
	all := pages(t)
	reached := map[string]bool{"README.md": true}
	for next := []string{"README.md"}; len(next) > 0; next = next[1:] {
		for _, l := range link.FindAllStringSubmatch(all[next[0]].prose, -1) {
			target, _, _ := strings.Cut(l[1], "#")
			target = path.Join(path.Dir(next[0]), target)
			if _, ok := all[target]; ok && !reached[target] {
				reached[target], next = true, append(next, target)
			}
		}
	}
	for name, p := range all {
		if !reached[name] {
			t.Errorf("%s: unreachable by links from README.md", name)
		}
		for _, l := range link.FindAllStringSubmatch(p.prose, -1) {
			file, fragment, _ := strings.Cut(l[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link %s: %v", name, l[1], err)
			} else if fragment != "" && !all[target].anchors[fragment] {
				t.Errorf("%s: link %s: %s has no such heading", name, l[1], target)
			}
		}
	}
}

// Every link and fence has a form that the other tests parse.
func TestForms(t *testing.T) {
	for name, p := range pages(t) {
		for _, form := range unread.FindAllString(p.prose, -1) {
			t.Errorf("%s: got %q, want links as [text](target) and fences of ```", name, form)
		}
	}
}

func TestLinesOfProse(t *testing.T) {
	all := pages(t)
	for name, p := range all {
		for _, line := range strings.Split(p.prose, "\n") {
			words := strings.Fields(line)
			long := slices.ContainsFunc(words, func(w string) bool { return utf8.RuneCountInString(w) > width/2 })
			if n := utf8.RuneCountInString(line); n > width && !strings.HasPrefix(line, "|") && !long {
				t.Errorf("%s: got a line of %d characters, want at most %d: %s", name, n, width, line)
			}
		}
	}
}

var (
	wholeLink = regexp.MustCompile(`\[[^]]*\]\([^)]*\)`)
	amount    = regexp.MustCompile(`\b\d+([.,]\d+)*( to \d+([.,]\d+)*)?(/s| ?%| ?\pL+)?`) // a number with its unit
	goal      = regexp.MustCompile(`[≤≥] \S+`)
	speed     = regexp.MustCompile(`\d(/s| ?(s|ms|[KMG]i?B))$`)
	word      = regexp.MustCompile(`[A-Za-z_]\w*`)
	fileName  = regexp.MustCompile(`^\.?[a-z][\w/-]*\.(go|ts|tsx|js|json|txt|css|yml|html)$`)
	folder    = regexp.MustCompile(`^[a-z]+(/[\w-]+)+/?$`)
	camelCase = regexp.MustCompile(`^[A-Za-z]+[A-Z]\w*(\.\w+)*$`)
)

// The numbers of README, with their units, are those of bench/performance.md, which has date
// and command.
func TestFigures(t *testing.T) {
	all := pages(t)
	measured := goal.ReplaceAllString(oneLine(all["bench/performance.md"].prose), "")
	speeds := 0
	for _, a := range amount.FindAllString(wholeLink.ReplaceAllString(oneLine(all["README.md"].prose), ""), -1) {
		if !regexp.MustCompile(`(^|[^\w.,])` + regexp.QuoteMeta(a) + `(\W|$)`).MatchString(measured) {
			t.Errorf("README.md: got the figure %q, want one of bench/performance.md", a)
		}
		if speed.MatchString(a) {
			speeds++
		}
	}
	if speeds == 0 || speeds > 4 {
		t.Errorf("README.md: got %d figures of speed, want 1 to 4", speeds)
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// A documented route is a row of a table of routes.
type documented struct {
	params string // as fmt.Sprint prints their names
	source string // content of the third column
}

// documentedRoutes parses the rows whose first column has paths, and whose second column has
// parameters.
func documentedRoutes(p page) map[string]documented {
	all, code := map[string]documented{}, regexp.MustCompile("`([^`]+)`")
	for _, row := range regexp.MustCompile("(?m)^\\| (`/[^|]*) \\|([^|]*)\\|([^|]*)\\|").FindAllStringSubmatch(p.prose, -1) {
		var params []string
		for _, param := range code.FindAllStringSubmatch(row[2], -1) {
			params = append(params, param[1])
		}
		for _, path := range code.FindAllStringSubmatch(row[1], -1) {
			all[path[1]] = documented{fmt.Sprint(params), strings.TrimSpace(row[3])}
		}
	}
	return all
}

// README has every route of the API, with its parameters.
func TestTableOfRoutes(t *testing.T) {
	want := map[string]string{}
	for _, r := range (site.Config{}).Routes() {
		path, ok := strings.CutPrefix(r.Pattern, "{base}")
		if !ok {
			continue
		}
		params := fmt.Sprint(r.Params)
		for _, board := range (site.Config{}).Boards() {
			want[strings.NewReplacer("{board}", string(board), "{user}", "{address or name}").Replace(path)] = params
		}
	}
	got := documentedRoutes(pages(t)["README.md"])
	for path, params := range want {
		if got[path].params != params {
			t.Errorf("README.md: %s: got the parameters %s, want %s", path, got[path].params, params)
		}
	}
	if len(got) != len(want) {
		t.Errorf("README.md: got %d routes, want %d", len(got), len(want))
	}
}

// docs/api-efp.md has every route of the whole API with its parameters, and marks files. It has
// every parameter, and names no object that a site cannot have.
func TestTableOfTheWholeAPI(t *testing.T) {
	const name = "docs/api-efp.md"
	config := site.Config{API: site.APIEFP, HistoryWindow: site.Window(site.DefaultHistoryWindow)}
	all := pages(t)[name]
	got, patterns := documentedRoutes(all), map[string]bool{}
	for _, r := range config.Routes() {
		path, ok := strings.CutPrefix(r.Pattern, "{base}")
		if !ok {
			patterns[r.Pattern] = true
			continue
		}
		row, source := got[path], "file"
		if r.Computed {
			source = "computed: "
		}
		if row.params != fmt.Sprint(r.Params) || !strings.HasPrefix(row.source, source) {
			t.Errorf("%s: %s: got the parameters %s, %q, want %s, %q", name, path, row.params, row.source, r.Params, source)
		}
		delete(got, path)
	}
	for path := range got {
		t.Errorf("%s: %s: got a row, want none: there is no such route", name, path)
	}
	for param := range config.Params() {
		if !strings.Contains(all.prose, "\n| `"+string(param)+"` |") {
			t.Errorf("%s: the parameter %s is not described", name, param)
		}
	}
	objects := regexp.MustCompile("`(_(?:search|variants)/[^`]+)`").FindAllStringSubmatch(all.prose, -1)
	for _, object := range objects {
		if !patterns[object[1]] {
			t.Errorf("%s: got the object %s, want the pattern of a route", name, object[1])
		}
	}
	if len(objects) == 0 {
		t.Errorf("%s: got no objects", name)
	}
}

// The headings of docs/troubleshooting.md quote messages: each part between … occurs in the
// sources.
func TestMessagesExist(t *testing.T) {
	const name = "docs/troubleshooting.md"
	joined, sources := regexp.MustCompile(`" \+\s*"`), ""
	for _, dir := range []string{"cmd", "publisher", "purger", "server", "site", "source", "storage"} {
		err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
				return err
			}
			text, err := os.ReadFile(file)
			sources += joined.ReplaceAllString(string(text), "")
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	found := 0
	for _, message := range regexp.MustCompile("(?m)^### `(.+)`$").FindAllStringSubmatch(pages(t)[name].prose, -1) {
		found++
		for part := range strings.SplitSeq(message[1], "…") {
			if part = strings.TrimSuffix(strings.TrimSpace(part), " by"); !strings.Contains(sources, part) {
				t.Errorf("%s: got the message %q, want one of the program", name, part)
			}
		}
	}
	if found < 15 {
		t.Errorf("%s: got %d messages, want 15 at least", name, found)
	}
}

// Files and identifiers in the guides exist: each code span with a single word, or with a file
// path, occurs in the tree.
func TestGuidesNameWhatExists(t *testing.T) {
	sources := map[string]string{} // by path
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{".git", ".tools", "node_modules", "out"}, entry.Name()) {
			return fs.SkipDir
		}
		if entry.Type().IsRegular() {
			text, err := os.ReadFile(file)
			sources[filepath.ToSlash(file)] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]bool{}
	for name, text := range sources {
		if slices.Contains([]string{".go", ".js", ".ts", ".tsx", ".yml"}, path.Ext(name)) {
			for _, found := range word.FindAllString(text, -1) {
				words[found] = true
			}
		}
	}
	inTree := func(name string) bool {
		for file := range sources {
			if strings.HasSuffix("/"+file, "/"+name) || strings.Contains("/"+file, "/"+strings.TrimSuffix(name, "/")+"/") {
				return true
			}
		}
		return false
	}
	for _, name := range []string{"ARCHITECTURE.md", "CONTRIBUTING.md"} {
		found := 0
		for _, span := range regexp.MustCompile("`([^`\\s]+)`").FindAllStringSubmatch(pages(t)[name].prose, -1) {
			switch word := span[1]; {
			case strings.Contains(word, "NAME"), strings.HasPrefix(word, "api/"), strings.HasSuffix(word, "node_modules"): // not from this project
			case fileName.MatchString(word), folder.MatchString(word):
				found++
				if !inTree(word) {
					t.Errorf("%s: got the file %s, want one of the tree", name, word)
				}
			case camelCase.MatchString(word):
				found++
				if parts := strings.Split(word, "."); !words[parts[0]] || !words[parts[len(parts)-1]] {
					t.Errorf("%s: got the name %s, want one of the sources", name, word)
				}
			}
		}
		if found < 10 {
			t.Errorf("%s: got %d names, want more", name, found)
		}
	}
}
