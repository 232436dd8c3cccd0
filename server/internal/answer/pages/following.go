// Package pages answers with pages of the records of a list and of the followers of an account.
// Only sites of the whole API (site.APIEFP) have these answers.
package pages

import (
	"strconv"

	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/server/internal/answer/lookup"
	"github.com/followpress/followpress/server/internal/answer/table"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/site/scan"
)

// Following answers with a page of the accounts that a list follows.
func Following(a *compute.Answer) error { return following(a, false) }

// AllFollowing answers with a page of all records of a list.
func AllFollowing(a *compute.Answer) error { return following(a, true) }

func following(a *compute.Answer, all bool) error {
	s, err := lookup.Asked(a)
	if err != nil {
		return err
	}
	t := table.Held(a, s)
	page := t.Asked(a, all)
	if a.Ask.Mutuals {
		page.Objects = table.Followers(a, s).Shards() * compute.ShardObjects
	}
	return followingPage(a, s, t, page, nil)
}

// SearchFollowing answers with a page of the accounts that a list follows and that match a term, in
// list order.
func SearchFollowing(a *compute.Answer) error {
	s, err := lookup.Asked(a)
	if err != nil {
		return err
	}
	return followingPage(a, s, table.Held(a, s), matching(a), appendNameAvatar)
}

// matching selects the rows that match the term of the request; all rows without a term.
func matching(a *compute.Answer) table.Selection {
	s := table.Selection{Offset: a.Ask.Offset, Limit: a.Ask.Limit}
	if a.Ask.Term != "" {
		s.Match = scan.NewMatcher(a.Ask.Term)
	}
	return s
}

// appendNameAvatar appends the short profile of search results.
func appendNameAvatar(b, name, avatar []byte) []byte {
	b = append(append(b, `,"ens":{"name":`...), name...)
	b = append(append(b, `,"avatar":`...), avatar...)
	return append(b, '}')
}

// followingPage appends a page of a subject's list. appendENS appends the profile of an entry; nil
// means no profile, or the one that Ask.ENS asks for.
func followingPage(a *compute.Answer, of lookup.Subject, t *table.Table, s table.Selection, appendENS func(b, name, avatar []byte) []byte) error {
	selected, err := t.Select(a, s)
	if err != nil {
		return err
	}
	profiles, err := profilesOf(a, t, &selected)
	if err != nil {
		return err
	}
	mutual, err := mutualsAmong(a, of, t, &selected)
	if err != nil {
		return err
	}
	if err := growFor(a, &selected, profiles); err != nil {
		return err
	}
	return compute.AddRows(a, `{"following":[`, &selected, scan.ParseHeldRow, func(b []byte, i int, r scan.HeldRow) []byte {
		b = appendFollowing(b, r.Version, r.Address, r.Tags)
		if appendENS != nil {
			b = appendENS(b, r.Name, r.Avatar)
		}
		if a.Ask.Mutuals {
			b = appendIsMutual(b, mutual[string(r.Address)])
		}
		return append(append(appendAsked(a, b, scan.StateOf(r.Tags)), profiles.at(i)...), '}')
	}, "]}")
}

// appendFollowing appends a record of a list, without the closing brace.
func appendFollowing(b []byte, version uint32, address, tags []byte) []byte {
	b = strconv.AppendUint(append(b, `{"version":`...), uint64(version), 10)
	b = append(append(b, `,"record_type":"`+rules.TypeAddress+`","data":"`...), address...)
	b = append(append(b, `","address":"`...), address...)
	return append(append(b, `","tags":`...), tags...)
}

// appendAsked appends the states that the request includes.
func appendAsked(a *compute.Answer, b []byte, s rules.State) []byte {
	if a.Ask.Blocked {
		b = strconv.AppendBool(append(b, `,"is_blocked":`...), s&rules.Block != 0)
	}
	if a.Ask.Muted {
		b = strconv.AppendBool(append(b, `,"is_muted":`...), s&rules.Mute != 0)
	}
	return b
}

