// Package routes has the IDs of the routes of a site. The table in package site defines them (site.RouteBy).
//
// The API may change in any release.
package routes

// An ID identifies a route.
type ID int

// The routes, in the order of the table.
const (
	Leaderboard ID = iota
	Records
	Details
	Badges
	ListSearch
	UserSearch
	LeaderboardLimit
	SearchShard
	UserBucket
	Error
	Manifest
	ManifestDelta
	Root
	Note
	NextNote
	NextRoot
	NextManifest
	NextDelta
	KeptIndex
	KeptPiece
	RefreshedDetails
	RefreshedBadges
	RefreshedCopy

	// With site.APIEFP only.
	UserAccount
	ListAccount
	UserDetails
	UserBadges
	UserStats
	ListStats
	UserLists
	UserPrimaryList
	UserENS
	UserSimpleProfile
	UserRecords
	UserFollowing
	ListFollowing
	UserAllFollowing
	ListAllFollowing
	UserFollowers
	ListFollowers
	UserAllFollowers
	ListAllFollowers
	UserLatestFollowers
	ListLatestFollowers
	UserSearchFollowers
	ListSearchFollowers
	UserFollowingAddresses
	ListFollowingAddresses
	ExportState
	UserTags
	ListTags
	UserTaggedAs
	ListTaggedAs
	UserFollowerState
	ListFollowerState
	UserButtonState
	ListButtonState
	ButtonStateBatch
	CommonFollowers
	Ranked
	RankedSearch
	RankedCount
	Stats
	UserRecommended
	ListRecommended
	UserRecommendedDetails
	ListRecommendedDetails
	Discover
	UserQR
	ListQR
	RankedAll
	Relationship
	Relationships
	UserMutuals
	UserAvatar
	TokenBucket
	ListHead
	FollowersShard
	FollowersHead
	RankedShard
	RankedOrder
	RecommendedShard
	DiscoverShard
	Unknown
	OpenAPI
	Script
	ScriptTypes

	// With site.Config.Explorer only, for both APIs.
	Index
	Explorer
	ExplorerWorker
	ExplorerScript
	ExplorerStyle
	Top
	Start
	Network
	Reports
	ReportPage
	ReportData

	// With site.Config.RanksEvery only, for both APIs.
	Ranks

	// With site.Config.HistoryWindow only.
	UserNotifications
	NotificationsFeed
	ListActivity
	NotificationsShard
	OlderNotifications
	ActivityShard
	OlderActivity

	// With site.Config.HistoryWindow and site.Config.Explorer only.
	Recent
	Active
	Growth

	// With site.Config.Pages only.
	Page
	PageStyle
	Sitemap
	SitemapPart
	Robots
	Badge
	DarkBadge
	Embed
	Card
	PageTop

	// With site.Config.Data only, for both APIs.
	DataFile
	DataPackage
)
