package generator_test

import (
	"bytes"
	"encoding/hex"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures/worst"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
	snapshots "github.com/followpress/followpress/snapshot"
)

// withHistory returns a configuration whose sites have the operations of a window.
func withHistory(window time.Duration) generator.Options {
	o := exploring(smallEFP)
	o.Config.HistoryWindow = site.Window(window)
	return o
}

// opsAsOf is as_of of emptySnapshot.
var opsAsOf = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

// historian returns a snapshot of a few lists: 1 is the primary list of a.eth, 2 another list of
// hers, 10 the primary list of an account with a hostile name, and 3 the only list of an account
// without a primary one.
func historian() snapshot {
	return emptySnapshot().adding("lists",
		list("1", address(1)), list("2", address(1)), list("3", address(3)), list("10", address(2)),
	).adding("accounts",
		account(address(1), "a.eth", "https://a.example/1.png", "1"), account(address(2), `<b>"&.eth`, "", "10"), account(address(3), "", "", ""),
	).adding("records", `{"token_id":"1","version":1,"record_type":"address","data":"`+address(2)+`","tags":[]}`)
}

func address(n int) string { return fmt.Sprintf("0x%040x", n) }

func list(token, owner string) string {
	return fmt.Sprintf(`{"token_id":%q,"owner":%q}`, token, owner)
}

func account(address, name, avatar, primary string) string {
	list := "null"
	if primary != "" {
		list = strconv.Quote(primary)
	}
	return fmt.Sprintf(`{"address":%q,"ens":{"name":%s,"avatar":%s},"primary_list":%s}`, address, quote(name), quote(avatar), list)
}

// A shownOp is an operation with its shown fields.
type shownOp struct {
	snapshots.Op
	about string
	code  op.Code
	tag   string
}

func newOp(token string, at time.Time, chain, block uint64, log uint32, code op.Code, about int, tag string) shownOp {
	var a site.Address
	a[18], a[19] = byte(about>>8), byte(about)
	return shownOp{
		snapshots.Op{TokenID: token, Time: at.UnixMilli(), Chain: chain, Block: block, LogIndex: log, Op: op.Append(nil, code, a, tag)}, a.String(), code, tag,
	}
}

// withOps adds the table ops, sorted.
func (s snapshot) withOps(t testing.TB, ops []shownOp) snapshot {
	t.Helper()
	slices.SortFunc(ops, func(a, b shownOp) int { return a.Compare(&b.Op) })
	var text strings.Builder
	for _, o := range ops {
		fmt.Fprintf(&text, `{"token_id":%q,"time":%q,"chain_id":%d,"block":%d,"log_index":%d,"op":"0x%s"}`+"\n",
			o.TokenID, time.UnixMilli(o.Time).UTC().Format("2006-01-02T15:04:05.000Z"), o.Chain, o.Block, o.LogIndex, hex.EncodeToString(o.Op.Op))
	}
	return s.with("ops.ndjson", text.String())
}

// naiveHistory returns the objects of operations of historian: shards as package naive makes them,
// and what the explorer shows, computed step by step.
func naiveHistory(t testing.TB, s snapshot, ops []shownOp, window time.Duration) map[site.Key]any {
	t.Helper()
	g, err := naive.Load(afero.NewIOFS(s.fs()), naive.Config{HistoryWindow: window})
	if err != nil {
		t.Fatal(err)
	}
	all := map[site.Key]any{}
	for key, body := range g.HistoryObjects() {
		all[site.Key(key)] = decode[any](t, string(body))
	}
	type person struct{ address, name, avatar string }
	people := map[string]person{
		address(1): {address(1), "a.eth", "https://a.example/1.png"}, address(2): {address(2), `<b>"&.eth`, ""}, address(3): {address(3), "", ""},
	}
	owners, primary := map[string]string{"1": address(1), "2": address(1), "3": address(3), "10": address(2)}, map[string]bool{"1": true, "10": true}
	ops = slices.Clone(ops)
	slices.SortFunc(ops, func(a, b shownOp) int {
		for _, difference := range []int64{
			b.Time - a.Time, int64(a.Chain) - int64(b.Chain), int64(b.Block) - int64(a.Block), int64(b.LogIndex) - int64(a.LogIndex),
		} {
			if difference != 0 {
				return int(max(-1, min(1, difference)))
			}
		}
		n, _ := strconv.Atoi(a.TokenID)
		m, _ := strconv.Atoi(b.TokenID)
		return n - m
	})
	recent, active, seen := []any{}, []any{}, map[string]bool{}
	days, first, last := map[string][]any{}, time.Time{}, opsAsOf
	for _, o := range ops {
		owner, known := owners[o.TokenID]
		if !known || o.about == "" {
			continue
		}
		at := time.UnixMilli(o.Time).UTC()
		if primary[o.TokenID] && o.code <= op.Unfollow {
			day := at.Format(time.DateOnly)
			if days[day] == nil {
				days[day] = []any{0.0, 0.0}
			}
			days[day][o.code-1] = days[day][o.code-1].(float64) + 1
			if first = at; at.After(last) {
				last = at
			}
		}
		if at.Before(opsAsOf.Add(-window)) {
			continue
		}
		by, whom := people[owner], people[o.about]
		whom.address = o.about
		if primary[o.TokenID] && len(recent) < 100 {
			recent = append(recent, []any{
				float64(o.Time), o.TokenID, by.address, by.name, by.avatar, whom.address, whom.name, whom.avatar, float64(o.code), o.tag,
			})
		}
		if primary[o.TokenID] && !seen[o.TokenID] && len(active) < 2000 {
			active = append(active, []any{float64(o.Time), o.TokenID, by.address})
		}
		seen[o.TokenID] = true
	}
	all[site.RecentKey], all[render.ActiveKey] = map[string]any{"entries": recent}, map[string]any{"entries": active}
	growth := map[string]any{"first": "", "days": []any{}}
	if !first.IsZero() {
		growth["first"] = first.Format(time.DateOnly)
		for day := first.Truncate(24 * time.Hour); !day.After(last); day = day.Add(24 * time.Hour) {
			counts := days[day.Format(time.DateOnly)]
			if counts == nil {
				counts = []any{0.0, 0.0}
			}
			growth["days"] = append(growth["days"].([]any), counts)
		}
	}
	all[site.GrowthKey] = growth
	return all
}

