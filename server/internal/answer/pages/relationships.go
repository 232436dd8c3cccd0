package pages

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/server/internal/answer/lookup"
	"github.com/followpress/followpress/server/internal/answer/table"
	"github.com/followpress/followpress/site/scan"
)

// Relationships answers with the accounts that the user's list holds with a tag, in list order, or
// with the accounts whose primary lists hold the user with the tag, ordered by list number.
func Relationships(a *compute.Answer) error {
	s, err := lookup.User(a, a.Ask.User)
	if err != nil {
		return err
	}
	tag := scan.TagFilter{string(rawjson.AppendString(nil, a.Ask.Tag)): {}}
	if err := a.AddText(`{"relationships":[`); err != nil {
		return err
	}
	if a.Ask.Incoming {
		err = taggedBy(a, s, tag)
	} else {
		err = tagged(a, s, tag)
	}
	if err != nil {
		return err
	}
	return a.AddText("]}")
}

// tagged appends the accounts in a user's list that have a tag.
func tagged(a *compute.Answer, s lookup.Subject, tag scan.TagFilter) error {
	skip, added := a.Ask.Offset, 0
	return lookup.Records(a, s.List, s.Held, func(r scan.HeldRecord) error {
		switch {
		case !tag.Match(r.Tags) || added == a.Ask.Limit:
			return nil
		case skip > 0:
			skip--
			return nil
		}
		added++
		return a.AddEntry(added == 1, len(r.Tags), func(b []byte) []byte { return appendTagged(b, r.Address, r.Tags) })
	})
}

func appendTagged(b, address, tags []byte) []byte {
	b = append(append(b, `{"address":"`...), address...)
	return append(append(append(b, `","tags":`...), tags...), '}')
}

// taggedBy appends the accounts whose primary lists hold a user with a tag.
func taggedBy(a *compute.Answer, s lookup.Subject, tag scan.TagFilter) error {
	type holder struct {
		list  []byte
		index int
	}
	const holderBytes = 48 // without the list's token ID
	var holders []holder
	t := table.Followers(a, s)
	for row, err := range t.Rows(a) {
		if err != nil {
			return err
		}
		r, err := scan.ParseFollowerRow(row.Text)
		if err != nil {
			return err
		}
		if !tag.Match(r.Tags) {
			continue
		}
		if err := a.Take(2*holderBytes + len(r.List)); err != nil {
			return err
		}
		holders = append(holders, holder{bytes.Clone(r.List), row.Index})
	}
	slices.SortFunc(holders, func(a, b holder) int {
		return cmp.Or(cmp.Compare(len(a.list), len(b.list)), bytes.Compare(a.list, b.list))
	})
	var indexes []int
	for _, h := range table.Window(holders, a.Ask.Offset, a.Ask.Limit) {
		indexes = append(indexes, h.index)
	}
	page, err := t.RowsAt(a, indexes)
	if err != nil {
		return err
	}
	return compute.AddRows(a, "", &page, scan.ParseFollowerRow, func(b []byte, _ int, r scan.FollowerRow) []byte {
		return appendTagged(b, r.Address, r.Tags)
	}, "")
}
