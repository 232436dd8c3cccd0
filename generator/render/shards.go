package render

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// addressMember names the held account in objects of its holders.
const addressMember = "address"

// renderFollowerShards emits the rows of the holders of an account, if they are not in its bucket.
func (e *efpRenderer) renderFollowerShards(t *Scratch, account uint32, address string, emit Emitter) {
	holders, states := e.holdersOf(account), e.statesOf(account)
	if rowObjects(len(holders)) == 0 {
		return
	}
	isFollow := func(i int) bool { return holders[i].follows() }
	var before []int
	if t.only.wantsOneOf(shardCount(len(holders))) {
		before = t.only.cuts.get(cutTable{ofHolders: true, number: account}, len(holders), func(i int) (bool, bool) {
			return true, isFollow(i)
		}).before
	}
	renderTable(t, rowTable{
		member: addressMember, owner: address, rows: len(holders), before: before, isFollow: isFollow,
		ahead:     func(from, to int) { e.aheadOf(t, holders[from:to]) },
		size:      func(i int) int { return e.followerRowSize(holders[i]) },
		render:    func(b []byte, i int) []byte { return e.appendFollowerRow(b, holders[i], states[i]) },
		followers: func(i int) uint32 { return e.ranks.Count[rules.Followers][e.Owners[holders[i].list]] },
		address:   func(i int) site.Address { return e.Accounts[e.Owners[holders[i].list]] },
	}, emit, func(n int) site.Key { return site.FollowerShardKey(address, n) }, func() site.Key { return site.FollowerHeadKey(address) })
}

func (e *efpRenderer) followerRowSize(h holder) int {
	return followerRowBytes + len(e.Tokens[h.list]) + len(e.TagSets[e.recordOf(h).Tags].json) + int(e.profileEnds[e.Owners[h.list]].header)
}

// appendFollowerRow appends the row of a holder.
func (e *efpRenderer) appendFollowerRow(b []byte, h holder, s rules.State) []byte {
	account := e.Owners[h.list]
	name, avatar, header := textsOf(e.profile(account), e.profileEnds[account])
	b = append(appendFollower(b, e.Tokens[h.list], e.Accounts[account]), e.TagSets[e.recordOf(h).Tags].json...)
	b = appendState(b, s, e.addedAt(h), e.ranks.Count[rules.Followers][account])
	return appendMutualsRank(appendTexts(b, name, avatar, header), e.ranks.Shown[rules.Mutuals][account])
}

func (e *efpRenderer) renderUserBucket(bucket int, t *Scratch, emit Emitter) {
	names, accounts := e.nameBuckets.in(bucket), e.addressBuckets.in(bucket)
	size := objectBytes
	for _, n := range names {
		size += len(e.Names[n].Name) + 2*userBytes
	}
	t.holders = t.holders[:0]
	for _, account := range accounts {
		if holders := e.holdersOf(account); len(holders) <= site.PackedRows {
			t.holders = append(t.holders, holders...)
		}
	}
	e.aheadOf(t, t.holders)
	for _, account := range accounts {
		size += 2 * userBytes
		if holders := e.holdersOf(account); len(holders) <= site.PackedRows {
			for _, h := range holders {
				size += e.followerRowSize(h)
			}
		}
	}
	name := e.addressBuckets.names[bucket]
	emit(size, func(b []byte) []byte {
		b = appendBucket(b, name, "names")
		for _, n := range names {
			found := e.Names[n]
			b = rawjson.AppendString(b, found.Name)
			b = append(b, `:["`...)
			b = e.Accounts[found.Account].Append(b)
			b = append(b, `",`...)
			b = append(e.appendSizes(b, found.Account), "],"...)
		}
		b = append(withoutComma(b), `},"accounts":{`...)
		for _, account := range accounts {
			b = append(b, '"')
			b = e.Accounts[account].Append(b)
			b = append(b, `":[`...)
			b = append(e.appendSizes(b, account), ",["...)
			if holders, states := e.holdersOf(account), e.statesOf(account); len(holders) <= site.PackedRows {
				for i, h := range holders {
					b = append(e.appendFollowerRow(b, h, states[i]), ',')
				}
			}
			b = append(withoutComma(b), "]],"...)
		}
		return append(withoutComma(b), "}}"...)
	}, site.UserBucketKey(name))
}

