package report

import (
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/page"
)

// Format is the version of the JSON of a report.
const Format = 1

// A Report describes the changes between two sites. Sizes are in bytes. docs/report.md documents its JSON. Lists are
// never null.
type Report struct {
	Format   int           `json:"format"`
	Date     Text          `json:"date"` // date of the report, such as 2026-11-22
	API      Text          `json:"api"`
	Brand    Brand         `json:"brand,omitzero"`
	From     SiteSummary   `json:"from"`
	To       SiteSummary   `json:"to"`
	Equal    bool          `json:"equal"` // all objects are equal, whatever the time of the snapshot
	Lists    Lists         `json:"lists"`
	Follows  Follows       `json:"follows"`
	Accounts Accounts      `json:"accounts"`
	Boards   []Board       `json:"boards"`
	Tags     Tags          `json:"tags"`
	Profiles Profiles      `json:"profiles"`
	Objects  []ObjectKind  `json:"objects"`            // kinds with changes, in the order of the table of routes
	Explorer bool          `json:"explorer,omitempty"` // whether the new site has one
	Read     ReadSummary   `json:"read"`
	Elapsed  time.Duration `json:"-"` // not in the JSON: equal sites give equal reports
}

// A Brand has the branding of the new site, as in site.Config.
type Brand struct {
	Title  Text `json:"title,omitempty"` // title, or the host of the public URL
	Colour Text `json:"colour,omitempty"`
	Home   Text `json:"home,omitempty"`
}

func brandOf(c site.Config) Brand {
	return Brand{plain(page.Title(c)), plain(c.Colour), plain(c.Home)}
}

// check returns an error unless colour and home are valid. They become style and a link.
func (b Brand) check() error {
	_, err := site.Config{Explorer: true, Colour: string(b.Colour), Home: string(b.Home)}.WithDefaults()
	return err
}

// A SiteSummary describes one of the sites.
type SiteSummary struct {
	Site   Text        `json:"site"` // name of the site; "" in a published report, where only its operator would understand it
	AsOf   Text        `json:"as_of"`
	Counts site.Counts `json:"counts"`
}

// Lists counts lists whose records changed.
type Lists struct {
	New     int          `json:"new"`
	Gone    int          `json:"gone"`
	Changed int          `json:"changed"` // in both sites, with other records
	Largest []ListChange `json:"largest"` // most follows and unfollows first
}

// A ListChange is a list whose records changed.
type ListChange struct {
	List      Text `json:"list"`
	Address   Text `json:"address"` // address of its account
	Name      Text `json:"name"`
	State     Text `json:"state"` // "new", "gone" or "changed"
	Follows   int  `json:"follows"`
	Unfollows int  `json:"unfollows"`
}

// Follows counts changes in the records of all lists, primary or not. Records of new lists count as new, those of
// gone lists as gone.
type Follows struct {
	Follows   int `json:"follows"`
	Unfollows int `json:"unfollows"`
	OfNew     int `json:"follows_of_new_lists"`
	OfGone    int `json:"unfollows_of_gone_lists"`
	Blocks    int `json:"blocks"`
	Unblocks  int `json:"unblocks"`
	Mutes     int `json:"mutes"`
	Unmutes   int `json:"unmutes"`
}

// Accounts are the accounts that lists of any kind followed and unfollowed most.
type Accounts struct {
	Changed    int             `json:"changed"` // accounts that any list followed or unfollowed
	Gained     []AccountChange `json:"gained"`
	Lost       []AccountChange `json:"lost"`
	NotCounted int             `json:"not_counted"` // changes of accounts beyond the limit
}

// An AccountChange is an account that lists followed and unfollowed.
type AccountChange struct {
	Address   Text `json:"address"`
	Name      Text `json:"name"`
	Follows   int  `json:"follows"`
	Unfollows int  `json:"unfollows"`
}

