package postgres

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Report says what was read, and what decided.
type Report struct {
	Schema   string            `json:"schema"` // v1 or v2
	Server   string            `json:"server"` // version of PostgreSQL
	Lists    uint64            `json:"lists"`
	Records  uint64            `json:"records"` // that were written: those of a shared slot count for each list
	Ops      uint64            `json:"ops"`     // rows of the table ops
	Profiles uint64            `json:"profiles"`
	Primary  uint64            `json:"primary_lists"` // accounts that name one
	ListOps  uint64            `json:"list_ops"`      // in events
	Order    OrderReport       `json:"order"`
	Users    UserReport        `json:"users"`
	Ignored  map[string]uint64 `json:"ignored"`  // rows and operations by the reason why
	Warnings []string          `json:"warnings"` // what an operator should look at
	Seconds  float64           `json:"seconds"`
}

// An OrderReport says what decided the records of lists, their order, times and tags.
type OrderReport struct {
	Events  uint64 `json:"events"`  // lists whose operations in events give what the tables have
	Tables  uint64 `json:"tables"`  // other lists, in the order in which rows were inserted
	Missing uint64 `json:"missing"` // lists of which the tables have no record, and events give some
	Empty   uint64 `json:"empty"`   // lists without records
}

// A UserReport says what decided the users of lists.
type UserReport struct {
	Events uint64 `json:"events"`
	Tables uint64 `json:"tables"`
	None   uint64 `json:"none"` // lists without a user: they are their owner's
}

// String is the report for people.
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
