// Package pieces stores the inputs of a site in its bucket, so that others can reproduce the site: the tables of the
// snapshot in pieces, merged refreshed data, and ranks of an earlier site.
//
// A piece has successive rows of a table in canonical form, compressed. Its key is the SHA-256 of its body, so it
// never changes, and sites share equal pieces. The content of rows determines where pieces end: adding, changing or
// removing a row changes one or two pieces.
//
// An index per root names the pieces. It need not be trusted, because the root has the digests of the tables.
//
// The API may change in any release.
package pieces

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	json "github.com/goccy/go-json"
	"github.com/klauspost/compress/zstd"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/kept"
	"github.com/followpress/followpress/snapshot"
)

const format = 1

// Sizes of pieces, in bytes of text.
const (
	leastText = 128 << 10
	usualText = 384 << 10 // average beyond the minimum
	mostText  = 4 << 20
	mostRow   = 16<<20 + 64<<10 // row of a snapshot, or refreshed object with its key
)

// Limits of objects in a bucket.
const (
	MaxIndexBytes = 16 << 20
	maxPieceText  = mostText + mostRow
	maxPieceBytes = maxPieceText + 64<<10 // for incompressible text
	maxRanksText  = 1 << 30               // one piece: see ranks.MaxBytes
)

// An Index lists the pieces of a site's inputs.
type Index struct {
	Format    int                `json:"format"`
	Tables    map[string][]Piece `json:"tables"`              // in the order of rows
	Refreshed []Piece            `json:"refreshed,omitempty"` // objects sorted by key
	Ranks     *Piece             `json:"ranks,omitempty"`
}

// A Piece describes the body of an object.
type Piece struct {
	SHA256 site.SHA256 `json:"sha256"` // digest of the body; determines the key
	MD5    site.MD5    `json:"md5"`    // digest of the body, to find it in a listing of the bucket; zero if unknown
	Bytes  int64       `json:"bytes"`
	Text   int64       `json:"text"` // decompressed size
}

// Key returns the key of the piece.
func (p Piece) Key() site.Key { return kept.PieceKey(p.SHA256) }

// All returns all pieces.
func (x *Index) All() []Piece {
	var all []Piece
	for _, t := range slices.Sorted(maps.Keys(x.Tables)) {
		all = append(all, x.Tables[t]...)
	}
	all = append(all, x.Refreshed...)
	if x.Ranks != nil {
		all = append(all, *x.Ranks)
	}
	return all
}

// ErrIndex means that an index cannot be read.
var ErrIndex = errors.New("not an index of a site's inputs")

// ParseIndex decodes and checks an index.
func ParseIndex(body []byte) (*Index, error) {
	var x Index
	if len(body) > MaxIndexBytes {
		return nil, fmt.Errorf("%w: %d bytes, more than %d MiB", ErrIndex, len(body), MaxIndexBytes>>20)
	}
	if err := json.Unmarshal(body, &x); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrIndex, site.JSONReason(err))
	}
	if x.Format > format {
		return nil, fmt.Errorf("%w: format %d, this version reads %d; update followpress", ErrIndex, x.Format, format)
	}
	if x.Format != format {
		return nil, fmt.Errorf("%w: format %d, this version reads %d", ErrIndex, x.Format, format)
	}
	known := map[site.SHA256]Piece{}
	for _, p := range x.All() {
		if was, ok := known[p.SHA256]; ok && was != p {
			return nil, fmt.Errorf("%w: the piece %s has %d bytes in one place, and %d in another", ErrIndex, p.SHA256, was.Text, p.Text)
		}
		known[p.SHA256] = p
		most := int64(maxPieceText)
		if x.Ranks != nil && p == *x.Ranks {
			most = maxRanksText
		}
		if p.Bytes < 1 || p.Text < 1 || p.Text > most || p.Bytes > most+(maxPieceBytes-maxPieceText) {
			return nil, fmt.Errorf("%w: the piece %s has %d bytes for %d bytes of text, which is impossible", ErrIndex, p.SHA256, p.Bytes, p.Text)
		}
	}
	return &x, nil
}

