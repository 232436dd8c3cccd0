package report

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/scan"
)

// mostPlaces is the maximum number of accounts of each kind that a report lists of a leaderboard.
const mostPlaces = 10

// boardOf returns the leaderboard of a variant.
func boardOf(variant site.Key) site.Board {
	_, rest, _ := strings.Cut(string(variant), "leaderboard/")
	board, _, _ := strings.Cut(rest, "/")
	return site.Board(board)
}

// A place is an account's position on a leaderboard.
type place struct{ rank, count int }

// compareBoard compares the largest variants of a leaderboard.
func (c *comparison) compareBoard(ctx context.Context, board site.Board, change site.Change) error {
	var was, is map[string]place
	err := c.compare(ctx, change, func(key site.Key, before, after []byte) (err error) {
		if was, err = decodeBoard(before, c.config.LeaderboardMax); err != nil {
			return c.from.explain(key, err)
		}
		if is, err = decodeBoard(after, c.config.LeaderboardMax); err != nil {
			return c.to.explain(key, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	b := Board{Board: board, Places: max(len(was), len(is))}
	climb := func(p PlaceOnIt) int { return p.From - p.To }
	byAddress := func(a, b PlaceOnIt) int { return cmp.Compare(a.Address, b.Address) }
	risen := newTop(mostPlaces, func(a, b PlaceOnIt) int {
		return cmp.Or(cmp.Compare(climb(b), climb(a)), cmp.Compare(a.To, b.To), byAddress(a, b))
	})
	fallen := newTop(mostPlaces, func(a, b PlaceOnIt) int {
		return cmp.Or(cmp.Compare(climb(a), climb(b)), cmp.Compare(a.From, b.From), byAddress(a, b))
	})
	entered := newTop(mostPlaces, func(a, b PlaceOnIt) int { return cmp.Or(cmp.Compare(a.To, b.To), byAddress(a, b)) })
	left := newTop(mostPlaces, func(a, b PlaceOnIt) int { return cmp.Or(cmp.Compare(a.From, b.From), byAddress(a, b)) })
	for address, now := range is {
		before, there := was[address]
		p := PlaceOnIt{Address: plain(address), From: before.rank, To: now.rank, FromCount: before.count, ToCount: now.count}
		if before != now {
			b.Changed++
		}
		switch {
		case !there:
			b.Totals.Entered++
			entered.add(p)
		case climb(p) > 0:
			b.Totals.Risen++
			risen.add(p)
		case climb(p) < 0:
			b.Totals.Fallen++
			fallen.add(p)
		}
	}
	for address, before := range was {
		if _, there := is[address]; !there {
			b.Changed++
			b.Totals.Left++
			left.add(PlaceOnIt{Address: plain(address), From: before.rank, FromCount: before.count})
		}
	}
	b.Risen, b.Fallen, b.Entered, b.Left = risen.first, fallen.first, entered.first, left.first
	c.report.Boards = append(c.report.Boards, b)
	return nil
}

// decodeBoard decodes a leaderboard of at most that many places, keyed by address. A nil body is an empty
// leaderboard.
func decodeBoard(body []byte, most int) (map[string]place, error) {
	places := map[string]place{}
	if body == nil {
		return places, nil
	}
	read := len("[]")
	for row := range scan.RowsOf(body) { // row by row, because a hostile body may have millions
		if len(places) == most {
			return nil, fmt.Errorf("leaderboard: more than %d places: %w", most, site.ErrMalformed)
		}
		read += len(row)
		if len(places) > 0 {
			read += len(",")
		}
		address, p, err := decodePlace(row)
		if err != nil {
			return nil, fmt.Errorf("leaderboard: %w", err)
		}
		if _, again := places[address]; again {
			return nil, fmt.Errorf("leaderboard: %s is on it twice: %w", address, site.ErrMalformed)
		}
		places[address] = p
	}
	if read != len(body) || body[0] != '[' || body[len(body)-1] != ']' {
		return nil, fmt.Errorf("leaderboard: %w", site.ErrMalformed)
	}
	return places, nil
}

// maxPlace is the maximum size of a leaderboard row in bytes.
const maxPlace = 1 << 10

func decodePlace(body []byte) (address string, p place, err error) {
	var row map[string]any
	if len(body) > maxPlace {
		return "", p, site.ErrMalformed
	}
	if err := json.Unmarshal(body, &row); err != nil {
		return "", p, fmt.Errorf("%w: %w", site.ErrMalformed, err)
	}
	text, _ := row["address"].(string)
	parsed, err := site.ParseAddress(text)
	rank, _ := row["rank"].(float64)
	if err != nil || rank < 1 {
		return "", p, site.ErrMalformed
	}
	p.rank = int(rank)
	for name, value := range row {
		if count, ok := value.(string); ok && strings.HasSuffix(name, "_count") {
			if p.count, err = strconv.Atoi(count); err != nil {
				return "", p, fmt.Errorf("%s: %w", name, site.ErrMalformed)
			}
		}
	}
	return parsed.String(), p, nil
}
