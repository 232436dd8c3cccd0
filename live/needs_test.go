package live_test

import (
	"testing"

	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/site"
)

// The bound covers the measured memory and the default caches of 40 MiB, and is at most twice as much.
func TestNeedsBytes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		api               string
		accounts, records int
		measured          int64 // MiB
	}{
		{site.APISpec, 75_879, 511_334, 164},
		{site.APIEFP, 75_879, 511_334, 185},
		{site.APISpec, 80_000, 997_537, 194},
		{site.APIEFP, 80_000, 997_537, 240},
	} {
		got := live.NeedsBytes(site.Counts{Accounts: test.accounts, Records: test.records}, 0, site.Config{API: test.api}) >> 20
		if least := test.measured + 40; got < least || got > 2*least {
			t.Errorf("%s, %d accounts, %d records: got %d MiB, want some more than the %d measured", test.api, test.accounts, test.records, got, least)
		}
	}
	const operations = 10_000_000
	if got := (live.NeedsBytes(site.Counts{}, operations, site.Config{}) - live.NeedsBytes(site.Counts{}, 0, site.Config{})) / operations; got < 2*32 || got > 4*32 {
		t.Errorf("an operation: got %d bytes, want those of two graphs, and some to spare", got)
	}
}
