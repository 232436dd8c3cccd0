package generator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
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
	texts    texts // of the graph
	eventOf  map[string]uint32
	seen     []bool // by account; whether it had a row
	incoming incomingRecords
	badges   map[accountEvent]refreshedBadge // newer than the snapshot
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
	l.graph.listOps = uint64(l.graph.records.len())
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
		list, added := g.lists.add(r.Value.TokenID)
		if !added {
			return fmt.Errorf("token_id: a second list with the token_id %s", r.Value.TokenID)
		}
		g.tokens[list] = l.texts.keep(r.Value.TokenID)
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
	type row struct {
		accountRow
		primary uint32 // the list that the account names as primary; none, or noList if there is no such list
	}
	const noList = none - 1
	convert := func(in *snapshot.Account) (row, error) {
		r := row{toAccountRow(in, l.maxText), none}
		if in.Primary != "" {
			var ok bool
			if r.primary, ok = g.lists.find(in.Primary); !ok {
				r.primary = noList
			}
		}
		return r, nil
	}
	err := readAccounts(ctx, l.reader, convert, func(r snapshot.Row[row]) error {
		account := g.account(r.Value.address)
		l.seen = extend(l.seen, len(g.accounts))
		g.fillAccounts()
		if l.seen[account] {
			return fmt.Errorf("address: a second account with the address %s", r.Value.address)
		}
		l.seen[account] = true
		switch list := r.Value.primary; {
		case list == none:
		case list == noList:
			l.report.withoutEffect(snapshot.TableAccounts, missingPrimary)
		case g.owners[list] != account:
			l.report.withoutEffect(snapshot.TableAccounts, foreignPrimary)
		default:
			g.primary[account] = list
		}
		if r.Value.profile.ens != nil {
			g.profiles.set(account, r.Value.profile)
		}
		l.report.LongTexts.add(l.report.table(snapshot.TableAccounts).file, r.Line, r.Value.long)
		return checkSize("accounts", len(g.accounts))
	})
	if err != nil {
		return err
	}
	l.seen = nil
	if err := l.readRefreshed(ctx); err != nil {
		return err
	}
	l.chooseNames()
	return nil
}

// chooseNames gives each name to one account: the one with the larger fresh in its profile, or with
// the smaller address.
func (l *loader) chooseNames() {
	g := l.graph
	for account := range g.profiles.all {
		if name := g.profiles.name(uint32(account)); len(name) > 0 {
			g.names = append(g.names, lookupName{l.texts.keep(string(name)), uint32(account)})
		}
	}
	slices.SortFunc(g.names, func(a, b lookupName) int {
		if order := strings.Compare(a.name, b.name); order != 0 {
			return order // without a look at the profiles, far away in memory
		}
		return cmp.Or(
			cmp.Compare(g.profiles.all[b.account].fresh, g.profiles.all[a.account].fresh),
			bytesCompare(g.accounts[a.account], g.accounts[b.account]),
		)
	})
	for i := 1; i < len(g.names); i++ {
		if g.names[i].name == g.names[i-1].name {
			g.profiles.unname(g.names[i].account) // another account has this name
		}
	}
	g.names = slices.CompactFunc(g.names, func(a, b lookupName) bool { return a.name == b.name })
}

// An incomingRecord is a row of records, as far as workers can number what it says.
type incomingRecord struct {
	list    uint32 // none for an unknown one
	form    uint32
	data    uint32       // none for an address that has no number yet
	address site.Address // then
	added   int64
}

