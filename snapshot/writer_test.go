package snapshot_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

var someone = site.Address{0xd8, 0xda, 0x6b, 19: 0x45}

// TestGolden: the members are in the order of docs/snapshot.md, absent members are omitted, and
// times are in UTC, with a fraction only if there is one.
func TestGolden(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "snapshot")
	w := create(t, dir, snapshot.WriteOptions{Compression: "none", NoSync: true})
	other, ops := site.Address{1, 19: 2}, uint64(7)
	r := rows{
		events: []site.Event{{ID: 9, FancyID: "f", Name: `N "1"`, EventURL: "u", ImageURL: "i", Country: "c", City: "t", Description: "<d>",
			Year: 2026, StartDate: "s", EndDate: "e", ExpiryDate: "x"}},
		lists:    []snapshot.List{{TokenID: "0", Owner: someone}, {TokenID: "12", Owner: someone, User: &other}},
		accounts: []snapshot.Account{{Address: someone}, {Address: other, Primary: "12", ENS: &site.Profile{Name: "a.eth", Records: json.RawMessage(`{"b": 1, "c": "x", "a": null}`), Fresh: 5}}},
		records: []snapshot.Record{
			{TokenID: "12", Version: 1, Type: "address", Data: someone[:], Added: snapshot.NoTime},
			{TokenID: "12", Version: math.MaxUint32, Type: "7", Tags: []string{"b", "\n\xe2\x80\xa8é"}, Added: 1_700_000_000_000},
			{TokenID: "0", Version: 1, Type: "address", Data: []byte{1}, Added: -1},
		},
		badges:      []snapshot.Badge{{EventID: "9", TokenID: "3", Owner: other}},
		recommended: []snapshot.Recommended{{Address: other}, {Address: someone, Class: "A"}},
	}
	zone := time.FixedZone("", 3600)
	if err := errors.Join(r.write(w), w.Commit(snapshot.Meta{AsOf: time.Date(2026, 11, 22, 1, 2, 3, 45_999_999, zone), ListOps: &ops})); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"meta.json":     `{"format":1,"as_of":"2026-11-22T00:02:03.045Z","list_ops":7}` + "\n",
		"events.ndjson": `{"id":9,"fancy_id":"f","name":"N \"1\"","event_url":"u","image_url":"i","country":"c","city":"t","description":"<d>","year":2026,"start_date":"s","end_date":"e","expiry_date":"x"}` + "\n",
		"lists.ndjson": `{"token_id":"0","owner":"0xd8da6b0000000000000000000000000000000045"}` + "\n" +
			`{"token_id":"12","owner":"0xd8da6b0000000000000000000000000000000045","user":"0x0100000000000000000000000000000000000002"}` + "\n",
		"accounts.ndjson": `{"address":"0xd8da6b0000000000000000000000000000000045"}` + "\n" +
			`{"address":"0x0100000000000000000000000000000000000002","primary_list":"12","ens":{"name":"a.eth","avatar":"","header":"","display":"","records":{"c":"x"},"chains":{},"fresh":5,"resolver":"","errors":{}}}` + "\n",
		"records.ndjson": `{"token_id":"12","version":1,"record_type":"address","data":"0xd8da6b0000000000000000000000000000000045"}` + "\n" +
			`{"token_id":"12","version":4294967295,"record_type":"7","data":"0x","tags":["b","\n\u2028é"],"added":"2023-11-14T22:13:20Z"}` + "\n" +
			`{"token_id":"0","version":1,"record_type":"address","data":"0x01","added":"1969-12-31T23:59:59.999Z"}` + "\n",
		"badges.ndjson": `{"event_id":"9","token_id":"3","owner":"0x0100000000000000000000000000000000000002"}` + "\n",
		"recommended.ndjson": `{"address":"0x0100000000000000000000000000000000000002"}` + "\n" +
			`{"address":"0xd8da6b0000000000000000000000000000000045","class":"A"}` + "\n",
	}
	if got := bytesOf(t, dir); !maps.Equal(got, want) {
		t.Errorf("files: got\n%q\nwant\n%q", got, want)
	}
	alone(t, dir)
}