// isHistory reports whether a key belongs to an object of operations.
func isHistory(key site.Key) bool {
	return strings.HasPrefix(string(key), "_search/notifications/") || strings.HasPrefix(string(key), "_search/activity/") ||
		key == site.RecentKey || key == render.ActiveKey || key == site.GrowthKey
}

func checkHistory(t *testing.T, got objects, want map[site.Key]any) {
	t.Helper()
	for key, body := range got {
		if _, ok := want[key]; isHistory(key) && !ok {
			t.Errorf("%s: got %.200s, want no such object", key, body)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		var object any
		if err := stdjson.Unmarshal([]byte(got[key]), &object); err != nil || !reflect.DeepEqual(object, want[key]) {
			t.Errorf("%s: got %.2000s (%v)\nwant %.2000v", key, got[key], err, want[key])
			return
		}
	}
}

// randomOps returns operations at few distinct times, so that many coincide; each place occurs
// once.
func randomOps(seed uint64, n int) (ops []shownOp) {
	r := rand.New(rand.NewPCG(seed, 25))
	tokens, tags := []string{"1", "2", "3", "10", "10", "99"}, []string{"top8", "block", "<b>", `"`, "é\u2028", "a,b"}
	seen := map[string]bool{}
	for range n {
		code := op.Code(1 + r.IntN(4))
		tag := ""
		if code >= op.Tag {
			tag = tags[r.IntN(len(tags))]
		}
		at := opsAsOf.Add(-time.Duration(r.IntN(8)) * 5 * time.Hour).Add(time.Duration(r.IntN(3)-1) * time.Millisecond)
		if r.IntN(4) == 0 {
			at = opsAsOf.Add(-time.Duration(r.Int64N(int64(400 * 24 * time.Hour)))).Truncate(time.Millisecond)
		}
		o := newOp(tokens[r.IntN(len(tokens))], at, uint64(1+r.IntN(2)), uint64(r.IntN(40)), uint32(r.IntN(4)), code, 1+r.IntN(1+r.IntN(12)), tag)
		if r.IntN(20) == 0 { // not on an account
			o.Op.Op, o.about = append([]byte{1, byte(1 + r.IntN(2)), 1, 7}, tag...), ""
			o.Op.Op = append(o.Op.Op, 1)
		}
		place := fmt.Sprint(o.Time, o.Chain, o.Block, o.LogIndex, o.TokenID)
		if !seen[place] {
			seen[place] = true
			ops = append(ops, o)
		}
	}
	return ops
}

// Rendered operations equal a naive computation, however the site is made, in parts of a thousand
// and with ties in order; the rest of the site is the same as without operations.
func TestHistory(t *testing.T) {
	for seed := uint64(0); seed < 12; seed += uint64(servers.Rounds(2, 1)) {
		window := time.Duration(1+seed*seed*seed/12) * 5 * time.Hour
		ops := randomOps(seed, []int{0, 1, 30, 400, 9000}[seed%5])
		s := historian().withOps(t, ops)
		o := withHistory(window)
		got := inMemory(t, s, o)
		if err := check(got); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		checkHistory(t, got, naiveHistory(t, s, ops, window))

		plain := inMemory(t, historian(), o)
		maps.DeleteFunc(plain, func(key site.Key, body string) bool {
			same := got[key] == body
			return same || key == site.RootKey || strings.HasPrefix(string(key), "_manifest/") || key == site.OpenAPIKey ||
				strings.HasPrefix(string(key), "_explore/") // the bundle and the page depend on the site's features
		})
		for key, body := range plain {
			t.Errorf("seed %d: %s: got %.300s, want %.300s as without operations", seed, key, got[key], body)
		}
		for name, open := range map[string]func() (*generator.Site, *summary.Report, error){
			"open": func() (*generator.Site, *summary.Report, error) { return generator.Open(t.Context(), s.fs(), o) },
			"live": func() (*generator.Site, *summary.Report, error) { return generator.OpenLive(t.Context(), s.fs(), o) },
		} {
			opened, _, err := open()
			if err != nil {
				t.Fatal(err)
			}
			for key, body := range got {
				if !isHistory(key) {
					continue
				}
				if again, err := opened.Get(t.Context(), key); err != nil || string(again) != body {
					t.Errorf("seed %d, %s: %s: got %.300s, %v\nwant %.300s", seed, name, key, again, err, body)
				}
			}
			for _, key := range []site.Key{
				"_search/notifications/older/" + site.Key(address(1)) + "/0", site.NotificationsKey(address(1), 99), site.NotificationsKey(address(999), 0),
				"_search/activity/older/1/0", site.ActivityKey("1", 99), site.ActivityKey("99", 0),
			} {
				if body, err := opened.Get(t.Context(), key); !errors.Is(err, site.ErrNotFound) {
					t.Errorf("%s: %s: got %.100s, %v, want no object", name, key, body, err)
				}
			}
			if err := opened.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// An operation at the first moment of the window is shown, an operation a millisecond earlier is
// not, and an operation after as_of is.
func TestHistoryWindowEdges(t *testing.T) {
	at := func(d time.Duration) shownOp { return newOp("1", opsAsOf.Add(d), 1, 1, 1, op.Follow, 7, "") }
	const hour = time.Hour
	got := inMemory(t, historian().withOps(t, []shownOp{at(-hour), at(-hour - time.Millisecond), at(50 * hour)}), withHistory(hour))
	want := fmt.Sprintf(`{"address":"%s","total":2,"shards":1,"entries":[[%d,"1","%[3]s","a.eth","https://a.example/1.png",1,""],[%[4]d,"1","%[3]s","a.eth","https://a.example/1.png",1,""]]}`,
		address(7), opsAsOf.Add(50*hour).UnixMilli(), address(1), opsAsOf.Add(-hour).UnixMilli())
	if got[site.NotificationsKey(address(7), 0)] != want {
		t.Errorf("got %s\nwant %s", got[site.NotificationsKey(address(7), 0)], want)
	}
	if want := `{"first":"2026-11-19","days":[[2,0],[0,0],[0,0],[1,0]]}`; got[site.GrowthKey] != want {
		t.Errorf("growth: got %s, want %s", got[site.GrowthKey], want)
	}

	// It shows its account, which the graph knows, and its tag.
	first := newOp("1", opsAsOf.Add(-hour), 1, 1, 1, op.Tag, 2, "first")
	s := historian().withOps(t, []shownOp{first})
	checkHistory(t, inMemory(t, s, withHistory(hour)), naiveHistory(t, s, []shownOp{first}, hour))
}

// Days before 1970 are days too.
func TestEarlyGrowth(t *testing.T) {
	early := func(hour int) shownOp {
		return newOp("1", time.Date(1969, 12, 31, hour, 0, 0, 0, time.UTC), 1, 1, 1, op.Unfollow, 7, "")
	}
	s := historian().with("meta.json", `{"format":1,"as_of":"1970-01-02T00:00:00Z"}`).withOps(t, []shownOp{early(0), early(23)})
	if got, want := inMemory(t, s, withHistory(time.Hour))[site.GrowthKey], `{"first":"1969-12-31","days":[[0,2],[0,0],[0,0]]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A site has no operations without the table, without a window, or under the API spec.
func TestNoHistory(t *testing.T) {
	s := historian().withOps(t, randomOps(1, 100))
	without := exploring(smallEFP)
	want := inMemory(t, historian(), without)
	for name, got := range map[string]objects{
		"no table":  inMemory(t, historian(), withHistory(time.Hour)),
		"no window": inMemory(t, s, without),
	} {
		if !maps.Equal(got, want) {
			t.Errorf("%s: got another site than without operations", name)
		}
	}
	if got := inMemory(t, s, exploring(small)); !maps.Equal(got, inMemory(t, historian(), exploring(small))) {
		t.Error("API spec: got another site than without operations")
	}
}

// Invalid rows are errors with file and line, or skipped and counted; operations of unknown lists
// have no effect.
func TestInvalidOps(t *testing.T) {
	first := newOp("1", opsAsOf.Add(-3*time.Hour), 1, 1, 1, op.Follow, 7, "")
	good := historian().withOps(t, []shownOp{first, newOp("99", opsAsOf, 1, 1, 1, op.Follow, 7, "")})
	row := func(change ...string) string {
		lines := strings.Split(good["ops.ndjson"], "\n")
		return strings.NewReplacer(change...).Replace(lines[0])
	}
	for name, c := range map[string]struct{ row, want string }{
		"an op that is none": {row(`"0x0101`, `"0x0109`), "op: operation with an unknown code"},
		"backwards":          {row(`2026-11-19`, `2026-11-18`), "sort the rows"},
		"twice":              {row(), "a second row"},
	} {
		s := good.with("ops.ndjson", row()+"\n"+c.row+"\n"+row(`2026-11-19T21`, `2026-11-19T22`)+"\n")
		_, _, err := generator.ToMemory(t.Context(), s.fs(), withHistory(time.Hour))
		if rowErr := (*snapshots.RowError)(nil); !errors.As(err, &rowErr) || rowErr.File != "ops.ndjson" || rowErr.Line != 2 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error of ops.ndjson:2 with %q", name, err, c.want)
		}
		o := withHistory(48 * time.Hour)
		o.SkipInvalid = true
		files, report, err := generator.ToMemory(t.Context(), s.fs(), o)
		if err != nil || report.Tables["ops"].Skipped != 1 || report.Tables["ops"].Rows != 3 {
			t.Errorf("%s, skipped: got %+v, %v", name, report, err)
			continue
		}
		if body, err := afero.ReadFile(files, string(site.NotificationsKey(address(7), 0))); err != nil || !bytes.Contains(body, []byte(`"total":2,`)) {
			t.Errorf("%s, skipped: got %s, %v, want two entries", name, body, err)
		}
	}
	s := good.with("ops.ndjson", row(`2026-11-19`, `1926-11-01`)+"\n")
	if _, _, err := generator.ToMemory(t.Context(), s.fs(), withHistory(time.Hour)); err == nil || !strings.Contains(err.Error(), "ops.ndjson:1: time: 1926-11-01") {
		t.Errorf("a century before as_of: got %v", err)
	}
	s = good.with("ops.ndjson", row()+"\n"+row(`2026-11-19`, `2127-11-19`)+"\n")
	if _, _, err := generator.ToMemory(t.Context(), s.fs(), withHistory(time.Hour)); err == nil || !strings.Contains(err.Error(), "ops.ndjson:2: time: 2127-11-19T21:00:00Z: operations and as_of span more than a hundred years") {
		t.Errorf("a century after the first: got %v", err)
	}
	_, report, err := generator.ToMemory(t.Context(), good.fs(), withHistory(time.Hour))
	if err != nil || report.Tables["ops"].WithoutEffect[summary.UnknownList] != 1 || !strings.Contains(report.String(), "\nops                2 rows, 1 without effect (unknown list), 0 shown\n") {
		t.Errorf("an unknown list: got %s, %v, want that it is counted", report, err)
	}
}

// A million operations on one account, by one list and at one time, take memory in proportion.
func TestWorstHistory(t *testing.T) {
	const n = 200_000
	var text bytes.Buffer
	text.Grow(200 * n)
	for i := range n {
		fmt.Fprintf(&text, `{"token_id":"1","time":"2026-11-19T23:00:00.000Z","chain_id":1,"block":%d,"log_index":1,"op":"0x01010101%040x"}`+"\n", i, 7)
	}
	s := historian().with("ops.ndjson", text.String())
	worst.Check(t, "operations of one time", 420*n+96<<20, func() {
		opened, _, err := generator.OpenLive(t.Context(), s.fs(), withHistory(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []site.Key{site.NotificationsKey(address(7), 0), site.NotificationsKey(address(7), n/1000-1), site.ActivityKey("1", n/1000-1)} {
			body, err := opened.Get(t.Context(), key)
			if err != nil || bytes.Count(body, []byte("\n"))+bytes.Count(body, []byte("[17")) != 1000 {
				t.Errorf("%s: got %.200s, %v, want 1000 entries", key, body, err)
			}
		}
	})
}
