package generate

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/storage"
)

// TestMain turns syncing off: it would wait for the files of all other tests.
func TestMain(m *testing.M) {
	tempdir.InMemory()
	if err := os.Setenv("FOLLOWPRESS_NO_SYNC", "1"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// generate runs the command as a process would, without ending this one.
func generate(args ...string) (status int, stdout, stderr string) {
	var out, err bytes.Buffer
	status = command.Run("generate", "", &Command{}, args, &out, &err)
	return status, out.String(), err.String()
}

// demo returns the demo snapshot in a folder that the test may change.
func demo(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "snapshot")
	if err := os.CopyFS(dir, fixtures.Demo()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func addRow(t *testing.T, dir, table, row string) {
	t.Helper()
	name := filepath.Join(dir, table+".ndjson")
	body, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, append(body, row+"\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestLongTexts: texts that were left out are printed and reported; the run succeeds.
func TestLongTexts(t *testing.T) {
	dir, out := demo(t), filepath.Join(t.TempDir(), "site")
	addRow(t, dir, "accounts", `{"address":"0x`+strings.Repeat("e", 40)+`","ens":{"avatar":"data:,`+strings.Repeat("x", 65_536)+`"}}`)
	status, stdout, stderr := generate("--snapshot", dir, "--out", out, "--report=-")
	if status != command.Done {
		t.Fatalf("got status %d: %s", status, stderr)
	}
	if line := regexp.MustCompile(`(?m)^profiles +1 texts left out, of more than 65536 bytes, or of a profile of more than \d+: accounts.ndjson:\d+: "avatar" has 65542$`); !line.MatchString(stderr) {
		t.Errorf("no line %s in %s", line, stderr)
	}
	var report summary.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || report.LongTexts.LeftOut != 1 || report.LongTexts.Examples[0].Member != "avatar" {
		t.Errorf("the report (%v): %s", err, stdout)
	}
}

// failedWith reports whether the output of a command ends with one line that gives the reason for
// the failure. Progress may precede it.
func failedWith(stderr, reason string) bool {
	_, line, ok := strings.Cut("\n"+stderr, "\ngenerate: ")
	return ok && strings.Contains(line, reason) && strings.Count(line, "\n") == 1 && strings.HasSuffix(line, "\n")
}

// TestFlagOutOfRange: values that the flag parser accepts but that are out of range are
// refused before any work.
func TestFlagOutOfRange(t *testing.T) {
	dir := demo(t)
	for flag, reason := range map[string]string{
		"--leaderboard-max=5":                       "leaderboard maximum 5: between 10 and 10000",
		"--base-path=_search":                       `base path "_search": _search is where a site keeps its own objects`,
		"--names=lookup":                            `names "lookup": only with the api efp`,
		"--profile-url=https://x.example/{address}": `profile URL "https://x.example/{address}": only the api efp has one`,
		"--api=efp --pages":                         "--pages needs --public-url",
		"--max-profile-text=0":                      "every text would be omitted",
	} {
		out := filepath.Join(t.TempDir(), "site")
		status, _, stderr := generate(append(strings.Fields(flag), "--snapshot", dir, "--out", out)...)
		if status != command.Usage || !failedWith(stderr, reason) || !strings.HasPrefix(stderr, "generate: ") {
			t.Errorf("%s: got status %d: %q, want %q", flag, status, stderr, reason)
		}
		if exists(out) {
			t.Errorf("%s: there is an output", flag)
		}
	}
}

// TestStages: the report says how long each stage took and how many bytes it had.
func TestStages(t *testing.T) {
	dir := demo(t)
	out := filepath.Join(t.TempDir(), "site.tar")
	status, stdout, stderr := generate("--snapshot", dir, "--out", out, "--report", "-")
	var report struct {
		summary.Report
		Stages []command.Stage `json:"stages"`
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || status != command.Done {
		t.Fatalf("got status %d (%v): %s", status, err, stderr)
	}
	stages := map[string]command.Stage{}
	for _, s := range report.Stages {
		stages[s.Name] = s
	}
	info, err := os.Stat(filepath.Join(dir, "records.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	if got := stages["records"]; got.Bytes != info.Size() || got.Items != int64(report.Tables["records"].Rows) || got.Seconds <= 0 {
		t.Errorf("records: got %+v, want %d bytes", got, info.Size())
	}
	if got := stages["write"]; got.Bytes != report.Counts.Bytes || got.Items != int64(report.Counts.Objects) {
		t.Errorf("write: got %+v, want %d objects, %d bytes", got, report.Counts.Objects, report.Counts.Bytes)
	}
}

// TestUnwritableReport: a report that cannot be written is an error before the work.
func TestUnwritableReport(t *testing.T) {
	dir := demo(t)
	for name, test := range map[string]struct{ file, reason string }{
		"no folder":    {"nowhere/report.json", "--report=nowhere/report.json: the folder nowhere does not exist; create it"},
		"a folder":     {".", "--report=. is a folder: name a file"},
		"a page":       {"report.html", "--report=report.html: the report is JSON"},
		"below a file": {"file/report.json", "--report=file/report.json cannot be written: "},

		"link to no folder": {"link", "/nowhere does not exist; create it"},
		"link to itself":    {"loop", "--report=loop"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := errors.Join(os.WriteFile("file", nil, 0o644), os.Symlink("nowhere/report.json", "link"), os.Symlink("loop/loop", "loop")); err != nil {
				t.Fatal(err)
			}
			status, _, stderr := generate("--snapshot", dir, "--report", test.file)
			if status != command.Failed || !strings.HasPrefix(stderr, "generate: ") || !failedWith(stderr, test.reason) {
				t.Errorf("got status %d, want %d and only a line with %q: %s", status, command.Failed, test.reason, stderr)
			}
			if entries, err := os.ReadDir("."); err != nil || len(entries) != 3 {
				t.Errorf("%v is there (%v), want the earlier site", entries, err)
			}
		})
	}
}

// TestReportBesideOutput: the run makes the folders above its output, so a report may go
// there.
func TestReportBesideOutput(t *testing.T) {
	dir := demo(t)
	for out, report := range map[string]string{"new/site": "new/report.json", "new/site.tar": "new/report.json", "new/sites/today": "new/report.json"} {
		t.Chdir(t.TempDir())
		if status, _, stderr := generate("--snapshot", dir, "--out", out, "--report", report); status != command.Done || !exists(report) {
			t.Errorf("--out=%s --report=%s: status %d, want a report: %s", out, report, status, stderr)
		}
	}
	t.Chdir(t.TempDir())
	if status, _, stderr := generate("--snapshot", dir, "--out", "new/site", "--report", "new/reports/r.json"); status != command.Failed || exists("new") {
		t.Errorf("a folder that nobody makes: got status %d, want %d and nothing made: %s", status, command.Failed, stderr)
	}
}

// TestReportInOutput: a report inside the output is refused, under any path that leads there.
func TestReportInOutput(t *testing.T) {
	dir := demo(t)
	for name, test := range map[string]struct {
		out, report string
		site        bool // is there already
	}{
		"relative":           {"out", "out/report.json", false},
		"itself":             {"out.tar", "out.tar", false},
		"absolute":           {"out", "$PWD/out/report.json", false},
		"absolute output":    {"$PWD/out", "out/deep/report.json", false},
		"up and down":        {"out", "x/../out/report.json", false},
		"through a folder":   {"out", "to-here/out/report.json", false},
		"output through one": {"to-here/out", "out/report.json", false},
		"link into it":       {"out", "to-out/report.json", true},

		"link to the new output": {"out", "to-report", false},
		"output is a link":       {"to-out", "out/report.json", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			pwd, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			if test.site {
				if status, _, stderr := generate("--snapshot", dir); status != command.Done {
					t.Fatal(stderr)
				}
			}
			if err := errors.Join(os.Mkdir("x", 0o755), os.Symlink(".", "to-here"), os.Symlink("out", "to-out"), os.Symlink("to-here/out/report.json", "to-report")); err != nil {
				t.Fatal(err)
			}
			status, _, stderr := generate("--snapshot", dir, "--out", strings.ReplaceAll(test.out, "$PWD", pwd), "--report", strings.ReplaceAll(test.report, "$PWD", pwd))
			if status != command.Usage || !failedWith(stderr, "is in the output, where the next run would have to remove it") {
				t.Errorf("got status %d, want %d: %s", status, command.Usage, stderr)
			}
		})
	}
	// Similar names are allowed.
	t.Chdir(t.TempDir())
	for _, report := range []string{"out.json", "outer", "..out"} {
		if status, _, stderr := generate("--snapshot", dir, "--report", report); status != command.Done || !exists(report) {
			t.Errorf("--report=%s: status %d: %s", report, status, stderr)
		}
	}
}

// TestReportInPipe: a report may go to a program that reads a named pipe.
func TestReportInPipe(t *testing.T) {
	dir := demo(t)
	t.Chdir(t.TempDir())
	if err := syscall.Mkfifo("pipe", 0o644); err != nil {
		t.Fatal(err)
	}
	read := make(chan []byte, 1)
	go func() {
		body, _ := os.ReadFile("pipe")
		read <- body
	}()
	ended := make(chan int, 1)
	go func() {
		status, _, _ := generate("--snapshot", dir, "--report", "pipe")
		ended <- status
	}()
	select {
	case status := <-ended:
		if body := <-read; status != command.Done || !json.Valid(body) {
			t.Errorf("got status %d and %.100s, want a report", status, body)
		}
	case <-time.After(time.Minute):
		t.Error("generate does not end")
	}
}

// TestOutputThatIsNoPath: generate refuses names that would become an odd folder, and suggests the
// intended command.
func TestOutputThatIsNoPath(t *testing.T) {
	dir := demo(t)
	for out, reason := range map[string]string{
		"s3://bucket/x":       "generate --out site.tar, then publish --site site.tar --dest s3://bucket/x",
		"S3://bucket":         "then publish --site site.tar --dest S3://bucket",
		"file:///srv/site":    "name the path, --out /srv/site,",
		"https://host/x":      "is a URL; name a folder, or a file that ends in .tar",
		"site.tar.gz":         "name a file that ends in .tar, such as site.tar, and compress it afterwards, or",
		"there/site.tgz":      "such as there/site.tar,",
		"site.tar.zst":        "such as site.tar,",
		"site.TAR.XZ":         "such as site.tar,",
		"s3:/bucket/x":        "--dest s3://bucket/x",
		"file:/srv/site":      "name the path, --out /srv/site,",
		"site.TAR":            "--out=site.TAR: name a file that ends in .tar, such as site.tar, and compress it afterwards, or another folder",
		"there/site.tar.lz4":  "name a file that ends in .tar, such as there/site.tar,",
		"site.zip":            "name a file that ends in .tar, such as site.tar,",
		"a/../site.Zip":       "such as site.tar,",
		"site.tar.gz/":        "name a file that ends in .tar, such as site.tar, and compress it afterwards, or",
		"http.d/s3:/../s.tgz": "such as http.d/s.tar,",
	} {
		t.Run(out, func(t *testing.T) {
			t.Chdir(t.TempDir())
			status, _, stderr := generate("--snapshot", dir, "--out", out)
			if status != command.Usage || !failedWith(stderr, reason) {
				t.Errorf("got status %d, want %d and %q: %s", status, command.Usage, reason, stderr)
			}
			if entries, err := os.ReadDir("."); err != nil || len(entries) > 0 {
				t.Errorf("%v is there (%v), want nothing", entries, err)
			}
		})
	}
	t.Chdir(t.TempDir())
	for _, out := range []string{"site.gz", "a:b", "tar.gz.d", "site.target", "zip"} {
		if status, _, stderr := generate("--snapshot", dir, "--out", out); status != command.Done || !exists(filepath.Join(out, "_site")) {
			t.Errorf("--out=%s: status %d: %s", out, status, stderr)
		}
	}
}

// TestUnmountedOutput: a link to a disk that is not mounted is an error at once.
func TestUnmountedOutput(t *testing.T) {
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.Symlink("/mnt/no/such/disk", disk); err != nil {
		t.Fatal(err)
	}
	for _, below := range []string{"", "site", "site.tar", "sites/today"} {
		status, _, stderr := generate("--snapshot", demo(t), "--out", filepath.Join(disk, below))
		if status != command.Failed || !failedWith(stderr, disk+" is a link to nowhere: mount or make what it points to") {
			t.Errorf("got status %d, want %d: %s", status, command.Failed, stderr)
		}
	}
}

// parseReport fails the test unless text is one JSON object and nothing else.
func parseReport(t *testing.T, text string) summary.Report {
	t.Helper()
	var report summary.Report
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return report
}

// TestStopped sends SIGTERM as soon as the run prints something. It ends with the
// status that shells expect, and leaves no files.
func TestStopped(t *testing.T) {
	out := filepath.Join(t.TempDir(), "site")
	var stdout bytes.Buffer
	stderr := &signaller{}
	status := command.Run("generate", "", &Command{}, []string{"--snapshot", demo(t), "--out", out}, &stdout, stderr)
	if status != 128+int(syscall.SIGTERM) || !strings.Contains(stderr.text.String(), "generate: stopped by terminated\n") {
		t.Errorf("got status %d: %s", status, stderr.text.String())
	}
	entries, err := os.ReadDir(filepath.Dir(out))
	if err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v (%v)", entries, err)
	}
}

// A signaller ends this process with SIGTERM when it is first written to, which is
// after the command began to listen for signals.
type signaller struct {
	text bytes.Buffer
	sent bool
}

func (s *signaller) Write(p []byte) (int, error) {
	if !s.sent {
		s.sent = true
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			return 0, err
		}
		time.Sleep(200 * time.Millisecond) // until it has arrived
	}
	return s.text.Write(p)
}

// The error for an argument that is not a snapshot folder names its type and the flag that accepts
// it.
func TestWhatIsNoSnapshot(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) string {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for path, want := range map[string]string{
		write("site.tar"):                          "is a file, and a snapshot is a folder; for a generated site use --site",
		write("accounts.ndjson"):                   "is a file, and a snapshot is a folder; name the folder with meta.json",
		filepath.Dir(write("site/_site")):          "is a site, not a snapshot; use --site",
		filepath.Dir(write("snapshot/meta.json")):  "",
		filepath.Dir(write("both/meta.json")):      "",
		filepath.Dir(write("both/_site")):          "",
		filepath.Dir(write("tables/lists.ndjson")): "", // reading says that meta.json is missing
		filepath.Join(dir, "nothing"):              "",
		"https://x.example/snapshot":               "is a URL; a snapshot is a folder",
	} {
		_, closeFiles, err := OpenSnapshot(t.Context(), path, storage.S3Options{})
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path)) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
		if err == nil {
			if err := closeFiles(); err != nil {
				t.Error(err)
			}
		}
	}
}

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

// TestRanksFrom: the ranks are those of a folder or a tar file, until they are due.
func TestRanksFrom(t *testing.T) {
	const first, hours, day = "2026-01-01T00:00:00Z", "2026-01-01T23:00:00Z", "2026-01-02T00:00:00Z"
	folder := filepath.Join(t.TempDir(), "site")
	tar := folder + ".tar"
	for _, out := range []string{folder, tar} {
		if asOf := made(t, later(t, first), out); asOf != first {
			t.Errorf("without --ranks-from: got ranks of %s", asOf)
		}
	}
	ranks, err := os.ReadFile(filepath.Join(folder, "_ranks"))
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{folder, "file://" + folder, tar} {
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
	other, huge := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "_ranks"), []byte("ranks"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(huge, "_ranks"), nil, 0o644), os.Truncate(filepath.Join(huge, "_ranks"), 2<<30)); err != nil {
		t.Fatal(err)
	}
	for from, want := range map[string]string{
		filepath.Join(t.TempDir(), "gone"):       "no such file",
		"file://" + filepath.Join(other, "gone"): "no such file",
		"file://" + other:                        "_ranks: it is cut off, or something else: malformed object; repair it, or delete it there",
		other:                                    "_ranks: it is cut off, or something else: malformed object; repair it, or delete it there",
		huge:                                     "2147483648 bytes, more than any site has",
		"/dev/zero":                              "--ranks-from: read /dev/zero: ",
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
