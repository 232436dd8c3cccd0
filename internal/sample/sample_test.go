package sample_test

import (
	"math"
	"testing"

	"github.com/followpress/followpress/internal/sample"
)

// The bound equals published tables.
func TestBound(t *testing.T) {
	for _, test := range []struct {
		wrong, n int
		want     float64
	}{
		{0, 1000, 1 - math.Pow(0.05, 1.0/1000)}, // 0.002991, the rule of three
		{0, 1, 0.95},
		{0, 50, 1 - math.Pow(0.05, 1.0/50)},
		{1, 2, math.Sqrt(0.95)}, // 1-p² = 0.05
		{1, 10, 0.39416},
		{2, 20, 0.28262},
		{5, 100, 0.10225},
		{10, 10, 1},
	} {
		if got := sample.Bound(test.wrong, test.n); math.Abs(got-test.want) > 5e-6 {
			t.Errorf("%d of %d: got %.6f, want %.6f", test.wrong, test.n, got, test.want)
		}
	}
}
