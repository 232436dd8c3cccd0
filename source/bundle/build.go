package bundle

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"iter"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/followpress/followpress/source"
)

// A Source is what somebody has read of a chain.
type Source struct {
	Chain         // without Point
	Points []Mark // where reading has ended, in order; the last one is how far it came. Without any, the log is empty
	Events source.Events
}

// A Mark is a Point as a number.
type Mark struct {
	Block  uint64
	Hash   [32]byte
	Time   int64 // of the block, in milliseconds since the Unix epoch
	Events uint64
}

// An Object is a body to be stored by a name.
type Object struct {
	Name string
	Body []byte
	Full bool // it never changes again
	// Replaces says that the log which is there has a bundle of this name, with fewer rows.
	Replaces bool
}

// ErrContradicts says that events are not those of the log that is there.
var ErrContradicts = errors.New("the events contradict the log that was published")

const remedy = "if the state is the one to believe, remove everything below _log/, publish again and purge _log/ from caches, and readers begin anew; " +
	"if not, read the state again, or name the state that the log was made of"

// A Built log is what Build has made.
type Built struct {
	Index *Index
	// Changed says that the index is another one than the one that was there.
	Changed bool
	Behind  bool // the log that was there has more rows, and stays
	Put     int  // bundles that it does not have
	Bytes   int64
}

// Build makes the log of all chains, of which was is what is there already; nil for nothing. put gets
// each bundle that is new or has grown, in order; nothing is compressed if it is nil. The index must
// only be stored after them. Memory is in proportion to a bundle. An error wraps ErrContradicts if the
// log that is there has other rows.
func Build(ctx context.Context, chains []Source, was *Index, put func(Object) error) (*Built, error) {
	chains = slices.Clone(chains)
	slices.SortFunc(chains, func(a, b Source) int { return cmp.Compare(a.ID, b.ID) })
	b := &builder{was: was, put: put, hash: sha256.New(), upto: map[uint64]uint64{}, built: &Built{Index: &Index{Bundles: []Bundle{}}}}
	if err := b.sameChains(chains); err != nil {
		return nil, err
	}
	cursors := make([]*cursor, len(chains))
	for i := range chains {
		if len(chains[i].Points) == 0 {
			return nil, fmt.Errorf("nothing of chain %d is known to be right yet: run followpress snapshot chain", chains[i].ID)
		}
		cursors[i] = &cursor{Source: &chains[i], order: newOrder()}
		next, stop := iter.Pull2(chains[i].Events)
		defer stop()
		cursors[i].next = next
		if err := cursors[i].advance(); err != nil {
			return nil, err
		}
	}
	for n := 0; ; n++ {
		c := slices.MinFunc(cursors, func(a, b *cursor) int {
			if a.at.before(b.at) {
				return -1
			}
			return 1
		})
		if c.ended { // what its next row is, nobody knows yet
			break
		}
		if err := b.add(&c.event); err != nil {
			return nil, err
		}
		if err := c.advance(); err != nil {
			return nil, err
		}
		if n%1000 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	return b.end(cursors)
}

// A cursor is at the next event of a chain.
type cursor struct {
	*Source
	order order
	next  func() (source.Event, error, bool)
	event source.Event
	at    position
	ended bool
}

func (c *cursor) advance() (err error) {
	e, err, ok := c.next()
	switch {
	case err != nil:
		return err
	case ok:
		c.event = e
		c.at, err = c.order.next(&e)
		return err
	}
	head := c.Points[len(c.Points)-1]
	c.ended, c.at = true, position{max(head.Time, c.order.latest), c.ID, head.Block + 1, 0}
	return nil
}

// point is the last one whose events are all in the log.
func (c *cursor) point() (*Point, error) {
	for _, p := range slices.Backward(c.Points) {
		if !c.ended && p.Block >= c.event.Block {
			continue
		}
		at, err := appendTime(nil, p.Time)
		if err != nil {
			return nil, fmt.Errorf("chain %d, block %d: %w", c.ID, p.Block, err)
		}
		return &Point{p.Block, "0x" + hex.EncodeToString(p.Hash[:]), string(at), p.Events}, nil
	}
	return nil, nil
}

// A builder collects rows in bundles.
type builder struct {
	was   *Index // nil for none
	put   func(Object) error
	built *Built
	upto  map[uint64]uint64 // events by chain, up to the point of was

	text []byte // of the bundle that is being made
	hash hash.Hash
	rows uint64
}

func (b *builder) sameChains(chains []Source) error {
	if b.was == nil {
		return nil
	}
	same := slices.EqualFunc(b.was.Chains, chains, func(a Chain, c Source) bool {
		return a.ID == c.ID && slices.Equal(a.Contracts, c.Contracts) && (a.First == nil || c.First == nil || *a.First == *c.First)
	})
	if !same {
		return fmt.Errorf("%w: it is of another deployment, or of other chains: %s", ErrContradicts, remedy)
	}
	return nil
}

// row is the number of the first row of the bundle that is being made.
func (b *builder) row() uint64 {
	if last := b.built.Index.last(); last != nil {
		return last.Row + last.Rows
	}
	return 0
}

// known is what the log that is there says of the bundle that is being made; nil for nothing.
func (b *builder) known() *Bundle {
	if i := len(b.built.Index.Bundles); b.was != nil && i < len(b.was.Bundles) {
		return &b.was.Bundles[i]
	}
	return nil
}

func (b *builder) contradicts(known *Bundle) error {
	return fmt.Errorf("%w: a row of bundle _log/%s, rows %d to %d, is another one: %s", ErrContradicts, known.Name(), known.Row, known.Row+known.Rows-1, remedy)
}

// point is what the log that is there has completely of a chain; nil for nothing.
func (b *builder) point(chain uint64) *Point {
	if b.was != nil {
		for i := range b.was.Chains {
			if b.was.Chains[i].ID == chain {
				return b.was.Chains[i].Point
			}
		}
	}
	return nil
}

// samePoint compares the events up to the point of a chain: whoever began with the log has no others.
func (b *builder) samePoint(chain uint64, p *Point) error {
	if b.upto[chain] != p.Events {
		return fmt.Errorf("%w: the log says that chain %d has %d events up to block %d, and by the state it has more or fewer: %s", ErrContradicts, chain, p.Events, p.Block, remedy)
	}
	return nil
}

func (b *builder) add(e *source.Event) (err error) {
	if p := b.point(e.Contract.Chain); p != nil && e.Block <= p.Block {
		if b.upto[e.Contract.Chain]++; b.upto[e.Contract.Chain] > p.Events {
			return b.samePoint(e.Contract.Chain, p)
		}
	}
	before := len(b.text)
	if b.text, err = appendRow(b.text, e); err != nil {
		return fmt.Errorf("chain %d, block %d, log %d: %w", e.Contract.Chain, e.Block, e.Index, err)
	}
	size := len(b.text) - before
	if size > MaxText {
		return fmt.Errorf("chain %d, block %d, log %d: its row has %d bytes, and a bundle at most %d", e.Contract.Chain, e.Block, e.Index, size, MaxText)
	}
	if b.rows == MaxRows || len(b.text) > MaxText {
		if err := b.finish(b.text[:before], true); err != nil {
			return err
		}
		b.text = b.text[:copy(b.text, b.text[before:])]
		before = 0
	}
	b.hash.Write(b.text[before:])
	b.rows++
	known := b.known()
	if known != nil && known.Rows == b.rows && (known.TextBytes != int64(len(b.text)) || known.TextSHA256 != b.sum()) {
		return b.contradicts(known)
	}
	return nil
}

func (b *builder) sum() string { return hex.EncodeToString(b.hash.Sum(nil)) }

// encoder is shared: it keeps megabytes, and makes the same bytes of the same text.
var encoder = sync.OnceValue(func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	if err != nil {
		panic(err) // of options that never change
	}
	return e
})

