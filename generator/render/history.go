package render

import (
	"cmp"
	"fmt"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/snapshot"
)

// CompareShown orders operations as answers show them: newest first, then by chain, within a chain
// last first, within a log by token ID. No two rows of a table are equal.
func CompareShown(a, b *snapshot.Op) int {
	return cmp.Or(
		cmp.Compare(b.Time, a.Time), cmp.Compare(a.Chain, b.Chain), cmp.Compare(b.Block, a.Block), cmp.Compare(b.LogIndex, a.LogIndex),
		site.CompareTokenIDs(a.TokenID, b.TokenID))
}

// WindowStart returns the time, in milliseconds since the Unix epoch, of the earliest operations
// that a site shows. asOf is the time of its snapshot in RFC 3339.
func WindowStart(asOf string, window site.Window) (int64, error) {
	t, err := time.Parse(time.RFC3339, asOf)
	if err != nil {
		return 0, fmt.Errorf("as_of: %w", err)
	}
	return t.Add(-time.Duration(window)).UnixMilli(), nil
}

// largestGrowth bounds the days of a Growth: a hundred years.
const largestGrowth = 36525

const dayMillis = 24 * 60 * 60 * 1000

// A Growth counts follows and unfollows by primary lists, by day (UTC).
type Growth struct {
	asOf  int64 // day of the snapshot; days count from 1970
	first int64
	days  [][2]uint32 // counts from day first
}

// NewGrowth returns an empty growth, for a snapshot with a time in RFC 3339.
func NewGrowth(asOf string) (Growth, error) {
	t, err := time.Parse(time.RFC3339, asOf)
	if err != nil {
		return Growth{}, fmt.Errorf("as_of: %w", err)
	}
	return Growth{asOf: dayOf(t.UnixMilli())}, nil
}

func dayOf(millis int64) int64 {
	day := millis / dayMillis
	if millis%dayMillis < 0 {
		day--
	}
	return day
}

// Add counts an operation at a time in milliseconds since the Unix epoch. Times must not decrease.
// Add returns an error if the days would span more than a hundred years.
func (g *Growth) Add(millis int64, code op.Code) error {
	if code != op.Follow && code != op.Unfollow {
		return nil
	}
	return g.add(dayOf(millis), code, 1, millis)
}

// AddDay is Add for n follows or unfollows of a day counted from 1970.
func (g *Growth) AddDay(day int64, code op.Code, n uint32) error {
	return g.add(day, code, n, day*dayMillis)
}

func (g *Growth) add(day int64, code op.Code, n uint32, millis int64) error {
	first := g.first
	if len(g.days) == 0 {
		first = day
	}
	if max(day, g.asOf)-first >= largestGrowth {
		return fmt.Errorf("time: %s: operations and as_of span more than a hundred years in all, which is the limit", time.UnixMilli(millis).UTC().Format(time.RFC3339))
	}
	g.first = first
	if more := day - first + 1 - int64(len(g.days)); more > 0 {
		g.days = append(g.days, make([][2]uint32, more)...)
	}
	g.days[day-first][code-op.Follow] += n
	return nil
}

// Days yields the number of operations by day and code, with days in order and counted from 1970,
// for AddDay.
func (g *Growth) Days(yield func(day int64, code op.Code, n uint32)) {
	for i, day := range g.days {
		for code, n := range day {
			if n > 0 {
				yield(g.first+int64(i), op.Follow+op.Code(code), n)
			}
		}
	}
}

// Size returns the number of days from the first operation to the later of the snapshot and the
// last operation.
func (g *Growth) Size() int {
	if len(g.days) == 0 {
		return 0
	}
	return max(len(g.days), int(g.asOf-g.first)+1)
}

// Append appends the object GrowthKey to b.
func (g *Growth) Append(b []byte) []byte {
	if len(g.days) == 0 {
		return append(b, `{"first":"","days":[]}`...)
	}
	b = fmt.Appendf(b, `{"first":"%s","days":[`, time.UnixMilli(g.first*dayMillis).UTC().Format(time.DateOnly))
	for _, day := range g.days {
		b = fmt.Appendf(b, "[%d,%d],", day[0], day[1])
	}
	for range g.Size() - len(g.days) {
		b = append(b, "[0,0],"...)
	}
	return append(WithoutComma(b), "]}"...)
}
