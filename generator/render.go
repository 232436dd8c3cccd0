package generator

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sort"

	"golang.org/x/sync/semaphore"

	"github.com/followpress/followpress/inorder"
	"github.com/followpress/followpress/site"
)

// Limits of a chunk, the part of a site that one worker renders at a time: a few hundred small
// objects, or those of one long list.
const (
	unitsPerChunk   = 64
	recordsPerChunk = 4096
)

// A renderer renders the objects of a site from a graph. It is immutable: any part of the site can be
// rendered at any time, from any goroutine, with the same result.
type renderer struct {
	graph  *graph
	ranks  *ranks
	config site.Config
	events eventTexts

	efp     *efpRenderer     // nil unless the API is efp
	explore *exploreRenderer // nil without the explorer

	bucketDigits  int
	tokenDigits   int       // of buckets of lists; 0 unless the API is efp
	addresses     partition // accounts with a primary list by bucket
	names         partition // indexes of graph.names by bucket
	listlessNames []string  // names of accounts without a primary list
	parts         []part
}

// A part is a kind of units, such as lists. Each unit has some objects.
type part struct {
	units   int
	records func(unit int) int // number of records of a unit; nil if units have none
	render  unitRenderer
}

// A unitRenderer renders a unit of a part. Under a selection it may leave out other objects.
type unitRenderer func(unit int, t *scratch, emit emitter)

// A scratch is memory that the units of a chunk reuse.
type scratch struct {
	only    selection
	follows []record
	keys    []site.Key
	efpScratch
}

// An emitter receives an object: its estimated size in bytes, a function that appends its body to a
// buffer, and its keys, if several objects have the same body.
type emitter func(size int, render func(b []byte) []byte, keys ...site.Key)

func newRenderer(ctx context.Context, g *graph, r *ranks, config site.Config, workers int) (*renderer, error) {
	s := &renderer{graph: g, ranks: r, config: config, events: encodeEvents(g.events)}
	problems := part{len(config.Problems()), nil, s.renderProblem}
	boards := part{len(config.Boards()) * config.LeaderboardMax, nil, s.renderBoard}
	if config.EFP() {
		e, err := newEFPRenderer(ctx, g, r, config, workers)
		if err != nil {
			return nil, err
		}
		s.efp, s.bucketDigits, s.tokenDigits = e, e.addressBuckets.digits, e.listBuckets.digits
		s.parts = append(append([]part{problems}, e.parts()...), boards)
		s.addExplorer()
		return s, nil
	}
	for _, n := range g.names {
		if g.primary[n.account] == none {
			s.listlessNames = append(s.listlessNames, n.name)
		}
	}
	if err := s.fillBuckets(ctx, workers); err != nil {
		return nil, err
	}
	s.parts = []part{
		problems,
		{len(g.tokens), func(list int) int { return g.length(uint32(list)) }, s.renderList},
		{len(s.listlessNames), nil, s.renderEmptySearch},
		{len(s.addresses.names), nil, s.renderBucket},
		boards,
	}
	s.addExplorer()
	return s, nil
}

// addExplorer adds the part with the explorer, if the site has it. It comes first: one of its objects takes
// a while, and no worker should wait for it at the end.
func (s *renderer) addExplorer() {
	if s.config.Explorer {
		s.explore = newExploreRenderer(s.graph, s.ranks)
		s.parts = slices.Insert(s.parts, 0, s.explore.part())
	}
}

// fillBuckets sorts the users into buckets. Users are addresses with a primary list, and names.
func (s *renderer) fillBuckets(ctx context.Context, workers int) (err error) {
	g := s.graph
	var accounts []uint32
	for account, primary := range g.primary {
		if primary != none {
			accounts = append(accounts, uint32(account))
		}
	}
	s.bucketDigits = s.config.BucketDigits(len(accounts) + len(g.names))
	s.addresses, err = newPartition(ctx, workers, s.bucketDigits, accounts, func(account uint32) string { return g.accounts[account].String() })
	if err != nil {
		return err
	}
	names := make([]uint32, len(g.names))
	for i := range names {
		names[i] = uint32(i)
	}
	s.names, err = newPartition(ctx, workers, s.bucketDigits, names, func(name uint32) string { return g.names[name].name })
	return err
}

