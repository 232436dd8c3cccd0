package generator_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/fixtures/odd"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/ranks"
	snapshots "github.com/followpress/followpress/snapshot"
)

// declaredInputs returns the inputs of a snapshot as meta.json names them.
func declaredInputs() (members string, chains []site.ChainInput, service *site.ServiceInput) {
	digest, hash := site.Sum256([]byte("answers")), "0x"+strings.Repeat("0a", 32)
	service = &site.ServiceInput{Source: "https://example.com/u", From: "2026-11-01T00:00:00Z", Until: "2026-11-02T00:00:00Z", Digest: digest}
	members = fmt.Sprintf(`"chains":[{"chain_id":10,"block":7,"hash":%q,"events":3}],"profiles":{"source":"https://example.com/u",`+
		`"from":"2026-11-01T00:00:00Z","until":"2026-11-02T00:00:00Z","digest":%q}`, hash, digest)
	return members, []site.ChainInput{{ChainID: 10, Block: 7, Hash: hash, Events: 3}}, service
}

// withMeta returns a snapshot with more members of meta.json.
func (s snapshot) withMeta(members string) snapshot {
	return s.with("meta.json", strings.TrimSuffix(strings.TrimSpace(s["meta.json"]), "}")+","+members+"}")
}

func digestOf(t *testing.T, s snapshot, table snapshots.Table, untimed bool) site.SHA256 {
	t.Helper()
	var rows snapshots.Digest
	if err := rows.AddTable(t.Context(), s.fs(), table, untimed); err != nil {
		t.Fatal(err)
	}
	return rows.Sum()
}

// inputsOf returns the inputs of a site.
func inputsOf(t *testing.T, o objects) site.Inputs {
	t.Helper()
	root := o.Root(t)
	if root.Inputs == nil {
		t.Fatal("got a root without inputs")
	}
	return *root.Inputs
}

// TestInputs: the root names exactly the parts of a snapshot that the API reads.
func TestInputs(t *testing.T) {
	members, chains, service := declaredInputs()
	s := snapshot(odd.Snapshot(1, odd.Shape{Accounts: 20, Lists: 10, Records: 60, Events: 3, Badges: 9, Timed: true, Recommended: 4})).
		adding("ops", `{"token_id":"1","time":"2026-11-19T00:00:00Z","chain_id":1,"block":1,"log_index":1,"op":"0x01010101`+address(7)[2:]+`"}`).
		withMeta(members + `,"list_ops":77,"ops_from":"2026-11-01T00:00:00Z"`)
	listOps := uint64(77)
	tables := func(untimed bool, more ...snapshots.Table) map[string]site.SHA256 {
		sums := map[string]site.SHA256{}
		for _, table := range append(snapshots.Tables(), more...) {
			sums[string(table)] = digestOf(t, s, table, untimed)
		}
		return sums
	}
	spec, efp, history := small, smallEFP, withHistory(100*24*time.Hour)
	spec.Generator, efp.Generator, history.Generator = "v1", "v2", "v3"
	for name, c := range map[string]struct {
		o    generator.Options
		want site.Inputs
	}{
		"spec": {spec, site.Inputs{Generator: "v1", Tables: tables(true), Chains: chains, Profiles: service}},
		"efp":  {efp, site.Inputs{Generator: "v2", Tables: tables(false, snapshots.TableRecommended), ListOps: &listOps, Chains: chains, Profiles: service}},
		"efp with history": {history, site.Inputs{
			Generator: "v3", Tables: tables(false, snapshots.TableRecommended, snapshots.TableOps), ListOps: &listOps,
			OpsFrom: "2026-11-01T00:00:00Z", Chains: chains, Profiles: service,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			made := inMemory(t, s, c.o)
			if got := inputsOf(t, made); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			sameRoots(t, s, c.o, made[site.RootKey])
		})
	}
	if got := inputsOf(t, inMemory(t, s.without("ops.ndjson"), history)); got.OpsFrom != "" || len(got.Tables) != 6 {
		t.Errorf("without the table ops: got %+v, want nothing of it", got)
	}
}

