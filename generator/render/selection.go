package render

import (
	"slices"

	"github.com/followpress/followpress/site"
)

// A selection says which object of a unit is read, so that a unit need not work for the others. It may
// let others through. The zero value selects all objects.
type selection struct {
	object site.ListObject // what is read; "" for objects of a unit without selection
	list   uint32          // whose object it is; none for one of a user
	token  string          // the token ID of that list; "" for none
	shard  int             // number of a shardObject; headShard for a head
	cuts   *Cuts           // of the tables with shards; nil if all objects are selected

	one [1]uint32
}

// shardObject stands for the shards and heads of a list or of the followers of an account.
const shardObject site.ListObject = "(shard)"

// headShard stands for the head among the numbers of shards.
const headShard = -1

func (s *selection) wants(objects ...site.ListObject) bool {
	return s.object == "" || slices.Contains(objects, s.object)
}

// wantsPages reports whether an object that renderPages renders is selected.
func (s *selection) wantsPages() bool {
	return s.wants(site.Stats, site.PageFollowing, site.PageFollowers, site.SearchFollowing)
}

// wantsList reports whether an object of a list, or with "" of a user, may be one that is rendered
// for the user and the list together.
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

// shards returns which of n shards are selected: those from a number on, up to another.
func (s *selection) shards(n int) (from, to int) {
	if s.object == "" {
		return 0, n
	}
	return max(s.shard, 0), min(s.shard+1, n)
}

// wantsOneOf reports whether a single one of n shards is selected.
func (s *selection) wantsOneOf(n int) bool {
	return s.object == shardObject && s.shard >= 0 && s.shard < n
}

func (s *selection) wantsHead() bool { return s.object == "" || s.shard == headShard }
