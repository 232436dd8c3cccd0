package source

import "github.com/followpress/followpress/site"

// A Deployment says where the contracts are: on all chains together one registry, one contract of
// account metadata, and any number of contracts of records.
type Deployment struct {
	Chains []Chain
}

// A Chain is a chain of a Deployment.
type Chain struct {
	ID       uint64
	Name     string // such as Base
	Registry *Start // nil if it is on another chain
	Accounts *Start // likewise
	Records  []Start
}

// A Start is where a contract is, and the first block that may have events of it.
type Start struct {
	Address    site.Address
	FirstBlock uint64
}

// Registry is the registry of lists.
func (d *Deployment) Registry() Contract {
	return d.only(func(c Chain) *Start { return c.Registry })
}

// Accounts is the contract of account metadata.
func (d *Deployment) Accounts() Contract {
	return d.only(func(c Chain) *Start { return c.Accounts })
}

func (d *Deployment) only(of func(Chain) *Start) Contract {
	for _, c := range d.Chains {
		if s := of(c); s != nil {
			return Contract{c.ID, s.Address}
		}
	}
	return Contract{}
}

// HasRecords reports whether a contract has records.
func (d *Deployment) HasRecords(contract Contract) bool {
	for _, c := range d.Chains {
		for _, s := range c.Records {
			if contract == (Contract{c.ID, s.Address}) {
				return true
			}
		}
	}
	return false
}
