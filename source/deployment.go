package source

import (
	"bytes"
	_ "embed" // embeds the production deployment
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
)

// A Deployment names the contracts. All chains together have one registry, one contract of account
// metadata, and any number of records contracts.
type Deployment struct {
	Chains []Chain
}

// A Chain is a chain of a Deployment.
type Chain struct {
	ID       uint64
	Name     string // such as Base
	Registry *Start // nil if it is on another chain
	Accounts *Start // nil if it is on another chain
	Records  []Start
}

// A Start is the address of a contract and the first block that may have its events.
type Start struct {
	Address    site.Address
	FirstBlock uint64
}

//go:embed deployments/efp.json
var production []byte

// Production returns the deployment of EFP on Base, OP Mainnet and Ethereum.
func Production() *Deployment {
	d, err := ParseDeployment(production)
	if err != nil {
		panic(err) // a test parses it
	}
	return d
}

// chainJSON is a chain in a deployment file; deployments/efp.json is an example.
type chainJSON struct {
	ID       uint64      `json:"id"`
	Name     string      `json:"name"`
	Registry *startJSON  `json:"registry"`
	Accounts *startJSON  `json:"account_metadata"`
	Records  []startJSON `json:"records"`
}

type startJSON struct {
	Address    string  `json:"address"`
	FirstBlock *uint64 `json:"first_block"`
}

// ParseDeployment parses a deployment from JSON in the form of deployments/efp.json. Unknown
// members are errors: otherwise a misspelt name would silently omit a contract.
func ParseDeployment(text []byte) (*Deployment, error) {
	var file struct {
		Chains []chainJSON `json:"chains"`
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&file); err != nil {
		return nil, fmt.Errorf("deployment: %w", err)
	}
	if err := decoder.Decode(&struct{}{}); !errors.Is(err, io.EOF) {
		return nil, errors.New("deployment: trailing data after the first value")
	}
	d := &Deployment{}
	for i, c := range file.Chains {
		chain, err := c.parse()
		if err != nil {
			return nil, fmt.Errorf("deployment: chain %d (number %d of the file): %w", c.ID, i+1, err)
		}
		d.Chains = append(d.Chains, chain)
	}
	if err := d.check(); err != nil {
		return nil, fmt.Errorf("deployment: %w", err)
	}
	return d, nil
}

func (c chainJSON) parse() (Chain, error) {
	chain := Chain{ID: c.ID, Name: c.Name}
	if c.ID == 0 || c.ID > math.MaxInt64 {
		return Chain{}, errors.New("id: want a chain id, from 1 to 2^63-1")
	}
	if c.Name == "" {
		return Chain{}, errors.New("name: want a name")
	}
	seen := map[site.Address]bool{}
	parse := func(member string, s *startJSON) (*Start, error) {
		if s == nil {
			return nil, nil
		}
		address, err := site.ParseAddress(s.Address)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %q: %w", member, s.Address, err)
		case address == site.Address{}:
			return nil, fmt.Errorf("%s: the zero address has no contract", member)
		case seen[address]:
			return nil, fmt.Errorf("%s: another contract of the chain has the address %s", member, address)
		case s.FirstBlock == nil:
			return nil, fmt.Errorf("%s: first_block is missing: want the first block that may have events of %s", member, address)
		}
		seen[address] = true
		return &Start{address, *s.FirstBlock}, nil
	}
	var err error
	if chain.Registry, err = parse("registry", c.Registry); err != nil {
		return Chain{}, err
	}
	if chain.Accounts, err = parse("account_metadata", c.Accounts); err != nil {
		return Chain{}, err
	}
	for i := range c.Records {
		start, err := parse(fmt.Sprintf("records[%d]", i), &c.Records[i])
		if err != nil {
			return Chain{}, err
		}
		chain.Records = append(chain.Records, *start)
	}
	if len(seen) == 0 {
		return Chain{}, errors.New("it has no contracts")
	}
	return chain, nil
}

const maxChains = 64

// check validates the chains against each other.
func (d *Deployment) check() error {
	registries, accounts, records := 0, 0, 0
	seen := map[uint64]bool{}
	for _, c := range d.Chains {
		if seen[c.ID] {
			return fmt.Errorf("duplicate chain %d", c.ID)
		}
		seen[c.ID] = true
		if c.Registry != nil {
			registries++
		}
		if c.Accounts != nil {
			accounts++
		}
		records += len(c.Records)
	}
	switch {
	case len(d.Chains) > maxChains:
		return fmt.Errorf("%d chains, want at most %d, the limit of a site", len(d.Chains), maxChains)
	case registries != 1:
		return fmt.Errorf("%d chains have a registry, want one", registries)
	case accounts != 1:
		return fmt.Errorf("%d chains have account_metadata, want one", accounts)
	case records == 0:
		return errors.New("no chain has records, want at least one")
	}
	return nil
}

// Registry returns the registry of lists.
func (d *Deployment) Registry() Contract {
	return d.only(func(c Chain) *Start { return c.Registry })
}

// Accounts returns the contract of account metadata.
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
