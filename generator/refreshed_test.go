package generator_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/followpress/followpress/fixtures/odd"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/refresh"
	snapshots "github.com/followpress/followpress/snapshot"
)

// refreshed is refreshed data, by key.
type refreshed map[site.Key]string

func (r refreshed) keys() []site.Key { return slices.Sorted(maps.Keys(r)) }

// Each implements generator.Refreshed.
func (r refreshed) Each(ctx context.Context, found func(site.Key, []byte) error) error {
	for _, key := range r.keys() {
		if err := errors.Join(ctx.Err(), found(key, []byte(r[key]))); err != nil {
			return err
		}
	}
	return nil
}

func withRefreshed(r generator.Refreshed) generator.Options {
	o := small
	o.Refreshed = r
	return o
}

const carol = "0xcccccccccccccccccccccccccccccccccccccccc"

// beforeRefreshes returns a snapshot in which alice (lists 1 and 3) follows bob (list 2), who has a
// profile and one of two badges.
func beforeRefreshes() snapshot {
	return emptySnapshot().
		adding("events", eventRow(1), eventRow(2)).
		adding("lists", `{"token_id":"1","owner":"`+alice+`"}`, `{"token_id":"2","owner":"`+bob+`"}`, `{"token_id":"3","owner":"`+alice+`"}`).
		adding("accounts", `{"address":"`+alice+`","primary_list":"1"}`,
			`{"address":"`+bob+`","primary_list":"2","ens":{"name":"old.eth","avatar":"old","fresh":100}}`).
		adding("records", `{"token_id":"1","version":1,"record_type":"address","data":"`+bob+`"}`).
		adding("badges", `{"event_id":"1","token_id":"7","owner":"`+bob+`"}`)
}

func eventRow(id int) string {
	return fmt.Sprintf(`{"id":%d,"fancy_id":"f","name":"n","event_url":"u","image_url":"i","country":"c","city":"c",`+
		`"description":"d","year":2026,"start_date":"s","end_date":"e","expiry_date":"x"}`, id)
}

func refreshedProfile(address, name string, fresh int) string {
	return fmt.Sprintf(`{"address":%q,"name":%q,"avatar":%q,"fresh":%d}`, address, name, name+" avatar", fresh)
}

// asOf is the time of snapshots in these tests, in milliseconds.
const asOf = 1795132800000

// refreshedBadges returns a token for each event; "" means none.
func refreshedBadges(address string, fetched int64, tokens map[int]string) string {
	var items []string
	for _, id := range slices.Sorted(maps.Keys(tokens)) {
		item := fmt.Sprintf(`{"eventId":"%d","participated":false,"collection":null}`, id)
		if token := tokens[id]; token != "" {
			item = fmt.Sprintf(`{"eventId":"%d","participated":true,"collection":{"event":%s,"tokenId":%q,"owner":%q}}`, id, eventRow(id), token, address)
		}
		items = append(items, item)
	}
	return fmt.Sprintf(`{"address":%q,"fetched":%d,"badges":[%s]}`, address, fetched, strings.Join(items, ","))
}

