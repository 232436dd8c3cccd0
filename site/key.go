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

// A Key names an object of a site. It is the path of the object's URL, percent-decoded, without the
// leading slash: "api/v1/lists/7/details".
type Key string

// A Board names a leaderboard.
type Board string

// The leaderboards. Those after Following exist only under APIEFP.
const (
	Followers Board = "followers"
	Following Board = "following"
	Blocked   Board = "blocked" // by how many accounts
	Blocks    Board = "blocks"  // how many accounts
	Muted     Board = "muted"   // by how many accounts
	Mutes     Board = "mutes"   // how many accounts
	Mutuals   Board = "mutuals"
)

// Boards lists all leaderboards in the order in which the generator renders them.
func (c Config) Boards() []Board {
	if c.EFP() {
		return []Board{Followers, Following, Blocked, Blocks, Muted, Mutes, Mutuals}
	}
	return []Board{Followers, Following}
}

// RankedSorts lists the orders of ranked accounts that have shards of positions. The accounts
// themselves are in the order of their mutuals.
func RankedSorts() []string { return []string{"followers", "following", "top8", "blocks"} }

// A ListObject names one of the objects that every list has, or every user.
type ListObject string

// The objects of a list or of a user. A site of APISpec has those before Account.
const (
	Records         ListObject = "records" // of lists only
	Details         ListObject = "details"
	Badges          ListObject = "badges"
	SearchFollowing ListObject = "searchFollowing"

	Account       ListObject = "account"
	Stats         ListObject = "stats"
	Lists         ListObject = "lists" // of users only
	PageFollowing ListObject = "following"
	PageFollowers ListObject = "followers"
	Tags          ListObject = "tags"
	TaggedAs      ListObject = "taggedAs"
)

// Keys outside of the base path, and beginnings of such keys.
const (
	// RootKey is the root, the object that names all others by way of the manifest.
	RootKey Key = "_site"
	// LockKey is the lock of the publisher that writes to a bucket, or did last. It is no
	// object of a site.
	LockKey Key = "_lock"
	// MarkKey is the mark. A bucket has it while it may hold objects that its manifest does
	// not name: during a publish, after one that was cut off, and as long as requests of such
	// a run may still arrive.
	MarkKey Key = "_publishing"
	// PackKey is the archive that a server stores if it cannot unpack archives of objects.
	PackKey Key = "_publishing.tar"
	// RanksKey has the counts by which details rank accounts, under Config.RanksEvery (package ranks).
	RanksKey Key = "_ranks"
	// RefreshPrefix begins the keys of what refreshes have kept.
	RefreshPrefix Key = refreshFolder + "/"
	// RefreshCopies begins the keys of those that are no data, but notes about copies.
	RefreshCopies = RefreshPrefix + "copies/"

	// ReportsPrefix begins the keys of reports, which people look at. A bucket keeps them whatever site is
	// published to it.
	ReportsPrefix Key = reportsFolder + "/"
	// ReportsKey is the list of the published reports.
	ReportsKey = ReportsPrefix + "index"

	// FormerLogPrefix begins the keys of a log of all events that publishes before version 1 put beside a site. Nothing
	// reads it, and a publish leaves it alone.
	FormerLogPrefix Key = formerLogFolder + "/"

	// NoteKey is the signed note, which says which root the bucket has (package note). Only signed sites have one.
	NoteKey Key = "_site.note"
	// NextPrefix begins the keys of what publishes of a signed site announce.
	NextPrefix Key = nextFolder + "/"

	// IndexKey leads a browser to the explorer. Static hosts answer / with it.
	IndexKey Key = "index.html"
	// ExplorerPageKey is the explorer's page.
	ExplorerPageKey Key = explorePrefix + "index.html"
	// TopKey has the accounts with the most followers.
	TopKey Key = explorePrefix + "top"
	// NetworkKey has the sizes and distributions of the whole graph.
	NetworkKey Key = explorePrefix + "network"
	// RecentKey has the newest operations, under Config.HistoryWindow.
	RecentKey Key = explorePrefix + "recent"
	// GrowthKey has new and ended follows of each day, under Config.HistoryWindow.
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
	formerLogFolder         = "_log"
	nextFolder              = "_next"
	keptFolder              = "_snapshot"
	refreshFolder           = "_refresh"
	headName                = "head"

	// DiscoverShardKey has all accounts that discover pages through.
	DiscoverShardKey Key = "_search/discover"
	// OpenAPIKey is the description of the API.
	OpenAPIKey Key = "openapi.json"
)

// LeaderboardKey is the leaderboard with the default limit.
func (c Config) LeaderboardKey(board Board) Key {
	return Key(c.BasePath + "/leaderboard/" + string(board))
}

// LeaderboardLimitKey is the variant of a leaderboard that answers ?limit={limit}. A site has those
// for 1 to Config.LeaderboardMax.
func LeaderboardLimitKey(board Board, limit int) Key {
	return Key(variantPrefix + "leaderboard/" + string(board) + "/limit=" + strconv.Itoa(limit))
}

// ListKey is the key of an object of the list tokenID.
func (c Config) ListKey(tokenID string, object ListObject) Key {
	return Key(c.BasePath + "/lists/" + tokenID + "/" + string(object))
}

