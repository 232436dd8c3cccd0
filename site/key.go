package site

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A Key names an object of a site. It is the URL's path, percent-decoded, without the leading slash:
// "api/v1/lists/7/details".
type Key string

// A Board is the name of a leaderboard.
type Board string

// The leaderboards. Those after Following exist under APIEFP only.
const (
	Followers Board = "followers"
	Following Board = "following"
	Blocked   Board = "blocked" // by number of accounts that block them
	Blocks    Board = "blocks"  // by number of accounts that they block
	Muted     Board = "muted"   // by number of accounts that mute them
	Mutes     Board = "mutes"   // by number of accounts that they mute
	Mutuals   Board = "mutuals"
)

// Boards returns all leaderboards in the order in which the generator renders them.
func (c Config) Boards() []Board {
	if c.EFP() {
		return []Board{Followers, Following, Blocked, Blocks, Muted, Mutes, Mutuals}
	}
	return []Board{Followers, Following}
}

// RankedSorts returns the orders of ranked accounts that have shards of positions. The shards of accounts are sorted
// by mutuals.
func RankedSorts() []string { return []string{"followers", "following", "top8", "blocks"} }

// A ListObject is the last segment of an object of a list or user.
type ListObject string

// The objects of a list or a user. Sites of APISpec have those before Account.
const (
	Records         ListObject = "records" // lists only
	Details         ListObject = "details"
	Badges          ListObject = "badges"
	SearchFollowing ListObject = "searchFollowing"

	Account       ListObject = "account"
	Stats         ListObject = "stats"
	Lists         ListObject = "lists" // users only
	PageFollowing ListObject = "following"
	PageFollowers ListObject = "followers"
	Tags          ListObject = "tags"
	TaggedAs      ListObject = "taggedAs"
)

// Keys and key prefixes outside the base path.
const (
	// RootKey is the root, which leads to all other objects through the manifest.
	RootKey Key = "_site"
	// LockKey is the lock of the current or last publisher. It is not an object of a site.
	LockKey Key = "_lock"
	// MarkKey is the mark. It exists while the bucket may hold objects missing from its manifest:
	// during a publish, after an interrupted one, and while late requests of an interrupted one may
	// arrive.
	MarkKey Key = "_publishing"
	// PackKey is where a server stores an archive of objects that it cannot unpack.
	PackKey Key = "_publishing.tar"
	// RanksKey has the counts that determine ranks in details, under Config.RanksEvery (package ranks).
	RanksKey Key = "_ranks"
	// RefreshPrefix begins the keys of refreshed data.
	RefreshPrefix Key = refreshFolder + "/"
	// RefreshCopies begins the keys of notes about copies, which are not data.
	RefreshCopies = RefreshPrefix + "copies/"

	// ReportsPrefix begins the keys of reports. They stay in a bucket whatever site is published there.
	ReportsPrefix Key = reportsFolder + "/"
	// ReportsKey is the list of the published reports.
	ReportsKey = ReportsPrefix + "index"

	// NoteKey is the signed note that names the root in the bucket (package note). Only signed sites have one.
	NoteKey Key = "_site.note"
	// NextPrefix begins the keys of announcements, which precede a publish of a signed site.
	NextPrefix Key = nextFolder + "/"

	// IndexKey redirects browsers to the explorer. Static hosts serve it at /.
	IndexKey Key = "index.html"
	// ExplorerPageKey is the page of the explorer.
	ExplorerPageKey Key = explorePrefix + "index.html"
	// TopKey has the accounts with the most followers.
	TopKey Key = explorePrefix + "top"
	// NetworkKey has the sizes and distributions of the whole graph.
	NetworkKey Key = explorePrefix + "network"
	// RecentKey has the newest operations, under Config.HistoryWindow.
	RecentKey Key = explorePrefix + "recent"
	// GrowthKey has the new and ended follows of each day, under Config.HistoryWindow.
	GrowthKey Key = explorePrefix + "growth"

	errorPrefix       = "_errors/"
	manifestPrefix    = "_manifest/"
	deltaPrefix       = manifestPrefix + "delta/"
	variantPrefix     = "_variants/"
	searchListPrefix  = "_search/lists/"
	searchUsersPrefix = "_search/users/"

	searchTokensPrefix      = "_search/tokens/"
	searchFollowersPrefix   = "_search/followers/"
	searchRankedPrefix      = "_search/ranked/"
	searchRecommendedPrefix = "_search/recommended/"
	searchNotesPrefix       = "_search/notifications/"
	searchActivityPrefix    = "_search/activity/"
	olderFolder             = "older/"
	unknownPrefix           = "_unknown/"
	clientPrefix            = "_client/"
	dataFolder              = "_data"
	exploreFolder           = "_explore"
	explorePrefix           = exploreFolder + "/"
	reportsFolder           = "_reports"
	nextFolder              = "_next"
	keptFolder              = "_snapshot"
	refreshFolder           = "_refresh"
	headName                = "head"

	// DiscoverShardKey has all accounts in the result of discover.
	DiscoverShardKey Key = "_search/discover"
	// OpenAPIKey is the OpenAPI description.
	OpenAPIKey Key = "openapi.json"
)