// A Board describes the changes in the first places of a leaderboard.
type Board struct {
	Board   site.Board   `json:"board"`
	Places  int          `json:"places"` // number of compared places
	Changed int          `json:"changed"`
	Risen   []PlaceOnIt  `json:"risen"`   // most places first
	Fallen  []PlaceOnIt  `json:"fallen"`  // most places first
	Entered []PlaceOnIt  `json:"entered"` // best place first
	Left    []PlaceOnIt  `json:"left"`    // best place first
	Totals  PlacesTotals `json:"totals"`  // all accounts, including those not listed
}

// PlacesTotals counts the accounts of a board by kind of change.
type PlacesTotals struct {
	Risen   int `json:"risen"`
	Fallen  int `json:"fallen"`
	Entered int `json:"entered"`
	Left    int `json:"left"`
}

// A PlaceOnIt is an account on a leaderboard. Place and count are 0 if it was not among the compared places.
type PlaceOnIt struct {
	Address   Text `json:"address"`
	Name      Text `json:"name"`
	From      int  `json:"from"`
	To        int  `json:"to"`
	FromCount int  `json:"from_count"`
	ToCount   int  `json:"to_count"`
}

// Tags are the tags that records gained and lost.
type Tags struct {
	Changed    int         `json:"changed"` // tags that any record gained or lost
	More       []TagChange `json:"more"`
	Less       []TagChange `json:"less"`
	NotCounted int         `json:"not_counted"` // changes of long tags, of records with very many, and of tags beyond the limit
}

// A TagChange counts the records that gained and lost a tag.
type TagChange struct {
	Tag     Text `json:"tag"`
	Added   int  `json:"added"`
	Removed int  `json:"removed"`
}

// Profiles counts the accounts in both sites whose profile changed. Under the API spec, only accounts with a list
// have a profile.
type Profiles struct {
	Changed    int             `json:"changed"`
	Names      int             `json:"names"`
	Avatars    int             `json:"avatars"`
	Headers    int             `json:"headers"`
	Texts      int             `json:"texts"`
	Examples   []ProfileChange `json:"examples"`    // best rank by followers first
	NotCounted int             `json:"not_counted"` // profiles of accounts beyond the limit
}

// A ProfileChange is a profile that changed.
type ProfileChange struct {
	Address    Text   `json:"address"`
	Rank       int    `json:"followers_rank"` // 0 if unranked
	NameFrom   Text   `json:"name_from"`
	NameTo     Text   `json:"name_to"`
	AvatarFrom Text   `json:"avatar_from"`
	AvatarTo   Text   `json:"avatar_to"`
	Changed    []Text `json:"changed"` // name, avatar, header, texts
}

// An ObjectKind counts the objects of a route that differ.
type ObjectKind struct {
	Kind    Text  `json:"kind"` // pattern of the route
	Summary Text  `json:"summary"`
	Added   Count `json:"added"`
	Altered Count `json:"altered"` // bytes of the new site
	Removed Count `json:"removed"` // bytes of the old site
}

// A Count is a number of objects and their bytes.
type Count struct {
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes"`
}

func (c *Count) add(bytes int64) {
	c.Objects++
	c.Bytes += bytes
}

// objects counts new and altered objects, and removed ones.
func (r *Report) objects() (put, removed Count) {
	for _, k := range r.Objects {
		put.Objects += k.Added.Objects + k.Altered.Objects
		put.Bytes += k.Added.Bytes + k.Altered.Bytes
		removed.Objects += k.Removed.Objects
		removed.Bytes += k.Removed.Bytes
	}
	return put, removed
}

// ReadSummary counts what the comparison has read.
type ReadSummary struct {
	Shards    int   `json:"shards"`    // shards of both manifests
	Objects   int   `json:"objects"`   // objects of both sites, without manifests and roots
	Bytes     int64 `json:"bytes"`     // bytes of both, including manifests
	Refreshed int   `json:"refreshed"` // objects replaced by a refresh after they were published
}
