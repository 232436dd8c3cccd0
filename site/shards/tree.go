package shards

import (
	"encoding/hex"
	"fmt"
	"strconv"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
)

// Digests are the digests of all shards of a manifest, sorted by name. Their number is a power of 16.
type Digests []site.SHA256

// NewDigests returns zero digests for shards whose names have that many digits.
func NewDigests(digits int) Digests { return make(Digests, 1<<(4*digits)) }

// digits returns the number of digits of shard names.
func (d Digests) digits() (n int) {
	for all := len(d); all > 1; all >>= 4 {
		n++
	}
	return n
}

// number returns the index of a shard among all names of its length.
func number(shard string) (int, error) {
	n, err := strconv.ParseUint(shard, 16, 16)
	return int(n), err
}

// Set sets the digest of a shard.
func (d Digests) Set(shard string, digest site.SHA256) error {
	n, err := number(shard)
	if err != nil || n >= len(d) || len(shard) != d.digits() {
		return fmt.Errorf("%q is not the name of one of %d shards", shard, len(d))
	}
	d[n] = digest
	return nil
}

// Of returns the digest of a shard, or zero for an unknown name.
func (d Digests) Of(shard string) site.SHA256 {
	n, err := number(shard)
	if err != nil || n >= len(d) {
		return site.SHA256{}
	}
	return d[n]
}

// perIndex is the number of shards per index.
const perIndex = 256

// An Index is a manifest object that names shards.
type Index struct {
	Name string
	Body []byte
}

// Tree returns site.Root.Manifest and the indexes, if any.
func (d Digests) Tree() (root map[string]site.SHA256, indexes []Index) {
	names, digests := site.HashPrefixes(d.digits()), d
	root = make(map[string]site.SHA256, perIndex)
	if site.RootDigits(d.digits()) == d.digits() {
		for i, name := range names {
			root[name] = digests[i]
		}
		return root, nil
	}
	for _, index := range site.HashPrefixes(site.RootDigits(d.digits())) {
		text := appendIndex(nil, index, names[:perIndex], digests[:perIndex])
		root[index] = site.Sum256(text)
		indexes = append(indexes, Index{index, Pack(text)})
		names, digests = names[perIndex:], digests[perIndex:]
	}
	return root, indexes
}

// Indexes returns the names of the indexes of a root's manifest.
func Indexes(root *site.Root) []string {
	if digits := site.RootDigits(root.ShardDigits); digits != root.ShardDigits && root.Manifest != nil {
		return site.HashPrefixes(digits)
	}
	return nil
}

// Has reports whether a root's manifest has a shard or index with that name. The name must have hexadecimal digits
// only.
func Has(root *site.Root, name string) bool {
	return len(name) == root.ShardDigits || root.Manifest != nil && len(name) == site.RootDigits(root.ShardDigits)
}

// Names returns the names of all shards, then of all indexes.
func Names(root *site.Root) []string {
	return append(site.HashPrefixes(root.ShardDigits), Indexes(root)...)
}

func appendIndex(b []byte, index string, names []string, digests []site.SHA256) []byte {
	b = append(b, `{"index":`...)
	b = rawjson.AppendString(b, index)
	b = append(b, `,"manifest":{`...)
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = rawjson.AppendString(b, name)
		b = append(b, `:"`...)
		b = hex.AppendEncode(b, digests[i][:])
		b = append(b, '"')
	}
	return append(b, "}}"...)
}

// parseIndex sets the digests in the text of an index.
func parseIndex(index string, text []byte, to Digests) error {
	var parsed struct {
		Index    string                 `json:"index"`
		Manifest map[string]site.SHA256 `json:"manifest"`
	}
	key := site.ManifestKey(index)
	if err := json.Unmarshal(text, &parsed); err != nil {
		return fmt.Errorf("read %s: %w: %w", key, err, site.ErrMalformed)
	}
	if parsed.Index != index || len(parsed.Manifest) != perIndex {
		return fmt.Errorf("read %s: it is not the index %q of %d shards: %w", key, index, perIndex, site.ErrMalformed)
	}
	for _, rest := range site.HashPrefixes(to.digits() - len(index)) {
		digest, ok := parsed.Manifest[index+rest]
		if !ok {
			return fmt.Errorf("read %s: it does not name the shard %q: %w", key, index+rest, site.ErrMalformed)
		}
		if err := to.Set(index+rest, digest); err != nil {
			return fmt.Errorf("read %s: %w", key, err)
		}
	}
	return nil
}
