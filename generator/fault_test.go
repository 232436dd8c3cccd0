package generator_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/spf13/afero"
	"golang.org/x/sys/unix"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/site"
	tables "github.com/followpress/followpress/snapshot"
)

// A scene is an output before a run that must fail: nothing, or a site.
type scene struct {
	path  string
	state map[string]fileState // state of the parent folder
}

func scenes(t testing.TB) []scene {
	t.Helper()
	old, _ := beforeAndAfter()
	var all []scene
	for _, there := range []bool{false, true} {
		for _, p := range places(t) {
			if there {
				onDisk(t, old, p.path, small)
			}
			all = append(all, scene{p.path, stateOf(t, filepath.Dir(p.path))})
		}
	}
	return all
}

// failing runs over each scene. The run must fail in one line with the given texts and leave
// everything unchanged, without a work folder.
func failing(t testing.TB, scenes []scene, snapshot afero.Fs, o generator.Options, texts ...string) {
	t.Helper()
	for _, s := range scenes {
		report, err := generator.ToPath(t.Context(), snapshot, s.path, o)
		wantError(t, err, texts...)
		if report != nil {
			t.Errorf("report of a failed run: got %v, want none", report)
		}
		untouched(t, filepath.Dir(s.path), s.state)
	}
	_, _, err := generator.ToMemory(t.Context(), snapshot, o)
	wantError(t, err, texts...)
}

func TestSnapshotThatIsNone(t *testing.T) {
	_, s := beforeAndAfter()
	over := scenes(t)
	meta := func(text string) snapshot { return s.with("meta.json", text) }
	for name, test := range map[string]struct {
		snapshot snapshot
		reason   string
	}{
		"no folder":        {snapshot{}, "meta.json is not there: is this the folder of a snapshot? name the one that holds meta.json"},
		"no meta":          {s.without("meta.json"), "meta.json is not there: is this the folder of a snapshot?"},
		"no lists":         {s.without("lists.ndjson"), "table lists is not there: expected lists.ndjson, lists.ndjson.gz, lists.ndjson.zst or lists.parquet, or parts such as lists-00001.ndjson.zst"},
		"no records":       {s.without("records.ndjson"), "table records is not there"},
		"no accounts":      {s.without("accounts.ndjson"), "table accounts is not there"},
		"no events":        {s.without("events.ndjson"), "table events is not there"},
		"no badges":        {s.without("badges.ndjson"), "table badges is not there"},
		"a table twice":    {s.with("records.ndjson.gz", ""), "table records exists twice; keep one of records.ndjson, records.ndjson.gz"},
		"no gzip":          {s.without("records.ndjson").with("records.ndjson.gz", s["records.ndjson"]), "read records.ndjson.gz: "},
		"no zstd":          {s.without("records.ndjson").with("records.ndjson.zst", s["records.ndjson"]), "read records.ndjson.zst: "},
		"meta empty":       {meta(""), "meta.json: bad JSON"},
		"meta no object":   {meta("[]"), "meta.json: "},
		"another format":   {meta(`{"format":2,"as_of":"2026-11-20T00:00:00Z"}`), "meta.json: format 2, this version reads 1; update followpress, which is older than the snapshot"},
		"no format":        {meta(`{"as_of":"2026-11-20T00:00:00Z"}`), "meta.json: format 0, this version reads 1"},
		"format a text":    {meta(`{"format":"1","as_of":"2026-11-20T00:00:00Z"}`), "meta.json: "},
		"no as_of":         {meta(`{"format":1}`), `meta.json: as_of "" is not a time`},
		"as_of no time":    {meta(`{"format":1,"as_of":"yesterday"}`), `meta.json: as_of "yesterday" is not a time like`},
		"as_of, no zone":   {meta(`{"format":1,"as_of":"2026-11-20T00:00:00"}`), "meta.json: as_of "},
		"as_of is a day":   {meta(`{"format":1,"as_of":"2026-11-20"}`), "meta.json: as_of "},
		"as_of a number":   {meta(`{"format":1,"as_of":1726680254493}`), "meta.json: "},
		"gzip cut off":     {cutOff(t, s, ".gz"), "records.ndjson.gz"},
		"zstd cut off":     {cutOff(t, s, ".zst"), "records.ndjson.zst"},
		"plain cut off":    {s.with("records.ndjson", s["records.ndjson"][:len(s["records.ndjson"])-20]), "records.ndjson:3: bad JSON"},
		"a folder as file": {s.without("lists.ndjson").with("lists.ndjson/x", ""), "lists"},
	} {
		t.Run(name, func(t *testing.T) { failing(t, over, test.snapshot.fs(), small, test.reason) })
	}
}

// cutOff returns a snapshot whose compressed records end after half of them.
func cutOff(t testing.TB, s snapshot, ending string) snapshot {
	packed := s.compressed(t, ending)
	name := "records.ndjson" + ending
	return packed.with(name, packed[name][:len(packed[name])/2])
}

// TestEveryCutIsNoticed truncates compressed tables after every byte.
func TestEveryCutIsNoticed(t *testing.T) {
	_, s := beforeAndAfter()
	for _, ending := range []string{".gz", ".zst"} {
		packed := s.compressed(t, ending)
		name := "records.ndjson" + ending
		for length := range len(packed[name]) {
			_, _, err := generator.ToMemory(t.Context(), packed.with(name, packed[name][:length]).fs(), small)
			if err == nil {
				t.Fatalf("%s: got a site from the first %d of %d bytes, want an error", name, length, len(packed[name]))
			}
			wantError(t, err, name)
			if t.Failed() {
				return
			}
		}
	}
}

