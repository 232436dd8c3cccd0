package storage_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A reader answers with a function of the attempt's number.
type reader func(ctx context.Context, attempt int, admit func(ctx context.Context, size int64) error) ([]byte, error)

type counted struct {
	reader
	attempts int
}

func (c *counted) GetAdmitted(ctx context.Context, _ site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	c.attempts++
	return c.reader(ctx, c.attempts, admit)
}

// TestRetrying: temporary failures are retried until the patience ends, a hanging read is interrupted, and no read
// exceeds its limit, whether the server states the size or not.
func TestRetrying(t *testing.T) {
	t.Parallel()
	lost := &storage.UnansweredError{Err: errors.New("the network failed")}
	said := func(size int64, body string) reader {
		return func(ctx context.Context, _ int, admit func(context.Context, int64) error) ([]byte, error) {
			if err := admit(ctx, size); err != nil {
				return nil, err
			}
			return []byte(body), nil
		}
	}
	for _, c := range []struct {
		name     string
		from     reader
		attempts int
		took     [2]time.Duration // at least, at most
		body     string
		err      error
	}{
		{"an answer", said(4, "body"), 1, [2]time.Duration{}, "body", nil},
		{"an answer at the bound", said(8, "12345678"), 1, [2]time.Duration{}, "12345678", nil},
		{"too large, as the server says", said(9, "never sent"), 1, [2]time.Duration{}, "", storage.ErrTooLarge},
		{"too large, and the server has not said", said(0, "123456789"), 1, [2]time.Duration{}, "", storage.ErrTooLarge},
		{"busy twice", func(_ context.Context, n int, _ func(context.Context, int64) error) ([]byte, error) {
			if n < 3 {
				return nil, lost
			}
			return []byte("body"), nil
		}, 3, [2]time.Duration{200 * time.Millisecond, time.Second}, "body", nil},
		{"no such object", func(context.Context, int, func(context.Context, int64) error) ([]byte, error) {
			return nil, storage.ErrNotFound
		}, 1, [2]time.Duration{}, "", storage.ErrNotFound},
		{"one request hangs", func(ctx context.Context, n int, _ func(context.Context, int64) error) ([]byte, error) {
			if n == 1 {
				<-ctx.Done()
				return nil, &storage.UnansweredError{Err: ctx.Err()}
			}
			return []byte("body"), nil
		}, 2, [2]time.Duration{7 * time.Second, 8 * time.Second}, "body", nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			from := &counted{reader: c.from}
			begun := time.Now()
			body, err := storage.Retrying{From: from, Retry: storage.Retry{Patience: time.Minute, Attempt: 7 * time.Second}}.GetBounded(t.Context(), "key", 8)
			took := time.Since(begun)
			if !errors.Is(err, c.err) || c.err == nil && string(body) != c.body {
				t.Errorf("%s: got %q, %v, want %q, %v", c.name, body, err, c.body, c.err)
			}
			if from.attempts != c.attempts || took < c.took[0] || took > c.took[1] {
				t.Errorf("%s: got %d attempts in %v, want %d in %v", c.name, from.attempts, took, c.attempts, c.took)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		from := &counted{reader: func(context.Context, int, func(context.Context, int64) error) ([]byte, error) { return nil, lost }}
		begun := time.Now()
		_, err := storage.Retrying{From: from, Retry: storage.Retry{Patience: time.Minute, Hint: "look"}}.GetBounded(t.Context(), "key", 8)
		if took := time.Since(begun); !errors.Is(err, lost) || took > time.Minute || took < 50*time.Second {
			t.Errorf("never an answer: got %v after %v, want its error within the patience of a minute", err, took)
		}
	})
}
