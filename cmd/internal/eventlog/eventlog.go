// Package eventlog reads the log of all events from where a site is published: a bucket, a folder, or a
// web server in front of one.
package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/followpress/followpress/internal/retry"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source/bundle"
	"github.com/followpress/followpress/storage"
)

const (
	attemptTime = 2 * time.Minute // of a request, whose answer has a bundle at most
	attempts    = 7
)

// Check is an error if a text is no place of a log.
func Check(from string) error { return storage.CheckPublished(from) }

// Open returns what reads objects of the log at https://HOST, s3://BUCKET or file:///FOLDER, and what
// closes it. Requests that fail for a passing reason are made again. It sends no request itself.
func Open(ctx context.Context, from string, o storage.S3Options) (bundle.Fetch, func() error, error) {
	at, err := storage.OpenPublished(ctx, from, o)
	if err != nil {
		return nil, nil, err
	}
	return Of(at), at.Close, nil
}

// Of is Open of a bucket or a web server that is open.
func Of(bucket storage.Site) bundle.Fetch {
	fetch := func(ctx context.Context, name string, most int64) ([]byte, error) {
		body, err := bucket.GetAdmitted(ctx, site.LogKey(name), func(_ context.Context, size int64) error {
			if size > most {
				return bundle.ErrTooLarge
			}
			return nil
		})
		if errors.Is(err, storage.ErrNotFound) {
			err = fmt.Errorf("%w: %w", bundle.ErrNone, err)
		}
		return body, err
	}
	policy := retry.Policy{Retryable: storage.Temporary, First: 200 * time.Millisecond, Longest: 5 * time.Second, Attempts: attempts, Hint: "check the address, and that the server is up"}
	return func(ctx context.Context, name string, most int64) (body []byte, err error) {
		err = policy.Do(ctx, func() error {
			attempt, cancel := context.WithTimeout(ctx, attemptTime)
			defer cancel()
			body, err = fetch(attempt, name, most)
			return err
		})
		return body, err
	}
}
