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

// ranksRetry is for an object of up to 1 GiB of a server that may be down for a moment.
var ranksRetry = storage.Retry{Patience: 15 * time.Second, Attempt: time.Hour, Hint: "check --endpoint, and that the server is up"}

// readRanks reads the object site.RanksKey of a site, which is nil if the site has none. The site is at s3://BUCKET,
// s3://BUCKET/PREFIX or file:///FOLDER, or in a folder, a .tar file or parts; any other file is that object itself. A
// bucket that does not exist is storage.ErrNoBucket, anything else an fs.ErrNotExist. Requests are retried. Unless check is nil,
// the object is read from what check makes of the site; a file that is the object itself is not checked.
func readRanks(ctx context.Context, from string, o storage.S3Options, check func(context.Context, storage.Site) (storage.Site, error)) ([]byte, error) {
	opened, err := openRanks(ctx, from, o)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", from, err)
	}
	defer opened.Close() // only read
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
				return fmt.Errorf("%s has %d bytes, more than any site's", site.RanksKey, size)
			}
			return nil
		})
		return err
	})
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	if errors.Is(err, storage.ErrNoBucket) {
		return nil, fmt.Errorf("read %s: %w: check its name, --endpoint and --region", from, storage.ErrNoBucket)
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
		return nil, errors.New("it is no folder and no regular file")
	}
	return fileOfRanks(from), nil
}

// fileOfRanks is the path of a file with the object, as a site that has nothing else.
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
