// Package ranked answers with pages of site-wide tables: ranked accounts, recommended accounts, and
// accounts followed recently.
package ranked

import (
	"slices"
	"strconv"

	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/server/internal/answer/table"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/scan"
)

// Page answers with a page of ranked accounts.
func Page(a *compute.Answer) error {
	t, err := table.OfSite(a, site.RankedShardKey)
	if err != nil {
		return err
	}
	var positions []int // positions in the sort order that make up the page
	for i := a.Ask.Offset; i < min(a.Ask.Offset+a.Ask.Limit, t.Total); i++ {
		position := i
		if a.Ask.Ascending {
			position = t.Total - 1 - i
		}
		positions = append(positions, position)
	}
	indexes := positions
	if sort := a.Ask.Sort; sort == "blocked" {
		indexes, err = inOrder(a, "blocks", t.Total, positions)
	} else if slices.Contains(site.RankedSorts(), sort) {
		indexes, err = inOrder(a, sort, t.Total, positions)
	}
	if err != nil {
		return err
	}
	selected, err := t.RowsAt(a, indexes)
	if err != nil {
		return err
	}
	return addPage(a, &selected)
}

// inOrder returns the entries of a sort order at the given positions: indexes in the table of
// ranked accounts. The positions must ascend or descend.
func inOrder(a *compute.Answer, sort string, total int, positions []int) (indexes []int, err error) {
	for len(positions) > 0 {
		n := positions[0] / site.RankedOrderSize
		err := a.UseKnown(site.RankedOrderKey(sort, n), func(body []byte) error {
			shard, err := table.ParseShard(body, "", total, n, site.RankedOrderSize)
			if err != nil {
				return err
			}
			order := slices.Collect(shard.Rows())
			for len(positions) > 0 && positions[0]/site.RankedOrderSize == n {
				at := positions[0] - shard.First()
				if at >= len(order) {
					return fetch.ErrMixed
				}
				index, err := strconv.Atoi(string(order[at]))
				if err != nil || index < 0 || index >= total {
					return site.ErrMalformed
				}
				indexes = append(indexes, index)
				positions = positions[1:]
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return indexes, nil
}

// leastTerm is the minimum length of a search term, in code points.
const leastTerm = 2

// Search answers with the ranked accounts that match a term.
func Search(a *compute.Answer) error {
	var found compute.Rows
	if a.Ask.TermRunes < leastTerm {
		return addPage(a, &found)
	}
	t, err := table.OfSite(a, site.RankedShardKey)
	if err != nil {
		return err
	}
	if err := a.Expect(a.Ask.Limit*table.PageRowBytes, t.Shards()*compute.ShardObjects); err != nil {
		return err
	}
	match, skip := scan.NewMatcher(a.Ask.Term), a.Ask.Offset
	for row, err := range t.Rows(a) {
		if err != nil {
			return err
		}
		r, err := scan.ParseRankedRow(row.Text)
		switch {
		case err != nil:
			return err
		case !match.MatchText(r.Address, r.Name):
			continue
		case skip > 0:
			skip--
			continue
		}
		if err := found.Copy(a, row.Text); err != nil {
			return err
		}
		if found.IsFull(a.Ask.Limit) {
			break
		}
	}
	return addPage(a, &found)
}

func addPage(a *compute.Answer, page *compute.Rows) error {
	updated := compute.AppendMillis(nil, a.AsOf().UnixMilli())
	ranks := [...]string{"mutuals_rank", "followers_rank", "following_rank", "blocks_rank", "top8_rank"}
	counts := [...]string{"mutuals", "following", "followers", "blocks", "top8"}
	return compute.AddRows(a, `{"last_updated":`+string(updated)+`,"results":[`, page, scan.ParseRankedRow, func(b []byte, _ int, r scan.RankedRow) []byte {
		b = append(append(b, `{"address":"`...), r.Address...)
		b = append(append(b, `","name":`...), compute.NullIfEmpty(r.Name)...)
		b = append(append(b, `,"avatar":`...), compute.NullIfEmpty(r.Avatar)...)
		b = append(append(b, `,"header":`...), compute.NullIfEmpty(r.Header)...)
		for i, name := range ranks {
			b = appendNumberText(b, name, r.Ranks[i])
		}
		for i, name := range counts {
			b = appendNumberText(b, name, r.Counts[i])
		}
		return append(append(append(b, `,"updated_at":`...), updated...), '}')
	}, "]}")
}

// appendNumberText appends a member with a number as a string.
func appendNumberText(b []byte, name string, number []byte) []byte {
	b = append(append(append(b, `,"`...), name...), `":"`...)
	return append(append(b, number...), '"')
}

// Discover answers with a page of recently followed accounts.
func Discover(a *compute.Answer) error {
	return a.UseKnown(site.DiscoverShardKey, func(body []byte) error {
		if err := a.AddText(`{"latestFollows":[`); err != nil {
			return err
		}
		all, err := scan.DiscoverEntries(body)
		if err != nil {
			return err
		}
		for i, entry := range table.Window(slices.Collect(all), a.Ask.Offset, a.Ask.Limit) {
			if i > 0 && a.PageEnds(len(entry)) {
				break
			}
			if err := a.AddEntry(i == 0, len(entry), func(b []byte) []byte { return append(b, entry...) }); err != nil {
				return err
			}
		}
		return a.AddText("]}")
	})
}