// TestEmpty: a snapshot without rows has all tables but recommended.
func TestEmpty(t *testing.T) {
	for compression, ending := range compressions {
		dir := filepath.Join(t.TempDir(), "snapshot")
		commit(t, dir, rows{}, snapshot.WriteOptions{Compression: compression, NoSync: true})
		want := []string{"accounts" + ending, "badges" + ending, "events" + ending, "lists" + ending, "meta.json", "records" + ending}
		if got := slices.Sorted(maps.Keys(bytesOf(t, dir))); !slices.Equal(got, want) {
			t.Errorf("files: got %v, want %v", got, want)
		}
		if _, err := read(t, dir); err != nil {
			t.Error(err)
		}
	}
}

// TestRoundTrip: the reader returns the written rows for every compression; the same rows make the
// same files; and a site can be made of them.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(servers.Rounds(6, 100)) {
		r := random(rand.New(rand.NewPCG(seed, 13)))
		for compression := range compressions {
			o := snapshot.WriteOptions{Compression: compression, NoSync: true}
			dir, again := filepath.Join(t.TempDir(), "snapshot"), filepath.Join(t.TempDir(), "again")
			commit(t, dir, r, o)
			commit(t, again, r, o)
			if !maps.Equal(bytesOf(t, dir), bytesOf(t, again)) {
				t.Errorf("seed %d, %s: equal rows made different files", seed, compression)
			}
			got, err := read(t, dir)
			if err != nil {
				t.Fatalf("seed %d, %s: %v", seed, compression, err)
			}
			if want := r.asRead(t); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, %s: got\n%+v\nwant\n%+v", seed, compression, got, want)
			}
		}
		dir := filepath.Join(t.TempDir(), "snapshot")
		commit(t, dir, r, fast)
		o := generator.Options{Config: site.Config{API: site.APIEFP, LeaderboardMax: 10}}
		if _, _, err := generator.ToMemory(t.Context(), files(dir), o); err != nil {
			t.Fatalf("seed %d: a site of the snapshot: %v", seed, err)
		}
	}
}

// asRead returns the rows in the form in which the reader gives them back.
func (r rows) asRead(t testing.TB) rows {
	t.Helper()
	r.records, r.accounts = slices.Clone(r.records), slices.Clone(r.accounts)
	for i := range r.records {
		rec := &r.records[i]
		slices.Sort(rec.Tags)
		rec.Tags = slices.Compact(rec.Tags)
	}
	for i := range r.accounts {
		if ens := r.accounts[i].ENS; ens != nil {
			normal, err := ens.Normalize()
			if err != nil {
				t.Fatal(err)
			}
			normal.NoTexts = 0 // written rows have none
			r.accounts[i].ENS = &normal
		}
	}
	return r
}

