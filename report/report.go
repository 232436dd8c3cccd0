package report

import (
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/page"
)

// Format is the version of the JSON of a report.
const Format = 1

// A Report says what changed between two sites. Sizes are in bytes. Its JSON is documented in
// docs/report.md. Lists are never null.
type Report struct {
	Format   int           `json:"format"`
	Date     Text          `json:"date"` // of the report, such as 2026-11-22
	API      Text          `json:"api"`
	Brand    Brand         `json:"brand,omitzero"`
	From     SiteSummary   `json:"from"`
	To       SiteSummary   `json:"to"`
	Equal    bool          `json:"equal"` // whether all objects are the same, whatever the time of the snapshot
	Lists    Lists         `json:"lists"`
	Follows  Follows       `json:"follows"`
	Accounts Accounts      `json:"accounts"`
	Boards   []Board       `json:"boards"`
	Tags     Tags          `json:"tags"`
	Profiles Profiles      `json:"profiles"`
	Objects  []ObjectKind  `json:"objects"`           // kinds with a change, in the order of the table of routes
	Network  *Networks     `json:"network,omitempty"` // nil unless both sites have an explorer
	Read     ReadSummary   `json:"read"`
	Elapsed  time.Duration `json:"-"` // not part of the figures: the same sites give the same report
}

// A Brand says whose site the new one is, as site.Config does.
type Brand struct {
	Title  Text `json:"title,omitempty"` // or the host of its public URL
	Colour Text `json:"colour,omitempty"`
	Home   Text `json:"home,omitempty"`
}

func brandOf(c site.Config) Brand {
	return Brand{plain(page.Title(c)), plain(c.Colour), plain(c.Home)}
}

// check is an error unless a site can have the colour, which becomes style, and the home, which becomes a link.
func (b Brand) check() error {
	_, err := site.Config{Explorer: true, Colour: string(b.Colour), Home: string(b.Home)}.WithDefaults()
	return err
}

// A SiteSummary describes one of the sites.
type SiteSummary struct {
	Site   Text        `json:"site"` // as it was named; "" in a report that is published, as only its operator knows what that means
	AsOf   Text        `json:"as_of"`
	Counts site.Counts `json:"counts"`
}

// Lists counts lists whose records changed.
type Lists struct {
	New     int          `json:"new"`
	Gone    int          `json:"gone"`
	Changed int          `json:"changed"` // in both sites, with other records
	Largest []ListChange `json:"largest"` // the most follows and unfollows first
}

// A ListChange is a list whose records changed.
type ListChange struct {
	List      Text `json:"list"`
	Address   Text `json:"address"` // of its account
	Name      Text `json:"name"`
	State     Text `json:"state"` // "new", "gone" or "changed"
	Follows   int  `json:"follows"`
	Unfollows int  `json:"unfollows"`
}

// Follows counts what changed in the records of all lists, primary or not. What new lists say is new,
// and what gone lists said is gone.
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

// Accounts says which accounts were followed and unfollowed most, by lists of any kind.
type Accounts struct {
	Changed    int             `json:"changed"` // accounts that lists follow or unfollow
	Gained     []AccountChange `json:"gained"`
	Lost       []AccountChange `json:"lost"`
	NotCounted int             `json:"not_counted"` // follows and unfollows of more accounts than are counted
}

// An AccountChange is an account that lists followed and unfollowed.
type AccountChange struct {
	Address   Text `json:"address"`
	Name      Text `json:"name"`
	Follows   int  `json:"follows"`
	Unfollows int  `json:"unfollows"`
}

// A Board says how a leaderboard changed, in its first places.
type Board struct {
	Board   site.Board   `json:"board"`
	Places  int          `json:"places"` // places that are compared
	Changed int          `json:"changed"`
	Risen   []PlaceOnIt  `json:"risen"`   // the most places first
	Fallen  []PlaceOnIt  `json:"fallen"`  // the most places first
	Entered []PlaceOnIt  `json:"entered"` // best place first
	Left    []PlaceOnIt  `json:"left"`    // best place first
	Totals  PlacesTotals `json:"totals"`  // of all, of which the lists show the first
}

// PlacesTotals counts the accounts of a board by what became of them.
type PlacesTotals struct {
	Risen   int `json:"risen"`
	Fallen  int `json:"fallen"`
	Entered int `json:"entered"`
	Left    int `json:"left"`
}

// A PlaceOnIt is an account on a leaderboard. A place and its count are 0 if the account was not
// among the places that are compared.
type PlaceOnIt struct {
	Address   Text `json:"address"`
	Name      Text `json:"name"`
	From      int  `json:"from"`
	To        int  `json:"to"`
	FromCount int  `json:"from_count"`
	ToCount   int  `json:"to_count"`
}

// Tags says which tags records got and lost.
type Tags struct {
	Changed    int         `json:"changed"` // tags that any record got or lost
	More       []TagChange `json:"more"`
	Less       []TagChange `json:"less"`
	NotCounted int         `json:"not_counted"` // changes of long tags, of records with very many, and of more tags than are counted
}

// A TagChange counts the records that got and lost a tag.
type TagChange struct {
	Tag     Text `json:"tag"`
	Added   int  `json:"added"`
	Removed int  `json:"removed"`
}

// Profiles counts the accounts that both sites have and that show another profile. Under the API
// spec, only accounts with a list have one.
type Profiles struct {
	Changed    int             `json:"changed"`
	Names      int             `json:"names"`
	Avatars    int             `json:"avatars"`
	Headers    int             `json:"headers"`
	Texts      int             `json:"texts"`
	Examples   []ProfileChange `json:"examples"`    // the best rank by followers first
	NotCounted int             `json:"not_counted"` // profiles of more accounts than are told apart
}

// A ProfileChange is a profile that changed.
type ProfileChange struct {
	Address    Text   `json:"address"`
	Rank       int    `json:"followers_rank"` // 0 for none
	NameFrom   Text   `json:"name_from"`
	NameTo     Text   `json:"name_to"`
	AvatarFrom Text   `json:"avatar_from"`
	AvatarTo   Text   `json:"avatar_to"`
	Changed    []Text `json:"changed"` // of name, avatar, header, texts
}

// An ObjectKind counts the objects of a route that differ.
type ObjectKind struct {
	Kind    Text  `json:"kind"` // pattern of the route
	Summary Text  `json:"summary"`
	Added   Count `json:"added"`
	Altered Count `json:"altered"` // with the bytes of the new site
	Removed Count `json:"removed"` // with the bytes of the old site
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

// objects counts the objects that are new or have other bytes, and those that are gone.
func (r *Report) objects() (put, removed Count) {
	for _, k := range r.Objects {
		put.Objects += k.Added.Objects + k.Altered.Objects
		put.Bytes += k.Added.Bytes + k.Altered.Bytes
		removed.Objects += k.Removed.Objects
		removed.Bytes += k.Removed.Bytes
	}
	return put, removed
}

// ReadSummary says what the comparison has read.
type ReadSummary struct {
	Shards    int   `json:"shards"`    // of both manifests
	Objects   int   `json:"objects"`   // of both sites, without manifests and roots
	Bytes     int64 `json:"bytes"`     // of both, manifests included
	Refreshed int   `json:"refreshed"` // objects that a refresh had replaced since they were published
}
