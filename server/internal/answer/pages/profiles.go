package pages

import (
	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/server/internal/answer/table"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/scan"
)

// Profiles are the members ens of the entries of a page; nil if it shows none.
type profiles [][]byte

func (p profiles) at(i int) []byte {
	if p == nil {
		return nil
	}
	return p[i]
}

// profilesOf reads the profiles of accounts in rows, if the request includes them, as far as a page may have
// them: the rows after them are left out. Those without a name have no member.
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

// profile makes the member ens of an account.
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

// growFor makes room for the entries of a page, so that a large body does not double.
func growFor(a *compute.Answer, page *compute.Rows, p profiles) error {
	bytes := compute.EntrySpare
	for i := range page.Len() {
		bytes += len(page.At(i)) + len(p.at(i)) + entryBytes
	}
	return a.Grow(bytes)
}

// entryBytes is about what an entry of a page has beside the texts of its row and its profile.
const entryBytes = 256
