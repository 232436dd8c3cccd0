package snapshot_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// A parquetRecord is a row of records as a warehouse writes it.
type parquetRecord struct {
	TokenID string     `parquet:"token_id,dict"`
	Version int64      `parquet:"version"`
	Type    *string    `parquet:"record_type,optional,dict"`
	Data    []byte     `parquet:"data"` // without an annotation
	Tags    []string   `parquet:"tags,optional,list"`
	Added   *time.Time `parquet:"added,optional,timestamp(microsecond)"`
	Ignored float64    `parquet:"ignored"`
}

type parquetList struct {
	TokenID string  `parquet:"token_id"`
	Owner   string  `parquet:"owner"`
	User    *string `parquet:"user,optional"`
}

type parquetAccount struct {
	Address string  `parquet:"Address"` // in any letter case
	Primary *string `parquet:"primary_list,optional"`
	ENS     *string `parquet:"ens,optional"`
}

type parquetEvent struct {
	ID          uint64 `parquet:"id"`
	FancyID     string `parquet:"fancy_id"`
	Name        string `parquet:"name"`
	EventURL    string `parquet:"event_url"`
	ImageURL    string `parquet:"image_url"`
	Country     string `parquet:"country"`
	City        string `parquet:"city"`
	Description string `parquet:"description"`
	Year        int32  `parquet:"year"`
	StartDate   string `parquet:"start_date"`
	EndDate     string `parquet:"end_date"`
	ExpiryDate  string `parquet:"expiry_date"`
}

type parquetBadge struct {
	EventID string `parquet:"event_id"`
	TokenID string `parquet:"token_id"`
	Owner   string `parquet:"owner"`
}

type parquetRecommended struct {
	Address string  `parquet:"address"`
	Class   *string `parquet:"class,optional"`
}

type parquetOp struct {
	TokenID  string    `parquet:"token_id,dict"`
	Time     time.Time `parquet:"time,timestamp(microsecond)"`
	Chain    uint64    `parquet:"chain_id"`
	Block    uint64    `parquet:"block"`
	LogIndex int32     `parquet:"log_index"`
	Op       string    `parquet:"op"`
}