// appendSizes is AppendSizes for an account of the graph.
func (e *efpRenderer) appendSizes(b []byte, account uint32) []byte {
	token, held := "", uint32(0)
	if primary := e.Primary[account]; primary != None {
		token, held = e.Tokens[primary], e.held[primary]
	}
	return AppendSizes(b, token, int(held), len(e.holdersOf(account)))
}

// AppendSizes appends the primary list of an account, "" for none, the number of accounts that it
// holds, and the number of primary lists that hold the account.
func AppendSizes(b []byte, primary string, held, holders int) []byte {
	b = append(append(b, '"'), primary...)
	b = strconv.AppendInt(append(b, `",`...), int64(held), 10)
	return strconv.AppendInt(append(b, ','), int64(holders), 10)
}

func (e *efpRenderer) renderTokenBucket(bucket int, _ *Scratch, emit Emitter) {
	lists := e.listBuckets.in(bucket)
	all := &graphRecords{Graph: e.Graph, ranks: e.ranks, ends: e.profileEnds}
	size := objectBytes
	for _, list := range lists {
		size += userBytes + len(e.Tokens[list])
		if e.held[list] <= site.PackedRows {
			all.all = e.RecordsOf(list)
			all.ahead(0, all.Len())
			for i := range all.Len() {
				if all.state(i) != 0 {
					size += recordRowSize(all, i)
				}
			}
		}
	}
	name := e.listBuckets.names[bucket]
	emit(size, func(b []byte) []byte {
		b = appendBucket(b, name, "lists")
		for _, list := range lists {
			account := e.Owners[list]
			all.all = e.RecordsOf(list)
			b = appendListEntry(b, e.Tokens[list], e.Accounts[account], e.isPrimary(list), int(e.held[list]), len(e.holdersOf(account)), all)
			b = append(b, ',')
		}
		return append(withoutComma(b), "}}"...)
	}, site.TokenBucketKey(name))
}

// appendListEntry appends the entry of a list in its bucket. held is the number of accounts that it
// holds, holders the number of primary lists that hold its account.
func appendListEntry(b []byte, token string, account site.Address, primary bool, held, holders int, all records) []byte {
	b = append(append(b, '"'), token...)
	b = account.Append(append(b, `":["`...))
	b = strconv.AppendBool(append(b, `",`...), primary)
	b = strconv.AppendInt(append(b, ','), int64(held), 10)
	b = strconv.AppendInt(append(b, ','), int64(holders), 10)
	b = append(b, ",["...)
	if held <= site.PackedRows {
		var rows [site.PackedRows]int
		n := 0
		for i := range all.Len() {
			if all.state(i) != 0 {
				rows[n] = i
				n++
			}
		}
		var large [site.PackedRows]uint32
		followers := newRounding(large[:], n, func(row int) uint32 { return all.followers(rows[row]) })
		for _, i := range rows[:n] {
			b = append(appendRecordRow(b, all, i, &followers), ',')
		}
	}
	return append(withoutComma(b), "]]"...)
}

func (e *efpRenderer) renderRankedShard(n int, _ *Scratch, emit Emitter) {
	accounts := window(e.boards.accounts, n, site.SearchShardSize)
	size := objectBytes
	for _, account := range accounts {
		size += rankedRowBytes + int(e.profileEnds[account].header)
	}
	emit(size, func(b []byte) []byte {
		b = appendShardHead(append(b, '{'), len(e.boards.accounts), n, e.boards.shards(), site.SearchShardSize)
		for _, account := range accounts {
			a := e.shown(account)
			b = append(AppendRankedRow(b, &a), ',')
		}
		return append(withoutComma(b), "]}"...)
	}, site.RankedShardKey(n))
}