// UserObjectKey is the key of an object of a user: an address in lower case or a normalized name.
func (c Config) UserObjectKey(user string, object ListObject) Key {
	return Key(c.BasePath + "/users/" + user + "/" + string(object))
}

// RankedKey is the first page of the ranked accounts.
func (c Config) RankedKey() Key { return Key(c.BasePath + "/leaderboard/ranked") }

// CountKey says how many accounts are ranked.
func (c Config) CountKey() Key { return Key(c.BasePath + "/leaderboard/count") }

// StatsKey has the sizes of the graph.
func (c Config) StatsKey() Key { return Key(c.BasePath + "/stats") }

// DiscoverKey is the first page of discover.
func (c Config) DiscoverKey() Key { return Key(c.BasePath + "/discover") }

// UserKey is the key of a user's following search. user is an address in lower case or a normalized
// name.
func (c Config) UserKey(user string) Key {
	return Key(c.BasePath + "/users/" + user + "/" + string(SearchFollowing))
}

// SearchShardKey is the key of search shard n, counted from 0, of the list tokenID.
func SearchShardKey(tokenID string, n int) Key {
	return Key(searchListPrefix + tokenID + "/" + strconv.Itoa(n))
}

// ParseSearchShardKey is the inverse of SearchShardKey. ok is false for other keys.
func ParseSearchShardKey(key Key) (tokenID string, n int, ok bool) {
	rest, ok := strings.CutPrefix(string(key), searchListPrefix)
	tokenID, number, _ := strings.Cut(rest, "/")
	n, err := strconv.Atoi(number)
	return tokenID, n, ok && err == nil && ValidTokenID(tokenID) && SearchShardKey(tokenID, n) == key
}

// ListHeadKey has the first rows of a long list in each order.
func ListHeadKey(tokenID string) Key { return Key(searchListPrefix + tokenID + "/" + headName) }

// TokenBucketKey is the object that has the lists of a bucket.
func TokenBucketKey(bucket string) Key { return Key(searchTokensPrefix + bucket) }

// FollowerShardKey is the key of shard n, counted from 0, of the followers of an address in lower case.
func FollowerShardKey(address string, n int) Key {
	return Key(searchFollowersPrefix + address + "/" + strconv.Itoa(n))
}

// FollowerHeadKey has the first of many followers in each order.
func FollowerHeadKey(address string) Key {
	return Key(searchFollowersPrefix + address + "/" + headName)
}

// NotificationsKey is the key of shard n, counted from 0, of the operations about an address in lower case, newest first.
func NotificationsKey(address string, n int) Key {
	return shardOfOperations(searchNotesPrefix, address, n)
}

// ActivityKey is the key of shard n, counted from 0, of the operations of the list tokenID, newest first.
func ActivityKey(tokenID string, n int) Key {
	return shardOfOperations(searchActivityPrefix, tokenID, n)
}

func shardOfOperations(prefix, of string, n int) Key {
	if n == 0 {
		return Key(prefix + of)
	}
	return Key(prefix + olderFolder + of + "/" + strconv.Itoa(n))
}

// RankedShardKey is the key of shard n of the ranked accounts, in the order of their mutuals.
func RankedShardKey(n int) Key { return Key(searchRankedPrefix + strconv.Itoa(n)) }

// RankedOrderKey is the key of shard n of the positions of the ranked accounts in the order of sort, one
// of RankedSorts.
func RankedOrderKey(sort string, n int) Key {
	return Key(searchRankedPrefix + sort + "/" + strconv.Itoa(n))
}

// RecommendedShardKey is the key of shard n of the recommended accounts.
func RecommendedShardKey(n int) Key { return Key(searchRecommendedPrefix + strconv.Itoa(n)) }

// UnknownKey is the answer for an address that the graph does not know, with UnknownAddress in its
// place.
func UnknownKey(object ListObject) Key { return Key(unknownPrefix + string(object)) }

// UnknownAddress stands for the address in the objects UnknownKey.
var UnknownAddress = Address{}.String()

// ClientKey is the key of a file of the client library: one of Scripts or ScriptTypes.
func ClientKey(name string) Key { return Key(clientPrefix + name) }

// ExplorerKey is the key of a file of the explorer, such as index.html.
func ExplorerKey(name string) Key { return Key(explorePrefix + name) }

// ReportKey is the key of a report of a day, in one of its forms. The date is like 2026-01-31.
func ReportKey(date string, form ReportForm) Key {
	return ReportsPrefix + Key(date+"."+string(form))
}

// A ReportForm is a form in which a report is published.
type ReportForm string

// The forms of reports.
const (
	ReportPage ReportForm = "html"
	ReportData ReportForm = "json"
)

// Scripts lists the modules of the client library.
func Scripts() []string {
	return []string{"followpress.js", "shim.js", "qr.js", "history.js", "relations.js", "proof.js"}
}

// ScriptTypes lists the type declarations of the client library.
func ScriptTypes() []string { return []string{"followpress.d.ts", "shim.d.ts"} }

