package generator_test

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"
	"github.com/parquet-go/parquet-go"

	"github.com/followpress/followpress/fixtures/odd"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/twin/answers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/data"
	"github.com/followpress/followpress/site/op"
)

// withData adds the graph as files to the site.
func withData(o generator.Options) generator.Options {
	o.Config.Data = true
	return o
}

// A dataPackage holds the fields of datapackage.json that the test reads.
type dataPackage struct {
	AsOf      string `json:"as_of"`
	Licence   string
	Licenses  []map[string]string
	Resources []struct {
		Name, Path, Table, Hash string
		Rows, Bytes             int
		RowsHash                string `json:"rows_hash"`
		Schema                  struct {
			Fields []struct {
				Name, Type, Description string
				Constraints             struct{ Required bool }
			}
		}
	}
}

// readData reads every file in the package, checks its description, and returns the rows of each
// table as texts.
func readData(t testing.TB, o objects) (rows map[data.Table][]string, p dataPackage) {
	t.Helper()
	if err := json.Unmarshal([]byte(o[data.PackageKey]), &p); err != nil {
		t.Fatal(err)
	}
	rows = map[data.Table][]string{}
	files := map[site.Key]bool{data.PackageKey: true}
	for _, r := range p.Resources {
		key := site.Key(path.Join(path.Dir(string(data.PackageKey)), r.Path))
		files[key] = true
		body := o[key]
		if r.Name+".parquet" != r.Path || r.Bytes != len(body) || r.Hash != fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(body))) {
			t.Errorf("%s: got %+v, want the size and the digest of %d bytes", key, r, len(body))
		}
		f, err := parquet.OpenFile(strings.NewReader(body), int64(len(body)))
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		var names []string
		for i, field := range f.Root().Columns() {
			names = append(names, field.Name())
			if want := r.Schema.Fields[i]; want.Name != field.Name() || want.Description == "" || want.Constraints.Required == field.Optional() {
				t.Errorf("%s: got the column %s, want %+v", key, field, want)
			}
		}
		if len(names) != len(r.Schema.Fields) || f.Metadata().CreatedBy != "followpress version 1.0.0(build data)" {
			t.Errorf("%s by %s: got the columns %q, want %+v", key, f.Metadata().CreatedBy, names, r.Schema.Fields)
		}
		all := canonicalRows(t, f)
		digest := sha256.Sum256([]byte(strings.Join(all, "")))
		if r.Rows != len(all) || int(f.NumRows()) != len(all) || r.RowsHash != fmt.Sprintf("sha256:%x", digest) {
			t.Errorf("%s: got %+v, want %d rows with the digest %x", key, r, len(all), digest)
		}
		rows[data.Table(r.Table)] = append(rows[data.Table(r.Table)], all...)
	}
	for key := range o {
		if strings.HasPrefix(string(key), "_data/") && !files[key] {
			t.Errorf("%s: got an object that the package does not list", key)
		}
	}
	return rows, p
}

