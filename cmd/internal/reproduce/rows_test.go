package reproduce

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// texts are rows of a test.
func texts(all []string, err error) rows {
	return func(_ context.Context, found func([]byte) error) error {
		for _, text := range all {
			if err := found([]byte(text)); err != nil {
				return err
			}
		}
		return err
	}
}

// TestDiffRows: diffRows counts the rows that only one of two tables has, including repeated rows,
// and shows some of them. Order and number of rows do not matter.
func TestDiffRows(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		var site []string
		for range random.IntN(3 * rowsAtOnce) {
			site = append(site, fmt.Sprint("row ", random.IntN(400)))
		}
		chains := slices.Clone(site)
		if random.IntN(3) == 0 {
			random.Shuffle(len(chains), func(i, j int) { chains[i], chains[j] = chains[j], chains[i] })
		}
		for range random.IntN(4) {
			if at := random.IntN(len(chains) + 1); at < len(chains) && random.IntN(2) == 0 {
				chains = slices.Delete(chains, at, at+1)
			} else {
				chains = slices.Insert(chains, at, fmt.Sprint("row ", random.IntN(500)))
			}
		}
		left, want := map[string]int{}, [sides]int{}
		for _, row := range chains {
			left[row]++
		}
		for _, row := range site {
			left[row]--
		}
		for _, n := range left {
			want[onlySite] -= min(n, 0)
			want[onlyChains] += max(n, 0)
		}
		d, err := diffRows(t.Context(), texts(site, nil), texts(chains, nil))
		if err != nil {
			t.Fatal(err)
		}
		if same := slices.Equal(site, chains); same || d == nil {
			if !same || d != nil {
				t.Fatalf("seed %d: got %v, want a difference: %v", seed, d, !same)
			}
			continue
		}
		if d.count != want {
			t.Fatalf("seed %d: got %v, want %v", seed, d.count, want)
		}
		for side, first := range d.first {
			if len(first) != min(mostRows, want[side]) {
				t.Fatalf("seed %d: got %q, want some of %d rows", seed, first, want[side])
			}
			for _, row := range first {
				if n := left[row]; n == 0 || n > 0 != (side == onlyChains) {
					t.Fatalf("seed %d: got %q of side %d, want rows that the other lacks", seed, row, side)
				}
			}
		}
	}
}

// TestDiffRowsFails: a read error is not a difference, and ends both sides.
func TestDiffRowsFails(t *testing.T) {
	broken := errors.New("broken")
	many := slices.Repeat([]string{"row"}, 10*rowsAtOnce)
	if _, err := diffRows(t.Context(), texts(nil, broken), texts(many, nil)); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	if _, err := diffRows(t.Context(), texts(many, nil), texts(nil, broken)); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

// TestPrintableRow: a row is cut and cannot control the terminal.
func TestPrintableRow(t *testing.T) {
	if got := printableRow([]byte("a\x1b[2J\u202eb\xff é")); got != "a\uFFFD[2J\uFFFDb é" {
		t.Errorf("got %q", got)
	}
	if got := printableRow([]byte(strings.Repeat("é", 1000))); len(got) > mostShown+len("…") || !strings.HasSuffix(got, "é…") {
		t.Errorf("got %q", got)
	}
}
