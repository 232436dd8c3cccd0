package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/followpress/followpress/site"
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

// OpenBucket opens a bucket. It sends no request. The options are for s3:// only.
func OpenBucket(ctx context.Context, at Location, o S3Options) (b Bucket, err error) {
	if at.Folder != "" {
		if err := checkBucket(at.Folder); err != nil {
			return nil, err
		}
		b, err = OpenLocal(at.Folder).Pinned()
	} else {
		b, err = OpenS3(ctx, at, o)
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
	if holds(folder, "meta.json") && !holds(folder, string(site.RootKey)) {
		return fmt.Errorf("%s is a snapshot, and no bucket: name the folder that a site of it is published to, or %[1]s with --snapshot", folder)
	}
	return nil
}

// allParts is what names all parts of a folder or below a prefix. It is read as it is: shells must not
// replace it by the names.
const allParts = "/" + partPrefix + "*"

// PartsAt returns the place of the parts that a text like FOLDER/part-* or s3://BUCKET/PREFIX/part-*
// names, for OpenParts. It reports false for other texts.
func PartsAt(text string) (place string, ok bool) {
	if text == allParts[1:] {
		return ".", true
	}
	place, ok = strings.CutSuffix(text, allParts)
	if ok && place == "" {
		place = "/"
	}
	return place, ok
}

// OpenSite opens a folder, a .tar file, or the parts FOLDER/part-*. It does not check that there is a
// site.
func OpenSite(path string) (Site, error) {
	if strings.Contains(path, "://") {
		return nil, fmt.Errorf("open the site: %s is a URL: name a folder, a .tar file, or parts in a folder", path)
	}
	if place, ok := PartsAt(path); ok {
		if info, err := os.Stat(place); err != nil {
			return nil, fmt.Errorf("open the site: %w", err)
		} else if !info.IsDir() {
			return nil, fmt.Errorf("open the site: %s is no folder", place)
		}
		return newPartsSite(newParts(partsFolder(place), nil), chunksOfFolder), nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open the site: %w: name a folder or a .tar file that generate wrote, or a bucket: s3://BUCKET or file:///FOLDER", err)
	} else if err != nil {
		return nil, fmt.Errorf("open the site: %w", err)
	}
	if info.IsDir() {
		if holdsParts(path) {
			return nil, fmt.Errorf("open the site: %s holds a site in parts: name them '%s', in quotes", path, filepath.Join(path, allParts[1:]))
		}
		if holds(path, "meta.json") && !holds(path, string(site.RootKey)) {
			return nil, fmt.Errorf("open the site: %s is a snapshot, and no site: use --snapshot %[1]s (generate, publish, preview)", path)
		}
		return folderAt(path), nil
	}
	if !strings.HasSuffix(path, ".tar") {
		hint := ""
		if isPartName(filepath.Base(path)) {
			hint = fmt.Sprintf(", but a part of a site: name all parts, '%s', in quotes", filepath.Join(filepath.Dir(path), allParts[1:]))
		}
		return nil, fmt.Errorf("open the site: %s is neither a folder nor a .tar file%s", path, hint)
	}
	t, err := newTarFile(path)
	if err != nil {
		return nil, fmt.Errorf("open the site: %w", err)
	}
	return t, nil
}

// holdsParts reports whether a folder holds parts, maybe of a run that has not ended, and no root of a
// site.
func holdsParts(folder string) bool {
	return !holds(folder, string(site.RootKey)) && slices.ContainsFunc([]string{RootPart, PartName("0"), PartName("00"), PartName("000"), PartName("0000")},
		func(name string) bool { return holds(folder, name) })
}

func holds(folder, name string) bool {
	_, err := os.Lstat(filepath.Join(folder, name))
	return err == nil
}

// OpenSiteAt is OpenSite that opens parts in a bucket, too: s3://BUCKET/part-* or
// s3://BUCKET/PREFIX/part-*. It sends no request.
func OpenSiteAt(ctx context.Context, text string, o S3Options) (Site, error) {
	if !strings.Contains(text, "://") {
		return OpenSite(text)
	}
	place, ok := PartsAt(text)
	if !ok {
		return nil, fmt.Errorf("open the site: %s is no folder, no .tar file and no parts: those are s3://BUCKET/PREFIX%s", text, allParts)
	}
	parts, err := OpenParts(ctx, place, o)
	if err != nil {
		return nil, fmt.Errorf("open the site: %w", err)
	}
	memory := int64(chunksOfBucket)
	if _, local := parts.place.(partsFolder); local {
		memory = chunksOfFolder
	}
	return newPartsSite(parts, memory), nil
}

// Close does nothing: a folder keeps no file open.
func (f *Folder) Close() error { return nil }