// TestUnreadableSnapshot: the disk fails in the middle of a table.
func TestUnreadableSnapshot(t *testing.T) {
	_, s := beforeAndAfter()
	failing(t, scenes(t), badDisk{s.fs()}, small, "read records.ndjson", unix.EIO.Error())
}

// TestEndlessLine: a line that is too long is not read to its end.
func TestEndlessLine(t *testing.T) {
	s := validRows().adding("records", `{"record_type":"`+strings.Repeat("x", 17<<20))
	_, _, err := generator.ToMemory(t.Context(), s.fs(), small)
	wantError(t, err, "records.ndjson:2: a line of more than 16 MiB")
}

// badDisk is a file system that cannot read the records.
type badDisk struct{ afero.Fs }

func (d badDisk) Open(name string) (afero.File, error) {
	file, err := d.Fs.Open(name)
	if filepath.Base(name) == "records.ndjson" {
		file = badFile{file}
	}
	return file, err
}

type badFile struct{ afero.File }

func (badFile) Read([]byte) (int, error) { return 0, unix.EIO }

var invalidRows = map[string]map[string]string{ // by table and row; each follows a valid row
	"lists": {
		`{"token_id":"9"`:    "bad JSON",
		`"text"`:             "not a JSON object",
		`[{"token_id":"9"}]`: "not a JSON object",
		`null`:               "not a JSON object",
		`{"token_id":"9","owner":"` + alice + `"} {}`:    "bad JSON",
		`{"token_id":"9","owner":"` + alice + "\xff\"}":  "not valid UTF-8",
		`{"token_id":"9","owner":"` + alice + `",}`:      "bad JSON",
		`{"owner":"` + alice + `"}`:                      "token_id: nothing is not a canonical decimal of at most 78 digits",
		`{"token_id":null,"owner":"` + alice + `"}`:      "token_id: nothing is not a canonical decimal of at most 78 digits",
		`{"token_id":9,"owner":"` + alice + `"}`:         "token_id: number where a text belongs",
		`{"token_id":"09","owner":"` + alice + `"}`:      `token_id: "09" is not a canonical decimal of at most 78 digits`,
		`{"token_id":"9\u0000","owner":"` + alice + `"}`: `token_id: "9\x00" is not a canonical decimal of at most 78 digits`,
		`{"token_id":"` + strings.Repeat("9", 300) + `","owner":"` + alice + `"}`: `token_id: "` + strings.Repeat("9", 80) +
			`"… is not a canonical decimal of at most 78 digits`,
		`{"token_id":"1","owner":"` + alice + `"}`:                          "token_id: duplicate list 1",
		`{"token_id":"9"}`:                                                  "owner: nothing is not an address (0x and 40 hexadecimal digits)",
		`{"token_id":"9","owner":null,"user":"` + alice + `"}`:              "owner: nothing is not an address (0x and 40 hexadecimal digits)",
		`{"token_id":"9","owner":"alice.eth"}`:                              `owner: "alice.eth" is not an address (0x and 40 hexadecimal digits)`,
		`{"token_id":"9","owner":{}}`:                                       "owner: object where a text belongs",
		`{"token_id":"9","owner":"` + alice + `","user":""}`:                "user: nothing is not an address (0x and 40 hexadecimal digits)",
		`{"token_id":"9","owner":"` + alice + `","user":"0x"}`:              `user: "0x" is not an address (0x and 40 hexadecimal digits)`,
		`{"token_id":"9","owner":"` + alice + `","user":["` + alice + `"]}`: "user: array where a text belongs",
	},
	"accounts": {
		`{"address":"` + bob + `"`:                                          "bad JSON",
		`{"primary_list":"1"}`:                                              "address: nothing is not an address (0x and 40 hexadecimal digits)",
		`{"address":"0x` + strings.ToUpper(alice[2:]) + `"}`:                "address: duplicate account " + alice,
		`{"address":"0X` + alice[2:] + `"}`:                                 "address: \"0X" + alice[2:] + "\" begins with 0X, where 0x belongs",
		`{"address":"` + bob + `","primary_list":1}`:                        "primary_list: number where a text belongs",
		`{"address":"` + bob + `","primary_list":""}`:                       "primary_list: nothing is not a canonical decimal of at most 78 digits",
		`{"address":"` + bob + `","primary_list":"01"}`:                     `primary_list: "01" is not a canonical decimal of at most 78 digits`,
		`{"address":"` + bob + `","ens":"bob.eth"}`:                         "ens: string where an object belongs",
		`{"address":"` + bob + `","ens":[]}`:                                "ens: array where an object belongs",
		`{"address":"` + bob + `","ens":{"name":1}}`:                        "ens.name: number where a text belongs",
		`{"address":"` + bob + `","ens":{"fresh":"1"}}`:                     "ens.fresh: string where a whole number within range belongs",
		`{"address":"` + bob + `","ens":{"fresh":1.5}}`:                     "ens.fresh: ",
		`{"address":"` + bob + `","ens":{"fresh":9223372036854775808}}`:     "ens.fresh: ",
		`{"address":"` + bob + `","ens":{"records":[]}}`:                    `ens.records: "[]" where an object belongs`,
		`{"address":"` + bob + `","ens":{"chains":"eth"}}`:                  `ens.chains: "\"eth\"" where an object belongs`,
		`{"address":"` + bob + `","ens":{"errors":{"a" "b"}}}`:              "bad JSON",
		`{"address":"` + bob + `","ens":{"errors":{"a":01}}}`:               "bad JSON",
		`{"address":"` + bob + `","ens":{"errors":{"a":tru}}}`:              "bad JSON",
		`{"address":"` + bob + `","ens":{"errors":{"a":"\x"}}}`:             "bad JSON",
		`{"address":"` + bob + `","ens":{"name":"` + "a\x00b" + `"}}`:       "bad JSON",
		`{"address":"` + bob + `","ens":{"name":"` + "\xed\xa0\x80" + `"}}`: "not valid UTF-8",
		`{"address":"` + bob + `","ens":{"name":"\ud800x"}}`:                "not valid Unicode: half of a surrogate pair",
		`{"address":"` + bob + `","ens":{"name":"\uDC00\uD800"}}`:           "not valid Unicode: half of a surrogate pair",
		`{"address":"` + bob + `","ens":{"records":{"\\\ud83d":"x"}}}`:      "not valid Unicode: half of a surrogate pair",
		`{"address":"` + bob + `","unknown":-}`:                             "bad JSON",
		`{"address":"` + bob + `","unknown":nul}`:                           "bad JSON",
		`{"address":"` + bob + `","unknown":[1,]}`:                          "bad JSON",
	},
	"records": {
		`{"token_id":"1","version":1,"record_type":"address","data":"` + bob + `"`:                     "bad JSON",
		`{"token_id":"1","version":1,"record_type":"address","data":"` + bob + `","tags":["a"}`:        "bad JSON",
		`{"version":1,"record_type":"address","data":"` + bob + `"}`:                                   "token_id: nothing is not a canonical decimal of at most 78 digits",
		`{"token_id":1,"version":1,"record_type":"address","data":"` + bob + `"}`:                      "token_id: number where a text belongs",
		`{"token_id":"1","record_type":"address","data":"` + bob + `"}`:                                "version: missing",
		`{"token_id":"1","version":null,"record_type":"address","data":"` + bob + `"}`:                 "version: missing",
		`{"token_id":"1","version":"1","record_type":"address","data":"` + bob + `"}`:                  "version: string where a whole number within range belongs",
		`{"token_id":"1","version":-1,"record_type":"address","data":"` + bob + `"}`:                   "version: ",
		`{"token_id":"1","version":1.5,"record_type":"address","data":"` + bob + `"}`:                  "version: ",
		`{"token_id":"1","version":1e0,"record_type":"address","data":"` + bob + `"}`:                  "version: ",
		`{"token_id":"1","version":01,"record_type":"address","data":"` + bob + `"}`:                   "bad JSON",
		`{"token_id":"1","version":4294967296,"record_type":"address","data":"` + bob + `"}`:           "version: ",
		`{"token_id":"1","version":18446744073709551617,"record_type":"address","data":"` + bob + `"}`: "version: ",
		`{"token_id":"1","version":1,"data":"` + bob + `"}`:                                            "record_type: missing or empty",
		`{"token_id":"1","version":1,"record_type":1,"data":"` + bob + `"}`:                            "record_type: number where a text belongs",
		`{"token_id":"1","version":1,"record_type":"address"}`:                                         "data: nothing is not hexadecimal (0x and an even number of digits)",
		`{"token_id":"1","version":1,"record_type":"address","data":""}`:                               "data: nothing is not hexadecimal (0x and an even number of digits)",
		`{"token_id":"1","version":1,"record_type":"address","data":"0x123"}`:                          `data: "0x123" is not hexadecimal (0x and an even number of digits)`,
		`{"token_id":"1","version":1,"record_type":"address","data":"abcd"}`:                           `data: "abcd" is not hexadecimal (0x and an even number of digits)`,
		`{"token_id":"1","version":1,"record_type":"name","data":"0xzz"}`:                              `data: "0xzz" is not hexadecimal (0x and an even number of digits)`,
		`{"token_id":"1","version":1,"record_type":"name","data":"0xİ"}`:                               `data: "0xİ" is not hexadecimal (0x and an even number of digits)`,
		`{"token_id":"1","version":1,"record_type":"address","data":"` + bob + `","tags":"a"}`:         "tags: string where ",
		`{"token_id":"1","version":1,"record_type":"address","data":"` + bob + `","tags":{}}`:          "tags: object where ",
		`{"token_id":"1","version":1,"record_type":"address","data":"` + bob + `","tags":[1]}`:         "tags",
		`{"token_id":"1","version":1,"record_type":"address","data":"` + bob + `","tags":["a",null]}`:  "tags: null instead of a text",
		`{"token_id":"1","version":1,"record_type":"address","data":"` + bob + `","tags":[["a"]]}`:     "tags",
	},
	"events": {
		`{"id":7`:                                "bad JSON",
		`{"id":7,"year":2024}`:                   "fancy_id: missing",
		strings.Replace(event, `"id":7,`, ``, 1): "id: missing",
		strings.Replace(event, `"year":2024`, `"year":null`, 1):          "year: missing",
		strings.Replace(event, `"year":2024`, `"year":"2024"`, 1):        "year: string where a whole number within range belongs",
		strings.Replace(event, `"id":7`, `"id":"7"`, 1):                  "id: string where a whole number within range belongs",
		strings.Replace(event, `"id":7`, `"id":-7`, 1):                   "id: ",
		strings.Replace(event, `"id":7`, `"id":7.0`, 1):                  "id: ",
		strings.Replace(event, `"id":7`, `"id":18446744073709551616`, 1): "id: ",
		strings.Replace(event, `"id":7`, `"id":1`, 1):                    "id: duplicate event 1",
		strings.Replace(event, `"city":""`, `"city":null`, 1):            "city: missing",
		strings.Replace(event, `"city":""`, `"city":0`, 1):               "city: number where a text belongs",
		strings.Replace(event, `,"expiry_date":""`, ``, 1):               "expiry_date: missing",
	},
	"badges": {
		`{"event_id":"1"`:                                          "bad JSON",
		`{"token_id":"1","owner":"` + alice + `"}`:                 "event_id: nothing is not a canonical decimal of at most 78 digits",
		`{"event_id":1,"token_id":"1","owner":"` + alice + `"}`:    "event_id: number where a text belongs",
		`{"event_id":"01","token_id":"1","owner":"` + alice + `"}`: `event_id: "01" is not a canonical decimal of at most 78 digits`,
		`{"event_id":"1","owner":"` + alice + `"}`:                 "token_id: nothing is not a canonical decimal of at most 78 digits",
		`{"event_id":"1","token_id":"1 ","owner":"` + alice + `"}`: `token_id: "1 " is not a canonical decimal of at most 78 digits`,
		`{"event_id":"1","token_id":"1"}`:                          "owner: nothing is not an address (0x and 40 hexadecimal digits)",
		`{"event_id":"1","token_id":"1","owner":"0x1"}`:            `owner: "0x1" is not an address (0x and 40 hexadecimal digits)`,
	},
}

