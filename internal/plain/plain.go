// Package plain makes strangers' texts safe to show: a name must not pass for another one, and no
// text may change the direction of its surroundings. The explorer has the same rules
// (explorer/src/text.ts); fixtures.Texts tests both with the same cases.
package plain

import (
	"slices"
	"strings"
	"unicode"
)

// Text returns a text that is safe to show: valid UTF-8 in which U+FFFD replaces each run of
// invisible characters, and each mark above and below a letter beyond the fourth, since more would
// cover other lines.
func Text(text string) string {
	text = lineEnds.Replace(strings.ToValidUTF8(text, "\ufffd"))
	letters := []rune(text)
	var b strings.Builder
	isRun, marks := false, 0
	for i, r := range letters {
		if unicode.Is(unicode.Cc, r) && r != '\t' && r != '\n' {
			r = unicode.ReplacementChar
		}
		switch isOut := isUnseen(r) && !belongs(letters, i); {
		case isOut && !isRun:
			b.WriteRune(unicode.ReplacementChar)
			isRun, marks = true, 0
		case isOut:
		case unicode.In(r, unicode.Mn, unicode.Me):
			if marks++; marks <= mostMarks {
				b.WriteRune(r)
			} else if marks == mostMarks+1 {
				b.WriteRune(unicode.ReplacementChar)
			}
			isRun = false
		default:
			b.WriteRune(r)
			isRun, marks = false, 0
		}
	}
	return b.String()
}

// Line returns a text as it may be shown in a line of a terminal: that of Text, with one space for each run of white space.
func Line(text string) string { return strings.Join(strings.Fields(Text(text)), " ") }

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n")

// isUnseen reports whether a character is invisible but changes its surroundings, or makes a text
// differ from one that looks the same: Default_Ignorable_Code_Point of Unicode, other format
// characters that enclose nothing, and blanks other than white space.
func isUnseen(r rune) bool {
	switch {
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return false
	case unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return true
	}
	return r == 0x2800 || r == 0x16fe4 || r == 0x1d159 || 0x13441 <= r && r <= 0x13446
}

const (
	joiner    = '\u200d'
	nonJoiner = '\u200c'
	asText    = '\ufe0e' // before it: not in colours
	asEmoji   = '\ufe0f'
	blackFlag = '\U0001f3f4'
	endOfTags = '\U000e007f'

	longestFlag = 8
	mostMarks   = 4
)

// belongs reports whether something unseen is part of how an emoji or a word is written (for words as in
// RFC 5892, appendix A).
func belongs(letters []rune, at int) bool {
	letter, before, after := letters[at], runeAt(letters, at-1), runeAt(letters, at+1)
	switch {
	case letter == asEmoji && strings.ContainsRune("0123456789#*", before):
		return after == '\u20e3'
	case letter == asEmoji || letter == asText:
		return isPictographic(before)
	case isTag(letter):
		return inFlag(letters, at)
	case letter == joiner:
		return joins(letters, at)
	case letter != nonJoiner:
		return false
	case slices.Contains(viramas, before):
		return true
	}
	from, to := neighbor(letters, at, -1), neighbor(letters, at, 1)
	return isArabic(from) && !unicode.Is(lastLetters, from) && isArabic(to) && to != 0x621 && to != 0x674
}

// joins reports whether a joiner joins anything: emoji, or Indic letters.
func joins(letters []rune, at int) bool {
	before, after := runeAt(letters, at-1), runeAt(letters, at+1)
	if slices.Contains(viramas, before) || slices.Contains(viramas, after) && unicode.In(before, indic...) {
		return true
	}
	isEnd := isPictographic(before) || (before == asEmoji || isSkin(before)) && isPictographic(runeAt(letters, at-2))
	return isEnd && isPictographic(after)
}

// runeAt returns 0 beyond the letters.
func runeAt(letters []rune, at int) rune {
	if at < 0 || at >= len(letters) {
		return 0
	}
	return letters[at]
}

// neighbor returns the nearest letter in a direction, skipping marks.
func neighbor(letters []rune, at, step int) rune {
	i := at + step
	for n := 0; n < mostMarks && unicode.Is(unicode.Mn, runeAt(letters, i)); n++ {
		i += step
	}
	return runeAt(letters, i)
}

func isTag(r rune) bool  { return 0xe0020 <= r && r <= endOfTags }
func isSkin(r rune) bool { return 0x1f3fb <= r && r <= 0x1f3ff }

// inFlag reports whether a tag is part of the flag of a part of a country: a black flag, its code in
// tags, and their end.
func inFlag(letters []rune, at int) bool {
	start := at
	for at-start < longestFlag && isTag(runeAt(letters, start)) {
		start--
	}
	if runeAt(letters, start) != blackFlag {
		return false
	}
	end := start + 1
	for c := runeAt(letters, end); 0xe0030 <= c && c <= 0xe0039 || 0xe0061 <= c && c <= 0xe007a; c = runeAt(letters, end) {
		end++
	}
	code := end - start - 1
	return runeAt(letters, end) == endOfTags && 3 <= code && code <= 6 && at <= end
}

func isArabic(r rune) bool { return unicode.Is(unicode.Arabic, r) && unicode.IsLetter(r) }

// Indic signs that take the vowel away; joiners next to them choose the form.
var (
	viramas = []rune{0x94d, 0x9cd, 0xa4d, 0xacd, 0xb4d, 0xbcd, 0xc4d, 0xccd, 0xd4d, 0xdca, 0x1039, 0x103a, 0x17d2}
	indic   = []*unicode.RangeTable{
		unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi, unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada,
		unicode.Malayalam, unicode.Sinhala, unicode.Myanmar, unicode.Khmer,
	}
)

// lastLetters are the Arabic letters that do not join the next one.
var lastLetters = &unicode.RangeTable{R16: []unicode.Range16{
	{0x621, 0x625, 1}, {0x627, 0x629, 2}, {0x62f, 0x632, 1}, {0x648, 0x648, 1}, {0x671, 0x677, 1}, {0x688, 0x699, 1}, {0x6c0, 0x6c0, 1}, {0x6c3, 0x6cb, 1},
	{0x6cd, 0x6cf, 2}, {0x6d2, 0x6d3, 1}, {0x6d5, 0x6d5, 1}, {0x6ee, 0x6ef, 1},
}}

// isPictographic is true for the blocks of emoji. As they are the same in every version of Unicode, pages
// and reports agree.
func isPictographic(r rune) bool { return unicode.Is(pictographic, r) }

var pictographic = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0xa9, 0xae, 5}, {0x203c, 0x203c, 1}, {0x2049, 0x2049, 1}, {0x2122, 0x2122, 1}, {0x2139, 0x2139, 1}, {0x2190, 0x21ff, 1}, {0x2300, 0x23ff, 1},
		{0x24c2, 0x24c2, 1}, {0x25a0, 0x27bf, 1}, {0x2900, 0x297f, 1}, {0x2b00, 0x2bff, 1}, {0x3030, 0x303d, 13}, {0x3297, 0x3299, 2},
	},
	R32:         []unicode.Range32{{0x1f000, 0x1f1e5, 1}, {0x1f200, 0x1f3fa, 1}, {0x1f400, 0x1faff, 1}, {0x1fc00, 0x1fffd, 1}},
	LatinOffset: 1,
}
