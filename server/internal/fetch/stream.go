package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/followpress/followpress/site"
)

// A ranger reads parts, of at least one byte, of an object with an ETag.
type ranger interface {
	describer
	ReadRange(ctx context.Context, key site.Key, etag string, offset, length int64) (io.ReadCloser, error)
}

// HasRanges reports whether the store reads parts of objects. A checked store does not: it needs
// the whole.
func (f *Fetcher) HasRanges() bool {
	_, ok := f.Store.(ranger)
	return ok
}

// A Stream reads an object from the store as the caller asks, without holding its body. Only one
// goroutine may use it.
type Stream struct {
	ETag string // without quotation marks
	Size int64

	fetcher  *Fetcher
	key      site.Key
	at       int64
	part     io.ReadCloser // nil before the first Read
	ctx      context.Context
	cancel   context.CancelCauseFunc
	stalling *time.Timer
	err      error
}

var errStalled = errors.New("the store stopped sending")

// Open opens an object of a store that HasRanges. The caller closes the Stream. ctx bounds the
// opening. Reading ends with during, and when the store sends nothing within the time limit.
func (f *Fetcher) Open(ctx, during context.Context, key site.Key) (*Stream, error) {
	s := &Stream{fetcher: f, key: key}
	err := f.withRetry(ctx, time.Time{}, "read", func(ctx context.Context) error {
		info, err := f.Store.(ranger).Stat(ctx, key)
		s.ETag, s.Size = info.ETag, info.Size
		return err
	})
	if err == nil && s.ETag == "" {
		err = fmt.Errorf("read %s: the store returned no ETag, so its parts may belong to different objects", key)
	}
	if err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancelCause(during)
	s.stalling = time.AfterFunc(f.Timeout, func() { s.cancel(errStalled) })
	return s, nil
}

// Limit ends the Stream length bytes from the current position.
func (s *Stream) Limit(length int64) { s.Size = min(s.Size, s.at+length) }

// Seek implements io.Seeker. It must come before the first Read.
func (s *Stream) Seek(offset int64, whence int) (int64, error) {
	if whence == io.SeekEnd {
		offset += s.Size
	}
	s.at = offset
	return offset, nil
}

// Read implements io.Reader.
func (s *Stream) Read(p []byte) (n int, err error) {
	if s.at >= s.Size || s.err != nil {
		return 0, errors.Join(s.err, io.EOF)
	}
	s.stalling.Reset(s.fetcher.Timeout)
	if s.part == nil {
		s.part, s.err = s.fetcher.Store.(ranger).ReadRange(s.ctx, s.key, s.ETag, s.at, s.Size-s.at)
	}
	if s.err == nil {
		n, s.err = s.part.Read(p)
		s.at += int64(n)
	}
	s.stalling.Stop() // no time limit while the client reads
	if errors.Is(s.err, io.EOF) && s.at == s.Size {
		s.err = nil
	}
	return n, s.err
}

// Close closes the Stream and returns the store's error that ended it early, if any.
func (s *Stream) Close() error {
	s.stalling.Stop()
	defer s.cancel(nil)
	if s.part != nil {
		_ = s.part.Close() // read completely, or no longer needed
	}
	if s.err != nil {
		return fmt.Errorf("read %s: %w", s.key, errors.Join(s.err, context.Cause(s.ctx)))
	}
	return nil
}