// LeaderboardKey returns the key of a leaderboard with the default limit.
func (c Config) LeaderboardKey(board Board) Key {
	return Key(c.BasePath + "/leaderboard/" + string(board))
}

// LeaderboardLimitKey returns the key of the leaderboard variant for ?limit={limit}. A site has variants for 1 to
// Config.LeaderboardMax.
func LeaderboardLimitKey(board Board, limit int) Key {
	return Key(variantPrefix + "leaderboard/" + string(board) + "/limit=" + strconv.Itoa(limit))
}

// ListKey returns the key of an object of the list tokenID.
func (c Config) ListKey(tokenID string, object ListObject) Key {
	return Key(c.BasePath + "/lists/" + tokenID + "/" + string(object))
}

// UserObjectKey returns the key of an object of a user, who is a lower-case address or a normalized name.
func (c Config) UserObjectKey(user string, object ListObject) Key {
	return Key(c.BasePath + "/users/" + user + "/" + string(object))
}

// RankedKey returns the key of the first page of ranked accounts.
func (c Config) RankedKey() Key { return Key(c.BasePath + "/leaderboard/ranked") }

// CountKey returns the key of the number of ranked accounts.
func (c Config) CountKey() Key { return Key(c.BasePath + "/leaderboard/count") }

// StatsKey returns the key of the sizes of the graph.
func (c Config) StatsKey() Key { return Key(c.BasePath + "/stats") }

// DiscoverKey returns the key of the first page of discover.
func (c Config) DiscoverKey() Key { return Key(c.BasePath + "/discover") }

// UserKey returns the key of a user's following search. user is a lower-case address or a normalized name.
func (c Config) UserKey(user string) Key {
	return Key(c.BasePath + "/users/" + user + "/" + string(SearchFollowing))
}

// SearchShardKey returns the key of search shard n, from 0, of the list tokenID.
func SearchShardKey(tokenID string, n int) Key {
	return Key(searchListPrefix + tokenID + "/" + strconv.Itoa(n))
}

// ParseSearchShardKey returns the inverse of SearchShardKey. ok is false for other keys.
func ParseSearchShardKey(key Key) (tokenID string, n int, ok bool) {
	rest, ok := strings.CutPrefix(string(key), searchListPrefix)
	tokenID, number, _ := strings.Cut(rest, "/")
	n, err := strconv.Atoi(number)
	return tokenID, n, ok && err == nil && ValidTokenID(tokenID) && SearchShardKey(tokenID, n) == key
}

// ListHeadKey returns the key of the first rows of a long list in each order.
func ListHeadKey(tokenID string) Key { return Key(searchListPrefix + tokenID + "/" + headName) }

// TokenBucketKey returns the key of a bucket of lists.
func TokenBucketKey(bucket string) Key { return Key(searchTokensPrefix + bucket) }

// FollowerShardKey returns the key of shard n, from 0, of the followers of a lower-case address.
func FollowerShardKey(address string, n int) Key {
	return Key(searchFollowersPrefix + address + "/" + strconv.Itoa(n))
}

// FollowerHeadKey returns the key of the first of many followers in each order.
func FollowerHeadKey(address string) Key {
	return Key(searchFollowersPrefix + address + "/" + headName)
}

// NotificationsKey returns the key of shard n, from 0, of the operations about a lower-case address, newest first.
func NotificationsKey(address string, n int) Key {
	return shardOfOperations(searchNotesPrefix, address, n)
}

// ActivityKey returns the key of shard n, from 0, of the operations of the list tokenID, newest first.
func ActivityKey(tokenID string, n int) Key {
	return shardOfOperations(searchActivityPrefix, tokenID, n)
}

