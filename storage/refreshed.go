package storage

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
	"github.com/followpress/followpress/internal/retry"
	"github.com/followpress/followpress/site"
)

// Limits of reading refreshed data. The objects are small: a request that takes longer hangs.
const (
	refreshedRequests = 32               // in flight
	refreshedTime     = 30 * time.Second // of an attempt
	refreshedBytes    = 16 << 20         // of an object, as of a row of a snapshot
)

// readRetry is for reading what is not a site. It is a variable for the tests, which shorten its waits.
var readRetry = retry.Policy{
	Retryable: Temporary, First: 200 * time.Millisecond, Longest: 5 * time.Second, Attempts: 7,
	Hint: "check --endpoint, and that the server is up",
}

// copyNotes begins the keys of notes about copies.
var copyNotes = strings.TrimPrefix(string(site.RefreshCopies), string(site.RefreshPrefix))

// refreshFolder is the last part of every location of refreshed data.
var refreshFolder = strings.TrimSuffix(string(site.RefreshPrefix), "/")

// ParseRefreshed parses the location of refreshed data: the path of a folder, file:///folder
// or s3://bucket/…/_refresh. The ending is required because S3 cannot tell an empty prefix
// from a misspelt one.
func ParseRefreshed(text string) (Location, error) {
	if !strings.Contains(text, "://") {
		if text == "" {
			return Location{}, errors.New("the location has no name: use a folder, or s3://BUCKET/" + refreshFolder)
		}
		return Location{Folder: filepath.Clean(text)}, nil
	}
	at, err := ParseLocation(text)
	if err != nil {
		return Location{}, err
	}
	if at.Folder == "" && at.Prefix != string(site.RefreshPrefix) && !strings.HasSuffix(at.Prefix, "/"+string(site.RefreshPrefix)) {
		return Location{}, fmt.Errorf("%s does not end in /%s: name s3://%s/%s%[2]s", text, refreshFolder, at.Bucket, at.Prefix)
	}
	return at, nil
}

// Refreshed reads the data that refreshes have stored in a bucket or folder.
type Refreshed struct {
	objects interface {
		Read(ctx context.Context, key site.Key) ([]byte, Info, error)
		List(ctx context.Context, prefix, after site.Key, found func(Info) error) error
	}
	name string // for people
}

// OpenRefreshed opens a location from ParseRefreshed. A folder or bucket that does not exist
// is an error, because a wrong name would silently lose newer profiles. The exception is the
// folder _refresh of an existing site: there, nothing has been refreshed yet.
func OpenRefreshed(ctx context.Context, at Location, o S3Options) (*Refreshed, error) {
	if at.Folder != "" {
		return openRefreshedFolder(at.Folder)
	}
	bucket, err := OpenS3(ctx, at, o)
	if err != nil {
		return nil, err
	}
	r := &Refreshed{bucket, "s3://" + at.Bucket + "/" + strings.TrimSuffix(at.Prefix, "/")}
	// One request now, so that a wrong name fails before the work begins.
	errFound := errors.New("found")
	err = readRetry.Do(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, refreshedTime)
		defer cancel()
		return bucket.List(ctx, "", "", func(Info) error { return errFound })
	})
	if err != nil && !errors.Is(err, errFound) {
		return nil, r.explain(err)
	}
	return r, nil
}

func openRefreshedFolder(path string) (*Refreshed, error) {
	r := &Refreshed{name: path}
	real, err := filepath.EvalSymlinks(path) // a link may change later
	switch {
	case isAbsent(err) && besideSite(path):
		r.objects = OpenLocal(path)
		return r, nil
	case isAbsent(err):
		return nil, fmt.Errorf("%w: name the folder %s of a bucket, or create it if nothing was refreshed yet", r.explain(err), refreshFolder)
	case err != nil:
		return nil, r.explain(err)
	}
	if info, err := os.Stat(real); err != nil {
		return nil, r.explain(err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is a file: name the folder that holds the refreshed data", path)
	}
	for _, name := range []string{refreshFolder, string(site.RootKey)} {
		if _, err := os.Lstat(filepath.Join(real, name)); err == nil {
			return nil, fmt.Errorf("%s is a whole site or bucket: name its folder %s", path, filepath.Join(path, refreshFolder))
		}
	}
	r.objects = OpenLocal(real)
	return r, nil
}

// besideSite reports whether a path is the folder _refresh of an existing site, which the
// first refresh creates.
func besideSite(path string) bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(path), string(site.RootKey)))
	return err == nil && filepath.Base(path) == refreshFolder
}

// Each calls found with each object, in the order of keys and never concurrently. Keys are
// relative to the location. Each stops at the first error of found and returns it. Objects
// that are deleted meanwhile are skipped. Requests are retried.
func (r *Refreshed) Each(ctx context.Context, found func(key site.Key, body []byte) error) error {
	keys, err := r.list(ctx)
	if err != nil {
		return r.explain(err)
	}
	type object struct {
		key  site.Key
		body []byte // nil if it does not exist any more
	}
	var stop error // of found, which needs no explanation
	err = inorder.Each(ctx, refreshedRequests, len(keys), func(ctx context.Context, i int) (object, error) {
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

// list returns all keys of data in order. Keys that end in a slash are skipped: S3 consoles create
// such empty objects to show folders. So are notes about copies, which have no data of their own.
func (r *Refreshed) list(ctx context.Context) ([]site.Key, error) {
	var keys []site.Key
	var last site.Key
	err := readRetry.Do(ctx, func() error {
		attempt, cancel := context.WithCancel(ctx)
		defer cancel()
		stalled := time.AfterFunc(refreshedTime, cancel)
		defer stalled.Stop()
		err := r.objects.List(attempt, "", last, func(info Info) error {
			stalled.Reset(refreshedTime)
			last = info.Key
			if last == "" || strings.HasSuffix(string(last), "/") || strings.HasPrefix(string(last), copyNotes) {
				return nil
			}
			if info.Size > refreshedBytes {
				return fmt.Errorf("%s has %d bytes, more than %d MiB: no refresh makes such objects, so delete it", last, info.Size, refreshedBytes>>20)
			}
			keys = append(keys, last)
			return nil
		})
		if err != nil && attempt.Err() != nil && ctx.Err() == nil {
			return &temporaryError{fmt.Errorf("list: nothing in %s", refreshedTime)}
		}
		return err
	})
	slices.Sort(keys)
	return slices.Compact(keys), err
}

// read reads an object; the body is nil if it does not exist any more.
func (r *Refreshed) read(ctx context.Context, key site.Key) (body []byte, err error) {
	err = readRetry.Do(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, refreshedTime)
		defer cancel()
		body, _, err = r.objects.Read(ctx, key)
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return body, err
}

// explain adds the location to an error, and what to check.
func (r *Refreshed) explain(err error) error { return explainRead(r.name, err) }

func explainRead(place string, err error) error {
	if errors.Is(err, ErrNoBucket) {
		return fmt.Errorf("read %s: %w: check its name, --endpoint and --region", place, ErrNoBucket)
	}
	return fmt.Errorf("read %s: %w", place, err)
}
