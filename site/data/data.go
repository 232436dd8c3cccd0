// Package data names the objects of a site with site.Config.Data, which has the graph itself as tables in files.
//
// The API may change in any release.
package data

import (
	"fmt"

	"github.com/followpress/followpress/site"
)

// A Table names a table of the graph.
type Table string

// The tables.
const (
	Accounts Table = "accounts"
	Badges   Table = "badges"
	Edges    Table = "edges"
	Follows  Table = "follows"
	Ops      Table = "ops"
)

const prefix = "_data/"

// PackageKey describes the files of all tables.
const PackageKey site.Key = prefix + "datapackage.json"

// MaxParts is the most parts that a table can have.
const MaxParts = 9_999

// Key is the key of a table, as part 0. A table that is too large for one object has parts instead, from 1 to MaxParts.
func Key(t Table, part int) site.Key {
	name := string(t)
	if part > 0 {
		name += fmt.Sprintf("-%04d", part)
	}
	return site.Key(prefix + name + ".parquet")
}
