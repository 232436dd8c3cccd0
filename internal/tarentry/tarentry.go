// Package tarentry formats objects as entries of a tar file, as archive/tar does, byte for byte, at
// a tenth of its cost. The generator writes tar files with it, and the storage package the parts of
// a site.
package tarentry

import (
	"archive/tar"
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Block is the unit of a tar file, in bytes: headers and bodies fill whole blocks.
const Block = 512

// Fields of a USTAR header that differ between objects (POSIX.1-1988, as in archive/tar's format.go).
const (
	nameSize   = 100
	sizeAt     = 124
	sizeDigits = 11 // octal, then NUL
	sumAt      = 148
	sumDigits  = 6 // octal, then NUL and a space
)

// A Formatter formats the entries of a file, which all have the same time. All headers of a file
// are equal except for name, size and checksum. The Formatter leaves longer names and sizes to
// archive/tar. It is immutable and safe for concurrent use.
type Formatter struct {
	modTime time.Time
	common  [Block]byte // header, except name and size
	sum     uint32      // sum of its bytes, with spaces for the checksum
	plain   bool        // whether a header with this time is one block
}

// New returns a Formatter for entries with a time.
func New(modTime time.Time) (*Formatter, error) {
	f := &Formatter{modTime: modTime}
	const name = "x"
	block, err := f.appendLibrary(nil, name, 0)
	if err != nil {
		return nil, err
	}
	f.plain = len(block) == Block
	copy(f.common[:], block)
	clear(f.common[:len(name)])
	copy(f.common[sumAt:], "        ")
	for _, c := range f.common {
		f.sum += uint32(c)
	}
	return f, nil
}

// ForSite returns a Formatter for the objects of a site: they have the time of the snapshot, so that
// equal sites give equal files. asOf is that of the root.
func ForSite(asOf string) (*Formatter, error) {
	modTime, err := time.Parse(time.RFC3339, asOf)
	if err != nil {
		return nil, fmt.Errorf("as_of: %w", err)
	}
	return New(modTime.UTC().Truncate(time.Second))
}

// Append appends an entry: its header, its body, and what fills the last block.
func (f *Formatter) Append(b []byte, name string, body []byte) ([]byte, error) {
	b = slices.Grow(b, 2*Block+len(body))
	b, err := f.AppendHeader(b, name, int64(len(body)))
	if err != nil {
		return b, err
	}
	b = append(b, body...)
	return append(b, padding[:Padding(int64(len(body)))]...), nil
}

// padding fills up blocks.
var padding [Block]byte

// Padding returns the number of bytes that follow a body of a size, to fill its last block.
func Padding(size int64) int64 { return -size & (Block - 1) }

// AppendHeader appends the header of an object.
func (f *Formatter) AppendHeader(b []byte, name string, size int64) ([]byte, error) {
	if !f.isPlain(name, size) {
		return f.appendLibrary(b, name, size)
	}
	at := len(b)
	b = append(b, f.common[:]...)
	header := b[at:]
	copy(header, name)
	sum := f.sum
	for i := range len(name) {
		sum += uint32(name[i])
	}
	digits := header[sizeAt : sizeAt+sizeDigits]
	putOctal(digits, uint64(size))
	for _, c := range digits {
		sum += uint32(c - '0') // the header had a '0' there
	}
	putOctal(header[sumAt:sumAt+sumDigits], uint64(sum))
	header[sumAt+sumDigits] = 0
	return b, nil
}

// HeaderSize returns the number of bytes that AppendHeader appends.
func (f *Formatter) HeaderSize(name string, size int64) (int64, error) {
	if f.isPlain(name, size) {
		return Block, nil
	}
	header, err := f.appendLibrary(nil, name, size)
	return int64(len(header)), err
}

// isPlain reports whether the header of an object is one block.
func (f *Formatter) isPlain(name string, size int64) bool {
	return f.plain && isPlainName(name) && 0 <= size && size < 1<<(3*sizeDigits)
}

// isPlainName reports whether a name fits its field and means a file there.
func isPlainName(name string) bool {
	if name == "" || len(name) > nameSize || name[len(name)-1] == '/' {
		return false
	}
	for i := range len(name) {
		if c := name[i]; c == 0 || c >= 0x80 {
			return false
		}
	}
	return true
}

// putOctal fills b with digits.
func putOctal(b []byte, n uint64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = '0' + byte(n&7)
		n >>= 3
	}
}

// appendLibrary appends the header that archive/tar writes. It may have several blocks.
func (f *Formatter) appendLibrary(b []byte, name string, size int64) ([]byte, error) {
	out := bytes.NewBuffer(b)
	err := tar.NewWriter(out).WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: f.modTime,
	})
	if err != nil {
		return b, fmt.Errorf("tar header of %s: %w", strconv.Quote(name), err)
	}
	return out.Bytes(), nil
}

// AppendEnd appends what ends a tar file: two empty blocks.
func AppendEnd(b []byte) []byte { return append(append(b, padding[:]...), padding[:]...) }