func shardOfOperations(prefix, subject string, n int) Key {
	if n == 0 {
		return Key(prefix + subject)
	}
	return Key(prefix + olderFolder + subject + "/" + strconv.Itoa(n))
}

// RankedShardKey returns the key of shard n of the ranked accounts, sorted by mutuals.
func RankedShardKey(n int) Key { return Key(searchRankedPrefix + strconv.Itoa(n)) }

// RankedOrderKey returns the key of shard n of the positions of ranked accounts in another order, one of RankedSorts.
func RankedOrderKey(sort string, n int) Key {
	return Key(searchRankedPrefix + sort + "/" + strconv.Itoa(n))
}

// RecommendedShardKey returns the key of shard n of the recommended accounts.
func RecommendedShardKey(n int) Key { return Key(searchRecommendedPrefix + strconv.Itoa(n)) }

// UnknownKey returns the key of the answer for an address outside the graph. Its body has UnknownAddress in place of
// the address.
func UnknownKey(object ListObject) Key { return Key(unknownPrefix + string(object)) }

// UnknownAddress is the placeholder in objects of UnknownKey.
var UnknownAddress = Address{}.String()

// ClientKey returns the key of a file of the client library: one of ClientFiles.
func ClientKey(name string) Key { return Key(clientPrefix + name) }

// ExplorerKey returns the key of a file of the explorer, such as index.html.
func ExplorerKey(name string) Key { return Key(explorePrefix + name) }

// ReportKey returns the key of a day's report as a page, "html", or as data, "json". The date is like 2026-01-31.
func ReportKey(date, form string) Key { return ReportsPrefix + Key(date+"."+form) }

// ClientFiles returns the names of the client library's modules, then those of their type declarations.
func ClientFiles() []string { return append(slices.Clone(clientScripts), clientTypes...) }

var (
	clientScripts = []string{"followpress.js", "shim.js", "qr.js", "history.js", "relations.js", "proof.js"}
	clientTypes   = []string{"followpress.d.ts", "shim.d.ts"}
)

// UserBucketKey returns the key of a bucket that maps users to their lists.
func UserBucketKey(bucket string) Key { return Key(searchUsersPrefix + bucket) }

// ManifestKey returns the key of a manifest shard, or of a manifest index, whose name has fewer digits.
func ManifestKey(shard string) Key { return Key(manifestPrefix + shard) }

// DeltaKey returns the key of a delta, which changes stored manifest shards (package shards). It is named after the
// first of these shards.
func DeltaKey(shard string) Key { return Key(deltaPrefix + shard) }

// NextKey returns the key at which a publish of a signed site announces its root or a manifest object. The counter
// comes from its note.
func NextKey(counter uint64, key Key) Key {
	return NextPrefix + Key(strconv.FormatUint(counter, 10)) + "/" + key
}

// RefreshKey returns the key of refreshed data for an object (Details or Badges) of the list tokenID.
func RefreshKey(object ListObject, tokenID string) Key {
	return RefreshPrefix + Key(string(object)+"/"+tokenID)
}

// ParseRefreshKey returns the inverse of RefreshKey for a key without RefreshPrefix. ok is false for other keys.
func ParseRefreshKey(key Key) (object ListObject, tokenID string, ok bool) {
	kind, tokenID, _ := strings.Cut(string(key), "/")
	object = ListObject(kind)
	return object, tokenID, slices.Contains(refreshedObjects, object) && ValidTokenID(tokenID)
}

// refreshedObjects are the objects of a list that a refresh may replace.
var refreshedObjects = []ListObject{Details, Badges}

// RefreshCopyKey returns the key of a note about an object that shows data refreshed for another one. It contains a
// SHA-256. Only under APIEFP.
func RefreshCopyKey(key Key) Key {
	return RefreshCopies + Key(Sum256([]byte(key)).String())
}

// RefreshesOf returns the keys of refreshed data about an object: its RefreshKey, its RefreshCopyKey, both, or none.
func (c Config) RefreshesOf(key Key) (keys []Key) {
	path, inLists := strings.CutPrefix(string(key), c.BasePath+"/lists/")
	if !inLists {
		var inUsers bool
		if path, inUsers = strings.CutPrefix(string(key), c.BasePath+"/users/"); !inUsers || !c.EFP() {
			return nil
		}
	}
	subject, name, _ := strings.Cut(path, "/")
	object := ListObject(name)
	refreshed := slices.Contains(refreshedObjects, object)
	if inLists && refreshed {
		keys = append(keys, RefreshKey(object, subject))
	}
	if c.EFP() && (refreshed || object == Account) {
		keys = append(keys, RefreshCopyKey(key))
	}
	return keys
}

