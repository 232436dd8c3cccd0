package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/source"
)

// A Fetch reads an object of the log by its name, IndexName or that of a bundle. It must not return
// more than most bytes: ErrTooLarge says that there are more. ErrNone says that there is no such
// object. It is called from many goroutines.
type Fetch func(ctx context.Context, name string, most int64) ([]byte, error)

// Errors of a Fetch.
var (
	ErrNone     = errors.New("no such object")
	ErrTooLarge = errors.New("the object is larger than it may be")
)

// ErrDamaged says that a bundle is not what the index names.
var ErrDamaged = errors.New("the log is damaged")

// advice is what whoever reads a damaged log can do; who writes it, is told by verify.
const advice = "read it from another place, or ask who publishes it to run followpress verify"

func (b *Bundle) damaged(format string, args ...any) error {
	return fmt.Errorf("%w: bundle _log/%s, rows %d to %d: %w: %s", ErrDamaged, b.Name(), b.Row, b.Row+b.Rows-1, fmt.Errorf(format, args...), advice)
}

// ReadIndex gets the index.
func ReadIndex(ctx context.Context, fetch Fetch) (*Index, error) {
	body, err := fetch(ctx, IndexName, MaxIndex)
	switch {
	case errors.Is(err, ErrNone):
		return nil, fmt.Errorf("there is no log, _log/%s: publish --history makes one: %w", IndexName, err)
	case errors.Is(err, ErrTooLarge):
		return nil, fmt.Errorf("%w: _log/%s has more than %d bytes: %s", ErrDamaged, IndexName, MaxIndex, advice)
	case err != nil:
		return nil, fmt.Errorf("_log/%s: %w", IndexName, err)
	}
	x, err := ParseIndex(body)
	if err != nil {
		return nil, fmt.Errorf("_log/%s: %w: %s", IndexName, err, advice)
	}
	return x, nil
}

// A Log is one that has been fetched, or can be.
type Log struct {
	Index *Index

	bundle func(ctx context.Context, b *Bundle) ([]byte, error) // the object, as the index names it, or with more rows
}

// Open gets the index of a log, and each bundle when its events are read.
func Open(ctx context.Context, fetch Fetch) (*Log, error) {
	x, err := ReadIndex(ctx, fetch)
	if err != nil {
		return nil, err
	}
	return &Log{x, func(ctx context.Context, b *Bundle) ([]byte, error) { return b.fetch(ctx, fetch, b == x.last()) }}, nil
}

// fetch gets the object. It has at most as many bytes as it should have; the last bundle may have grown
// since, up to MaxObject.
func (b *Bundle) fetch(ctx context.Context, fetch Fetch, last bool) ([]byte, error) {
	most := b.Bytes
	if last {
		most = MaxObject
	}
	body, err := fetch(ctx, b.Name(), most)
	switch {
	case errors.Is(err, ErrNone):
		return nil, b.damaged("there is no such object")
	case errors.Is(err, ErrTooLarge):
		return nil, b.damaged("it has more than %d bytes, and should have %d: it was altered or replaced", most, b.Bytes)
	case err != nil:
		return nil, fmt.Errorf("bundle _log/%s: %w", b.Name(), err)
	}
	return body, nil
}

// A Progress is told how far Download has come.
type Progress interface {
	Stage(name string, total int64)
	Add(n int64)
	End()
}

const (
	requests = 8 // in flight, each with a bundle in memory
	again    = 5 // times that the index is read because a bundle has grown since
)

// Download gets all of a log into a folder, which need not exist: a run that was killed goes on where it
// was. Each bundle is checked before it gets its name. The folder is for this only; whoever has used the
// log removes it.
func Download(ctx context.Context, fetch Fetch, dir string, p Progress) (*Log, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // it is only read from by then
	d := &download{root, fetch, p}
	x, err := ReadIndex(ctx, fetch)
	for tries := 1; err == nil; tries++ {
		err = d.get(ctx, x)
		if err == nil || !errors.Is(err, ErrDamaged) || tries == again {
			break
		}
		newer, readErr := ReadIndex(ctx, fetch)
		if readErr != nil || newer.Digest == x.Digest {
			break // it is damaged, and not only newer than the index was
		}
		x, err = newer, nil
	}
	if err != nil {
		return nil, err
	}
	return &Log{x, func(_ context.Context, b *Bundle) ([]byte, error) { return os.ReadFile(root.Name() + "/" + b.Name()) }}, nil
}

type download struct {
	root     *os.Root
	fetch    Fetch
	progress Progress
}

func (d *download) get(ctx context.Context, x *Index) error {
	d.progress.Stage("bundles", int64(len(x.Bundles)))
	defer d.progress.End()
	return inorder.Each(ctx, requests, len(x.Bundles), func(ctx context.Context, i int) (struct{}, error) {
		defer d.progress.Add(1)
		return struct{}{}, d.one(ctx, &x.Bundles[i], &x.Bundles[i] == x.last())
	}, func(struct{}) error { return nil })
}

