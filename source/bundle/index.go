package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

// Bounds of what a log has. A reader refuses more before it takes memory for it.
const (
	MaxRows   = 10_000   // of a bundle
	MaxText   = 16 << 20 // of a bundle, in bytes
	MaxObject = 17 << 20 // of a bundle as it is stored: compression makes nothing much longer
	MaxIndex  = 16 << 20
)

// IndexName is the name of the index; bundles have their first row as theirs.
const IndexName = "index"

const format = 1

// An Index names the bundles of a log.
type Index struct {
	Format  int      `json:"format"`
	Rows    uint64   `json:"rows"`
	Chains  []Chain  `json:"chains"` // in the order of their ids
	Bundles []Bundle `json:"bundles"`
	Digest  string   `json:"digest"` // of the last link and of Chains, so of the whole log
}

// A Chain is what a log says of a chain.
type Chain struct {
	ID        uint64   `json:"chain_id"`
	Contracts []string `json:"contracts"` // whose events the log has, in any words that tell them apart
	First     *Block   `json:"first"`     // the block where reading begins; nil if nothing was read
	Point     *Point   `json:"point"`     // the last block whose events, and all before, are in the log; nil for none
}

// A Block is a block of a chain.
type Block struct {
	Block uint64 `json:"block"`
	Hash  string `json:"hash"` // 0x and 64 digits
}

// A Point is how far a chain was read.
type Point struct {
	Block  uint64 `json:"block"`
	Hash   string `json:"hash"`   // 0x and 64 digits
	Time   string `json:"time"`   // of the block, as in rows
	Events uint64 `json:"events"` // of the chain up to there
}

// A Bundle says what a bundle must have.
type Bundle struct {
	Row        uint64 `json:"row"`         // its first, counted from 0
	Rows       uint64 `json:"rows"`        // how many
	Bytes      int64  `json:"bytes"`       // of the object
	SHA256     string `json:"sha256"`      // of the object
	TextBytes  int64  `json:"text_bytes"`  // of the rows, decompressed
	TextSHA256 string `json:"text_sha256"` // of the rows
	// Link is the SHA-256 of a line with the link before, "" for the first one, and Row, Rows,
	// TextBytes and TextSHA256, with spaces between them. How the text is compressed makes no difference.
	Link string `json:"link"`
}

// Name is the name of the bundle.
func (b *Bundle) Name() string { return strconv.FormatUint(b.Row, 10) }

func (b *Bundle) link(before string) string {
	return digest(fmt.Appendf(nil, "%s %d %d %d %s\n", before, b.Row, b.Rows, b.TextBytes, b.TextSHA256))
}

func digest(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// seal sets what follows from the rest.
func (x *Index) seal() error {
	x.Format, x.Rows = format, 0
	link := ""
	for i := range x.Bundles {
		b := &x.Bundles[i]
		b.Link = b.link(link)
		link, x.Rows = b.Link, b.Row+b.Rows
	}
	chains, err := json.Marshal(x.Chains)
	if err != nil {
		return err
	}
	x.Digest = digest(fmt.Appendf(nil, "%s\n%s\n", link, chains))
	return nil
}

// Body is the index as it is stored.
func (x *Index) Body() ([]byte, error) { return json.MarshalWithOption(x, json.DisableHTMLEscape()) }

// last is the bundle that grows, nil if there is none.
func (x *Index) last() *Bundle {
	if len(x.Bundles) == 0 {
		return nil
	}
	return &x.Bundles[len(x.Bundles)-1]
}

// ErrIndex says that an index is not one, or contradicts itself.
var ErrIndex = errors.New("the index of the log is damaged")

// ParseIndex reads an index. An error wraps ErrIndex.
func ParseIndex(body []byte) (*Index, error) {
	var x Index
	if err := json.Unmarshal(body, &x); err != nil {
		return nil, fmt.Errorf("%w: it is not JSON: %w", ErrIndex, err)
	}
	if x.Format != format {
		return nil, fmt.Errorf("%w: its format is %d, want %d: use the version of the program that wrote it", ErrIndex, x.Format, format)
	}
	if err := x.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIndex, err)
	}
	said := x.Digest
	links := slices.Clone(x.Bundles)
	if err := x.seal(); err != nil {
		return nil, err
	}
	for i := range links {
		if links[i].Link != x.Bundles[i].Link {
			return nil, fmt.Errorf("%w: the link of bundle %s is %s, and by what it names %s", ErrIndex, links[i].Name(), site.Quoted(links[i].Link), x.Bundles[i].Link)
		}
	}
	if said != x.Digest {
		return nil, fmt.Errorf("%w: its digest is %s, and by what it names %s", ErrIndex, site.Quoted(said), x.Digest)
	}
	return &x, nil
}

func (x *Index) check() error {
	for i := range x.Chains {
		if c := &x.Chains[i]; i > 0 && c.ID <= x.Chains[i-1].ID {
			return fmt.Errorf("chain %d comes after chain %d", c.ID, x.Chains[i-1].ID)
		} else if err := c.check(x.Rows); err != nil {
			return fmt.Errorf("chain %d: %w", c.ID, err)
		}
	}
	rows := uint64(0)
	for i := range x.Bundles {
		b := &x.Bundles[i]
		switch {
		case b.Row != rows:
			return fmt.Errorf("a bundle begins with row %d, want %d", b.Row, rows)
		case b.Rows < 1 || b.Rows > MaxRows:
			return fmt.Errorf("bundle %s has %d rows, want 1 to %d", b.Name(), b.Rows, MaxRows)
		case b.Bytes < 1 || b.Bytes > MaxObject || b.TextBytes < 1 || b.TextBytes > MaxText:
			return fmt.Errorf("bundle %s has %d bytes, and %d decompressed, want at most %d and %d", b.Name(), b.Bytes, b.TextBytes, MaxObject, MaxText)
		case !isDigest(b.SHA256) || !isDigest(b.TextSHA256):
			return fmt.Errorf("bundle %s has digests that are not SHA-256", b.Name())
		}
		rows += b.Rows
	}
	if rows != x.Rows {
		return fmt.Errorf("it has %d rows, and its bundles %d", x.Rows, rows)
	}
	return nil
}

func (c *Chain) check(rows uint64) error {
	if c.First != nil && !isHash(c.First.Hash) {
		return fmt.Errorf("the hash of the first block is %s", site.Quoted(c.First.Hash))
	}
	p := c.Point
	if p == nil {
		return nil
	}
	if c.First == nil || p.Block < c.First.Block || !isHash(p.Hash) || p.Events > rows {
		return fmt.Errorf("its point, block %d, contradicts the rest", p.Block)
	}
	_, err := parseTime(p.Time)
	return err
}

func isDigest(text string) bool {
	return len(text) == 2*sha256.Size && strings.Trim(text, "0123456789abcdef") == ""
}

func isHash(text string) bool { return strings.HasPrefix(text, "0x") && isDigest(text[2:]) }
