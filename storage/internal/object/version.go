package object

import (
	"errors"
	"io"
)

// A Version tells two bodies apart that one name has had.
type Version struct {
	ID   string // ETag, or time of the file
	Size int64  // in bytes
}

// Fill fills buffers from a stream, and returns how many bytes that were: fewer if the stream ends before.
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
