package generator_test

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/twin/answers"
	"github.com/followpress/followpress/site"
	snapshots "github.com/followpress/followpress/snapshot"
)

// FuzzSnapshotReader feeds arbitrary text to the reader as three of the tables. A strict run makes
// a site or names a row; a lenient run never fails because of a row, always makes a complete site,
// and makes the same site as a successful strict run.
func FuzzSnapshotReader(f *testing.F) {
	add := func(s snapshot) {
		f.Add([]byte(s["lists.ndjson"]), []byte(s["accounts.ndjson"]), []byte(s["records.ndjson"]))
	}
	add(emptySnapshot())
	add(validRows())
	add(randomSnapshot(1, shape{accounts: 4, lists: 3, records: 8}))
	add(randomSnapshot(2, shape{accounts: 3, lists: 3, records: 8, hostile: true}))
	broken := validRows()
	for table, rows := range invalidRows {
		for row := range rows {
			broken = broken.adding(table, row)
		}
	}
	add(broken)

	f.Fuzz(func(t *testing.T, lists, accounts, records []byte) {
		s := validRows().with("lists.ndjson", string(lists)).with("accounts.ndjson", string(accounts)).with("records.ndjson", string(records))
		skip := small
		skip.SkipInvalid = true
		lenient, _, err := generator.ToMemory(t.Context(), s.fs(), skip)
		if err != nil {
			t.Fatalf("skipping invalid rows: got %v, want no error", err)
		}
		got := readTree(t, lenient)
		if err := check(got); err != nil {
			t.Fatal(err)
		}
		for key, body := range got {
			if !stdjson.Valid([]byte(body)) && !strings.HasPrefix(string(key), string(site.ManifestKey(""))) {
				t.Fatalf("%q: got %q, want JSON", key, body)
			}
		}
		strict, _, err := generator.ToMemory(t.Context(), s.fs(), small)
		if err != nil {
			if row := (*snapshots.RowError)(nil); !errors.As(err, &row) {
				t.Fatalf("error: got %v, want a RowError", err)
			}
			wantError(t, err)
			return
		}
		if err := readTree(t, strict).Compare(got); err != nil {
			t.Fatalf("strict run: got another site, want the same: %v", err)
		}
		if ambiguous(lists) || ambiguous(accounts) || ambiguous(records) || bytes.Contains(records, []byte("added")) {
			return // the API spec does not read times
		}
		if err := got.WithoutIndex().Compare(newReference(t, s, small.Config).specObjects()); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzParseRecord compares the parser of records, which reads most of a snapshot, with
// encoding/json: both accept the same rows, with the same meaning.
func FuzzParseRecord(f *testing.F) {
	for row := range invalidRows["records"] {
		f.Add([]byte(row))
	}
	for row := range invalidTimes {
		f.Add([]byte(row))
	}
	for _, added := range []string{
		`null`, `"1970-01-01T00:00:00Z"`, `"2024-10-14T19:45:38.6179999999Z"`, `"2024-10-14T21:45:38.617+02:00"`, `"1969-12-31T23:59:59.9999Z"`,
		`"9999-12-31T23:59:59.999Z"`, `"2024-10-14\u005419:45:38.617\u005A"`,
	} {
		f.Add([]byte(timed(added)))
	}
	for line := range strings.Lines(validRows()["records.ndjson"] + randomSnapshot(3, shape{accounts: 9, lists: 2, records: 60, hostile: true})["records.ndjson"]) {
		f.Add([]byte(strings.TrimSpace(line)))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if ambiguous(line) {
			t.Skip("repeated members, or names of members in another letter case")
		}
		token, got, _, err := generator.ParseRecord(line, false)
		wantToken, want, wantErr := plainRecord(line)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: got %v, want %v as encoding/json", line, err, wantErr)
		}
		if err == nil && (token != wantToken || !reflect.DeepEqual(got, want)) {
			t.Fatalf("%q: got list %q, %+v\nwant list %q, %+v", line, token, got, wantToken, want)
		}
		wantAdded, timeErr := plainTime(line)
		_, timedRecord, added, err := generator.ParseRecord(line, true)
		if (err == nil) != (wantErr == nil && timeErr == nil) {
			t.Fatalf("%q: with its time: got %v, want %v, %v as encoding/json", line, err, wantErr, timeErr)
		}
		if err == nil && (added != wantAdded || !reflect.DeepEqual(timedRecord, want)) {
			t.Fatalf("%q: got %+v, added at %d\nwant %+v, added at %d", line, timedRecord, added, want, wantAdded)
		}
	})
}

var (
	surrogatePair = regexp.MustCompile(`(?i)\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}`)
	surrogate     = regexp.MustCompile(`(?i)\\ud[89a-f][0-9a-f]{2}`)
)

var hexadecimal = regexp.MustCompile(`^0x([0-9a-f]{2})*$`)

var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

// plainRecord parses a row in the plainest way.
func plainRecord(line []byte) (token string, r answers.Record, err error) {
	var row struct {
		TokenID *string   `json:"token_id"`
		Version *uint32   `json:"version"`
		Type    *string   `json:"record_type"`
		Data    *string   `json:"data"`
		Tags    []*string `json:"tags"`
	}
	if !utf8.Valid(line) || !strings.HasPrefix(string(line), "{") {
		return "", r, errors.New("no object")
	}
	rest := surrogatePair.ReplaceAllString(strings.ReplaceAll(string(line), `\\`, ""), "")
	if surrogate.MatchString(rest) {
		return "", r, errors.New("half of a surrogate pair")
	}
	if err := stdjson.Unmarshal(line, &row); err != nil {
		return "", r, err
	}
	if row.TokenID == nil || row.Version == nil || row.Type == nil || row.Data == nil || slices.Contains(row.Tags, nil) {
		return "", r, errors.New("something is missing")
	}
	r = answers.Record{Version: *row.Version, RecordType: *row.Type, Data: strings.ToLower(*row.Data)}
	for _, tag := range row.Tags {
		r.Tags = append(r.Tags, *tag)
	}
	slices.Sort(r.Tags)
	r.Tags = slices.Compact(r.Tags)
	if !site.ValidTokenID(*row.TokenID) || r.RecordType == "" || !hexadecimal.MatchString(r.Data) {
		return "", r, errors.New("something is malformed")
	}
	return *row.TokenID, r, nil
}

// plainTime parses the time of a row of records in the plainest way.
func plainTime(line []byte) (added int64, err error) {
	var row struct {
		Added *string `json:"added"`
	}
	if err := stdjson.Unmarshal(line, &row); err != nil || row.Added == nil {
		return 0, err
	}
	if !rfc3339.MatchString(*row.Added) {
		return 0, errors.New("another form")
	}
	t, err := time.Parse(time.RFC3339, *row.Added)
	if year := t.UTC().Year(); err == nil && (year < 0 || year > 9999) {
		return 0, errors.New("no time that RFC 3339 writes in UTC")
	}
	return t.UnixMilli(), err
}

// members are the known names in a row.
var members = []string{
	"token_id", "owner", "user", "version", "record_type", "data", "tags", "added", "address", "primary_list", "ens",
	"name", "avatar", "header", "display", "records", "chains", "fresh", "resolver", "errors",
}

// ambiguous reports whether rows contain an object about which decoders may disagree: with a
// repeated member, or with a known name in another letter case.
func ambiguous(rows []byte) bool {
	for line := range bytes.Lines(rows) {
		decoder := stdjson.NewDecoder(bytes.NewReader(line))
		var path []map[string]bool // names seen in the open objects; nil for an array
		name := true               // whether a name comes next in the innermost object
		for {
			token, err := decoder.Token()
			if err != nil {
				break // all decoders reject invalid JSON
			}
			switch token {
			case stdjson.Delim('{'):
				path, name = append(path, map[string]bool{}), true
				continue
			case stdjson.Delim('['):
				path = append(path, nil)
				continue
			case stdjson.Delim('}'), stdjson.Delim(']'):
				path, name = path[:len(path)-1], true
				continue
			}
			if len(path) == 0 || path[len(path)-1] == nil {
				continue
			}
			if text, ok := token.(string); ok && name {
				seen := path[len(path)-1]
				if seen[text] || slices.ContainsFunc(members, func(m string) bool { return m != text && strings.EqualFold(m, text) }) {
					return true
				}
				seen[text] = true
			}
			name = !name
		}
	}
	return false
}
