package render

import (
	"slices"

	"github.com/followpress/followpress/site"
)

// A Selection selects an object of a unit to read, so that the unit can skip the others. It is a
// hint: other objects may still be rendered. The zero value selects all objects.
type Selection struct {
	Object site.ListObject // requested object; "" for units without selection
	List   uint32          // list of the object, if it has a token
	Token  string          // token ID of the list; "" for none
	Shard  int             // number of a ShardObject; HeadShard for a head
	Cuts   *Cuts           // cuts of sharded tables; nil if all objects are selected

	one [1]uint32
}

// ShardObject represents the shards and heads of a list or of the followers of an account.
const ShardObject site.ListObject = "(shard)"

// HeadShard represents the head among shard numbers.
const HeadShard = -1

// Wants reports whether one of these objects may be selected.
func (s *Selection) Wants(objects ...site.ListObject) bool {
	return s.Object == "" || slices.Contains(objects, s.Object)
}

// WantsPages reports whether an object of renderPages is selected.
func (s *Selection) WantsPages() bool {
	return s.Wants(site.Stats, site.PageFollowing, site.PageFollowers, site.SearchFollowing)
}

// WantsList reports whether an object of a list, or with "" of a user, that is rendered for user
// and list together may be selected.
func (s *Selection) WantsList(token string) bool {
	return s.Object == "" || s.Token == "" || s.Token == token
}

// Lists returns the selected lists of an account.
func (s *Selection) Lists(all []uint32) []uint32 {
	switch {
	case s.Object == "":
		return all
	case s.Token == "":
		return nil
	}
	s.one[0] = s.List
	return s.one[:]
}

// shards returns the range [from, to) of selected shards among n.
func (s *Selection) shards(n int) (from, to int) {
	if s.Object == "" {
		return 0, n
	}
	return max(s.Shard, 0), min(s.Shard+1, n)
}

// WantsOneOf reports whether exactly one of n shards is selected.
func (s *Selection) WantsOneOf(n int) bool {
	return s.Object == ShardObject && s.Shard >= 0 && s.Shard < n
}

func (s *Selection) wantsHead() bool { return s.Object == "" || s.Shard == HeadShard }
