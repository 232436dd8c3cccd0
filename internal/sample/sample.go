// Package sample estimates the share of wrong items, such as lists or objects of a site, from a
// sample.
package sample

import "math"

// Confidence is the confidence level of Bound.
const Confidence = 0.95

// Bound returns the one-sided Clopper-Pearson bound: if `wrong` of n random items are wrong, the
// share of wrong items among all is below it, with probability Confidence. If the sample is a large
// part of all items, the true bound is lower.
func Bound(wrong, n int) float64 {
	if wrong >= n {
		return 1
	}
	low, high := 0.0, 1.0
	for range 100 { // enough halvings for the precision of float64
		if p := (low + high) / 2; atMost(wrong, n, p) > 1-Confidence {
			low = p
		} else {
			high = p
		}
	}
	return high
}

// atMost returns the probability of at most k successes of n, each with probability p.
func atMost(k, n int, p float64) float64 {
	if p <= 0 {
		return 1
	}
	all, _ := math.Lgamma(float64(n + 1))
	sum := 0.0
	for i := range k + 1 {
		some, _ := math.Lgamma(float64(i + 1))
		rest, _ := math.Lgamma(float64(n - i + 1))
		sum += math.Exp(all - some - rest + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return sum
}