// random makes rows with everything that is legal.
func random(g *rand.Rand) (r rows) {
	texts := []string{"", "a", "é", "\u2028", "\x00", "\"\\", "top8", "🦊", "\ufffd", "</script>", strings.Repeat("x", 300), "\U0010ffff"}
	text := func() string {
		return texts[g.IntN(len(texts))] + texts[g.IntN(len(texts))]
	}
	address := func() (a site.Address) {
		a[0], a[19] = byte(g.IntN(4)), byte(g.IntN(4))
		return a
	}
	token := func() string {
		return []string{"0", "1", "12", strconv.FormatUint(g.Uint64(), 10), "1" + strings.Repeat("0", 77)}[g.IntN(5)]
	}
	object := func() json.RawMessage {
		body, _ := json.Marshal(map[string]any{text(): text(), text(): []any{g.IntN(9), nil, map[string]any{text(): true}}})
		return []json.RawMessage{nil, json.RawMessage("null"), json.RawMessage(" { } "), body}[g.IntN(4)]
	}
	times := []int64{snapshot.NoTime, 0, 1, 999, 1000, -1, -62_167_219_200_000, 253_402_300_799_999, 1_700_000_000_000 + g.Int64N(1e10)}
	events, lists, accounts := map[uint64]bool{}, map[string]bool{}, map[site.Address]bool{}
	for range g.IntN(12) {
		if e := (site.Event{ID: uint64(g.IntN(9)), Name: text(), ImageURL: text(), Year: g.IntN(5000) - 100, StartDate: text()}); !events[e.ID] {
			events[e.ID] = true
			r.events = append(r.events, e)
		}
		if l := (snapshot.List{TokenID: token(), Owner: address()}); !lists[l.TokenID] {
			if g.IntN(2) == 0 {
				user := address()
				l.User = &user
			}
			lists[l.TokenID] = true
			r.lists = append(r.lists, l)
		}
		if a := (snapshot.Account{Address: address()}); !accounts[a.Address] {
			if g.IntN(2) == 0 {
				a.Primary = token()
			}
			if g.IntN(2) == 0 {
				a.ENS = &site.Profile{Name: text(), Avatar: text(), Resolver: text(), Fresh: g.Int64() - g.Int64(),
					Records: object(), Chains: object(), Errors: object()}
			}
			accounts[a.Address] = true
			r.accounts = append(r.accounts, a)
		}
		r.badges = append(r.badges, snapshot.Badge{EventID: token(), TokenID: token(), Owner: address()})
		r.recommended = append(r.recommended, snapshot.Recommended{Address: address(), Class: text()})
	}
	for range g.IntN(30) {
		a := address()
		rec := snapshot.Record{TokenID: token(), Version: g.Uint32N(3), Type: "address", Data: a[:], Added: times[g.IntN(len(times))]}
		if g.IntN(3) == 0 {
			rec.Type, rec.Data = []string{"address", "2", text() + "."}[g.IntN(3)], make([]byte, g.IntN(40))
		}
		for range g.IntN(3) {
			rec.Tags = append(rec.Tags, text())
		}
		r.records = append(r.records, rec)
	}
	if len(r.recommended) > 0 {
		r.ops = manyOps(g, 1+g.IntN(30))
	}
	return r
}

