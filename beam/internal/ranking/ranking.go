// Package ranking computes the exact places of accounts by each measure: 1 for the largest count,
// and equal counts by address.
//
// An account is moved twice, regardless of the number of measures, because accounts are grouped by
// address and not by count: a place is the number of accounts with a larger count, those with the
// same count in groups of lower addresses, and those with the same count before it in its own
// group.
//
//  1. A random sample of the addresses cuts them into ranges of about the same size (sample.go).
//  2. The accounts of a range are a group. It is sorted, and its accounts are counted by measure and
//     count (groups.go).
//  3. These numbers meet by measure and block of counts, and become the place before each group's first
//     account of a count. They also are the histogram (blocks.go).
//  4. Each group gets its numbers back, and counts on from them.
//
// The sample only affects the sizes of groups, so places are exact.
//
// The values of a key are bounded: a group by Options.BucketMax, and a block by the number of
// groups times its number of counts, or by the number of accounts with such counts, if smaller:
// some megabytes for hundreds of millions of accounts.
package ranking

import (
	"crypto/rand"
	"encoding/binary"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/followpress/followpress/beam/internal/dofn"
	"github.com/followpress/followpress/beam/internal/wire"
)

// DefaultBucketMax is the default of Options.BucketMax. This many accounts take about 2 MB as an
// element and 4 MB in a worker.
const DefaultBucketMax = 1 << 16

// sampleMax is the number of addresses in the sample. 28 bytes each: 1.8 MB.
const sampleMax = 1 << 16

// samplesPerGroup is the minimum number of samples per group, so that sizes do not vary much.
const samplesPerGroup = 16

// Options configures a ranking.
type Options struct {
	// Measures is the number of ranked measures, from the first; 0 means all.
	Measures int
	// Zeros gives accounts with a count in any of the first wire.Ranked measures places in all of
	// these: where their count is 0, behind all others.
	Zeros bool
	// BucketMax is the approximate number of accounts grouped under one key; 0 means
	// DefaultBucketMax. Up to sampleMax accounts it is never exceeded. Beyond, groups have half as
	// many on average, regardless of the addresses; and with more than 2,048 times as many accounts
	// (134 million with the default) groups grow, because there are at most 4,096.
	BucketMax int
	// Seed selects the sample. It changes no place, but those who know it can choose addresses that
	// make groups uneven. 0 means a random seed.
	Seed uint64

	sampleMax int // for tests; 0 means the constant
}

// A Result is the order of accounts.
type Result struct {
	// Places is a PCollection<KV<string, []byte>>: the key of an address (wire.AddressKey), and all
	// its places as wire.Place, concatenated in the order of measures. Accounts without a place
	// have no element.
	Places beam.PCollection
	// Histogram is a PCollection<KV<string, []byte>>: the number of accounts by measure and count.
	// The key is the measure as one byte. A measure has several values, for disjoint ranges of
	// counts. EachCount decodes a value. Counts of 0 are included only if they have places.
	Histogram beam.PCollection
	// Groups is a PCollection<int64>: the number of accounts of each group.
	Groups beam.PCollection
}

// Places ranks accounts. counts is a PCollection<KV<string, []byte>>: the key of an address
// (wire.AddressKey), and its wire.Counts. A duplicate address is an error.
func Places(s beam.Scope, counts beam.PCollection, o Options) Result {
	s = s.Scope("ranking")
	o = o.withDefaults()
	what := selection{o.Measures, o.Zeros}

	samples := beam.ParDo(s, &sampleFn{What: what, Size: o.sampleMax, Seed: o.Seed}, counts)
	sample := beam.Combine(s, &mergeFn{Size: o.sampleMax}, samples)
	ends := beam.ParDo(s, &rangesFn{BucketMax: o.BucketMax}, sample)

	rows := beam.ParDo(s, &groupFn{What: what}, counts, beam.SideInput{Input: ends})
	groups, blocks, sizes := beam.ParDo3(s, &countFn{What: what}, beam.GroupByKey(s, rows))
	starts, histogram, totals := beam.ParDo3(s, &blockFn{}, beam.GroupByKey(s, blocks))
	places := beam.ParDo(s, &placeFn{What: what}, beam.GroupByKey(s, beam.Flatten(s, groups, starts)),
		beam.SideInput{Input: totals})
	return Result{places, histogram, sizes}
}

func (o Options) withDefaults() Options {
	if o.Measures == 0 {
		o.Measures = wire.Measures
	}
	if o.BucketMax == 0 {
		o.BucketMax = DefaultBucketMax
	}
	for o.Seed == 0 {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails
		o.Seed = binary.LittleEndian.Uint64(b[:])
	}
	if o.sampleMax == 0 {
		o.sampleMax = sampleMax
	}
	return o
}

// A selection lists the measures in which an account has a place.
type selection struct {
	Measures int
	Zeros    bool
}

// measures returns, as bits, the measures in which an account with these counts has a place.
func (s selection) measures(counts *wire.Counts) (measures uint) {
	for m, n := range counts[:s.Measures] {
		if n != 0 {
			measures |= 1 << m
		}
	}
	if first := uint(1)<<min(wire.Ranked, s.Measures) - 1; s.Zeros && measures&first != 0 {
		measures |= first
	}
	return measures
}

// EachCount calls f for each count of a value of Result.Histogram, in ascending order.
func EachCount(value []byte, f func(count, accounts uint32)) error {
	d := wire.Decode(value)
	for d.More() {
		count, n := d.Uint32(), d.Uint32()
		if d.Err() == nil {
			f(count, n)
		}
	}
	return d.Err()
}

func init() {
	dofn.Register3x1(&sampleFn{})
	register.Combiner1[[]byte](&mergeFn{})
	dofn.Register2x0(&rangesFn{})
	dofn.Register4x1(&groupFn{})
	dofn.Register5x1(&countFn{})
	dofn.Register5x1(&blockFn{})
	dofn.Register4x1(&placeFn{})
	register.Iter1[[]byte]()
	register.Emitter1[[]byte]()
	register.Emitter1[int64]()
	register.Emitter2[string, []byte]()
}
