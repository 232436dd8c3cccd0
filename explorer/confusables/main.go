// Command confusables makes the explorer's table of letters that look alike, src/data/confusables.ts, of Unicode's
// confusables.txt:
//
//	go run ./explorer/confusables confusables.txt
//
// The notice above the table stays. The table has what a name can hold after the page has folded it (src/data/lookalikes.ts): letters, marks, numbers, dashes and
// connectors that are in lower case, compatible with nothing else and decomposed.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const output = "explorer/src/data/confusables.ts"

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: go run ./explorer/confusables confusables.txt")
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatalf("confusables: %v", err)
	}
}

func run(input string) error {
	text, err := os.ReadFile(input)
	if err != nil {
		return err
	}
	old, err := os.ReadFile(output)
	if err != nil {
		return err
	}
	made, err := module(string(old), string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", input, err)
	}
	return os.WriteFile(output, []byte(made), 0o644) //nolint:gosec // a source file, which others may read
}

var (
	version   = regexp.MustCompile(`(?m)^# Version: (\S+)`)
	ofVersion = regexp.MustCompile(`of Unicode [^\s,]+`)
	// mapping matches lines such as "0430 ;	0061 ;	MA	# …".
	mapping = regexp.MustCompile(`(?m)^([0-9A-F]+) ;\t([0-9A-F ]+) ;`)
	start   = "= [\n" // start of the table
)

// module returns the TypeScript module for confusables.txt, with the notice of the old module.
func module(old, text string) (string, error) {
	found, mappings := version.FindStringSubmatch(text), mapping.FindAllStringSubmatch(text, -1)
	notice, _, ok := strings.Cut(old, start)
	if found == nil || mappings == nil || !ok {
		return "", errors.New("want Unicode's confusables.txt, and a module with a notice")
	}
	prototypes := map[string]string{}
	for _, m := range mappings {
		prototypes[letters(m[1])] = letters(m[2])
	}
	groups := map[string][]rune{}
	for text := range prototypes {
		letter, _ := utf8.DecodeRuneInString(text)
		if !isKept(letter) {
			continue
		}
		looks, err := skeleton(text, prototypes)
		if err != nil {
			return "", err
		}
		if looks != text && !strings.ContainsAny(looks, " '\\") {
			groups[looks] = append(groups[looks], letter)
		}
	}
	var b strings.Builder
	b.WriteString(ofVersion.ReplaceAllString(notice, "of Unicode "+found[1]) + start)
	for _, look := range slices.Sorted(maps.Keys(groups)) {
		slices.Sort(groups[look])
		fmt.Fprintf(&b, "  '%s %s',\n", escaped(look), escaped(string(groups[look])))
	}
	b.WriteString("];\n")
	return b.String(), nil
}

// letters decodes code points in hexadecimal digits.
func letters(field string) string {
	var b strings.Builder
	for _, code := range strings.Fields(field) {
		letter, _ := strconv.ParseUint(code, 16, 32) // mapping matches hexadecimal digits only
		b.WriteRune(rune(letter))
	}
	return b.String()
}

// fold folds a text as src/data/lookalikes.ts does.
func fold(text string) string { return norm.NFD.String(strings.ToLower(norm.NFKC.String(text))) }

// jamo are letters of Hangul syllables, which never stand alone in a name.
var jamo = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0x1100, Hi: 0x11ff, Stride: 1}, {Lo: 0xa960, Hi: 0xa97f, Stride: 1}, {Lo: 0xd7b0, Hi: 0xd7ff, Stride: 1}}}

func isKept(letter rune) bool {
	return fold(string(letter)) == string(letter) && unicode.In(letter, unicode.L, unicode.M, unicode.N, unicode.Pd, unicode.Pc) && !unicode.Is(jamo, letter)
}

// skeleton replaces letters until nothing changes, because folding a prototype may make it
// confusable again.
func skeleton(text string, prototypes map[string]string) (string, error) {
	for range 10 {
		var b strings.Builder
		for _, letter := range fold(text) {
			b.WriteString(cmp.Or(prototypes[string(letter)], string(letter)))
		}
		next := fold(b.String())
		if next == text {
			return text, nil
		}
		text = next
	}
	return "", fmt.Errorf("%q: is replaced again and again", text)
}

// escaped writes non-ASCII characters as numbers, because a list of marks and right-to-left letters
// is unreadable.
func escaped(text string) string {
	var b strings.Builder
	for _, letter := range text {
		switch {
		case letter < 0x80:
			b.WriteRune(letter)
		case letter < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, letter)
		default:
			fmt.Fprintf(&b, `\u{%x}`, letter)
		}
	}
	return b.String()
}
