package generator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/site"
)

func TestRecommended(t *testing.T) {
	s := validRows().adding("recommended",
		`{"address":"`+bob+`","class":"A"}`, "", // blank lines are skipped
		`{"class":null,"address":"`+carol+`"}`,
		`{"address":"0x`+strings.ToUpper(bob[2:])+`","class":"Z"}`,
		`{"address":"`+alice+`","class":"<&>","unknown":1}`)
	want := []string{bob, carol, alice}
	for _, s := range []snapshot{s, s.compressed(t, ".gz"), s.compressed(t, ".zst")} {
		shard := decode[struct{ Entries [][]any }](t, inMemory(t, s, smallEFP)[site.RecommendedShardKey(0)])
		var got []string
		for _, row := range shard.Entries {
			got = append(got, row[0].(string))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	_, report, err := generator.ToMemory(t.Context(), s.fs(), smallEFP)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"recommended        4 rows, 1 without effect (repeated address)\n", "lists              1 rows\n"} {
		if !strings.Contains(report.String(), line) {
			t.Errorf("report: got %s, want %q in it", report, line)
		}
	}
	_, _, err = generator.ToMemory(t.Context(), s.with("recommended.ndjson.gz", "").fs(), smallEFP)
	wantError(t, err, "table recommended exists twice; keep one of recommended.ndjson, recommended.ndjson.gz")
	packed := s.compressed(t, ".gz")
	packed = packed.with("recommended.ndjson.gz", packed["recommended.ndjson.gz"][:30])
	_, _, err = generator.ToMemory(t.Context(), packed.fs(), smallEFP)
	wantError(t, err, "recommended.ndjson.gz", "cut off")
}

func TestListOps(t *testing.T) {
	meta := func(member string) snapshot {
		return validRows().adding("records", timed("null"), timed("null")). // repeated
											with("meta.json", `{"format":1,"as_of":"2026-11-20T00:00:00Z"`+member+`}`)
	}
	for member, want := range map[string]uint64{
		"": 1, `,"list_ops":null`: 1, `,"list_ops":0`: 0, `,"list_ops":4321`: 4321, `,"list_ops":18446744073709551615`: 18446744073709551615,
	} {
		stats := inMemory(t, meta(member), smallEFP)["api/v1/stats"]
		if !strings.Contains(stats, fmt.Sprintf(`"%d"`, want)) {
			t.Errorf("%q: got %s, want %d in it", member, stats, want)
		}
	}
	for _, member := range []string{`,"list_ops":-1`, `,"list_ops":"1"`, `,"list_ops":1.5`, `,"list_ops":{}`, `,"list_ops":18446744073709551616`} {
		_, _, err := generator.ToMemory(t.Context(), meta(member).fs(), smallEFP)
		wantError(t, err, "meta.json: list_ops")
	}
}

// TestSpecIgnoresTheRest: the API spec ignores fields that only the API efp shows, whatever they
// contain.
func TestSpecIgnoresTheRest(t *testing.T) {
	for seed := range uint64(4) {
		plain := randomSnapshot(seed, shape{accounts: 9, lists: 6, records: 60, events: 2, badges: 9})
		rest := plain.with("meta.json", strings.Replace(plain["meta.json"], "}", `,"list_ops":-1}`, 1)).
			with("recommended.ndjson", "no JSON").with("recommended.ndjson.gz", "no gzip")
		rows := ""
		for line := range strings.Lines(plain["records.ndjson"]) {
			end := strings.LastIndex(line, "}")
			rows += line[:end] + `,"added":` + []string{`"x"`, "7", "null", `{"a":[]}`, `"2024-10-14T19:45:38Z"`}[len(line)%5] + line[end:]
		}
		rest = rest.with("records.ndjson", rows)
		if err := inMemory(t, rest, small).Compare(inMemory(t, plain, small)); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}
