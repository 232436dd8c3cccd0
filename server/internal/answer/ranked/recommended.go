package ranked

import (
	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/server/internal/answer/lookup"
	"github.com/followpress/followpress/server/internal/answer/table"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/scan"
)

// Recommended answers with recommended accounts.
func Recommended(a *compute.Answer) error { return recommended(a, appendRecommended) }

// RecommendedDetails answers with recommended accounts and their details.
func RecommendedDetails(a *compute.Answer) error { return recommended(a, appendDetails) }

// recommended appends recommended accounts, except the user and the accounts in the user's list.
func recommended(a *compute.Answer, appendEntry func(b []byte, r scan.RecommendedRow) []byte) error {
	s, err := lookup.Asked(a)
	if err != nil {
		return err
	}
	if err := a.Take(s.Held * compute.SetEntryBytes); err != nil {
		return err
	}
	held := make(map[string]struct{}, s.Held+1)
	held[s.Address] = struct{}{}
	err = lookup.Records(a, s.List, s.Held, func(r scan.HeldRecord) error {
		held[string(r.Address)] = struct{}{}
		return nil
	})
	if err != nil {
		return err
	}
	t, err := table.OfSite(a, site.RecommendedShardKey)
	if err != nil {
		return err
	}
	if err := a.AddText(`{"recommended":[`); err != nil {
		return err
	}
	skip, added := a.Ask.Offset, 0
	for row, err := range t.Rows(a) {
		if err != nil {
			return err
		}
		r, err := scan.ParseRecommendedRow(row.Text)
		if err != nil {
			return err
		}
		if _, ok := held[string(r.Address)]; ok {
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		if added > 0 && a.PageEnds(len(row.Text)) {
			break
		}
		if err := a.AddEntry(added == 0, len(row.Text), func(b []byte) []byte { return appendEntry(b, r) }); err != nil {
			return err
		}
		if added++; added == a.Ask.Limit {
			break
		}
	}
	return a.AddText("]}")
}

// appendRecommended appends an entry for recommended.
func appendRecommended(b []byte, r scan.RecommendedRow) []byte {
	b = append(append(b, `{"name":`...), compute.NullIfEmpty(r.Name)...)
	b = append(append(b, `,"address":"`...), r.Address...)
	b = append(append(b, `","avatar":`...), compute.NullIfEmpty(r.Avatar)...)
	b = append(append(b, `,"header":`...), compute.NullIfEmpty(r.Header)...)
	return append(append(append(b, `,"class":`...), r.Class...), '}')
}

// appendDetails appends an entry for recommended/details.
func appendDetails(b []byte, r scan.RecommendedRow) []byte {
	b = append(append(b, `{"address":"`...), r.Address...)
	b = append(append(b, `","ens":{"name":`...), r.Name...)
	b = append(append(b, `,"avatar":`...), r.Avatar...)
	b = append(append(b, `,"records":`...), r.Records...)
	b = append(append(b, `},"stats":{"followers_count":`...), r.Followers...)
	b = append(append(b, `,"following_count":`...), r.Following...)
	b = append(append(append(b, `},"ranks":{"mutuals_rank":"`...), r.Ranks[0]...), '"')
	for i, name := range [...]string{"followers_rank", "following_rank", "top8_rank", "blocks_rank"} {
		b = appendNumberText(b, name, r.Ranks[i+1])
	}
	return append(b, "}}"...)
}
