package chain

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/servers"
)

func TestParseMoment(t *testing.T) {
	at := func(text string) time.Time {
		when, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	for text, want := range map[string]Moment{
		"2026-01-31T01:02:03Z":           {Time: at("2026-01-31T01:02:03Z")},
		"2026-01-31T01:02:03.5678+01:00": {Time: at("2026-01-31T00:02:03.567Z")},
		"2026-01-31":                     {Time: at("2026-01-31T00:00:00Z")},
		"8453:0":                         {Chain: 8453},
		"1:20820000":                     {Chain: 1, Block: 20820000},
	} {
		if got, err := ParseMoment(text); err != nil || !got.Time.Equal(want.Time) || got.Chain != want.Chain || got.Block != want.Block {
			t.Errorf("%s: got %+v and the error %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "2026", "2026-13-01", "8453", "8453:", ":5", "0:5", "8453:-1", "8453:0x10", "base:5", "2026-01-31 01:02:03", "8453:99999999999999999999"} {
		if got, err := ParseMoment(text); err == nil || !strings.Contains(err.Error(), "neither a time") {
			t.Errorf("%s: got %+v and the error %v, want one", text, got, err)
		}
	}
}

// TestUntilEqualsTheChainThatEndsThere: the events up to a moment equal the snapshot of chains that
// end there, even if block times run backwards.
func TestUntilEqualsTheChainThatEndsThere(t *testing.T) {
	for seed := range uint64(servers.Rounds(6, 60)) {
		random := rand.New(rand.NewPCG(seed, 25))
		h := history.Random(seed, history.Options{Transactions: 20 + random.IntN(150)})
		if seed%2 == 1 {
			for i := range h.Blocks {
				h.Blocks[i].Time += random.Int64N(60) - 30
			}
		}
		s := open(t, t.TempDir(), h)
		mustSync(t, s, from(startNodes(t, h)))
		asOf, err := s.AsOf()
		if err != nil {
			t.Fatal(err)
		}
		known := map[string]int{"0 0": 1} // events of a block
		for e, err := range s.Events() {
			if err != nil {
				t.Fatal(err)
			}
			known[fmt.Sprint(e.Contract.Chain, e.Block)]++
		}
		truth := func(at time.Time, chain, block uint64) string {
			ended := *h
			ended.Blocks = nil
			for _, c := range h.Chains {
				for b := range h.Of(c.ID) {
					if c.ID == chain && b.Number > block || c.ID != chain && known[fmt.Sprint(c.ID, b.Number)] > 0 && time.Unix(b.Time, 0).After(at) {
						break
					}
					ended.Blocks = append(ended.Blocks, b)
				}
			}
			return linesOf(t, &ended)
		}
		check := func(m Moment, at time.Time) {
			t.Helper()
			p, err := s.Until(m)
			if late := at.After(asOf) && m.Chain == 0; late {
				if err == nil || !strings.Contains(err.Error(), "was read up to block") {
					t.Fatalf("seed %d, %+v: got %v, want that this was not read", seed, m, err)
				}
				return
			}
			if err != nil {
				if m.Chain != 0 && strings.Contains(err.Error(), "was read up to block") { // by another chain
					return
				}
				if m.Chain != 0 && known[fmt.Sprint(m.Chain, m.Block)] == 0 && strings.Contains(err.Error(), "knows no time up to") {
					return
				}
				t.Fatalf("seed %d, %+v: %v", seed, m, err)
			}
			if known[fmt.Sprint(m.Chain, m.Block)] == 0 {
				at = p.AsOf() // the block has no events of ours, so the last time that is known counts
			}
			if !p.AsOf().Equal(at) {
				t.Fatalf("seed %d, %+v: got as of %v, want %v", seed, m, p.AsOf(), at)
			}
			for range 2 { // it may be read again
				mustEqual(t, fmt.Sprintf("seed %d, %+v", seed, m), snapshotOfEvents(t, s, p.Events()), truth(at, m.Chain, m.Block))
			}
		}
		first := slices.MinFunc(h.Blocks, func(a, b history.Block) int { return int(a.Time - b.Time) }).Time
		check(Moment{Time: asOf}, asOf)
		check(Moment{Time: asOf.Add(time.Second)}, asOf.Add(time.Second))
		for range 8 {
			at := time.UnixMilli(first*1000 + random.Int64N((asOf.Unix()-first+2)*1000))
			check(Moment{Time: at}, at)
			b := h.Blocks[random.IntN(len(h.Blocks))]
			if len(b.Logs) > 0 {
				check(Moment{Chain: b.Chain, Block: b.Number}, time.Unix(b.Time, 0))
			}
		}
	}
}

// TestOtherFoldersAreNoState: the folder of a snapshot or of a site is refused and stays as it is. A folder in which no
// Sync has read a block is a state that has read nothing.
func TestOtherFoldersAreNoState(t *testing.T) {
	h := history.Random(1, history.Options{Transactions: 20})
	for _, name := range []string{"meta.json", "_site"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, deployment(h.Chains)); err == nil || !strings.Contains(err.Error(), "is no state but the folder of a") || !Lasts(err) {
			t.Errorf("%s: got the error %v, want one that lasts", name, err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
			t.Errorf("%s: got %v, %v, want the folder as it was", name, entries, err)
		}
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, chainsFolder), 0o755); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, h)
	if read, err := s.HasRead(); err != nil || read {
		t.Errorf("before a Sync: got %t, %v, want that nothing was read", read, err)
	}
	mustSync(t, s, from(startNodes(t, h)))
	if read, err := s.HasRead(); err != nil || !read {
		t.Errorf("after a Sync: got %t, %v, want that something was read", read, err)
	}
}