// invalidTimes and invalidRecommended are invalid for the API efp only. The API spec does not read
// them.
var (
	invalidTimes = map[string]string{
		timed(`""`):                                "added: nothing is not a time like 2026-01-31T00:00:00Z (RFC 3339)",
		timed(`"yesterday"`):                       `added: "yesterday" is not a time like 2026-01-31T00:00:00Z (RFC 3339)`,
		timed(`"2026-01-31"`):                      `added: "2026-01-31" is not a time`,
		timed(`"2026-01-31T00:00:00"`):             `added: "2026-01-31T00:00:00" is not a time`,
		timed(`"2026-01-31 00:00:00Z"`):            `added: "2026-01-31 00:00:00Z" is not a time`,
		timed(`"2026-01-31T0:00:00Z"`):             `added: "2026-01-31T0:00:00Z" is not a time`,
		timed(`"2026-01-31T00:00:00,5Z"`):          `added: "2026-01-31T00:00:00,5Z" is not a time`,
		timed(`"2026-02-30T00:00:00Z"`):            `added: "2026-02-30T00:00:00Z" is not a time`,
		timed(`" 2026-01-31T00:00:00Z"`):           `added: " 2026-01-31T00:00:00Z" is not a time`,
		timed(`"0000-01-01T00:00:00+01:00"`):       `added: "0000-01-01T00:00:00+01:00" is not in the years 0 to 9999 in UTC`,
		timed(`"9999-12-31T23:59:59-01:00"`):       `added: "9999-12-31T23:59:59-01:00" is not in the years 0 to 9999 in UTC`,
		timed(`1726680254493`):                     "added: number where a text belongs",
		timed(`{"at":"2026-01-31T00:00:00.000Z"}`): "added: object where a text belongs",
	}
	invalidRecommended = map[string]string{
		`{"address":"` + bob + `"`:             "bad JSON",
		`"` + bob + `"`:                        "not a JSON object",
		`{"class":"A"}`:                        "address: nothing is not an address (0x and 40 hexadecimal digits)",
		`{"address":"bob.eth"}`:                `address: "bob.eth" is not an address (0x and 40 hexadecimal digits)`,
		`{"address":1}`:                        "address: number where a text belongs",
		`{"address":"` + bob + `","class":1}`:  "class: number where a text belongs",
		`{"address":"` + bob + `","class":[]}`: "class: array where a text belongs",
	}
)

