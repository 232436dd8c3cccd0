package input_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/beam/internal/difftest"
	"github.com/followpress/followpress/beam/internal/input"
	"github.com/followpress/followpress/beam/internal/wire"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/refreshed"
)

const fixtures = "../../../fixtures"

// limits are the profile limits of most tests.
var limits = site.Config{MaxProfileText: 1 << 16}.ProfileLimits()

// A row is a row of a table, with its position and all its fields.
type row struct {
	wire.Position
	text string
}

// decode decodes the rows of a table, and sorts them by their positions.
func decode(t *testing.T, table snapshot.Table, pairs []pair) (rows []row) {
	t.Helper()
	add := func(at wire.Position, format string, args ...any) {
		rows = append(rows, row{at, fmt.Sprintf(format, args...)})
	}
	for _, p := range pairs {
		d := wire.Decode(p.value)
		switch table {
		case snapshot.TableLists:
			l := d.ListRow()
			add(l.Position, "%s %s", p.key, l.Account)
		case snapshot.TableAccounts:
			a := d.AccountRow()
			add(a.Position, "%s %s %s %d %d %s", p.key, a.Primary, a.ENS, a.SearchLen, a.Fresh, a.Name)
		case snapshot.TableRecords:
			file, n := d.RunFile(), 0
			for ; d.More(); n++ {
				r := d.Row()
				add(wire.Position{File: file, Line: r.Line}, "%s %d %s %x %q %d", p.key, r.Version, r.Type, r.Data, r.Tags, r.Added)
			}
			if n == 0 || n > 4096 {
				t.Errorf("a run of %d rows", n)
			}
		case snapshot.TableBadges:
			b := d.BadgeRow()
			add(wire.Position{}, "%s %d %s", p.key, b.Event, b.TokenID)
		case snapshot.TableOps:
			o := d.OpRow()
			add(o.Position, "%s %+v %d %t %s %q", p.key, o.Op, o.Code, o.IsShown, o.Address, o.Tag)
		}
		if err := d.Err(); err != nil || d.More() {
			t.Fatalf("%s: a malformed element: %q", table, p.value)
		}
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.text, b.text))
	})
	return rows
}