// UserBucketKey is the object that maps the users of a bucket to their lists.
func UserBucketKey(bucket string) Key { return Key(searchUsersPrefix + bucket) }

// ManifestKey is the key of a shard of the manifest, or of one of its indexes, whose names have fewer digits.
func ManifestKey(shard string) Key { return Key(manifestPrefix + shard) }

// DeltaKey is the key of what shards of the manifest in a bucket have been changed to: see package shards. Its name
// is that of the first of these shards.
func DeltaKey(shard string) Key { return Key(deltaPrefix + shard) }

// NextKey is where the publish of a signed site announces its root, and what it puts of the manifest. The counter is that
// of its note.
func NextKey(counter uint64, key Key) Key {
	return NextPrefix + Key(strconv.FormatUint(counter, 10)) + "/" + key
}

// RefreshKey is the key of what refreshes have kept for an object (Details or Badges) of the list
// tokenID.
func RefreshKey(object ListObject, tokenID string) Key {
	return RefreshPrefix + Key(string(object)+"/"+tokenID)
}

// ParseRefreshKey is the inverse of RefreshKey for a key without RefreshPrefix. ok is false for other
// keys.
func ParseRefreshKey(key Key) (object ListObject, tokenID string, ok bool) {
	kind, tokenID, _ := strings.Cut(string(key), "/")
	object = ListObject(kind)
	return object, tokenID, slices.Contains(refreshedObjects, object) && ValidTokenID(tokenID)
}

// refreshedObjects are the objects of a list that refreshes may replace.
var refreshedObjects = []ListObject{Details, Badges}

// RefreshCopyKey is the key, with a SHA-256 in it, of what refreshes have noted about an object that shows what they fetched
// for another one. Only under APIEFP.
func RefreshCopyKey(key Key) Key {
	return RefreshCopies + Key(Sum256([]byte(key)).String())
}

// RefreshesOf returns the keys of what refreshes may have kept about the object with a key: its
// RefreshKey, its RefreshCopyKey, or both. There are none for objects that are never refreshed.
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

// PublicKeys lists patterns, with * for any text, of the keys that everybody may read: those of all
// objects of a site, but not those that commands keep beside them.
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

// UserBucket is the name of the bucket that maps a user to a list: the first hexadecimal digits of the
// SHA-256 of the user, as many as Root.BucketDigits says.
func UserBucket(user string, digits int) string { return hashPrefix(user, digits) }

// ManifestShard is the name of the shard of the manifest that lists a key: the first hexadecimal
// digits of the SHA-256 of the key, as many as Root.ShardDigits says.
func ManifestShard(key Key, digits int) string { return hashPrefix(string(key), digits) }

// maxHashDigits bounds the digits of buckets and shards. 65,536 of them with thousands of entries each
// are more than any site needs.
const maxHashDigits = 4

func hashPrefix(text string, digits int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:(digits+1)/2])[:digits]
}

// HashDigits is the number of hexadecimal digits, at least one, that divide n things into groups of
// about size or fewer.
func HashDigits(n, size int) int {
	digits := 1
	for groups := 16; n > groups*size && digits < maxHashDigits; groups *= 16 {
		digits++
	}
	return digits
}

// HashPrefixes lists all texts of that many hexadecimal digits, in order.
func HashPrefixes(digits int) []string {
	all := make([]string, 1<<(4*digits))
	for i := range all {
		text := strconv.FormatInt(int64(i), 16)
		all[i] = strings.Repeat("0", digits-len(text)) + text
	}
	return all
}

// URLPath returns the URL path of the object, its slashes and the normal forms of the
// segments between them. Edges use it as cache key.
func (k Key) URLPath() string {
	return "/" + strings.ReplaceAll(NormalForm(string(k)), "%2F", "/")
}

// NormalForm returns the normal form of a path segment or of a value in a query: letters, digits and -._~=
// stand for themselves, and every other byte is percent-encoded with upper-case digits. Equal texts have
// equal normal forms.
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

// Valid reports whether k can be a key: valid UTF-8 without NUL, whose segments are neither empty nor
// "." nor "..".
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

// workFolder is where a folder that is used as a bucket keeps what is no object (storage.Local).
const workFolder = ".followpress"

// Reserved lists the first segments of keys outside of the base path, and the name of a bucket's work folder, so that no
// base path may begin with one.
func Reserved() []string {
	return []string{workFolder, "_client", dataFolder, "_errors", exploreFolder, "_lock", formerLogFolder, "_manifest", nextFolder, "_publishing", "_publishing.tar", string(RanksKey), "_refresh", reportsFolder,
		"_search", "_site", string(NoteKey), keptFolder, "_unknown", "_variants", string(IndexKey), string(OpenAPIKey)}
}

// TopLevel lists the first segments of all keys that a folder with a site may have.
func (c Config) TopLevel() []string {
	first, _, _ := strings.Cut(c.BasePath, "/")
	all := append(append(Reserved(), first), c.pageEntries()...)
	return slices.DeleteFunc(all, func(s string) bool {
		return !c.Explorer && (s == exploreFolder || s == reportsFolder || s == string(IndexKey)) || !c.Data && s == dataFolder
	})
}
