package load

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
)

func (l *loader) readBadges(ctx context.Context) error {
	g := l.graph
	hasList := make([]bool, len(g.Accounts))
	for _, account := range g.Owners {
		hasList[account] = true
	}
	l.Progress.Stage("badges", 0)
	err := readTable(ctx, l.reader, snapshot.TableBadges, func(r snapshot.Row[snapshot.Badge]) error {
		event, ok := l.eventOf[r.Value.EventID]
		if !ok {
			l.Report.CountWithoutEffect(snapshot.TableBadges, summary.UnknownEvent)
			return nil
		}
		account, ok := g.Numbers.Find(r.Value.Owner)
		switch {
		case l.Config.EFP(): // shows badges of any address
			account = g.Account(r.Value.Owner)
		case !ok || !hasList[account]:
			l.Report.CountWithoutEffect(snapshot.TableBadges, summary.ListlessOwner)
			return nil
		}
		g.Badges = append(g.Badges, graph.AccountBadge{Account: account, Badge: render.Badge{Event: event, TokenID: strings.Clone(r.Value.TokenID)}})
		return checkSize("accounts", len(g.Accounts))
	})
	g.FillAccounts()
	l.mergeBadges()
	g.Badges = rules.OneBadge(g.Badges, func(a, b graph.AccountBadge) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Event, b.Event))
	}, func(a, b graph.AccountBadge) int { return site.CompareTokenIDs(a.TokenID, b.TokenID) })
	return err
}

func (l *loader) mergeBadges() {
	g := l.graph
	g.Badges = slices.DeleteFunc(g.Badges, func(b graph.AccountBadge) bool { return l.badges.Decide(accountEvent{b.Account, b.Event}) })
	for at, token := range l.badges.All() {
		g.Badges = append(g.Badges, graph.AccountBadge{Account: at.account, Badge: render.Badge{Event: at.event, TokenID: token}})
	}
	l.badges = rules.RefreshedBadges[accountEvent]{}
}