// finish completes the bundle that is being made.
func (b *builder) finish(text []byte, full bool) error {
	made := Bundle{Row: b.row(), Rows: b.rows, TextBytes: int64(len(text)), TextSHA256: b.sum()}
	known := b.known()
	switch {
	case known != nil && known.Rows == made.Rows:
		made = *known // add has compared them
	case known != nil && (known.Rows > made.Rows || known.Row+known.Rows < b.was.Rows):
		return b.contradicts(known) // only the last one may have fewer rows
	default:
		b.built.Put++
		if b.put == nil {
			break
		}
		body := encoder().EncodeAll(text, nil)
		made.Bytes, made.SHA256 = int64(len(body)), digest(body)
		b.built.Bytes += made.Bytes
		if err := b.put(Object{Name: made.Name(), Body: body, Full: full || made.Rows == MaxRows, Replaces: known != nil}); err != nil {
			return err
		}
	}
	b.built.Index.Bundles = append(b.built.Index.Bundles, made)
	b.rows = 0
	b.hash.Reset()
	return nil
}

func (b *builder) end(cursors []*cursor) (*Built, error) {
	built := b.built
	if b.was != nil && b.row()+b.rows < b.was.Rows {
		built.Index, built.Behind = b.was, true
		return built, nil
	}
	if b.rows > 0 {
		if err := b.finish(b.text, false); err != nil {
			return nil, err
		}
	}
	for i, c := range cursors {
		chain := c.Chain
		var err error
		if chain.Point, err = c.point(); err != nil {
			return nil, err
		}
		if b.was != nil { // of a state that was read in fewer runs, an earlier point may be the last one
			if earlier := b.was.Chains[i].Point; earlier != nil {
				if err := b.samePoint(chain.ID, earlier); err != nil {
					return nil, err
				}
				if chain.Point == nil || chain.Point.Block < earlier.Block {
					chain.Point = earlier
				}
			}
		}
		built.Index.Chains = append(built.Index.Chains, chain)
	}
	if err := built.Index.seal(); err != nil {
		return nil, err
	}
	built.Changed = b.was == nil || built.Put > 0 || built.Index.Digest != b.was.Digest
	return built, nil
}
