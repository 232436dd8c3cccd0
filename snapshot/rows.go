package snapshot

import (
	"math"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// NoTime is the time of a record of which it is not known.
const NoTime = math.MinInt64

// A List is a row of the table lists.
type List struct {
	TokenID string
	Owner   site.Address
	User    *site.Address // nil if it is not set
}

// A Record is a row of the table records.
type Record struct {
	TokenID string
	Version uint32
	Type    string // address, or the decimal of another type
	Data    []byte // for an address, its 20 bytes
	Tags    []string
	Added   int64 // milliseconds since the Unix epoch; NoTime if it is not known
}

// Address returns the address that a record of the type address names. It reports false for a record
// of another type or with malformed data.
func (r *Record) Address() (site.Address, bool) {
	if r.Type != rules.TypeAddress || len(r.Data) != len(site.Address{}) {
		return site.Address{}, false
	}
	return site.Address(r.Data), true
}

// An Account is a row of the table accounts.
type Account struct {
	Address site.Address
	Primary string        // token id of the list that it names as primary; "" for none
	ENS     *site.Profile // nil for none
}

// A Badge is a row of the table badges.
type Badge struct {
	EventID string
	TokenID string
	Owner   site.Address
}

// A Recommended is a row of the table recommended.
type Recommended struct {
	Address site.Address
	Class   string // "" for none
}
