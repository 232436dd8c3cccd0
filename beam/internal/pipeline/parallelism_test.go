package pipeline_test

import (
	"testing"

	"github.com/followpress/followpress/beam/internal/pipeline"
	"github.com/followpress/followpress/snapshot"
)

// Parts contain at most 200 MB of the site, in sites of measured size.
func TestParallelism(t *testing.T) {
	const million = 1_000_000
	for _, test := range []struct {
		records, lists, accounts int64
		efp                      bool
		site                     int64 // MB
	}{
		{0, 0, 0, false, 1},
		{10 * million, 1_220_000, 1_500_000, false, 6900},
		{50 * million, million, million, false, 24_000},
		{million, 122_000, 150_000, true, 3000},
		{3000 * million, 40 * million, 40 * million, true, 6_400_000}, // computed
	} {
		got := pipeline.Parallelism(func(table snapshot.Table) int64 { // size of uncompressed rows
			return map[snapshot.Table]int64{
				snapshot.TableRecords: 105 * test.records, snapshot.TableLists: 75 * test.lists, snapshot.TableAccounts: 130 * test.accounts,
			}[table]
		}, test.efp)
		if parts := int64(got); parts < 1 || test.site/parts > 200 || parts > 1+test.site/50 {
			t.Errorf("%+v: got %d parts of %d MB", test, got, test.site/max(1, parts))
		}
	}
}
