package generator_test

import (
	"strconv"
	"strings"
	"testing"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/fixtures/graph"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/internal/twin/answers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/site/shards"
)

// TestSiteEqualsModel compares every byte of many sites with the answers of the model, encoded by
// go-json.
func TestSiteEqualsModel(t *testing.T) {
	t.Parallel()
	snapshots := map[string]snapshot{
		"empty": emptySnapshot(),
		// Lists of more than one search shard.
		"long lists": syntheticSnapshot(t, graph.Options{Accounts: 2600, Lists: 3, Records: 4000, Seed: 5}),
		"synthetic":  syntheticSnapshot(t, graph.Options{Accounts: 120, Lists: 150, Records: 1500, Seed: 6}),
	}
	for seed := range uint64(16) {
		snapshots["hostile "+strconv.FormatUint(seed, 10)] = randomSnapshot(1000+seed,
			shape{accounts: 25, lists: 18, records: 350, events: 5, badges: 60, hostile: true})
	}
	// Small graphs make ties, self-follows, mutes of blocked accounts, second lists and wrong
	// primaries coincide often.
	for seed := range uint64(30) {
		snapshots["tiny "+strconv.FormatUint(seed, 10)] = randomSnapshot(seed,
			shape{accounts: 2 + int(seed), lists: 1 + int(seed*4/3), records: int(seed * 5)})
	}
	usual := generator.Options{Config: site.Config{LeaderboardMax: 12, BadgesField: `po"aps<é>`, BasePath: "graph/v2.0"}}
	for name, s := range snapshots {
		t.Run(name, func(t *testing.T) {
			o := usual
			if strings.HasPrefix(name, "tiny") {
				o.Config.LeaderboardMax = 32 // all accounts
			}
			got, m := inMemory(t, s, o), newModel(t, s)
			if err := check(got); err != nil {
				t.Error(err)
			}
			want := m.objects(t, o.Config)
			root := decode[site.Root](t, got[site.RootKey])
			if counts := m.siteCounts(want); root.Counts != counts {
				t.Errorf("counts of the root: got %+v, want %+v", root.Counts, counts)
			}
			if err := got.WithoutIndex().Compare(want); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestEncodersEqualGoJSON decodes every object into its shape and encodes it again with go-json,
// which must give the same bytes. Those who generate clients from the shapes, or sign objects, can
// rely on it.
func TestEncodersEqualGoJSON(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		s := randomSnapshot(seed, shape{accounts: 20, lists: 12, records: 300, events: 6, badges: 50, hostile: true})
		c, _ := site.Config{}.WithDefaults()
		for key, body := range inMemory(t, s, generator.Options{}) {
			route, _ := c.RouteOf(key)
			if again := recode(t, route.ID, key, body); again != body {
				t.Fatalf("seed %d: %s: by go-json: got %s\nwant %s", seed, key, again, body)
			}
		}
	}
}

// recode decodes an object into its shape and encodes it again.
func recode(t testing.TB, route routes.ID, key site.Key, body string) string {
	t.Helper()
	switch route {
	case routes.Leaderboard, routes.LeaderboardLimit:
		if strings.Contains(string(key), "leaderboard/followers") {
			return text(t, decode[[]answers.FollowersEntry](t, body))
		}
		return text(t, decode[[]answers.FollowingEntry](t, body))
	case routes.Records:
		return text(t, decode[answers.ListRecords](t, body))
	case routes.Details:
		return text(t, canonical(t, decode[site.ListDetails](t, body)))
	case routes.Badges:
		return text(t, decode[struct {
			Badges []site.Badge `json:"badges"`
		}](t, body))
	case routes.ListSearch, routes.UserSearch:
		return text(t, decode[answers.FollowingPage](t, body))
	case routes.SearchShard:
		return text(t, decode[searchShard](t, body))
	case routes.UserBucket:
		return text(t, decode[userBucket](t, body))
	case routes.Manifest:
		return string(shards.Pack([]byte(text(t, decode[site.Manifest](t, manifestText(t, body))))))
	case routes.Root:
		return text(t, decode[site.Root](t, body))
	case routes.Error:
		return body // bodies tested in package site
	}
	t.Fatalf("%s: got no shape for this route, want one", key)
	return ""
}

// canonical encodes the maps again: their keys must be sorted.
func canonical(t testing.TB, d site.ListDetails) site.ListDetails {
	t.Helper()
	for _, raw := range []*json.RawMessage{&d.ENS.Records, &d.ENS.Chains, &d.ENS.Errors} {
		*raw = decode[anyObject](t, string(*raw)).encode(t)
	}
	return d
}

// TestMapsOfTexts: profiles of snapshots and of refreshes show texts only, and dates of events have
// the form of the specification. The report counts other values, and dates that cannot be parsed.
func TestMapsOfTexts(t *testing.T) {
	newer := refreshed{
		"details/1": `{"address":"` + alice + `","name":"alice.eth","records":{"a":"b","c":7,"d":null},"fresh":200}`,
		"details/2": `{"address":"` + bob + `","records":{"not newer":false},"fresh":50}`,
	}
	s := beforeRefreshes().adding("accounts",
		`{"address":"`+carol+`","ens":{"records":{"z":-12345678901234567890.50,"a":[1E400, -0 ,1.0],"":{"b":null},"n":null,"t":"é"},"chains":{"eth":"0x","60":true}}}`,
		`{"address":"0x`+strings.Repeat("d", 40)+`","ens":{"records":{"description":null,"avatar":null},"errors":{}}}`,
	).adding("lists", `{"token_id":"4","owner":"`+carol+`"}`)
	s = s.with("events.ndjson", strings.Replace(strings.Replace(s["events.ndjson"], `"start_date":"s"`, `"start_date":"2026-09-24T23:30:00-07:00"`, 1),
		`"end_date":"e"`, `"end_date":"25-Sep-2026"`, 1))
	files, report, err := generator.ToMemory(t.Context(), s.fs(), withRefreshed(newer))
	if err != nil {
		t.Fatal(err)
	}
	got := readTree(t, files)
	c, _ := site.Config{}.WithDefaults()
	for token, want := range map[string]string{
		"1": `"records":{"a":"b"},"chains":{},"fresh":200`,
		"4": `"records":{"t":"é"},"chains":{"eth":"0x"},"fresh":0`,
	} {
		if details := got[c.ListKey(token, site.Details)]; !strings.Contains(details, want) {
			t.Errorf("list %s: got %s, want in it %s", token, details, want)
		}
	}
	const dates = `"start_date":"24-Sep-2026","end_date":"25-Sep-2026","expiry_date":"x"`
	if badges := got[c.ListKey("2", site.Badges)]; !strings.Contains(badges, dates) {
		t.Errorf("badges: got %s, want in it %s", badges, dates)
	}
	if want := (summary.NoTextReport{Profiles: 2, Entries: 5}); report.NoTexts != want || report.OtherDates != 4 {
		t.Errorf("report: got %+v and %d other dates, want %+v and 4", report.NoTexts, report.OtherDates, want)
	}
	for _, line := range []string{
		"left out           2 profiles, 5 entries that are not strings\n",
		"events             4 dates that are not like 31-Jan-2026, shown unchanged\n",
	} {
		if !strings.Contains(report.String(), line) {
			t.Errorf("report: got\n%s, want in it\n%s", report, line)
		}
	}
}

// decode decodes the only JSON value of an object.
func decode[T any](t testing.TB, body string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("decode %T: got %v in %s, want no error", v, err, body)
	}
	return v
}

func itoa(n int) string { return strconv.Itoa(n) }
