package render

import (
	"context"
	"slices"
	"strconv"

	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/site"
)

// group groups things by group number, keeping their order. offsets has the index of the first
// thing of each group; its last element is the number of things.
func group[N uint16 | uint32](things []uint32, groupOf []N, groups int) (offsets, grouped []uint32) {
	offsets = make([]uint32, groups+1)
	for _, group := range groupOf {
		offsets[int(group)+1]++
	}
	for group := range groups {
		offsets[group+1] += offsets[group]
	}
	next := slices.Clone(offsets)
	grouped = make([]uint32, len(things))
	for i, group := range groupOf {
		grouped[next[group]] = things[i]
		next[group]++
	}
	return offsets, grouped
}

func numbersBelow(n int) []uint32 {
	all := make([]uint32, n)
	for i := range all {
		all[i] = uint32(i)
	}
	return all
}

// window returns the n-th part of a table cut into parts of a size.
func window[T any](all []T, n, size int) []T {
	return all[min(n*size, len(all)):min((n+1)*size, len(all))]
}

// A partition sorts things into buckets by the hash of their texts.
type partition struct {
	digits  int      // hexadecimal digits of the names of buckets
	names   []string // names of buckets
	offsets []uint32 // by bucket: index of its first thing; the last element is the total
	things  []uint32 // things of all buckets; the order within a bucket is the input's
}

func newPartition(ctx context.Context, workers, digits int, things []uint32, text func(thing uint32) string) (partition, error) {
	p := partition{digits: digits, names: site.HashPrefixes(digits)}
	bucketOf := make([]uint16, len(things))
	err := inorder.Chunks(ctx, workers, len(things), func(i int) error {
		n, err := strconv.ParseUint(site.UserBucket(text(things[i]), digits), 16, 16)
		bucketOf[i] = uint16(n)
		return err
	})
	if err != nil {
		return partition{}, err
	}
	p.offsets, p.things = group(things, bucketOf, len(p.names))
	return p, nil
}

func (p *partition) in(bucket int) []uint32 {
	return p.things[p.offsets[bucket]:p.offsets[bucket+1]]
}
