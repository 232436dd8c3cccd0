package load

import "strings"

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