// TestRefreshedMerge: the age and account of an object decide whether it is merged.
func TestRefreshedMerge(t *testing.T) {
	const later = asOf + 1
	for name, test := range map[string]struct {
		refreshed refreshed
		name      string // name in bob's profile
		tokens    string // bob's tokens, by event
		want      summary.RefreshedReport
	}{
		"nothing":             {nil, "old.eth", "7,-", summary.RefreshedReport{}},
		"newer profile":       {refreshed{"details/2": refreshedProfile(bob, "new.eth", 101)}, "new.eth", "7,-", summary.RefreshedReport{Profiles: 1}},
		"upper-case address":  {refreshed{"details/2": refreshedProfile("0x"+strings.ToUpper(bob[2:]), "new.eth", 101)}, "new.eth", "7,-", summary.RefreshedReport{Profiles: 1}},
		"white space around":  {refreshed{"details/2": " " + refreshedProfile(bob, "new.eth", 101) + "\n"}, "new.eth", "7,-", summary.RefreshedReport{Profiles: 1}},
		"without an address":  {refreshed{"details/2": `{"name":"new.eth","fresh":101}`}, "new.eth", "7,-", summary.RefreshedReport{Profiles: 1}},
		"profile of that age": {refreshed{"details/2": refreshedProfile(bob, "new.eth", 100)}, "old.eth", "7,-", summary.RefreshedReport{Older: 1}},
		"older profile":       {refreshed{"details/2": refreshedProfile(bob, "new.eth", 99)}, "old.eth", "7,-", summary.RefreshedReport{Older: 1}},
		"profile without age": {refreshed{"details/2": `{"name":"new.eth"}`}, "old.eth", "7,-", summary.RefreshedReport{Older: 1}},
		"list of another account": {refreshed{"details/2": refreshedProfile(carol, "new.eth", 101), "badges/2": refreshedBadges(carol, later, map[int]string{1: ""})},
			"old.eth", "7,-", summary.RefreshedReport{WithoutEffect: map[string]int{"list of another account by now": 2}}},
		"unknown list": {refreshed{"details/4": refreshedProfile(bob, "new.eth", 101), "badges/4": refreshedBadges(bob, later, map[int]string{1: ""})},
			"old.eth", "7,-", summary.RefreshedReport{WithoutEffect: map[string]int{"unknown list": 2}}},
		"another token":         {refreshed{"badges/2": refreshedBadges(bob, later, map[int]string{1: "8"})}, "old.eth", "8,-", summary.RefreshedReport{Badges: 1}},
		"a badge more":          {refreshed{"badges/2": refreshedBadges(bob, later, map[int]string{2: "8"})}, "old.eth", "7,8", summary.RefreshedReport{Badges: 1}},
		"a badge less":          {refreshed{"badges/2": refreshedBadges(bob, later, map[int]string{1: "", 2: ""})}, "old.eth", "-,-", summary.RefreshedReport{Badges: 1}},
		"badges of that moment": {refreshed{"badges/2": refreshedBadges(bob, asOf, map[int]string{1: ""})}, "old.eth", "7,-", summary.RefreshedReport{Older: 1}},
		"badges of that moment for an unknown event": {refreshed{"badges/2": refreshedBadges(bob, asOf, map[int]string{3: "8"})}, "old.eth", "7,-",
			summary.RefreshedReport{Older: 1}},
		"unknown event": {refreshed{"badges/2": refreshedBadges(bob, later, map[int]string{3: "8"})}, "old.eth", "7,-",
			summary.RefreshedReport{WithoutEffect: map[string]int{"unknown event": 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			files, report, err := generator.ToMemory(t.Context(), beforeRefreshes().fs(), withRefreshed(test.refreshed))
			if err != nil {
				t.Fatal(err)
			}
			o := readTree(t, files)
			if got := decode[site.ListDetails](t, o["api/v1/lists/2/details"]).ENS.Name; got != test.name {
				t.Errorf("profile: got that of %s, want %s", got, test.name)
			}
			if got := tokensOf(t, o["api/v1/lists/2/badges"]); got != test.tokens {
				t.Errorf("badges: got %s, want %s", got, test.tokens)
			}
			test.want.Objects = len(test.refreshed)
			if got, want := fmt.Sprint(*report.Refreshed), fmt.Sprint(test.want); got != want {
				t.Errorf("report: got %s, want %s", got, want)
			}
			for reason, n := range test.want.WithoutEffect {
				if line := fmt.Sprintf("%d without effect (%s)", n, reason); !strings.Contains(report.String(), line) {
					t.Errorf("report: want %q in it, got %s", line, report)
				}
			}
			if line := fmt.Sprintf("refreshed %10d objects, %d merged into profiles, %d into badges", test.want.Objects, test.want.Profiles, test.want.Badges); !strings.Contains(report.String(), line) {
				t.Errorf("report: want %q in it, got %s", line, report)
			}
		})
	}
}

func tokensOf(t *testing.T, body string) string {
	t.Helper()
	var tokens []string
	for _, b := range decode[map[string][]refresh.Badge](t, body)["badges"] {
		if b.Collection == nil {
			tokens = append(tokens, "-")
		} else {
			tokens = append(tokens, b.Collection.TokenID)
		}
	}
	return strings.Join(tokens, ",")
}

// TestRefreshesOfSeveralLists: the newest object of an account counts; for badges, the newest of
// each event.
func TestRefreshesOfSeveralLists(t *testing.T) {
	r := refreshed{
		"details/1": refreshedProfile(alice, "second.eth", 2),
		"details/3": refreshedProfile(alice, "third.eth", 3),
		"badges/1":  refreshedBadges(alice, asOf+2, map[int]string{1: "11"}),
		"badges/3":  refreshedBadges(alice, asOf+1, map[int]string{1: "12", 2: "13"}),
	}
	files, report, err := generator.ToMemory(t.Context(), beforeRefreshes().fs(), withRefreshed(r))
	if err != nil {
		t.Fatal(err)
	}
	o := readTree(t, files)
	for _, token := range []string{"1", "3"} {
		if name := decode[site.ListDetails](t, o[site.Key("api/v1/lists/"+token+"/details")]).ENS.Name; name != "third.eth" {
			t.Errorf("name of list %s: got %s, want third.eth", token, name)
		}
		if tokens := tokensOf(t, o[site.Key("api/v1/lists/"+token+"/badges")]); tokens != "11,13" {
			t.Errorf("badges of list %s: got %s, want 11,13", token, tokens)
		}
	}
	if c := report.Refreshed; c.Objects != 4 || c.Profiles != 1 || c.Badges != 2 || c.Older != 1 {
		t.Errorf("report: got %+v, want 4 objects, 1 profile, 2 badges, 1 older", c)
	}
}

// TestInvalidRefreshed: an invalid object is counted and named, and has no effect. Otherwise anyone
// with write access could stop every run.
func TestInvalidRefreshed(t *testing.T) {
	s := beforeRefreshes()
	want := inMemory(t, s, small)
	all := refreshed{}
	for key, c := range map[site.Key]struct{ body, reason string }{
		"details/2":   {`{"name":7,"fresh":101}`, "name: number where a text belongs"},
		"details/1":   {``, "not a JSON object"},
		"details/3":   {`{"address":"x","fresh":101}`, `address: "x" is not an address`},
		"details/99":  {`{"records":[]}`, "ens.records"}, // although the list does not exist
		"badges/2":    {refreshedBadges(bob, 0, nil), "fetched: missing"},
		"badges/1":    {`{"fetched":1}`, "address: nothing is not an address"},
		"details/02":  {refreshedProfile(bob, "new.eth", 101), "the key is neither details/{token_id} nor badges/{token_id}"},
		"notes.txt":   {"precious", "the key is neither"},
		"records/2":   {"{}", "the key is neither"},
		"badges/2/ok": {"{}", "the key is neither"},
	} {
		all[key] = c.body
		_, report, err := generator.ToMemory(t.Context(), s.fs(), withRefreshed(refreshed{key: c.body}))
		if err != nil || len(report.Invalid) != 1 || !strings.HasPrefix(report.Invalid[0].Error(), "_refresh/"+string(key)+": "+c.reason) {
			t.Errorf("%s: got %v and %v, want it left: %s", key, err, report.Invalid, c.reason)
		}
	}
	files, report, err := generator.ToMemory(t.Context(), s.fs(), withRefreshed(all))
	if err != nil {
		t.Fatal(err)
	}
	if err := readTree(t, files).Compare(want); err != nil {
		t.Errorf("skipped object: got an effect, want none: %v", err)
	}
	if c := report.Refreshed; c.Skipped != len(all) || c.Objects != len(all) || c.Older != 0 || report.Skipped() != len(all) || len(report.Invalid) != len(all) {
		t.Errorf("report: got %+v, want all %d skipped: %v", c, len(all), report.Invalid)
	}
	if !strings.Contains(report.String(), fmt.Sprintf(", %d skipped\n", len(all))) || !strings.Contains(report.String(), "skipped   _refresh/badges/1: address") {
		t.Errorf("report: got %s, want the skipped objects", report)
	}
}

// errRefreshed is a location that cannot be read.
type errRefreshed struct{}

var errAway = errors.New("the server is away")

func (errRefreshed) Each(context.Context, func(site.Key, []byte) error) error { return errAway }

// TestUnreadableRefreshed: newer profiles must not be lost because their location cannot be read.
func TestUnreadableRefreshed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "site")
	s := beforeRefreshes()
	onDisk(t, s, path, withRefreshed(refreshed{"details/2": refreshedProfile(bob, "new.eth", 101)}))
	before := stateOf(t, path)
	o := withRefreshed(errRefreshed{})
	o.SkipInvalid = true
	if _, err := generator.ToPath(t.Context(), s.fs(), path, o); !errors.Is(err, errAway) {
		t.Errorf("got %v, want %v", err, errAway)
	}
	untouched(t, path, before)
	alone(t, path)
}

