package output

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/followpress/followpress/generator/internal/units"
	"github.com/followpress/followpress/generator/internal/whole"
	"github.com/followpress/followpress/internal/inorder"
)

// Limits of a chunk, the part of a site that one worker renders at a time: a few hundred small
// objects, or those of one long list.
const (
	unitsPerChunk   = 64
	recordsPerChunk = 4096
)

// A chunk is a range of units of one kind.
type chunk struct {
	kind     units.Kind
	from, to int
}

func chunksOf(s *whole.Site) iter.Seq2[chunk, error] {
	return func(yield func(chunk, error) bool) {
		for _, p := range s.Kinds {
			for from := 0; from < p.Units; {
				c := chunk{p, from, endOf(&p, from)}
				if !yield(c, nil) {
					return
				}
				from = c.to
			}
		}
	}
}

// endOf returns the end of the chunk that begins with a unit.
func endOf(p *units.Kind, from int) int {
	to := from
	for records := 0; to < min(from+unitsPerChunk, p.Units) && records < recordsPerChunk; to++ {
		if p.Records != nil {
			records += p.Records(to)
		}
	}
	return to
}

// renderAll renders every object of a site into out, and adds their entries to all, unless it is
// nil.
func renderAll(ctx context.Context, s *whole.Site, workers int, out Output, all *entryStore, progress Progress) error {
	budget := semaphore.NewWeighted(int64(workers) * budgetPerWorker)
	free := sync.Pool{New: func() any { return &chunkBuffers{hasher: newHasher()} }}
	rendered := int64(0)
	err := inorder.Do(ctx, workers, chunksOf(s),
		func(c chunk, t *inorder.Ticket[piece]) (piece, error) {
			buffers := free.Get().(*chunkBuffers)
			p := &chunkWriter{out: out, ticket: t, all: all, budget: budget, chunkBuffers: *buffers, piece: piece{batch: out.Begin()}}
			defer func() {
				if cap(p.body) <= maxFreePiece {
					*buffers = p.chunkBuffers
					free.Put(buffers)
				}
			}()
			var s units.Scratch
			for unit := c.from; unit < c.to && p.err == nil; unit++ {
				c.kind.Render(unit, &s, p.emit)
			}
			return p.last()
		},
		func(p piece) error {
			rendered += p.objects
			progress.AddBytes(p.objects, p.rendered)
			defer budget.Release(p.budget)
			return out.Finish(p.batch)
		})
	if err != nil {
		return err
	}
	if rendered != s.Objects() {
		return fmt.Errorf("rendered %d objects instead of %d; this is a bug", rendered, s.Objects())
	}
	return nil
}
