package generator_test

import (
	"testing"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/site"
)

// TestRanksEqualNaiveOnes compares ranks and leaderboards with those of the model, on
// graphs so small that ties, self-follows, mutes of what is blocked, second lists and
// wrong primaries meet all the time.
func TestRanksEqualNaiveOnes(t *testing.T) {
	t.Parallel()
	const everybody = 32 // leaderboards that show all accounts
	o := generator.Options{Config: site.Config{LeaderboardMax: everybody}}
	for seed := range uint64(50) {
		s := randomSnapshot(seed, shape{accounts: 2 + int(seed%30), lists: 1 + int(seed%40), records: int(seed * 3)})
		m := newModel(t, s)
		o.Config, _ = o.Config.WithDefaults()
		o.Workers = 1 + int(seed%3)
		got, want := inMemory(t, s, o), objects{}
		m.addLeaderboards(t, o.Config, want)
		ranks := m.ranks()
		for _, l := range m.lists {
			key := o.Config.ListKey(l.token, site.Details)
			if got, want := decode[site.ListDetails](t, got[key]).Ranks, ranks(l.account); got != want {
				t.Errorf("seed %d: list %s: got ranks %+v, want %+v", seed, l.token, got, want)
			}
		}
		for key := range want {
			if got[key] != want[key] {
				t.Errorf("seed %d: %s: got %s\nwant %s", seed, key, got[key], want[key])
			}
		}
		if t.Failed() {
			t.Fatalf("failed with seed %d: got the snapshot %q", seed, s)
		}
	}
}

// TestRanksAgreeWithLeaderboards: the position on a board is the rank in the details.
func TestRanksAgreeWithLeaderboards(t *testing.T) {
	o := generator.Options{Config: site.Config{LeaderboardMax: 40}}
	s := randomSnapshot(1, shape{accounts: 30, lists: 40, records: 400})
	o.Config, _ = o.Config.WithDefaults()
	got, m := inMemory(t, s, o), newModel(t, s)
	details := map[string]site.Ranks{}
	for _, l := range m.lists {
		details[l.account] = decode[site.ListDetails](t, got[o.Config.ListKey(l.token, site.Details)]).Ranks
	}
	seen := 0
	for _, row := range decode[[]site.FollowersEntry](t, got[site.LeaderboardLimitKey(site.Followers, 40)]) {
		if d, ok := details[row.Address]; ok {
			seen++
			if d.Followers != itoa(row.Rank) {
				t.Errorf("rank of %s: got %d on the board and %s in the details, want the same", row.Address, row.Rank, d.Followers)
			}
		}
	}
	for _, row := range decode[[]site.FollowingEntry](t, got[site.LeaderboardLimitKey(site.Following, 40)]) {
		if d, ok := details[row.Address]; ok {
			seen++
			if d.Following != itoa(row.Rank) {
				t.Errorf("rank of %s: got %d on the board and %s in the details, want the same", row.Address, row.Rank, d.Following)
			}
		}
	}
	if seen < 20 {
		t.Errorf("accounts in both: got %d, want 20 or more", seen)
	}
}
