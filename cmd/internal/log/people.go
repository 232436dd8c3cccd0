package log

import (
	"fmt"
	"iter"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// A profile is an account with the name that its profile has.
type profile struct {
	address site.Address
	name    string
	fresh   int64
}

// find finds the account of a query, whose name is that of one of the profiles.
func (q *query) find(profiles iter.Seq2[profile, error], where string) (*site.Address, error) {
	if q.user == "" {
		return nil, nil //nolint:nilnil // any
	}
	if q.address {
		address, err := site.ParseAddress(q.user)
		return &address, err
	}
	var found *site.Address
	var best rules.Namesake
	for p, err := range profiles {
		if err != nil {
			return nil, err
		}
		is := rules.Namesake{Fresh: p.fresh, Address: p.address}
		if name, ok := site.NormalizeName(p.name); ok && name == q.user && (found == nil || is.Compare(best) < 0) {
			best, found = is, &p.address
		}
	}
	if found == nil {
		return nil, fmt.Errorf("--user=%s: no profile of %s has this name: try the address", site.Quoted(q.user), where)
	}
	return found, nil
}

// name gives the accounts of lines the names that they have in profiles.
func name(lines []line, profiles iter.Seq2[profile, error]) error {
	names := map[string]string{}
	for i := range lines {
		names[lines[i].by.address], names[lines[i].about.address] = "", ""
	}
	for p, err := range profiles {
		if err != nil {
			return err
		}
		if _, wanted := names[p.address.String()]; wanted {
			names[p.address.String()] = p.name
		}
	}
	for i := range lines {
		l := &lines[i]
		l.by.name, l.about.name = names[l.by.address], names[l.about.address]
	}
	return nil
}
