package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/followpress/followpress/beam/internal/dofn"
	"github.com/followpress/followpress/beam/internal/input"
	"github.com/followpress/followpress/beam/internal/wire"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
)

// Kinds of values by token ID.
const (
	kindListRow byte = iota
	kindClaim
	kindRun
	kindRefreshed
)

// Kinds of values by address.
const (
	kindAccountRow byte = iota
	kindRefreshedOf
	kindProfile
	kindName
	kindCounts
	kindPlaces
	kindList
	kindBadge
	kindRecommended
)

func init() {
	dofn.Register5x1(&listsFn{})
}

// A listsFn builds lists from the values by token ID: rows of lists, accounts that claim a list as
// their primary one, records, refreshed objects. Its first output has lists and refreshed objects
// by the address of their account, the second one invalid rows.
type listsFn struct {
	Config      site.Config
	SkipInvalid bool
	File        []string // names of the files of the table lists

	stats  tally
	list   wire.List
	merger merger
}

func (f *listsFn) ProcessElement(
	token string, values func(*[]byte) bool,
	byAddress, invalid func(string, []byte), stats func(string, int64),
) error {
	var rows []wire.ListRow
	var claims []site.Address
	var runs, refreshed [][]byte
	var value []byte
	for values(&value) {
		d := wire.Decode(value[1:])
		switch value[0] {
		case kindListRow:
			rows = append(rows, d.ListRow())
		case kindClaim:
			claims = append(claims, d.Address())
		case kindRun:
			runs = append(runs, value[1:])
		case kindRefreshed:
			refreshed = append(refreshed, value[1:])
		}
		if err := d.Err(); err != nil {
			return err
		}
		value = nil
	}
	if len(rows) == 0 {
		f.withoutList(claims, runs, refreshed)
		return nil
	}
	slices.SortFunc(rows, func(a, b wire.ListRow) int { return compare(a.Position, b.Position) })
	for _, second := range rows[1:] {
		e := &snapshot.RowError{File: f.File[second.File], Line: int(second.Line), Reason: fmt.Sprintf("token_id: duplicate list %s", token)}
		if err := reject(e, f.SkipInvalid, snapshot.TableLists, second.Position, &f.stats, invalid); err != nil {
			return err
		}
	}
	l := &f.list
	l.Token, l.Account, l.Primary = token, rows[0].Account, false
	for _, address := range claims {
		if rules.IsPrimary(address, l.Account) {
			l.Primary = true
		} else {
			f.stats.add(input.WithoutEffect(snapshot.TableAccounts, foreignPrimary), 1)
		}
	}
	repeated, err := f.merger.merge(l, runs, f.Config.EFP())
	if err != nil {
		return err
	}
	f.stats.add(input.RepeatedRecords, int64(repeated))
	f.count(l)
	address := wire.AddressKey(l.Account)
	byAddress(address, l.Append([]byte{kindList}))
	for _, object := range refreshed {
		f.refreshed(l, address, object, byAddress)
	}
	return nil
}

func (f *listsFn) FinishBundle(_, _ func(string, []byte), stats func(string, int64)) {
	f.stats.flush(stats)
}

// withoutList counts values that refer to a missing list.
func (f *listsFn) withoutList(claims []site.Address, runs, refreshed [][]byte) {
	f.stats.add(input.WithoutEffect(snapshot.TableAccounts, missingPrimary), int64(len(claims)))
	f.stats.add(input.WithoutEffect(input.TableRefreshed, unknownList), int64(len(refreshed)))
	for _, run := range runs {
		d := wire.Decode(run)
		d.RunFile()
		for d.More() {
			d.Row()
			f.stats.add(input.WithoutEffect(snapshot.TableRecords, unknownList), 1)
		}
	}
}

