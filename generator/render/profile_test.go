package render

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/followpress/followpress/site"
)

// TestBytesPerProfile: an account with a profile takes at most 32 bytes besides its texts.
func TestBytesPerProfile(t *testing.T) {
	if size := unsafe.Sizeof(packedProfile{}); size > 32 {
		t.Errorf("a profile: got %d bytes besides its texts, want at most 32", size)
	}
}

// TestProfilesComeBack with any length, even if set twice.
func TestProfilesComeBack(t *testing.T) {
	t.Parallel()
	var ps profiles
	r := rand.New(rand.NewPCG(1, 2))
	want := map[uint32]Profile{}
	for range 3000 {
		account := r.Uint32N(2000)
		p := Profile{ENS: bytes.Repeat([]byte{byte(account)}, 1+r.IntN(2000)), SearchLen: r.Uint32(), Fresh: r.Int64()}
		if r.IntN(2) == 0 {
			p.Name = strings.Repeat("é", r.IntN(site.MaxNameBytes/2+1))
		}
		if r.IntN(500) == 0 {
			p.ENS = bytes.Repeat([]byte("x"), profileBlock+r.IntN(10))
		}
		ps.Set(account, p)
		want[account] = p
	}
	for account := range uint32(2100) {
		p, ok := ps.Of(account)
		w, known := want[account]
		if ok != known || !bytes.Equal(p.ENS, w.ENS) || p.SearchLen != w.SearchLen || p.Fresh != w.Fresh || string(ps.Name(account)) != w.Name {
			t.Fatalf("account %d: got another profile", account)
		}
	}
}