// TestNoRefreshedIsNoReport: without --refreshed the report does not mention it.
func TestNoRefreshedIsNoReport(t *testing.T) {
	_, report, err := generator.ToMemory(t.Context(), beforeRefreshes().fs(), small)
	if err != nil || report.Refreshed != nil || strings.Contains(report.String(), "refreshed") {
		t.Errorf("without refreshed data: got %v, %+v, %v, want nothing about it", report.Refreshed, report, err)
	}
}

// merge merges refreshed data into a reference of s. Package naive knows no refreshes.
func (r *reference) merge(s snapshot, all refreshed) {
	r.t.Helper()
	hasProfile := map[string]bool{}
	for _, row := range decodeRows[struct {
		Address string
		ENS     *struct{}
	}](r.t, s, "accounts") {
		hasProfile[strings.ToLower(row.Address)] = row.ENS != nil
	}
	before, events := maps.Clone(r.details), eventsOf(r.t, s)
	latest := map[string]int64{} // by account and event: when the badge was fetched
	for _, key := range all.keys() {
		kind, token, _ := strings.Cut(string(key), "/")
		kept, l := decode[refresh.KeptBadges](r.t, all[key]), r.lists[token]
		if l.account == "" || kept.Address != "" && strings.ToLower(kept.Address) != l.account {
			continue
		}
		if kind == "badges" {
			r.mergeBadges(l.account, events, kept, latest)
			continue
		}
		alone := emptySnapshot().adding("accounts", `{"address":"`+l.account+`","ens":`+all[key]+`}`)
		p, details := newReference(r.t, alone, site.Config{}).details[l.account].ENS, r.details[l.account]
		if p.Fresh = max(p.Fresh, 0); !hasProfile[l.account] || p.Fresh > details.ENS.Fresh {
			details.ENS, hasProfile[l.account] = p, true
			r.details[l.account] = details
		}
	}
	r.names = map[string]string{}
	r.chooseNames(before, false)
	r.chooseNames(before, true)
}

