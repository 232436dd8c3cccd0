package conventions

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// nameLike matches first words of comments that can only be names: sentences begin with capital
// letters, and other words have no capital letters inside.
var nameLike = regexp.MustCompile(`^[a-z]\w*$|^[A-Z][a-z0-9]+[A-Z]\w*$`)

// proper are names of programs and other words that begin in lower case.
var proper = strings.Fields("nginx CloudFront MinIO JavaScript TypeScript GitHub PostgreSQL")

// A doc comment begins with the name of its declaration, or with a sentence. Any other name is left
// over from a renaming.
func TestDocCommentsNameTheirDeclarations(t *testing.T) {
	checked := 0
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && file != "." && (strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"node_modules", "out"}, entry.Name())) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		check := func(doc *ast.CommentGroup, names ...*ast.Ident) {
			first := firstWord(doc)
			if first == "" || slices.Contains(proper, first) {
				return
			}
			checked++
			declared := func(name *ast.Ident) bool { return name.Name == first }
			if !slices.ContainsFunc(names, declared) && nameLike.MatchString(first) {
				t.Errorf("%s: the comment of %s begins with %q", set.Position(doc.Pos()), names[0].Name, first)
			}
		}
		for _, declaration := range parsed.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				check(d.Doc, d.Name)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					doc := d.Doc
					if d.Lparen.IsValid() { // the comment of a group describes all its declarations
						doc = nil
					}
					switch s := spec.(type) {
					case *ast.TypeSpec:
						check(either(s.Doc, doc), s.Name)
					case *ast.ValueSpec:
						check(either(s.Doc, doc), s.Names...)
					}
				}
			}
		}
		return nil
	})
	if err != nil || checked < 1000 {
		t.Errorf("doc comments: got %d, %v, want 1000 at least", checked, err)
	}
}

func either(a, b *ast.CommentGroup) *ast.CommentGroup {
	if a != nil {
		return a
	}
	return b
}

// firstWord returns the first word of a comment, without punctuation. After an article it is "", unless it is a name.
func firstWord(doc *ast.CommentGroup) string {
	words := strings.Fields(doc.Text())
	if len(words) == 0 {
		return ""
	}
	first, article := words[0], len(words) > 1 && slices.Contains([]string{"A", "An", "The"}, words[0])
	if article {
		first = words[1]
	}
	first = strings.TrimSuffix(strings.TrimRight(first, ",:;."), "'s")
	if article && strings.ToLower(first) == first {
		return ""
	}
	return first
}

// importable are the packages that other modules may import. docs/upgrade.md promises a stable API
// for them.
var importable = []string{"client", "site", "snapshot"}

// Importable packages have examples that run. All other packages are internal, or declare that
// their API may change.
func TestImportable(t *testing.T) {
	for pkg := range mayImport {
		if slices.Contains(strings.Split(pkg, "/"), "internal") {
			continue
		}
		files, err := filepath.Glob(pkg + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		var about string
		var tests []*ast.File
		isCommand := false
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") {
				tests = append(tests, parsed)
				continue
			}
			about += " " + oneLine(parsed.Doc.Text())
			isCommand = isCommand || parsed.Name.Name == "main"
		}
		switch {
		case isCommand:
		case !slices.Contains(importable, pkg):
			if !strings.Contains(about, "API may change in any release") {
				t.Errorf("package %s: add to its comment: The API may change in any release.", pkg)
			}
		case !slices.ContainsFunc(doc.Examples(tests...), func(e *doc.Example) bool { return e.Output != "" }):
			t.Errorf("package %s: got no example with output, want one: other modules may import the package", pkg)
		}
	}
}
