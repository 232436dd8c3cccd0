// Package kept names the objects by which a bucket keeps what its sites were made of, beside its site.
//
// The API may change in any release.
package kept

import (
	"strings"

	"github.com/followpress/followpress/site"
)

// Prefix begins the keys of all these objects.
const Prefix site.Key = "_snapshot/"

const indexes = Prefix + "index/"

// PieceKey is the key of a piece of what sites were made of, by the SHA-256 of its body.
func PieceKey(digest site.SHA256) site.Key { return Prefix + site.Key(digest.String()) }

// IndexKey is the key of the index of what a site was made of, by the SHA-256 of its root.
func IndexKey(root site.SHA256) site.Key { return indexes + site.Key(root.String()) }

// IsIndex reports whether a key is one of IndexKey.
func IsIndex(key site.Key) bool { return strings.HasPrefix(string(key), string(indexes)) }
