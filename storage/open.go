package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage/internal/files"
	"github.com/followpress/followpress/storage/internal/folder"
	"github.com/followpress/followpress/storage/internal/location"
	"github.com/followpress/followpress/storage/internal/s3"
	"github.com/followpress/followpress/storage/internal/tarfile"
	"github.com/followpress/followpress/storage/internal/web"
	"github.com/followpress/followpress/storage/parts"
)

// A Site is a readable site: a folder, a tar file, parts, or a bucket.
type Site interface {
	// Get reads an object, or returns ErrNotFound. The caller must not change the body.
	Get(ctx context.Context, key site.Key) ([]byte, error)
	// GetAdmitted is like Get, but first calls admit with the size in bytes, before it allocates memory. It returns
	// admit's error, if any.
	GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error)
	Close() error
}

// A Bucket is a Site that can be published to: S3, or Local.
type Bucket interface {
	Site
	// Read is like Get and also returns the bucket's metadata.
	Read(ctx context.Context, key site.Key) ([]byte, Info, error)
	// Put writes an object and returns its ETag. If the condition does not hold, it returns ErrCondition.
	Put(ctx context.Context, o Object, condition Condition) (etag string, err error)
	// Delete deletes objects. Missing objects are not errors.
	Delete(ctx context.Context, keys []site.Key) error
	// List calls found for each object with the prefix whose key is greater than after, in key order.
	List(ctx context.Context, prefix, after site.Key, found func(Info) error) error
	// Now returns the time by the bucket's clock, which also sets Info.Modified.
	Now() time.Time
	// Requests counts the billed requests by kind.
	Requests() map[Request]int
	// Create, AllowRead and AllowOrigins set up a new bucket.
	Create(ctx context.Context) (created bool, err error)
	AllowRead(ctx context.Context, patterns []string) error
	AllowOrigins(ctx context.Context) error
}

// A Location is a bucket with a prefix, or a folder.
type Location = location.Location

// ParseLocation parses s3://bucket, s3://bucket/prefix or file:///folder.
func ParseLocation(text string) (Location, error) { return location.Parse(text) }

// ParsePlace is like ParseLocation and also accepts the path of a folder.
func ParsePlace(text string) (Location, error) { return location.ParsePlace(text) }

// S3Options configure the connection to a server.
type S3Options = s3.Options

// A Local is a bucket in a local folder, with the semantics of S3 but without headers.
type Local = folder.Local

// OpenLocal returns the bucket in a folder, which need not exist yet.
func OpenLocal(path string) *Local { return folder.OpenLocal(path) }

// OpenBucket opens a bucket without sending a request. The options apply to s3:// only.
func OpenBucket(ctx context.Context, at Location, o S3Options) (b Bucket, err error) {
	if at.Folder != "" {
		if err := checkBucket(at.Folder); err != nil {
			return nil, err
		}
		b, err = OpenLocal(at.Folder).Pinned()
	} else {
		b, err = s3.Open(ctx, at.Bucket, at.Prefix, o)
	}
	if err != nil {
		return nil, err // b is a nil pointer of one kind
	}
	return b, nil
}

// checkBucket returns an error if the path holds a file or a snapshot instead of a bucket.
func checkBucket(folder string) error {
	if info, err := os.Stat(folder); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is a file, not a folder; name a folder, or use --site for a .tar file", folder)
	}
	if isSnapshot(folder) {
		return fmt.Errorf("%s is a snapshot, not a bucket; name the folder to publish to, or use --snapshot %[1]s", folder)
	}
	return nil
}

// OpenFiles lists the files at an S3 location, which must not be a local folder. It retries
// requests. All requests, also later ones, use ctx. A file that is replaced or deleted later
// becomes unreadable. Stat returns an Info as Sys. A missing folder counts as empty, because S3
// does not distinguish the two.
func OpenFiles(ctx context.Context, at Location, o S3Options) (afero.Fs, error) {
	bucket, err := s3.Open(ctx, at.Bucket, at.Prefix, o)
	if err != nil {
		return nil, err
	}
	return files.Open(ctx, bucket)
}