// PublicKeys returns patterns, with * for any text, of the keys that everybody may read: all objects of a site, but
// not what commands store next to them.
func (c Config) PublicKeys() []string {
	keys := []string{
		c.BasePath + "/*", variantPrefix + "*", "_search/*", errorPrefix + "*", manifestPrefix + "*", string(RootKey),
		string(NoteKey), string(NextPrefix) + "*", keptFolder + "/*", string(RefreshPrefix) + "*",
	}
	if c.EFP() {
		keys = append(keys, unknownPrefix+"*", clientPrefix+"*", string(OpenAPIKey))
	}
	if c.RanksEvery > 0 {
		keys = append(keys, string(RanksKey))
	}
	if c.Pages {
		keys = append(keys, pageFolder+"/*", badgeFolder+"/*", cardFolder+"/*", sitemapKey, robotsKey, embedKey)
	}
	if c.Data {
		keys = append(keys, dataFolder+"/*")
	}
	if c.Explorer {
		keys = append(keys, explorePrefix+"*", string(ReportsPrefix)+"*", string(IndexKey))
	}
	return keys
}

// UserBucket returns the bucket that maps a user to a list: the first hexadecimal digits of the user's SHA-256.
// digits is Root.BucketDigits.
func UserBucket(user string, digits int) string { return hashPrefix(user, digits) }

// ManifestShard returns the manifest shard that lists a key: the first hexadecimal digits of the key's SHA-256.
// digits is Root.ShardDigits.
func ManifestShard(key Key, digits int) string { return hashPrefix(string(key), digits) }

// maxHashDigits is the maximum number of digits of buckets and shards. No site needs more than 65,536 of them with
// thousands of entries each.
const maxHashDigits = 4

func hashPrefix(text string, digits int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:(digits+1)/2])[:digits]
}

// HashDigits returns the number of hexadecimal digits, at least one, that divide n items into groups of about size or
// fewer.
func HashDigits(n, size int) int {
	digits := 1
	for groups := 16; n > groups*size && digits < maxHashDigits; groups *= 16 {
		digits++
	}
	return digits
}

// HashPrefixes returns all texts of that many hexadecimal digits, sorted.
func HashPrefixes(digits int) []string {
	all := make([]string, 1<<(4*digits))
	for i := range all {
		text := strconv.FormatInt(int64(i), 16)
		all[i] = strings.Repeat("0", digits-len(text)) + text
	}
	return all
}

// URLPath returns the URL path of the object: its segments in normal form, with slashes. Edges use it as cache key.
func (k Key) URLPath() string {
	return "/" + strings.ReplaceAll(NormalForm(string(k)), "%2F", "/")
}

// NormalForm returns the normal form of a path segment or query value: letters, digits and -._~= stand for
// themselves, and every other byte is percent-encoded with upper-case digits. Equal texts have equal normal forms.
func NormalForm(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; plainPath(text[i:i+1]) && c != '/' || c == '~' || c == '=' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// Valid reports whether k can be a key: valid UTF-8 without NUL, and no segment is empty, "." or "..".
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

// workFolder holds whatever is not an object in a folder used as a bucket (storage.Local).
const workFolder = ".followpress"

// Reserved returns the first segments of keys outside the base path, and the work folder. No base path may begin with
// one of them.
func Reserved() []string {
	return []string{workFolder, "_client", dataFolder, "_errors", exploreFolder, "_lock", "_manifest", nextFolder, "_publishing", "_publishing.tar", string(RanksKey), "_refresh", reportsFolder,
		"_search", "_site", string(NoteKey), keptFolder, "_unknown", "_variants", string(IndexKey), string(OpenAPIKey)}
}

// TopLevel returns the first segments of all keys that a site's folder may have.
func (c Config) TopLevel() []string {
	first, _, _ := strings.Cut(c.BasePath, "/")
	all := append(append(Reserved(), first), c.pageEntries()...)
	return slices.DeleteFunc(all, func(s string) bool {
		return !c.Explorer && (s == exploreFolder || s == reportsFolder || s == string(IndexKey)) || !c.Data && s == dataFolder
	})
}
