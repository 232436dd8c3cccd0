package site

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	json "github.com/goccy/go-json"
)

// Format is the version of the site format that this package reads and writes.
const Format = 1

// A Root names a whole site: sites with equal roots are equal.
type Root struct {
	Format       int            `json:"format"`
	AsOf         string         `json:"as_of"` // of the snapshot, RFC 3339
	Config       Config         `json:"config"`
	BucketDigits int            `json:"user_bucket_digits"` // hexadecimal digits that tell buckets of users apart
	ShardDigits  int            `json:"manifest_digits"`    // and shards of the manifest
	HeaderRules  map[string]MD5 `json:"header_rules"`       // digest of the headers of each route's objects, by pattern
	Counts       Counts         `json:"counts"`
	Manifest     map[string]MD5 `json:"manifest"` // digest of each shard of the manifest
}

// Counts says how much a site holds.
type Counts struct {
	Accounts int   `json:"accounts"` // every address that is in the graph
	Lists    int   `json:"lists"`
	Primary  int   `json:"primary_lists"`
	Records  int   `json:"records"` // repeated rows merged
	Follows  int   `json:"follows"` // of all lists
	Names    int   `json:"names"`   // that can be looked up
	Events   int   `json:"events"`
	Objects  int   `json:"objects"` // without manifest and root
	Bytes    int64 `json:"bytes"`   // of those objects
}

// Equal reports whether two roots name the same site.
func (r *Root) Equal(other *Root) bool { return reflect.DeepEqual(r, other) }

// Encode writes the root; equal roots give equal bytes.
func (r Root) Encode() ([]byte, error) {
	body, err := json.MarshalWithOption(r, json.DisableHTMLEscape())
	if err != nil {
		return nil, fmt.Errorf("encode the root: %w", err)
	}
	return body, nil
}

// ErrFormat says that a site was written by a version with another format.
var ErrFormat = errors.New("a site of another format")

// ParseRoot reads a root and checks that this package can read its site.
func ParseRoot(body []byte) (Root, error) {
	var r Root
	if err := json.Unmarshal(body, &r); err != nil {
		return Root{}, fmt.Errorf("read %s: %w", RootKey, err)
	}
	if r.Format < 1 {
		return Root{}, fmt.Errorf("read %s: it has no format", RootKey)
	}
	if r.Format != Format {
		return Root{}, fmt.Errorf("read %s: format %d, this version reads %d: %w", RootKey, r.Format, Format, ErrFormat)
	}
	config, err := r.Config.WithDefaults()
	if err != nil {
		return Root{}, fmt.Errorf("read %s: %w", RootKey, err)
	}
	r.Config = config
	if !validDigits(r.BucketDigits) || !validDigits(r.ShardDigits) {
		return Root{}, fmt.Errorf("read %s: %d and %d digits, expected 1 to %d", RootKey, r.BucketDigits, r.ShardDigits, maxHashDigits)
	}
	for _, shard := range HashPrefixes(r.ShardDigits) {
		if _, ok := r.Manifest[shard]; !ok || len(r.Manifest) != 1<<(4*r.ShardDigits) {
			return Root{}, fmt.Errorf("read %s: not the manifest shards that %d digits make", RootKey, r.ShardDigits)
		}
	}
	if _, err := time.Parse(time.RFC3339, r.AsOf); err != nil {
		return Root{}, fmt.Errorf("read %s: as_of: %w", RootKey, err)
	}
	return r, nil
}

func validDigits(n int) bool { return 1 <= n && n <= maxHashDigits }

// BucketDigits is the number of digits that tell the buckets of that many users apart.
func BucketDigits(users int) int { return HashDigits(users, usersPerBucket) }

// ShardDigits is the number of digits that tell the manifest shards of that many objects apart.
func ShardDigits(objects int) int { return HashDigits(objects, objectsPerShard) }