// NewFolder returns the site in a file system whose paths are the keys.
func NewFolder(files afero.Fs) *folder.Folder { return folder.New(files) }

// OpenSite opens a folder, a .tar file, or parts: FOLDER/part-*, s3://BUCKET/part-* or s3://BUCKET/PREFIX/part-*. It
// sends no request, and does not check that a site exists. The options apply to s3:// only.
func OpenSite(ctx context.Context, text string, o S3Options) (Site, error) {
	if place, ok := parts.At(text); ok {
		return openParts(ctx, place, o)
	}
	if strings.Contains(text, "://") {
		return nil, fmt.Errorf("open the site: %s is not a folder, a .tar file or parts (s3://BUCKET/PREFIX/%s)", text, parts.In(""))
	}
	info, err := os.Stat(text)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open the site: %w; name a folder or .tar file written by generate, or a bucket as s3://BUCKET or file:///FOLDER", err)
	} else if err != nil {
		return nil, fmt.Errorf("open the site: %w", err)
	}
	if info.IsDir() {
		if parts.HeldBy(text) && !holds(text, string(site.RootKey)) {
			return nil, fmt.Errorf("open the site: %s holds a site in parts; name them as '%s', in quotes", text, parts.In(text))
		}
		if isSnapshot(text) {
			return nil, fmt.Errorf("open the site: %s is a snapshot, not a site; use --snapshot %[1]s (generate, publish, preview)", text)
		}
		return folder.At(text), nil
	}
	if !strings.HasSuffix(text, ".tar") {
		hint := ""
		if parts.IsName(filepath.Base(text)) {
			hint = fmt.Sprintf("; it is a part of a site, so name all parts as '%s', in quotes", parts.In(filepath.Dir(text)))
		}
		return nil, fmt.Errorf("open the site: %s is neither a folder nor a .tar file%s", text, hint)
	}
	file, err := tarfile.Open(text)
	if err != nil {
		return nil, fmt.Errorf("open the site: %w", err)
	}
	return file, nil
}

func openParts(ctx context.Context, place string, o S3Options) (Site, error) {
	if !strings.Contains(place, "://") {
		if info, err := os.Stat(place); err != nil {
			return nil, fmt.Errorf("open the site: %w", err)
		} else if !info.IsDir() {
			return nil, fmt.Errorf("open the site: %s is not a folder", place)
		}
	}
	opened, err := parts.Open(ctx, place, o)
	if err != nil {
		return nil, fmt.Errorf("open the site: %w", err)
	}
	return opened.Site(), nil
}

// isSnapshot reports whether a folder holds a snapshot but no site.
func isSnapshot(folder string) bool {
	return holds(folder, "meta.json") && !holds(folder, string(site.RootKey))
}

func holds(folder, name string) bool {
	_, err := os.Lstat(filepath.Join(folder, name))
	return err == nil
}

// IsWeb reports whether text is the URL of an online site: https://HOST or https://HOST/PREFIX.
func IsWeb(text string) bool { return web.Is(text) }

// CheckPublished returns an error if OpenPublished would reject text.
func CheckPublished(text string) error {
	if IsWeb(text) {
		_, err := web.Open(text)
		return err
	}
	if _, err := ParseLocation(text); err != nil {
		return fmt.Errorf("%w, or https://HOST", err)
	}
	return nil
}

// OpenPublished opens a published site: https://HOST, s3://BUCKET or file:///FOLDER. It sends no request. The options
// apply to s3:// only.
func OpenPublished(ctx context.Context, text string, o S3Options) (Site, error) {
	if err := CheckPublished(text); err != nil {
		return nil, err
	}
	if IsWeb(text) {
		return web.Open(text)
	}
	at, err := ParseLocation(text)
	if err != nil {
		return nil, err
	}
	return OpenBucket(ctx, at, o)
}