// canonicalRows reads the rows of a file, in the form of docs/snapshot.md.
func canonicalRows(t testing.TB, f *parquet.File) (rows []string) {
	t.Helper()
	for _, group := range f.RowGroups() {
		reader := group.Rows()
		for {
			var some [100]parquet.Row
			n, err := reader.ReadRows(some[:])
			for _, row := range some[:n] {
				values := make([][]string, len(f.Root().Columns()))
				for _, v := range row {
					values[v.Column()] = append(values[v.Column()], canonicalValue(v))
				}
				var text strings.Builder
				for i, column := range f.Root().Columns() {
					if column.Leaf() {
						text.WriteString(values[i][0])
						continue
					}
					list := strings.Join(values[i], "")
					if list == "-," { // no element
						list = ""
					}
					text.WriteString(netstring(list))
				}
				rows = append(rows, text.String())
			}
			if err != nil {
				break
			}
		}
		if err := reader.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return rows
}

func canonicalValue(v parquet.Value) string {
	switch {
	case v.IsNull():
		return "-,"
	case v.Kind() == parquet.Boolean:
		return netstring(v.Boolean())
	case v.Kind() == parquet.Int32:
		return netstring(v.Int32())
	case v.Kind() == parquet.Int64:
		return netstring(v.Int64())
	}
	return netstring(string(v.ByteArray()))
}

func netstring(v any) string {
	text := fmt.Sprint(v)
	return fmt.Sprintf("%d:%s,", len(text), text)
}

// orNone returns a text, or no value for an empty one.
func orNone(text string) string {
	if text == "" {
		return "-,"
	}
	return netstring(text)
}

// naiveData computes the rows of all tables except ops from the reference answers, and the times of
// records from the snapshot.
func naiveData(t testing.TB, s snapshot, config site.Config) map[data.Table][]string {
	t.Helper()
	r := newReference(t, s, config)
	rows, accounts := map[data.Table][]string{}, r.addresses()
	addRecordRows(r, addedIn(t, s), accounts, rows)
	ranked := map[string]ranking{}
	for _, entry := range r.ranked("mutuals") {
		ranked[entry.Address] = entry
	}
	for _, a := range accounts {
		p, n := r.details[a].ENS, ranked[a]
		row := netstring(a) + orNone(p.Name) + orNone(p.Avatar) + orNone(r.primary[a])
		for _, measure := range []string{
			n.Followers, n.Following, n.Mutuals, n.Top8, n.Blocks, n.FollowersRank, n.FollowingRank, n.MutualsRank, n.Top8Rank, n.BlocksRank,
		} {
			row += netstring(cmp.Or(measure, "0"))
		}
		rows[data.Accounts] = append(rows[data.Accounts], row)
	}
	for event := range r.events {
		for _, owner := range accounts {
			badge := r.badges[owner][event]
			if badge.Participated && (config.EFP() || slices.ContainsFunc(r.tokens, func(token string) bool { return r.lists[token].account == owner })) {
				c := badge.Collection
				rows[data.Badges] = append(rows[data.Badges], netstring(c.Event.ID)+netstring(c.Event.Name)+netstring(c.TokenID)+netstring(owner))
			}
		}
	}
	return rows
}

// addedIn returns when the records of a snapshot were added, by their texts; the first of repeated
// rows counts.
func addedIn(t testing.TB, s snapshot) map[string]int64 {
	t.Helper()
	added := map[string]int64{}
	for _, r := range decodeRows[struct {
		TokenID string `json:"token_id"`
		Data    string
		Type    string `json:"record_type"`
		Version int
		Added   *string
	}](t, s, "records") {
		id := fmt.Sprint(r.TokenID, r.Version, r.Type, strings.ToLower(r.Data))
		if _, ok := added[id]; !ok {
			added[id] = noTime
			if r.Added != nil {
				at, err := time.Parse(time.RFC3339, *r.Added)
				if err != nil {
					t.Fatal(err)
				}
				added[id] = at.UnixMilli()
			}
		}
	}
	return added
}

// addRecordRows adds the rows of follows and edges.
func addRecordRows(r *reference, added map[string]int64, accounts []string, rows map[data.Table][]string) {
	type record struct {
		follower, list string
		counts         bool
		answers.Record
	}
	var records []record
	for _, token := range r.tokens {
		l := r.lists[token]
		for _, in := range l.records {
			if isHeld(in) {
				records = append(records, record{l.account, token, isFollow(in) && r.primary[l.account] == token, in})
			}
		}
	}
	slices.SortFunc(records, func(a, b record) int {
		return cmp.Or(strings.Compare(a.follower, b.follower), strings.Compare(a.Data, b.Data), strings.Compare(a.list, b.list))
	})
	for _, in := range records {
		tags, at := "", "-,"
		for _, tag := range in.Tags {
			tags += netstring(tag)
		}
		if ms := added[fmt.Sprint(in.list, in.Version, in.RecordType, in.Data)]; ms != noTime {
			at = netstring(ms)
		}
		rows[data.Follows] = append(rows[data.Follows], netstring(in.follower)+netstring(in.Data)+netstring(in.list)+netstring(in.counts)+netstring(tags)+at)
		if in.counts {
			rows[data.Edges] = append(rows[data.Edges], netstring(slices.Index(accounts, in.follower))+netstring(slices.Index(accounts, in.Data)))
		}
	}
}

const noTime = -1 << 63

// TestData compares the files with rows computed naively, for both APIs, and with a hostile
// snapshot.
func TestData(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		s := snapshot(odd.Snapshot(seed, odd.Shape{Accounts: 25, Lists: 18, Records: 350, Events: 5, Badges: 60, Hostile: true, Timed: true}))
		for _, o := range []generator.Options{small, smallEFP} {
			t.Run(fmt.Sprint(seed, o.Config.API), func(t *testing.T) {
				got, _ := readData(t, inMemory(t, s, withData(o)))
				want := naiveData(t, s, o.Config)
				for _, table := range []data.Table{data.Accounts, data.Badges, data.Edges, data.Follows} {
					if len(want[table]) == 0 {
						t.Errorf("%s: the snapshot has no rows", table)
					}
					equalRows(t, table, got[table], want[table])
				}
				if _, ok := got[data.Ops]; ok {
					t.Error("got the table ops, which the snapshot does not have")
				}
			})
		}
	}
}

