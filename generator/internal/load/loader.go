package load

import (
	"fmt"
	"strings"

	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/site/rules"
)

// maxItems bounds accounts, lists and texts, so that their numbers do not use the bit OtherData.
const maxItems = int64(graph.OtherData - 1)

type loader struct {
	*reader
	graph    *graph.Graph
	texts    texts // texts of the graph
	eventOf  map[string]uint32
	seen     []bool // by account: whether it had a row
	incoming incomingRecords
	badges   rules.RefreshedBadges[accountEvent]
	renamed  map[uint32]struct{} // accounts renamed by a refresh
}

// An accountEvent identifies a possible badge.
type accountEvent struct{ account, event uint32 }

func checkSize(what string, n int) error {
	if int64(n) > maxItems {
		return fmt.Errorf("more than %d %s", maxItems, what)
	}
	return nil
}

// texts stores short texts in a few large blocks.
type texts struct{ block strings.Builder }

const textBytes = 64 << 10

// keep returns a copy of a text.
func (t *texts) keep(text string) string {
	if t.block.Len()+len(text) > t.block.Cap() {
		t.block = strings.Builder{}
		t.block.Grow(max(textBytes, len(text)))
	}
	begin := t.block.Len()
	t.block.WriteString(text)
	return t.block.String()[begin:]
}
