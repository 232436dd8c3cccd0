package generator

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sort"

	"github.com/followpress/followpress/site"
)

// unitsPerChunk is how much of a site one worker renders at a time: a few hundred
// small files.
const unitsPerChunk = 64

// A renderer renders the objects of a site from a graph. It is read only: any
// part of the site may be rendered at any time, on any goroutine, and gives the
// same bytes.
type renderer struct {
	graph  *graph
	ranks  *ranks
	config site.Config
	events []eventText

	bucketDigits int
	buckets      map[string][]string // users by bucket, sorted
	bucketNames  []string
	strangers    []string // names of accounts without a primary list
	parts        []part
}

// A part is a run of units, each of which emits some objects.
type part struct {
	units  int
	render func(unit int, s *scratch, emit emitter)
}

// A scratch is memory that the units of a chunk use one after the other.
type scratch struct {
	body    []byte
	follows []record
	keys    []site.Key
}

// An emitter takes objects. body is good until the emitter returns, and where
// several keys have one body they are emitted together.
type emitter func(body []byte, keys ...site.Key)

func newRenderer(g *graph, r *ranks, config site.Config) *renderer {
	s := &renderer{graph: g, ranks: r, config: config, events: encodeEvents(g.events)}
	for _, n := range g.names {
		if g.primary[n.account] == none {
			s.strangers = append(s.strangers, n.name)
		}
	}
	s.fillBuckets()
	s.parts = []part{
		{len(site.Problems()), s.renderProblem},
		{len(g.tokens), s.renderList},
		{len(s.strangers), s.renderStranger},
		{len(s.bucketNames), s.renderBucket},
		{len(site.Boards()) * config.LeaderboardMax, s.renderBoard},
	}
	return s
}

// fillBuckets sorts the users, addresses with a primary list and names, into buckets.
func (s *renderer) fillBuckets() {
	g := s.graph
	var users []string
	for account, primary := range g.primary {
		if primary != none {
			users = append(users, g.accounts[account].String())
		}
	}
	for _, n := range g.names {
		users = append(users, n.name)
	}
	slices.Sort(users)
	s.bucketDigits = site.BucketDigits(len(users))
	s.bucketNames = site.HashPrefixes(s.bucketDigits)
	s.buckets = make(map[string][]string, len(s.bucketNames))
	for _, user := range users {
		bucket := site.UserBucket(user, s.bucketDigits)
		s.buckets[bucket] = append(s.buckets[bucket], user)
	}
}

