package object

import (
	"errors"
	"io"
)

// A Version distinguishes successive bodies of one name.
type Version struct {
	ID   string // ETag, or modification time
	Size int64  // in bytes
}

// Fill fills a buffer from a stream and returns the number of bytes read, which is smaller if the stream ends early.
func Fill(stream io.Reader, into []byte) (int64, error) {
	n, err := io.ReadFull(stream, into)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return int64(n), err
}
