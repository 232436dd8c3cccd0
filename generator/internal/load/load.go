package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
)

// maxItems bounds accounts, lists and texts, so that their numbers do not use the bit otherData.
const maxItems = int64(render.OtherData - 1)

type loader struct {
	*reader
	graph    *render.Graph
	texts    texts // of the graph
	eventOf  map[string]uint32
	seen     []bool // by account; whether it had a row
	incoming incomingRecords
	badges   rules.RefreshedBadges[accountEvent]
	renamed  map[uint32]struct{} // accounts that have another name than in the snapshot, by a refresh
}

// Graph reads a snapshot into a graph, whose accounts are not ranked yet. An invalid row is a *snapshot.RowError.
func Graph(ctx context.Context, o Options) (*render.Graph, error) {
	r := &reader{Options: o, file: map[snapshot.Table]string{}}
	asOf, err := snapshot.ReadAsOf(r.Snapshot)
	if err != nil {
		return nil, err
	}
	r.Report.AsOf, r.Report.LongTexts.Most, r.Report.LongTexts.MostProfile = asOf, r.Limits.Text, r.Limits.Whole
	if err := r.readInputs(); err != nil {
		return nil, err
	}
	// Open all tables before reading the first, so that a missing one is reported at once.
	for _, t := range snapshot.Tables() {
		if err := snapshot.CheckTable(r.Snapshot, t); err != nil {
			return nil, err
		}
	}
	l := &loader{reader: r, graph: render.NewGraph(asOf), eventOf: map[string]uint32{}}
	read := []func(context.Context) error{l.readEvents, l.readLists, l.readAccounts, l.readRecords, l.readBadges}
	var listOps *uint64
	if r.EFP {
		if listOps, err = snapshot.ReadListOps(r.Snapshot); err != nil {
			return nil, err
		}
		switch err := snapshot.CheckTable(r.Snapshot, snapshot.TableRecommended); {
		case err == nil:
			read = append(read, l.readRecommended)
		case !errors.Is(err, snapshot.ErrNoTable):
			return nil, err
		}
	}
	if r.Window > 0 {
		switch err := snapshot.CheckTable(r.Snapshot, snapshot.TableOps); {
		case err == nil:
			read = append(read, l.readOps)
		case !errors.Is(err, snapshot.ErrNoTable):
			return nil, err
		}
	}
	for _, read := range read {
		if err := read(ctx); err != nil {
			return nil, err
		}
	}
	l.graph.ListOps = uint64(l.graph.Records.Len())
	if listOps != nil {
		l.graph.ListOps = *listOps
	}
	r.sumTables()
	return l.graph, nil
}

func (l *loader) readEvents(ctx context.Context) error {
	g := l.graph
	l.Progress.Stage("events", 0)
	return readTable(ctx, l.reader, snapshot.TableEvents, site.DecodeEvent, func(r snapshot.Row[site.Event]) error {
		id := strconv.FormatUint(r.Value.ID, 10)
		if _, ok := l.eventOf[id]; ok {
			return fmt.Errorf("id: a second event with the id %s", id)
		}
		l.eventOf[id] = uint32(len(g.Events))
		g.Events = append(g.Events, r.Value)
		l.Report.OtherDates += r.Value.OtherDates()
		return nil
	})
}

func (l *loader) readLists(ctx context.Context) error {
	g := l.graph
	l.Progress.Stage("lists", 0)
	return readTable(ctx, l.reader, snapshot.TableLists, snapshot.ParseList, func(r snapshot.Row[snapshot.List]) error {
		list, added := g.Lists.Add(r.Value.TokenID)
		if !added {
			return fmt.Errorf("token_id: a second list with the token_id %s", r.Value.TokenID)
		}
		g.Tokens[list] = l.texts.keep(r.Value.TokenID)
		g.Owners = append(g.Owners, g.Account(rules.AccountOf(r.Value.Owner, r.Value.User)))
		return checkSize("lists", len(g.Tokens))
	})
}

