package table

import (
	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/site/scan"
)

// A Selection is the rows of a table that a request asks for, in the order of the table if nothing else is said.
type Selection struct {
	MutualOf      string        // only those who follow this account and are followed back; "" for all
	Objects       int           // more objects that the page needs, about
	Match         *scan.Matcher // nil for all
	Offset, Limit int

	all         bool        // not only follows
	shown       rules.State // which blocks and mutes do not keep an entry out
	tags        scan.TagFilter
	byFollowers bool // the order: by followers,
	backwards   bool // or that of the table or its reverse
}

// Values of site.Ask.Sort for pages. Any other means latest.
const (
	sortEarliest  = "earliest"
	sortFollowers = "followers"
)

// Asked is the page of a table that the request asks for: of all rows, or of the follows.
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

// wants reports whether the request asks for a row, on this page or another.
func (s *Selection) wants(r row) bool {
	return (s.all || scan.StateOf(r.tags)&^s.shown&^rules.Follow == 0) && s.tags.Match(r.tags) && (s.Match == nil || s.Match.MatchText(r.address, r.name)) &&
		(s.MutualOf == "" || IsMutual(s.MutualOf, r.address, r.tags, r.state))
}

// IsMutual reports whether the account of a table of followers and the follower of a row follow each other.
func IsMutual(account string, follower []byte, tags []byte, back rules.State) bool {
	return scan.StateOf(tags) == rules.Follow && rules.IsMutual(account, string(follower), back&rules.Follow != 0)
}

// isFiltered reports whether the selection has other rows than all, or all follows.
func (s *Selection) isFiltered() bool {
	return len(s.tags) > 0 || s.Match != nil || s.MutualOf != "" || !s.all && s.shown != 0
}
