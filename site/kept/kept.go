// Package kept names the objects with which a bucket keeps the inputs of its sites.
//
// The API may change in any release.
package kept

import (
	"strings"

	"github.com/followpress/followpress/site"
)

// Prefix begins all these keys.
const Prefix site.Key = "_snapshot/"

const indexes = Prefix + "index/"

// PieceKey returns the key of a piece of the inputs, given the SHA-256 of its body.
func PieceKey(digest site.SHA256) site.Key { return Prefix + site.Key(digest.String()) }

// IndexKey returns the key of the index of a site's inputs, given the SHA-256 of its root.
func IndexKey(root site.SHA256) site.Key { return indexes + site.Key(root.String()) }

// IsIndex reports whether a key is a result of IndexKey.
func IsIndex(key site.Key) bool { return strings.HasPrefix(string(key), string(indexes)) }
