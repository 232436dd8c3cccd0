package site

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Key names an object: its path below the root of the site, without a leading
// slash, in raw UTF-8. The path of a URL, percent-decoded, is the key.
type Key string

// A Board is one of the leaderboards.
type Board string

// The boards, in the order in which they are rendered.
const (
	Followers Board = "followers"
	Following Board = "following"
)

// Boards lists every leaderboard.
func Boards() []Board { return []Board{Followers, Following} }

// A ListObject is one of the objects that each list has.
type ListObject string

// The objects of a list.
const (
	Records         ListObject = "records"
	Details         ListObject = "details"
	Badges          ListObject = "badges"
	SearchFollowing ListObject = "searchFollowing"
)

// Keys outside of the base path.
const (
	RootKey Key = "_site"
	// LockKey is the lock of whoever publishes to a bucket, or did last; no object of a site.
	LockKey Key = "_lock"
	// MarkKey is in a bucket while it may hold objects that its manifest does not
	// name: during a publish, after one that did not end, and while its requests may
	// still arrive.
	MarkKey Key = "_publishing"
	// PackKey is what a server stores that was asked to unpack many objects and cannot.
	PackKey Key = "_publishing.tar"
	// RefreshPrefix begins the keys of what was fetched since the last publish.
	RefreshPrefix Key = "_refresh/"

	errorPrefix       = "_errors/"
	manifestPrefix    = "_manifest/"
	variantPrefix     = "_variants/"
	searchListPrefix  = "_search/lists/"
	searchUsersPrefix = "_search/users/"
)

// LeaderboardKey is the leaderboard with the default limit.
func (c Config) LeaderboardKey(board Board) Key {
	return Key(c.BasePath + "/leaderboard/" + string(board))
}

// LeaderboardLimitKey is the object that answers ?limit={limit}; 1 to
// c.LeaderboardMax exist.
func LeaderboardLimitKey(board Board, limit int) Key {
	return Key(variantPrefix + "leaderboard/" + string(board) + "/limit=" + strconv.Itoa(limit))
}

// ListKey is an object of the list tokenID.
func (c Config) ListKey(tokenID string, object ListObject) Key {
	return Key(c.BasePath + "/lists/" + tokenID + "/" + string(object))
}

// UserKey is the following search of a user: an address in lower case or a name
// in its normal form.
func (c Config) UserKey(user string) Key {
	return Key(c.BasePath + "/users/" + user + "/" + string(SearchFollowing))
}

// SearchShardKey is the n-th search shard, from 0, of the list tokenID.
func SearchShardKey(tokenID string, n int) Key {
	return Key(searchListPrefix + tokenID + "/" + strconv.Itoa(n))
}

// ParseSearchShardKey takes the key of a search shard apart; ok is false if it is no
// such key.
func ParseSearchShardKey(key Key) (tokenID string, n int, ok bool) {
	rest, ok := strings.CutPrefix(string(key), searchListPrefix)
	tokenID, number, _ := strings.Cut(rest, "/")
	n, err := strconv.Atoi(number)
	return tokenID, n, ok && err == nil && ValidTokenID(tokenID) && SearchShardKey(tokenID, n) == key
}

// UserBucketKey is the object that maps the users of a bucket to their lists.
func UserBucketKey(bucket string) Key { return Key(searchUsersPrefix + bucket) }

// ManifestKey is a shard of the manifest.
func ManifestKey(shard string) Key { return Key(manifestPrefix + shard) }

// RefreshKey is what an upstream answered for an object (Details or Badges) of the
// list tokenID.
func RefreshKey(object ListObject, tokenID string) Key {
	return RefreshPrefix + Key(string(object)+"/"+tokenID)
}

// RefreshOf is the key of what an upstream answered for an object; ok is false for
// objects that are never refreshed.
func (c Config) RefreshOf(key Key) (refresh Key, ok bool) {
	path, inLists := strings.CutPrefix(string(key), c.BasePath+"/lists/")
	tokenID, object, _ := strings.Cut(path, "/")
	if !inLists || !slices.Contains(RefreshedObjects(), ListObject(object)) {
		return "", false
	}
	return RefreshKey(ListObject(object), tokenID), true
}

// PublicKeys are patterns of the keys that everybody may read, a * for anything: all
// objects of a site, and nothing that other commands keep beside them.
func (c Config) PublicKeys() []string {
	return []string{
		c.BasePath + "/*", variantPrefix + "*", "_search/*", errorPrefix + "*", manifestPrefix + "*", string(RootKey),
	}
}

// UserBucket is the bucket of a user where buckets are told apart by that many
// hexadecimal digits of the SHA-256 of the user.
func UserBucket(user string, digits int) string { return hashPrefix(user, digits) }

// ManifestShard is the shard of the manifest that holds a key.
func ManifestShard(key Key, digits int) string { return hashPrefix(string(key), digits) }

// maxHashDigits bounds the digits of buckets and shards: 65,536 of them, at
// thousands of entries each, are more than any site needs.
const maxHashDigits = 4

func hashPrefix(text string, digits int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:(digits+1)/2])[:digits]
}

// HashDigits is the number of hexadecimal digits, at least one, with which n
// things fall into groups of at most about size.
func HashDigits(n, size int) int {
	digits := 1
	for groups := 16; n > groups*size && digits < maxHashDigits; groups *= 16 {
		digits++
	}
	return digits
}

// HashPrefixes lists all the prefixes of that many hexadecimal digits in order.
func HashPrefixes(digits int) []string {
	all := make([]string, 1<<(4*digits))
	for i := range all {
		text := strconv.FormatInt(int64(i), 16)
		all[i] = strings.Repeat("0", digits-len(text)) + text
	}
	return all
}

// Valid reports whether k can be a key at all: no empty, "." or ".." segment,
// no NUL, no leading slash, valid UTF-8.
func (k Key) Valid() bool {
	if strings.ContainsRune(string(k), 0) || !utf8.ValidString(string(k)) {
		return false
	}
	for segment := range strings.SplitSeq(string(k), "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// Reserved lists the first segments of keys that followpress writes beside the
// base path, and of those that other commands keep in a site.
func Reserved() []string {
	return []string{"_errors", "_lock", "_manifest", "_publishing", "_publishing.tar", "_refresh", "_search", "_site", "_variants"}
}
