// Package refreshed reads the data that refreshes have stored in a bucket or a folder: newer profiles and badges.
//
// The API may change in any release.
package refreshed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/internal/folder"
	"github.com/followpress/followpress/storage/internal/object"
	"github.com/followpress/followpress/storage/internal/s3"
)

// Limits of reads of refreshed data. The objects are small: a request that takes longer hangs.
const (
	requestsInFlight = 32
	attemptTime      = 30 * time.Second // limit of one attempt
	maxBytes         = 16 << 20         // per object; rows of a snapshot have the same limit
)

// copyNotes is the prefix of the keys of notes about copies.
var copyNotes = strings.TrimPrefix(string(site.RefreshCopies), string(site.RefreshPrefix))

// refreshFolder is the last segment of every location of refreshed data.
var refreshFolder = strings.TrimSuffix(string(site.RefreshPrefix), "/")

// Parse parses the location of refreshed data: the path of a folder, file:///folder or s3://bucket/…/_refresh. S3
// locations must end so, because an empty prefix and a misspelt one look alike.
func Parse(text string) (storage.Location, error) {
	if !strings.Contains(text, "://") {
		if text == "" {
			return storage.Location{}, errors.New("the location is empty; use a folder, or s3://BUCKET/" + refreshFolder)
		}
		return storage.Location{Folder: filepath.Clean(text)}, nil
	}
	at, err := storage.ParseLocation(text)
	if err != nil {
		return storage.Location{}, err
	}
	if at.Folder == "" && at.Prefix != string(site.RefreshPrefix) && !strings.HasSuffix(at.Prefix, "/"+string(site.RefreshPrefix)) {
		return storage.Location{}, fmt.Errorf("%s does not end in /%s; use s3://%s/%s%[2]s", text, refreshFolder, at.Bucket, at.Prefix)
	}
	return at, nil
}

// Data is refreshed data in a bucket or folder.
type Data struct {
	objects interface {
		Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error)
		List(ctx context.Context, prefix, after site.Key, found func(storage.Info) error) error
	}
	name string // for messages
}

// Open opens a location from Parse. A missing folder or bucket is an error, because a wrong name would silently lose
// newer profiles. The exception is the folder _refresh of an existing site, where nothing has been refreshed yet.
func Open(ctx context.Context, at storage.Location, o storage.S3Options) (*Data, error) {
	if at.Folder != "" {
		return openFolder(at.Folder)
	}
	bucket, err := storage.OpenBucket(ctx, at, o)
	if err != nil {
		return nil, err
	}
	r := &Data{bucket, "s3://" + at.Bucket + "/" + strings.TrimSuffix(at.Prefix, "/")}
	// Send one request now, so that a wrong name fails early.
	errFound := errors.New("found")
	err = s3.ReadRetry.Do(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, attemptTime)
		defer cancel()
		return bucket.List(ctx, "", "", func(storage.Info) error { return errFound })
	})
	if err != nil && !errors.Is(err, errFound) {
		return nil, r.explain(err)
	}
	return r, nil
}

func openFolder(path string) (*Data, error) {
	r := &Data{name: path}
	real, err := filepath.EvalSymlinks(path) // the link may change later
	switch {
	case folder.IsAbsent(err) && besideSite(path):
		r.objects = storage.OpenLocal(path)
		return r, nil
	case folder.IsAbsent(err):
		return nil, fmt.Errorf("%w; name the folder %s of a bucket, or create it if nothing was refreshed yet", r.explain(err), refreshFolder)
	case err != nil:
		return nil, r.explain(err)
	}
	if info, err := os.Stat(real); err != nil {
		return nil, r.explain(err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is a file; name the folder that holds the refreshed data", path)
	}
	for _, name := range []string{refreshFolder, string(site.RootKey)} {
		if _, err := os.Lstat(filepath.Join(real, name)); err == nil {
			return nil, fmt.Errorf("%s is a whole site or bucket; name its folder %s", path, filepath.Join(path, refreshFolder))
		}
	}
	r.objects = storage.OpenLocal(real)
	return r, nil
}

// besideSite reports whether a path is the folder _refresh of an existing site. The first refresh creates that
// folder.
func besideSite(path string) bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(path), string(site.RootKey)))
	return err == nil && filepath.Base(path) == refreshFolder
}

// Each calls found with each object, in key order and never concurrently. Keys are relative to the location. Each
// stops at the first error of found and returns it. It skips objects that are deleted in the meantime, and retries
// requests.
func (r *Data) Each(ctx context.Context, found func(key site.Key, body []byte) error) error {
	keys, err := r.list(ctx)
	if err != nil {
		return r.explain(err)
	}
	type object struct {
		key  site.Key
		body []byte // nil if deleted in the meantime
	}
	var stop error // found's error, returned as it is
	err = inorder.Each(ctx, requestsInFlight, len(keys), func(ctx context.Context, i int) (object, error) {
		body, err := r.read(ctx, keys[i])
		return object{keys[i], body}, err
	}, func(o object) error {
		if o.body != nil {
			stop = found(o.key, o.body)
		}
		return stop
	})
	if err != nil && stop == nil {
		return r.explain(err)
	}
	return stop
}

// list returns all data keys, sorted. It skips keys that end in a slash, because S3 consoles create such empty
// objects to show folders, and notes about copies, which have no data.
func (r *Data) list(ctx context.Context) ([]site.Key, error) {
	var keys []site.Key
	var last site.Key
	err := s3.ReadRetry.Do(ctx, func() error {
		attempt, cancel := context.WithCancel(ctx)
		defer cancel()
		stalled := time.AfterFunc(attemptTime, cancel)
		defer stalled.Stop()
		err := r.objects.List(attempt, "", last, func(info storage.Info) error {
			stalled.Reset(attemptTime)
			last = info.Key
			if last == "" || strings.HasSuffix(string(last), "/") || strings.HasPrefix(string(last), copyNotes) {
				return nil
			}
			if info.Size > maxBytes {
				return fmt.Errorf("%s has %d bytes, more than %d MiB: no refresh writes such objects; delete it", last, info.Size, maxBytes>>20)
			}
			keys = append(keys, last)
			return nil
		})
		if err != nil && attempt.Err() != nil && ctx.Err() == nil {
			return &object.TemporaryError{Err: fmt.Errorf("list: no progress in %s", attemptTime)}
		}
		return err
	})
	slices.Sort(keys)
	return slices.Compact(keys), err
}

// read reads an object. The body is nil if it no longer exists.
func (r *Data) read(ctx context.Context, key site.Key) (body []byte, err error) {
	err = s3.ReadRetry.Do(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, attemptTime)
		defer cancel()
		body, _, err = r.objects.Read(ctx, key)
		return err
	})
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	return body, err
}

// explain adds the location to an error, and what to check.
func (r *Data) explain(err error) error { return s3.ExplainRead(r.name, err) }