func equalRows(t testing.TB, table data.Table, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got) || i >= len(want):
			t.Errorf("%s: got %d rows, want %d", table, len(got), len(want))
			return
		case got[i] != want[i]:
			t.Errorf("%s: row %d:\ngot  %.500q\nwant %.500q", table, i, got[i], want[i])
			return
		}
	}
}

// TestDataOfOps: the table has every operation on an account by a known list. The window still
// bounds what other objects show.
func TestDataOfOps(t *testing.T) {
	t.Parallel()
	at := func(hours int) time.Time { return opsAsOf.Add(time.Duration(-hours) * time.Hour) }
	ops := []shownOp{
		newOp("1", at(5000), 1, 1, 1, op.Follow, 2, ""), newOp("2", at(4000), 1, 2, 1, op.Tag, 3, `"é`), newOp("10", at(30), 1, 3, 1, op.Unfollow, 900, ""),
		newOp("10", at(2), 1, 4, 1, op.Untag, 3, "x"), newOp("10", at(2), 1, 4, 2, op.Follow, 3, ""), newOp("77", at(1), 1, 5, 1, op.Follow, 3, ""),
	}
	s := historian().withOps(t, ops)
	owners := map[string]string{"1": address(1), "2": address(1), "10": address(2)}
	var want []string
	for _, o := range ops[:5] {
		want = append(want, netstring(o.Time)+netstring(o.TokenID)+netstring(owners[o.TokenID])+netstring(o.code)+netstring(o.about)+orNone(o.tag))
	}
	for _, o := range []generator.Options{withHistory(10 * time.Hour), withHistory(0), small} {
		without, with := inMemory(t, s, o), inMemory(t, s, withData(o))
		rows, _ := readData(t, with)
		equalRows(t, data.Ops, rows[data.Ops], want)
		for key, body := range with {
			if _, ok := without[key]; !ok != strings.HasPrefix(string(key), "_data/") {
				t.Errorf("%s: got an object more or less than without the files", key)
			} else if ok && body != without[key] && key != site.RootKey && key != site.OpenAPIKey && !strings.HasPrefix(string(key), "_manifest/") {
				t.Errorf("%s: got another object than without the files", key)
			}
		}
	}
}

// TestDataOfNothing: an empty graph has files without rows.
func TestDataOfNothing(t *testing.T) {
	t.Parallel()
	rows, p := readData(t, inMemory(t, emptySnapshot().with("ops.ndjson", ""), withData(smallEFP)))
	if len(p.Resources) != 5 || p.AsOf != "2026-11-20T00:00:00Z" {
		t.Errorf("got the package %+v, want five files", p)
	}
	for table, rows := range rows {
		if len(rows) > 0 {
			t.Errorf("%s: got %d rows, want none", table, len(rows))
		}
	}
}

// TestDataOfHostileTexts: texts of 1 MiB, or with controls; IDs of 78 digits; accounts without anything.
func TestDataOfHostileTexts(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("9", 77) + "1"
	long := strings.Repeat("long", 1<<18)
	s := emptySnapshot().adding("lists", list(id, address(1))).
		adding("accounts", account(address(1), "a\x00\u2028\"\\", long[:60_000], id), account(address(2), "", "", ""), `{"address":"`+address(5)+`"}`).
		adding("events", strings.NewReplacer(`"id":7`, `"id":18446744073709551615`, `"name":""`, `"name":"n\u0000<&>"`).Replace(event)).
		adding("badges", `{"event_id":"18446744073709551615","token_id":"`+id+`","owner":"`+address(4)+`"}`).
		adding("records", recordRow(id, address(2), `"`+long+`","\u0000"`), recordRow(id, address(3), `"`+long+`x"`))
	got, p := readData(t, inMemory(t, s, withData(smallEFP)))
	if len(p.Resources) != 4 || len(got[data.Accounts]) != 5 {
		t.Fatalf("got %d files and %d accounts, want 4 and 5", len(p.Resources), len(got[data.Accounts]))
	}
	tags := netstring("\x00") + netstring(long)
	for table, want := range map[data.Table]string{
		data.Follows:  netstring(address(1)) + netstring(address(2)) + netstring(id) + netstring(true) + netstring(tags) + "-,",
		data.Badges:   netstring("18446744073709551615") + netstring("n\x00<&>") + netstring(id) + netstring(address(4)),
		data.Accounts: netstring(address(1)) + netstring("a\x00\u2028\"\\") + netstring(long[:60_000]) + netstring(id),
	} {
		if row := got[table][0]; !strings.HasPrefix(row, want) {
			t.Errorf("%s: got the first row %.200q, want %.200q", table, row, want)
		}
	}
}

