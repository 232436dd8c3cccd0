package storage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/internal/publicdir"
	"github.com/followpress/followpress/internal/regular"
	"github.com/followpress/followpress/site"
)

type partsFolder string

func (f partsFolder) String() string { return string(f) }

// partsLeftover begins the names of files that are being written. Neither "cat part-*" nor a reader
// takes them for parts.
const partsLeftover = ".part-"

func (f partsFolder) isLeftover(name string) bool { return strings.HasPrefix(name, partsLeftover) }

func (f partsFolder) list(_ context.Context, found func(name string) error) error {
	entries, err := os.ReadDir(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("list the parts: %w", err)
	}
	for _, entry := range entries {
		if err := found(entry.Name()); err != nil {
			return err
		}
	}
	return nil
}

func (f partsFolder) get(_ context.Context, name string) ([]byte, error) {
	body, err := os.ReadFile(filepath.Join(string(f), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	} else if err != nil {
		return nil, fmt.Errorf("get %s: %w", name, err)
	}
	return body, nil
}

// read opens the file each time: there may be tens of thousands.
func (f partsFolder) read(_ context.Context, name string, want *partVersion, offset int64, into ...[]byte) (n int64, is partVersion, err error) {
	file, err := regular.Open(afero.NewOsFs(), filepath.Join(string(f), name))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, is, ErrNotFound
	} else if err != nil {
		return 0, is, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return 0, is, err
	}
	is = partVersion{info.ModTime().Format(time.RFC3339Nano), info.Size()}
	if want != nil && is != *want {
		return 0, is, errReplaced
	}
	n, err = readAll(io.NewSectionReader(file, offset, is.size-offset), into)
	if err == nil && n < min(lengthOf(into), is.size-offset) {
		err = errReplaced
	}
	return n, is, err
}

var errReplaced = fmt.Errorf("it was replaced meanwhile: %w", ErrParts)

func lengthOf(buffers [][]byte) (n int64) {
	for _, b := range buffers {
		n += int64(len(b))
	}
	return n
}

// readAll fills buffers, unless the stream ends before.
func readAll(stream io.Reader, into [][]byte) (n int64, err error) {
	for _, b := range into {
		read, err := io.ReadFull(stream, b)
		n += int64(read)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return n, nil
		} else if err != nil {
			return n, err
		}
	}
	return n, nil
}

// put writes a file beside its place and renames it, so that it is there as a whole or not at all.
func (f partsFolder) put(ctx context.Context, name string, body []byte) (err error) {
	if err := publicdir.Make(afero.NewOsFs(), string(f)); err != nil {
		return fmt.Errorf("put %s: %w", name, err)
	}
	file, err := os.CreateTemp(string(f), partsLeftover+"*")
	if err != nil {
		return fmt.Errorf("put %s: %w", name, err)
	}
	_, err = file.Write(body)
	if err == nil {
		err = file.Sync() // otherwise the new name may become durable before the bytes
	}
	err = errors.Join(err, file.Chmod(0o644), file.Close(), ctx.Err())
	if err == nil {
		err = os.Rename(file.Name(), filepath.Join(string(f), name))
	}
	if err != nil {
		return fmt.Errorf("put %s: %w", name, errors.Join(err, ignoreAbsent(os.Remove(file.Name()))))
	}
	return nil
}

func (f partsFolder) remove(_ context.Context, names []string) error {
	for _, name := range names {
		if err := ignoreAbsent(os.Remove(filepath.Join(string(f), name))); err != nil {
			return fmt.Errorf("remove %s: %w", name, err)
		}
	}
	return nil
}

func (f partsFolder) sync() error {
	folder, err := os.Open(string(f))
	if err != nil {
		return ignoreAbsent(err)
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

type partsBucket struct{ *S3 }

func (b partsBucket) String() string { return strings.TrimSuffix("s3://"+b.bucket+"/"+b.prefix, "/") }

// isLeftover reports false: a bucket shows only what was put as a whole.
func (b partsBucket) isLeftover(string) bool { return false }

func (b partsBucket) list(ctx context.Context, found func(name string) error) error {
	return b.List(ctx, "", "", func(info Info) error {
		if info.Key == "" { // some tools put one for a "folder"
			return nil
		}
		return found(string(info.Key))
	})
}

func (b partsBucket) get(ctx context.Context, name string) ([]byte, error) {
	return b.Get(ctx, site.Key(name))
}

func (b partsBucket) read(ctx context.Context, name string, want *partVersion, offset int64, into ...[]byte) (n int64, is partVersion, err error) {
	length := lengthOf(into)
	options := minio.GetObjectOptions{}
	if err := options.SetRange(offset, offset+length-1); err != nil {
		return 0, is, err
	}
	stream, info, header, err := b.core.GetObject(ctx, b.bucket, b.name(site.Key(name)), options)
	if err != nil {
		return 0, is, explainRange(name, want, err)
	}
	defer stream.Close() // it was read to its end, or failed before
	is = partVersion{bareETag(info.ETag), info.Size}
	if text := header.Get("Content-Range"); text != "" {
		var first, last int64
		if _, err := fmt.Sscanf(text, "bytes %d-%d/%d", &first, &last, &is.size); err != nil || first != offset {
			return 0, is, fmt.Errorf("get %s: the server sent %q instead of %d bytes from %d on", name, firstLine(text), length, offset)
		}
	} else if offset > 0 {
		return 0, is, fmt.Errorf("get %s: the server sends no ranges of objects: %w", name, ErrUnsupported)
	}
	if want != nil && is != *want {
		return 0, is, errReplaced
	}
	n, err = readAll(stream, into)
	if err == nil && n < min(length, is.size-offset) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return n, is, explain("get", site.Key(name), err)
	}
	return n, is, nil
}

func explainRange(name string, want *partVersion, err error) error {
	if minio.ToErrorResponse(err).Code != "InvalidRange" {
		return explain("get", site.Key(name), err)
	}
	if want != nil { // it had the range
		return errReplaced
	}
	return fmt.Errorf("get %s: it ends before: %w", name, ErrParts)
}

const (
	partsContentType = "application/x-tar"
	// maxSinglePut is the size from which an object is put in pieces: servers take
	// 5 GiB at once at most.
	maxSinglePut = 64 << 20
)

func (b partsBucket) put(ctx context.Context, name string, body []byte) error {
	key := site.Key(name)
	options := putOptions(Object{ContentType: partsContentType})
	if len(body) <= maxSinglePut {
		_, err := b.putBody(ctx, "put "+name, key, body, site.Sum(body), options)
		return err
	}
	options.DisableMultipart, options.PartSize, options.SendContentMd5 = false, maxSinglePut, true
	_, err := b.core.Client.PutObject(ctx, b.bucket, b.name(key), bytes.NewReader(body), int64(len(body)), options)
	return explainPut("put "+name, err)
}

func (b partsBucket) remove(ctx context.Context, names []string) error {
	keys := make([]site.Key, len(names))
	for i, name := range names {
		keys[i] = site.Key(name)
	}
	return b.Delete(ctx, keys)
}

func (b partsBucket) sync() error { return nil }
