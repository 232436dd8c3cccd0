package report

import (
	"cmp"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site/scan"
)

// Limits of what is counted one by one, in bytes of JSON.
const (
	maxTag  = 1 << 10
	maxTags = 1 << 16 // of a record
)

// A tagCounter counts the records that got and lost each tag. A tag is counted from its first change
// on or not at all, so the numbers are exact.
type tagCounter struct {
	most    int
	counts  map[string]*[2]int // by the tag as JSON
	skipped int
}

func newTagCounter(most int) tagCounter { return tagCounter{most: most, counts: map[string]*[2]int{}} }

// add counts what a record has got and lost. had and has are JSON arrays, nil for a record that is not
// there.
func (t *tagCounter) add(had, has []byte) {
	if len(had) > maxTags || len(has) > maxTags {
		t.skipped++
		return
	}
	before, after := setOf(had), setOf(has)
	for tag := range after {
		if _, ok := before[tag]; !ok {
			t.change(tag, 0)
		}
	}
	for tag := range before {
		if _, ok := after[tag]; !ok {
			t.change(tag, 1)
		}
	}
}

func setOf(tags []byte) map[string]struct{} {
	set := map[string]struct{}{}
	for tag := range scan.RowsOf(tags) {
		set[string(tag)] = struct{}{}
	}
	return set
}

func (t *tagCounter) change(tag string, which int) {
	counts := t.counts[tag]
	if counts == nil {
		if len(tag) > maxTag || len(t.counts) >= t.most {
			t.skipped++
			return
		}
		counts = new([2]int)
		t.counts[strings.Clone(tag)] = counts
	}
	counts[which]++
}

func (t *tagCounter) result() Tags {
	type tag struct {
		encoded        string
		added, removed int
	}
	net := func(x tag) int { return x.added - x.removed }
	more := newTop(mostLists, func(a, b tag) int {
		return cmp.Or(cmp.Compare(net(b), net(a)), cmp.Compare(b.added, a.added), cmp.Compare(a.encoded, b.encoded))
	})
	less := newTop(mostLists, func(a, b tag) int {
		return cmp.Or(cmp.Compare(net(a), net(b)), cmp.Compare(b.removed, a.removed), cmp.Compare(a.encoded, b.encoded))
	})
	for encoded, counts := range t.counts {
		switch x := (tag{encoded, counts[0], counts[1]}); {
		case net(x) > 0:
			more.add(x)
		case net(x) < 0:
			less.add(x)
		}
	}
	changes := func(tags []tag) []TagChange {
		all := make([]TagChange, len(tags))
		for i, x := range tags {
			all[i] = TagChange{shorten(decodeText(x.encoded)), x.added, x.removed}
		}
		return all
	}
	return Tags{len(t.counts), changes(more.first), changes(less.first), t.skipped}
}

// decodeText decodes a JSON string. Something else stays as it is.
func decodeText(encoded string) string {
	var text string
	if err := json.Unmarshal([]byte(encoded), &text); err != nil {
		return encoded
	}
	return text
}
