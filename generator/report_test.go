package generator_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/site"
)

// withLongTexts is beforeRefreshes with texts one byte longer than 64 KiB, and others that just
// fit.
func withLongTexts() snapshot {
	fits := strings.Repeat("f", 64<<10)
	return beforeRefreshes().adding("accounts",
		``,
		`{"address":"`+carol+`","ens":{"name":"carol.eth","avatar":"`+fits+`!","header":"`+fits+`","records":{"avatar":"`+fits+`!","url":"`+fits+`"}}}`,
	).adding("records", recordRow("1", carol, "")).adding("lists", `{"token_id":"4","owner":"`+carol+`"}`)
}

// TestLongTextsAreLeftOut: a text that is too long is omitted in every object; it is counted, and
// the first ones are shown with their place.
func TestLongTextsAreLeftOut(t *testing.T) {
	files, report, err := generator.ToMemory(t.Context(), withLongTexts().fs(), small)
	if err != nil {
		t.Fatal(err)
	}
	got := readTree(t, files)
	if err := check(got); err != nil {
		t.Error(err)
	}
	long := `"avatar":"` + strings.Repeat("f", 64<<10) + `!",` // twice: also in records
	cut := withLongTexts().with("accounts.ndjson", strings.ReplaceAll(withLongTexts()["accounts.ndjson"], long, ""))
	if err := got.WithoutIndex().Compare(inMemory(t, cut, small).WithoutIndex()); err != nil {
		t.Error(err)
	}
	want := summary.LongTextReport{LeftOut: 2, Most: 65536, MostProfile: 256 << 10, Examples: []summary.LongTextExample{
		{File: "accounts.ndjson", Line: 4, LongText: site.LongText{Member: "avatar", Bytes: 65537}},
		{File: "accounts.ndjson", Line: 4, LongText: site.LongText{Member: "records.avatar", Bytes: 65537}},
	}}
	if !reflect.DeepEqual(report.LongTexts, want) {
		t.Errorf("report: got %+v, want %+v", report.LongTexts, want)
	}
	const line = `2 texts left out, of more than 65536 bytes, or of a profile of more than 262144: accounts.ndjson:4: "avatar" has 65537; accounts.ndjson:4: "records.avatar" has 65537` + "\n"
	if !strings.Contains(report.String(), line) {
		t.Errorf("report: got\n%s, want in it\n%s", report, line)
	}
	if report.Skipped() != 0 {
		t.Errorf("got %d rows skipped, want none", report.Skipped())
	}
}

// TestLongTextLimit: the limit is part of the configuration and the root.
func TestLongTextLimit(t *testing.T) {
	o := small
	o.Config.MaxProfileText, o.Config.MaxProfile = 64<<10+1, 1<<20
	_, report, err := generator.ToMemory(t.Context(), withLongTexts().fs(), o)
	if err != nil || report.LongTexts.LeftOut != 0 || strings.Contains(report.String(), "left out") {
		t.Errorf("with a larger limit: got %v\n%v, want none left out", report, err)
	}
	o.Config.MaxProfileText = 255
	files, report, err := generator.ToMemory(t.Context(), withLongTexts().fs(), o)
	if err != nil || report.LongTexts.LeftOut != 4 {
		t.Errorf("with a smaller limit: got %v\n%v, want 4 left out", report, err)
	}
	if root := decode[site.Root](t, readTree(t, files)[site.RootKey]); root.Config.MaxProfileText != 255 {
		t.Errorf("limit in the root: got %d, want 255", root.Config.MaxProfileText)
	}
}

// TestLongTextsOfRefreshes: refreshed data has the same limit.
func TestLongTextsOfRefreshes(t *testing.T) {
	long := strings.Repeat("x", 64<<10+1)
	r := refreshed{
		"details/2": fmt.Sprintf(`{"address":%q,"name":"new.eth","avatar":%q,"fresh":101,"chains":{"60":%q,"0":"y"}}`, bob, long, long),
		"details/3": fmt.Sprintf(`{"address":%q,"avatar":%q}`, carol, long), // another account's list: not merged
	}
	files, report, err := generator.ToMemory(t.Context(), beforeRefreshes().fs(), withRefreshed(r))
	if err != nil {
		t.Fatal(err)
	}
	want := []summary.LongTextExample{
		{File: "_refresh/details/2", LongText: site.LongText{Member: "avatar", Bytes: 65537}},
		{File: "_refresh/details/2", LongText: site.LongText{Member: "chains.60", Bytes: 65537}},
	}
	if got := report.LongTexts; got.LeftOut != 2 || !reflect.DeepEqual(got.Examples, want) {
		t.Errorf("report: got %+v, want %+v", got, want)
	}
	o := readTree(t, files)
	for key, want := range map[site.Key]string{
		"api/v1/lists/2/details":         `"ens":{"name":"new.eth","avatar":"","header":"","display":"","records":{},"chains":{"0":"y"},"fresh":101,`,
		"api/v1/lists/1/searchFollowing": `"ens":{"name":"new.eth","avatar":""}`,
	} {
		if !strings.Contains(o[key], want) {
			t.Errorf("%s: got %s\nwant %s in it", key, o[key], want)
		}
	}
}