// TestDataInParts: many large texts make a table parts, which continue each other, and each can be read alone.
func TestDataInParts(t *testing.T) {
	t.Parallel()
	s := emptySnapshot().adding("lists", list("1", address(1))) // not primary, so that few other objects have its tags
	const mib = 1 << 20
	var rows, want []string
	for i := range 50 {
		tag := strconv.Itoa(i) + strings.Repeat(".", mib)
		rows = append(rows, recordRow("1", address(100+i), quote(tag)))
		want = append(want, netstring(address(1))+netstring(address(100+i))+netstring("1")+netstring(false)+netstring(netstring(tag))+"-,")
	}
	o := withData(smallEFP)
	all := inMemory(t, s.adding("records", rows...), o)
	got, p := readData(t, all)
	equalRows(t, data.Follows, got[data.Follows], want)
	var names []string
	for _, r := range p.Resources {
		names = append(names, r.Name)
	}
	if want := []string{"accounts", "badges", "edges", "follows-0001", "follows-0002"}; !slices.Equal(names, want) {
		t.Errorf("got the files %q, want %q", names, want)
	}
	opened, _, err := generator.Open(t.Context(), s.adding("records", rows...).fs(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	for _, key := range []site.Key{data.Key(data.Follows, 2), data.PackageKey, data.Key(data.Edges, 0)} {
		if body, err := opened.Get(t.Context(), key); err != nil || string(body) != all[key] {
			t.Errorf("%s: got %d bytes and %v, want those of the whole site", key, len(body), err)
		}
	}
	for _, key := range []site.Key{data.Key(data.Follows, 0), data.Key(data.Follows, 3), data.Key(data.Ops, 0)} {
		if _, err := opened.Get(t.Context(), key); err == nil {
			t.Errorf("%s: got an object, want none", key)
		}
	}
}

// TestDataIsTheSame for any number of processors and workers.
func TestDataIsTheSame(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	s := randomSnapshot(3, shape{accounts: 300, lists: 200, records: 5000, events: 5, badges: 300})
	o := withData(smallEFP)
	o.Config.DataLicence = "CC0-1.0"
	var want objects
	for _, processors := range []int{1, 3, 8} {
		runtime.GOMAXPROCS(processors)
		o.Workers = processors
		got := inMemory(t, s, o)
		if want == nil {
			want = got
		}
		if err := got.Compare(want); err != nil {
			t.Errorf("%d processors: %v", processors, err)
		}
	}
	_, p := readData(t, want)
	if p.Licence != "CC0-1.0" || len(p.Licenses) != 1 || p.Licenses[0]["name"] != "CC0-1.0" {
		t.Errorf("got the licence %q and %v, want CC0-1.0", p.Licence, p.Licenses)
	}
	if bytes.Contains([]byte(want[data.Key(data.Follows, 0)]), []byte("parquet-go")) {
		t.Error("follows: got the name of a library in the bytes")
	}
}

// TestDataSettings: invalid combinations are rejected.
func TestDataSettings(t *testing.T) {
	for _, test := range []struct {
		config site.Config
		want   string
	}{
		{site.Config{DataLicence: "CC0-1.0"}, "only with the graph as files"},
		{site.Config{Data: true, DataLicence: "a\nb"}, "without line breaks"},
		{site.Config{Data: true, DataLicence: strings.Repeat("x", 1001)}, "at most 1000 bytes"},
		{site.Config{Data: true, DataLicence: "\xff"}, "UTF-8"},
		{site.Config{Data: true, DataLicence: "For anything; please name us."}, ""},
	} {
		_, err := test.config.WithDefaults()
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%+v: got %v, want %q", test.config, err, test.want)
		}
	}
}