// mutualsAmong returns the accounts in rows of a list that follow the list's account back.
func mutualsAmong(a *compute.Answer, s lookup.Subject, t *table.Table, page *compute.Rows) (map[string]bool, error) {
	if !a.Ask.Mutuals {
		return nil, nil
	}
	if err := a.Take(page.Len() * compute.StateEntryBytes); err != nil {
		return nil, err
	}
	mutual := make(map[string]bool, page.Len())
	for i := range page.Len() {
		address, err := t.Address(page.At(i))
		if err != nil {
			return nil, err
		}
		mutual[string(address)] = false
	}
	if page.Len() == 0 || s.Followers == 0 {
		return mutual, nil
	}
	for row, err := range table.Followers(a, s).Rows(a) {
		if err != nil {
			return nil, err
		}
		r, err := scan.ParseFollowerRow(row.Text)
		if err != nil {
			return nil, err
		}
		if _, asked := mutual[string(r.Address)]; asked {
			mutual[string(r.Address)] = table.IsMutual(s.Address, r.Address, r.Tags, r.State)
		}
	}
	return mutual, nil
}

// Addresses answers with the addresses in a list, in list order.
func Addresses(a *compute.Answer) error {
	list, held, err := lookup.AskedList(a)
	if err != nil {
		return err
	}
	a.Body = append(a.Body, '[')
	first := true
	err = lookup.Records(a, list, held, func(r scan.HeldRecord) error {
		err := a.AddEntry(first, len(r.Address), func(b []byte) []byte {
			return append(append(append(b, '"'), r.Address...), '"')
		})
		first = false
		return err
	})
	if err != nil {
		return err
	}
	return a.AddText("]")
}

// Export answers with all accounts that a list follows, in list order.
func Export(a *compute.Answer) error {
	a.Body = append(a.Body, `{"following":[`...)
	first := true
	err := lookup.Records(a, a.Ask.TokenID, lookup.AnyNumber, func(r scan.HeldRecord) error {
		if scan.StateOf(r.Tags) != rules.Follow {
			return nil
		}
		err := a.AddEntry(first, len(r.Tags), func(b []byte) []byte { return append(appendFollowing(b, r.Version, r.Address, r.Tags), '}') })
		first = false
		return err
	})
	if err != nil {
		return err
	}
	return a.AddText("]}")
}

// Records answers with the records of a user's primary list.
func Records(a *compute.Answer) error {
	s, err := lookup.User(a, a.Ask.User)
	if err != nil {
		return err
	}
	if s.List == "" {
		return a.AddText(`{"records":[]}`)
	}
	return a.UseKnown(a.Root.Config.ListKey(s.List, site.Records), func(records []byte) error { return a.Add(records) })
}

func appendIsMutual(b []byte, is bool) []byte {
	return strconv.AppendBool(append(b, `,"is_mutual":`...), is)
}

// profiles holds the ens member of each entry of a page; nil if the page shows none.
type profiles [][]byte

func (p profiles) at(i int) []byte {
	if p == nil {
		return nil
	}
	return p[i]
}

// profilesOf reads the profiles of the accounts in rows if the request includes them. Rows beyond
// the size limit of a page are dropped. Accounts without a name have no ens member.
func profilesOf(a *compute.Answer, t *table.Table, page *compute.Rows) (all profiles, err error) {
	if !a.Ask.ENS {
		return nil, nil
	}
	keys := make([]site.Key, page.Len())
	for i := range keys {
		address, err := t.Address(page.At(i))
		if err != nil {
			return nil, err
		}
		keys[i] = a.Root.Config.UserObjectKey(string(address), site.Account)
	}
	size := page.Bytes()
	for o, err := range a.Objects(compute.Series{Key: func(i int) site.Key { return keys[i] }, End: len(keys), Bytes: table.PageRowENSBytes}) {
		if err != nil {
			return nil, err
		}
		entry, err := profile(a, o.Body)
		if err != nil {
			return nil, err
		}
		if size += len(entry); size > compute.MostPageBytes && len(all) > 0 {
			page.Truncate(len(all))
			break
		}
		all = append(all, entry)
	}
	return all, nil
}

// profile returns the ens member of an account.
func profile(a *compute.Answer, body []byte) ([]byte, error) {
	account, err := scan.ParseAccount(body)
	if err != nil || !account.HasName() {
		return nil, err
	}
	if err := a.Take(len(body)); err != nil {
		return nil, err
	}
	return account.AppendEntry([]byte(`,"ens":`)), nil
}

// growFor reserves memory for the entries of a page, so that a large body need not be copied as it
// grows.
func growFor(a *compute.Answer, page *compute.Rows, p profiles) error {
	bytes := compute.EntrySpare
	for i := range page.Len() {
		bytes += len(page.At(i)) + len(p.at(i)) + entryBytes
	}
	return a.Grow(bytes)
}

// entryBytes is the approximate size of an entry apart from the strings of its row and its profile.
const entryBytes = 256