// expected reads a table as generate does.
func expected[T any](t *testing.T, dir string, o input.Options, table snapshot.Table, text func(T) string) (rows []row) {
	t.Helper()
	files := afero.NewBasePathFs(afero.NewOsFs(), dir)
	names, err := snapshot.TableFiles(files, table)
	if err != nil {
		t.Fatal(err)
	}
	err = snapshot.Reader[T]{Snapshot: files, Workers: 2, Untimed: !o.EFP, Done: func(b snapshot.Block[T]) error {
		for _, r := range b.Rows {
			if said := text(r.Value); said != "" {
				rows = append(rows, row{wire.Position{File: uint32(slices.Index(names, b.File)), Line: uint64(r.Line)}, said})
			}
		}
		return nil
	}}.Table(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// expectedOf returns the rows that a pipeline should read from a snapshot.
func expectedOf(t *testing.T, dir string, o input.Options) map[snapshot.Table][]row {
	t.Helper()
	events := map[string]int{}
	for _, e := range expected(t, dir, o, snapshot.TableEvents, func(e site.Event) string { return fmt.Sprint(e.ID) }) {
		events[e.text] = len(events)
	}
	badges := expected(t, dir, o, snapshot.TableBadges, func(b snapshot.Badge) string {
		if event, ok := events[b.EventID]; ok {
			return fmt.Sprintf("%x %d %s", b.Owner[:], event, b.TokenID)
		}
		return ""
	})
	for i := range badges {
		badges[i].Position = wire.Position{} // they have no order
	}
	slices.SortFunc(badges, func(a, b row) int { return strings.Compare(a.text, b.text) })
	var ops []row
	if o.History > 0 {
		ops = expected(t, dir, o, snapshot.TableOps, func(r snapshot.Op) string {
			parsed, _ := op.Parse(r.Op)
			r.Op = nil
			about, ok := parsed.Address()
			if !ok {
				return fmt.Sprintf("%s %+v 0 false %s %q", r.TokenID, r, site.Address{}, "")
			}
			asOf, err := snapshot.ReadAsOf(afero.NewBasePathFs(afero.NewOsFs(), dir))
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(time.RFC3339, asOf)
			if err != nil {
				t.Fatal(err)
			}
			if at.UnixMilli()-r.Time > time.Duration(o.History).Milliseconds() {
				return fmt.Sprintf("%s %+v %d false %s %q", r.TokenID, r, parsed.Code, site.Address{}, "")
			}
			return fmt.Sprintf("%s %+v %d true %s %q", r.TokenID, r, parsed.Code, about, parsed.Tag)
		})
	}
	return map[snapshot.Table][]row{
		snapshot.TableOps: ops,
		snapshot.TableLists: expected(t, dir, o, snapshot.TableLists, func(l snapshot.List) string {
			account := l.Owner
			if l.User != nil {
				account = *l.User
			}
			return l.TokenID + " " + account.String()
		}),
		snapshot.TableAccounts: expected(t, dir, o, snapshot.TableAccounts, func(a snapshot.Account) string {
			var ens []byte
			var searchLen, fresh int64
			name := ""
			if a.ENS != nil {
				p, _ := a.ENS.Within(o.Limits)
				b, n := p.Append(nil)
				ens, searchLen, fresh = b, int64(n), p.Fresh
				if site.LookupName(p.Name) {
					name = p.Name
				}
			}
			return fmt.Sprintf("%x %s %s %d %d %s", a.Address[:], a.Primary, ens, searchLen, fresh, name)
		}),
		snapshot.TableRecords: expected(t, dir, o, snapshot.TableRecords, func(r snapshot.Record) string {
			return fmt.Sprintf("%s %d %s %x %q %d", r.TokenID, r.Version, r.Type, r.Data, r.Tags, r.Added)
		}),
		snapshot.TableBadges: badges,
	}
}

// checkRows compares the rows read by a pipeline with those read by generate.
func checkRows(t *testing.T, r *result, want map[snapshot.Table][]row) {
	t.Helper()
	for table, want := range want {
		got := decode(t, table, r.rows[string(table)])
		if !slices.Equal(got, want) {
			i := 0
			for i < min(len(got), len(want)) && got[i] == want[i] {
				i++
			}
			t.Errorf("%s: got %d rows, want %d; they differ from %v on, want %v", table, len(got), len(want), got[i:min(i+1, len(got))], want[i:min(i+1, len(want))])
		}
	}
}

// TestTables: a pipeline reads the same rows as generate, with their positions, even if tables are
// cut into files of any formats.
func TestTables(t *testing.T) {
	for _, name := range []string{"demo", "conformance/snapshot", "conformance-efp/snapshot"} {
		for _, efp := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s efp=%t", name, efp), func(t *testing.T) {
				o := input.Options{EFP: efp, SkipInvalid: true, Limits: limits}
				if efp && name == "demo" { // the other snapshots have no operations
					o.History = site.Window(100 * time.Hour)
				}
				dir := filepath.Join(fixtures, name)
				checkRows(t, mustRead(t, input.Source{Location: dir}, o), expectedOf(t, dir, o))
				for seed := range uint64(2) {
					dir := cut(t, dir, rand.New(rand.NewPCG(seed, 0)))
					checkRows(t, mustRead(t, input.Source{Location: "file://" + dir}, o), expectedOf(t, dir, o))
				}
			})
		}
	}
}

