package log

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/generate"
	"github.com/followpress/followpress/site"
	rows "github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain"
	profiles "github.com/followpress/followpress/source/profile"
	"github.com/followpress/followpress/source/replay"
)

// snapshotOf is the folder of the snapshot of a state, as snapshot chain makes it.
func snapshotOf(t *testing.T, state string, d *source.Deployment, opsFrom *time.Time) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "snapshot")
	s, err := chain.Open(state, d)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	r := replay.New(d)
	for e, err := range s.Events() {
		if err = errors.Join(err, r.Add(e)); err != nil {
			t.Fatal(err)
		}
	}
	w, err := rows.Create(dir, rows.WriteOptions{Compression: "none", NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	g, err := r.Write(t.Context(), w)
	if err == nil {
		err = source.WriteAccounts(w, g, profiles.Profiles(state))
	}
	asOf, failed := s.AsOf()
	if err = errors.Join(err, failed); err == nil {
		err = w.Commit(rows.Meta{AsOf: asOf, OpsFrom: opsFrom})
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestSnapshot(t *testing.T) {
	h := story()
	state := stateOf(t, h)
	from := time.Date(2024, 9, 22, 0, 0, 0, 0, time.UTC)
	dir := snapshotOf(t, state, deploymentOf(h), &from)
	for _, test := range []struct{ name, args, warning string }{
		{"user", "--user alice.eth --since 2024-09-22", ""},
		{"list", "--list 1", "log: the snapshot knows what happened since 2024-09-22T00:00:00Z only\n"},
		{"list-user-json", "--list 1 --since 2d --json --user " + site.Address(account(0xcc)).String(), "log: the snapshot knows what happened since 2024-09-22T00:00:00Z only\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, out, stderr := run(append(strings.Fields(test.args), dir)...)
			if status != command.Done || stderr != test.warning {
				t.Fatalf("got status %d: %s", status, stderr)
			}
			golden(t, "snapshot-"+test.name+".txt", out)
		})
	}
}

// What cannot be answered is one line that says what to do; nothing is printed.
func TestErrors(t *testing.T) {
	h := story()
	state := stateOf(t, h)
	snapshot := snapshotOf(t, state, deploymentOf(h), nil)
	old := snapshotOf(t, state, deploymentOf(h), nil)
	if err := os.Remove(filepath.Join(old, "ops.ndjson")); err != nil {
		t.Fatal(err)
	}
	busy := stateOf(t, h)
	open, err := chain.Open(busy, deploymentOf(h))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Close() }()
	broken := snapshotOf(t, state, deploymentOf(h), nil)
	if err := os.WriteFile(filepath.Join(broken, "ops.ndjson"), []byte("{\"token_id\":\"1\"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{state}, command.Usage, "missing flags: --user=NAME|ADDRESS or --list=ID"},
		{[]string{"--list", "x", state}, command.Usage, "--list: "},
		{[]string{"--user", "a/b\x1b", state}, command.Usage, `--user="a/b\x1b" is neither an address nor a name`},
		{[]string{"--list", "1", "--since", "yesterday", state}, command.Usage, `--since="yesterday" is neither a time such as`},
		{[]string{"--list", "1", "--since", "999999999d", state}, command.Usage, `--since="999999999d" is neither a time such as`},
		{[]string{"--list", "1", "--since=-3h", state}, command.Usage, `--since`},
		{[]string{"--user", "nobody.eth", state}, command.Failed, `--user="nobody.eth": no profile of the state has this name`},
		{[]string{"--user", "nobody.eth", snapshot}, command.Failed, `--user="nobody.eth": no profile of the snapshot has this name`},
		{[]string{"--list", "99", state}, command.Failed, `--list=99: the state has no event of this list`},
		{[]string{"--list", "99", snapshot}, command.Failed, `--list=99: the snapshot has no such list`},
		{[]string{"--list", "1", "--all", snapshot}, command.Failed, `--all: only a state has what had no effect`},
		{[]string{"--list", "1", "--deployment", "x", snapshot}, command.Failed, `--deployment: only a state`},
		{[]string{"--list", "1", old}, command.Failed, `has no table ops, so it does not know what happened: make the snapshot again`},
		{[]string{"--list", "1", broken}, command.Failed, `ops.ndjson:1: time: missing`},
		{[]string{"--list", "1", busy}, command.Failed, `read a copy of it, or a site`},
		{[]string{"--list", "1", t.TempDir()}, command.Failed, `is no state, no snapshot and no site`},
		{[]string{"--list", "1", "https://"}, command.Failed, `the URL of a site is like https://HOST`},
		{[]string{"--list", "1", "ftp://x"}, command.Failed, `ftp://x`},
	} {
		status, out, stderr := run(test.args...)
		if status != test.status || out != "" || !strings.Contains(stderr, test.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: got status %d, %q and %q, want %d and %q", test.args, status, out, stderr, test.status, test.want)
		}
	}
	if status, out, stderr := run("--user", site.Address{9}.String(), state); status != command.Done || out != "" || stderr != "log: nothing happened\n" {
		t.Errorf("an address without events: got %d, %q, %q", status, out, stderr)
	}
}

// siteOf is the folder of the site of a snapshot.
func siteOf(t *testing.T, snapshot string, flags ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "site")
	var out bytes.Buffer
	args := append([]string{"--snapshot", snapshot, "--out", dir, "--api", "efp", "--explorer=false"}, flags...)
	if status := command.Run("generate", "", &generate.Command{}, args, &out, &out); status != command.Done {
		t.Fatalf("generate: got status %d: %s", status, &out)
	}
	return dir
}

// A site says the same of its window, from a folder or over HTTP.
func TestSite(t *testing.T) {
	h := story()
	dir := siteOf(t, snapshotOf(t, stateOf(t, h), deploymentOf(h), nil), "--history-window", "48h")
	files := http.FileServer(http.Dir(dir))
	online := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.URL.Path, "forbidden"):
			http.Error(w, "", http.StatusForbidden)
		default:
			files.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(online.Close)
	for _, test := range []struct{ name, args, warning string }{
		{"user", "--user alice.eth --since 2024-09-22", ""},
		{"address", "--user " + site.Address(account(0xbb)).String(), "log: the site knows what happened since "},
		{"list", "--list 1 --since 47h", ""},
		{"list-since", "--list 1 --since 2024-09-22T16:00:00Z", ""},
		{"list-user-json", "--list 1 --since 1d --json --user " + site.Address(account(0xcc)).String(), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, place := range []string{dir, "file://" + dir, online.URL + "/"} {
				status, out, stderr := run(append(strings.Fields(test.args), place)...)
				if status != command.Done || !strings.HasPrefix(stderr, test.warning) || test.warning == "" && stderr != "" {
					t.Fatalf("%s: got status %d: %s", place, status, stderr)
				}
				golden(t, "site-"+test.name+".txt", out)
			}
		})
	}
	none := siteOf(t, snapshotOf(t, stateOf(t, h), deploymentOf(h), nil), "--history-window", "0")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--list", "1", none}, "has no history: it was made with --history-window=0"},
		{[]string{"--list", "99", "--since", "1h", dir}, "--list=99: the site has no such list"},
		{[]string{"--user", "nobody.eth", "--since", "1h", dir}, `--user="nobody.eth": the site has no such name`},
		{[]string{"--list", "1", online.URL + "/forbidden"}, "got status 403: a bucket that nobody may list"},
		{[]string{"--list", "1", online.URL + "/elsewhere"}, "is no state, no snapshot and no site"},
	} {
		status, out, stderr := run(test.args...)
		if status != command.Failed || out != "" || !strings.Contains(stderr, test.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: got status %d, %q and %q, want %q", test.args, status, out, stderr, test.want)
		}
	}
}