// timed returns a row of records with a time.
func timed(added string) string {
	return `{"token_id":"1","version":1,"record_type":"address","data":"` + bob + `","added":` + added + `}`
}

const (
	alice = "0xaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	bob   = "0xbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	event = `{"id":7,"fancy_id":"","name":"","event_url":"","image_url":"","country":"","city":"","description":"",` +
		`"year":2024,"start_date":"","end_date":"","expiry_date":""}`
)

// validRows returns a snapshot with one row in each table.
func validRows() snapshot {
	return emptySnapshot().adding("lists", `{"token_id":"1","owner":"`+alice+`"}`).
		adding("accounts", `{"address":"`+alice+`","primary_list":"1","ens":{"name":"alice.eth"}}`).
		adding("records", `{"token_id":"1","version":1,"record_type":"address","data":"`+bob+`"}`).
		adding("events", strings.Replace(event, `"id":7`, `"id":1`, 1)).
		adding("badges", `{"event_id":"1","token_id":"5","owner":"`+alice+`"}`)
}

func TestInvalidRows(t *testing.T) {
	valid := validRows()
	for table, rows := range invalidRows {
		checkInvalidRows(t, valid, table, rows, small)
	}
	valid = valid.adding("recommended", `{"address":"`+bob+`"}`)
	checkInvalidRows(t, valid, "records", invalidTimes, smallEFP)
	checkInvalidRows(t, valid, "recommended", invalidRecommended, smallEFP)
}