// sameRoots fails the test unless all ways to make a site give that root, from the snapshot
// unchanged and in other files.
func sameRoots(t *testing.T, s snapshot, o generator.Options, want string) {
	t.Helper()
	for name, s := range map[string]snapshot{"as it is": s, "in other files": odd.Cut(3, s)} {
		o.Workers = 1 + len(name)%3
		folder, tar := filepath.Join(t.TempDir(), "site"), filepath.Join(t.TempDir(), "site.tar")
		onDisk(t, s, folder, o)
		onDisk(t, s, tar, o)
		dry := o
		dry.DryRun = true
		if again := onDisk(t, s, folder, dry); !again.Written.Unchanged {
			t.Errorf("%s, a dry run: got %+v, want nothing to write", name, again.Written)
		}
		opened, _, err := generator.Open(t.Context(), s.fs(), o)
		if err != nil {
			t.Fatal(err)
		}
		root, err := opened.Get(t.Context(), site.RootKey)
		if err != nil {
			t.Fatal(err)
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
		for way, got := range map[string]string{
			"memory": inMemory(t, s, o)[site.RootKey], "folder": readFolder(t, folder)[site.RootKey], "tar": readTar(t, tar)[site.RootKey], "opened": string(root),
		} {
			if got != want {
				t.Errorf("%s, %s: got the root %s, want %s", name, way, got, want)
			}
		}
	}
}

// TestInputsOfRefreshes: merged data counts in the root, but not notes that refreshes store with
// it.
func TestInputsOfRefreshes(t *testing.T) {
	s := beforeRefreshes()
	kept := refreshed{"details/2": refreshedProfile(bob, "new.eth", 101), "badges/2": refreshedBadges(bob, asOf+1, map[int]string{1: "8", 2: ""})}
	made := inMemory(t, s, withRefreshed(kept))
	got := inputsOf(t, made)
	var want snapshots.Digest
	want.Add([]byte(`{"badges":"2","address":"` + bob + `","fetched":1795132800001,"events":[{"event_id":"1","token_id":"8"},{"event_id":"2"}]}`))
	want.Add([]byte(`{"details":"2","address":"` + bob + `","ens":{"name":"new.eth","avatar":"new.eth avatar","header":"","display":"",` +
		`"records":{},"chains":{},"fresh":101,"resolver":"","errors":{}}}`))
	if got.Refreshed == nil || *got.Refreshed != want.Sum() || got.BadgesAsOf != "" {
		t.Errorf("got %+v, want the digest %s", got, want.Sum())
	}
	sameRoots(t, s, withRefreshed(kept), made[site.RootKey])
	noted := refreshed{}
	for key, body := range kept {
		noted[key] = " " + strings.TrimSuffix(body, "}") + `,"stored":[],"writes":7}`
	}
	skip := withRefreshed(noted)
	skip.SkipInvalid = true
	noted["details/3"] = "no profile"
	if other := inMemory(t, s, skip); other[site.RootKey] != made[site.RootKey] {
		t.Errorf("with notes: got the root %s, want %s", other[site.RootKey], made[site.RootKey])
	}
	for name, change := range map[string]func(refreshed){
		"another body": func(r refreshed) { r["details/2"] = refreshedProfile(bob, "new.eth", 102) },
		"another list": func(r refreshed) { r["details/1"] = r["details/2"]; delete(r, "details/2") },
		"one less":     func(r refreshed) { delete(r, "badges/2") },
		"other badges": func(r refreshed) { r["badges/2"] = refreshedBadges(bob, asOf+1, map[int]string{1: "8", 2: "9"}) },
		"other times":  func(r refreshed) { r["badges/2"] = refreshedBadges(bob, asOf+2, map[int]string{1: "8", 2: ""}) },
	} {
		other := refreshed{"details/2": kept["details/2"], "badges/2": kept["badges/2"]}
		change(other)
		if is := inputsOf(t, inMemory(t, s, withRefreshed(other))); is.Refreshed == nil || *is.Refreshed == want.Sum() {
			t.Errorf("%s: got %v, want another digest", name, is.Refreshed)
		}
	}
	if none := inputsOf(t, inMemory(t, s, withRefreshed(refreshed{}))); none.Refreshed != nil {
		t.Errorf("no refreshes: got the digest %s", none.Refreshed)
	}
	later := withRefreshed(kept)
	later.BadgesAsOf = time.UnixMilli(asOf - 250)
	if is := inputsOf(t, inMemory(t, s, later)); is.BadgesAsOf != "2026-11-19T23:59:59.75Z" {
		t.Errorf("badges of another time: got %+v", is)
	}
}

// TestInputsOfRanks: ranks of an earlier site count if details show them, and not if they are due.
func TestInputsOfRanks(t *testing.T) {
	o := smallEFP
	o.Config.RanksEvery = 7 * 24 * 3600
	s := beforeRefreshes()
	first := inMemory(t, s, o)
	if got := inputsOf(t, first); got.Ranks != nil {
		t.Errorf("without earlier ranks: got the digest %s", got.Ranks)
	}
	held, err := ranks.Parse([]byte(first[site.RanksKey]))
	if err != nil {
		t.Fatal(err)
	}
	o.Ranks = held
	next := s.with("meta.json", strings.Replace(s["meta.json"], "2026-11-20", "2026-11-22", 1))
	made := inMemory(t, next, o)
	if got, want := inputsOf(t, made).Ranks, site.Sum256([]byte(first[site.RanksKey])); got == nil || *got != want {
		t.Errorf("earlier ranks: got the digest %v, want %s", got, want)
	}
	sameRoots(t, next, o, made[site.RootKey])
	due := s.with("meta.json", strings.Replace(s["meta.json"], "2026-11-20", "2026-11-28", 1))
	if got := inputsOf(t, inMemory(t, due, o)).Ranks; got != nil {
		t.Errorf("ranks that are due: got the digest %s", got)
	}
}

// TestHeldRanks: details show the ranks of an earlier site. Accounts whose counts have changed get
// new ranks.
func TestHeldRanks(t *testing.T) {
	o := smallEFP
	o.Config.RanksEvery = 7 * 24 * 3600
	following := func(day string, follows ...[2]int) snapshot {
		s := emptySnapshot().with("meta.json", `{"format":1,"as_of":"`+day+`T00:00:00Z"}`)
		for n := 1; n <= 6; n++ {
			s = s.adding("lists", list(fmt.Sprint(n), address(n))).adding("accounts", account(address(n), "", "", fmt.Sprint(n)))
		}
		for _, f := range follows {
			s = s.adding("records", fmt.Sprintf(`{"token_id":"%d","version":1,"record_type":"address","data":%q}`, f[0], address(f[1])))
		}
		return s
	}
	before := [][2]int{{4, 1}, {5, 1}, {6, 1}, {4, 2}, {5, 2}, {4, 3}}
	held, err := ranks.Parse([]byte(inMemory(t, following("2026-11-20", before...), o)[site.RanksKey]))
	if err != nil {
		t.Fatal(err)
	}
	o.Ranks = held
	for name, test := range map[string]struct {
		since [][2]int
		want  [4]string // by account: 1, 2, 3 and 4
	}{
		"the same":        {nil, [4]string{"1", "2", "3", "0"}},
		"one has gained":  {[][2]int{{5, 3}, {6, 3}, {1, 3}}, [4]string{"1", "2", "1", "0"}},                 // more than any account had
		"one drew level":  {[][2]int{{5, 3}, {6, 3}}, [4]string{"1", "2", "2", "0"}},                         // ranked after account 1
		"one is new":      {[][2]int{{1, 4}}, [4]string{"1", "2", "3", "4"}},                                 // ranked after account 3, by address
		"others overtake": {[][2]int{{5, 3}, {6, 3}, {1, 4}, {2, 4}, {3, 4}}, [4]string{"1", "2", "2", "3"}}, // account 2 is fourth now
	} {
		got := inMemory(t, following("2026-11-21", append(before, test.since...)...), o)
		for n, want := range test.want {
			details := decode[site.ListDetails](t, got[site.Key(fmt.Sprintf("api/v1/lists/%d/details", n+1))])
			if is := details.Ranks.Followers; is != want {
				t.Errorf("%s: rank of account %d: got %s, want %s", name, n+1, is, want)
			}
		}
	}
}
