package render

import (
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// keysPerEmit bounds the keys emitted with one body at a time: an account may have any number of
// lists, and an output keeps a copy of the body for each.
const keysPerEmit = 64

// A viewRenderer renders views, and objects that depend on the configuration only.
type viewRenderer struct {
	config site.Config
	events eventTexts
}

// renderUnit emits the objects of a view's list. The objects of its account come with the primary
// list, or with none.
func (e *viewRenderer) renderUnit(t *Scratch, v *view, emit Emitter) {
	switch {
	case e.config.EFP():
		if v.isPrimary() {
			e.renderUser(t, v, emit)
		}
		if v.token != "" {
			e.renderListEFP(t, v, emit)
		}
	case v.token != "":
		e.renderList(t, v, emit)
	case v.name != "":
		emitText(emit, site.EmptySearch, e.config.UserKey(v.name))
	}
}

// renderList emits the objects of a list under the API spec. A primary list includes those of its
// account.
func (e *viewRenderer) renderList(t *Scratch, v *view, emit Emitter) {
	all := v.records
	t.follows = t.follows[:0]
	size := objectBytes
	if t.only.wants(site.Records, site.SearchFollowing) {
		size += recordsSize(all)
		t.follows = appendFollows(t.follows, all)
	}
	key := func(object site.ListObject) site.Key { return e.config.ListKey(v.token, object) }
	emit(size, func(b []byte) []byte { return appendRecords(b, all) }, key(site.Records))
	emit(objectBytes+len(v.account.Profile.ENS), v.account.appendDetails, key(site.Details))
	emit(objectBytes+e.events.size(v.badges), func(b []byte) []byte {
		return v.appendBadges(b, e.config.BadgesField, e.events)
	}, key(site.Badges))

	t.keys = append(t.keys[:0], key(site.SearchFollowing))
	if v.isPrimary() {
		t.keys = append(t.keys, e.config.UserKey(v.user))
		if v.name != "" {
			t.keys = append(t.keys, e.config.UserKey(v.name))
		}
	}
	emit(objectBytes+entriesSize(all, firstPage(t.follows)), func(b []byte) []byte { return appendFollowing(b, all, t.follows) }, t.keys...)
	if t.only.object == "" { // else renderShard renders the selected one
		for n := range searchShards(len(t.follows)) {
			emitShard(v, len(t.follows), n, window(t.follows, n, site.SearchShardSize), emit)
		}
	}
}

// emitShard emits the n-th search shard of a list with total follows. follows are those in the
// shard.
func emitShard(v *view, total, n int, follows []uint32, emit Emitter) {
	emit(objectBytes+entriesSize(v.records, follows), func(b []byte) []byte {
		return appendShard(b, v.token, total, n, v.records, follows)
	}, site.SearchShardKey(v.token, n))
}

// emitBoard emits a leaderboard with one of its limits.
func (e *viewRenderer) emitBoard(t *Scratch, board site.Board, limit int, leaders []Leader, emit Emitter) {
	t.keys = append(t.keys[:0], site.LeaderboardLimitKey(board, limit))
	if limit == site.DefaultLimit {
		t.keys = append(t.keys, e.config.LeaderboardKey(board))
	}
	emit(userBytes*limit, func(b []byte) []byte { return appendLeaderboard(b, board, leaders) }, t.keys...)
}

// renderUnknown renders the objects of an address unknown to the graph.
func (e *viewRenderer) renderUnknown(t *Scratch, emit Emitter) {
	v := view{account: &Account{Profile: emptyProfile}, user: site.UnknownAddress, unknown: true, records: unitRecords(nil)}
	e.renderUser(t, &v, emit)
}

func (e *viewRenderer) userKeys(t *Scratch, v *view, object site.ListObject) []site.Key {
	if v.unknown {
		return append(t.keys[:0], site.UnknownKey(object))
	}
	t.keys = append(t.keys[:0], e.config.UserObjectKey(v.user, object))
	if v.name != "" && e.config.Names != site.NamesLookup {
		t.keys = append(t.keys, e.config.UserObjectKey(v.name, object))
	}
	return t.keys
}

// renderUser emits the objects of an account, some of which its lists share. The list of the view
// is the primary one, or none.
func (e *viewRenderer) renderUser(t *Scratch, v *view, emit Emitter) {
	a := v.account
	ens := len(a.Profile.ENS)

	emit(objectBytes+ens, func(b []byte) []byte { return append(a.appendAccount(b), '}') }, e.userKeys(t, v, site.Account)...)
	e.emitToLists(t, v, site.Details, emit, objectBytes+ens, a.appendDetails)
	e.emitToLists(t, v, site.Badges, emit, objectBytes+e.events.size(v.badges), func(b []byte) []byte {
		return v.appendBadges(b, e.config.BadgesField, e.events)
	})
	emit(objectBytes+32*len(v.tokens), v.appendLists, e.userKeys(t, v, site.Lists)...)

	if t.only.wantsPages() && t.only.wantsList(v.token) {
		e.renderPages(t, v, emit, func(object site.ListObject) []site.Key {
			keys := e.userKeys(t, v, object)
			if object == site.SearchFollowing && v.token == "" {
				keys = keys[1:] // an address without a primary list has no such object
			} else if v.token != "" {
				keys = append(keys, e.config.ListKey(v.token, object))
			}
			t.keys = keys
			return keys
		})
	}
	if t.only.wants(site.Tags) && t.only.wantsList("") {
		t.countListTags(v)
		emit(t.tagsSize(), func(b []byte) []byte { return t.appendListTags(appendAddressHead(b, v.user), v) }, e.userKeys(t, v, site.Tags)...)
	}
	if t.only.wants(site.TaggedAs) {
		t.countTaggedAs(v)
		emit(t.tagsSize(), func(b []byte) []byte { return t.appendTaggedAs(appendAddressHead(b, v.user), v) }, e.userKeys(t, v, site.TaggedAs)...)
		for _, token := range v.tokens {
			emit(t.tagsSize(), func(b []byte) []byte { return t.appendTaggedAs(appendTokenHead(b, token), v) },
				e.config.ListKey(token, site.TaggedAs))
		}
	}
}

// emitToLists emits an object that a user and all its lists have.
func (e *viewRenderer) emitToLists(t *Scratch, v *view, object site.ListObject, emit Emitter, size int, render func([]byte) []byte) {
	if !t.only.wants(object) {
		return
	}
	keys := e.userKeys(t, v, object)
	for _, token := range v.tokens {
		if len(keys) == keysPerEmit {
			emit(size, render, keys...)
			keys = keys[:0]
		}
		keys = append(keys, e.config.ListKey(token, object))
	}
	emit(size, render, keys...)
	t.keys = keys
}

// renderPages emits the objects that users and lists have in common. The list of a user is the
// primary one, or none.
func (e *viewRenderer) renderPages(t *Scratch, v *view, emit Emitter, keys func(site.ListObject) []site.Key) {
	all := v.records
	t.follows = appendFollows(t.follows[:0], all)
	emit(objectBytes, func(b []byte) []byte {
		return appendFollowCounts(b, v.account.Counts[rules.Followers], len(t.follows))
	}, keys(site.Stats)...)
	emit(objectBytes+followingSize(all, t.follows), func(b []byte) []byte { return appendFollowingPage(b, all, t.follows) }, keys(site.PageFollowing)...)
	page := t.followers(v)
	emit(objectBytes+followersSize(page), func(b []byte) []byte { return appendFollowersPage(b, page) }, keys(site.PageFollowers)...)
	if keys := keys(site.SearchFollowing); len(keys) > 0 {
		emit(objectBytes+entriesSize(all, firstPage(t.follows)), func(b []byte) []byte { return appendSearchFollowing(b, all, t.follows) }, keys...)
	}
}

// followers returns the latest followers with their states in the list.
func (t *Scratch) followers(v *view) []Follower {
	if v.isPrimary() || len(v.page) == 0 {
		return v.page
	}
	t.page = append(t.page[:0], v.page...)
	for i := range t.page {
		t.page[i].State = 0
	}
	for i := range v.records.Len() {
		state := v.records.state(i)
		if state == 0 {
			continue
		}
		address := v.records.address(i)
		for j := range t.page {
			if t.page[j].Account == address {
				t.page[j].State = state
			}
		}
	}
	return t.page
}

// renderListEFP emits the objects of a list under the API efp that are not its account's.
func (e *viewRenderer) renderListEFP(t *Scratch, v *view, emit Emitter) {
	key := func(object site.ListObject) []site.Key {
		t.keys = append(t.keys[:0], e.config.ListKey(v.token, object))
		return t.keys
	}
	if t.only.wants(site.Records) {
		emit(objectBytes+recordsSize(v.records), func(b []byte) []byte { return appendRecords(b, v.records) }, key(site.Records)...)
	}
	emit(objectBytes+len(v.account.Profile.ENS), v.appendListAccount, key(site.Account)...)
	if !v.isPrimary() && t.only.wantsPages() {
		e.renderPages(t, v, emit, key)
	}
	if t.only.wants(site.Tags) {
		t.countListTags(v)
		emit(t.tagsSize(), func(b []byte) []byte { return t.appendListTags(appendTokenHead(b, v.token), v) }, key(site.Tags)...)
	}
	if t.only.wants(shardObject) {
		renderListShards(t, v, emit)
	}
}

func (e *viewRenderer) emitSummaries(s *Summaries, emit Emitter) {
	emit(objectBytes, s.appendCount, e.config.CountKey())
	emit(objectBytes, s.appendStats, e.config.StatsKey())
	for _, page := range []struct {
		limit int
		key   site.Key
	}{{site.DiscoverMax, site.DiscoverShardKey}, {site.DefaultLimit, e.config.DiscoverKey()}} {
		emit(objectBytes+userBytes*page.limit, func(b []byte) []byte { return s.appendDiscover(b, page.limit) }, page.key)
	}
}