// usersIn returns the users of a bucket, sorted.
func (s *renderer) usersIn(bucket int) (users []string) {
	for _, account := range s.addresses.in(bucket) {
		users = append(users, s.graph.accounts[account].String())
	}
	for _, name := range s.names.in(bucket) {
		users = append(users, s.graph.names[name].name)
	}
	slices.Sort(users)
	return users
}

// tokenOf returns the token ID of the primary list of a user, or "".
func (s *renderer) tokenOf(user string) string {
	g := s.graph
	var account uint32
	if address, err := site.ParseAddress(user); err == nil {
		account, _ = g.numbers.find(address)
	} else {
		i := sort.Search(len(g.names), func(i int) bool { return g.names[i].name >= user })
		account = g.names[i].account
	}
	if primary := g.primary[account]; primary != none {
		return g.tokens[primary]
	}
	return ""
}

func (s *renderer) renderProblem(unit int, _ *scratch, emit emitter) {
	p := s.config.Problems()[unit]
	emitText(emit, p.Body(), p.Key())
}

// emitText emits an object with a known body.
func emitText[T string | []byte](emit emitter, text T, keys ...site.Key) {
	emit(len(text), func(b []byte) []byte { return append(b, text...) }, keys...)
}

// renderList emits the objects of a list. A primary list includes those of its account.
func (s *renderer) renderList(unit int, t *scratch, emit emitter) {
	g, list := s.graph, uint32(unit)
	token, account := g.tokens[list], g.owners[list]
	t.follows = t.follows[:0]
	size := 0
	if t.only.wants(site.Records, site.SearchFollowing) {
		for _, r := range g.recordsOf(list).all() {
			size += g.recordSize(r)
			if g.isFollow(r) {
				t.follows = append(t.follows, r)
			}
		}
	}
	emit(objectBytes+size, func(b []byte) []byte { return g.appendRecords(b, list) }, s.config.ListKey(token, site.Records))
	emit(objectBytes+len(g.profile(account).ens), func(b []byte) []byte { return g.appendDetails(b, s.ranks, account) }, s.config.ListKey(token, site.Details))
	emit(objectBytes+s.events.size(g.badgesOf(account)), func(b []byte) []byte {
		return g.appendBadges(b, s.config.BadgesField, s.events, account)
	}, s.config.ListKey(token, site.Badges))

	t.keys = append(t.keys[:0], s.config.ListKey(token, site.SearchFollowing))
	if g.isPrimary(list) {
		t.keys = append(t.keys, s.config.UserKey(g.accounts[account].String()))
		if name := g.profiles.name(account); len(name) > 0 {
			t.keys = append(t.keys, s.config.UserKey(string(name)))
		}
	}
	emit(objectBytes+g.entriesSize(firstPage(t.follows)), func(b []byte) []byte { return g.appendFollowing(b, t.follows) }, t.keys...)
	if t.only.object == "" { // else renderShard renders the one that is selected
		for n := range searchShards(len(t.follows)) {
			s.emitShard(list, len(t.follows), n, window(t.follows, n, site.SearchShardSize), emit)
		}
	}
}

// emitShard emits the n-th search shard of a list with that many follows: those in the shard.
func (s *renderer) emitShard(list uint32, total, n int, follows []record, emit emitter) {
	emit(objectBytes+s.graph.entriesSize(follows), func(b []byte) []byte {
		return s.graph.appendShard(b, list, total, n, follows)
	}, site.SearchShardKey(s.graph.tokens[list], n))
}

// renderShard emits the selected search shard of a list.
func (s *renderer) renderShard(unit int, t *scratch, emit emitter) {
	g, list := s.graph, uint32(unit)
	all := g.recordsOf(list)
	c := t.only.cuts.of(cutTable{number: list}, all.len(), func(i int) (isRow, isFollow bool) {
		isFollow = g.isFollow(all.at(i))
		return isFollow, isFollow
	})
	n := t.only.shard
	if !t.only.wantsOneOf(searchShards(c.rows)) {
		return
	}
	t.follows = t.follows[:0]
	shard := all.part(uint64(c.starts[n]), uint64(c.starts[n+1]))
	for _, r := range shard.all() {
		if g.isFollow(r) {
			t.follows = append(t.follows, r)
		}
	}
	s.emitShard(list, c.rows, n, t.follows, emit)
}