func (l *loader) readAccounts(ctx context.Context) error {
	g := l.graph
	l.Progress.Stage("accounts", 0)
	type row struct {
		address site.Address
		profile render.Profile
		long    []site.LongText // left out of the profile
		noTexts int             // as long
		primary uint32          // the list that the account names as primary; none, or noList if there is no such list
	}
	const noList = render.None - 1
	convert := func(in *snapshot.Account) (row, error) {
		r := row{address: in.Address, primary: render.None}
		if in.ENS != nil {
			var ens site.Profile
			ens, r.long = in.ENS.Within(l.Limits)
			r.noTexts = ens.NoTexts
			r.profile = render.EncodeProfile(ens)
		}
		if in.Primary != "" {
			var ok bool
			if r.primary, ok = g.Lists.Find(in.Primary); !ok {
				r.primary = noList
			}
		}
		return r, nil
	}
	rows := readerOf(l.reader, snapshot.TableAccounts, func(r snapshot.Row[row]) error {
		account := g.Account(r.Value.address)
		l.seen = append(l.seen, make([]bool, len(g.Accounts)-len(l.seen))...)
		g.FillAccounts()
		if l.seen[account] {
			return fmt.Errorf("address: a second account with the address %s", r.Value.address)
		}
		l.seen[account] = true
		switch list := r.Value.primary; {
		case list == render.None:
		case list == noList:
			l.Report.CountWithoutEffect(snapshot.TableAccounts, summary.MissingPrimary)
		case !rules.IsPrimary(account, g.Owners[list]):
			l.Report.CountWithoutEffect(snapshot.TableAccounts, summary.ForeignPrimary)
		default:
			g.Primary[account] = list
		}
		if r.Value.profile.ENS != nil {
			g.Profiles.Set(account, r.Value.profile)
		}
		l.Report.LongTexts.Add(l.file[snapshot.TableAccounts], r.Line, r.Value.long)
		l.Report.NoTexts.Add(r.Value.noTexts)
		return checkSize("accounts", len(g.Accounts))
	})
	err := l.countBytes(snapshot.TableAccounts, rows.Accounts(ctx, convert))
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

// chooseNames gives each name to one account.
func (l *loader) chooseNames() {
	g := l.graph
	for account := range g.Profiles.Len() {
		if name := g.Profiles.Name(uint32(account)); len(name) > 0 {
			g.Names = append(g.Names, render.LookupName{Name: l.texts.keep(string(name)), Account: uint32(account)})
		}
	}
	inorder.Sort(l.Workers, g.Names, func(a, b render.LookupName) int {
		if order := strings.Compare(a.Name, b.Name); order != 0 {
			return order // without a look at the profiles, far away in memory
		}
		return l.namesake(a.Account).Compare(l.namesake(b.Account))
	})
	for i := 1; i < len(g.Names); i++ {
		if g.Names[i].Name == g.Names[i-1].Name {
			g.Profiles.Unname(g.Names[i].Account) // another account has this name
		}
	}
	g.Names = slices.CompactFunc(g.Names, func(a, b render.LookupName) bool { return a.Name == b.Name })
}

func (l *loader) namesake(account uint32) rules.Namesake {
	_, refreshed := l.renamed[account]
	return rules.Namesake{Refreshed: refreshed, Fresh: l.graph.Profiles.Fresh(account), Address: l.graph.Accounts[account]}
}

// An incomingRecord is a row of records, as far as workers can number what it says.
type incomingRecord struct {
	list    uint32 // none for an unknown one
	form    uint32
	data    uint32       // none for an address that has no number yet
	address site.Address // then
	added   int64
}

type snapshotRow = snapshot.Row[incomingRecord]

// readRecords numbers the accounts that only records name in the order of the snapshot. Everything else
// is numbered by the workers: lists and the accounts known before do not change any more.
func (l *loader) readRecords(ctx context.Context) error {
	g := l.graph
	l.Progress.Stage("records", 0)
	var late []site.Address // that only records name
	numbers := render.NewNumbering(&late)
	known := len(g.Accounts) // those of rows and of lists
	caches := sync.Pool{New: func() any { return &rowCache{forms: render.NewFormCache(&g.Forms)} }}
	convert := func(r *snapshot.Record) (in incomingRecord, err error) {
		cache := caches.Get().(*rowCache)
		defer caches.Put(cache)
		if in.list = cache.list(&g.Lists, r.TokenID); in.list == render.None {
			return in, nil
		}
		in.form, in.added, in.data = cache.forms.Number(r.Version, r.Type, r.Tags), r.Added, render.None
		var ok bool
		if in.address, ok = r.Address(); !ok {
			n := g.OtherText(r.Data)
			in.data, err = n|render.OtherData, checkSize("texts", int(n)+1)
		}
		return in, err
	}
	var packs sync.Pool
	rows := readerOf[incomingRecord](l.reader, snapshot.TableRecords, nil)
	rows.Complete = func(rows []snapshotRow) (take func() error) {
		numberAddresses(&g.Numbers, rows)
		p, ok := packs.Get().(*packedRecords)
		if !ok {
			p = new(packedRecords)
		}
		p.pack(rows, l.EFP)
		return func() error {
			for _, r := range p.late {
				n, _ := numbers.Add(r.address)
				p.SetData(r.at, uint32(known)+n)
			}
			l.incoming.add(p, l.EFP)
			if p.unknown > 0 {
				l.Report.Table(snapshot.TableRecords).WithoutEffect[summary.UnknownList] += p.unknown
			}
			packs.Put(p)
			return checkSize("accounts", known+len(late))
		}
	}
	err := l.countBytes(snapshot.TableRecords, rows.Records(ctx, convert))
	if err != nil {
		return err
	}
	g.Accounts = slices.Grow(g.Accounts, len(late))
	for _, address := range late {
		g.Account(address)
	}
	g.Offsets, g.Records, g.Added = l.incoming.group(len(g.Tokens), l.EFP, l.Workers)
	g.Records.Use(g.ByNumber)
	g.FillAccounts()
	g.Known = known
	if l.EFP {
		g.Addresses = g.CountAddresses()
	}
	return l.mergeRepeated(ctx)
}

// numberAddresses numbers the known addresses of records, some at a time.
func numberAddresses(known *render.Numbering[site.Address], rows []snapshotRow) {
	var addresses [render.AtOnce]site.Address
	var numbers [render.AtOnce]uint32
	for len(rows) > 0 {
		some := rows[:min(render.AtOnce, len(rows))]
		for i := range some {
			addresses[i] = some[i].Value.address
		}
		known.FindAll(addresses[:len(some)], numbers[:len(some)])
		for i := range some {
			if in := &some[i].Value; in.data == render.None && in.list != render.None {
				in.data = numbers[i]
			}
		}
		rows = rows[len(some):]
	}
}

// A rowCache is what a worker knows of the rows before: successive records mostly are of one list.
type rowCache struct {
	forms  render.FormCache
	token  []byte
	number uint32 // of the list with that token; none for an unknown one
}

// list returns the number of a list, none for an unknown one.
func (c *rowCache) list(lists *render.Numbering[string], token string) uint32 {
	if string(c.token) != token {
		c.token = append(c.token[:0], token...)
		var ok bool
		if c.number, ok = lists.Find(token); !ok {
			c.number = render.None
		}
	}
	return c.number
}

// mergeRepeated merges equal records of a list into the first one, which gets the tags of all.
func (l *loader) mergeRepeated(ctx context.Context) error {
	g := l.graph
	lengths := make([]uint32, len(g.Tokens))
	var merged mergedForms
	group, ctx := errgroup.WithContext(ctx)
	const chunk = 1024
	group.SetLimit(l.Workers)
	for from := 0; from < len(g.Tokens); from += chunk {
		group.Go(func() error {
			m := merger{graph: g, merged: &merged}
			for list := from; list < min(from+chunk, len(g.Tokens)); list++ {
				lengths[list] = m.merge(uint32(list))
			}
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	g.Records.Use(g.ByNumber)
	for _, to := range merged.all {
		g.Records.SetForm(to.at, to.form)
	}
	before, kept := g.Records.Len(), uint64(0)
	for list, length := range lengths {
		begin, end := g.Offsets[list], g.Offsets[list]+uint64(length)
		g.Offsets[list] = kept
		if l.EFP && begin != kept {
			copy(g.Added[kept:], g.Added[begin:end])
		}
		kept += g.Records.CopyWithin(kept, begin, end)
	}
	g.Offsets[len(g.Tokens)] = kept
	l.Report.Repeated = before - int(kept)
	g.Records.Truncate(kept)
	if l.EFP {
		g.Added = g.Added[:kept]
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

// A merger merges equal records of one list after another. It reuses its memory.
type merger struct {
	graph   *render.Graph
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
	records := m.graph.RecordsOf(list)
	var added []int64
	if m.graph.Added != nil {
		added = m.graph.AddedOf(list)
	}
	slots := bits.Len(uint(2 * records.Len()))
	if len(m.seen) < 1<<slots {
		m.seen = make([]uint32, 1<<slots)
	}
	seen := m.seen[:1<<slots]
	clear(seen)
	m.repeats = m.repeats[:0]
	kept := 0
	for i, r := range records.All() {
		slot := firstSlot(seen, &records, r)
		if *slot == 0 {
			*slot = uint32(kept + 1)
			if kept != i {
				records.Move(kept, i)
				if added != nil {
					added[kept] = added[i]
				}
			}
			kept++
		} else if first := *slot - 1; records.At(int(first)).Tags != r.Tags {
			m.repeats = append(m.repeats, repeat{first, r.Tags})
		}
	}
	m.mergeTags(list, &records)
	return uint32(kept)
}

// spread makes places in hash tables of numbers. It is random, so that no snapshot can fill one place.
var spread = rand.Uint64() | 1

// firstSlot returns the slot of the first record with the identity of r, or an empty one.
// There are a power of 2.
func firstSlot(seen []uint32, records *render.RecordList, r render.PackedRecord) *uint32 {
	at := (uint64(r.Data) | uint64(r.Kind)<<32) * spread >> (bits.LeadingZeros(uint(len(seen)-1)) & 63)
	for ; ; at++ {
		slot := &seen[at&uint64(len(seen)-1)]
		if *slot == 0 {
			return slot
		}
		if first := records.At(int(*slot - 1)); first.Identity() == r.Identity() {
			return slot
		}
	}
}

// mergeTags adds the tags of repeats to records of a list. It adds only final sets to the graph: with
// intermediate sets, memory would grow with the square of the repeats.
func (m *merger) mergeTags(list uint32, records *render.RecordList) {
	if len(m.repeats) == 0 {
		return
	}
	slices.SortFunc(m.repeats, func(a, b repeat) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.tags, b.tags))
	})
	repeats := slices.Compact(m.repeats)
	m.merged.mu.Lock()
	defer m.merged.mu.Unlock()
	forms := &m.graph.Forms
	for len(repeats) > 0 {
		first := repeats[0].first
		into := records.At(int(first))
		m.tags = append(m.tags[:0], forms.TagSets[into.Tags].Tags...)
		for ; len(repeats) > 0 && repeats[0].first == first; repeats = repeats[1:] {
			m.tags = append(m.tags, forms.TagSets[repeats[0].tags].Tags...)
		}
		n := forms.WithTags(into.Kind, rules.MergeTags(m.tags))
		m.merged.all = append(m.merged.all, mergedForm{m.graph.Offsets[list] + uint64(first), n})
	}
}

func (l *loader) readBadges(ctx context.Context) error {
	g := l.graph
	hasList := make([]bool, len(g.Accounts))
	for _, account := range g.Owners {
		hasList[account] = true
	}
	l.Progress.Stage("badges", 0)
	err := readTable(ctx, l.reader, snapshot.TableBadges, snapshot.ParseBadge, func(r snapshot.Row[snapshot.Badge]) error {
		event, ok := l.eventOf[r.Value.EventID]
		if !ok {
			l.Report.CountWithoutEffect(snapshot.TableBadges, summary.UnknownEvent)
			return nil
		}
		account, ok := g.Numbers.Find(r.Value.Owner)
		switch {
		case l.EFP: // it shows badges of any address
			account = g.Account(r.Value.Owner)
		case !ok || !hasList[account]:
			l.Report.CountWithoutEffect(snapshot.TableBadges, summary.ListlessOwner)
			return nil
		}
		g.Badges = append(g.Badges, render.AccountBadge{Account: account, Badge: render.Badge{Event: event, TokenID: strings.Clone(r.Value.TokenID)}})
		return checkSize("accounts", len(g.Accounts))
	})
	g.FillAccounts()
	l.mergeBadges()
	g.Badges = rules.OneBadge(g.Badges, func(a, b render.AccountBadge) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Event, b.Event))
	}, func(a, b render.AccountBadge) int { return site.CompareTokenIDs(a.TokenID, b.TokenID) })
	return err
}

// readRecommended reads the recommended accounts. They do not become accounts of the graph: what
// the API says about an address does not depend on whether it is recommended.
func (l *loader) readRecommended(ctx context.Context) error {
	g := l.graph
	l.Progress.Stage("recommended", 0)
	seen := map[site.Address]bool{}
	return readTable(ctx, l.reader, snapshot.TableRecommended, snapshot.ParseRecommended, func(r snapshot.Row[snapshot.Recommended]) error {
		if seen[r.Value.Address] {
			l.Report.CountWithoutEffect(snapshot.TableRecommended, summary.RepeatedRow)
			return nil
		}
		seen[r.Value.Address] = true
		g.Recommended = append(g.Recommended, r.Value)
		return nil
	})
}

func checkSize(what string, n int) error {
	if int64(n) > maxItems {
		return fmt.Errorf("more than %d %s", maxItems, what)
	}
	return nil
}
