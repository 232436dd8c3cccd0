// Package files shows the objects of a bucket below a prefix as a read-only file system.
package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage/internal/object"
	"github.com/followpress/followpress/storage/internal/s3"
)

// Files are the files in one folder of a bucket, without its subfolders. A file that is replaced or deleted later
// cannot be read any more.
type Files struct {
	afero.FromIOFS
	bucket *bucketFiles
}

// Open lists the files of a bucket. All requests, also later ones, use ctx. Stat returns an object.Info as Sys.
func Open(ctx context.Context, bucket *s3.Bucket) (*Files, error) {
	files := &bucketFiles{ctx: ctx, bucket: bucket, name: bucket.String() + "/", infos: map[string]object.Info{}, most: maxMemory}
	if err := files.list(); err != nil {
		return nil, err
	}
	return &Files{afero.FromIOFS{FS: files}, files}, nil
}

// RealPath returns the location of a file.
func (f *Files) RealPath(name string) (string, error) { return f.bucket.name + name, nil }

// Read sizes and limits.
const (
	firstSpan = 64 << 10 // first read at a new offset; sequential reads double it
	largeSpan = 2 << 20
	maxMemory = 128 << 20        // for all open files; a Parquet reader alternates between offsets in several files
	spanTime  = 30 * time.Second // limit of one attempt
)

type bucketFiles struct {
	ctx    context.Context // fs.FS methods take no context
	bucket *s3.Bucket
	name   string // name of the folder, ending in a slash
	infos  map[string]object.Info

	most int // bytes of spans

	mu     sync.Mutex
	spans  []span // under mu; least recently used first
	memory int    // under mu; bytes of spans
}

// A span is a part of an open file, held in memory.
type span struct {
	file *bucketFile
	off  int64
	body []byte
}

func (s span) end() int64 { return s.off + int64(len(s.body)) }

// find returns the span that holds the byte at an offset. If there is none, it returns how many bytes to read:
// sequential reads get longer spans, to save requests.
func (b *bucketFiles) find(file *bucketFile, off int64) (s span, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, s := range slices.Backward(b.spans) {
		if s.file != file {
			continue
		}
		if s.off <= off && off < s.end() {
			b.spans = append(slices.Delete(b.spans, i, i+1), s)
			return s, 0
		}
		if s.end() == off {
			b.forget(i)
			return span{}, min(2*len(s.body), largeSpan)
		}
	}
	return span{}, firstSpan
}

func (b *bucketFiles) keep(s span) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spans = append(b.spans, s)
	for b.memory += len(s.body); b.memory > b.most; {
		b.forget(0)
	}
}

// forget drops a span. The caller holds mu.
func (b *bucketFiles) forget(i int) {
	b.memory -= len(b.spans[i].body)
	b.spans = slices.Delete(b.spans, i, i+1)
}

func (b *bucketFiles) list() error {
	after := site.Key("")
	err := s3.ReadRetry.Do(b.ctx, func() error {
		return b.bucket.ListFolder(b.ctx, after, func(info object.Info) error {
			b.infos[string(info.Key)], after = info, info.Key
			return nil
		})
	})
	if err != nil {
		return s3.ExplainRead(b.name, err)
	}
	return nil
}

// Open opens a file, or the folder itself, named ".".
func (b *bucketFiles) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if name == "." {
		return b.openFolder(), nil
	}
	info, ok := b.infos[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &bucketFile{files: b, info: info}, nil
}

// read reads n bytes of a file from an offset. Temporary failures are retried.
func (b *bucketFiles) read(info object.Info, off int64, n int) (body []byte, err error) {
	err = s3.ReadRetry.Do(b.ctx, func() error {
		ctx, cancel := context.WithTimeout(b.ctx, spanTime)
		defer cancel()
		body = make([]byte, n)
		_, is, err := b.bucket.FillRange(ctx, info.Key, off, body)
		if errors.Is(err, s3.ErrRange) || err == nil && (is != object.Version{ID: info.ETag, Size: info.Size}) { // the file had this range when it was listed
			return object.ErrCondition
		}
		return err
	})
	switch {
	case errors.Is(err, object.ErrCondition), errors.Is(err, object.ErrNotFound):
		return nil, fmt.Errorf("%s%s was replaced or deleted while it was read", b.name, info.Key)
	case err != nil && b.ctx.Err() == nil:
		return nil, &readError{err}
	}
	return body, err
}