// Objects of two sites, and such as no site has, are errors, and nothing is printed.
func TestSiteOfTwo(t *testing.T) {
	h := story()
	dir := siteOf(t, snapshotOf(t, stateOf(t, h), deploymentOf(h), nil))
	file := filepath.Join(dir, "_search", "activity", "1")
	for _, test := range []struct{ body, want string }{
		{`{"list":"1","total":2000,"shards":2,"entries":[]}`, "a publish goes on; try again"},
		{`{"list":"1","total":1,"shards":9000000000,"entries":[[1727014400000,"0x0101010101010101010101010101010101010101","","",1,""]]}`, "_search/activity/1: 1 operations in 9000000000 objects: no site has that"},
		{`{"list":"1","total":1,"shards":1,"entries":[[1727014400000,"0x01","","",1,""]]}`, "_search/activity/1: entry 1: address: "},
		{`{"list":"1","total":1,"shards":1,"entries":[[1727014400000,"0x0101010101010101010101010101010101010101","","",9,""]]}`, "operation with an unknown code"},
		{`{"list":"1","total":1,"shards":1,"entries":[[1]]}`, "an entry has 1 members"},
		{`nothing`, "_search/activity/1: "},
	} {
		if err := os.WriteFile(file, []byte(test.body), 0o600); err != nil {
			t.Fatal(err)
		}
		status, out, stderr := run("--list", "1", "--since", "48h", dir)
		if status != command.Failed || out != "" || !strings.Contains(stderr, test.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: got status %d, %q and %q, want %q", test.body, status, out, stderr, test.want)
		}
	}
}

