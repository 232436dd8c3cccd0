package generate

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/generator/summary"
)

// later returns the demo snapshot some hours later, with one more follow.
func later(t *testing.T, asOf string) string {
	t.Helper()
	dir := demo(t)
	addRow(t, dir, "records", `{"token_id":"1","version":1,"record_type":"address","data":"0x`+strings.Repeat("c", 40)+`"}`)
	meta := `{"format":1,"as_of":"` + asOf + `"}`
	if err := os.WriteFile(filepath.Join(dir, "meta.json"), []byte(meta), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// made generates a site with --ranks-every=24h, and returns the time of its ranks.
func made(t *testing.T, snapshot, out string, args ...string) string {
	t.Helper()
	status, stdout, stderr := generate(append([]string{"--snapshot", snapshot, "--out", out, "--ranks-every=24h", "--report=-"}, args...)...)
	if status != command.Done {
		t.Fatalf("%q: got status %d: %s", args, status, stderr)
	}
	var report summary.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || report.Ranks == nil {
		t.Fatalf("%q: got %s, want a report about ranks (%v)", args, stdout, err)
	}
	if said := "ranks     in details are of " + report.Ranks.AsOf; report.Ranks.Held != strings.Contains(stderr, said) {
		t.Errorf("%q: got held=%t and %s", args, report.Ranks.Held, stderr)
	}
	return report.Ranks.AsOf
}

// TestRanksFrom: the ranks are those of a folder, a tar file, or a copy of the object, until they are due.
func TestRanksFrom(t *testing.T) {
	const first, hours, day = "2026-01-01T00:00:00Z", "2026-01-01T23:00:00Z", "2026-01-02T00:00:00Z"
	folder := filepath.Join(t.TempDir(), "site")
	tar, copied := folder+".tar", folder+"-ranks"
	for _, out := range []string{folder, tar} {
		if asOf := made(t, later(t, first), out); asOf != first {
			t.Errorf("without --ranks-from: got ranks of %s", asOf)
		}
	}
	ranks, err := os.ReadFile(filepath.Join(folder, "_ranks"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(copied, ranks, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{folder, "file://" + folder, tar, copied} {
		out := filepath.Join(t.TempDir(), "site")
		if asOf := made(t, later(t, hours), out, "--ranks-from", from); asOf != first {
			t.Errorf("--ranks-from=%s: got ranks of %s, want %s", from, asOf, first)
		}
		if again, err := os.ReadFile(filepath.Join(out, "_ranks")); err != nil || !bytes.Equal(again, ranks) {
			t.Errorf("--ranks-from=%s: got another object (%v), want the same", from, err)
		}
		if asOf := made(t, later(t, day), out, "--ranks-from", from); asOf != day {
			t.Errorf("--ranks-from=%s, a day later: got ranks of %s", from, asOf)
		}
	}
	if asOf := made(t, later(t, hours), filepath.Join(t.TempDir(), "site"), "--ranks-from", t.TempDir()); asOf != hours {
		t.Errorf("from a folder without: got ranks of %s", asOf)
	}
}

// TestRanksFromFails: a place that is not there, or has something else, is an error before any output.
func TestRanksFromFails(t *testing.T) {
	other := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(other, []byte("ranks"), 0o644); err != nil {
		t.Fatal(err)
	}
	huge := filepath.Join(t.TempDir(), "huge")
	if err := os.WriteFile(huge, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 2<<30); err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]string{
		filepath.Join(t.TempDir(), "gone"): "no such file",
		other:                              "_ranks: it is cut off, or something else: malformed object; repair it, or delete it there",
		huge:                               "2147483648 bytes, more than any site has",
		"/dev/zero":                        "neither a folder nor a regular file",
	} {
		out := filepath.Join(t.TempDir(), "site")
		status, _, stderr := generate("--snapshot", demo(t), "--out", out, "--ranks-every=24h", "--ranks-from", from)
		if status != command.Failed || !failedWith(stderr, want) || exists(out) {
			t.Errorf("%s: got status %d and %s, want %q", from, status, stderr, want)
		}
	}
	for _, args := range [][]string{{"--ranks-every=-1h"}, {"--ranks-every=1500ms"}, {"--ranks-every=99999999h"}, {"--ranks-from=x"}, {"--ranks-every=1h", "--ranks-from=ftp://x"}} {
		if status, _, stderr := generate(append(args, "--snapshot", demo(t), "--out", filepath.Join(t.TempDir(), "site"))...); status != command.Usage || !strings.Contains(stderr, "ranks") {
			t.Errorf("%q: got status %d and %s, want wrong usage", args, status, stderr)
		}
	}
}