// parquetOf returns a file of rows, in row groups of at most that many rows.
func parquetOf[T any](t testing.TB, rows []T, group int64, options ...parquet.WriterOption) []byte {
	t.Helper()
	var file bytes.Buffer
	w := parquet.NewGenericWriter[T](&file, append(options, parquet.MaxRowsPerRowGroup(group))...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func text(s string) *string { return &s }

// asParquet writes the tables of rows as Parquet.
func asParquet(t testing.TB, dir string, r rows, group int64, options ...parquet.WriterOption) {
	t.Helper()
	put := func(table string, body []byte) { writeFile(t, dir, table+".parquet", string(body)) }
	var lists []parquetList
	for _, l := range r.lists {
		p := parquetList{TokenID: l.TokenID, Owner: l.Owner.String()}
		if l.User != nil {
			p.User = text(l.User.String())
		}
		lists = append(lists, p)
	}
	var records []parquetRecord
	for _, r := range r.records {
		p := parquetRecord{TokenID: r.TokenID, Version: int64(r.Version), Type: text(r.Type), Data: fmt.Appendf(nil, "0x%x", r.Data), Tags: r.Tags}
		if r.Added != snapshot.NoTime {
			at := time.UnixMilli(r.Added).Add(999 * time.Microsecond)
			p.Added = &at
		}
		records = append(records, p)
	}
	var accounts []parquetAccount
	for _, a := range r.accounts {
		p := parquetAccount{Address: a.Address.String()}
		if a.Primary != "" {
			p.Primary = text(a.Primary)
		}
		if a.ENS != nil {
			ens, err := a.ENS.Normalize()
			if err != nil {
				t.Fatal(err)
			}
			body, _ := ens.Append(nil)
			p.ENS = text(" " + string(body) + "\n")
		}
		accounts = append(accounts, p)
	}
	var events []parquetEvent
	for _, e := range r.events {
		events = append(events, parquetEvent{e.ID, e.FancyID, e.Name, e.EventURL, e.ImageURL, e.Country, e.City, e.Description, int32(e.Year), e.StartDate, e.EndDate, e.ExpiryDate})
	}
	var badges []parquetBadge
	for _, b := range r.badges {
		badges = append(badges, parquetBadge{b.EventID, b.TokenID, b.Owner.String()})
	}
	var recommended []parquetRecommended
	for _, rec := range r.recommended {
		p := parquetRecommended{Address: rec.Address.String()}
		if rec.Class != "" {
			p.Class = text(rec.Class)
		}
		recommended = append(recommended, p)
	}
	put("lists", parquetOf(t, lists, group, options...))
	put("records", parquetOf(t, records, group, options...))
	put("accounts", parquetOf(t, accounts, group, options...))
	put("events", parquetOf(t, events, group, options...))
	put("badges", parquetOf(t, badges, group, options...))
	var ops []parquetOp
	for _, o := range r.ops {
		at := time.UnixMilli(o.Time).Add(999 * time.Microsecond)
		ops = append(ops, parquetOp{o.TokenID, at, o.Chain, o.Block, int32(o.LogIndex), fmt.Sprintf("0x%X", o.Op)})
	}
	put("ops", parquetOf(t, ops, group, options...))
	put("recommended", parquetOf(t, recommended, group, options...))
	writeFile(t, dir, "meta.json", `{"format":1,"as_of":"2026-09-21T13:33:20.250Z"}`)
}

func writeFile(t testing.TB, dir, name, body string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestParquet: rows of Parquet are those of the same rows in JSON, regardless of the compression,
// the version of the pages and the size of the row groups.
func TestParquet(t *testing.T) {
	want := manyRows(5000)
	for name, options := range map[string][]parquet.WriterOption{
		"plain":  nil,
		"snappy": {parquet.Compression(&parquet.Snappy), parquet.DataPageVersion(1)},
		"zstd":   {parquet.Compression(&parquet.Zstd), parquet.PageBufferSize(700)},
	} {
		for _, group := range []int64{700, 1 << 20} {
			dir := t.TempDir()
			asParquet(t, dir, want, group, options...)
			got, err := read(t, dir)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%s, row groups of %d: got the error %v, or other rows than those of JSON", name, group, err)
			}
			if got := fastRecords(t, dir, true); !reflect.DeepEqual(got, want.records) {
				t.Errorf("%s, row groups of %d: ReadRecords got other records", name, group)
			}
			for i, r := range fastRecords(t, dir, false) {
				if r.Added != snapshot.NoTime {
					t.Fatalf("record %d: got the time %d, want none", i, r.Added)
				}
			}
			n := 0
			for a, err := range snapshot.Accounts(files(dir)) {
				if n++; err != nil || a.ENS == nil {
					t.Fatalf("Accounts: got %+v and %v, want profiles", a, err)
				}
			}
			if n == 0 {
				t.Error("Accounts: got no rows")
			}
		}
	}
}

// manyRows are rows with everything that a table may have.
func manyRows(n int) (r rows) {
	g := rand.New(rand.NewPCG(3, 4))
	address := func() (a site.Address) {
		for i := range a {
			a[i] = byte(g.Uint32())
		}
		return a
	}
	texts := []string{"top8", "block", "é \u2028 \"\\\n", "", "mute", "\U0001F98A"}
	for i := range n {
		record := snapshot.Record{TokenID: fmt.Sprint(g.IntN(100)), Version: g.Uint32(), Type: "address", Added: snapshot.NoTime}
		a := address()
		record.Data = a[:]
		switch g.IntN(5) {
		case 0:
			record.Type, record.Data = texts[0], []byte{}
		case 1:
			record.Added = g.Int64N(4e12) - 2e12
		case 2, 3:
			for at, tag := range []string{texts[3], texts[1], texts[4], texts[0], texts[2], texts[5]} { // sorted
				if at%(1+g.IntN(3)) == 0 {
					record.Tags = append(record.Tags, tag)
				}
			}
		}
		r.records = append(r.records, record)
		if i%10 > 0 {
			continue
		}
		l := snapshot.List{TokenID: fmt.Sprint(i), Owner: address()}
		account := snapshot.Account{Address: address()}
		if g.IntN(2) == 0 {
			user := address()
			l.User, account.Primary = &user, fmt.Sprint(i)
			ens, _ := site.Profile{Name: texts[g.IntN(len(texts))], Records: []byte(`{"b":"1","a":"2","c":null}`), Fresh: g.Int64()}.Normalize()
			account.ENS = &ens
		}
		class := ""
		if g.IntN(2) == 0 {
			class = "A"
		}
		r.lists, r.accounts = append(r.lists, l), append(r.accounts, account)
		r.badges = append(r.badges, snapshot.Badge{EventID: "1", TokenID: fmt.Sprint(i), Owner: address()})
		r.recommended = append(r.recommended, snapshot.Recommended{Address: address(), Class: class})
		r.events = append(r.events, site.Event{ID: g.Uint64(), Name: texts[2], Year: -i})
	}
	r.ops = manyOps(g, n)
	return r
}

// fastRecords reads records by ReadRecords.
func fastRecords(t testing.TB, dir string, timed bool) (all []snapshot.Record) {
	t.Helper()
	err := snapshot.Reader[snapshot.Record]{Snapshot: files(dir), Workers: 2, Untimed: !timed, Done: func(b snapshot.Block[snapshot.Record]) error {
		return b.Each(func(r snapshot.Row[snapshot.Record]) error { all = append(all, r.Value); return nil },
			func(e *snapshot.RowError) error { return e })
	}}.Records(t.Context(), func(r *snapshot.Record) (snapshot.Record, error) {
		c := *r
		c.TokenID, c.Type, c.Data, c.Tags = strings.Clone(r.TokenID), strings.Clone(r.Type), bytes.Clone(r.Data), nil
		for _, tag := range r.Tags {
			c.Tags = append(c.Tags, strings.Clone(tag))
		}
		return c, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTimestamps reads every type that stands for a time, also before 1970.
func TestTimestamps(t *testing.T) {
	type row[T any] struct {
		TokenID string `parquet:"token_id"`
		Version int32  `parquet:"version"`
		Type    string `parquet:"record_type"`
		Data    string `parquet:"data"`
		Added   T      `parquet:"added"`
	}
	type millis struct {
		TokenID string `parquet:"token_id"`
		Version uint32 `parquet:"version"`
		Type    string `parquet:"record_type"`
		Data    string `parquet:"data"`
		Added   int64  `parquet:"added,timestamp(millisecond)"`
	}
	type nanos struct {
		TokenID string `parquet:"token_id"`
		Version uint32 `parquet:"version"`
		Type    string `parquet:"record_type"`
		Data    string `parquet:"data"`
		Added   int64  `parquet:"added,timestamp(nanosecond)"`
	}
	const ms = -1_234
	int96 := deprecated.Int96{0, 0, 2_440_588 - 1}
	ofDay := uint64(24*60*60*1000+ms) * 1_000_000
	int96[0], int96[1] = uint32(ofDay), uint32(ofDay>>32)
	for name, file := range map[string][]byte{
		"milliseconds": parquetOf(t, []millis{{"1", 1, "address", "0x", ms}}, 9),
		"nanoseconds":  parquetOf(t, []nanos{{"1", 1, "address", "0x", ms*1_000_000 + 0}}, 9),
		"cut off":      parquetOf(t, []nanos{{"1", 1, "address", "0x", ms*1_000_000 + 999_999}}, 9),
		"int96":        parquetOf(t, []row[deprecated.Int96]{{"1", 1, "address", "0x", int96}}, 9),
		"text":         parquetOf(t, []row[string]{{"1", 1, "address", "0x", "1969-12-31T23:59:58.766Z"}}, 9),
	} {
		dir := t.TempDir()
		writeFile(t, dir, "records.parquet", string(file))
		if got := fastRecords(t, dir, true); len(got) != 1 || got[0].Added != ms {
			t.Errorf("%s: got %+v, want the time %d", name, got, ms)
		}
	}
}

// TestInvalidParquetRows: an invalid row is named by its number, with the reason of JSON.
func TestInvalidParquetRows(t *testing.T) {
	good := parquetRecord{TokenID: "1", Version: 1, Type: text("address"), Data: []byte("0x")}
	var records []parquetRecord
	var want []string
	add := func(reason string, change func(*parquetRecord)) {
		r := good
		change(&r)
		records = append(records, good, r)
		want = append(want, fmt.Sprintf("records.parquet:%d: %s", len(records), reason))
	}
	far := time.UnixMicro(1 << 60)
	add(`token_id: "01" is not a canonical decimal of at most 78 digits`, func(r *parquetRecord) { r.TokenID = "01" })
	add(`version: number -1 where a whole number within range belongs`, func(r *parquetRecord) { r.Version = -1 })
	add(`version: number 4294967296 where a whole number within range belongs`, func(r *parquetRecord) { r.Version = 1 << 32 })
	add(`record_type: missing or empty`, func(r *parquetRecord) { r.Type = nil })
	add(`data: "0xzz" is not hexadecimal (0x and an even number of digits)`, func(r *parquetRecord) { r.Data = []byte("0xzz") })
	add(`not valid UTF-8`, func(r *parquetRecord) { r.Tags = []string{"\xff"} })
	add(`added: 1152921504606846 ms since 1970 is in the year 38504, which RFC 3339 cannot write`, func(r *parquetRecord) { r.Added = &far })
	dir := t.TempDir()
	writeFile(t, dir, "records.parquet", string(parquetOf(t, records, 3)))
	var got []string
	err := snapshot.Reader[int]{Snapshot: files(dir), Workers: 2, Done: func(b snapshot.Block[int]) error {
		return b.Each(func(snapshot.Row[int]) error { return nil }, func(e *snapshot.RowError) error { got = append(got, e.Error()); return nil })
	}}.Records(t.Context(), func(*snapshot.Record) (int, error) { return 0, nil })
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v and\n%s\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestParquetAccounts: an account from Parquet equals the account of its JSON line, however odd.
func TestParquetAccounts(t *testing.T) {
	const address = "0xAbcdefABCDEFabcdefabcdefabcdefabcdefabcd"
	rows := []parquetAccount{{Address: address}, {Address: ""}, {Address: address[:41]}, {Address: address + "\""}, {Address: "\xff"}}
	for _, primary := range []string{"", "0", "12", "012", "-1", "1\n", "\"", "\xff", strings.Repeat("9", 79)} {
		rows = append(rows, parquetAccount{Address: address, Primary: &primary})
	}
	for _, ens := range []string{
		"", " ", "null", " null ", "nul", "{}", " {}\n", "{} {}", "{}}", "[]", `"{}"`, `{"name":`, `{"name":null}`,
		`{"name":"a.eth","fresh":5}`, `{"name":"A.eth"}`, `{"name":"a.eth","name":"b.eth"}`, `{"NAME":"a.eth"}`, `{"name":"\u0061.eth","resolver":"0x1"}`,
		`{"fresh":1.5}`, `{"fresh":"1"}`, `{"name":"\ud800"}`, "{\"name\":\"\xff\"}", "{\"name\":\"a\nb\"}", `{"other":[1,{}]}`,
		`{"records":{"b":[1.50,null],"a":{"c":"\ud83e\udd8a"}},"chains":null,"errors":[]}`, `{"records":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`,
		`{},"address":"0x00"`, `{},"primary_list":"1"`,
	} {
		rows = append(rows, parquetAccount{Address: address, Primary: text("7"), ENS: &ens})
	}
	dir := t.TempDir()
	writeFile(t, dir, "accounts.parquet", string(parquetOf(t, rows, 20)))
	type block = snapshot.Block[snapshot.Account]
	var got, want []any
	show := func(of *[]any) func(block) error {
		return func(b block) error {
			for _, r := range b.Rows {
				*of = append(*of, r)
			}
			for _, e := range b.Invalid {
				*of = append(*of, e.Error())
			}
			return nil
		}
	}
	if err := (snapshot.Reader[snapshot.Account]{Snapshot: files(dir), Workers: 2, Done: show(&want)}.Table(t.Context(), snapshot.TableAccounts)); err != nil {
		t.Fatal(err)
	}
	convert := func(a *snapshot.Account) (snapshot.Account, error) {
		c := *a
		if a.ENS != nil {
			ens := a.ENS.Clone()
			c.ENS = &ens
		}
		c.Primary = strings.Clone(a.Primary)
		return c, nil
	}
	if err := (snapshot.Reader[snapshot.Account]{Snapshot: files(dir), Workers: 2, Done: show(&got)}.Accounts(t.Context(), convert)); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(rows) || len(want) != len(rows) {
		t.Fatalf("got %d and %d of %d rows", len(got), len(want), len(rows))
	}
	for i := range rows {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
}

// A profile may be a struct of strings, which equals the same members in JSON.
func TestParquetProfilesOfStructs(t *testing.T) {
	const address = "0xabcdefabcdefabcdefabcdefabcdefabcdefabcd"
	type records struct {
		Description *string `parquet:"description,optional"`
		Twitter     *string `parquet:"com.twitter,optional"`
	}
	type profile struct {
		Other   []int32  `parquet:"other,list"`
		Name    *string  `parquet:"NAME,optional"`
		Records *records `parquet:"records,optional"`
		Fresh   *int64   `parquet:"fresh,optional"`
		Avatar  *string  `parquet:"avatar,optional"`
		Chains  *string  `parquet:"chains,optional"` // JSON
	}
	type account struct {
		Address string   `parquet:"address"`
		ENS     *profile `parquet:"ens,optional"`
	}
	fresh := int64(-5)
	rows := []account{
		{address, nil}, {address, &profile{Other: []int32{1}}}, {address, &profile{Name: text("a \"quoted\" name")}},
		{address, &profile{Records: &records{}}}, {address, &profile{Records: &records{Twitter: text("t")}, Avatar: text("")}},
		{address, &profile{Name: text("a.eth"), Fresh: &fresh, Avatar: text("https://a.example"), Chains: text(`{"eth":"0x"}`), Records: &records{Description: text("d"), Twitter: text("t")}}},
		{address, &profile{Chains: text("{")}}, {address, &profile{Name: text("\xff")}},
	}
	lines := []string{
		``, ``, `,"ens":{"name":"a \"quoted\" name"}`, ``, `,"ens":{"records":{"com.twitter":"t"},"avatar":""}`,
		`,"ens":{"name":"a.eth","fresh":-5,"avatar":"https://a.example","chains":{"eth":"0x"},"records":{"description":"d","com.twitter":"t"}}`,
	}
	dir := t.TempDir()
	writeFile(t, dir, "accounts.parquet", string(parquetOf(t, rows, 3)))
	var got []snapshot.Account
	var invalid []string
	err := snapshot.Reader[snapshot.Account]{Snapshot: files(dir), Workers: 2, Done: func(b snapshot.Block[snapshot.Account]) error {
		for _, r := range b.Rows {
			got = append(got, r.Value)
		}
		for _, e := range b.Invalid {
			invalid = append(invalid, e.Error())
		}
		return nil
	}}.Table(t.Context(), snapshot.TableAccounts)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(lines) {
		t.Fatalf("got %d accounts, want %d", len(got), len(lines))
	}
	for i, line := range lines {
		want, err := snapshot.Reader[snapshot.Account]{}.Parse([]byte(`{"address":"` + address + `"` + line + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got[i], want) {
			t.Errorf("row %d: got %+v, want %+v", i, got[i], want)
		}
	}
	writeFile(t, dir, "accounts.parquet", string(parquetOf(t, []struct {
		Address string `parquet:"address"`
		ENS     struct {
			Name []string `parquet:"name,list"`
		} `parquet:"ens"`
	}{{}}, 3)))
	const nested = `read accounts.parquet: column ens: its member "name" has another structure than texts`
	if err := snapshot.CheckTable(files(dir), snapshot.TableAccounts); err == nil || err.Error() != nested {
		t.Errorf("got %v, want %s", err, nested)
	}
	if want := []string{"accounts.parquet:7: chains: \"{\" is not JSON", "accounts.parquet:8: not valid UTF-8"}; !slices.Equal(invalid, want) {
		t.Errorf("got the invalid rows %q, want %q", invalid, want)
	}
}

// TestUnsuitableParquet: a file that is not a table gives one clear error.
func TestUnsuitableParquet(t *testing.T) {
	type noData struct {
		TokenID string `parquet:"token_id"`
		Version int32  `parquet:"version"`
		Type    string `parquet:"record_type"`
	}
	type twice struct {
		noData
		Data  string `parquet:"data"`
		Data2 string `parquet:"DATA"`
	}
	type textVersion struct {
		TokenID string `parquet:"token_id"`
		Version string `parquet:"version"`
	}
	type flatTags struct {
		noData
		Data string `parquet:"data"`
		Tags int32  `parquet:"tags"`
	}
	type nestedTags struct {
		noData
		Data string `parquet:"data"`
		Tags []struct {
			Text, Other string
		} `parquet:"tags,list"`
	}
	for want, file := range map[string][]byte{
		"read records.parquet: column data: missing":                                                       parquetOf(t, []noData{{}}, 9),
		"read records.parquet: column data: duplicate":                                                     parquetOf(t, []twice{{}}, 9),
		"read records.parquet: column version: it has the type STRING, not whole numbers of 32 or 64 bits": parquetOf(t, []textVersion{{}}, 9),
		"read records.parquet: column tags: it has the type INT(32,true), not a list of texts":             parquetOf(t, []flatTags{{}}, 9),
		"read records.parquet: column tags: it has another structure than a list of texts":                 parquetOf(t, []nestedTags{{}}, 9),
		"read records.parquet: not a Parquet file, or damaged":                                             []byte("PAR1 PAR1"),
	} {
		dir := t.TempDir()
		writeFile(t, dir, "records.parquet", string(file))
		if err := snapshot.CheckTable(files(dir), snapshot.TableRecords); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Tags may be a column of JSON texts, as fastparquet writes lists. A text that is not a list of
// tags makes an invalid row.
func TestTagsAsJSON(t *testing.T) {
	type record struct {
		TokenID string  `parquet:"token_id"`
		Version int64   `parquet:"version"`
		Type    string  `parquet:"record_type"`
		Data    string  `parquet:"data"`
		Tags    *string `parquet:"tags,optional"`
	}
	var rows []record
	for _, tags := range []*string{text(`["b", "a"]`), nil, text(`null`), text(`[]`), text(`["a"`), text(`"a"`), text(`[1]`)} {
		rows = append(rows, record{"1", 1, "address", someAddress, tags})
	}
	dir := t.TempDir()
	writeFile(t, dir, "records.parquet", string(parquetOf(t, rows, 9)))
	var got, invalid []string
	err := snapshot.Reader[string]{Snapshot: files(dir), Workers: 1, Untimed: true, Done: func(b snapshot.Block[string]) error {
		return b.Each(func(r snapshot.Row[string]) error { got = append(got, r.Value); return nil },
			func(e *snapshot.RowError) error { invalid = append(invalid, e.Error()); return nil })
	}}.Records(t.Context(), func(r *snapshot.Record) (string, error) { return strings.Join(r.Tags, " "), nil })
	if want := []string{"a b", "", "", ""}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got the tags %q and the error %v, want %q", got, err, want)
	}
	if len(invalid) != 3 || !strings.HasPrefix(invalid[0], "records.parquet:5: tags") || !strings.HasPrefix(invalid[2], "records.parquet:7: tags") {
		t.Errorf("got the invalid rows %q, want 5 to 7, with their tags", invalid)
	}
}

// TestDamagedParquet: a damaged file is an error or other rows, and never a panic.
func TestDamagedParquet(t *testing.T) {
	g := rand.New(rand.NewPCG(5, 6))
	whole := parquetOf(t, func() (all []parquetRecord) {
		for _, r := range manyRows(300).records {
			all = append(all, parquetRecord{TokenID: r.TokenID, Version: 1, Type: text(r.Type), Data: fmt.Appendf(nil, "0x%x", r.Data), Tags: r.Tags})
		}
		return all
	}(), 100, parquet.Compression(&parquet.Snappy))
	dir, failed := t.TempDir(), 0
	for range 300 {
		file := bytes.Clone(whole)
		if g.IntN(4) == 0 {
			file = file[:g.IntN(len(file))]
		}
		for range 1 + g.IntN(4) {
			if len(file) > 0 {
				file[g.IntN(len(file))] ^= byte(1 << g.IntN(8))
			}
		}
		writeFile(t, dir, "records.parquet", string(file))
		err := snapshot.Reader[int]{Snapshot: files(dir), Workers: 2, Done: func(snapshot.Block[int]) error { return nil }}.Records(t.Context(), func(r *snapshot.Record) (int, error) { return len(r.Tags), nil })
		if err != nil {
			failed++
			if !strings.Contains(err.Error(), "records.parquet") {
				t.Fatalf("got %v, want the name of the file", err)
			}
		}
	}
	if failed < 50 {
		t.Errorf("%d of 300 damaged files were refused, want many", failed)
	}
}