// readRecords numbers the accounts that only records name in the order of the snapshot. Everything else
// is numbered by the workers: lists and the accounts known before do not change any more.
func (l *loader) readRecords(ctx context.Context) error {
	g := l.graph
	l.progress.Stage("records", 0)
	var late []site.Address // that only records name
	numbers := newNumbering(&late)
	known := len(g.accounts) // those of rows and of lists
	caches := sync.Pool{New: func() any { return &rowCache{forms: formCache{forms: &g.forms, of: map[string]uint32{}}} }}
	convert := func(r *snapshot.Record) (in incomingRecord, err error) {
		cache := caches.Get().(*rowCache)
		defer caches.Put(cache)
		if in.list = cache.list(&g.lists, r.TokenID); in.list == none {
			return in, nil
		}
		in.form, in.added, in.data = cache.forms.number(r), r.Added, none
		var ok bool
		if in.address, ok = r.Address(); !ok {
			in.data, err = g.otherText(r.Data)
			in.data |= otherData
		}
		return in, err
	}
	complete := func(rows []snapshot.Row[incomingRecord]) { numberAddresses(&g.numbers, rows) }
	err := readRecords(ctx, l.reader, convert, complete, func(r snapshot.Row[incomingRecord]) error {
		in := &r.Value
		if in.list == none {
			l.report.withoutEffect(snapshot.TableRecords, unknownList)
			return nil
		}
		if in.data == none {
			n, _ := numbers.add(in.address)
			in.data = uint32(known) + n
		}
		l.incoming.add(in.list, in.data, in.form, in.added, l.efp)
		return checkSize("accounts", known+len(late))
	})
	if err != nil {
		return err
	}
	g.accounts = slices.Grow(g.accounts, len(late))
	for _, address := range late {
		g.account(address)
	}
	g.offsets, g.records, g.added = l.incoming.group(len(g.tokens), l.efp)
	g.records.forms = g.byNumber
	g.fillAccounts()
	g.known = known
	if l.efp {
		g.addresses = g.countAddresses()
	}
	return l.mergeRepeated(ctx)
}

// numberAddresses numbers the known addresses of records, some at a time.
func numberAddresses(known *numbering[site.Address], rows []snapshot.Row[incomingRecord]) {
	var addresses [atOnce]site.Address
	var numbers [atOnce]uint32
	for len(rows) > 0 {
		some := rows[:min(atOnce, len(rows))]
		for i := range some {
			addresses[i] = some[i].Value.address
		}
		known.findAll(addresses[:len(some)], numbers[:len(some)])
		for i := range some {
			if in := &some[i].Value; in.data == none && in.list != none {
				in.data = numbers[i]
			}
		}
		rows = rows[len(some):]
	}
}

// A rowCache is what a worker knows of the rows before: successive records mostly are of one list.
type rowCache struct {
	forms  formCache
	token  []byte
	number uint32 // of the list with that token; none for an unknown one
}

// list returns the number of a list, none for an unknown one.
func (c *rowCache) list(lists *numbering[string], token string) uint32 {
	if string(c.token) != token {
		c.token = append(c.token[:0], token...)
		var ok bool
		if c.number, ok = lists.find(token); !ok {
			c.number = none
		}
	}
	return c.number
}

