package pages

import (
	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/server/internal/answer/table"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/scan"
)

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
