package table

import (
	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/site/scan"
)

// A Selection selects rows of a table, by default in table order.
type Selection struct {
	MutualOf      string        // only followers of this account that it follows back; "" for all
	Objects       int           // approximate number of other objects that the page needs
	Match         *scan.Matcher // nil matches all
	Offset, Limit int

	all         bool        // all records, not only follows
	shown       rules.State // blocks and mutes that do not exclude an entry
	tags        scan.TagFilter
	byFollowers bool // order by followers
	backwards   bool // reverse table order
}

// Values of site.Ask.Sort for pages. Any other value means latest.
const (
	sortEarliest  = "earliest"
	sortFollowers = "followers"
)

// Asked returns the page that the request asks for: of all rows, or of the follows only.
func (t *Table) Asked(a *compute.Answer, all bool) Selection {
	s := Selection{
		all: all, tags: scan.NewTagFilter(a.Ask.Tags), byFollowers: a.Ask.Sort == sortFollowers,
		backwards: (a.Ask.Sort == sortEarliest) == t.newest, Offset: a.Ask.Offset, Limit: a.Ask.Limit,
	}
	if a.Ask.Blocked {
		s.shown |= rules.Block
	}
	if a.Ask.Muted {
		s.shown |= rules.Mute
	}
	return s
}

// wants reports whether the request selects a row, on this page or another.
func (s *Selection) wants(r row) bool {
	return (s.all || scan.StateOf(r.tags)&^s.shown&^rules.Follow == 0) && s.tags.Match(r.tags) && (s.Match == nil || s.Match.MatchText(r.address, r.name)) &&
		(s.MutualOf == "" || IsMutual(s.MutualOf, r.address, r.tags, r.state))
}

// IsMutual reports whether the account of a table of followers and a follower in it follow each
// other.
func IsMutual(account string, follower []byte, tags []byte, back rules.State) bool {
	return scan.StateOf(tags) == rules.Follow && rules.IsMutual(account, string(follower), back&rules.Follow != 0)
}

// isFiltered reports whether the selection is neither all rows nor all follows.
func (s *Selection) isFiltered() bool {
	return len(s.tags) > 0 || s.Match != nil || s.MutualOf != "" || !s.all && s.shown != 0
}
