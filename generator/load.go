package generator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// maxItems bounds accounts, lists and texts, so that their numbers do not use the bit otherData.
const maxItems = int64(otherData - 1)

// A loader builds a graph from the rows of a snapshot.
type loader struct {
	*reader
	graph    *graph
	eventOf  map[string]uint32
	wanted   []string // by account; the list that it names as primary
	seen     []bool   // by account; whether it had a row
	incoming []incomingRecord
	added    []int64                         // by incoming record; nil unless the API is efp
	badges   map[accountEvent]refreshedBadge // newer than the snapshot
}

// An incomingRecord is a record with its list, before records are grouped by list.
type incomingRecord struct {
	list uint32
	record
}

// load reads a snapshot into a graph.
func load(ctx context.Context, r *reader) (*graph, error) {
	asOf, err := snapshot.ReadAsOf(r.snapshot)
	if err != nil {
		return nil, err
	}
	r.report.AsOf, r.report.LongTexts.Most = asOf, r.maxText
	// Open all tables before reading the first, so that a missing one is reported at once.
	for _, t := range snapshot.Tables() {
		if err := snapshot.CheckTable(r.snapshot, t); err != nil {
			return nil, err
		}
	}
	l := &loader{reader: r, graph: newGraph(asOf), eventOf: map[string]uint32{}}
	read := []func(context.Context) error{l.readEvents, l.readLists, l.readAccounts, l.readRecords, l.readBadges}
	var listOps *uint64
	if r.efp {
		if listOps, err = snapshot.ReadListOps(r.snapshot); err != nil {
			return nil, err
		}
		switch err := snapshot.CheckTable(r.snapshot, snapshot.TableRecommended); {
		case err == nil:
			read = append(read, l.readRecommended)
		case !errors.Is(err, snapshot.ErrNoTable):
			return nil, err
		}
	}
	for _, read := range read {
		if err := read(ctx); err != nil {
			return nil, err
		}
	}
	l.graph.listOps = uint64(len(l.graph.records))
	if listOps != nil {
		l.graph.listOps = *listOps
	}
	return l.graph, nil
}

func (l *loader) readEvents(ctx context.Context) error {
	g := l.graph
	l.progress.Stage("events", 0)
	return readTable(ctx, l.reader, snapshot.TableEvents, site.DecodeEvent, func(r snapshot.Row[site.Event]) error {
		id := strconv.FormatUint(r.Value.ID, 10)
		if _, ok := l.eventOf[id]; ok {
			return fmt.Errorf("id: a second event with the id %s", id)
		}
		l.eventOf[id] = uint32(len(g.events))
		g.events = append(g.events, r.Value)
		return nil
	})
}

func (l *loader) readLists(ctx context.Context) error {
	g := l.graph
	l.progress.Stage("lists", 0)
	return readTable(ctx, l.reader, snapshot.TableLists, snapshot.ParseList, func(r snapshot.Row[snapshot.List]) error {
		if _, ok := g.listOf[r.Value.TokenID]; ok {
			return fmt.Errorf("token_id: a second list with the token_id %s", r.Value.TokenID)
		}
		g.listOf[r.Value.TokenID] = uint32(len(g.tokens))
		g.tokens = append(g.tokens, r.Value.TokenID)
		account := r.Value.Owner
		if r.Value.User != nil {
			account = *r.Value.User
		}
		g.owners = append(g.owners, g.account(account))
		return checkSize("lists", len(g.tokens))
	})
}

func (l *loader) readAccounts(ctx context.Context) error {
	g := l.graph
	l.progress.Stage("accounts", 0)
	convert := func(in *snapshot.Account) (accountRow, error) { return toAccountRow(in, l.maxText) }
	err := readAccounts(ctx, l.reader, convert, func(r snapshot.Row[accountRow]) error {
		account := g.account(r.Value.address)
		l.wanted = extend(l.wanted, len(g.accounts))
		l.seen = extend(l.seen, len(g.accounts))
		g.profiles = extend(g.profiles, len(g.accounts))
		if l.seen[account] {
			return fmt.Errorf("address: a second account with the address %s", r.Value.address)
		}
		l.seen[account] = true
		l.wanted[account] = r.Value.primary
		g.profiles[account] = r.Value.profile
		l.report.LongTexts.add(l.report.table(snapshot.TableAccounts).file, r.Line, r.Value.long)
		return checkSize("accounts", len(g.accounts))
	})
	if err != nil {
		return err
	}
	l.choosePrimaries()
	if err := l.readRefreshed(ctx); err != nil {
		return err
	}
	l.chooseNames()
	return nil
}