// TestHostileRows: a row that the reader would refuse is refused with a reason, and the snapshot
// is whole without it.
func TestHostileRows(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshot")
	w := create(t, dir, fast)
	good := rows{
		events: []site.Event{{ID: 1}}, lists: []snapshot.List{{TokenID: "1", Owner: someone}}, accounts: []snapshot.Account{{Address: someone}},
		records: []snapshot.Record{{TokenID: "1", Type: "x", Data: []byte{}, Added: 0}}, badges: []snapshot.Badge{{EventID: "1", TokenID: "1"}},
		recommended: []snapshot.Recommended{{Address: someone}},
	}
	if err := good.write(w); err != nil {
		t.Fatal(err)
	}
	account := func(p site.Profile) error { return w.WriteAccount(snapshot.Account{ENS: &p}) }
	record := func(r snapshot.Record) error { return w.WriteRecord(r) }
	long := strings.Repeat("x", 16<<20)
	for want, err := range map[string]error{
		"lists.ndjson.zst:2: token_id: \"01\" is not a canonical decimal":          w.WriteList(snapshot.List{TokenID: "01"}),
		"lists.ndjson.zst:2: token_id: nothing is not":                             w.WriteList(snapshot.List{}),
		"lists.ndjson.zst:2: token_id: duplicate list 1":                           w.WriteList(snapshot.List{TokenID: "1"}),
		"accounts.ndjson.zst:2: address: duplicate account 0xd8d":                  w.WriteAccount(snapshot.Account{Address: someone}),
		"events.ndjson.zst:2: id: duplicate event 1":                               w.WriteEvent(site.Event{ID: 1}),
		"event 2: city: \"\\xff\" is not valid UTF-8":                              w.WriteEvent(site.Event{ID: 2, City: "\xff"}),
		"event 2: expiry_date: \"\\xed\\xa0\\x80\" is not valid UTF-8":             w.WriteEvent(site.Event{ID: 2, ExpiryDate: "\xed\xa0\x80"}),
		"account 0x0000000000000000000000000000000000000000: primary_list: \"-1\"": w.WriteAccount(snapshot.Account{Primary: "-1"}),
		"ens.avatar: \"\\xff\" is not valid UTF-8":                                 account(site.Profile{Avatar: "\xff"}),
		"ens.records: \"[]\" where an object belongs":                              account(site.Profile{Records: json.RawMessage(`[]`)}),
		"ens.chains: bad JSON":                                                     account(site.Profile{Chains: json.RawMessage(`{"a":}`)}),
		"ens.errors: not valid Unicode: half of a surrogate pair":                  account(site.Profile{Errors: json.RawMessage(`{"a":"\ud800"}`)}),
		"not valid UTF-8":                                                   account(site.Profile{Records: json.RawMessage("{\"\xff\":1}")}),
		"a line of more than 16 MiB":                                        account(site.Profile{Avatar: long}),
		"records.ndjson.zst:2: token_id":                                    record(snapshot.Record{TokenID: "1" + strings.Repeat("0", 78), Type: "address"}),
		"record_type of a record of list 1: missing or empty":               record(snapshot.Record{TokenID: "1"}),
		"list 1: record_type: \"\\xff\" is not valid UTF-8":                 record(snapshot.Record{TokenID: "1", Type: "\xff"}),
		"list 1: tags: \"a\\xc3\" is not valid UTF-8":                       record(snapshot.Record{TokenID: "1", Type: "2", Tags: []string{"a", "a\xc3"}}),
		"list 1: added: 253402300800000 ms since 1970 is in the year 10000": record(snapshot.Record{TokenID: "1", Type: "2", Added: 253_402_300_800_000}),
		"list 1: added: -9223372036854775807 ms since 1970":                 record(snapshot.Record{TokenID: "1", Type: "2", Added: snapshot.NoTime + 1}),
		"badges.ndjson.zst:2: event_id":                                     w.WriteBadge(snapshot.Badge{TokenID: "1"}),
		"badges.ndjson.zst:2: token_id":                                     w.WriteBadge(snapshot.Badge{EventID: "1"}),
		"recommended.ndjson.zst:2: address 0xd8da":                          w.WriteRecommended(snapshot.Recommended{Address: someone, Class: "\xff"}),
	} {
		var row *snapshot.RowError
		if !errors.As(err, &row) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a RowError with %q", err, want)
		}
	}
	if err := account(site.Profile{Name: "now without the long text"}); err != nil {
		t.Errorf("an account rejected for its profile: got %v, want it accepted without the profile", err)
	}
	if err := w.Commit(asOf); err != nil {
		t.Fatal(err)
	}
	got, err := read(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	got.accounts = got.accounts[:1]
	if !reflect.DeepEqual(got, good) {
		t.Errorf("rows: got %+v, want %+v", got, good)
	}
}

// TestLongestRow: what the writer takes at its limit the reader takes too.
func TestLongestRow(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshot")
	w := create(t, dir, fast)
	frame := len(`{"token_id":"1","version":0,"record_type":"2","data":"0x","tags":[""]}`)
	r := snapshot.Record{TokenID: "1", Type: "2", Tags: []string{strings.Repeat("x", 16<<20-frame)}, Added: snapshot.NoTime}
	if err := w.WriteRecord(r); err != nil {
		t.Fatal(err)
	}
	r.Tags[0] += "x"
	if err := w.WriteRecord(r); err == nil {
		t.Error("one byte more: got no error, want one")
	}
	if err := w.Commit(asOf); err != nil {
		t.Fatal(err)
	}
	if got, err := read(t, dir); err != nil || len(got.records) != 1 {
		t.Errorf("got %d records and the error %v, want 1 and none", len(got.records), err)
	}
}