// TestRuns: successive records of a list form few elements, and none of them is large.
func TestRuns(t *testing.T) {
	dir := t.TempDir()
	writeOdd(t, dir, "")
	var records strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&records, `{"token_id":"%d","version":1,"record_type":"address","data":"0x%040x"}`+"\n", i/5000, i)
	}
	long := strings.Repeat("t", 600<<10)
	for range 4 {
		fmt.Fprintf(&records, `{"token_id":"7","version":1,"record_type":"address","data":"0x%040x","tags":[%q]}`+"\n", 1, long)
	}
	writeFile(t, dir, "records.ndjson", []byte(records.String()))
	o := input.Options{Limits: limits}
	r := mustRead(t, input.Source{Location: dir}, o)
	checkRows(t, r, expectedOf(t, dir, o))
	if runs := len(r.rows["records"]); runs > 20 {
		t.Errorf("got %d elements, want few", runs)
	}
	for _, run := range r.rows["records"] {
		if len(run.value) > 2<<20 {
			t.Errorf("an element of %d bytes", len(run.value))
		}
	}
}

// opRow returns a row of ops.
func opRow(token string, block int) string {
	return fmt.Sprintf(`{"token_id":"%s","time":"2026-01-01T00:00:00Z","chain_id":1,"block":%d,"log_index":1,"op":"0x01010101%040x"}`+"\n", token, block, 5)
}

// writeOdd writes a snapshot without records, with invalid rows if invalid is set.
func writeOdd(t *testing.T, dir, invalid string) {
	t.Helper()
	event := `{"id":%d,"fancy_id":"f","name":"n","event_url":"","image_url":"i","country":"","city":"","description":"","year":2024,"start_date":"","end_date":"","expiry_date":""}` + "\n"
	writeFile(t, dir, "meta.json", []byte(`{"format":1,"as_of":"2026-01-31T00:00:00Z","list_ops":77}`))
	files := map[string]string{
		"events.ndjson":  fmt.Sprintf(event, 5) + invalid + fmt.Sprintf(event, 3),
		"lists-0.ndjson": `{"token_id":"1","owner":"0x00000000000000000000000000000000000000a1"}` + "\n" + invalid,
		"lists-1.ndjson": "\n" + invalid + `{"token_id":"2","owner":"0x00000000000000000000000000000000000000a2","user":"0x00000000000000000000000000000000000000a3"}` + "\n",
		"accounts.ndjson": `{"address":"0x00000000000000000000000000000000000000a1","primary_list":"1","ens":{"name":"a.eth","avatar":"` + strings.Repeat("a", 300) +
			`","records":{"z":"` + strings.Repeat("b", 400) + `","description":"short"}}}` + "\n" + invalid +
			`{"address":"0x00000000000000000000000000000000000000a3","primary_list":"2"}` + "\n",
		"records.ndjson": invalid,
		"badges.ndjson": `{"event_id":"3","token_id":"9","owner":"0x00000000000000000000000000000000000000a1"}` + "\n" + invalid +
			`{"event_id":"4","token_id":"9","owner":"0x00000000000000000000000000000000000000a1"}` + "\n",
		"recommended.ndjson": strings.Repeat(`{"address":"0x00000000000000000000000000000000000000a1"}`+"\n", 2) + invalid,
		"ops-0.ndjson":       opRow("1", 3) + invalid + opRow("2", 4),
		"ops-1.ndjson":       invalid,
		"ops-2.ndjson":       opRow("1", 5) + opRow("1", 6),
	}
	for name, body := range files {
		writeFile(t, dir, name, []byte(body))
	}
}

// TestReport: counts and notes equal generate's report.
func TestReport(t *testing.T) {
	for _, invalid := range []string{"", "[]\n", strings.Repeat("{\"x\":1}\n", 600)} {
		for _, efp := range []bool{false, true} {
			dir := t.TempDir()
			writeOdd(t, dir, invalid)
			config := site.Config{MaxProfileText: site.MaxNameBytes, LeaderboardMax: 10}
			if efp {
				config.API, config.HistoryWindow = site.APIEFP, site.Window(time.Hour)
			}
			_, want, err := generator.ToMemory(t.Context(), afero.NewBasePathFs(afero.NewOsFs(), dir), generator.Options{Config: config, SkipInvalid: true})
			if err != nil {
				t.Fatal(err)
			}
			got := mustRead(t, input.Source{Location: dir}, input.Options{
				EFP: efp, SkipInvalid: true, Limits: config.ProfileLimits(), History: config.HistoryWindow,
			}).report
			want.Out, want.Counts, want.Kinds, want.Written, want.Duration = got.Out, got.Counts, got.Kinds, got.Written, got.Duration
			if got, want := inJSON(t, got), inJSON(t, want); !slices.Equal(got, want) {
				i := 0
				for i < min(len(got), len(want))-1 && got[i] == want[i] {
					i++
				}
				t.Errorf("%d bytes of invalid rows, efp=%t: line %d: got %s, want %s", len(invalid), efp, i, got[i], want[i])
			}
		}
	}
}

