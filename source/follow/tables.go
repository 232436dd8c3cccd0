package follow

import (
	"fmt"
	"maps"
	"slices"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/snapshot/memory"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/badge"
	"github.com/followpress/followpress/source/profile"
)

// Tables name the sources of the tables apart from lists and records. The zero value has primary
// lists only.
type Tables struct {
	State       string                    // state folder of source/profile and source/badge; "" for none
	ProfilesURL string                    // service of the profiles, for Meta; "" if unknown
	BadgesURL   string                    // service of the badges, for Meta; "" if unknown
	BadgeEvents []string                  // events of the badges, in answer order
	Files       map[snapshot.Table]string // accounts, events, badges and recommended: files of rows that replace the data of the state
}

// copy writes the tables that come from files.
func (t *Tables) copy(w *snapshot.Writer) error {
	for _, table := range slices.Sorted(maps.Keys(t.Files)) {
		if err := w.CopyTable(string(table), t.Files[table]); err != nil {
			return fmt.Errorf("table %s of %s: %w", table, t.Files[table], err)
		}
	}
	return nil
}

// write writes the other tables; own are profiles from the source itself.
func (t *Tables) write(w *snapshot.Writer, g *source.Graph, own ...source.Profiles) error {
	if t.Files[snapshot.TableAccounts] == "" {
		if t.State != "" {
			own = append(own, profile.Profiles(t.State))
		}
		if err := source.WriteAccounts(w, g, own...); err != nil {
			return err
		}
		source.From(g.Profiles, t.ProfilesURL)
	}
	if t.State == "" || len(t.BadgeEvents) == 0 {
		return nil
	}
	var err error
	g.Badges, err = badge.Write(w, t.State, t.BadgeEvents)
	source.From(g.Badges, t.BadgesURL)
	return err
}

// additions holds the tables apart from lists and records in memory. Rows of accounts are split by
// the first byte of their addresses, so that a changed primary list costs only one part.
type additions struct {
	tables   map[snapshot.Table]memory.Piece // all except accounts, unless those come from a file
	profiles [256]memory.Rows                // accounts without primary lists
	naming   [256]map[site.Address]string    // primary lists
	accounts [256]memory.Piece               // profiles and naming combined
	fixed    bool                            // accounts come from a file
}

// read reads the tables.
func (t *Tables) read() (*additions, error) {
	a := &additions{tables: map[snapshot.Table]memory.Piece{}, fixed: t.Files[snapshot.TableAccounts] != ""}
	w := snapshot.InMemory()
	if err := t.copy(w); err != nil {
		return nil, err
	}
	if err := t.write(w, &source.Graph{}); err != nil {
		return nil, err
	}
	for _, table := range []snapshot.Table{snapshot.TableAccounts, snapshot.TableEvents, snapshot.TableBadges, snapshot.TableRecommended} {
		rows, ok, err := w.Rows(table)
		switch {
		case err != nil:
			return nil, err
		case table == snapshot.TableAccounts && !a.fixed:
			if a.profiles, err = rows.ByAddress(); err != nil {
				return nil, err
			}
		case ok:
			a.tables[table] = rows.Piece()
		}
	}
	return a, nil
}

// name sets the primary lists of accounts; "" for none.
func (a *additions) name(accounts []site.Address, primary func(site.Address) string) error {
	if a.fixed {
		return nil
	}
	changed := map[byte]bool{}
	for _, account := range accounts {
		part := account[0]
		changed[part] = true
		if a.naming[part] == nil {
			a.naming[part] = map[site.Address]string{}
		}
		if id := primary(account); id != "" {
			a.naming[part][account] = id
		} else {
			delete(a.naming[part], account)
		}
	}
	for part := range changed {
		if err := a.join(part); err != nil {
			return err
		}
	}
	return nil
}

// join combines one part of the rows of accounts.
func (a *additions) join(part byte) error {
	var naming []snapshot.Account
	for _, account := range slices.SortedFunc(maps.Keys(a.naming[part]), site.Address.Compare) {
		naming = append(naming, snapshot.Account{Address: account, Primary: a.naming[part][account]})
	}
	rows, err := a.profiles[part].WithPrimary(naming)
	a.accounts[part] = rows.Piece()
	return err
}

// instead takes the primary lists from others, which a replaces, and returns the accounts whose
// profile changed.
func (a *additions) instead(others *additions) (changed []site.Address, err error) {
	a.naming = others.naming
	if a.fixed {
		return nil, nil
	}
	for part := range a.profiles {
		changed = append(changed, memory.Addresses(others.profiles[part], a.profiles[part])...)
		if err := a.join(byte(part)); err != nil {
			return nil, err
		}
	}
	return changed, nil
}

// files returns the tables of a snapshot with the given rows of lists and records.
func (a *additions) files(lists memory.Rows, records []memory.Piece) map[snapshot.Table][]memory.Piece {
	all := map[snapshot.Table][]memory.Piece{snapshot.TableLists: {lists.Piece()}, snapshot.TableRecords: records}
	if !a.fixed {
		all[snapshot.TableAccounts] = slices.Clone(a.accounts[:])
	}
	for table, piece := range a.tables {
		all[table] = []memory.Piece{piece}
	}
	return all
}
