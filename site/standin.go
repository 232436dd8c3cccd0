package site

import "strconv"

// Stand-ins until the table of routes has both APIs.

const (
	Blocked Board = "blocked"
	Blocks  Board = "blocks"
	Muted   Board = "muted"
	Mutes   Board = "mutes"
	Mutuals Board = "mutuals"

	Account       ListObject = "account"
	Stats         ListObject = "stats"
	Lists         ListObject = "lists"
	PageFollowing ListObject = "following"
	PageFollowers ListObject = "followers"
	Tags          ListObject = "tags"
	TaggedAs      ListObject = "taggedAs"

	RankedLimit     = 50
	PackedRows      = 20
	HeadRows        = 100
	RankedOrderSize = 10_000
	DiscoverMax     = 250
	efpPerBucket    = 64

	DiscoverShardKey Key = "_search/discover"
)

func (c Config) Boards() []Board {
	if c.EFP() {
		return []Board{Followers, Following, Blocked, Blocks, Muted, Mutes, Mutuals}
	}
	return []Board{Followers, Following}
}

func RankedSorts() []string { return []string{"followers", "following", "top8", "blocks"} }

func UserObjects() []ListObject {
	return []ListObject{Account, Details, Stats, Lists, Badges, PageFollowing, PageFollowers, Tags, TaggedAs}
}

func (c Config) UserObjectKey(user string, object ListObject) Key {
	return Key(c.BasePath + "/users/" + user + "/" + string(object))
}
func (c Config) RankedKey() Key      { return Key(c.BasePath + "/leaderboard/ranked") }
func (c Config) CountKey() Key       { return Key(c.BasePath + "/leaderboard/count") }
func (c Config) StatsKey() Key       { return Key(c.BasePath + "/stats") }
func (c Config) DiscoverKey() Key    { return Key(c.BasePath + "/discover") }
func ListHeadKey(tokenID string) Key { return Key(searchListPrefix + tokenID + "/head") }
func TokenBucketKey(bucket string) Key {
	return Key("_search/tokens/" + bucket)
}
func FollowerShardKey(address string, n int) Key {
	return Key("_search/followers/" + address + "/" + strconv.Itoa(n))
}
func FollowerHeadKey(address string) Key { return Key("_search/followers/" + address + "/head") }
func RankedShardKey(n int) Key           { return Key("_search/ranked/" + strconv.Itoa(n)) }
func RankedOrderKey(sort string, n int) Key {
	return Key("_search/ranked/" + sort + "/" + strconv.Itoa(n))
}
func RecommendedShardKey(n int) Key    { return Key("_search/recommended/" + strconv.Itoa(n)) }
func UnknownKey(object ListObject) Key { return Key("_unknown/" + object) }

func (c Config) Problems() []*Problem        { return Problems() }
func (c Config) HeaderRules() map[string]MD5 { return HeaderRules() }
func (c Config) BucketDigits(users int) int {
	if c.EFP() {
		return HashDigits(users, efpPerBucket)
	}
	return HashDigits(users, usersPerBucket)
}
func (c Config) TokenDigits(lists int) int {
	if c.EFP() {
		return HashDigits(lists, efpPerBucket)
	}
	return 0
}
