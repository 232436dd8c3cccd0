package rawjson

import (
	"bytes"
	"math"
	"slices"
	"unicode/utf8"
)

// A Scanner reads a JSON document in the form in which programs write rows and answers: texts without
// escapes, whole numbers, white space wherever JSON allows it. Only Texts and Skip take escapes. It
// allocates nothing, except for the results of Texts. It fails for anything else, valid or not; the
// caller then uses a decoder, or rejects the document. Tests check that a decoder gives the same result
// for every accepted document. Skip is the exception: it also accepts values that are not JSON.
//
// A failure is remembered: all that follows returns zero values, so it suffices to call Done at the
// end. A Scanner may be used for one document after another, and keeps its memory.
type Scanner struct {
	data   []byte
	at     int
	first  bool // whether the object or array that was begun last has no element yet
	wide   bool // whether there was a byte beyond ASCII
	failed bool

	// What Texts has made of a document.
	out     []byte
	members []memberSpan
	scratch []byte
}

// A memberSpan locates a member of an object in Scanner.out.
type memberSpan struct {
	begin, keyEnd, end int
	null               bool
}

// Reset begins a document. What the Scanner has returned before is overwritten.
func (s *Scanner) Reset(data []byte) {
	s.data, s.at, s.first, s.wide, s.failed = data, 0, false, false, false
	s.out, s.members = s.out[:0], s.members[:0]
}

// Done reports whether the whole document was read without a failure.
func (s *Scanner) Done() bool {
	s.peek()
	return !s.failed && s.at == len(s.data) && (!s.wide || utf8.Valid(s.data))
}

// Fail makes the Scanner fail.
func (s *Scanner) Fail() { s.failed = true }

// Failed reports whether the Scanner has failed.
func (s *Scanner) Failed() bool { return s.failed }

