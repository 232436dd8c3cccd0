// Command confusables makes the explorer's table of letters that look alike, src/data/confusables.ts, of Unicode's
// confusables.txt:
//
//	go run ./explorer/confusables confusables.txt
//
// It keeps what a name can hold after the page has folded it (src/data/lookalikes.ts): letters, marks, numbers, dashes and
// connectors that are in lower case, compatible with nothing else and decomposed.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"log"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

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
	made, err := module(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", input, err)
	}
	return os.WriteFile(output, []byte(made), 0o644) //nolint:gosec // a source file, which others may read
}

var versionLine = regexp.MustCompile(`(?m)^# Version: (\S+)`)

// module returns the TypeScript module for confusables.txt.
func module(text string) (string, error) {
	version := versionLine.FindStringSubmatch(text)
	if version == nil {
		return "", errors.New("has no version: want Unicode's confusables.txt")
	}
	prototypes, err := parse(text)
	if err != nil {
		return "", err
	}
	groups := map[string][]rune{}
	for letter := range prototypes {
		if !isKept(letter) {
			continue
		}
		looks, err := skeleton(string(letter), prototypes)
		if err != nil {
			return "", err
		}
		if looks != string(letter) && !strings.ContainsAny(looks, " '\\") {
			groups[looks] = append(groups[looks], letter)
		}
	}
	return written(version[1], groups), nil
}

// parse reads lines such as "0430 ;	0061 ;	MA	# …".
func parse(text string) (map[rune]string, error) {
	prototypes := map[rune]string{}
	lines := bufio.NewScanner(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		fields := strings.Split(line, ";")
		if len(fields) < 2 {
			return nil, fmt.Errorf("line %q: want fields with semicolons between them", line)
		}
		source, err := letters(fields[0])
		if err != nil {
			return nil, err
		}
		prototype, err := letters(fields[1])
		if err != nil {
			return nil, err
		}
		if len([]rune(source)) != 1 {
			return nil, fmt.Errorf("line %q: want one letter in the first field", line)
		}
		prototypes[[]rune(source)[0]] = prototype
	}
	return prototypes, lines.Err()
}

func letters(field string) (string, error) {
	var b strings.Builder
	for _, code := range strings.Fields(field) {
		letter, err := strconv.ParseUint(code, 16, 32)
		if err != nil {
			return "", fmt.Errorf("code point %q: %w", code, err)
		}
		b.WriteRune(rune(letter))
	}
	return b.String(), nil
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
func skeleton(text string, prototypes map[rune]string) (string, error) {
	for range 10 {
		var b strings.Builder
		for _, letter := range fold(text) {
			if prototype, ok := prototypes[letter]; ok {
				b.WriteString(prototype)
			} else {
				b.WriteRune(letter)
			}
		}
		next := fold(b.String())
		if next == text {
			return text, nil
		}
		text = next
	}
	return "", fmt.Errorf("%q: is replaced again and again", text)
}

func written(version string, groups map[string][]rune) string {
	var b strings.Builder
	fmt.Fprintf(&b, header, version)
	looks := make([]string, 0, len(groups))
	for look := range groups {
		looks = append(looks, look)
	}
	slices.Sort(looks)
	for _, look := range looks {
		slices.Sort(groups[look])
		fmt.Fprintf(&b, "  '%s %s',\n", escaped(look), escaped(string(groups[look])))
	}
	b.WriteString("];\n")
	return b.String()
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

const header = `/*! From confusables.txt of Unicode %s, changed: only what names can hold, folded.

Copyright © 1991-2022 Unicode, Inc. All rights reserved. Distributed under the Terms of Use in
https://www.unicode.org/copyright.html.

Permission is hereby granted, free of charge, to any person obtaining a copy of the Unicode data files and any
associated documentation (the "Data Files") or Unicode software and any associated documentation (the "Software") to
deal in the Data Files or Software without restriction, including without limitation the rights to use, copy, modify,
merge, publish, distribute, and/or sell copies of the Data Files or Software, and to permit persons to whom the Data
Files or Software are furnished to do so, provided that either (a) this copyright and permission notice appear with all
copies of the Data Files or Software, or (b) this copyright and permission notice appear in associated Documentation.

THE DATA FILES AND SOFTWARE ARE PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT
LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT OF THIRD PARTY
RIGHTS. IN NO EVENT SHALL THE COPYRIGHT HOLDER OR HOLDERS INCLUDED IN THIS NOTICE BE LIABLE FOR ANY CLAIM, OR ANY
SPECIAL INDIRECT OR CONSEQUENTIAL DAMAGES, OR ANY DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER
IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR
PERFORMANCE OF THE DATA FILES OR SOFTWARE.

Except as contained in this notice, the name of a copyright holder shall not be used in advertising or otherwise to
promote the sale, use or other dealings in these Data Files or Software without prior written authorization of the
copyright holder.
*/

// Made by explorer/confusables; do not edit.

/** What letters look like, and after a space the letters that do. */
export const confusables: readonly string[] = [
`