// eventsOf returns the events of a snapshot as answers show them.
func eventsOf(t testing.TB, s snapshot) (events []site.Event) {
	t.Helper()
	alone := emptySnapshot().with("events.ndjson", s["events.ndjson"])
	for _, e := range decodeRows[site.Event](t, s, "events") {
		alone = alone.adding("badges", fmt.Sprintf(`{"event_id":"%d","token_id":"0","owner":"%s"}`, e.ID, alice))
	}
	for _, b := range newReference(t, alone, site.Config{}).badges[alice] {
		events = append(events, b.Collection.Event)
	}
	return events
}

func (r *reference) mergeBadges(account string, events []site.Event, kept refresh.KeptBadges, latest map[string]int64) {
	for i, e := range events {
		for _, b := range kept.Badges {
			if id := account + b.EventID; b.EventID == strconv.FormatUint(e.ID, 10) && kept.Fetched > max(asOf, latest[id]) {
				latest[id] = kept.Fetched
				if b.Participated {
					b.Collection = &refresh.Collection{Event: e, TokenID: b.Collection.TokenID, Owner: account}
				}
				r.badges[account][i] = b
			}
		}
	}
}

// chooseNames gives each name that is not taken to one of the accounts whose name a refresh has
// changed, or of the others.
func (r *reference) chooseNames(before map[string]site.ListDetails, changed bool) {
	chosen := map[string]string{}
	for account := range r.accounts {
		p := r.details[account].ENS
		if !site.LookupName(p.Name) || r.names[p.Name] != "" || (before[account].ENS.Name != p.Name) != changed {
			continue
		}
		other, taken := chosen[p.Name]
		if fresh := r.details[other].ENS.Fresh; !taken || p.Fresh > fresh || p.Fresh == fresh && account < other {
			chosen[p.Name] = account
		}
	}
	maps.Copy(r.names, chosen)
}

