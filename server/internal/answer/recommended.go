package answer

import (
	"errors"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/scan"
)

// errFull ends the reading of a table whose rest is not needed.
var errFull = errors.New("the answer is complete")

// recommended answers with recommended accounts, recommendedDetails with more about them.
func (c *computation) recommended() error        { return c.recommendedPage(appendRecommended) }
func (c *computation) recommendedDetails() error { return c.recommendedPage(appendRecommendedDetails) }

// recommendedPage appends recommended accounts, without the account itself and what its list holds.
func (c *computation) recommendedPage(appendEntry func(b []byte, r scan.RecommendedRow) []byte) error {
	s, err := c.findSubject()
	if err != nil {
		return err
	}
	if err := c.take(s.held * commonBytes); err != nil {
		return err
	}
	held := make(map[string]struct{}, s.held+1)
	held[s.address] = struct{}{}
	err = c.records(s.list, s.held, func(r scan.HeldRecord) error {
		held[string(r.Address)] = struct{}{}
		return nil
	})
	if err != nil {
		return err
	}
	total, err := c.total(site.RecommendedShardKey(0))
	if err != nil {
		return err
	}
	if err := c.addText(`{"recommended":[`); err != nil {
		return err
	}
	skip, left := c.ask.Offset, c.ask.Limit
	err = c.eachRow(table{total: total, shardKey: site.RecommendedShardKey}, func(_ int, row []byte) error {
		r, err := scan.ParseRecommendedRow(row)
		if err != nil {
			return err
		}
		if _, ok := held[string(r.Address)]; ok {
			return nil
		}
		if skip > 0 {
			skip--
			return nil
		}
		if left < c.ask.Limit && c.pageEnds(len(row)) {
			return errFull
		}
		err = c.addEntry(left == c.ask.Limit, len(row), func(b []byte) []byte { return appendEntry(b, r) })
		if left--; left == 0 && err == nil {
			err = errFull
		}
		return err
	})
	if err != nil && !errors.Is(err, errFull) {
		return err
	}
	return c.addText("]}")
}

// appendRecommended appends an entry of recommended.
func appendRecommended(b []byte, r scan.RecommendedRow) []byte {
	b = append(append(b, `{"name":`...), nullIfEmpty(r.Name)...)
	b = append(append(b, `,"address":"`...), r.Address...)
	b = append(append(b, `","avatar":`...), nullIfEmpty(r.Avatar)...)
	b = append(append(b, `,"header":`...), nullIfEmpty(r.Header)...)
	return append(append(append(b, `,"class":`...), r.Class...), '}')
}

// appendRecommendedDetails appends an entry of recommended/details.
func appendRecommendedDetails(b []byte, r scan.RecommendedRow) []byte {
	b = append(append(b, `{"address":"`...), r.Address...)
	b = append(append(b, `","ens":{"name":`...), r.Name...)
	b = append(append(b, `,"avatar":`...), r.Avatar...)
	b = append(append(b, `,"records":`...), r.Records...)
	b = append(append(b, `},"stats":{"followers_count":`...), r.Followers...)
	b = append(append(b, `,"following_count":`...), r.Following...)
	b = append(append(append(b, `},"ranks":{"mutuals_rank":"`...), r.Ranks[0]...), '"')
	for i, name := range [...]string{"followers_rank", "following_rank", "top8_rank", "blocks_rank"} {
		b = appendNumberText(b, name, r.Ranks[i+1])
	}
	return append(b, "}}"...)
}
