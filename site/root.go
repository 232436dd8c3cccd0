package site

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	json "github.com/goccy/go-json"
)

// Format is the version of the site format (docs/site.md) that this package reads and writes.
const Format = 2

// MaxAhead is how far the as_of of a root, and the counter of a note, may be ahead of the clock of a reader or
// publisher.
const MaxAhead = 24 * time.Hour

// MaxRootBytes is the maximum size of a root in bytes.
const MaxRootBytes = 4 << 20

// A Root is the root of a site. It determines all objects: sites with equal roots are equal.
type Root struct {
	Format       int            `json:"format"`
	AsOf         string         `json:"as_of"` // time of the snapshot, RFC 3339
	Config       Config         `json:"config"`
	BucketDigits int            `json:"user_bucket_digits"`            // hexadecimal digits of the names of user buckets
	TokenDigits  int            `json:"token_bucket_digits,omitempty"` // same for token buckets; 0 without APIEFP
	ShardDigits  int            `json:"manifest_digits"`               // hexadecimal digits of the names of manifest shards
	HeaderRules  map[string]MD5 `json:"header_rules"`                  // digest of the headers of each route's objects, keyed by pattern
	Counts       Counts         `json:"counts"`
	Inputs       *Inputs        `json:"inputs,omitempty"` // nil if unknown
	// Manifest has the digests of all manifest shards, or of all manifest indexes, by name (package shards). It is
	// empty for a live site.
	Manifest map[string]SHA256 `json:"manifest,omitempty"`
	// Live means that objects are rendered on request, so their digests and sizes are unknown:
	// there is no manifest, and Counts.Bytes is 0. Only HTTP serves a live root; it is never
	// stored.
	Live bool `json:"live,omitempty"`
}

// Counts are the sizes of a site.
type Counts struct {
	Accounts int   `json:"accounts"` // addresses anywhere in the graph
	Lists    int   `json:"lists"`
	Primary  int   `json:"primary_lists"`
	Records  int   `json:"records"` // after merging repeated rows
	Follows  int   `json:"follows"` // follows of all lists
	Names    int   `json:"names"`   // names that can be looked up
	Events   int   `json:"events"`
	Objects  int   `json:"objects"` // without manifest and root
	Bytes    int64 `json:"bytes"`   // bytes of these objects
}

// Equal reports whether two roots describe equal sites.
func (r *Root) Equal(other *Root) bool { return reflect.DeepEqual(r, other) }

// Encode encodes the root. Equal roots give equal bytes.
func (r Root) Encode() ([]byte, error) {
	body, err := json.MarshalWithOption(r, json.DisableHTMLEscape())
	if err != nil {
		return nil, fmt.Errorf("encode the root: %w", err)
	}
	return body, nil
}

// ErrNewer means that the site has a greater Format, from a newer version of followpress.
var ErrNewer = errors.New("a site of a newer format")

// ParseRoot decodes a root and fills in the defaults of its Config. It fails if the root is malformed or that of a
// live site, and with ErrNewer if only a newer version can read it.
func ParseRoot(body []byte) (Root, error) {
	r, err := ParseServedRoot(body)
	if err == nil && r.Live {
		return Root{}, fmt.Errorf("read %s: a live site has no manifest; use the bucket that it publishes to", RootKey)
	}
	return r, err
}

// ParseServedRoot is like ParseRoot, but accepts the root of a live site, which has no manifest.
func ParseServedRoot(body []byte) (Root, error) {
	if len(body) > MaxRootBytes {
		return Root{}, fmt.Errorf("read %s: %d bytes, more than %d MiB", RootKey, len(body), MaxRootBytes>>20)
	}
	var known struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(body, &known); err != nil {
		return Root{}, fmt.Errorf("read %s: %w", RootKey, err)
	}
	switch {
	case known.Format < 1:
		return Root{}, fmt.Errorf("read %s: it has no format", RootKey)
	case known.Format < Format:
		return Root{}, fmt.Errorf("read %s: format %d, this version reads %d; generate or publish the site again with this version",
			RootKey, known.Format, Format)
	case known.Format > Format:
		return Root{}, fmt.Errorf("read %s: format %d, this version reads %d: %w; update followpress", RootKey, known.Format, Format, ErrNewer)
	}
	var r Root
	err := json.Unmarshal(body, &r)
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return Root{}, fmt.Errorf("read %s: %w", RootKey, err)
	}
	return r, nil
}

// check fills in the defaults of the Config, and returns an error if a member is invalid.
func (r *Root) check() error {
	config, err := r.Config.WithDefaults()
	if err != nil {
		return err
	}
	r.Config = config
	if !validDigits(r.BucketDigits) || !validDigits(r.ShardDigits) {
		return fmt.Errorf("%d and %d digits, expected 1 to %d", r.BucketDigits, r.ShardDigits, maxHashDigits)
	}
	if r.Config.EFP() != validDigits(r.TokenDigits) {
		return fmt.Errorf("%d digits of token buckets", r.TokenDigits)
	}
	if !r.hasItsManifest() {
		return fmt.Errorf("the manifest shards do not match %d digits", r.ShardDigits)
	}
	if _, err := time.Parse(time.RFC3339, r.AsOf); err != nil {
		return fmt.Errorf("as_of: %w", err)
	}
	return nil
}

// hasItsManifest reports whether the root names all shards or indexes for its number of digits; a live site names
// none.
func (r *Root) hasItsManifest() bool {
	if r.Live {
		return len(r.Manifest) == 0
	}
	digits := RootDigits(r.ShardDigits)
	for _, name := range HashPrefixes(digits) {
		if _, ok := r.Manifest[name]; !ok {
			return false
		}
	}
	return len(r.Manifest) == 1<<(4*digits)
}

// RootDigits returns the number of digits of the names in Root.Manifest, given that of shards. A root names up to 256
// shards. For more shards it names indexes of 256 shards each, so that it stays small for browsers.
func RootDigits(shardDigits int) int {
	if shardDigits > 2 {
		return shardDigits - 2
	}
	return shardDigits
}

func validDigits(n int) bool { return 1 <= n && n <= maxHashDigits }

// BucketDigits returns the number of digits of the user buckets of a site. users counts addresses
// and names.
func (c Config) BucketDigits(users int) int {
	if c.EFP() {
		return HashDigits(users, efpPerBucket)
	}
	return HashDigits(users, usersPerBucket)
}

// TokenDigits returns the number of digits of the token buckets of a site with the given number of
// lists; 0 under APISpec.
func (c Config) TokenDigits(lists int) int {
	if c.EFP() {
		return HashDigits(lists, efpPerBucket)
	}
	return 0
}

// ShardDigits returns the number of digits of the manifest shards of a site with the given number
// of objects.
func ShardDigits(objects int) int { return HashDigits(objects, objectsPerShard) }
