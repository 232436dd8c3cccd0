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

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
)

// Limits of reading what was refreshed. The objects are small: what takes longer hangs.
const (
	refreshedReads   = 32  // requests in flight
	refreshedAtOnce  = 256 // objects in memory
	refreshedTries   = 7   // of a request
	refreshedLongest = 5 * time.Second
	refreshedTime    = 30 * time.Second // of a request
)

// refreshedWait is the first wait before trying again; the others are longer.
var refreshedWait = 200 * time.Millisecond

// refreshFolder is the last part of locations of what was refreshed.
var refreshFolder = strings.TrimSuffix(string(site.RefreshPrefix), "/")

// ParseRefreshed reads where refreshes keep what they fetch: the path of a folder,
// file:///folder or s3://bucket/…/_refresh. Nothing below a prefix of S3 is as good
// as a prefix that is misspelt, so the end is asked for.
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

// Refreshed reads what refreshes have kept in a bucket.
type Refreshed struct {
	objects interface {
		Read(ctx context.Context, key site.Key) ([]byte, Info, error)
		List(ctx context.Context, prefix, after site.Key, found func(Info) error) error
	}
	name string // for people
}

// OpenRefreshed opens what ParseRefreshed has read. A folder or a bucket that is not
// there is an error: without it newer profiles would be lost. Of a folder beside a site
// it is known that nothing was refreshed yet.
func OpenRefreshed(ctx context.Context, at Location, o S3Options) (*Refreshed, error) {
	if at.Folder != "" {
		return openRefreshedFolder(at.Folder)
	}
	bucket, err := OpenS3(ctx, at, o)
	if err != nil {
		return nil, err
	}
	r := &Refreshed{bucket, "s3://" + at.Bucket + "/" + strings.TrimSuffix(at.Prefix, "/")}
	// One request now: a wrong name should not cost minutes.
	errFound := errors.New("found")
	err = patiently(ctx, func(ctx context.Context) error {
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
	real, err := filepath.EvalSymlinks(path) // whatever a link leads to later
	switch {
	case isAbsent(err) && beside(path):
		r.objects = OpenLocal(path)
		return r, nil
	case isAbsent(err):
		return nil, fmt.Errorf("%w: name the folder %s of a bucket, or make it if nothing was refreshed yet", r.explain(err), refreshFolder)
	case err != nil:
		return nil, r.explain(err)
	}
	if info, err := os.Stat(real); err != nil {
		return nil, r.explain(err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s is a file: name the folder that holds what was refreshed", path)
	}
	for _, name := range []string{refreshFolder, string(site.RootKey)} {
		if _, err := os.Lstat(filepath.Join(real, name)); err == nil {
			return nil, fmt.Errorf("%s is a whole site or bucket: name its folder %s", path, filepath.Join(path, refreshFolder))
		}
	}
	r.objects = OpenLocal(real)
	return r, nil
}

// beside reports whether a path is where a site in a folder keeps what is refreshed:
// then it is there as soon as something is.
func beside(path string) bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(path), string(site.RootKey)))
	return err == nil && filepath.Base(path) == refreshFolder
}

// Each calls found with each object: its key below the location, in the order of
// keys, one at a time. It stops at the first error of found. Objects that go away
// meanwhile are left out.
func (r *Refreshed) Each(ctx context.Context, found func(key site.Key, body []byte) error) error {
	keys, err := r.list(ctx)
	if err != nil {
		return r.explain(err)
	}
	type result struct {
		body  []byte
		there bool
	}
	results := make([]result, refreshedAtOnce)
	for some := range slices.Chunk(keys, refreshedAtOnce) {
		group, reading := errgroup.WithContext(ctx)
		group.SetLimit(refreshedReads)
		for i, key := range some {
			group.Go(func() (err error) {
				results[i].body, results[i].there, err = r.read(reading, key)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return r.explain(err)
		}
		for i, key := range some {
			if !results[i].there {
				continue
			}
			if err := found(key, results[i].body); err != nil {
				return err
			}
		}
	}
	return nil
}

// list gives all keys in order. Folders are no objects: consoles of S3 make empty ones
// that end in a slash.
func (r *Refreshed) list(ctx context.Context) ([]site.Key, error) {
	var keys []site.Key
	var last site.Key
	err := patiently(ctx, func(ctx context.Context) error {
		attempt, cancel := context.WithCancel(ctx)
		defer cancel()
		stalled := time.AfterFunc(refreshedTime, cancel)
		defer stalled.Stop()
		err := r.objects.List(attempt, "", last, func(info Info) error {
			stalled.Reset(refreshedTime)
			last = info.Key
			if last != "" && !strings.HasSuffix(string(last), "/") {
				keys = append(keys, last)
			}
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

// read reads an object; there is false if it is gone.
func (r *Refreshed) read(ctx context.Context, key site.Key) (body []byte, there bool, err error) {
	err = patiently(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, refreshedTime)
		defer cancel()
		body, _, err = r.objects.Read(ctx, key)
		return err
	})
	if errors.Is(err, ErrNotFound) {
		return nil, false, nil
	}
	return body, err == nil, err
}

// explain says what was to be read, and what to check in the words of who reads.
func (r *Refreshed) explain(err error) error {
	switch {
	case errors.Is(err, ErrNoBucket):
		return fmt.Errorf("read %s: %w: check its name, --endpoint and --region", r.name, ErrNoBucket)
	case Temporary(err):
		return fmt.Errorf("read %s: %w (tried %d times: check --endpoint, and that the server is up)", r.name, err, refreshedTries)
	}
	return fmt.Errorf("read %s: %w", r.name, err)
}

// patiently tries again what fails for a reason that may go away, a few times.
func patiently(ctx context.Context, attempt func(context.Context) error) error {
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval, wait.MaxInterval, wait.Multiplier = refreshedWait, refreshedLongest, 2
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := attempt(ctx)
		if err != nil && !Temporary(err) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(wait), backoff.WithMaxTries(refreshedTries))
	return err
}
