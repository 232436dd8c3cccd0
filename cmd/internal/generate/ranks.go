package generate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/ranks"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/parts"
)

// ranksRetry retries for 15 s: long enough for a brief outage. An attempt may fetch up to 1 GiB.
var ranksRetry = storage.Retry{Patience: 15 * time.Second, Attempt: time.Hour, Hint: "check --endpoint, and that the server is up"}

// readRanks reads the object site.RanksKey of a site; nil if the site has none. from is a bucket
// (s3://BUCKET, s3://BUCKET/PREFIX or file:///FOLDER), a folder, a .tar file, parts, or a file that is the
// object itself. check, unless nil, wraps the site before the read; it does not apply to the object itself.
// A missing bucket is storage.ErrNoBucket, anything else missing an fs.ErrNotExist. Requests are retried.
func readRanks(ctx context.Context, from string, o storage.S3Options, check func(context.Context, storage.Site) (storage.Site, error)) ([]byte, error) {
	opened, err := openRanks(ctx, from, o)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", from, err)
	}
	defer opened.Close() // read-only
	var body []byte
	if _, isObject := opened.(fileOfRanks); isObject || check == nil {
		check = func(_ context.Context, s storage.Site) (storage.Site, error) { return s, nil }
	}
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
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if errors.Is(err, storage.ErrNoBucket) {
		return nil, fmt.Errorf("read %s: %w; check its name, --endpoint and --region", from, storage.ErrNoBucket)
	} else if err != nil {
		return nil, fmt.Errorf("read %s: %w", from, err)
	}
	return body, nil
}

func openRanks(ctx context.Context, from string, o storage.S3Options) (storage.Site, error) {
	_, isParts := parts.At(from)
	if strings.Contains(from, "://") && !isParts {
		at, err := storage.ParseLocation(from)
		if err != nil {
			return nil, err
		}
		if at.Folder == "" {
			return storage.OpenBucket(ctx, at, o)
		}
		from = at.Folder
	}
	if isParts || strings.HasSuffix(from, ".tar") {
		return storage.OpenSite(ctx, from, o)
	}
	info, err := os.Stat(from)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return storage.OpenSite(ctx, from, o)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("neither a folder nor a regular file")
	}
	return fileOfRanks(from), nil
}

// fileOfRanks is the path of a file with the object, presented as a site with no other object.
type fileOfRanks string

// Get implements storage.Site.
func (f fileOfRanks) Get(ctx context.Context, key site.Key) ([]byte, error) {
	return f.GetAdmitted(ctx, key, func(context.Context, int64) error { return nil })
}

// GetAdmitted implements storage.Site.
func (f fileOfRanks) GetAdmitted(ctx context.Context, _ site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	info, err := os.Stat(string(f))
	if err != nil {
		return nil, err
	}
	if err := admit(ctx, info.Size()); err != nil {
		return nil, err
	}
	return os.ReadFile(string(f))
}

// Close implements storage.Site.
func (f fileOfRanks) Close() error { return nil }