// TestMeta: a snapshot rejects an unknown time.
func TestMeta(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshot")
	w := create(t, dir, fast)
	for _, bad := range []time.Time{{}, time.UnixMilli(math.MaxInt64), time.UnixMilli(math.MinInt64)} {
		if err := w.Commit(snapshot.Meta{AsOf: bad}); err == nil || !strings.Contains(err.Error(), "as_of") {
			t.Errorf("%v: got %v, want an error of as_of", bad, err)
		}
	}
	if err := w.Commit(asOf); err != nil {
		t.Error(err)
	}
	if got, err := snapshot.ReadAsOf(files(dir)); err != nil || got != "2026-09-21T14:13:20.250Z" {
		t.Errorf("as_of: got %q and the error %v", got, err)
	}
	if ops, err := snapshot.ReadListOps(files(dir)); err != nil || ops != nil {
		t.Errorf("list_ops: got %v and the error %v, want none", ops, err)
	}
}

// TestGivenUp: without Commit, the old snapshot stays, and no other file is left.
func TestGivenUp(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshot")
	for _, old := range []rows{{}, {lists: []snapshot.List{{TokenID: "7"}}}} {
		if len(old.lists) > 0 {
			commit(t, dir, old, fast)
		}
		w := create(t, dir, fast)
		if err := errors.Join(w.WriteList(snapshot.List{TokenID: "8"}), w.Close(), w.Close()); err != nil {
			t.Fatal(err)
		}
		if err := w.WriteRecord(snapshot.Record{TokenID: "1", Type: "2"}); err == nil {
			t.Error("a row after Close: got no error, want one")
		}
		if err := w.Commit(asOf); err == nil {
			t.Error("Commit after Close: got no error, want one")
		}
		alone(t, dir)
		if got, err := read(t, dir); len(old.lists) > 0 && (err != nil || !reflect.DeepEqual(got.lists, old.lists)) {
			t.Errorf("got %v and the error %v, want the old snapshot", got.lists, err)
		}
	}
}

// TestBusy: one Writer at a time; others find out at once. An afterwards closed one lets them in.
func TestBusy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshot")
	first := create(t, dir, fast)
	for range 3 {
		if _, err := snapshot.Create(dir, fast); !errors.Is(err, snapshot.ErrBusy) {
			t.Fatalf("a second writer: got %v, want ErrBusy", err)
		}
	}
	if err := errors.Join(first.WriteList(snapshot.List{TokenID: "1"}), first.Commit(asOf)); err != nil {
		t.Fatal(err)
	}
	commit(t, dir, rows{lists: []snapshot.List{{TokenID: "2"}}}, fast)
	if got, err := read(t, dir); err != nil || len(got.lists) != 1 || got.lists[0].TokenID != "2" {
		t.Errorf("got %v and the error %v, want the second snapshot", got.lists, err)
	}
	alone(t, dir)
}

// TestOtherCompression: nothing of the old snapshot stays, so no table is there twice.
func TestOtherCompression(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshot")
	commit(t, dir, rows{recommended: []snapshot.Recommended{{}}}, snapshot.WriteOptions{Compression: "none", NoSync: true})
	commit(t, dir, rows{}, fast)
	if got, err := read(t, dir); err != nil || len(got.recommended) > 0 {
		t.Errorf("got %v and the error %v, want an empty snapshot", got, err)
	}
}

