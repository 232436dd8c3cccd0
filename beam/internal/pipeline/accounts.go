package pipeline

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/followpress/followpress/beam/internal/dofn"
	"github.com/followpress/followpress/beam/internal/input"
	"github.com/followpress/followpress/beam/internal/wire"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
)

func init() {
	dofn.Register3x1(&claimRowFn{})
	dofn.Register5x1(&claimsFn{})
	dofn.Register6x1(&profilesFn{})
	dofn.Register4x1(&namesFn{})
}

// A claimRowFn reduces a row of accounts to its position and its primary list.
type claimRowFn struct{}

func (*claimRowFn) ProcessElement(address string, value []byte, emit func(string, []byte)) error {
	d := wire.Decode(value)
	r := d.AccountRow()
	r.Profile = wire.Profile{}
	emit(address, r.Append(nil))
	return d.Err()
}

// A claimsFn takes the first row of each account. It emits the claim of a primary list by token ID,
// and invalid rows.
type claimsFn struct {
	SkipInvalid bool
	File        []string // names of the files of the table accounts

	stats tally
}

func (f *claimsFn) ProcessElement(address string, values func(*[]byte) bool, claims, invalid func(string, []byte), _ func(string, int64)) error {
	rows, err := accountRows(values)
	if err != nil {
		return err
	}
	for _, second := range rows[1:] {
		e := &snapshot.RowError{File: f.File[second.File], Line: int(second.Line), Reason: fmt.Sprintf("address: duplicate account %s", wire.KeyAddress(address))}
		if err := reject(e, f.SkipInvalid, snapshot.TableAccounts, second.Position, &f.stats, invalid); err != nil {
			return err
		}
	}
	if primary := rows[0].Primary; primary != "" {
		account := wire.KeyAddress(address)
		claims(primary, account[:])
	}
	return nil
}

func (f *claimsFn) FinishBundle(_, _ func(string, []byte), stats func(string, int64)) {
	f.stats.flush(stats)
}

// accountRows decodes the rows of one account, in order.
func accountRows(values func(*[]byte) bool) (rows []wire.AccountRow, err error) {
	var value []byte
	for values(&value) {
		d := wire.Decode(value)
		rows = append(rows, d.AccountRow())
		if err := d.Err(); err != nil {
			return nil, err
		}
		value = nil
	}
	slices.SortFunc(rows, func(a, b wire.AccountRow) int { return compare(a.Position, b.Position) })
	return rows, nil
}

// A profilesFn chooses the profile of each account with a row or a refreshed profile. It emits the
// profile by address, and the lookup name of the account, with the fields that decide between
// accounts of one name.
type profilesFn struct{ stats tally }

func (f *profilesFn) ProcessElement(
	address string, values func(*[]byte) bool, profiles, names, notes func(string, []byte), _ func(string, int64),
) error {
	var rows []wire.AccountRow
	var refreshed []wire.Refreshed
	var value []byte
	for values(&value) {
		d := wire.Decode(value[1:])
		switch value[0] {
		case kindAccountRow:
			rows = append(rows, d.AccountRow())
		case kindRefreshedOf:
			if r := d.Refreshed(); !r.Badges {
				refreshed = append(refreshed, r)
			}
		}
		if err := d.Err(); err != nil {
			return err
		}
		value = nil
	}
	var p wire.Profile
	known := len(rows) > 0
	if known {
		p = slices.MinFunc(rows, func(a, b wire.AccountRow) int { return compare(a.Position, b.Position) }).Profile
	}
	slices.SortFunc(refreshed, func(a, b wire.Refreshed) int { return cmp.Compare(a.Number, b.Number) })
	before, merged := p.Name, false
	for _, r := range refreshed {
		if len(p.ENS) == 0 || rules.IsNewer(r.Fresh, p.Fresh) {
			p, merged = r.Profile, true
			f.stats.add(input.LongTexts, int64(len(r.Long)))
			if r.NoTexts > 0 {
				f.stats.add(input.NoTexts, int64(r.NoTexts))
				f.stats.add(input.NoTextProfiles, 1)
			}
			for i, text := range r.Long {
				at := wire.Position{Line: r.Number}
				input.NoteLong(notes, input.TableRefreshed, at, string(site.RefreshKey(site.Details, r.Token)), i, text)
			}
		}
	}
	if merged {
		f.stats.add(input.MergedProfiles, 1)
	}
	if !known && !merged {
		return nil
	}
	profiles(address, p.Append(wire.AppendBool([]byte{kindProfile}, known)))
	if p.Name != "" {
		names(p.Name, append(binary.AppendVarint(wire.AppendBool(nil, p.Name != before), p.Fresh), address...))
	}
	return nil
}

func (f *profilesFn) FinishBundle(_, _, _ func(string, []byte), stats func(string, int64)) {
	f.stats.flush(stats)
}

// A namesFn gives each name to one account, and emits the account.
type namesFn struct {
	Config site.Config

	stats tally
}

// ProcessElement assigns a name. It needs no memory for the candidates.
func (f *namesFn) ProcessElement(_ string, values func(*[]byte) bool, named func(string, []byte), _ func(string, int64)) error {
	var first *rules.Namesake
	var value []byte
	for values(&value) {
		d := wire.Decode(value)
		n := rules.Namesake{Refreshed: d.Bool(), Fresh: d.Varint(), Address: wire.KeyAddress(string(d.Rest()))}
		if first == nil || n.Compare(*first) < 0 {
			first = &n
		}
		if err := d.Err(); err != nil {
			return err
		}
		value = nil
	}
	f.stats.add(statNames, 1)
	f.stats.add(statObjects, int64(render.NameObjects(f.Config)))
	named(wire.AddressKey(first.Address), []byte{kindName})
	return nil
}

func (f *namesFn) FinishBundle(_ func(string, []byte), stats func(string, int64)) {
	f.stats.flush(stats)
}