// Encode encodes the index. Equal ones give equal bytes.
func (x *Index) Encode() ([]byte, error) { return json.MarshalWithOption(x, json.DisableHTMLEscape()) }

// A Source has the inputs of a site.
type Source struct {
	Snapshot  afero.Fs
	Refreshed *Recorder // nil if none was merged
	Ranks     []byte    // nil if none were used
}

// ErrOther means that a source does not have the inputs of the site.
var ErrOther = errors.New("these are not the inputs of the site")

// Build splits the inputs of a root's site into pieces, and calls put with each. It fails with ErrOther if the source
// differs, or has rows that were skipped. put may keep the body.
func (s *Source) Build(ctx context.Context, root *site.Root, put func(Piece, []byte) error) (*Index, error) {
	if root.Inputs == nil {
		return nil, fmt.Errorf("%w: its root does not name its inputs; regenerate it", ErrOther)
	}
	x := &Index{Format: format, Tables: map[string][]Piece{}}
	p, err := newPacker(func(piece Piece, body []byte) error {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		return put(piece, body)
	})
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(root.Inputs.Tables)) {
		var digest snapshot.Digest
		err := snapshot.Canonical(ctx, s.Snapshot, snapshot.Table(name), !root.Config.EFP(), func(row []byte) error {
			digest.Add(row)
			return p.add(row, nil)
		})
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", name, err)
		}
		if digest.Sum() != root.Inputs.Tables[name] {
			return nil, fmt.Errorf("table %s: %w: skipped rows cannot be published; remove them from the snapshot", name, ErrOther)
		}
		if x.Tables[name], err = p.end(); err != nil {
			return nil, err
		}
		if x.Tables[name] == nil {
			x.Tables[name] = []Piece{}
		}
	}
	if root.Inputs.Refreshed != nil {
		if s.Refreshed == nil {
			return nil, fmt.Errorf("refreshed data: %w", ErrOther)
		}
		if x.Refreshed, err = s.Refreshed.each(put); err != nil {
			return nil, fmt.Errorf("refreshed data: %w", err)
		}
	}
	if root.Inputs.Ranks != nil {
		if site.Sum256(s.Ranks) != *root.Inputs.Ranks {
			return nil, fmt.Errorf("ranks: %w", ErrOther)
		}
		p.text = append(p.text, s.Ranks...)
		all, err := p.end()
		if err != nil {
			return nil, err
		}
		x.Ranks = &all[0]
	}
	return x, nil
}

// A packer splits rows into pieces.
type packer struct {
	put    func(Piece, []byte) error
	zstd   *zstd.Encoder
	text   []byte
	pieces []Piece
}

func newPacker(put func(Piece, []byte) error) (*packer, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	return &packer{put: put, zstd: encoder}, err
}

var cutTable = crc32.MakeTable(crc32.Castagnoli)

// add adds a row, optionally with more lines, and ends the piece if the row's hash says so.
func (p *packer) add(row, more []byte) error {
	p.text = append(append(p.text, row...), '\n')
	if more != nil {
		p.text = append(append(p.text, more...), '\n')
	}
	size := int64(len(row) + len(more))
	switch cut := int64(crc32.Checksum(row, cutTable)) < size*(1<<32)/usualText; {
	case len(p.text) >= mostText, len(p.text) >= leastText && cut:
		return p.flush()
	}
	return nil
}

func (p *packer) flush() error {
	if len(p.text) == 0 {
		return nil
	}
	body := p.zstd.EncodeAll(p.text, nil)
	piece := Piece{site.Sum256(body), site.Sum(body), int64(len(body)), int64(len(p.text))}
	p.pieces, p.text = append(p.pieces, piece), p.text[:0]
	return p.put(piece, body)
}

// end ends the last piece, and returns the pieces since the previous end.
func (p *packer) end() ([]Piece, error) {
	err := p.flush()
	all := p.pieces
	p.pieces = nil
	return all, err
}

// unpack decompresses a piece. A hostile body cannot make it use more memory than the piece states.
func (p Piece) unpack(body []byte) ([]byte, error) {
	decoder, err := zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	return readExactly(decoder, p.Text)
}

// maxWindow is the window of the encoder's default level.
const maxWindow = 8 << 20