// TestRefusedFolders: a folder that holds anything else is not replaced.
func TestRefusedFolders(t *testing.T) {
	folder := t.TempDir()
	make := func(name string) string {
		path := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for want, dir := range map[string]string{
		"holds thesis.odt, which is not part of a snapshot":   filepath.Dir(make("a/thesis.odt")),
		"holds lists.ndjson, which is not part of a snapshot": filepath.Dir(filepath.Dir(make("b/lists.ndjson/x"))),
		"holds records.csv, which is not part of":             filepath.Dir(make("c/records.csv")),
		"not a directory":            make("d"),
		"the snapshot has no name":   "",
		"cannot be /":                "/",
		"is not a folder: remove it": filepath.Join(filepath.Dir(make("e/.x.followpress-snapshot")), "x"),
	} {
		_, err := snapshot.Create(dir, fast)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", dir, err, want)
		}
	}
	if _, err := snapshot.Create(filepath.Join(folder, "f"), snapshot.WriteOptions{Compression: "brotli"}); err == nil {
		t.Error("brotli: got no error, want one")
	}
	if entries, err := filepath.Glob(filepath.Join(folder, ".*")); err != nil || len(entries) > 0 {
		t.Errorf("left behind: got %v and the error %v, want nothing", entries, err)
	}
}