func (s *renderer) renderEmptySearch(unit int, _ *scratch, emit emitter) {
	emitText(emit, site.EmptySearch, s.config.UserKey(s.listlessNames[unit]))
}

func (s *renderer) renderBucket(unit int, _ *scratch, emit emitter) {
	bucket, users := s.addresses.names[unit], s.usersIn(unit)
	emit(userBytes*len(users), func(b []byte) []byte {
		return site.AppendUserBucket(b, bucket, users, s.tokenOf)
	}, site.UserBucketKey(bucket))
}

// renderBoard emits a leaderboard with one of its limits.
func (s *renderer) renderBoard(unit int, t *scratch, emit emitter) {
	board, limit := s.config.Boards()[unit/s.config.LeaderboardMax], 1+unit%s.config.LeaderboardMax
	t.keys = append(t.keys[:0], site.LeaderboardLimitKey(board, limit))
	if limit == site.DefaultLimit {
		t.keys = append(t.keys, s.config.LeaderboardKey(board))
	}
	emit(userBytes*limit, func(b []byte) []byte { return s.graph.appendLeaderboard(b, s.ranks, board, limit) }, t.keys...)
}

// nameCopies are the names that are parts of keys.
func (s *renderer) nameCopies() []lookupName {
	if s.config.Names == site.NamesLookup {
		return nil
	}
	return s.graph.names
}

// objects is the number of objects of the site, without manifest and root.
func (s *renderer) objects() int64 {
	g := s.graph
	n := len(s.config.Problems()) + len(s.config.Boards())*(1+s.config.LeaderboardMax)
	if s.explore != nil {
		n += s.explore.part().units
	}
	if s.efp != nil {
		return int64(n) + s.efp.objects()
	}
	n += 4*len(g.tokens) + len(g.names) + len(s.addresses.names)
	for list := range g.tokens {
		if g.isPrimary(uint32(list)) {
			n++
		}
		n += searchShards(g.countFollows(uint32(list)))
	}
	return int64(n)
}

// A chunk is a range of units of one part.
type chunk struct {
	part     part
	from, to int
	before   int // units of the parts before
}

func (s *renderer) chunks() iter.Seq2[chunk, error] {
	return func(yield func(chunk, error) bool) {
		before := 0
		for _, p := range s.parts {
			for from := 0; from < p.units; {
				c := chunk{p, from, p.end(from), before}
				if !yield(c, nil) {
					return
				}
				from = c.to
			}
			before += p.units
		}
	}
}

// end returns the end of the chunk that begins with a unit.
func (p *part) end(from int) int {
	to := from
	for records := 0; to < min(from+unitsPerChunk, p.units) && records < recordsPerChunk; to++ {
		if p.records != nil {
			records += p.records(to)
		}
	}
	return to
}

// A batch receives objects of one chunk. Different batches are filled concurrently.
type batch interface {
	put(entry site.Entry, body []byte) error
}

// An output receives rendered objects.
type output interface {
	// begin returns a new batch. It is called from many goroutines.
	begin() batch
	// finish writes a batch. It is called in the order of the site, never concurrently.
	finish(batch) error
}

// discard is an output that keeps nothing.
type discard struct{}

func (discard) begin() batch                 { return discard{} }
func (discard) finish(batch) error           { return nil }
func (discard) put(site.Entry, []byte) error { return nil }

// render renders every object into out, and adds their entries to all, unless that is nil.
func (s *renderer) render(ctx context.Context, workers int, out output, all *entryStore, progress Progress) error {
	budget := semaphore.NewWeighted(int64(workers) * budgetPerWorker)
	rendered := int64(0)
	err := inorder.Do(ctx, workers, s.chunks(),
		func(c chunk, t *inorder.Ticket[piece]) (piece, error) {
			p := newChunkWriter(out, t, all, budget)
			var s scratch
			for unit := c.from; unit < c.to && p.err == nil; unit++ {
				p.unit = uint32(c.before + unit)
				c.part.render(unit, &s, p.emit)
			}
			return p.last()
		},
		func(p piece) error {
			rendered += p.objects
			progress.AddBytes(p.objects, p.rendered)
			defer budget.Release(p.budget)
			return out.finish(p.batch)
		})
	if err != nil {
		return err
	}
	if rendered != s.objects() {
		return fmt.Errorf("rendered %d objects instead of %d: this is a bug", rendered, s.objects())
	}
	return nil
}
