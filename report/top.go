package report

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// A top keeps the first n of all that it is given, in an order that has no ties.
type top[T any] struct {
	n     int
	order func(a, b T) int
	first []T
}

func newTop[T any](n int, order func(a, b T) int) *top[T] {
	return &top[T]{n: n, order: order, first: []T{}}
}

func (t *top[T]) add(x T) {
	at, _ := slices.BinarySearchFunc(t.first, x, t.order)
	if at == t.n {
		return
	}
	if len(t.first) == t.n {
		t.first = t.first[:t.n-1]
	}
	t.first = slices.Insert(t.first, at, x)
}

// maxText bounds the texts of profiles in a report, in bytes.
const maxText = 200

// shorten returns a copy of a text as it may be shown, cut if it is too long.
func shorten(text string) Text {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= maxText {
		return plain(text)
	}
	end := maxText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return plain(text[:end] + "…")
}