// Ids and addresses of a site that somebody has made to steer a terminal are errors, and nothing is printed.
func TestHostileSite(t *testing.T) {
	h := story()
	good := snapshotOf(t, stateOf(t, h), deploymentOf(h), nil)
	alice := site.Address(account(0xaa)).String()
	clear := "\x1b[2J" + strings.Repeat("a", 38) // of the length of an address
	buckets := func(t *testing.T, dir, folder, old string) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, folder, "*"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			body, err := os.ReadFile(file)
			if err == nil {
				err = os.WriteFile(file, bytes.ReplaceAll(body, []byte(old), []byte(`["`+clear)), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	notifications := func(list, by string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			t.Helper()
			body := fmt.Sprintf(`{"address":%q,"total":1,"shards":1,"entries":[[1727014400000,"%s","%s","","",1,""]]}`, alice, list, by)
			if err := os.WriteFile(filepath.Join(dir, "_search", "notifications", alice), []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, test := range map[string]struct {
		user string
		set  func(t *testing.T, dir string)
		want string
	}{
		"list":    {alice, notifications(`7\u001b[2J`, alice), "entry 1: list: "},
		"address": {alice, notifications("7", `0x\u001b[2J`), "entry 1: address: "},
		"account": {"", func(t *testing.T, dir string) { t.Helper(); buckets(t, dir, "_search/tokens", `["`+alice) }, "address: "},
		"name":    {"alice.eth", func(t *testing.T, dir string) { t.Helper(); buckets(t, dir, "_search/users", `["`+alice) }, "address: "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := siteOf(t, good)
			test.set(t, dir)
			args := []string{"--list", "1"}
			if test.user != "" {
				args = []string{"--user", test.user}
			}
			status, out, stderr := run(append(args, "--since", "48h", dir)...)
			if status != command.Failed || out != "" || !strings.Contains(stderr, test.want) || strings.ContainsRune(stderr, '\x1b') {
				t.Errorf("got status %d, %q and %q, want %q", status, out, stderr, test.want)
			}
		})
	}
}

// The text beside a status is the server's, and may steer a terminal.
func TestStatusText(t *testing.T) {
	online := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, err = connection.Write([]byte("HTTP/1.1 500 \x1b[2J\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
		if err := errors.Join(err, connection.Close()); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(online.Close)
	status, out, stderr := run("--list", "1", online.URL)
	if status != command.Failed || out != "" || !strings.Contains(stderr, "got status 500") || strings.Contains(stderr, "\x1b") {
		t.Errorf("got status %d, %q and %q, want status 500 without the server's text", status, out, stderr)
	}
}
