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
	for i := 0; i < len(text); {
		c := text[i]
		if plainByte[c] {
			i++
			continue
		}
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

// plainByte marks the bytes that need no escape in a JSON string and are no part of a longer character.
var plainByte = func() (table [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()
