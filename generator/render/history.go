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

// CompareShown orders operations as answers show them: the newest first, those of one time by chain, of a chain
// the last first, and those of one log by token ID. No two rows of a table are equal.
func CompareShown(a, b *snapshot.Op) int {
	return cmp.Or(
		cmp.Compare(b.Time, a.Time), cmp.Compare(a.Chain, b.Chain), cmp.Compare(b.Block, a.Block), cmp.Compare(b.LogIndex, a.LogIndex),
		site.CompareTokenIDs(a.TokenID, b.TokenID))
}

// WindowStart is the time, in milliseconds since the Unix epoch, of the earliest operations that a site shows. asOf is the
// time of its snapshot, RFC 3339.
func WindowStart(asOf string, window site.Window) (int64, error) {
	t, err := time.Parse(time.RFC3339, asOf)
	if err != nil {
		return 0, fmt.Errorf("as_of: %w", err)
	}
	return t.Add(-time.Duration(window)).UnixMilli(), nil
}

// A History has the operations about accounts that a site shows, and the growth of all time. An operation takes
// 24 bytes, 4 for its list, and 4 for its account if its list is a primary one.
type History struct {
	Growth Growth

	tokens  []string                // of the graph, by list
	known   uint32                  // accounts of the graph; the first of others has this number
	others  []site.Address          // accounts that only operations name: for the rest of the site there are none such
	numbers Numbering[site.Address] // of these
	all     []operation             // in the order of answers backwards
	first   int                     // of all, within the window; those before are in the files of Config.Data only
	same    []placed                // the last ones, of one time; they are not in all yet

	mu    sync.Mutex // while tags are numbered
	tags  []string   // as JSON strings
	tagOf map[string]uint32
}

// An operation is what a list did to an account.
type operation struct {
	time    int64
	list    uint32
	account uint32 // of the graph, or beyond those one of History.others
	tag     uint32
	code    op.Code
}

// A placed operation has what orders it among those of its time.
type placed struct {
	operation
	chain, block uint64
	log          uint32
}

// Tag returns the number of a tag, which may be none. It may be called from many goroutines.
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

// Account returns the number of an account that the graph does not have.
func (h *History) Account(address site.Address) uint32 {
	n, _ := h.numbers.Add(address)
	return h.known + n
}

// Add adds an operation of a list about an account, with the number of its tag. The rows must come in the order of
// snapshot.Op.Compare; of a row, only what orders it is used.
func (h *History) Add(row *snapshot.Op, list, account uint32, code op.Code, tag uint32) {
	if len(h.same) > 0 && h.same[0].time != row.Time {
		h.Flush()
	}
	h.same = append(h.same, placed{operation{row.Time, list, account, tag, code}, row.Chain, row.Block, row.LogIndex})
}

// Open begins the window at a time. It must be called after the last operation.
func (h *History) Open(from int64) {
	h.first = sort.Search(len(h.all), func(i int) bool { return h.all[i].time >= from })
}

// Flush ends the operations of one time. It must be called after the last one.
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

// maxSame bounds the operations of one time whose memory is used again.
const maxSame = 1 << 10

func (h *History) row(p *placed) *snapshot.Op {
	return &snapshot.Op{TokenID: h.tokens[p.list], Time: p.time, Chain: p.chain, Block: p.block, LogIndex: p.log}
}

// Len is the number of operations.
func (h *History) Len() int { return len(h.all) }

// largestGrowth is the most days of a Growth: a hundred years.
const largestGrowth = 36525

const dayMillis = 24 * 60 * 60 * 1000

// A Growth counts follows and unfollows by primary lists, by day (UTC).
type Growth struct {
	asOf  int64 // the day of the snapshot, as all days counted from 1970
	first int64
	days  [][2]uint32 // from the first
}

// NewGrowth returns a growth without operations, for a snapshot of a time, RFC 3339.
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

// Add counts an operation of a time in milliseconds since the Unix epoch. Times must not run backwards. It is an error
// if there would be more than a hundred years of days.
func (g *Growth) Add(millis int64, code op.Code) error {
	if code != op.Follow && code != op.Unfollow {
		return nil
	}
	return g.add(dayOf(millis), code, 1, millis)
}

// AddDay is Add for n follows or unfollows of a day, as Days counts it.
func (g *Growth) AddDay(day int64, code op.Code, n uint32) error {
	return g.add(day, code, n, day*dayMillis)
}

func (g *Growth) add(day int64, code op.Code, n uint32, millis int64) error {
	first := g.first
	if len(g.days) == 0 {
		first = day
	}
	if max(day, g.asOf)-first >= largestGrowth {
		return fmt.Errorf("time: %s: with it there are more than a hundred years between the first operation, the last one and as_of", time.UnixMilli(millis).UTC().Format(time.RFC3339))
	}
	g.first = first
	if more := day - first + 1 - int64(len(g.days)); more > 0 {
		g.days = append(g.days, make([][2]uint32, more)...)
	}
	g.days[day-first][code-op.Follow] += n
	return nil
}

// Days yields how many operations there are of each day and code, days in order and counted from 1970, for AddDay.
func (g *Growth) Days(yield func(day int64, code op.Code, n uint32)) {
	for i, day := range g.days {
		for code, n := range day {
			if n > 0 {
				yield(g.first+int64(i), op.Follow+op.Code(code), n)
			}
		}
	}
}

// size is the number of days from the first operation to that of the snapshot, or to the last operation.
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