// checkInvalidRows adds each row to a table of one row: a run names the row, or skips it.
func checkInvalidRows(t *testing.T, valid snapshot, table string, rows map[string]string, o generator.Options) {
	t.Helper()
	skip := o
	skip.SkipInvalid = true
	want := inMemory(t, valid, o)
	everything := valid
	for row, reason := range rows {
		s := valid.adding(table, row)
		where := table + ".ndjson:2: " + reason
		_, _, err := generator.ToMemory(t.Context(), s.fs(), o)
		if err == nil || !strings.HasPrefix(err.Error(), where) {
			t.Errorf("%s: %q\n got %v\nwant %s", table, row, err, where)
		} else {
			wantError(t, err, where)
		}

		files, report, err := generator.ToMemory(t.Context(), s.fs(), skip)
		if err != nil {
			t.Errorf("%s: %q: skipping: got %v, want no error", table, row, err)
			continue
		}
		counts := report.Tables[table]
		if counts.Rows != 2 || counts.Skipped != 1 || report.Skipped() != 1 || len(report.Invalid) != 1 {
			t.Errorf("%s: %q: got counts %+v and invalid %v, want one of two rows skipped", table, row, counts, report.Invalid)
		} else if text := report.Invalid[0].Error(); !strings.HasPrefix(text, where) || !strings.Contains(report.String(), text) {
			t.Errorf("%s: %q: got %q in the report %q, want %s", table, row, text, report, where)
		}
		if err := readTree(t, files).Compare(want); err != nil {
			t.Errorf("%s: %q: got an effect of a skipped row, want none: %v", table, row, err)
		}
		everything = everything.adding(table, row)
	}
	_, report, err := generator.ToMemory(t.Context(), everything.fs(), skip)
	if err != nil || report.Tables[table].Skipped != len(rows) {
		t.Errorf("%s: got %+v, %v, want %d rows skipped", table, report, err, len(rows))
	}
}