// mergeRepeated merges equal records of a list into the first one, which gets the tags of all.
func (l *loader) mergeRepeated(ctx context.Context) error {
	g := l.graph
	lengths := make([]uint32, len(g.tokens))
	var merged mergedForms
	group, ctx := errgroup.WithContext(ctx)
	const chunk = 1024
	group.SetLimit(l.workers)
	for from := 0; from < len(g.tokens); from += chunk {
		group.Go(func() error {
			m := merger{graph: g, merged: &merged}
			for list := from; list < min(from+chunk, len(g.tokens)); list++ {
				lengths[list] = m.merge(uint32(list))
			}
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	merged.apply(g)
	before, kept := g.records.len(), uint64(0)
	for list, length := range lengths {
		begin, end := g.offsets[list], g.offsets[list]+uint64(length)
		g.offsets[list] = kept
		if l.efp && begin != kept {
			copy(g.added[kept:], g.added[begin:end])
		}
		kept += g.records.copyWithin(kept, begin, end)
	}
	g.offsets[len(g.tokens)] = kept
	l.report.Repeated = before - int(kept)
	g.records.truncate(kept)
	if l.efp {
		g.added = g.added[:kept]
	}
	return nil
}

// mergedForms are the forms of records that got the tags of others. They may be more than the records
// have room for, so they are put last.
type mergedForms struct {
	mu  sync.Mutex
	all []mergedForm
}

type mergedForm struct {
	at   uint64 // index of the record, before records are moved together
	form uint32
}

func (m *mergedForms) apply(g *graph) {
	g.records.forms = g.byNumber
	if len(m.all) > 0 && len(g.byNumber) > maxNarrow {
		g.records.widen()
	}
	for _, to := range m.all {
		g.records.setForm(to.at, to.form)
	}
}

// A merger merges equal records of one list after another. It reuses its memory.
type merger struct {
	graph   *graph
	merged  *mergedForms
	seen    []uint32 // a hash table of indexes of records, plus 1
	repeats []repeat
	tags    []string
}

// A repeat is a row whose tags go to an earlier record of its list.
type repeat struct {
	first uint32 // index of that record
	tags  uint32
}

// merge moves the remaining records of a list to its front, with their times, and returns their
// number.
func (m *merger) merge(list uint32) uint32 {
	records := m.graph.recordsOf(list)
	var added []int64
	if m.graph.added != nil {
		added = m.graph.addedOf(list)
	}
	slots := bits.Len(uint(2 * records.len()))
	if len(m.seen) < 1<<slots {
		m.seen = make([]uint32, 1<<slots)
	}
	seen := m.seen[:1<<slots]
	clear(seen)
	m.repeats = m.repeats[:0]
	kept := 0
	for i, r := range records.all() {
		slot := firstSlot(seen, &records, r)
		if *slot == 0 {
			*slot = uint32(kept + 1)
			if kept != i {
				records.move(kept, i)
				if added != nil {
					added[kept] = added[i]
				}
			}
			kept++
		} else if first := *slot - 1; records.at(int(first)).tags != r.tags {
			m.repeats = append(m.repeats, repeat{first, r.tags})
		}
	}
	m.mergeTags(list, &records)
	return uint32(kept)
}

// spread makes places in hash tables of numbers. It is random, so that no snapshot can fill one place.
var spread = rand.Uint64() | 1

// firstSlot returns the slot of the first record that is equal to r but for its tags, or an empty one.
// There are a power of 2.
func firstSlot(seen []uint32, records *recordList, r record) *uint32 {
	at := (uint64(r.data) | uint64(r.kind)<<32) * spread >> (bits.LeadingZeros(uint(len(seen)-1)) & 63)
	for ; ; at++ {
		slot := &seen[at&uint64(len(seen)-1)]
		if *slot == 0 {
			return slot
		}
		if first := records.at(int(*slot - 1)); first.data == r.data && first.kind == r.kind {
			return slot
		}
	}
}

// mergeTags adds the tags of repeats to records of a list. It adds only final sets to the graph: with
// intermediate sets, memory would grow with the square of the repeats.
func (m *merger) mergeTags(list uint32, records *recordList) {
	if len(m.repeats) == 0 {
		return
	}
	slices.SortFunc(m.repeats, func(a, b repeat) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.tags, b.tags))
	})
	repeats := slices.Compact(m.repeats)
	m.merged.mu.Lock()
	defer m.merged.mu.Unlock()
	forms := &m.graph.forms
	for len(repeats) > 0 {
		first := repeats[0].first
		into := records.at(int(first))
		m.tags = append(m.tags[:0], forms.tagSets[into.tags].tags...)
		for ; len(repeats) > 0 && repeats[0].first == first; repeats = repeats[1:] {
			m.tags = append(m.tags, forms.tagSets[repeats[0].tags].tags...)
		}
		slices.Sort(m.tags)
		n := forms.form(form{into.kind, forms.tagSet(slices.Compact(m.tags))})
		m.merged.all = append(m.merged.all, mergedForm{m.graph.offsets[list] + uint64(first), n})
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
		account, ok := g.numbers.find(r.Value.Owner)
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