// TestFailures: a snapshot that could not be written is not committed, and the old one stays.
func TestFailures(t *testing.T) {
	for name, harm := range map[string]func(next string) error{
		"files are gone": os.RemoveAll,
		"disk is full":   func(next string) error { return os.Symlink("/dev/full", filepath.Join(next, "records.ndjson.zst")) },
		"another file in the folder": func(next string) error {
			return os.WriteFile(filepath.Join(next, "..", "..", "snapshot", "notes.txt"), nil, 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat("/dev/full"); err != nil && name == "disk is full" {
				t.Skipf("%v: run it on Linux, whose /dev/full is a disk that is always full", err)
			}
			dir := filepath.Join(t.TempDir(), "snapshot")
			commit(t, dir, rows{}, fast)
			w := create(t, dir, fast)
			if err := harm(filepath.Join(filepath.Dir(dir), ".snapshot.followpress-snapshot", "next")); err != nil {
				t.Fatal(err)
			}
			var err error
			for i := 0; err == nil && i < 20_000; i++ {
				err = w.WriteRecord(snapshot.Record{TokenID: fmt.Sprint(i), Type: "2", Data: binary.AppendUvarint(nil, uint64(i)*7919)})
			}
			var row *snapshot.RowError
			if errors.As(err, &row) {
				t.Errorf("writing: got %v, want an error that is not of a row", err)
			}
			if err := w.Commit(asOf); err == nil {
				t.Error("Commit: got no error, want one")
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
			alone(t, dir)
			if got, err := read(t, dir); err != nil || len(got.records) > 0 {
				t.Errorf("the old snapshot: got %d records and the error %v", len(got.records), err)
			}
		})
	}
}

// TestMetaInputs: meta.json lists the inputs of the snapshot by chain, and omits the member if they
// are unknown.
func TestMetaInputs(t *testing.T) {
	sum := site.Sum256([]byte("x"))
	one := site.ChainInput{ChainID: 1, Block: 7, Hash: "0x" + strings.Repeat("0a", 32), Events: 3}
	ten := site.ChainInput{ChainID: 10, Block: 8, Hash: "0x" + strings.Repeat("0b", 32), Events: 4}
	profiles := &site.ServiceInput{Source: "https://example.com/<u>", From: "2026-01-01T00:00:00Z", Until: "2026-01-02T00:00:00Z", Digest: sum}
	chain := func(c site.ChainInput) string {
		return fmt.Sprintf(`{"chain_id":%d,"block":%d,"hash":"%s","events":%d}`, c.ChainID, c.Block, c.Hash, c.Events)
	}
	for want, m := range map[string]snapshot.Meta{
		``: {Chains: []site.ChainInput{}},
		`,"chains":[` + chain(one) + "," + chain(ten) + `]`: {Chains: []site.ChainInput{ten, one}},
		`,"profiles":{"source":"https://example.com/<u>","from":"2026-01-01T00:00:00Z","until":"2026-01-02T00:00:00Z","digest":"` + sum.String() + `"}` +
			`,"badges":{"source":"","digest":"` + sum.String() + `"}`: {Profiles: profiles, Badges: &site.ServiceInput{Digest: sum}},
	} {
		m.AsOf = asOf.AsOf
		snap, err := snapshot.NewMemory(m, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := afero.ReadFile(snap, "meta.json")
		if want := `{"format":1,"as_of":"2026-09-21T14:13:20.250Z"` + want + "}\n"; err != nil || string(got) != want {
			t.Errorf("got %s and the error %v, want %s", got, err, want)
		}
	}
	if _, err := snapshot.NewMemory(snapshot.Meta{AsOf: asOf.AsOf, Chains: []site.ChainInput{one, ten, one}}, nil); err == nil || !strings.Contains(err.Error(), "duplicate chain 1") {
		t.Errorf("got the error %v, want a duplicate chain", err)
	}
}

// metaOf returns a snapshot of meta.json alone.
func metaOf(t *testing.T, body string) afero.Fs {
	t.Helper()
	snap := afero.NewMemMapFs()
	if err := afero.WriteFile(snap, "meta.json", []byte(body), 0o644); err != nil {
		t.Fatal(err)
	}
	return snap
}

// TestInputs: meta.json may describe the inputs of a snapshot.
func TestInputs(t *testing.T) {
	digest := site.Sum256([]byte("digest"))
	hash := "0x" + strings.Repeat("0a", 32)
	chain := fmt.Sprintf(`{"chain_id":10,"block":7,"hash":"%s","events":3}`, hash)
	service := fmt.Sprintf(`{"source":"https://example.com/u","from":"2026-01-01T00:00:00Z","until":"2026-01-02T00:00:00Z","digest":"%s"}`, digest)
	told := &site.ServiceInput{Source: "https://example.com/u", From: "2026-01-01T00:00:00Z", Until: "2026-01-02T00:00:00Z", Digest: digest}
	for members, want := range map[string]site.Inputs{
		``:                                     {},
		`,"chains":[]`:                         {Chains: []site.ChainInput{}},
		`,"chains":[` + chain + `]`:            {Chains: []site.ChainInput{{ChainID: 10, Block: 7, Hash: hash, Events: 3}}},
		`,"profiles":` + service:               {Profiles: told},
		`,"badges":` + service:                 {Badges: told},
		`,"profiles":null,"more":[1]`:          {},
		`,"chains":[{"chain_id":1,"block":7}]`: {Chains: []site.ChainInput{{ChainID: 1, Block: 7}}},
	} {
		snap := metaOf(t, `{"format":1,"as_of":"2026-01-31T00:00:00Z"`+members+`}`)
		if got, err := snapshot.ReadInputs(snap); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v and the error %v, want %+v", members, got, err, want)
		}
		if _, err := snapshot.ReadAsOf(snap); err != nil {
			t.Errorf("%s: %v", members, err)
		}
	}
	for members, want := range map[string]string{
		`,"chains":{}`: "chains",
		`,"chains":[` + chain + `,` + chain + `]`: "chains: 10 comes after 10: sort them by chain_id, without duplicates",
		`,"chains":[{"chain_id":1,"hash":"0x"}]`:  "chains: hash of the block of chain 1: \"0x\" is not 0x and 64 hexadecimal digits in lower case",
		`,"profiles":{"source":"x"}`:              "profiles: digest: missing",
		`,"badges":{"source":"https://u:p@x/"}`:   "badges: source has a user, a query or a fragment, which may be secrets: leave them out",
		`,"badges":"x"`:                           "badges",
		strings.Repeat(" ", 1<<20):                "meta.json: more than 64 KiB",
	} {
		snap := metaOf(t, `{"format":1,"as_of":"2026-01-31T00:00:00Z"`+members+`}`)
		got, err := snapshot.ReadInputs(snap)
		if err == nil || !strings.HasPrefix(err.Error(), "meta.json: ") || strings.Contains(err.Error(), "bad JSON") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.50s: got the error %v, want one of meta.json: %s", members, err, want)
		}
		if !reflect.DeepEqual(got, site.Inputs{}) {
			t.Errorf("%.50s: got %+v with the error", members, got)
		}
	}
}
