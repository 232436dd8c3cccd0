package snapshot

import (
	"testing"
	"testing/synctest"
)

// TestReadAheadBytes: of large blocks few are read ahead, one that is larger than all that may be read
// ahead passes too, and nothing is left when nobody wants more.
func TestReadAheadBytes(t *testing.T) {
	large := func(read *int) rowSource {
		return func(yield func(block, error) bool) {
			for i := range 20 {
				*read++
				b := block{lines: make([]byte, 0, 5<<20)}
				if i == 10 {
					b = block{rows: &parquetRows{bytes: 2 * bytesAhead}}
				}
				if !yield(b, nil) {
					return
				}
			}
		}
	}
	for _, most := range []int{40, 30, 1} {
		synctest.Test(t, func(t *testing.T) {
			got, first, second := 0, 0, 0
			sideBySide([]rowSource{large(&first), large(&second)}, 2)(func(block, error) bool {
				if got++; got == 1 {
					synctest.Wait() // until all that may be read ahead is
					if first != 5 || second != 4 {
						t.Errorf("read %d and %d blocks of 5 MiB, want 5 and 4: 15 MiB wait, and one block for its turn", first, second)
					}
				}
				return got < most
			})
			if got != most {
				t.Errorf("got %d blocks, want %d", got, most)
			}
		}) // which fails if a goroutine is left
	}
}
