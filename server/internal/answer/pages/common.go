package pages

import (
	"fmt"
	"math"

	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/server/internal/answer/lookup"
	"github.com/followpress/followpress/server/internal/answer/table"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/site/scan"
)

// CommonFollowers answers with the accounts that a user follows and that follow the leader. The
// leader is the user unless the request names another.
func CommonFollowers(a *compute.Answer) error {
	user, err := lookup.User(a, a.Ask.User)
	if err != nil {
		return err
	}
	led := user
	if a.Ask.Leader != "" {
		leader, _, ok := site.ParseUser(a.Ask.Leader)
		if !ok {
			return &compute.ProblemError{Problem: site.NoSuchName}
		}
		if led, err = lookup.User(a, leader); err != nil {
			return err
		}
	}
	page, length, err := common(a, user, table.Followers(a, led))
	if err != nil {
		return err
	}
	return compute.AddRows(a, `{"results":[`, &page, scan.ParseFollowerRow, func(b []byte, _ int, r scan.FollowerRow) []byte {
		b = append(append(b, `{"address":"`...), r.Address...)
		b = append(append(b, `","name":`...), r.Name...)
		b = append(append(b, `,"avatar":`...), r.Avatar...)
		b = append(append(b, `,"header":`...), r.Header...)
		return fmt.Appendf(b, `,"mutuals_rank":"%d"}`, r.MutualsRank)
	}, fmt.Sprintf(`],"length":%d}`, length))
}

// common returns a page of the followers in a table that a user follows, ordered by mutuals rank,
// and their total number.
func common(a *compute.Answer, user lookup.Subject, t *table.Table) (page compute.Rows, length int, err error) {
	if user.List == "" || t.Total == 0 {
		return compute.Rows{}, 0, nil
	}
	if err := a.Take(user.Held * compute.SetEntryBytes); err != nil {
		return compute.Rows{}, 0, err
	}
	followed := make(map[site.Address]struct{}, user.Held)
	err = lookup.Records(a, user.List, user.Held, func(r scan.HeldRecord) error {
		if address, err := site.ParseAddress(r.Address); err == nil && scan.StateOf(r.Tags) == rules.Follow {
			followed[address] = struct{}{}
		}
		return nil
	})
	if err != nil {
		return compute.Rows{}, 0, err
	}
	var order table.Order // by mutuals rank
	for row, err := range t.Rows(a) {
		if err != nil {
			return compute.Rows{}, 0, err
		}
		r, err := scan.ParseFollowerRow(row.Text)
		if err != nil {
			return compute.Rows{}, 0, err
		}
		address, err := site.ParseAddress(r.Address)
		if err != nil {
			return compute.Rows{}, 0, err
		}
		if _, ok := followed[address]; !ok || scan.StateOf(r.Tags) != rules.Follow {
			continue
		}
		last := math.MaxUint32 // unranked accounts come last
		if r.MutualsRank > 0 {
			last = r.MutualsRank
		}
		if err := order.Add(a, row.Index, r.Address, math.MaxUint32-last); err != nil {
			return compute.Rows{}, 0, err
		}
	}
	indexes, err := order.Page(a, a.Ask.Offset, a.Ask.Limit)
	if err != nil {
		return compute.Rows{}, 0, err
	}
	page, err = t.RowsAt(a, indexes)
	return page, len(order), err
}
