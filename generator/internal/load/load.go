// Package load reads the tables of a snapshot, and refreshed data, into a graph.Graph.
package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
)

// Graph reads a snapshot into a graph without ranks. It returns a *snapshot.RowError for an invalid
// row.
func Graph(ctx context.Context, o Options) (*graph.Graph, error) {
	r := &reader{Options: o, file: map[snapshot.Table]string{}}
	asOf, err := snapshot.ReadAsOf(r.Snapshot)
	if err != nil {
		return nil, err
	}
	limits := r.Config.ProfileLimits()
	r.Report.AsOf, r.Report.LongTexts.Most, r.Report.LongTexts.MostProfile = asOf, limits.Text, limits.Whole
	if err := r.readInputs(); err != nil {
		return nil, err
	}
	// Open all tables before reading the first, so that a missing one is reported at once.
	for _, t := range snapshot.Tables() {
		if err := snapshot.CheckTable(r.Snapshot, t); err != nil {
			return nil, err
		}
	}
	l := &loader{reader: r, graph: graph.NewGraph(asOf), eventOf: map[string]uint32{}}
	read := []func(context.Context) error{l.readEvents, l.readLists, l.readAccounts, l.readRecords, l.readBadges}
	var listOps *uint64
	if r.Config.EFP() {
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
	if r.readsOps() {
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
	return readTable(ctx, l.reader, snapshot.TableEvents, func(r snapshot.Row[site.Event]) error {
		id := strconv.FormatUint(r.Value.ID, 10)
		if _, ok := l.eventOf[id]; ok {
			return fmt.Errorf("id: duplicate event %s", id)
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
	return readTable(ctx, l.reader, snapshot.TableLists, func(r snapshot.Row[snapshot.List]) error {
		list, added := g.Lists.Add(r.Value.TokenID)
		if !added {
			return fmt.Errorf("token_id: duplicate list %s", r.Value.TokenID)
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
		long    []site.LongText // omitted from the profile
		noTexts int             // number of omitted long texts
		primary uint32          // list named as primary; None, or noList if the list does not exist
	}
	const noList = graph.None - 1
	convert := func(in *snapshot.Account) (row, error) {
		r := row{address: in.Address, primary: graph.None}
		if in.ENS != nil {
			var ens site.Profile
			ens, r.long = in.ENS.Within(l.Config.ProfileLimits())
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
			return fmt.Errorf("address: duplicate account %s", r.Value.address)
		}
		l.seen[account] = true
		switch list := r.Value.primary; {
		case list == graph.None:
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
			g.Names = append(g.Names, graph.LookupName{Name: l.texts.keep(string(name)), Account: uint32(account)})
		}
	}
	inorder.Sort(l.Workers, g.Names, func(a, b graph.LookupName) int {
		if order := strings.Compare(a.Name, b.Name); order != 0 {
			return order // without reading the profiles, which are far away in memory
		}
		return l.namesake(a.Account).Compare(l.namesake(b.Account))
	})
	for i := 1; i < len(g.Names); i++ {
		if g.Names[i].Name == g.Names[i-1].Name {
			g.Profiles.Unname(g.Names[i].Account) // another account has this name
		}
	}
	g.Names = slices.CompactFunc(g.Names, func(a, b graph.LookupName) bool { return a.Name == b.Name })
}

func (l *loader) namesake(account uint32) rules.Namesake {
	_, refreshed := l.renamed[account]
	return rules.Namesake{Refreshed: refreshed, Fresh: l.graph.Profiles.Fresh(account), Address: l.graph.Accounts[account]}
}

// readRecommended reads the recommended accounts. They do not become accounts of the graph: API
// answers about an address do not depend on recommendations.
func (l *loader) readRecommended(ctx context.Context) error {
	g := l.graph
	l.Progress.Stage("recommended", 0)
	seen := map[site.Address]bool{}
	return readTable(ctx, l.reader, snapshot.TableRecommended, func(r snapshot.Row[snapshot.Recommended]) error {
		if seen[r.Value.Address] {
			l.Report.CountWithoutEffect(snapshot.TableRecommended, summary.RepeatedRow)
			return nil
		}
		seen[r.Value.Address] = true
		g.Recommended = append(g.Recommended, r.Value)
		return nil
	})
}
