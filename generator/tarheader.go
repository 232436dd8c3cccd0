package generator

import (
	"archive/tar"
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// Blocks of a tar file, and the fields of a USTAR header that differ between objects (POSIX.1-1988,
// as in archive/tar's format.go).
const (
	tarBlock      = 512
	tarNameSize   = 100
	tarSizeAt     = 124
	tarSizeDigits = 11 // octal, then NUL
	tarSumAt      = 148
	tarSumDigits  = 6 // octal, then NUL and a space
)

// tarHeaders formats headers of objects as archive/tar does, byte for byte, at a tenth of its cost:
// all headers of a file are equal but for name, size and checksum. It leaves names and sizes that
// do not fit these fields to archive/tar. It is immutable.
type tarHeaders struct {
	modTime time.Time
	common  [tarBlock]byte // a header without name and size
	sum     uint32         // of its bytes, with spaces for the checksum
	plain   bool           // whether a header with this time is one block
}

func newTarHeaders(modTime time.Time) (*tarHeaders, error) {
	h := &tarHeaders{modTime: modTime}
	const name = "x"
	block, err := h.appendLibrary(nil, name, 0)
	if err != nil {
		return nil, err
	}
	h.plain = len(block) == tarBlock
	copy(h.common[:], block)
	clear(h.common[:len(name)])
	copy(h.common[tarSumAt:], "        ")
	for _, c := range h.common {
		h.sum += uint32(c)
	}
	return h, nil
}

// append appends the header of an object.
func (h *tarHeaders) append(b []byte, name string, size int64) ([]byte, error) {
	if !h.plain || !isPlainTarName(name) || size < 0 || size >= 1<<(3*tarSizeDigits) {
		return h.appendLibrary(b, name, size)
	}
	at := len(b)
	b = append(b, h.common[:]...)
	header := b[at:]
	copy(header, name)
	sum := h.sum
	for i := range len(name) {
		sum += uint32(name[i])
	}
	digits := header[tarSizeAt : tarSizeAt+tarSizeDigits]
	putOctal(digits, uint64(size))
	for _, c := range digits {
		sum += uint32(c - '0') // the header had a '0' there
	}
	putOctal(header[tarSumAt:tarSumAt+tarSumDigits], uint64(sum))
	header[tarSumAt+tarSumDigits] = 0
	return b, nil
}

// isPlainTarName reports whether a name fits its field and means a file there.
func isPlainTarName(name string) bool {
	if name == "" || len(name) > tarNameSize || name[len(name)-1] == '/' {
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
func (h *tarHeaders) appendLibrary(b []byte, name string, size int64) ([]byte, error) {
	out := bytes.NewBuffer(b)
	err := tar.NewWriter(out).WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, ModTime: h.modTime,
	})
	if err != nil {
		return b, fmt.Errorf("tar header of %s: %w", strconv.Quote(name), err)
	}
	return out.Bytes(), nil
}
