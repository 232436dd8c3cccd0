package generate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/ranks"
	"github.com/followpress/followpress/storage"
)

// ranksRetry retries for 15 s: long enough for a brief outage. An attempt may fetch up to 1 GiB.
var ranksRetry = storage.Retry{Patience: 15 * time.Second, Attempt: time.Hour, Hint: "check --endpoint, and that the server is up"}

// readRanks reads the object site.RanksKey of a site; nil if the site has none. check wraps the site before
// the read. A missing bucket is storage.ErrNoBucket, anything else missing an fs.ErrNotExist. Requests are
// retried.
func readRanks(ctx context.Context, from string, o storage.S3Options, check func(context.Context, storage.Site) (storage.Site, error)) (body []byte, err error) {
	place := from
	if at, err := storage.ParsePlace(from); err == nil && at.Folder != "" {
		place = at.Folder // as a bucket, a missing folder would be an empty one
	}
	opened, err := command.OpenSite(ctx, place, o)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", from, err)
	}
	defer opened.Close() // read-only
	err = ranksRetry.Do(ctx, func(ctx context.Context) error {
		from, err := check(ctx, opened)
		if err != nil {
			return err
		}
		body, err = from.GetAdmitted(ctx, site.RanksKey, func(_ context.Context, size int64) error {
			if size > ranks.MaxBytes {
				return fmt.Errorf("%s has %d bytes, more than any site has", site.RanksKey, size)
			}
			return nil
		})
		return err
	})
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, nil
	case errors.Is(err, storage.ErrNoBucket):
		return nil, fmt.Errorf("read %s: %w; check its name, --endpoint and --region", from, storage.ErrNoBucket)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", from, err)
	}
	return body, nil
}