func (d *download) one(ctx context.Context, b *Bundle, last bool) error {
	if file, err := d.root.Open(b.Name()); err == nil {
		body, err := io.ReadAll(io.LimitReader(file, MaxObject))
		if errors.Join(err, file.Close()) == nil && b.check(body, last) == nil {
			return nil // an earlier run has got it
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	body, err := b.fetch(ctx, d.fetch, last)
	if err != nil {
		return err
	}
	if err := b.check(body, last); err != nil {
		return err
	}
	fresh := b.Name() + ".new"
	file, err := d.root.OpenFile(fresh, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(body)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return d.root.Rename(fresh, b.Name())
}

// check compares an object with its digest. The last bundle may have grown since the index was made: then
// its beginning must have the digest.
func (b *Bundle) check(body []byte, last bool) error {
	if int64(len(body)) == b.Bytes && digest(body) == b.SHA256 {
		return nil
	}
	if last {
		if _, err := b.text(body); err == nil {
			return nil
		}
	}
	return b.damaged("it has %d bytes with the SHA-256 %s, and should have %d with %s: it was cut, altered or replaced", len(body), digest(body), b.Bytes, b.SHA256)
}

// text decompresses an object, but for rows that were added since the index was made, and compares the
// rows with their digest. It takes no more memory than they should have, whatever the object is.
func (b *Bundle) text(body []byte) ([]byte, error) {
	decoder, err := zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(2*MaxText))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	text := make([]byte, b.TextBytes)
	if n, err := io.ReadFull(decoder, text); err != nil {
		return nil, b.damaged("it ends after %d bytes of text, and should have %d: %w", n, b.TextBytes, err)
	}
	if sum := digest(text); sum != b.TextSHA256 {
		return nil, b.damaged("its rows have the SHA-256 %s, and should have %s", sum, b.TextSHA256)
	}
	return text, nil
}

// parse makes events of rows.
func (b *Bundle) parse(text []byte) ([]source.Event, error) {
	events, scratch := make([]source.Event, 0, b.Rows), []byte(nil)
	for left := text; len(left) > 0; {
		end := bytes.IndexByte(left, '\n') + 1
		number := b.Row + uint64(len(events))
		switch {
		case end == 0:
			return nil, b.damaged("row %d has no end", number)
		case uint64(len(events)) == b.Rows:
			return nil, b.damaged("it has more than %d rows", b.Rows)
		}
		e, err := parseRow(left[:end], &scratch)
		if err != nil {
			return nil, b.damaged("row %d: %w", number, err)
		}
		events = append(events, e)
		left = left[end:]
	}
	if uint64(len(events)) != b.Rows {
		return nil, b.damaged("it has %d rows, and should have %d", len(events), b.Rows)
	}
	return events, nil
}

// errStop ends the reading of somebody who has enough.
var errStop = errors.New("enough")

// Events are the events of the log, in its order; those of a chain are in the order of the chain. Bundles
// are read on all cores, some ahead. An error names the bundle and the row. Events may be used again, and
// the values of an event stay valid.
func (l *Log) Events(ctx context.Context) source.Events {
	return func(yield func(source.Event, error) bool) {
		c, enough := &checker{chains: map[uint64]*order{}}, false
		for i := range l.Index.Chains {
			o := newOrder()
			c.chains[l.Index.Chains[i].ID] = &o
		}
		type part struct {
			*Bundle
			events []source.Event
		}
		err := inorder.Each(ctx, 2*runtime.GOMAXPROCS(0), len(l.Index.Bundles), func(ctx context.Context, i int) (part, error) {
			b := &l.Index.Bundles[i]
			body, err := l.bundle(ctx, b)
			if err == nil {
				err = b.check(body, b == l.Index.last())
			}
			if err != nil {
				return part{}, err
			}
			text, err := b.text(body)
			if err != nil {
				return part{}, err
			}
			events, err := b.parse(text)
			return part{b, events}, err
		}, func(p part) error {
			for i := range p.events {
				if err := c.next(&p.events[i]); err != nil {
					return p.damaged("row %d: %w", p.Row+uint64(i), err)
				}
				if enough = !yield(p.events[i], nil); enough {
					return errStop
				}
			}
			return nil
		})
		if err != nil && !enough { // the error may be another one than errStop, of a bundle that was read ahead
			yield(source.Event{}, err)
		}
	}
}

// A checker checks that rows are in the order of the log.
type checker struct {
	chains map[uint64]*order
	last   position
	begun  bool
}

func (c *checker) next(e *source.Event) error {
	o := c.chains[e.Contract.Chain]
	if o == nil {
		return fmt.Errorf("the index has no chain %d", e.Contract.Chain)
	}
	at, err := o.next(e)
	if err != nil {
		return err
	}
	if c.begun && !c.last.before(at) {
		return errors.New("it comes before the row before it")
	}
	c.last, c.begun = at, true
	return nil
}

// Verify compares all bundles with the index, and says of each that is damaged what is wrong; of no more
// than most, and then how many others there are. The error is of requests.
func Verify(ctx context.Context, fetch Fetch, most int) (x *Index, damaged []error, err error) {
	if x, err = ReadIndex(ctx, fetch); err != nil {
		return nil, nil, err
	}
	others := 0
	err = inorder.Each(ctx, requests, len(x.Bundles), func(ctx context.Context, i int) (error, error) {
		b := &x.Bundles[i]
		body, err := b.fetch(ctx, fetch, b == x.last())
		if err == nil {
			err = b.check(body, b == x.last())
		}
		var text []byte
		if err == nil {
			text, err = b.text(body)
		}
		if err == nil {
			_, err = b.parse(text)
		}
		if errors.Is(err, ErrDamaged) {
			return err, nil
		}
		return nil, err
	}, func(found error) error {
		switch {
		case found == nil:
		case len(damaged) < most:
			damaged = append(damaged, errors.New(strings.TrimSuffix(found.Error(), ": "+advice)))
		default:
			others++
		}
		return nil
	})
	if others > 0 {
		damaged = append(damaged, fmt.Errorf("and %d more", others))
	}
	return x, damaged, err
}
