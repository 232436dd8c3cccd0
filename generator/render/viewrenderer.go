package render

import (
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// keysPerEmit bounds the keys emitted with one body at a time: an account may have any number of
// lists, and an output keeps a copy of the body for each.
const keysPerEmit = 64

// Views render views, and objects that depend on the configuration only.
type Views struct {
	Config site.Config
	events eventTexts
}

// NewViews returns the Views of a configuration and the events in order.
func NewViews(config site.Config, events []site.Event) Views {
	return Views{config, encodeEvents(events)}
}

// renderUnit emits the objects of a view's list. The objects of its account come with the primary
// list, or with none.
func (e *Views) renderUnit(t *Scratch, v *View, emit Emitter) {
	switch {
	case e.Config.EFP():
		if v.isPrimary() {
			e.RenderUser(t, v, emit)
		}
		if v.Token != "" {
			e.RenderListEFP(t, v, emit)
		}
	case v.Token != "":
		e.RenderList(t, v, emit)
	case v.Name != "":
		EmitText(emit, site.EmptySearch, e.Config.UserKey(v.Name))
	}
}

// RenderList emits the objects of a list under the API spec. A primary list includes those of its
// account.
func (e *Views) RenderList(t *Scratch, v *View, emit Emitter) {
	all := v.Records
	t.follows = t.follows[:0]
	size := ObjectBytes
	if t.Only.Wants(site.Records, site.SearchFollowing) {
		size += recordsSize(all)
		t.follows = appendFollows(t.follows, all)
	}
	key := func(object site.ListObject) site.Key { return e.Config.ListKey(v.Token, object) }
	emit(size, func(b []byte) []byte { return appendRecords(b, all) }, key(site.Records))
	emit(ObjectBytes+len(v.Account.Profile.ENS), v.Account.appendDetails, key(site.Details))
	emit(ObjectBytes+e.events.size(v.Badges), func(b []byte) []byte {
		return v.appendBadges(b, e.Config.BadgesField, e.events)
	}, key(site.Badges))

	t.keys = append(t.keys[:0], key(site.SearchFollowing))
	if v.isPrimary() {
		t.keys = append(t.keys, e.Config.UserKey(v.User))
		if v.Name != "" {
			t.keys = append(t.keys, e.Config.UserKey(v.Name))
		}
	}
	emit(ObjectBytes+entriesSize(all, firstPage(t.follows)), func(b []byte) []byte { return appendFollowing(b, all, t.follows) }, t.keys...)
	if t.Only.Object == "" { // else EmitShard renders the selected one
		for n := range SearchShards(len(t.follows)) {
			from := n * site.SearchShardSize
			emitFollows(v, len(t.follows), n, t.follows[from:min(from+site.SearchShardSize, len(t.follows))], emit)
		}
	}
}

// EmitShard emits the n-th search shard of a list with total follows. The view has only the records of the shard.
func EmitShard(t *Scratch, v *View, total, n int, emit Emitter) {
	t.follows = appendFollows(t.follows[:0], v.Records)
	emitFollows(v, total, n, t.follows, emit)
}

// emitFollows emits the n-th search shard of a list with total follows. follows are those in the
// shard.
func emitFollows(v *View, total, n int, follows []uint32, emit Emitter) {
	emit(ObjectBytes+entriesSize(v.Records, follows), func(b []byte) []byte {
		return appendShard(b, v.Token, total, n, v.Records, follows)
	}, site.SearchShardKey(v.Token, n))
}

// EmitBoard emits a leaderboard with one of its limits.
func (e *Views) EmitBoard(t *Scratch, board site.Board, limit int, leaders []Leader, emit Emitter) {
	t.keys = append(t.keys[:0], site.LeaderboardLimitKey(board, limit))
	if limit == site.DefaultLimit {
		t.keys = append(t.keys, e.Config.LeaderboardKey(board))
	}
	emit(UserBytes*limit, func(b []byte) []byte { return appendLeaderboard(b, board, leaders) }, t.keys...)
}

// RenderUnknown renders the objects of an address unknown to the graph.
func (e *Views) RenderUnknown(t *Scratch, emit Emitter) {
	v := View{Account: &Account{Profile: emptyProfile}, User: site.UnknownAddress, unknown: true, Records: unitRecords(nil)}
	e.RenderUser(t, &v, emit)
}

func (e *Views) userKeys(t *Scratch, v *View, object site.ListObject) []site.Key {
	if v.unknown {
		return append(t.keys[:0], site.UnknownKey(object))
	}
	t.keys = append(t.keys[:0], e.Config.UserObjectKey(v.User, object))
	if v.Name != "" && e.Config.Names != site.NamesLookup {
		t.keys = append(t.keys, e.Config.UserObjectKey(v.Name, object))
	}
	return t.keys
}

// RenderUser emits the objects of an account, some of which its lists share. The list of the view
// is the primary one, or none.
func (e *Views) RenderUser(t *Scratch, v *View, emit Emitter) {
	a := v.Account
	ens := len(a.Profile.ENS)

	emit(ObjectBytes+ens, func(b []byte) []byte { return append(a.appendAccount(b), '}') }, e.userKeys(t, v, site.Account)...)
	e.emitToLists(t, v, site.Details, emit, ObjectBytes+ens, a.appendDetails)
	e.emitToLists(t, v, site.Badges, emit, ObjectBytes+e.events.size(v.Badges), func(b []byte) []byte {
		return v.appendBadges(b, e.Config.BadgesField, e.events)
	})
	emit(ObjectBytes+32*len(v.Tokens), v.appendLists, e.userKeys(t, v, site.Lists)...)

	if t.Only.WantsPages() && t.Only.WantsList(v.Token) {
		e.renderPages(t, v, emit, func(object site.ListObject) []site.Key {
			keys := e.userKeys(t, v, object)
			if object == site.SearchFollowing && v.Token == "" {
				keys = keys[1:] // an address without a primary list has no such object
			} else if v.Token != "" {
				keys = append(keys, e.Config.ListKey(v.Token, object))
			}
			t.keys = keys
			return keys
		})
	}
	if t.Only.Wants(site.Tags) && t.Only.WantsList("") {
		t.countListTags(v)
		emit(t.tagsSize(), func(b []byte) []byte { return t.appendListTags(appendAddressHead(b, v.User), v) }, e.userKeys(t, v, site.Tags)...)
	}
	if t.Only.Wants(site.TaggedAs) {
		t.countTaggedAs(v)
		emit(t.tagsSize(), func(b []byte) []byte { return t.appendTaggedAs(appendAddressHead(b, v.User), v) }, e.userKeys(t, v, site.TaggedAs)...)
		for _, token := range v.Tokens {
			emit(t.tagsSize(), func(b []byte) []byte { return t.appendTaggedAs(appendTokenHead(b, token), v) },
				e.Config.ListKey(token, site.TaggedAs))
		}
	}
}

// emitToLists emits an object that a user and all its lists have.
func (e *Views) emitToLists(t *Scratch, v *View, object site.ListObject, emit Emitter, size int, render func([]byte) []byte) {
	if !t.Only.Wants(object) {
		return
	}
	keys := e.userKeys(t, v, object)
	for _, token := range v.Tokens {
		if len(keys) == keysPerEmit {
			emit(size, render, keys...)
			keys = keys[:0]
		}
		keys = append(keys, e.Config.ListKey(token, object))
	}
	emit(size, render, keys...)
	t.keys = keys
}

// renderPages emits the objects that users and lists have in common. The list of a user is the
// primary one, or none.
func (e *Views) renderPages(t *Scratch, v *View, emit Emitter, keys func(site.ListObject) []site.Key) {
	all := v.Records
	t.follows = appendFollows(t.follows[:0], all)
	emit(ObjectBytes, func(b []byte) []byte {
		return appendFollowCounts(b, v.Account.Counts[rules.Followers], len(t.follows))
	}, keys(site.Stats)...)
	emit(ObjectBytes+followingSize(all, t.follows), func(b []byte) []byte { return appendFollowingPage(b, all, t.follows) }, keys(site.PageFollowing)...)
	page := t.followers(v)
	emit(ObjectBytes+followersSize(page), func(b []byte) []byte { return appendFollowersPage(b, page) }, keys(site.PageFollowers)...)
	if keys := keys(site.SearchFollowing); len(keys) > 0 {
		emit(ObjectBytes+entriesSize(all, firstPage(t.follows)), func(b []byte) []byte { return appendSearchFollowing(b, all, t.follows) }, keys...)
	}
}

// RenderListEFP emits the objects of a list under the API efp that are not its account's.
func (e *Views) RenderListEFP(t *Scratch, v *View, emit Emitter) {
	key := func(object site.ListObject) []site.Key {
		t.keys = append(t.keys[:0], e.Config.ListKey(v.Token, object))
		return t.keys
	}
	if t.Only.Wants(site.Records) {
		emit(ObjectBytes+recordsSize(v.Records), func(b []byte) []byte { return appendRecords(b, v.Records) }, key(site.Records)...)
	}
	emit(ObjectBytes+len(v.Account.Profile.ENS), v.appendListAccount, key(site.Account)...)
	if !v.isPrimary() && t.Only.WantsPages() {
		e.renderPages(t, v, emit, key)
	}
	if t.Only.Wants(site.Tags) {
		t.countListTags(v)
		emit(t.tagsSize(), func(b []byte) []byte { return t.appendListTags(appendTokenHead(b, v.Token), v) }, key(site.Tags)...)
	}
	if t.Only.Wants(ShardObject) {
		renderListShards(t, v, emit)
	}
}

// EmitRanked emits the answer to /leaderboard/ranked without parameters. account returns the i-th of
// n accounts of the board.
func (e *Views) EmitRanked(lastUpdated string, n int, account func(i int) *Account, emit Emitter) {
	n = min(n, site.RankedLimit, e.Config.LeaderboardMax)
	emit(ObjectBytes+UserBytes*n, func(b []byte) []byte { return appendRanked(b, lastUpdated, n, account) }, e.Config.RankedKey())
}

// EmitSummaries emits the objects that show summaries.
func (e *Views) EmitSummaries(s *Summaries, emit Emitter) {
	emit(ObjectBytes, s.appendCount, e.Config.CountKey())
	emit(ObjectBytes, s.appendStats, e.Config.StatsKey())
	for _, page := range []struct {
		limit int
		key   site.Key
	}{{site.DiscoverMax, site.DiscoverShardKey}, {site.DefaultLimit, e.Config.DiscoverKey()}} {
		emit(ObjectBytes+UserBytes*page.limit, func(b []byte) []byte { return s.appendDiscover(b, page.limit) }, page.key)
	}
}