// TestRefreshedEqualsTwin merges random refreshes into random snapshots.
func TestRefreshedEqualsTwin(t *testing.T) {
	t.Parallel()
	merged := summary.RefreshedReport{}
	for seed := range uint64(30) {
		s := randomSnapshot(3000+seed, shape{accounts: 12, lists: 14, records: 120, events: 5, badges: 40, hostile: seed%2 == 0})
		if seed%5 == 0 {
			s = s.with("accounts.ndjson", "") // lists alone make accounts
		}
		r := randomRefreshed(t, seed, s)
		files, report, err := generator.ToMemory(t.Context(), s.fs(), withRefreshed(r))
		if err != nil {
			t.Fatal(err)
		}
		got, reference := readTree(t, files), newReference(t, s, small.Config)
		reference.merge(s, r)
		if err := check(got); err != nil {
			t.Error(err)
		}
		want := reference.specObjects()
		if err := got.WithoutIndex().Compare(want); err != nil {
			t.Errorf("seed %d: got another site than the reference, want the same: %v", seed, err)
		}
		if counts := decode[site.Root](t, got[site.RootKey]).Counts; counts != reference.specCounts(want) {
			t.Errorf("seed %d: counts of the root: got %+v, want %+v", seed, counts, reference.specCounts(want))
		}
		c := report.Refreshed
		sum := c.Profiles + c.Badges + c.Older + c.Skipped
		for _, n := range c.WithoutEffect {
			sum += n
		}
		if sum != c.Objects || c.Objects != len(r) || c.Older < 0 {
			t.Errorf("seed %d: report: got %+v, want a sum of %d", seed, c, len(r))
		}
		merged.Profiles, merged.Badges, merged.Older = merged.Profiles+c.Profiles, merged.Badges+c.Badges, merged.Older+c.Older
	}
	if merged.Profiles < 30 || merged.Badges < 30 || merged.Older < 30 {
		t.Errorf("random refreshes: got %+v, want 30 or more of each", merged)
	}
}

// randomRefreshed makes refreshes of existing and missing lists of a snapshot.
func randomRefreshed(t testing.TB, seed uint64, s snapshot) refreshed {
	t.Helper()
	r := newReference(t, s, site.Config{})
	var lists []odd.List
	for _, token := range r.tokens {
		lists = append(lists, odd.List{Token: token, Account: r.lists[token].account})
	}
	all := refreshed{}
	for key, body := range odd.Refreshed(seed, seed%2 == 0, lists, eventsOf(t, s), asOf) {
		all[site.Key(key)] = body
	}
	return all
}

// FuzzRefreshed feeds arbitrary objects to the reader of refreshed data: each is merged, or
// rejected with its key, and the site is complete.
func FuzzRefreshed(f *testing.F) {
	f.Add("details/2", []byte(refreshedProfile(bob, "new.eth", 101)))
	f.Add("badges/2", []byte(refreshedBadges(bob, asOf+1, map[int]string{1: "8", 2: ""})))
	f.Add("badges/x", []byte("{}"))
	f.Fuzz(func(t *testing.T, key string, body []byte) {
		r := refreshed{site.Key(key): string(body)}
		files, _, err := generator.ToMemory(t.Context(), beforeRefreshes().fs(), withRefreshed(r))
		if err != nil {
			if row := (*snapshots.RowError)(nil); !errors.As(err, &row) || row.File != "_refresh/"+key {
				t.Fatalf("error: got %v, want a RowError of the object", err)
			}
			return
		}
		o := readTree(t, files)
		if err := check(o); err != nil {
			t.Fatal(err)
		}
		decode[site.ListDetails](t, o["api/v1/lists/2/details"])
		decode[map[string][]refresh.Badge](t, o["api/v1/lists/2/badges"])
	})
}
