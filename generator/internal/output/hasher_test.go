package output

import (
	"testing"

	"github.com/followpress/followpress/site"
)

// TestHasher: a body of any length has the digests of site.NewEntry, whatever the hasher was used
// for before.
func TestHasher(t *testing.T) {
	h := newHasher()
	body := make([]byte, 300)
	for i := range body {
		body[i] = byte(i * i)
	}
	for i := range body {
		part := body[i*7%len(body):]
		if got, want := h.entry("k", part), site.NewEntry("k", part); got != want {
			t.Fatalf("%d bytes: got %v, want %v", len(part), got, want)
		}
	}
	if got, want := h.entry("k", nil), site.NewEntry("k", nil); got != want {
		t.Errorf("no bytes: got %v, want %v", got, want)
	}
}

// BenchmarkHasher describes a body of a usual size.
func BenchmarkHasher(b *testing.B) {
	body := make([]byte, 700)
	h := newHasher()
	for _, way := range []struct {
		name  string
		entry func(site.Key, []byte) site.Entry
	}{{"one after the other", site.NewEntry}, {"in turns", h.entry}} {
		b.Run(way.name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				body[0] = way.entry("k", body).MD5[0]
			}
		})
	}
}