// peek skips white space and returns the next byte; 0 at the end.
func (s *Scanner) peek() byte {
	for s.at < len(s.data) {
		switch c := s.data[s.at]; c {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// take reads a byte of punctuation.
func (s *Scanner) take(c byte) {
	if s.at < len(s.data) && s.data[s.at] == c || s.peek() == c {
		s.at++
	} else {
		s.failed = true
	}
}

// Begin reads the beginning of an object or an array, { or [.
func (s *Scanner) Begin(c byte) {
	s.take(c)
	s.first = true
}

// More reports whether another member or element follows. If not, it has read the end, } or ].
func (s *Scanner) More(end byte) bool {
	if s.failed {
		return false
	}
	c := s.peek()
	if c == end {
		s.at++
		s.first = false
		return false
	}
	if !s.first {
		s.take(',')
	}
	s.first = false
	return !s.failed
}

// Name reads the name of a member and the colon.
func (s *Scanner) Name() []byte {
	name := s.Text()
	s.take(':')
	return name
}

// Null reads null, if it comes next.
func (s *Scanner) Null() bool {
	if s.failed || s.peek() != 'n' || len(s.data)-s.at < 4 || string(s.data[s.at:s.at+4]) != "null" {
		return false
	}
	s.at += 4
	return true
}

// Text reads a text, which is a part of the document.
func (s *Scanner) Text() []byte {
	s.take('"')
	if s.failed {
		return nil
	}
	data := s.data[s.at:]
	for i := 0; i < len(data); i++ {
		c := data[i]
		if plainByte[c] {
			continue
		}
		if c == '"' {
			s.at += i + 1
			return data[:i:i]
		}
		if c < utf8.RuneSelf {
			break
		}
		s.wide = true
	}
	s.failed = true
	return nil
}

// Skip reads any value, and returns its part of the document. It checks only that texts, objects and
// arrays end.
func (s *Scanner) Skip() []byte {
	s.peek()
	begin, depth := s.at, 0
	for more := true; more && !s.failed; more = depth > 0 {
		if s.at == len(s.data) {
			s.failed = true
			return nil
		}
		switch c := s.data[s.at]; c {
		case '"':
			s.skipText()
		case '{', '[':
			depth++
			s.at++
		case '}', ']', ',', ':', ' ', '\t', '\n', '\r':
			if s.failed = depth == 0; c == '}' || c == ']' {
				depth--
			}
			s.at++
		default: // a number, or a literal
			for s.at < len(s.data) && !s.atEnd() {
				s.at++
			}
		}
	}
	if s.failed {
		return nil
	}
	return s.data[begin:s.at:s.at]
}

// skipText reads a text with any escapes.
func (s *Scanner) skipText() {
	for i := s.at + 1; i < len(s.data); i++ {
		switch s.data[i] {
		case '\\':
			i++
		case '"':
			s.at = i + 1
			return
		}
	}
	s.failed = true
}

// Uint reads a whole number, at most most.
func (s *Scanner) Uint(most uint64) uint64 {
	c := s.peek()
	begin, n := s.at, uint64(0)
	for ; s.at < len(s.data) && isDigit(s.data[s.at]); s.at++ {
		n = n*10 + uint64(s.data[s.at]-'0')
	}
	digits := s.at - begin
	if digits == 0 || digits > 18 || c == '0' && digits > 1 || n > most || !s.atEnd() {
		s.failed = true
	}
	if s.failed {
		return 0
	}
	return n
}

// Int reads a whole number.
func (s *Scanner) Int() int64 {
	if s.peek() != '-' {
		return int64(s.Uint(math.MaxInt64))
	}
	s.at++
	if s.at == len(s.data) || s.data[s.at] < '1' || s.data[s.at] > '9' {
		s.failed = true // white space, or the number -0
		return 0
	}
	return -int64(s.Uint(math.MaxInt64))
}

// atEnd reports whether a number that ends here can end here.
func (s *Scanner) atEnd() bool {
	if s.at == len(s.data) {
		return true
	}
	switch s.data[s.at] {
	case ',', '}', ']', ' ', '\t', '\n', '\r':
		return true
	}
	return false
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// Texts reads an object whose members are texts or null. It returns the object with sorted keys, without null members and
// white space, in memory of the Scanner. Texts takes escapes as go-json writes them, and none in keys.
func (s *Scanner) Texts() []byte {
	begin := len(s.out)
	s.members = s.members[:0]
	s.out = append(s.out, '{')
	usual := true
	for s.Begin('{'); s.More('}'); {
		if len(s.members) > 0 {
			s.out = append(s.out, ',')
		}
		m := memberSpan{begin: len(s.out)}
		name := s.Name()
		if s.wide && hasLineEnd(name) {
			s.failed = true
		}
		s.out = append(append(append(s.out, '"'), name...), '"', ':')
		m.keyEnd = len(s.out) - 2
		if m.null = s.Null(); !m.null {
			s.appendText()
		}
		m.end = len(s.out)
		if m.null || len(s.members) > 0 && compareKeys(s.out, s.members[len(s.members)-1], m) >= 0 {
			usual = false
		}
		s.members = append(s.members, m)
	}
	s.out = append(s.out, '}')
	if !usual && !s.failed {
		s.sortMembers(begin)
	}
	if s.failed {
		return nil
	}
	return s.out[begin:len(s.out):len(s.out)]
}

// sortMembers sorts the object at the end of s.out, and omits null members.
func (s *Scanner) sortMembers(start int) {
	members := s.members
	slices.SortFunc(members, func(a, b memberSpan) int { return compareKeys(s.out, a, b) })
	for i, m := range members {
		if i > 0 && compareKeys(s.out, members[i-1], m) == 0 {
			s.failed = true // the last one of a repeated member counts
			return
		}
	}
	s.scratch = append(s.scratch[:0], s.out[start:]...)
	s.out = append(s.out[:start], '{')
	for _, m := range members {
		if m.null {
			continue
		}
		if len(s.out) > start+1 {
			s.out = append(s.out, ',')
		}
		s.out = append(s.out, s.scratch[m.begin-start:m.end-start]...)
	}
	s.out = append(s.out, '}')
}

func compareKeys(out []byte, a, b memberSpan) int {
	return bytes.Compare(out[a.begin+1:a.keyEnd], out[b.begin+1:b.keyEnd])
}

// appendText scans a string, and appends it as go-json writes it.
func (s *Scanner) appendText() {
	s.take('"')
	begin := s.at
	for i := begin; i < len(s.data); {
		c := s.data[i]
		switch {
		case plainByte[c]:
			i++
		case c == '"':
			s.out = append(s.out, s.data[begin-1:i+1]...)
			s.at = i + 1
			return
		case c == '\\':
			n := canonicalEscape(s.data[i:])
			if n == 0 {
				s.failed = true
				return
			}
			i += n
		case c >= utf8.RuneSelf && !isLineEnd(s.data[i:]):
			s.wide = true
			i++
		default:
			s.failed = true
			return
		}
	}
	s.failed = true
}

// isLineEnd reports whether b begins with U+2028 or U+2029, which go-json escapes.
func isLineEnd(b []byte) bool {
	return len(b) >= 3 && b[0] == 0xE2 && b[1] == 0x80 && b[2]|1 == 0xA9
}

func hasLineEnd(b []byte) bool {
	return bytes.Contains(b, []byte("\u2028")) || bytes.Contains(b, []byte("\u2029"))
}

// canonicalEscape returns the length of the escape at the beginning of b; 0 if go-json would write that
// character in another way.
func canonicalEscape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		return 2
	}
	return 0
}
