package parquet

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// A truncated page is damaged, and one that is larger than its buffer fills the buffer and no more.
func TestGunzip(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	text := bytes.Repeat([]byte("a page "), 100)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ room, want int }{{len(text) + 1, len(text)}, {len(text), len(text)}, {10, 10}} {
		if got, err := gunzip(packed.Bytes(), make([]byte, c.room)); err != nil || !bytes.Equal(got, text[:c.want]) {
			t.Errorf("room for %d bytes: got %d, %v, want %d", c.room, len(got), err, c.want)
		}
	}
	for cut := range packed.Len() {
		if got, err := gunzip(packed.Bytes()[:cut], make([]byte, len(text)+1)); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d of %d bytes: got %d, %v, want an error", cut, packed.Len(), len(got), err)
		}
	}
}