// choosePrimaries sets the primary list of each account to the list that it names, if that exists
// and belongs to the account.
func (l *loader) choosePrimaries() {
	g := l.graph
	g.primary = make([]uint32, len(l.wanted))
	for account, wanted := range l.wanted {
		g.primary[account] = none
		if wanted == "" {
			continue
		}
		list, ok := g.listOf[wanted]
		switch {
		case !ok:
			l.report.withoutEffect(snapshot.TableAccounts, missingPrimary)
		case g.owners[list] != uint32(account):
			l.report.withoutEffect(snapshot.TableAccounts, foreignPrimary)
		default:
			g.primary[account] = list
		}
	}
	l.wanted, l.seen = nil, nil
}

// chooseNames gives each name to one account: the one with the larger fresh in its profile, or with
// the smaller address.
func (l *loader) chooseNames() {
	g := l.graph
	for account, p := range g.profiles {
		if p.name != "" {
			g.names = append(g.names, lookupName{p.name, uint32(account)})
		}
	}
	slices.SortFunc(g.names, func(a, b lookupName) int {
		return cmp.Or(
			strings.Compare(a.name, b.name),
			cmp.Compare(g.profiles[b.account].fresh, g.profiles[a.account].fresh),
			bytesCompare(g.accounts[a.account], g.accounts[b.account]),
		)
	})
	for i := 1; i < len(g.names); i++ {
		if g.names[i].name == g.names[i-1].name {
			g.profiles[g.names[i].account].name = "" // another account has this name
		}
	}
	g.names = slices.CompactFunc(g.names, func(a, b lookupName) bool { return a.name == b.name })
}

func (l *loader) readRecords(ctx context.Context) error {
	g := l.graph
	l.progress.Stage("records", 0)
	known := len(g.accounts) // those of rows and of lists
	err := readRecords(ctx, l.reader, toRecordRow, func(r snapshot.Row[recordRow]) error {
		list, ok := g.listOf[r.Value.tokenID]
		if !ok {
			l.report.withoutEffect(snapshot.TableRecords, unknownList)
			return nil
		}
		in := incomingRecord{list: list, record: record{
			kind: g.kind(r.Value.version, r.Value.recordType),
			tags: g.tagSet(r.Value.tags),
		}}
		if r.Value.isAddress {
			in.data = g.account(r.Value.address)
		} else {
			in.data = otherData | g.otherText(r.Value.data)
		}
		l.incoming = append(l.incoming, in)
		if l.efp {
			l.added = append(l.added, r.Value.added)
		}
		return errors.Join(checkSize("accounts", len(g.accounts)), checkSize("texts", len(g.other)))
	})
	if err != nil {
		return err
	}
	l.groupRecords()
	g.fillAccounts()
	if l.efp {
		g.addresses = known + g.countHeld(known)
	}
	return l.mergeRepeated(ctx)
}

// groupRecords groups the records by list, in the order of their rows.
func (l *loader) groupRecords() {
	g := l.graph
	g.offsets = make([]uint64, len(g.tokens)+1)
	for _, in := range l.incoming {
		g.offsets[in.list+1]++
	}
	for list := range g.tokens {
		g.offsets[list+1] += g.offsets[list]
	}
	next := slices.Clone(g.offsets)
	g.records = make([]record, len(l.incoming))
	if l.efp {
		g.added = make([]int64, len(l.incoming))
	}
	for i, in := range l.incoming {
		at := next[in.list]
		g.records[at] = in.record
		if l.efp {
			g.added[at] = l.added[i]
		}
		next[in.list]++
	}
	l.incoming, l.added = nil, nil
}