// inJSON returns the lines of a value.
func inJSON(t *testing.T, value any) []string {
	t.Helper()
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// TestFaultOfAnInvalidRow: unless invalid rows are skipped, the first invalid row of a file ends
// the run, with generate's message.
func TestFaultOfAnInvalidRow(t *testing.T) {
	difftest.JobFails(t)
	for _, table := range []snapshot.Table{snapshot.TableLists, snapshot.TableAccounts, snapshot.TableRecords, snapshot.TableBadges, snapshot.TableEvents} {
		dir := t.TempDir()
		writeOdd(t, dir, "")
		writeFile(t, dir, string(table)+".ndjson", []byte("\n{\"a\":\"\\\"\u00e9<&>\"}\n"))
		if table == snapshot.TableLists {
			for _, name := range []string{"lists-0.ndjson", "lists-1.ndjson"} {
				if err := os.Remove(filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
		}
		_, _, want := generator.ToMemory(t.Context(), afero.NewBasePathFs(afero.NewOsFs(), dir), generator.Options{})
		_, err := read(t, input.Source{Location: dir}, input.Options{Limits: limits}, "", nothing)
		got := fmt.Sprint(err)
		if table != snapshot.TableEvents { // the launcher reads these
			got = found(t, err)
		}
		if got != want.Error() || !strings.HasPrefix(got, string(table)+".ndjson:2: ") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// found returns the text that FindError finds in the error of a run.
func found(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		t.Error("got no error, want one")
		return ""
	}
	text, ok := input.FindError(err)
	if !ok {
		t.Errorf("nothing found in %q", err)
	}
	return text
}

// TestWhatIsNotThere: the launcher names a missing file with generate's message.
func TestWhatIsNotThere(t *testing.T) {
	for _, name := range []string{"meta.json", "events.ndjson", "lists-0.ndjson", "accounts.ndjson", "records.ndjson", "badges.ndjson"} {
		dir := t.TempDir()
		writeOdd(t, dir, "")
		if name == "lists-0.ndjson" {
			name = "lists-1.ndjson"
			if err := os.Rename(filepath.Join(dir, "lists-0.ndjson"), filepath.Join(dir, "lists-7.ndjson")); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		_, _, want := generator.ToMemory(t.Context(), afero.NewBasePathFs(afero.NewOsFs(), dir), generator.Options{})
		_, err := input.Open(t.Context(), input.Source{Location: dir}, input.Options{})
		if err == nil || want == nil || err.Error() != want.Error() {
			t.Errorf("without %s: got %v, want %v", name, err, want)
		}
	}
	for location, want := range map[string]string{
		"":                   "the snapshot has no name; use a folder, or s3://BUCKET/PREFIX",
		"http://example.org": "http://example.org: use s3://BUCKET, s3://BUCKET/PREFIX or file:///FOLDER",
	} {
		if _, err := input.Open(t.Context(), input.Source{Location: location}, input.Options{}); fmt.Sprint(err) != want {
			t.Errorf("%q: got %v, want %s", location, err, want)
		}
	}
}

// TestFaultOfFilesThatGo: a file that a worker does not find, or finds replaced, gives one clear
// error.
func TestFaultOfFilesThatGo(t *testing.T) {
	difftest.JobFails(t)
	for want, change := range map[string]func(path string) error{
		"no such file or directory": os.Remove,
		"records.ndjson has 2 bytes, but had 0 when the run began; it was replaced, or this machine has another folder": func(path string) error {
			return os.WriteFile(path, []byte("\n\n"), 0o644)
		},
	} {
		dir := t.TempDir()
		writeOdd(t, dir, "")
		_, err := read(t, input.Source{Location: dir}, input.Options{Limits: limits}, "", func() {
			if err := change(filepath.Join(dir, "records.ndjson")); err != nil {
				t.Error(err)
			}
		})
		if got := found(t, err); !strings.HasSuffix(got, want) || !strings.Contains(got, "records.ndjson") || strings.Contains(got, "\n") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestRefreshed: refreshed data has the numbers of objects in the order of keys, and invalid
// objects are counted and skipped, even without SkipInvalid.
func TestRefreshed(t *testing.T) {
	dir := t.TempDir()
	snapshotDir, kept := filepath.Join(dir, "snapshot"), filepath.Join(dir, "_refresh")
	writeOdd(t, snapshotDir, "")
	badges := `{"address":"0x00000000000000000000000000000000000000a1","fetched":1790000000000,"poaps":[]}`
	valid := map[string]string{"badges/1": badges, "details/1": `{"ens":{}, "name":"b.eth"}`, "details/3": `{"address":"0x00000000000000000000000000000000000000a1","name":"c.eth"}`}
	for key, body := range valid {
		writeFile(t, kept, key, []byte("\n"+body+"\n"))
	}
	for key, body := range map[string]string{"badges/2": "{}", "details/2": "[]", "details/x": badges, "details/4": `{"address":"0x1"}`} {
		writeFile(t, kept, key, []byte(body))
	}
	numbers := map[string]uint64{"badges/1": 1, "details/1": 3, "details/3": 5}

	location := input.Source{Location: kept}
	if err := input.CheckRefreshed(t.Context(), location); err != nil {
		t.Fatal(err)
	}
	if err := input.CheckRefreshed(t.Context(), input.Source{Location: dir + "/no"}); err == nil {
		t.Error("a folder that is not there: got no error, want one")
	}
	r, err := read(t, input.Source{Location: snapshotDir}, input.Options{Limits: limits}, kept, nothing)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.rows["refreshed"] {
		d := wire.Decode(p.value)
		o := d.RefreshedObject()
		key := "details/" + p.key
		if o.Badges {
			key = "badges/" + p.key
		}
		if d.Err() != nil || string(o.Body) != valid[key] || o.Number != numbers[key] {
			t.Errorf("%s: got number %d, %s, want number %d, %s", key, o.Number, o.Body, numbers[key], valid[key])
		}
		delete(valid, key)
	}
	if len(valid) > 0 {
		t.Errorf("not read: %v", valid)
	}
	// Generate reads the snapshot too, to compare the report and its messages.
	opened, err := refreshed.Open(t.Context(), storage.Location{Folder: kept}, storage.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	files := afero.NewBasePathFs(afero.NewOsFs(), snapshotDir)
	_, want, err := generator.ToMemory(t.Context(), files, generator.Options{Refreshed: opened, Config: site.Config{LeaderboardMax: 10}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := inJSON(t, r.report.Invalid), inJSON(t, want.Invalid); !slices.Equal(got, want) || len(r.report.Invalid) != 4 {
		t.Errorf("invalid objects: got %q, want %q", got, want)
	}
	if got, want := r.report.Refreshed, want.Refreshed; got.Objects != want.Objects || got.Skipped != want.Skipped {
		t.Errorf("refreshed: got %+v, want %+v", got, want)
	}
}

// TestS3: a bucket works like a folder, for workers too.
func TestS3(t *testing.T) {
	servers.Wanted(t)
	server := servers.Start(t, servers.MinIO)
	server.Env(t)
	bucket := server.Bucket(t)
	o := input.Options{EFP: true, SkipInvalid: true, Limits: limits}
	for seed := range uint64(3) {
		dir := cut(t, filepath.Join(fixtures, "demo"), rand.New(rand.NewPCG(seed, 1)))
		prefix := fmt.Sprintf("snapshots/%d", seed)
		server.Upload(t, bucket, prefix, dir)
		r := mustRead(t, input.Source{Location: "s3://" + bucket + "/" + prefix, Endpoint: server.Endpoint}, o)
		checkRows(t, r, expectedOf(t, dir, o))
	}
	if _, err := input.Open(t.Context(), input.Source{Location: "s3://" + bucket + "/no", Endpoint: server.Endpoint}, o); err == nil ||
		!strings.HasPrefix(err.Error(), "s3://"+bucket+"/no/meta.json is not there: is this the folder of a snapshot?") {
		t.Errorf("a folder that is not there: got %v", err)
	}
}

// TestFaultOfABucket: any failure of a bucket while workers read gives one clear error.
func TestFaultOfABucket(t *testing.T) {
	difftest.JobFails(t)
	servers.Wanted(t)
	server := servers.Start(t, servers.MinIO)
	server.Env(t)
	dir := t.TempDir()
	writeOdd(t, dir, "")
	random := rand.New(rand.NewPCG(1, 2))
	var records strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&records, `{"token_id":"%d","version":1,"record_type":"address","data":"0x%016x000000000000000000000000"}`+"\n", i/50, random.Uint64())
	}
	for want, fail := range map[string]func(bucket string, proxy *servers.Proxy){
		"tried 7 times: check --endpoint, and that the server is up": func(_ string, proxy *servers.Proxy) { proxy.Break(300_000, true) },
		"records.ndjson was replaced since the run began": func(bucket string, _ *servers.Proxy) {
			writeFile(t, dir, "records.ndjson", []byte(strings.Replace(records.String(), "0x", "0X", 1)))
			server.Upload(t, bucket, "snapshot", dir)
		},
	} {
		bucket, proxy := server.Bucket(t), server.Proxy(t)
		writeFile(t, dir, "records.ndjson", []byte(records.String()))
		server.Upload(t, bucket, "snapshot", dir)
		_, err := read(t, input.Source{Location: "s3://" + bucket + "/snapshot", Endpoint: proxy.Endpoint}, input.Options{Limits: limits}, "",
			func() { fail(bucket, proxy) })
		if got := found(t, err); !strings.Contains(got, want) || !strings.Contains(got, "records.ndjson") || strings.Contains(got, "\n") || strings.Contains(got, "cut off") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestFindError: the text survives whatever a runner does to an error.
func TestFindError(t *testing.T) {
	reason := "records-00001.ndjson.zst:7: tags: \"é<\\\x00\" — " + strings.Repeat("?", 30)
	text := input.Fault(errors.New(reason)).Error()
	for range 4 {
		quoted := inJSON(t, map[string]string{"message": "java.lang.RuntimeException: " + text + "\n\tat org.apache"})
		text = strings.Join(quoted, "\n")
		if got, ok := input.FindError(errors.New(text)); !ok || got != reason {
			t.Errorf("got %q, want %q in %s", got, reason, text)
		}
		text = strconv.Quote(html.EscapeString(text))
	}
	// A truncated error is skipped.
	if got, ok := input.FindError(errors.New(text[:len(text)/2] + "…\n" + input.Fault(errors.New("second")).Error())); !ok || got != "second" {
		t.Errorf("got %q, %t, want the complete file", got, ok)
	}
	if got, ok := input.FindError(errors.New("worker lost")); ok {
		t.Errorf("another error: got %q", got)
	}
	long := input.Fault(errors.New(strings.Repeat("é", 10_000)))
	if got, ok := input.FindError(long); !ok || !strings.HasPrefix(got, "éé") || !utf8.ValidString(got) || len(long.Error()) > 16<<10 {
		t.Errorf("a long text: got %d bytes of %d", len(got), len(long.Error()))
	}
}
