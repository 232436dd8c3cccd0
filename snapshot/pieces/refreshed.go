package pieces

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

// Refreshed yields refreshed data, as for the generator. The body of an unsigned object is nil.
type Refreshed interface {
	Each(ctx context.Context, found func(key site.Key, body []byte) error) error
}

// A Recorder records the refreshed data that it yields, because fallbacks may change that at any time. It stores
// pieces in an unnamed temporary file. The caller must close it.
type Recorder struct {
	from   Refreshed
	file   *os.File
	pieces []Piece
}

// Record returns a Recorder of the given data.
func Record(from Refreshed) *Recorder { return &Recorder{from: from} }

// A refreshedRow precedes the body of an object.
type refreshedRow struct {
	Key   site.Key `json:"key"`
	Bytes int      `json:"bytes"` // bytes of the body
}

// Each implements Refreshed. It records what found accepted, except unsigned objects, whose body is nil.
func (r *Recorder) Each(ctx context.Context, found func(key site.Key, body []byte) error) (err error) {
	if err := r.Close(); err != nil {
		return err
	}
	if r.file, err = os.CreateTemp("", "followpress-refreshed-*"); err != nil {
		return err
	}
	if err := os.Remove(r.file.Name()); err != nil {
		return err
	}
	p, err := newPacker(func(_ Piece, body []byte) error {
		_, err := r.file.Write(body)
		return err
	})
	if err != nil {
		return err
	}
	err = r.from.Each(ctx, func(key site.Key, body []byte) error {
		if err := found(key, body); err != nil || body == nil {
			return err
		}
		row, err := json.Marshal(refreshedRow{key, len(body)})
		if err != nil {
			return err
		}
		return p.add(row, body)
	})
	if err == nil {
		r.pieces, err = p.end()
	}
	return err
}

// each calls put with each piece.
func (r *Recorder) each(put func(Piece, []byte) error) ([]Piece, error) {
	if r.file == nil {
		return nil, errors.New("it was not read yet")
	}
	at := int64(0)
	for _, p := range r.pieces {
		body := make([]byte, p.Bytes)
		if _, err := r.file.ReadAt(body, at); err != nil {
			return nil, err
		}
		at += p.Bytes
		if err := put(p, body); err != nil {
			return nil, err
		}
	}
	return r.pieces, nil
}

// Close removes the temporary file.
func (r *Recorder) Close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}

// eachObject calls found with each object in the text of a piece.
func eachObject(text []byte, found func(key site.Key, body []byte) error) error {
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte{'\n'})
		var row refreshedRow
		if err := json.Unmarshal(line, &row); err != nil {
			return errors.New(site.JSONReason(err))
		}
		if row.Bytes < 0 || row.Bytes >= len(rest) || rest[row.Bytes] != '\n' {
			return fmt.Errorf("%s does not have its stated size", site.Quoted(string(row.Key)))
		}
		if err := found(row.Key, rest[:row.Bytes:row.Bytes]); err != nil {
			return err
		}
		text = rest[row.Bytes+1:]
	}
	return nil
}

// readExactly reads exactly size bytes, and fails if there are fewer or more.
func readExactly(from io.Reader, size int64) ([]byte, error) {
	body := make([]byte, size)
	n, err := io.ReadFull(from, body)
	if err != nil {
		return nil, fmt.Errorf("it ends after %d bytes of text, and should have %d: %w", n, size, err)
	}
	if n, err := from.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("it has more than %d bytes of text", size)
	}
	return body, nil
}