// TestInvalidRowIsNamedByItsLine in the middle of a compressed table, and for the first of several
// rows, whatever worker finds it.
func TestInvalidRowIsNamedByItsLine(t *testing.T) {
	rows := strings.Repeat(`{"token_id":"1","version":1,"record_type":"address","data":"`+bob+`"}`+"\n\n", 9000)
	s := validRows().with("records.ndjson", rows).adding("records", "{}", "[]").compressed(t, ".gz")
	for workers := range 4 {
		_, _, err := generator.ToMemory(t.Context(), s.fs(), generator.Options{Workers: workers})
		wantError(t, err, "records.ndjson.gz:18001: token_id: ")
	}
	o := small
	o.SkipInvalid = true
	_, report, err := generator.ToMemory(t.Context(), s.fs(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Invalid) != 2 || report.Invalid[0].Line != 18001 || report.Invalid[1].Line != 18002 || report.Tables["records"].Rows != 9002 {
		t.Errorf("report: got %v of %+v, want the lines 18001 and 18002", report.Invalid, report.Tables["records"])
	}
}

// TestManyInvalidRows: all are counted, only some listed.
func TestManyInvalidRows(t *testing.T) {
	o := small
	o.SkipInvalid = true
	s := emptySnapshot().with("lists.ndjson", strings.Repeat("{}\n", 5000))
	_, report, err := generator.ToMemory(t.Context(), s.fs(), o)
	if err != nil {
		t.Fatal(err)
	}
	if report.Skipped() != 5000 || len(report.Invalid) != 1000 || strings.Count(report.String(), "\n") > 30 {
		t.Errorf("report: got %d skipped and %d listed, want 5000 and 1000: %s", report.Skipped(), len(report.Invalid), report)
	}
}

// TestRowsWithoutEffect: rows that refer to nothing are legal, and counted.
func TestRowsWithoutEffect(t *testing.T) {
	valid := validRows()
	s := valid.
		adding("records", `{"token_id":"99","version":1,"record_type":"address","data":"`+bob+`"}`,
			`{"token_id":"1","version":1,"record_type":"address","data":"`+bob+`"}`).
		adding("badges", `{"event_id":"99","token_id":"5","owner":"`+alice+`"}`,
			`{"event_id":"99999999999999999999999","token_id":"5","owner":"`+alice+`"}`,
			`{"event_id":"1","token_id":"5","owner":"`+bob+`"}`, `{"event_id":"1","token_id":"6","owner":"`+alice+`"}`)
	files, report, err := generator.ToMemory(t.Context(), s.fs(), small)
	if err != nil {
		t.Fatal(err)
	}
	// Such rows stay in the tables, as the root shows.
	if err := readTree(t, files).WithoutIndex().Compare(inMemory(t, valid, small).WithoutIndex()); err != nil {
		t.Error(err)
	}
	for _, want := range []struct {
		table, reason string
		rows          int
	}{{"records", "unknown list", 1}, {"badges", "unknown event", 2}, {"badges", "owner without a list", 1}} {
		if n := report.Tables[want.table].WithoutEffect[want.reason]; n != want.rows {
			t.Errorf("%s: got %d rows without effect (%s), want %d", want.table, n, want.reason, want.rows)
		}
		if line := fmt.Sprintf("%d without effect (%s)", want.rows, want.reason); !strings.Contains(report.String(), line) {
			t.Errorf("report: want %q in it, got %s", line, report)
		}
	}
	if report.Repeated != 1 || report.Tables["records"].Rows != 3 || report.Skipped() != 0 {
		t.Errorf("report: got %+v, want 3 rows, 1 repeated", report)
	}

	s = valid.adding("accounts", `{"address":"`+bob+`","primary_list":"1"}`,
		`{"address":"0xcccccccccccccccccccccccccccccccccccccccc","primary_list":"99"}`)
	_, report, err = generator.ToMemory(t.Context(), s.fs(), small)
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{"primary list that is not there", "primary list of another account"} {
		if n := report.Tables["accounts"].WithoutEffect[reason]; n != 1 {
			t.Errorf("got %d rows without effect (%s), want 1", n, reason)
		}
	}
}

// TestBadOptions: invalid options are rejected before anything is read.
func TestBadOptions(t *testing.T) {
	_, s := beforeAndAfter()
	over := scenes(t)
	for reason, o := range map[string]generator.Options{
		"-1 workers":               {Workers: -1},
		"leaderboard maximum 1:":   {Config: site.Config{LeaderboardMax: 1}},
		`base path "_search/x"`:    {Config: site.Config{BasePath: "_search/x"}},
		`base path "../outside"`:   {Config: site.Config{BasePath: "../outside"}},
		`base path "a//b"`:         {Config: site.Config{BasePath: "a//b"}},
		`badges field "\xff\x00":`: {Config: site.Config{BadgesField: "\xff\x00"}},
	} {
		failing(t, over, s.fs(), o, reason)
	}
}

// TestCancelled stops runs at the beginning of every stage.
func TestCancelled(t *testing.T) {
	old, next := beforeAndAfter()
	for _, p := range places(t) {
		dir := filepath.Dir(p.path)
		onDisk(t, old, p.path, small)
		before := stateOf(t, dir)
		stopped := 0
		for stage := 1; ; stage++ {
			ctx, cancel := context.WithCancel(t.Context())
			o := small
			left := stage
			o.Progress = stages(func(string) {
				if left--; left == 0 {
					cancel()
				}
			})
			_, err := generator.ToPath(ctx, next.fs(), p.path, o)
			cancel()
			if err == nil {
				break // completed: the last stages come after the point of no return
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: cancelled at stage %d: got %v, want Canceled", p.name, stage, err)
			}
			wantError(t, err)
			untouched(t, dir, before)
			stopped++
		}
		if stopped < 7 {
			t.Errorf("%s: stages that were cancelled: got %d, want at least 7", p.name, stopped)
		}
		if err := p.read(t, p.path).Compare(inMemory(t, next, small)); err != nil {
			t.Error(err)
		}
		alone(t, p.path)
	}
}

// TestTwoRuns starts a run while another one is writing to the same output.
func TestTwoRuns(t *testing.T) {
	s, _ := beforeAndAfter()
	for _, p := range places(t) {
		o := small
		once := sync.Once{}
		o.Progress = stages(func(string) {
			once.Do(func() {
				_, err := generator.ToPath(t.Context(), s.fs(), p.path, small)
				if !errors.Is(err, generator.ErrBusy) {
					t.Errorf("%s: the second run: got %v, want %v", p.name, err, generator.ErrBusy)
				}
				wantError(t, err, p.path, "another run is writing")
			})
		})
		onDisk(t, s, p.path, o)
		if err := p.read(t, p.path).Compare(inMemory(t, s, small)); err != nil {
			t.Error(err)
		}
		alone(t, p.path)
	}
}

// TestManyRunsAtOnce starts runs concurrently. Each must succeed or find another run at work; the
// scheduler decides which.
func TestManyRunsAtOnce(t *testing.T) {
	old, next := beforeAndAfter()
	for _, p := range places(t) {
		onDisk(t, old, p.path, small)
		atOnce(12, func(i int) {
			_, err := generator.ToPath(t.Context(), []snapshot{old, next}[i%2].fs(), p.path, small)
			if err != nil && !errors.Is(err, generator.ErrBusy) {
				t.Errorf("%s: got %v, want no error or ErrBusy", p.name, err)
			}
		})
		// These fail at once: they do little more than begin and end.
		atOnce(150, func(int) {
			_, err := generator.ToPath(t.Context(), snapshot{}.fs(), p.path, small)
			if !errors.Is(err, generator.ErrBusy) {
				wantError(t, err, "meta.json is not there")
			}
		})
		if err := check(p.read(t, p.path)); err != nil {
			t.Error(err)
		}
		alone(t, p.path)
	}
}

// atOnce calls do n times on each of four goroutines.
func atOnce(n int, do func(i int)) {
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range n {
				do(worker + i)
			}
		})
	}
	group.Wait()
}