// TestManyLongTexts: all are counted, a few shown.
func TestManyLongTexts(t *testing.T) {
	o := small
	o.Config.MaxProfileText = 255
	s := emptySnapshot().adding("accounts", repeatedRows(40, func(i int) string {
		return fmt.Sprintf(`{"address":"0x%040x","ens":{"avatar":"%0300d","records":{"\u001b[2J\n":"%0300d"}}}`, i, i, i)
	})...)
	_, report, err := generator.ToMemory(t.Context(), s.fs(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := report.LongTexts; got.LeftOut != 80 || len(got.Examples) != 10 || got.Examples[9].Line != 5 {
		t.Errorf("got %d left out and %+v, want 80, and the first 10", got.LeftOut, got.Examples)
	}
	if line := report.LongTexts.String(); strings.ContainsAny(line, "\x1b\n") || !strings.HasSuffix(line, "; and 77 more") {
		t.Errorf("report: got %q, want one line with 77 more", line)
	}
}

// TestLargeProfilesAreCut: the largest texts and entries of an oversized profile are omitted in
// every object, whether it comes from the snapshot or a refresh.
func TestLargeProfilesAreCut(t *testing.T) {
	text := strings.Repeat("\n", 10<<10) // 20 KiB as JSON
	var all, kept []string
	for i := range 20 {
		entry := fmt.Sprintf(`"r%02d":%q`, i, text+strings.Repeat("x", i%7))
		all = append(all, entry)
		// Of the entries of 20 KiB, all except the largest: those with i%7 of 6, 5 and 4, and one
		// of the three with 3.
		if i%7 < 3 || i == 10 || i == 17 {
			kept = append(kept, entry)
		}
	}
	with := func(entries []string) snapshot {
		return beforeRefreshes().adding("accounts",
			`{"address":"`+carol+`","ens":{"name":"carol.eth","avatar":"x","records":{`+strings.Join(entries, ",")+`,"url":"y"}}}`,
		).adding("records", recordRow("1", carol, "")).adding("lists", `{"token_id":"4","owner":"`+carol+`"}`)
	}
	o := small
	o.Config.MaxProfile = 240 << 10
	files, report, err := generator.ToMemory(t.Context(), with(all).fs(), o)
	if err != nil {
		t.Fatal(err)
	}
	got := readTree(t, files)
	if err := check(got); err != nil {
		t.Error(err)
	}
	if err := got.WithoutIndex().Compare(inMemory(t, with(kept), o).WithoutIndex()); err != nil {
		t.Error(err)
	}
	if report.LongTexts.LeftOut != len(all)-len(kept) || report.LongTexts.MostProfile != 240<<10 {
		t.Errorf("report: got %+v, want %d left out", report.LongTexts, len(all)-len(kept))
	}
}

// TestKindsAddUp: the kinds cover all objects and bytes, ordered by bytes, and there are few of
// them.
func TestKindsAddUp(t *testing.T) {
	t.Parallel()
	for _, api := range []string{site.APISpec, site.APIEFP} {
		files, report, err := generator.ToMemory(t.Context(), afero.FromIOFS{FS: fixtures.Demo()}, generator.Options{Config: site.Config{API: api}})
		if err != nil {
			t.Fatal(err)
		}
		var objects, bytes int64
		for i, k := range report.Kinds {
			objects, bytes = objects+k.Objects, bytes+k.Bytes
			if i > 0 && k.Bytes > report.Kinds[i-1].Bytes {
				t.Errorf("%s: %s is not in the order of bytes", api, k.Keys)
			}
		}
		if objects != int64(report.Counts.Objects) || bytes != report.Counts.Bytes || len(report.Kinds) > 60 {
			t.Errorf("%s: got %d kinds with %d objects and %d bytes, want all %d and %d", api, len(report.Kinds), objects, bytes, report.Counts.Objects, report.Counts.Bytes)
		}
		var details, detailsBytes int64
		if err := afero.Walk(files, "", func(path string, info fs.FileInfo, err error) error {
			if err == nil && !info.IsDir() && strings.Contains(path, "/lists/") && filepath.Base(path) == "details" {
				details, detailsBytes = details+1, detailsBytes+info.Size()
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		want := summary.KindReport{Keys: "api/v1/lists/*/details", Objects: details, Bytes: detailsBytes}
		found := false
		for _, k := range report.Kinds {
			found = found || k == want
		}
		if !found || details == 0 {
			t.Errorf("%s: got the kinds %v, want among them %v", api, report.Kinds, want)
		}
		if !strings.Contains(report.String(), "\nbytes     ") || !strings.Contains(report.String(), "% "+report.Kinds[0].Keys) {
			t.Errorf("%s: the report does not name %s:\n%s", api, report.Kinds[0].Keys, report)
		}
	}
}
