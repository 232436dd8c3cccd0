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

// A Site is a site to read: a folder, a tar file, parts, or a bucket.
type Site interface {
	// Get reads an object, or returns ErrNotFound. The caller must not change the body.
	Get(ctx context.Context, key site.Key) ([]byte, error)
	// GetAdmitted is Get that calls admit with the size in bytes before it allocates memory, and
	// returns the error of admit, if any.
	GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error)
	Close() error
}

// A Bucket is a Site that can be published to: S3, or Local. Packages that take one describe the methods
// that they need in interfaces of their own.
type Bucket interface {
	Site
	// Read is Get with what the bucket says of the object.
	Read(ctx context.Context, key site.Key) ([]byte, Info, error)
	// Put writes an object if the condition holds, else it returns ErrCondition. It returns the ETag.
	Put(ctx context.Context, o Object, condition Condition) (etag string, err error)
	// Delete deletes objects. One that is not there is no error.
	Delete(ctx context.Context, keys []site.Key) error
	// List lists the objects whose keys have a prefix and come after a key, by their keys.
	List(ctx context.Context, prefix, after site.Key, found func(Info) error) error
	// Now is the time by the bucket's clock, the one of Info.Modified.
	Now() time.Time
	// Requests counts the requests that cost something.
	Requests() map[Request]int
	// Create, AllowRead and AllowOrigins set a new bucket up.
	Create(ctx context.Context) (created bool, err error)
	AllowRead(ctx context.Context, patterns []string) error
	AllowOrigins(ctx context.Context) error
}

// A Location is a bucket with a prefix, or a folder.
type Location = location.Location

// ParseLocation parses s3://bucket, s3://bucket/prefix or file:///folder.
func ParseLocation(text string) (Location, error) { return location.Parse(text) }

// ParsePlace is ParseLocation that also takes the path of a folder.
func ParsePlace(text string) (Location, error) { return location.ParsePlace(text) }

// S3Options say how to reach a server.
type S3Options = s3.Options

// A Local is a bucket in a local folder, with the semantics of S3 but without headers.
type Local = folder.Local

// OpenLocal returns the bucket in a folder, which need not exist.
func OpenLocal(path string) *Local { return folder.OpenLocal(path) }

// OpenBucket opens a bucket. It sends no request. The options are for s3:// only.
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

// checkBucket says what there is where no bucket can be.
func checkBucket(folder string) error {
	if info, err := os.Stat(folder); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is a file, and a bucket is a folder: name another one; a .tar file is what --site takes", folder)
	}
	if isSnapshot(folder) {
		return fmt.Errorf("%s is a snapshot, and no bucket: name the folder that a site of it is published to, or %[1]s with --snapshot", folder)
	}
	return nil
}

// OpenFiles lists the files at a location of S3, which must not be a folder of this machine. Requests
// are retried. ctx is that of all requests, also of later ones. The files stay those that they were: one that is
// replaced or deleted later cannot be read any more. What Stat returns has an Info as its Sys. An empty folder is
// no error: a bucket does not know whether it is there.
func OpenFiles(ctx context.Context, at Location, o S3Options) (afero.Fs, error) {
	bucket, err := s3.Open(ctx, at.Bucket, at.Prefix, o)
	if err != nil {
		return nil, err
	}
	return files.Open(ctx, bucket)
}

// NewFolder returns a site in a file system whose paths are the keys.
func NewFolder(files afero.Fs) *folder.Folder { return folder.New(files) }

// OpenSite opens a folder, a .tar file, or parts: FOLDER/part-*, s3://BUCKET/part-* or s3://BUCKET/PREFIX/part-*. It
// sends no request, and does not check that there is a site. The options are for s3:// only.
func OpenSite(ctx context.Context, text string, o S3Options) (Site, error) {
	if place, ok := parts.At(text); ok {
		return openParts(ctx, place, o)
	}
	if strings.Contains(text, "://") {
		return nil, fmt.Errorf("open the site: %s is no folder, no .tar file and no parts: those are s3://BUCKET/PREFIX/%s", text, parts.In(""))
	}
	info, err := os.Stat(text)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open the site: %w: name a folder or a .tar file that generate wrote, or a bucket: s3://BUCKET or file:///FOLDER", err)
	} else if err != nil {
		return nil, fmt.Errorf("open the site: %w", err)
	}
	if info.IsDir() {
		if parts.HeldBy(text) && !holds(text, string(site.RootKey)) {
			return nil, fmt.Errorf("open the site: %s holds a site in parts: name them '%s', in quotes", text, parts.In(text))
		}
		if isSnapshot(text) {
			return nil, fmt.Errorf("open the site: %s is a snapshot, and no site: use --snapshot %[1]s (generate, publish, preview)", text)
		}
		return folder.At(text), nil
	}
	if !strings.HasSuffix(text, ".tar") {
		hint := ""
		if parts.IsName(filepath.Base(text)) {
			hint = fmt.Sprintf(", but a part of a site: name all parts, '%s', in quotes", parts.In(filepath.Dir(text)))
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
			return nil, fmt.Errorf("open the site: %s is no folder", place)
		}
	}
	opened, err := parts.Open(ctx, place, o)
	if err != nil {
		return nil, fmt.Errorf("open the site: %w", err)
	}
	return opened.Site(), nil
}

// isSnapshot reports whether a folder is a snapshot, and no site.
func isSnapshot(folder string) bool {
	return holds(folder, "meta.json") && !holds(folder, string(site.RootKey))
}

func holds(folder, name string) bool {
	_, err := os.Lstat(filepath.Join(folder, name))
	return err == nil
}

// IsWeb reports whether a text is the URL of a site that is online: https://HOST or https://HOST/PREFIX.
func IsWeb(text string) bool { return web.Is(text) }

// CheckPublished returns an error if a text is no place for OpenPublished.
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

// OpenPublished opens a site where it is published: https://HOST, s3://BUCKET or file:///FOLDER. It sends no request. The
// options are for s3:// only.
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
