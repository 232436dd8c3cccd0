package graph

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
)

// TestFindAll: keys are numbered in order, and FindAll agrees with Find.
func TestFindAll(t *testing.T) {
	var keys []site.Address
	numbers, want := NewNumbering(&keys), map[site.Address]uint32{}
	g := rand.New(rand.NewPCG(1, 2))
	address := func() site.Address { n := g.Uint32N(20_000); return site.Address{byte(n), byte(n >> 8), 19: byte(n)} }
	for range 20_000 {
		key := address()
		number, known := want[key]
		if !known {
			number = uint32(len(want))
			want[key] = number
		}
		if got, added := numbers.Add(key); got != number || added == known {
			t.Fatalf("add %v: got %d, %t, want %d, %t", key, got, added, number, !known)
		}
	}
	some := make([]site.Address, 3*AtOnce+1)
	for i := range some {
		some[i] = address()
	}
	got := make([]uint32, len(some))
	numbers.FindAll(some, got)
	for i, key := range some {
		number, known := want[key]
		if found, ok := numbers.Find(key); ok != known || ok && found != number {
			t.Errorf("find %v: got %d, %t, want %d, %t", key, found, ok, number, known)
		}
		if !known {
			number = None
		}
		if got[i] != number {
			t.Errorf("findAll %v: got %d, want %d", key, got[i], number)
		}
	}
}

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
	want := map[uint32]render.Profile{}
	for range 3000 {
		account := r.Uint32N(2000)
		p := render.Profile{ENS: bytes.Repeat([]byte{byte(account)}, 1+r.IntN(2000)), SearchLen: r.Uint32(), Fresh: r.Int64()}
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
