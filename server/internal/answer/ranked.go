package answer

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/scan"
)

// total is the number of rows of a table of the whole site, whose first shard has the key.
func (c *computation) total(first site.Key) (total int, err error) {
	return total, c.useKnown(first, func(body []byte) error {
		shard, err := parseShard(body, "", -1, 0, site.SearchShardSize)
		total = shard.Total
		return err
	})
}

// ranked answers with a page of the ranked accounts.
func (c *computation) ranked() error {
	total, err := c.total(site.RankedShardKey(0))
	if err != nil {
		return err
	}
	var positions []int // of the page, in the order of the sort
	for i := c.ask.Offset; i < min(c.ask.Offset+c.ask.Limit, total); i++ {
		position := i
		if c.ask.Ascending {
			position = total - 1 - i
		}
		positions = append(positions, position)
	}
	indexes := positions
	if sort := c.ask.Sort; sort == "blocked" {
		indexes, err = c.rankedOrder("blocks", total, positions)
	} else if slices.Contains(site.RankedSorts(), sort) {
		indexes, err = c.rankedOrder(sort, total, positions)
	}
	if err != nil {
		return err
	}
	selected, err := c.rowsAt(table{total: total, shardKey: site.RankedShardKey}, indexes)
	if err != nil {
		return err
	}
	return c.rankedPage(selected)
}

// rankedOrder returns what the order of a sort has at some positions: indexes in the table of ranked
// accounts. The positions ascend or descend.
func (c *computation) rankedOrder(sort string, total int, positions []int) (indexes []int, err error) {
	for len(positions) > 0 {
		n := positions[0] / site.RankedOrderSize
		err := c.useKnown(site.RankedOrderKey(sort, n), func(body []byte) error {
			shard, err := parseShard(body, "", total, n, site.RankedOrderSize)
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

// leastTerm is the length in code points of the shortest term that finds a ranked account.
const leastTerm = 2

// rankedSearch answers with the ranked accounts that match a term.
func (c *computation) rankedSearch() error {
	var found rows
	if c.ask.TermRunes < leastTerm {
		return c.rankedPage(found)
	}
	total, err := c.total(site.RankedShardKey(0))
	if err != nil {
		return err
	}
	match, t := scan.NewMatcher(c.ask.Term), table{total: total, shardKey: site.RankedShardKey}
	skip := c.ask.Offset
	if err := c.expect(c.ctx, c.ask.Limit*pageRowBytes, t.shardCount()*shardObjects); err != nil {
		return err
	}
	err = c.eachRow(t, func(_ int, row []byte) error {
		r, err := scan.ParseRankedRow(row)
		if err != nil || !match.MatchText(r.Address, r.Name) {
			return err
		}
		if skip > 0 {
			skip--
			return nil
		}
		if err := c.copyPageRow(&found, row); err != nil {
			return err
		}
		if found.isFull(c.ask.Limit) {
			return errFull
		}
		return nil
	})
	if err != nil && !errors.Is(err, errFull) {
		return err
	}
	return c.rankedPage(found)
}

func (c *computation) rankedPage(page rows) error {
	asOf, err := time.Parse(time.RFC3339, c.root.AsOf)
	if err != nil {
		return err // does not happen: ParseRoot has checked it
	}
	updated := appendMillis(nil, asOf.UnixMilli())
	if err := c.add([]byte(`{"last_updated":`), updated, []byte(`,"results":[`)); err != nil {
		return err
	}
	ranks := [...]string{"mutuals_rank", "followers_rank", "following_rank", "blocks_rank", "top8_rank"}
	counts := [...]string{"mutuals", "following", "followers", "blocks", "top8"}
	for i := range page.len() {
		r, err := scan.ParseRankedRow(page.at(i))
		if err != nil {
			return err
		}
		err = c.addEntry(i == 0, len(page.at(i)), func(b []byte) []byte {
			b = append(append(b, `{"address":"`...), r.Address...)
			b = append(append(b, `","name":`...), nullIfEmpty(r.Name)...)
			b = append(append(b, `,"avatar":`...), nullIfEmpty(r.Avatar)...)
			b = append(append(b, `,"header":`...), nullIfEmpty(r.Header)...)
			for i, name := range ranks {
				b = appendNumberText(b, name, r.Ranks[i])
			}
			for i, name := range counts {
				b = appendNumberText(b, name, r.Counts[i])
			}
			b = append(append(b, `,"updated_at":`...), updated...)
			return append(b, '}')
		})
		if err != nil {
			return err
		}
	}
	return c.addText("]}")
}

// appendNumberText appends a member with a number as a text.
func appendNumberText(b []byte, name string, number []byte) []byte {
	b = append(append(append(b, `,"`...), name...), `":"`...)
	return append(append(b, number...), '"')
}

// discover answers with a page of the accounts that were followed lately.
func (c *computation) discover() error {
	return c.useKnown(site.DiscoverShardKey, func(body []byte) error {
		if err := c.addText(`{"latestFollows":[`); err != nil {
			return err
		}
		all, err := scan.DiscoverEntries(body)
		if err != nil {
			return err
		}
		for i, entry := range window(slices.Collect(all), c.ask.Offset, c.ask.Limit) {
			if i > 0 && c.pageEnds(len(entry)) {
				break
			}
			if err := c.addEntry(i == 0, len(entry), func(b []byte) []byte { return append(b, entry...) }); err != nil {
				return err
			}
		}
		return c.addText("]}")
	})
}
