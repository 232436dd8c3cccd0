package sample_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/followpress/followpress/internal/sample"
)

// All items are drawn with the same frequency, regardless of the sizes of shards. A few items need
// few shards.
func TestEachItemIsAsLikely(t *testing.T) {
	const shards, samples, size = 64, 4_000, 8
	sizes := make([]int, shards)
	items := 0
	for range 10 * shards {
		sizes[rand.IntN(shards)]++
		items++
	}
	drawn := make([][]int, shards)
	for i, n := range sizes {
		drawn[i] = make([]int, n)
	}
	reads := 0
	for range samples {
		s := sample.NewShards(shards, items)
		for left := size; left > 0; {
			for shard, places := range s.Draw(left) {
				reads++
				if !s.Read(shard, sizes[shard]) {
					t.Fatalf("a shard with %d items has too few places", sizes[shard])
				}
				for _, place := range places {
					if place < sizes[shard] {
						drawn[shard][place]++
						left--
					}
				}
			}
		}
	}
	mean := float64(samples*size) / float64(items)
	chi, small, large := 0.0, 0, 0
	for shard, of := range drawn {
		for _, n := range of {
			chi += (float64(n) - mean) * (float64(n) - mean) / mean
			if sizes[shard] < 10 {
				small += n
			} else {
				large += n
			}
		}
	}
	// With this many degrees of freedom chi is nearly normal; six deviations occur once in a
	// billion runs.
	if freedom := float64(items - 1); math.Abs(chi-freedom) > 6*math.Sqrt(2*freedom) {
		t.Errorf("chi square: got %.0f, want about %.0f", chi, freedom)
	}
	if perSample := float64(reads) / samples; perSample > 8*size {
		t.Errorf("got %.1f shards read for %d items of so small shards", perSample, size)
	}
	if small == 0 || large == 0 {
		t.Error("all shards have one size")
	}
}

func TestNothingToDraw(t *testing.T) {
	s := sample.NewShards(4, 100) // the declared number of items
	for shard := range 4 {
		s.Read(shard, 0)
	}
	if drawn := s.Draw(10); len(drawn) != 0 {
		t.Errorf("got %v, want none", drawn)
	}
	if sample.NewShards(4, 4).Read(0, 1_000) {
		t.Error("a shard with more items than places is not noticed")
	}
}
