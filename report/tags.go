package report

import (
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site/scan"
)

// Size limits of tags that are counted, in bytes of JSON.
const (
	maxTag  = 1 << 10
	maxTags = 1 << 16 // per record
)

// countTags counts the tags that a record gained and lost. had and has are JSON arrays, nil for a missing record.
func countTags(c *counter[string], had, has []byte) {
	if len(had) > maxTags || len(has) > maxTags {
		c.skipped++
		return
	}
	before, after := setOf(had), setOf(has)
	count := func(tags, others map[string]struct{}, begun, ended int) {
		for tag := range tags {
			if _, ok := others[tag]; ok {
				continue
			}
			if len(tag) > maxTag {
				c.skipped++
			} else {
				c.add(tag, begun, ended)
			}
		}
	}
	count(after, before, 1, 0)
	count(before, after, 0, 1)
}

func setOf(tags []byte) map[string]struct{} {
	set := map[string]struct{}{}
	for tag := range scan.RowsOf(tags) {
		set[string(tag)] = struct{}{}
	}
	return set
}

// tagsOf returns the tags that records gained and lost most.
func tagsOf(c *counter[string]) Tags {
	more, less := mostChanged(c, strings.Compare, func(encoded string, added, removed int) TagChange {
		return TagChange{shorten(decodeText(encoded)), added, removed}
	})
	return Tags{len(c.counts), more, less, c.skipped}
}

// decodeText decodes a JSON string. It returns anything else unchanged.
func decodeText(encoded string) string {
	var text string
	if err := json.Unmarshal([]byte(encoded), &text); err != nil {
		return encoded
	}
	return text
}