// renderRankedOrder emits a shard of the places of ranked accounts in another order.
func (e *efpRenderer) renderRankedOrder(unit int, _ *Scratch, emit Emitter) {
	shards := e.boards.orderShards()
	sort, n := unit/shards, unit%shards
	places := window(e.boards.orders[sort], n, site.RankedOrderSize)
	emit(objectBytes+len("1000000,")*len(places), func(b []byte) []byte {
		b = appendShardHead(append(b, '{'), len(e.boards.accounts), n, shards, site.RankedOrderSize)
		return append(appendPlaces(b, places), "]}"...)
	}, site.RankedOrderKey(site.RankedSorts()[sort], n))
}

func (e *efpRenderer) renderRecommendedShard(n int, _ *Scratch, emit Emitter) {
	rows := window(e.Recommended, n, site.SearchShardSize)
	size := objectBytes
	for _, r := range rows {
		size += rankedRowBytes + len(r.Class) + 2*tokenBytes
		if account, ok := e.Numbers.Find(r.Address); ok {
			size += len(e.profile(account).ENS)
		}
	}
	emit(size, func(b []byte) []byte {
		b = appendShardHead(append(b, '{'), len(e.Recommended), n, shardCount(len(e.Recommended)), site.SearchShardSize)
		for _, r := range rows {
			var known *Account
			if account, ok := e.Numbers.Find(r.Address); ok {
				a := e.shown(account)
				known = &a
			}
			b = append(AppendRecommended(b, r.Address, r.Class, known), ',')
		}
		return append(withoutComma(b), "]}"...)
	}, site.RecommendedShardKey(n))
}

// aheadOf reads the data that rows show of holders.
func (e *efpRenderer) aheadOf(t *Scratch, holders []holder) {
	for some := range slices.Chunk(holders, aheadRows) {
		owners, sum := e.touchHolders(some)
		mutuals := e.ranks.Shown[rules.Mutuals]
		for _, owner := range owners[:len(some)] {
			sum += mutuals[owner]
		}
		t.read += sum + e.touch(e.ranks, e.profileEnds, true, owners[:len(some)])
	}
}

// aheadOfFollowers reads the data that pages show of holders.
func (e *efpRenderer) aheadOfFollowers(t *Scratch, holders []holder) {
	for some := range slices.Chunk(holders, aheadRows) {
		owners, sum := e.touchHolders(some)
		for _, owner := range owners[:len(some)] {
			sum += uint32(e.Accounts[owner][0])
		}
		t.read += sum
	}
}

// touchHolders reads the lists and records of at most aheadRows holders, and returns the accounts
// of the lists.
func (e *efpRenderer) touchHolders(holders []holder) (owners [aheadRows]uint32, sum uint32) {
	var records [aheadRows]uint64
	for i, h := range holders {
		owners[i] = e.Owners[h.list]
		records[i] = e.Offsets[h.list] + uint64(h.at())
	}
	for i, h := range holders {
		sum += uint32(e.Tokens[h.list][0]) + uint32(e.Added[records[i]]) + e.Records.Form(int(records[i]))
	}
	return owners, sum
}

// AppendUserBucket appends the object that maps the users of a bucket to their primary lists. users
// must be sorted; tokenID returns the list of each, "" for none.
func AppendUserBucket(b []byte, bucket string, users []string, tokenID func(user string) string) []byte {
	b = appendBucket(b, bucket, "users")
	for _, user := range users {
		b = rawjson.AppendString(b, user)
		b = append(b, `:"`...)
		b = append(b, tokenID(user)...)
		b = append(b, `",`...)
	}
	return append(withoutComma(b), "}}"...)
}

// appendBucket appends the beginning of a bucket, up to the first entry of its first member.
func appendBucket(b []byte, name, member string) []byte {
	return fmt.Appendf(b, `{"bucket":"%s","%s":{`, name, member)
}
