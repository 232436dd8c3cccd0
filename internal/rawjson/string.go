// Package rawjson writes texts of JSON, and reads JSON in the form in which programs write it, without
// allocating: rows and sites have billions of texts. A decoder is for all other documents.
package rawjson

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// AppendString appends text as a JSON string, without HTML escaping. The bytes are those of go-json,
// which a test checks. It takes half the time and allocates nothing (BenchmarkAppendString), which
// matters because a site is mostly strings.
func AppendString(b []byte, text string) []byte {
	b = append(b, '"')
	start := 0
	for i := plainBytes(text); i < len(text); i += plainBytes(text[i:]) {
		c := text[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			switch {
			case r == utf8.RuneError && size == 1:
				b = append(append(b, text[start:i]...), `\ufffd`...)
			case r == '\u2028' || r == '\u2029': // line ends in older JavaScript
				b = append(append(b, text[start:i]...), `\u202`...)
				b = append(b, hexDigits[r&0xF])
			default:
				i += size
				continue
			}
			i += size
			start = i
			continue
		}
		b = append(b, text[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\b':
			b = append(b, `\b`...)
		case '\f':
			b = append(b, `\f`...)
		case '\n':
			b = append(b, `\n`...)
		case '\r':
			b = append(b, `\r`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			b = append(b, `\u00`...)
			b = append(b, hexDigits[c>>4], hexDigits[c&0xF])
		}
		i++
		start = i
	}
	b = append(b, text[start:]...)
	return append(b, '"')
}

// plainBytes counts the bytes before the first one that is not a plainByte. Most texts are plain, so it looks at eight
// bytes at a time.
func plainBytes(text string) (n int) {
	for ; len(text)-n >= 8; n += 8 {
		if !arePlain(uint64(text[n]) | uint64(text[n+1])<<8 | uint64(text[n+2])<<16 | uint64(text[n+3])<<24 |
			uint64(text[n+4])<<32 | uint64(text[n+5])<<40 | uint64(text[n+6])<<48 | uint64(text[n+7])<<56) {
			break
		}
	}
	for n < len(text) && plainByte[text[n]] {
		n++
	}
	return n
}

// arePlain reports whether all eight bytes are plain. The subtraction borrows from the next byte,
// so a plain byte after another one may look wrong too, which does not matter.
func arePlain(word uint64) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	quote, backslash := word^each*'"', word^each*'\\'
	return (word|(word-each*' ')&^word|(quote-each)&^quote|(backslash-each)&^backslash)&high == 0
}

// plainByte marks the bytes that need no escape in a JSON string and are no part of a longer character.
var plainByte = func() (table [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()
