// Package data names the objects of a site with site.Config.Data: the graph as tables in Parquet files.
//
// The API may change in any release.
package data

import (
	"fmt"

	"github.com/followpress/followpress/site"
)

// A Table is the name of a table of the graph.
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

// PackageKey is the object that describes the files of all tables.
const PackageKey site.Key = prefix + "datapackage.json"

// Key returns the key of a table for part 0. A table that is too large for one object has parts from 1 to 9999
// instead.
func Key(t Table, part int) site.Key {
	name := string(t)
	if part > 0 {
		name += fmt.Sprintf("-%04d", part)
	}
	return site.Key(prefix + name + ".parquet")
}
