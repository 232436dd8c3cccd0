package storage

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/followpress/followpress/internal/retry"
	"github.com/followpress/followpress/site"
)

// A Retry bounds how long a request that fails temporarily is retried. It may be copied, and is safe for concurrent
// use.
type Retry struct {
	Patience time.Duration // from the first failure; 0 means no limit
	Attempt  time.Duration // limit of one attempt, including the body; 0 means 2 minutes
	Hint     string        // what to check, added to the last error; may be empty
	Log      *slog.Logger  // logs each retry; nil means none
}

// Do calls attempt until it succeeds, fails with an error that is not Temporary, or the patience ends. Each attempt
// gets a context with the limit of one. The attributes describe the request in the log.
func (r Retry) Do(ctx context.Context, attempt func(context.Context) error, attributes ...any) error {
	limit := r.Attempt
	if limit == 0 {
		limit = 2 * time.Minute
	}
	policy := retry.Policy{
		Retryable: Temporary, First: 200 * time.Millisecond, Longest: 5 * time.Second, Patience: r.Patience, Hint: r.Hint, Log: r.Log,
	}
	return policy.Do(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return attempt(ctx)
	}, attributes...)
}

// A Reader is the read-only part of a Site, safe for concurrent use.
type Reader interface {
	// GetAdmitted reads an object, or returns an error that wraps ErrNotFound. It first calls admit with the size in
	// bytes, before it allocates memory, and returns admit's error, if any.
	GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error)
}

// Retrying is a Reader that retries temporary failures of another one.
type Retrying struct {
	From Reader
	Retry
}

// GetAdmitted implements Reader. It may call admit again for each attempt.
func (r Retrying) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) (body []byte, err error) {
	err = r.Do(ctx, func(ctx context.Context) error {
		body, err = r.From.GetAdmitted(ctx, key, admit)
		return err
	}, "key", key)
	return body, err
}

// GetBounded reads an object of at most that many bytes. A larger one returns an error that wraps ErrTooLarge.
func (r Retrying) GetBounded(ctx context.Context, key site.Key, most int64) ([]byte, error) {
	body, err := r.GetAdmitted(ctx, key, func(_ context.Context, size int64) error {
		if size > most {
			return &sizeError{size, most}
		}
		return nil
	})
	if err == nil && int64(len(body)) > most { // the server did not state the size
		err = &sizeError{int64(len(body)), most}
	}
	return body, err
}

// A sizeError reports an object that is too large.
type sizeError struct{ size, most int64 }

func (e *sizeError) Error() string {
	return fmt.Sprintf("%d bytes, expected at most %d", e.size, e.most)
}
func (e *sizeError) Unwrap() error { return ErrTooLarge }