// TestFullDisk makes every write fail after some bytes as on a full disk, or every close: some file
// systems report it only then.
func TestFullDisk(t *testing.T) {
	_, s := beforeAndAfter()
	for _, disk := range []*fullDisk{{room: 0}, {room: 1}, {room: 1000}, {room: 9000}, {room: 1 << 30, failClose: true}} {
		old, _ := beforeAndAfter()
		for _, p := range places(t) {
			onDisk(t, old, p.path, small)
			before := stateOf(t, filepath.Dir(p.path))
			o := small
			o.Files = disk.new()
			_, err := generator.ToPath(t.Context(), s.fs(), p.path, o)
			wantError(t, err, unix.ENOSPC.Error())
			if !errors.Is(err, unix.ENOSPC) {
				t.Errorf("%s, room for %d bytes: got %v, want ENOSPC", p.name, disk.room, err)
			}
			untouched(t, filepath.Dir(p.path), before)
		}
	}
	// With enough room the run succeeds, so the disk was the cause.
	path := filepath.Join(t.TempDir(), "site")
	o := small
	o.Files = (&fullDisk{room: 1 << 30}).new()
	onDisk(t, s, path, o)
	if err := readFolder(t, path).Compare(inMemory(t, s, small)); err != nil {
		t.Error(err)
	}
}

// A fullDisk is the machine's file system with room for this many more bytes.
type fullDisk struct {
	afero.Fs
	room      int64
	failClose bool
	left      atomic.Int64
}

func (d *fullDisk) new() *fullDisk {
	fresh := &fullDisk{Fs: afero.NewOsFs(), room: d.room, failClose: d.failClose}
	fresh.left.Store(d.room)
	return fresh
}

func (d *fullDisk) OpenFile(name string, flag int, perm os.FileMode) (afero.File, error) {
	file, err := d.Fs.OpenFile(name, flag, perm)
	return &fullFile{file, d}, err
}

func (d *fullDisk) Create(name string) (afero.File, error) {
	return d.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
}

type fullFile struct {
	afero.File
	disk *fullDisk
}

func (f *fullFile) Write(p []byte) (int, error) {
	left := f.disk.left.Add(-int64(len(p)))
	if left >= 0 {
		return f.File.Write(p)
	}
	n, _ := f.File.Write(p[:max(0, len(p)+int(left))])
	return n, &fs.PathError{Op: "write", Path: f.Name(), Err: unix.ENOSPC}
}

func (f *fullFile) WriteString(s string) (int, error) { return f.Write([]byte(s)) }

func (f *fullFile) Close() error {
	err := f.File.Close()
	if f.disk.failClose {
		return &fs.PathError{Op: "close", Path: f.Name(), Err: unix.ENOSPC}
	}
	return err
}

