package data_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/data"
	"github.com/followpress/followpress/site/routes"
)

// TestKeys: a site has the keys of the tables, all public, only if its configuration includes them.
func TestKeys(t *testing.T) {
	without, err := site.Config{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	with := without
	with.Data = true
	for key, want := range map[site.Key]string{
		data.Key(data.Follows, 0): "_data/follows.parquet", data.Key(data.Follows, 1): "_data/follows-0001.parquet",
		data.Key(data.Accounts, 9_999): "_data/accounts-9999.parquet", data.Key(data.Edges, 0): "_data/edges.parquet",
		data.Key(data.Ops, 0): "_data/ops.parquet", data.Key(data.Badges, 0): "_data/badges.parquet",
		data.PackageKey: "_data/datapackage.json",
	} {
		id := routes.DataPackage
		if strings.HasSuffix(want, ".parquet") {
			id = routes.DataFile
		}
		route, ok := with.RouteOf(key)
		if string(key) != want || !ok || route.ID != id || with.Resolve("GET", "/"+want, "").Key != key {
			t.Errorf("got the key %s of route %+v, want %s, which answers its path", key, route, want)
		}
		if _, ok := without.RouteOf(key); ok {
			t.Errorf("%s without data: got a route, want none", key)
		}
	}
	for has, c := range map[bool]site.Config{true: with, false: without} {
		if slices.Contains(c.TopLevel(), "_data") != has || slices.Contains(c.PublicKeys(), "_data/*") != has {
			t.Errorf("_data of a site with data %v: got the reverse at the top of its folder, or in public", has)
		}
	}
}