// mergeRepeated merges equal records of a list into the first one, which gets the tags of all.
func (l *loader) mergeRepeated(ctx context.Context) error {
	g := l.graph
	lengths := make([]uint32, len(g.tokens))
	var tagSets sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	const chunk = 1024
	group.SetLimit(l.workers)
	for from := 0; from < len(g.tokens); from += chunk {
		group.Go(func() error {
			m := merger{graph: g, tagSets: &tagSets}
			for list := from; list < min(from+chunk, len(g.tokens)); list++ {
				var added []int64
				if l.efp {
					added = g.addedOf(uint32(list))
				}
				lengths[list] = m.merge(g.recordsOf(uint32(list)), added)
			}
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	kept := uint64(0)
	for list, length := range lengths {
		begin, end := g.offsets[list], g.offsets[list]+uint64(length)
		g.offsets[list] = kept
		if l.efp {
			copy(g.added[kept:], g.added[begin:end])
		}
		kept += uint64(copy(g.records[kept:], g.records[begin:end]))
	}
	g.offsets[len(g.tokens)] = kept
	l.report.Repeated = len(g.records) - int(kept)
	g.records = g.records[:kept]
	if l.efp {
		g.added = g.added[:kept]
	}
	return nil
}

// A merger merges equal records of one list after another. It reuses its memory.
type merger struct {
	graph   *graph
	tagSets *sync.Mutex
	seen    map[uint64]uint32
	repeats []repeat
	tags    []string
}

// A repeat is a row whose tags go to an earlier record of its list.
type repeat struct {
	first uint32 // index of that record
	tags  uint32
}

// maxSeen bounds the map that is reused: clearing a large map for each of many short lists would
// take longer than everything else.
const maxSeen = 1 << 12

// merge moves the remaining records to the front, with their times if added is not nil, and returns
// their number.
func (m *merger) merge(records []record, added []int64) uint32 {
	if m.seen == nil || len(m.seen) > maxSeen {
		m.seen = make(map[uint64]uint32, 64)
	}
	clear(m.seen)
	m.repeats = m.repeats[:0]
	kept := uint32(0)
	for i, r := range records {
		identity := uint64(r.kind)<<32 | uint64(r.data)
		if first, ok := m.seen[identity]; ok {
			if records[first].tags != r.tags {
				m.repeats = append(m.repeats, repeat{first, r.tags})
			}
			continue
		}
		m.seen[identity] = kept
		records[kept] = r
		if added != nil {
			added[kept] = added[i]
		}
		kept++
	}
	m.mergeTags(records)
	return kept
}

// mergeTags adds the tags of repeats to records. It adds only final sets to the graph: with
// intermediate sets, memory would grow with the square of the repeats.
func (m *merger) mergeTags(records []record) {
	if len(m.repeats) == 0 {
		return
	}
	slices.SortFunc(m.repeats, func(a, b repeat) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.tags, b.tags))
	})
	repeats := slices.Compact(m.repeats)
	m.tagSets.Lock()
	defer m.tagSets.Unlock()
	for len(repeats) > 0 {
		into := &records[repeats[0].first]
		m.tags = append(m.tags[:0], m.graph.tagSets[into.tags].tags...)
		for first := repeats[0].first; len(repeats) > 0 && repeats[0].first == first; repeats = repeats[1:] {
			m.tags = append(m.tags, m.graph.tagSets[repeats[0].tags].tags...)
		}
		slices.Sort(m.tags)
		into.tags = m.graph.tagSet(slices.Compact(m.tags))
	}
}

func (l *loader) readBadges(ctx context.Context) error {
	g := l.graph
	hasList := make([]bool, len(g.accounts))
	for _, account := range g.owners {
		hasList[account] = true
	}
	l.progress.Stage("badges", 0)
	err := readTable(ctx, l.reader, snapshot.TableBadges, snapshot.ParseBadge, func(r snapshot.Row[snapshot.Badge]) error {
		event, ok := l.eventOf[r.Value.EventID]
		if !ok {
			l.report.withoutEffect(snapshot.TableBadges, unknownEvent)
			return nil
		}
		account, ok := g.accountOf[r.Value.Owner]
		switch {
		case l.efp: // it shows badges of any address
			account = g.account(r.Value.Owner)
		case !ok || !hasList[account]:
			l.report.withoutEffect(snapshot.TableBadges, listlessOwner)
			return nil
		}
		g.badges = append(g.badges, badge{account, event, strings.Clone(r.Value.TokenID)})
		return checkSize("accounts", len(g.accounts))
	})
	g.fillAccounts()
	l.mergeBadges()
	slices.SortFunc(g.badges, func(a, b badge) int {
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.event, b.event), site.CompareTokenIDs(a.tokenID, b.tokenID))
	})
	g.badges = slices.CompactFunc(g.badges, func(a, b badge) bool {
		return a.account == b.account && a.event == b.event
	})
	return err
}

// readRecommended reads the recommended accounts. They do not become accounts of the graph: what
// the API says about an address does not depend on whether it is recommended.
func (l *loader) readRecommended(ctx context.Context) error {
	g := l.graph
	l.progress.Stage("recommended", 0)
	seen := map[site.Address]bool{}
	return readTable(ctx, l.reader, snapshot.TableRecommended, snapshot.ParseRecommended, func(r snapshot.Row[snapshot.Recommended]) error {
		if seen[r.Value.Address] {
			l.report.withoutEffect(snapshot.TableRecommended, repeatedRow)
			return nil
		}
		seen[r.Value.Address] = true
		g.recommended = append(g.recommended, r.Value)
		return nil
	})
}

func checkSize(what string, n int) error {
	if int64(n) > maxItems {
		return fmt.Errorf("more than %d %s", maxItems, what)
	}
	return nil
}

func extend[T any](s []T, n int) []T {
	for len(s) < n {
		var zero T
		s = append(s, zero)
	}
	return s
}

// defaultWorkers is the default of Options.Workers.
func defaultWorkers() int { return runtime.GOMAXPROCS(0) }
