package render

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/followpress/followpress/internal/rawjson"
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

// A History has the operations that a site shows, and the growth over all time. An operation takes
// 24 bytes, 4 for its list, and 4 for its account if its list is primary.
type History struct {
	Growth Growth

	tokens  []string                // token IDs of the graph, by list
	known   uint32                  // number of graph accounts; others are numbered from here
	others  []site.Address          // accounts that only operations name; the rest of the site does not know them
	numbers Numbering[site.Address] // numbers of others
	all     []operation             // in reverse order of answers
	first   int                     // index in all of the first one within the window; earlier ones are only for Config.Data
	same    []placed                // latest operations, with the same time, not yet in all

	mu    sync.Mutex // guards the numbering of tags
	tags  []string   // as JSON strings
	tagOf map[string]uint32
}

// An operation is a change to an account in a list.
type operation struct {
	time    int64
	list    uint32
	account uint32 // account of the graph, or beyond these, of History.others
	tag     uint32
	code    op.Code
}

// A placed operation has the keys that order it among operations of the same time.
type placed struct {
	operation
	chain, block uint64
	log          uint32
}

// Tag returns the number of a tag, which may be empty. It may be called concurrently.
func (h *History) Tag(tag []byte) uint32 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n, ok := h.tagOf[string(tag)]; ok {
		return n
	}
	n, text := uint32(len(h.tags)), string(tag)
	h.tags, h.tagOf[text] = append(h.tags, string(rawjson.AppendString(nil, text))), n
	return n
}

// Account returns the number of an account unknown to the graph.
func (h *History) Account(address site.Address) uint32 {
	n, _ := h.numbers.Add(address)
	return h.known + n
}

// Add adds an operation of a list on an account. Rows must come in the order of
// snapshot.Op.Compare; only the ordering fields of row are used.
func (h *History) Add(row *snapshot.Op, list, account uint32, code op.Code, tag uint32) {
	if len(h.same) > 0 && h.same[0].time != row.Time {
		h.Flush()
	}
	h.same = append(h.same, placed{operation{row.Time, list, account, tag, code}, row.Chain, row.Block, row.LogIndex})
}

// Open sets the beginning of the window. It must be called after the last operation.
func (h *History) Open(from int64) {
	h.first = sort.Search(len(h.all), func(i int) bool { return h.all[i].time >= from })
}

// Flush ends the operations of one time. It must be called after the last operation.
func (h *History) Flush() {
	if len(h.same) > 1 {
		slices.SortFunc(h.same, func(a, b placed) int { return CompareShown(h.row(&b), h.row(&a)) })
	}
	for i := range h.same {
		h.all = append(h.all, h.same[i].operation)
	}
	if h.same = h.same[:0]; cap(h.same) > maxSame {
		h.same = nil
	}
}

// maxSame bounds the memory kept for operations of the same time.
const maxSame = 1 << 10

func (h *History) row(p *placed) *snapshot.Op {
	return &snapshot.Op{TokenID: h.tokens[p.list], Time: p.time, Chain: p.chain, Block: p.block, LogIndex: p.log}
}

// Len returns the number of operations.
func (h *History) Len() int { return len(h.all) }

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

// size returns the number of days from the first operation to the later of the snapshot and the
// last operation.
func (g *Growth) size() int {
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
	for range g.size() - len(g.days) {
		b = append(b, "[0,0],"...)
	}
	return append(withoutComma(b), "]}"...)
}
