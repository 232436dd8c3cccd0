package graph

import (
	"slices"
	"sort"
	"sync"

	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/snapshot"
)

// A History has the operations that a site shows, and the growth over all time. An operation takes
// 24 bytes, 4 for its list, and 4 for its account if its list is primary.
type History struct {
	Growth render.Growth

	tokens  []string                // token IDs of the graph, by list
	known   uint32                  // number of graph accounts; others are numbered from here
	Others  []site.Address          // accounts that only operations name; the rest of the site does not know them
	numbers Numbering[site.Address] // numbers of others
	All     []Operation             // in reverse order of answers
	First   int                     // index in all of the first one within the window; earlier ones are only for Config.Data
	same    []placed                // latest operations, with the same time, not yet in all

	mu    sync.Mutex // guards the numbering of tags
	Tags  []string   // as JSON strings
	tagOf map[string]uint32
}

// An Operation is a change to an account in a list.
type Operation struct {
	Time    int64
	List    uint32
	Account uint32 // account of the graph, or beyond these, of History.others
	Tag     uint32
	Code    op.Code
}

// A placed operation has the keys that order it among operations of the same time.
type placed struct {
	Operation
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
	n, text := uint32(len(h.Tags)), string(tag)
	h.Tags, h.tagOf[text] = append(h.Tags, string(rawjson.AppendString(nil, text))), n
	return n
}

// Account returns the number of an account unknown to the graph.
func (h *History) Account(address site.Address) uint32 {
	n, _ := h.numbers.Add(address)
	return h.known + n
}

// Find returns the number of an account unknown to the graph, if an operation names it.
func (h *History) Find(address site.Address) (account uint32, ok bool) {
	account, ok = h.numbers.Find(address)
	account += h.known
	return account, ok
}

// Add adds an operation of a list on an account. Rows must come in the order of
// snapshot.Op.Compare; only the ordering fields of row are used.
func (h *History) Add(row *snapshot.Op, list, account uint32, code op.Code, tag uint32) {
	if len(h.same) > 0 && h.same[0].Time != row.Time {
		h.Flush()
	}
	h.same = append(h.same, placed{Operation{row.Time, list, account, tag, code}, row.Chain, row.Block, row.LogIndex})
}

// Open sets the beginning of the window. It must be called after the last operation.
func (h *History) Open(from int64) {
	h.First = sort.Search(len(h.All), func(i int) bool { return h.All[i].Time >= from })
}

// Flush ends the operations of one time. It must be called after the last operation.
func (h *History) Flush() {
	if len(h.same) > 1 {
		slices.SortFunc(h.same, func(a, b placed) int { return render.CompareShown(h.row(&b), h.row(&a)) })
	}
	for i := range h.same {
		h.All = append(h.All, h.same[i].Operation)
	}
	if h.same = h.same[:0]; cap(h.same) > maxSame {
		h.same = nil
	}
}

// maxSame bounds the memory kept for operations of the same time.
const maxSame = 1 << 10

func (h *History) row(p *placed) *snapshot.Op {
	return &snapshot.Op{TokenID: h.tokens[p.List], Time: p.Time, Chain: p.chain, Block: p.block, LogIndex: p.log}
}

// Len returns the number of operations.
func (h *History) Len() int { return len(h.All) }