// tokenOf is the primary list of a user, "" for none.
func (s *renderer) tokenOf(user string) string {
	g := s.graph
	var account uint32
	if address, err := site.ParseAddress(user); err == nil {
		account = g.accountOf[address]
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
	p := site.Problems()[unit]
	emit(p.Body(), p.Key())
}

// renderList emits what belongs to a list, and to its account if it is the
// account's primary list.
func (s *renderer) renderList(unit int, t *scratch, emit emitter) {
	g, list := s.graph, uint32(unit)
	token, account := g.tokens[list], g.owners[list]
	t.follows = t.follows[:0]
	for _, r := range g.recordsOf(list) {
		if g.isFollow(r) {
			t.follows = append(t.follows, r)
		}
	}
	t.body = g.appendRecords(t.body[:0], list)
	emit(t.body, s.config.ListKey(token, site.Records))
	t.body = g.appendDetails(t.body[:0], s.ranks, list)
	emit(t.body, s.config.ListKey(token, site.Details))
	t.body = g.appendBadges(t.body[:0], s.config.BadgesField, s.events, account)
	emit(t.body, s.config.ListKey(token, site.Badges))

	t.keys = append(t.keys[:0], s.config.ListKey(token, site.SearchFollowing))
	if g.isPrimary(list) {
		t.keys = append(t.keys, s.config.UserKey(g.accounts[account].String()))
		if name := g.profiles[account].name; name != "" {
			t.keys = append(t.keys, s.config.UserKey(name))
		}
	}
	t.body = g.appendFollowing(t.body[:0], t.follows)
	emit(t.body, t.keys...)
	for n := range searchShards(len(t.follows)) {
		t.body = g.appendShard(t.body[:0], list, t.follows, n)
		emit(t.body, site.SearchShardKey(token, n))
	}
}

func (s *renderer) renderStranger(unit int, _ *scratch, emit emitter) {
	emit([]byte(site.EmptySearch), s.config.UserKey(s.strangers[unit]))
}

func (s *renderer) renderBucket(unit int, t *scratch, emit emitter) {
	bucket := s.bucketNames[unit]
	t.body = site.AppendUserBucket(t.body[:0], bucket, s.buckets[bucket], s.tokenOf)
	emit(t.body, site.UserBucketKey(bucket))
}

// renderBoard emits a leaderboard with one of its limits.
func (s *renderer) renderBoard(unit int, t *scratch, emit emitter) {
	board, limit := site.Boards()[unit/s.config.LeaderboardMax], 1+unit%s.config.LeaderboardMax
	t.keys = append(t.keys[:0], site.LeaderboardLimitKey(board, limit))
	if limit == site.DefaultLimit {
		t.keys = append(t.keys, s.config.LeaderboardKey(board))
	}
	t.body = s.graph.appendLeaderboard(t.body[:0], s.ranks, board, limit)
	emit(t.body, t.keys...)
}

// objects is the number of objects that the site has, without manifest and root.
func (s *renderer) objects() int64 {
	g := s.graph
	n := len(site.Problems()) + 4*len(g.tokens) + len(g.names) + len(s.bucketNames) + len(site.Boards())*(1+s.config.LeaderboardMax)
	for list := range g.tokens {
		if g.isPrimary(uint32(list)) {
			n++
		}
		n += searchShards(g.countFollows(uint32(list)))
	}
	return int64(n)
}

// A chunk is a run of units of one part.
type chunk struct {
	part     part
	from, to int
}

func (s *renderer) chunks() iter.Seq2[chunk, error] {
	return func(yield func(chunk, error) bool) {
		for _, p := range s.parts {
			for from := 0; from < p.units; from += unitsPerChunk {
				if !yield(chunk{p, from, min(from+unitsPerChunk, p.units)}, nil) {
					return
				}
			}
		}
	}
}

// A batch takes the objects of a chunk. Batches are filled by workers side by side.
type batch interface {
	put(entry site.Entry, body []byte) error
}

// An output is where rendered objects go.
type output interface {
	// begin makes a batch; it is called from many goroutines.
	begin() batch
	// finish takes a full batch; batches are finished one by one in the site's order.
	finish(batch) error
}

// nowhere is an output that keeps nothing.
type nowhere struct{}

func (nowhere) begin() batch                 { return nowhere{} }
func (nowhere) finish(batch) error           { return nil }
func (nowhere) put(site.Entry, []byte) error { return nil }

// render renders every object into out and gives their entries in the site's order.
func (s *renderer) render(ctx context.Context, workers int, out output, progress Progress) ([]site.Entry, error) {
	type filled struct {
		batch   batch
		entries []site.Entry
	}
	all := make([]site.Entry, 0, s.objects())
	err := inOrder(ctx, workers, s.chunks(),
		func(c chunk) (f filled, err error) {
			f.batch = out.begin()
			f.entries = make([]site.Entry, 0, 8*(c.to-c.from))
			emit := func(body []byte, keys ...site.Key) {
				entry := site.Entry{Size: int64(len(body)), MD5: site.Sum(body)}
				for _, entry.Key = range keys {
					f.entries = append(f.entries, entry)
					if err == nil {
						err = f.batch.put(entry, body)
					}
				}
			}
			var s scratch
			for unit := c.from; unit < c.to && err == nil; unit++ {
				c.part.render(unit, &s, emit)
			}
			progress.Add(int64(len(f.entries)))
			return f, err
		},
		func(f filled) error {
			all = append(all, f.entries...)
			return out.finish(f.batch)
		})
	if err != nil {
		return nil, err
	}
	if int64(len(all)) != s.objects() {
		return nil, fmt.Errorf("rendered %d objects instead of %d: a fault of this program", len(all), s.objects())
	}
	return all, nil
}
