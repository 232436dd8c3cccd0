package site

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	json "github.com/goccy/go-json"
)

// Format is the version of the site format that this package reads and writes. docs/format.md describes
// it.
const Format = 2

// format1 is the format before: its root names all shards of the manifest, by MD5, and they are not
// compressed.
const format1 = 1

// MaxRootBytes is more than the size of a root: one of format 1 names up to 65,536 shards.
const MaxRootBytes = 4 << 20

// A Root is the root of a site. It determines all objects: sites with equal roots are equal.
type Root struct {
	Format       int            `json:"format"`
	AsOf         string         `json:"as_of"` // time of the snapshot, RFC 3339
	Config       Config         `json:"config"`
	BucketDigits int            `json:"user_bucket_digits"`            // hexadecimal digits of the names of user buckets
	TokenDigits  int            `json:"token_bucket_digits,omitempty"` // the same of token buckets; 0 without APIEFP
	ShardDigits  int            `json:"manifest_digits"`               // hexadecimal digits of the names of manifest shards
	HeaderRules  map[string]MD5 `json:"header_rules"`                  // digest of the headers of each route's objects, by pattern
	Counts       Counts         `json:"counts"`
	Inputs       *Inputs        `json:"inputs,omitempty"` // what the site was made of; nil if nobody knows
	// Manifest has the digests of the texts of all shards of the manifest, by name, or of all its indexes: see package
	// shards. There are none of a live site.
	Manifest map[string]SHA256 `json:"manifest,omitempty"`
	// Live says that the objects are rendered when they are asked for. Nobody knows their digests and sizes then: there
	// is no manifest, and Counts.Bytes is 0. No bucket, folder or file holds such a root.
	Live bool `json:"live,omitempty"`

	Manifest1 map[string]MD5 `json:"-"` // of a root of format 1, instead of Manifest: the digests of its shards; see ParseReplaced
}

// Counts says how much a site holds.
type Counts struct {
	Accounts int   `json:"accounts"` // addresses anywhere in the graph
	Lists    int   `json:"lists"`
	Primary  int   `json:"primary_lists"`
	Records  int   `json:"records"` // after merging repeated rows
	Follows  int   `json:"follows"` // of all lists
	Names    int   `json:"names"`   // that can be looked up
	Events   int   `json:"events"`
	Objects  int   `json:"objects"` // without manifest and root
	Bytes    int64 `json:"bytes"`   // of those objects
}

// Equal reports whether two roots are those of equal sites.
func (r *Root) Equal(other *Root) bool { return reflect.DeepEqual(r, other) }

// Encode encodes the root. Equal roots give equal bytes.
func (r Root) Encode() ([]byte, error) {
	body, err := json.MarshalWithOption(r, json.DisableHTMLEscape())
	if err != nil {
		return nil, fmt.Errorf("encode the root: %w", err)
	}
	return body, nil
}

// ErrFormat says that another version of followpress, with another Format, wrote a site.
var ErrFormat = errors.New("a site of another format")

// ParseRoot decodes a root and fills the defaults of its Config. It fails if the root is malformed or that of a live
// site, and with ErrFormat if this package cannot read the site.
func ParseRoot(body []byte) (Root, error) {
	r, err := ParseServedRoot(body)
	if err == nil && r.Live {
		return Root{}, fmt.Errorf("read %s: a live site has no manifest: ask the bucket that it publishes to", RootKey)
	}
	return r, err
}

// ParseServedRoot is ParseRoot for who needs no manifest: the root may be that of a live site.
func ParseServedRoot(body []byte) (Root, error) {
	r, err := parseRoot(body)
	if err == nil && r.Format == format1 {
		return Root{}, fmt.Errorf("read %s: format %d, this version reads %d: generate it again, or publish the new site, with this version: %w",
			RootKey, r.Format, Format, ErrFormat)
	}
	return r, err
}

// ParseReplaced is ParseRoot for who replaces the site by another one: it also reads roots of format 1.
func ParseReplaced(body []byte) (Root, error) {
	r, err := parseRoot(body)
	if err == nil && r.Format == format1 {
		return r, nil
	}
	return ParseRoot(body)
}

// parseRoot decodes a root of any format that this version knows.
func parseRoot(body []byte) (Root, error) {
	if len(body) > MaxRootBytes {
		return Root{}, fmt.Errorf("read %s: %d bytes, more than %d MiB", RootKey, len(body), MaxRootBytes>>20)
	}
	var known struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(body, &known); err != nil {
		return Root{}, fmt.Errorf("read %s: %w", RootKey, err)
	}
	var r Root
	var err error
	switch {
	case known.Format < 1:
		return Root{}, fmt.Errorf("read %s: it has no format", RootKey)
	case known.Format > Format:
		return Root{}, fmt.Errorf("read %s: format %d, this version reads %d: use a newer version: %w", RootKey, known.Format, Format, ErrFormat)
	case known.Format == format1:
		r, err = decodeRoot1(body)
	default:
		err = json.Unmarshal(body, &r)
	}
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return Root{}, fmt.Errorf("read %s: %w", RootKey, err)
	}
	return r, nil
}

// decodeRoot1 decodes a root of format 1.
func decodeRoot1(body []byte) (Root, error) {
	type fields Root
	var old struct {
		fields
		Manifest map[string]MD5 `json:"manifest"` // hides that of the fields
	}
	err := json.Unmarshal(body, &old)
	r := Root(old.fields)
	r.Manifest1 = old.Manifest
	return r, err
}

// check fills the defaults of the Config, and returns an error if a member is not valid.
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
		return fmt.Errorf("not the manifest shards that %d digits make", r.ShardDigits)
	}
	if _, err := time.Parse(time.RFC3339, r.AsOf); err != nil {
		return fmt.Errorf("as_of: %w", err)
	}
	return nil
}

// hasItsManifest reports whether the root names the shards or indexes that its digits make; that of a live site names none.
func (r *Root) hasItsManifest() bool {
	switch {
	case r.Live:
		return len(r.Manifest) == 0
	case r.Format == format1:
		return hasAll(r.Manifest1, r.ShardDigits)
	}
	return hasAll(r.Manifest, RootDigits(r.ShardDigits))
}

func hasAll[D any](digests map[string]D, digits int) bool {
	for _, name := range HashPrefixes(digits) {
		if _, ok := digests[name]; !ok {
			return false
		}
	}
	return len(digests) == 1<<(4*digits)
}

// RootDigits is the number of digits of the names in Root.Manifest, if names of shards have that many digits. A root
// names up to 256 shards. Of more it names the indexes, of 256 shards each, so that it stays small for browsers.
func RootDigits(shardDigits int) int {
	if shardDigits > 2 {
		return shardDigits - 2
	}
	return shardDigits
}

func validDigits(n int) bool { return 1 <= n && n <= maxHashDigits }

// BucketDigits is the number of digits of the user buckets of a site with that many users: addresses
// and names.
func (c Config) BucketDigits(users int) int {
	if c.EFP() {
		return HashDigits(users, efpPerBucket)
	}
	return HashDigits(users, usersPerBucket)
}

// TokenDigits is the number of digits of the token buckets of a site with that many lists; 0 if it has
// none.
func (c Config) TokenDigits(lists int) int {
	if c.EFP() {
		return HashDigits(lists, efpPerBucket)
	}
	return 0
}

// ShardDigits is the number of digits of the manifest shards of a site with that many objects.
func ShardDigits(objects int) int { return HashDigits(objects, objectsPerShard) }
