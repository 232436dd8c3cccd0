package difftest

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures/odd"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// Random makes a case in folders of the test, with every oddity that the format allows: those of
// naive.Random or odd.Snapshot alternately, tables cut into files, sometimes refreshed objects,
// invalid rows to skip, and an unusual configuration. The same seed makes the same case. Even seeds
// use the API efp, odd seeds spec.
func Random(tb testing.TB, seed uint64) Case {
	tb.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	c := Case{Config: site.Config{LeaderboardMax: 10 + r.IntN(3)*45, Explorer: r.IntN(3) > 0}}
	if c.Config.Explorer && seed%3 == 0 {
		c.Config.Reports = true
		c.Config.Pictures, c.Config.ExplorerKeys = "img.example *.pictures.example", "follow.example+1a2b3c4d+AbCd"
	}
	if r.IntN(3) > 0 {
		c.Config.MaxProfileText = 255 + r.IntN(60)
	}
	if seed%3 == 0 {
		c.Config.MaxProfile = 1<<10 + int(seed%64) // some profiles are larger
	}
	if r.IntN(4) == 0 {
		c.Config.BasePath, c.Config.BadgesField = "some/path", "tokens"
	}
	if seed%2 == 0 {
		c.Config.API = site.APIEFP
		if r.IntN(2) == 0 {
			c.Config.Names = site.NamesLookup
		}
		if seed%8 != 2 {
			c.Config.HistoryWindow = site.Window(time.Duration(1+r.IntN(999)) * time.Hour)
		}
	}
	var files map[string]string
	kind := "naive"
	if seed%4 < 2 {
		files = unpacked(tb, naive.Random(seed))
	} else {
		kind = "odd"
		files = odd.Snapshot(seed, randomShape(r, c.Config.MaxProfileText))
	}
	if seed%3 == 1 {
		files["meta.json"] = strings.TrimSuffix(strings.TrimSpace(files["meta.json"]), "}") + fmt.Sprintf(
			`,"chains":[{"chain_id":10,"block":%d,"hash":"0x%064x","events":7}],"badges":{"source":"https://example.com/b","digest":"%064x"}}`, seed, seed, seed+1)
	}
	if c.SkipInvalid = r.IntN(4) == 0; c.SkipInvalid {
		kind += " with invalid rows"
		addInvalid(r, files)
	}
	if r.IntN(2) == 0 {
		kind += " refreshed"
		c.Refreshed = tb.TempDir()
		WriteFiles(tb, c.Refreshed, refreshedObjects(tb, seed, files, c.SkipInvalid))
	}
	c.Name = fmt.Sprintf("seed %d (%s)", seed, kind)
	c.Snapshot = tb.TempDir()
	WriteFiles(tb, c.Snapshot, odd.Cut(seed, files))
	return c
}

func randomShape(r *rand.Rand, longTexts int) odd.Shape {
	return odd.Shape{
		Accounts: 1 + r.IntN(40), Lists: 1 + r.IntN(40), Records: r.IntN(1 + r.IntN(900)), Events: r.IntN(6), Badges: r.IntN(80),
		Hostile: r.IntN(3) > 0, Timed: true, Recommended: r.IntN(30), LongTexts: longTexts, Ops: r.IntN(4000),
	}
}

// Cut copies a snapshot from a folder into another one, with its tables cut into files. It returns
// the new folder.
func Cut(tb testing.TB, seed uint64, folder string) string {
	tb.Helper()
	to := tb.TempDir()
	WriteFiles(tb, to, odd.Cut(seed, unpacked(tb, os.DirFS(folder))))
	return to
}

// WriteFiles writes files into a folder.
func WriteFiles(tb testing.TB, folder string, files map[string]string) {
	tb.Helper()
	for name, text := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
}

// unpacked reads the files of a snapshot as if no table were cut.
func unpacked(tb testing.TB, folder fs.FS) map[string]string {
	tb.Helper()
	files, err := odd.Read(folder)
	if err != nil {
		tb.Fatal(err)
	}
	return files
}

