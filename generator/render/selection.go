package render

import (
	"slices"

	"github.com/followpress/followpress/site"
)

// A selection selects an object of a unit to read, so that the unit can skip the others. It is a
// hint: other objects may still be rendered. The zero value selects all objects.
type selection struct {
	object site.ListObject // requested object; "" for units without selection
	list   uint32          // list of the object; None for an object of a user
	token  string          // token ID of the list; "" for none
	shard  int             // number of a shardObject; headShard for a head
	cuts   *Cuts           // cuts of sharded tables; nil if all objects are selected

	one [1]uint32
}

// shardObject represents the shards and heads of a list or of the followers of an account.
const shardObject site.ListObject = "(shard)"

// headShard represents the head among shard numbers.
const headShard = -1

func (s *selection) wants(objects ...site.ListObject) bool {
	return s.object == "" || slices.Contains(objects, s.object)
}

// wantsPages reports whether an object of renderPages is selected.
func (s *selection) wantsPages() bool {
	return s.wants(site.Stats, site.PageFollowing, site.PageFollowers, site.SearchFollowing)
}

// wantsList reports whether an object of a list, or with "" of a user, that is rendered for user
// and list together may be selected.
func (s *selection) wantsList(token string) bool {
	return s.object == "" || s.token == "" || s.token == token
}

func (s *selection) lists(all []uint32) []uint32 {
	switch {
	case s.object == "":
		return all
	case s.list == None:
		return nil
	}
	s.one[0] = s.list
	return s.one[:]
}

// shards returns the range [from, to) of selected shards among n.
func (s *selection) shards(n int) (from, to int) {
	if s.object == "" {
		return 0, n
	}
	return max(s.shard, 0), min(s.shard+1, n)
}

// wantsOneOf reports whether exactly one of n shards is selected.
func (s *selection) wantsOneOf(n int) bool {
	return s.object == shardObject && s.shard >= 0 && s.shard < n
}

func (s *selection) wantsHead() bool { return s.object == "" || s.shard == headShard }