// TestRealFullDisk runs on a file system of one megabyte, without space and without room for more
// files.
func TestRealFullDisk(t *testing.T) {
	old, _ := beforeAndAfter()
	next := old.adding("lists", manyLists(400)...)
	for name, options := range map[string]string{"no space": "size=1m", "no more files": "size=64m,nr_inodes=1000"} {
		t.Run(name, func(t *testing.T) {
			disk := mountSmallDisk(t, options)
			path := filepath.Join(disk, "site")
			onDisk(t, old, path, small)
			before := stateOf(t, disk)
			for range 2 { // the first must leave room for the second to fail in the same way
				_, err := generator.ToPath(t.Context(), next.fs(), path, small)
				wantError(t, err, unix.ENOSPC.Error())
				untouched(t, disk, before)
			}
		})
	}
	t.Run("no file at all", func(t *testing.T) {
		disk := mountSmallDisk(t, "size=64m,nr_inodes=500")
		path := filepath.Join(disk, "site")
		onDisk(t, old, path, small)
		last := fillWithFiles(t, disk)
		for range 2 { // room for no file, then for one, less than the work folder needs
			before := stateOf(t, disk)
			_, err := generator.ToPath(t.Context(), next.fs(), path, small)
			wantError(t, err, unix.ENOSPC.Error())
			untouched(t, disk, before)
			if err := os.RemoveAll(last); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// mountSmallDisk mounts a separate in-memory file system.
func mountSmallDisk(t *testing.T, options string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	// Commands instead of system calls: this file compiles on macOS too.
	if output, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("cannot mount a small disk (%v, %s): on Linux, run this test as root, or in `unshare --user --map-root-user --mount`", err, output)
	}
	t.Cleanup(func() {
		if err := exec.Command("umount", dir).Run(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fillWithFiles makes files until no more fit, and returns the last one.
func fillWithFiles(t *testing.T, dir string) (last string) {
	t.Helper()
	for i := 0; ; i++ {
		name := filepath.Join(dir, fmt.Sprint("filler", i))
		if err := os.WriteFile(name, nil, 0o644); errors.Is(err, unix.ENOSPC) {
			return last
		} else if err != nil {
			t.Fatal(err)
		}
		last = name
	}
}

// TestMountPoint: a mount point cannot be exchanged, which a run must detect before the work.
func TestMountPoint(t *testing.T) {
	s, _ := beforeAndAfter()
	disk := mountSmallDisk(t, "size=1m")
	_, err := generator.ToPath(t.Context(), s.fs(), disk, small)
	wantError(t, err, disk+" is a mount point", "name a folder in it")
	alone(t, disk)
}

func manyLists(n int) []string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"token_id":"%d","owner":"%s"}`, 1000+i, alice)
	}
	return rows
}

// TestUnwritableOutput: the reason is named before the work begins.
func TestUnwritableOutput(t *testing.T) {
	_, s := beforeAndAfter()
	for _, name := range []string{"site", "site.tar"} {
		dir := t.TempDir()
		overwrite(t, filepath.Join(dir, "file"), "precious")
		before := stateOf(t, dir)
		_, err := generator.ToPath(t.Context(), s.fs(), filepath.Join(dir, "file", name), small)
		wantError(t, err, "not a directory")
		untouched(t, dir, before)
	}
}

// TestLockedOutput cannot write into the folder that holds the site, or into the site itself.
func TestLockedOutput(t *testing.T) {
	old, next := beforeAndAfter()
	for name, mode := range map[string]struct{ parent, site fs.FileMode }{
		"parent": {0o555, 0o755},
		"site":   {0o777, 0o555},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "site")
			onDisk(t, old, path, small)
			before := stateOf(t, dir)
			chmod(t, path, mode.site)
			chmod(t, dir, mode.parent)
			defer chmod(t, path, 0o755)
			defer chmod(t, dir, 0o755)
			stderr, err := asNobody(t, next.write(t), path)
			if err == nil || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "permission denied") {
				t.Errorf("error output: got %q (%v), want one line with permission denied", stderr, err)
			}
			untouched(t, dir, before)
		})
	}
}

// asNobody runs a child that makes a site. Permissions do not bind root: if root runs the test, the
// child is another user, for whom the test's folders are opened.
func asNobody(t *testing.T, snapshotDir, out string) (stderr string, err error) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(binary)
	if os.Geteuid() == 0 {
		const nobody = 65534
		dir := t.TempDir()
		chmod(t, filepath.Dir(dir), 0o755)
		body, err := os.ReadFile(binary)
		if err != nil {
			t.Fatal(err)
		}
		child.Path = filepath.Join(dir, "generate")
		if err := os.WriteFile(child.Path, body, 0o755); err != nil {
			t.Fatal(err)
		}
		child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	var text strings.Builder
	child.Stderr = &text
	child.Env = append(os.Environ(), childSnapshot+"="+snapshotDir, childOut+"="+out)
	err = child.Run()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) {
		t.Skipf("cannot run as another user (%v): run this test as an ordinary user, or as root outside of a user namespace", err)
	}
	return text.String(), err
}

func chmod(t testing.TB, path string, mode fs.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// TestHostileNames: whatever the name of a profile, its objects stay inside the site.
func TestHostileNames(t *testing.T) {
	names := []string{"../../../escape", "..", ".", "", "/etc/passwd", `..\..\x`, "%2e%2e%2fx", "100%", "a?b", "a#b", "a b", "a\tb", "a\nb",
		"\x00", "a\x00b", "\u0085", "\u202egnp.eth", "\u200f", "a\u2028b", alice, strings.ToUpper(alice), strings.Repeat("x", 255),
		strings.Repeat("x", 256), strings.Repeat("é", 300), "searchFollowing", "_site", "_search", "api", "con", "caf\u0065\u0301", "ok.eth",
		"\ufeff", "👩‍🚀", "a\ufe0f", `"quoted"`, "'; rm -rf ~", "$(x)", "*", "-rf", "~", ".hidden", "\ufffd"}
	s := emptySnapshot()
	for i, name := range names {
		address := fmt.Sprintf("0x%040x", i+1)
		s = s.adding("lists", fmt.Sprintf(`{"token_id":"%d","owner":"%s"}`, i, address)).
			adding("accounts", fmt.Sprintf(`{"address":"%s","primary_list":"%d","ens":{"name":%s}}`, address, i, quote(name)))
	}
	want := inMemory(t, s, small)
	r := newReference(t, s, small.Config)
	if err := want.WithoutIndex().Compare(r.specObjects()); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"ok.eth", "\u202egnp.eth", strings.Repeat("x", 255), "_site", "searchfollowing", ".hidden", "👩‍🚀"} {
		if r.names[name] == "" && name != "searchfollowing" {
			t.Errorf("name %q: got no account, want one", name)
		}
	}
	for _, p := range places(t) {
		onDisk(t, s, p.path, small)
		got := p.read(t, p.path)
		if err := got.Compare(want); err != nil {
			t.Error(err)
		}
		if err := check(got); err != nil {
			t.Error(err)
		}
		alone(t, p.path)
	}
}

// TestNothingIrregularIsOpened: a pipe or a device instead of a file of the snapshot, of the live
// site, or of refreshed data ends the run or is replaced; nothing waits for it.
func TestNothingIrregularIsOpened(t *testing.T) {
	t.Parallel()
	old, next := beforeAndAfter()
	pipe := func(t *testing.T, name string) {
		t.Helper()
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mkfifo(name, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []string{"meta.json", "lists.ndjson", "records.ndjson", "accounts.ndjson"} {
		dir := old.write(t)
		pipe(t, filepath.Join(dir, table))
		files, err := tables.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "site")
		_, err = generator.ToPath(t.Context(), files, out, small)
		wantError(t, err, table, "is a pipe, a socket or a device, not a file")
		if err := files.Close(); err != nil {
			t.Error(err)
		}
		if entries := namesIn(t, filepath.Dir(out)); len(entries) > 0 {
			t.Errorf("a pipe as %s: got %q next to the output, want nothing", table, entries)
		}
	}
	path := filepath.Join(t.TempDir(), "site")
	onDisk(t, old, path, small)
	for name := range readFolder(t, path) {
		if name != site.RootKey {
			pipe(t, filepath.Join(path, string(name)))
		}
	}
	onDisk(t, next, path, small)
	if err := readFolder(t, path).Compare(inMemory(t, next, small)); err != nil {
		t.Errorf("over a site of pipes: %v", err)
	}
}
