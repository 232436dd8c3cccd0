package postgres

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Report counts rows read, and states whether tables or events determined order and users.
type Report struct {
	Schema   string            `json:"schema"` // "v1" or "v2"
	Server   string            `json:"server"` // PostgreSQL version
	Lists    uint64            `json:"lists"`
	Records  uint64            `json:"records"` // records written; those of a shared slot count once per list
	Ops      uint64            `json:"ops"`     // rows of the table ops
	Profiles uint64            `json:"profiles"`
	Primary  uint64            `json:"primary_lists"` // accounts that name a primary list
	ListOps  uint64            `json:"list_ops"`      // operations in events
	Order    OrderReport       `json:"order"`
	Users    UserReport        `json:"users"`
	Ignored  map[string]uint64 `json:"ignored"`  // rows and operations by reason
	Warnings []string          `json:"warnings"` // for the operator
	Seconds  float64           `json:"seconds"`
}

// An OrderReport counts lists by the source of their records, order, times and tags.
type OrderReport struct {
	Events  uint64 `json:"events"`  // lists whose events give the records of the tables
	Tables  uint64 `json:"tables"`  // other lists, in the order of inserted rows
	Missing uint64 `json:"missing"` // lists with records in events but none in the tables
	Empty   uint64 `json:"empty"`   // lists without records
}

// A UserReport counts lists by the source of their user.
type UserReport struct {
	Events uint64 `json:"events"`
	Tables uint64 `json:"tables"`
	None   uint64 `json:"none"` // lists without a user; they belong to their owner
}

// String returns the report as text for people.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "database: %s, PostgreSQL %s\n", r.Schema, r.Server)
	fmt.Fprintf(&b, "read %d lists, %d records, %d visible operations, %d primary lists and %d profiles in %.1f s\n", r.Lists, r.Records, r.Ops, r.Primary, r.Profiles, r.Seconds)
	fmt.Fprintf(&b, "records: of %d lists by events, of %d by tables; of %d only events have some; %d lists are empty\n", r.Order.Events, r.Order.Tables, r.Order.Missing, r.Order.Empty)
	fmt.Fprintf(&b, "users: of %d lists by events, of %d by tables; %d lists have none\n", r.Users.Events, r.Users.Tables, r.Users.None)
	for _, reason := range slices.Sorted(maps.Keys(r.Ignored)) {
		fmt.Fprintf(&b, "ignored: %d: %s\n", r.Ignored[reason], reason)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", warning)
	}
	return b.String()
}
