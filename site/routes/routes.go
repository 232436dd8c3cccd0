// Package routes names the routes of a site. What a route is, the table of package site says (site.RouteBy).
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

	// Only under site.APIEFP.
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

	// Only with site.Config.Explorer, of both APIs.
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

	// Only with site.Config.RanksEvery, of both APIs.
	Ranks

	// Only with site.Config.HistoryWindow.
	UserNotifications
	NotificationsFeed
	ListActivity
	NotificationsShard
	OlderNotifications
	ActivityShard
	OlderActivity

	// Only with site.Config.HistoryWindow and site.Config.Explorer.
	Recent
	Active
	Growth

	// Only with site.Config.Pages.
	Page
	PageStyle
	Sitemap
	SitemapPart
	Robots
	Badge
	DarkBadge
	Embed
	Card

	// Only with site.Config.Data, of both APIs.
	DataFile
	DataPackage
)
