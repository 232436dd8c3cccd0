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

// Fill fills the buffers from a stream and returns the number of bytes read, which is smaller if the stream ends
// early.
func Fill(stream io.Reader, into ...[]byte) (n int64, err error) {
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