// count counts a list for the root, the explorer and the number of objects.
func (f *listsFn) count(l *wire.List) {
	f.stats.add(statLists, 1)
	f.stats.add(statRecords, int64(len(l.Records)))
	follows, held := 0, 0
	for i := range l.Records {
		if l.IsHeld(&l.Records[i]) {
			held++
		}
		if l.IsFollow(&l.Records[i]) {
			follows++
		}
	}
	f.stats.add(statFollows, int64(follows))
	f.stats.add(statObjects, int64(render.ListObjects(f.Config, held, follows, l.Primary)))
	if !l.Primary {
		return
	}
	f.stats.add(statPrimaries, 1)
	if !f.Config.Explorer {
		return
	}
	for i := range l.Records {
		r := &l.Records[i]
		for _, tag := range l.Forms[r.Form].Tags {
			f.stats.add(statTag+tag, 1)
		}
		if r.Added != snapshot.NoTime {
			year, month, _ := time.UnixMilli(r.Added).UTC().Date()
			f.stats.add(statMonth+strconv.FormatInt(time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).UnixMilli(), 10), 1)
		}
	}
}

// refreshed passes a refreshed object to the account of the list, unless it is about another
// account.
func (f *listsFn) refreshed(l *wire.List, address string, object []byte, byAddress func(string, []byte)) {
	d := wire.Decode(object)
	if o := d.Refreshed(); o.IsAbout && o.About != l.Account {
		f.stats.add(input.WithoutEffect(input.TableRefreshed, foreignList), 1)
		return
	}
	byAddress(address, append([]byte{kindRefreshedOf}, object...))
}

func compare(a, b wire.Position) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
}

// A merger merges the rows of lists, sequentially. It reuses its memory.
type merger struct {
	runs  []positionedRun
	first map[identity]int  // index of a record
	forms map[string]uint32 // numbers of the list's record forms, by their encoding
	key   []byte
	tags  map[int][]string // tags of records with merged tags
}

type identity = rules.Identity[rules.Kind, string] // includes the data

type positionedRun struct {
	wire.Position
	rows wire.Decoder
}

// merge sets the records of a list. It returns the number of rows merged into an earlier one, which
// gets all tags.
func (m *merger) merge(l *wire.List, runs [][]byte, timed bool) (repeated int, err error) {
	l.Forms, l.Records, m.runs = l.Forms[:0], l.Records[:0], m.runs[:0]
	if m.first == nil {
		m.first, m.forms, m.tags = map[identity]int{}, map[string]uint32{}, map[int][]string{}
	}
	clear(m.first)
	clear(m.forms)
	clear(m.tags)
	for _, run := range runs {
		d := wire.Decode(run)
		file := d.RunFile()
		rest := d
		m.runs = append(m.runs, positionedRun{wire.Position{File: file, Line: rest.Uvarint()}, d})
	}
	slices.SortFunc(m.runs, func(a, b positionedRun) int { return compare(a.Position, b.Position) })
	for i := range m.runs {
		d := &m.runs[i].rows
		for d.More() {
			row := d.Row()
			if !m.add(l, &row.Record, timed) {
				repeated++
			}
		}
		if err := d.Err(); err != nil {
			return 0, err
		}
	}
	for i, tags := range m.tags {
		r := &l.Records[i]
		form := l.Forms[r.Form]
		tags = append(tags, form.Tags...)
		r.Form = m.form(l, form.Version, form.Type, rules.MergeTags(tags))
	}
	return repeated, nil
}

// add adds a record, or returns false and keeps its tags for the earlier equal record.
func (m *merger) add(l *wire.List, row *snapshot.Record, timed bool) bool {
	is := identity{Kind: rules.Kind{Version: row.Version, Type: row.Type}, Data: string(row.Data)}
	if i, ok := m.first[is]; ok {
		if len(row.Tags) > 0 {
			m.tags[i] = append(m.tags[i], row.Tags...)
		}
		return false
	}
	m.first[is] = len(l.Records)
	r := wire.Record{Form: m.form(l, row.Version, row.Type, row.Tags), Added: snapshot.NoTime}
	if r.Address, r.IsAddress = row.Address(); !r.IsAddress {
		r.Data = row.Data
	}
	if timed {
		r.Added = row.Added
	}
	l.Records = append(l.Records, r)
	return true
}

// form returns the index of a form, adding a new one.
func (m *merger) form(l *wire.List, version uint32, recordType string, tags []string) uint32 {
	form := wire.Form{Version: version, Type: recordType, Tags: tags}
	m.key = form.Append(m.key[:0])
	if n, ok := m.forms[string(m.key)]; ok {
		return n
	}
	n := uint32(len(l.Forms))
	m.forms[string(m.key)] = n
	l.Forms = append(l.Forms, wire.NewForm(version, recordType, tags))
	return n
}
