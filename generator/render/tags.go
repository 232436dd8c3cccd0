package render

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
)

// countListTags counts the tags that the list gives the accounts that it holds.
func (t *Scratch) countListTags(v *View) {
	clear(t.tags)
	for i := range v.Records.Len() {
		if v.Records.State(i) != 0 {
			t.addTags(v.Records.Form(i).Tags)
		}
	}
	t.sortTags()
}

// countTaggedAs counts the tags that primary lists give the account.
func (t *Scratch) countTaggedAs(v *View) {
	clear(t.tags)
	for i := range v.Tagged {
		t.addTags(v.Tagged[i].Tags.Tags)
	}
	t.sortTags()
}

func (t *Scratch) addTags(tags []string) {
	if len(tags) > 0 && t.tags == nil {
		t.tags = map[string]int{}
	}
	for _, tag := range tags {
		t.tags[tag]++
	}
}

func (t *Scratch) sortTags() {
	t.counts = t.counts[:0]
	for tag, n := range t.tags {
		t.counts = append(t.counts, tagRun{tag, n})
	}
	slices.SortFunc(t.counts, func(a, b tagRun) int { return cmp.Compare(a.tag, b.tag) })
	t.byCount = append(t.byCount[:0], t.counts...)
	slices.SortStableFunc(t.byCount, func(a, b tagRun) int { return cmp.Compare(b.n, a.n) })
}

// tagsSize estimates the bytes of an answer to /tags or /taggedAs with the counted tags.
func (t *Scratch) tagsSize() int {
	size := ObjectBytes
	for _, run := range t.counts {
		size += 2*len(run.tag) + countBytes + run.n*(taggedBytes+len(run.tag))
	}
	return size
}

// appendTagCounts appends the part of an answer to /tags or /taggedAs before the tagged addresses.
func (t *Scratch) appendTagCounts(b []byte) []byte {
	b = append(b, `,"tags":[`...)
	for _, run := range t.counts {
		b = append(rawjson.AppendString(b, run.tag), ',')
	}
	b = append(WithoutComma(b), `],"tagCounts":[`...)
	for _, run := range t.byCount {
		b = append(b, `{"tag":`...)
		b = rawjson.AppendString(b, run.tag)
		b = append(b, `,"count":`...)
		b = strconv.AppendInt(b, int64(run.n), 10)
		b = append(b, "},"...)
	}
	return append(WithoutComma(b), `],"taggedAddresses":[`...)
}

// appendTagged appends an address once for each tag of a record, each followed by a comma.
func appendTagged(b []byte, address site.Address, tags []string) []byte {
	for _, tag := range tags {
		b = append(b, `{"address":"`...)
		b = address.Append(b)
		b = append(b, `","tag":`...)
		b = rawjson.AppendString(b, tag)
		b = append(b, "},"...)
	}
	return b
}

// appendListTags appends the rest of the answer to /tags.
func (t *Scratch) appendListTags(b []byte, v *View) []byte {
	b = t.appendTagCounts(b)
	for i := range v.Records.Len() {
		if tags := v.Records.Form(i).Tags; len(tags) > 0 && v.Records.State(i) != 0 {
			b = appendTagged(b, v.Records.Address(i), tags)
		}
	}
	return append(WithoutComma(b), "]}"...)
}

// appendTaggedAs appends the rest of the answer to /taggedAs.
func (t *Scratch) appendTaggedAs(b []byte, v *View) []byte {
	b = t.appendTagCounts(b)
	for i := range v.Tagged {
		b = appendTagged(b, v.Tagged[i].Account, v.Tagged[i].Tags.Tags)
	}
	return append(WithoutComma(b), "]}"...)
}