// invalid has invalid rows, by table. Some are only invalid after another row.
var invalid = map[string][]string{
	"lists":    {`{"token_id":"01","owner":"0x0000000000000000000000000000000000000001"}`, `{"token_id":"5"}`, `[]`, `{`},
	"accounts": {`{"address":"0x01"}`, `{"address":"0x0000000000000000000000000000000000000001","ens":{"fresh":"x"}}`, `nul`},
	"records": {
		`{"token_id":"1","version":-1,"record_type":"address","data":"0x"}`, `{"token_id":"1","version":1,"record_type":"","data":"0x"}`,
		`{"token_id":"1","version":1,"record_type":"address","data":"0xabc"}`, `{"token_id":"1","version":1,"record_type":"address","data":"0xzz"}`,
		"\xff", `{"token_id":"1","version":1,"record_type":"\ud800","data":"0x"}`,
	},
	"badges":      {`{"event_id":"3","token_id":"x","owner":"0x0000000000000000000000000000000000000001"}`, `{}`},
	"recommended": {`{"address":"0x"}`, `{"address":"0x0000000000000000000000000000000000000001","class":5}`},
	"events":      {`{"id":3}`, `{"id":"x"}`},
	"ops":         {`{"token_id":"1","time":"2026-11-20T00:00:00Z"}`, `{}`, `{"token_id":"1","time":"2026","chain_id":1,"block":1,"log_index":1,"op":"0x01"}`},
}

// addInvalid adds invalid rows, and repeats some rows, which is invalid for lists and accounts.
func addInvalid(r *rand.Rand, files map[string]string) {
	for _, table := range slices.Sorted(maps.Keys(invalid)) {
		text, ok := files[table+".ndjson"]
		if !ok {
			continue
		}
		lines := slices.Collect(strings.Lines(text))
		for range r.IntN(4) {
			row := invalid[table][r.IntN(len(invalid[table]))] + "\n"
			if len(lines) > 0 && r.IntN(2) == 0 {
				row = lines[r.IntN(len(lines))]
			}
			lines = slices.Insert(lines, r.IntN(len(lines)+1), row)
		}
		files[table+".ndjson"] = strings.Join(lines, "")
	}
}

// refreshedObjects makes refreshed objects for a snapshot.
func refreshedObjects(tb testing.TB, seed uint64, files map[string]string, withInvalid bool) map[string]string {
	tb.Helper()
	parse := snapshot.Reader[snapshot.List]{}.Parse
	var lists []odd.List
	for line := range strings.Lines(files["lists.ndjson"]) {
		if l, err := parse([]byte(line)); err == nil {
			account := l.Owner
			if l.User != nil {
				account = *l.User
			}
			lists = append(lists, odd.List{Token: l.TokenID, Account: account.String()})
		}
	}
	var events []site.Event
	for line := range strings.Lines(files["events.ndjson"]) {
		if e, err := site.DecodeEvent([]byte(line)); err == nil {
			events = append(events, e)
		}
	}
	asOf, err := readAsOf(files["meta.json"])
	if err != nil {
		tb.Fatal(err)
	}
	objects := odd.Refreshed(seed, seed%3 == 0, lists, events, asOf.UnixMilli())
	if withInvalid {
		objects["details/x"], objects["details/"+strconv.Itoa(77)], objects["badges/78"] = "{}", `{"fresh":"old"}`, "null"
	}
	return objects
}

func readAsOf(meta string) (time.Time, error) {
	files := afero.NewMemMapFs()
	if err := afero.WriteFile(files, "meta.json", []byte(meta), 0o644); err != nil {
		return time.Time{}, err
	}
	text, err := snapshot.ReadAsOf(files)
	if err != nil {
		return time.Time{}, err
	}
	return time.Parse(time.RFC3339Nano, text)
}