// A readError is an error of the network or the server. It wraps nothing, because a reader would take a wrapped
// io.EOF for the end of the file.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }

type bucketFile struct {
	files *bucketFiles
	info  object.Info
	at    int64 // read offset

	reading sync.Mutex // held while a span is read
}

// Read implements io.Reader. It must not be called concurrently.
func (f *bucketFile) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	s, err := f.spanAt(f.at)
	if err != nil {
		return 0, err
	}
	n := copy(p, s.body[f.at-s.off:])
	f.at += int64(n)
	return n, nil
}

// ReadAt implements io.ReaderAt.
func (f *bucketFile) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, f.invalid("readat")
	}
	for n < len(p) {
		s, err := f.spanAt(off + int64(n))
		if err != nil {
			return n, err
		}
		n += copy(p[n:], s.body[off+int64(n)-s.off:])
	}
	return n, nil
}

func (f *bucketFile) spanAt(off int64) (span, error) {
	if off >= f.info.Size {
		return span{}, io.EOF
	}
	f.reading.Lock()
	defer f.reading.Unlock()
	s, size := f.files.find(f, off)
	if size == 0 {
		return s, nil
	}
	body, err := f.files.read(f.info, off, int(min(int64(size), f.info.Size-off)))
	if err != nil {
		return span{}, &fs.PathError{Op: "read", Path: string(f.info.Key), Err: err}
	}
	s = span{f, off, body}
	f.files.keep(s)
	return s, nil
}

// Seek implements io.Seeker. It does not check whence.
func (f *bucketFile) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.at
	case io.SeekEnd:
		offset += f.info.Size
	}
	if offset < 0 {
		return 0, f.invalid("seek")
	}
	f.at = offset
	return offset, nil
}

func (f *bucketFile) invalid(op string) error {
	return &fs.PathError{Op: op, Path: string(f.info.Key), Err: fs.ErrInvalid}
}

// Stat returns the file's info.
func (f *bucketFile) Stat() (fs.FileInfo, error) { return fileInfo{f.info}, nil }

// Close drops the file's spans.
func (f *bucketFile) Close() error {
	f.files.mu.Lock()
	defer f.files.mu.Unlock()
	f.files.spans = slices.DeleteFunc(f.files.spans, func(s span) bool {
		if s.file == f {
			f.files.memory -= len(s.body)
		}
		return s.file == f
	})
	return nil
}

// A fileInfo describes a file, or the folder itself, which has no key.
type fileInfo struct{ info object.Info }

func (i fileInfo) Name() string       { return cmp.Or(string(i.info.Key), ".") }
func (i fileInfo) Size() int64        { return i.info.Size }
func (i fileInfo) ModTime() time.Time { return i.info.Modified }
func (i fileInfo) IsDir() bool        { return i.info.Key == "" }
func (i fileInfo) Sys() any           { return i.info }

func (i fileInfo) Mode() fs.FileMode {
	if i.IsDir() {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// An openFolder is a directory handle. It implements fs.ReadDirFile.
type openFolder struct {
	left []fs.DirEntry
}

func (b *bucketFiles) openFolder() *openFolder {
	folder := new(openFolder)
	for _, info := range b.infos {
		folder.left = append(folder.left, fs.FileInfoToDirEntry(fileInfo{info}))
	}
	slices.SortFunc(folder.left, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return folder
}

// ReadDir returns the next n entries, or all remaining ones if n is not positive.
func (f *openFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(f.left)
	} else if len(f.left) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(f.left))
	some := f.left[:n:n]
	f.left = f.left[n:]
	return some, nil
}

// Stat returns the folder's info.
func (*openFolder) Stat() (fs.FileInfo, error) { return fileInfo{}, nil }

// Read always fails.
func (*openFolder) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: ".", Err: errors.New("it is a folder")}
}

// Close does nothing.
func (*openFolder) Close() error { return nil }
