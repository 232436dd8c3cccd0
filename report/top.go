package report

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// A top keeps the first n of its inputs, in an order without ties.
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

// A counter counts two kinds of events per key, such as follows and unfollows of an account. It counts a key from its
// first event on or not at all, so the numbers are exact.
type counter[K comparable] struct {
	most    int // maximum number of keys
	counts  map[K]*[2]int
	skipped int // events of other keys
}

func newCounter[K comparable](most int) counter[K] {
	return counter[K]{most: most, counts: map[K]*[2]int{}}
}

func (c *counter[K]) add(key K, begun, ended int) {
	counts := c.counts[key]
	if counts == nil {
		if len(c.counts) >= c.most {
			c.skipped += begun + ended
			return
		}
		counts = new([2]int)
		c.counts[key] = counts
	}
	counts[0] += begun
	counts[1] += ended
}

// mostChanged returns two lists of rows, largest difference first: keys with more begun than ended,
// and keys with fewer.
func mostChanged[K comparable, R any](c *counter[K], compare func(a, b K) int, row func(key K, begun, ended int) R) (more, less []R) {
	type counted struct {
		key         K
		net, larger int // difference of begun and ended, and the larger of them
	}
	order := func(a, b counted) int {
		return cmp.Or(cmp.Compare(b.net, a.net), cmp.Compare(b.larger, a.larger), compare(a.key, b.key))
	}
	gained, lost := newTop(mostLists, order), newTop(mostLists, order)
	for key, n := range c.counts {
		switch net := n[0] - n[1]; {
		case net > 0:
			gained.add(counted{key, net, n[0]})
		case net < 0:
			lost.add(counted{key, -net, n[1]})
		}
	}
	rows := func(all []counted) []R {
		made := make([]R, len(all))
		for i, x := range all {
			made[i] = row(x.key, c.counts[x.key][0], c.counts[x.key][1])
		}
		return made
	}
	return rows(gained.first), rows(lost.first)
}

// maxText is the maximum size in bytes of profile texts in a report.
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
