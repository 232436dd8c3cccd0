package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/kept"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/snapshot/pieces"
)

// A finding is a fault, a command that finds it, its message, in which … stands for any text, and its status.
type finding struct{ fault, command, says, status string }

var findings = []finding{
	{"an object altered", "verify --key", "it was altered: expected … bytes with SHA-256 …, got … bytes with SHA-256 …", "1"},
	{"an object altered", "serve --key", `"msg":"request failed"…it was altered…`, "502"},
	{"an object swapped with another list's", "verify --key", "it was altered: expected … got …", "1"},
	{"an object replaced by yesterday's", "verify --key", "it was altered: expected … got …", "1"},
	{"an object replaced by yesterday's", "serve --key", "request failed…it was altered", "502"},
	{"an object removed", "verify --key", "it was altered: expected …, got no such object", "1"},
	{"a shard of the manifest replaced with its objects", "verify --key", "read _manifest/…: it is not what _site names", "1"},
	{"a shard of the manifest replaced with its objects", "serve --key", "request failed…_manifest/…it was altered", "502"},
	{"a root of another bucket", "verify --key", "the note is about another root", "1"},
	{"a root of another bucket", "serve --key", "the note is about another root", "1"},
	{"a root of another bucket", "reproduce --key", "the note is about another root", "1"},
	{"a root of another bucket with its note", "verify --key", "read _site.note: no known key has signed it", "1"},
	{"a note of an unknown key", "verify --key", "read _site.note: no known key has signed it", "1"},
	{"a note with one bit flipped", "verify --key", "read _site.note: a signature is not that of its key", "1"},
	{"a note with a forged second line", "verify --key", "read _site.note: a signature is not that of its key", "1"},
	{"a counter that no clock has reached", "verify --key", "read _site.note: its counter is more than a day ahead of the clock", "1"},
	{"a counter that no clock has reached", "serve --key", "its counter is more than a day ahead of the clock", "1"},
	{"a counter that no clock has reached", "publish --sign", "use --replace-note, with a new key if this one was stolen", "1"},
	{"no note", "verify --key", "read _site.note: no note: no known key has signed it", "1"},
	{"a rollback", "serve --key", "serving the last known site…has the counter … and … was seen", "200"},
	{"a snapshot altered, and its index", "reproduce", "table accounts: it was altered: its rows have the digest …", "1"},
	{"a table with one record more, and its index", "reproduce", "table records: it was altered: its rows have the digest …", "1"},
	{"a table with one record more, and the whole site", "reproduce --key", "the note is about another root", "1"},
	{"a node that hides logs", "audit", "… of … differ from the contracts", "1"},
	{"1 GiB: the note", "verify --key", "read _site.note: 1073741824 bytes, expected at most 16384: the object is too large", "1"},
	{"1 GiB: the root", "verify --key", "read _site: 1073741824 bytes, expected at most 4194304: the object is too large", "1"},
	{"1 GiB: an index", "verify --key", "read _manifest/…: 1073741824 bytes, expected at most 65536: the object is too large", "1"},
	{"1 GiB: a shard", "verify --key", "read _manifest/…: 1073741824 bytes, expected at most …: the object is too large", "1"},
	{"1 GiB: an object", "verify --key", "it was altered: expected …, got 1073741824 bytes", "1"},
	{"1 GiB: a piece", "reproduce", "table records, piece 1 of 1: …1073741824 bytes, expected at most …", "1"},
	{"1 GiB: the file of a key", "publish --sign", "--sign=…has more than 16 KiB, so it is not a key", "2"},
}

// TestMessagesOfProof checks that docs/proof.md explains only messages that a fault produces.
func TestMessagesOfProof(t *testing.T) {
	page, err := os.ReadFile("../../docs/proof.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Messages\n")
	table, _, _ = strings.Cut(table, "\n## ")
	messages := regexp.MustCompile("(?m)^\\| `(.*?)` \\|").FindAllStringSubmatch(table, -1)
	for _, message := range messages {
		if !slices.ContainsFunc(findings, func(f finding) bool { return strings.Contains(f.says, message[1]) }) {
			t.Errorf("docs/proof.md: got the message %q, want one of a fault", message[1])
		}
	}
	if len(messages) < 8 {
		t.Errorf("docs/proof.md: got %d messages, want 8 at least", len(messages))
	}
}

// isSaidIn checks that an output contains the text of the table. In that text, … stands for any
// characters within a line.
func (f finding) isSaidIn(t *testing.T, output string) {
	t.Helper()
	if !regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(f.says), "…", ".*")).MatchString(output) {
		t.Errorf("%s, %s: got %s, want %q", f.fault, f.command, output, f.says)
	}
}

// A theft is a tampered bucket.
type theft struct {
	t         *testing.T
	folder    string // holds the bucket with today's site
	folders   map[string]string
	key       testkey.Key
	publisher string // the file of the key
}

// victim is an object that is another one in all sites, of the same size.
const victim site.Key = "api/v1/lists/4/details"

func (b *theft) path(key site.Key) string {
	return filepath.Join(b.folder, filepath.FromSlash(string(key)))
}

func (b *theft) read(folder string, key site.Key) []byte {
	b.t.Helper()
	body, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(string(key))))
	if err != nil {
		b.t.Fatal(err)
	}
	return body
}

func (b *theft) put(key site.Key, body []byte) {
	b.t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(b.path(key)), 0o755), os.WriteFile(b.path(key), body, 0o644)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *theft) edit(key site.Key, from, to string) {
	b.t.Helper()
	was := b.read(b.folder, key)
	is := bytes.Replace(was, []byte(from), []byte(to), 1)
	if bytes.Equal(was, is) {
		b.t.Fatalf("%s: got %s, want %q in it", key, was, from)
	}
	b.put(key, is)
}

// take copies objects from another bucket.
func (b *theft) take(from string, keys ...site.Key) {
	b.t.Helper()
	for _, key := range keys {
		b.put(key, b.read(b.folders[from], key))
	}
}

func (b *theft) remove(key site.Key) {
	b.t.Helper()
	if err := os.RemoveAll(b.path(key)); err != nil {
		b.t.Fatal(err)
	}
}

// sign writes a note of the current root, signed with the stolen key.
func (b *theft) sign(counter uint64) {
	b.t.Helper()
	signed, err := note.Sign(note.Of(b.key.Signer.Name(), counter, "2026-11-27T00:00:00Z", b.read(b.folder, site.RootKey)), b.key.Signer)
	if err != nil {
		b.t.Fatal(err)
	}
	b.put(note.Key, signed)
}

// grow makes a file 1 GiB large, without a block on the disk.
func (b *theft) grow(file string) {
	b.t.Helper()
	if err := os.Truncate(file, 1<<30); err != nil {
		b.t.Fatal(err)
	}
}

// index returns the index of the inputs in a bucket.
func (b *theft) index(folder string) (*pieces.Index, site.Key) {
	b.t.Helper()
	key := kept.IndexKey(site.Sum256(b.read(folder, site.RootKey)))
	x, err := pieces.ParseIndex(b.read(folder, key))
	if err != nil {
		b.t.Fatal(err)
	}
	return x, key
}

// takeInputs replaces the inputs of the site by those of another bucket. The index of that bucket
// has the digests of its tables.
func (b *theft) takeInputs(from string) {
	b.t.Helper()
	x, others := b.index(b.folders[from])
	for _, p := range x.All() {
		b.take(from, p.Key())
	}
	_, key := b.index(b.folder)
	b.put(key, b.read(b.folders[from], others))
}

// thefts tamper with the bucket, one per fault in the table.
var thefts = map[string]func(b *theft){
	"an object altered":                     func(b *theft) { b.edit(victim, "{", " ") },
	"an object swapped with another list's": func(b *theft) { b.put(victim, b.read(b.folder, "api/v1/lists/7/details")) },
	"an object replaced by yesterday's":     func(b *theft) { b.take("yesterday", victim) },
	"an object removed":                     func(b *theft) { b.remove(victim) },
	"a shard of the manifest replaced with its objects": func(b *theft) {
		b.remove("_manifest/delta")
		b.take("forged", victim, site.ManifestKey(site.ManifestShard(victim, 1)))
	},
	"a root of another bucket":                    func(b *theft) { b.take("other", site.RootKey) },
	"a root of another bucket with its note":      func(b *theft) { b.take("other", site.RootKey, note.Key) },
	"a note of an unknown key":                    func(b *theft) { b.take("other", note.Key) },
	"a note with one bit flipped":                 func(b *theft) { b.edit(note.Key, "T00:00:00Z", "T00:00:01Z") },
	"a note with a forged second line":            func(b *theft) { b.edit(note.Key, "\nfollow.example\n", "\nother.example\n") },
	"no note":                                     func(b *theft) { b.remove(note.Key) },
	"a counter that no clock has reached":         func(b *theft) { b.sign(1<<53 - 1) },
	"a rollback":                                  func(b *theft) { b.take("yesterday", site.RootKey, note.Key) },
	"a snapshot altered, and its index":           func(b *theft) { b.takeInputs("forged") },
	"a table with one record more, and its index": func(b *theft) { b.takeInputs("more") },
	"a table with one record more, and the whole site": func(b *theft) {
		signed := b.read(b.folder, note.Key)
		b.folder = filepath.Join(b.t.TempDir(), "more")
		if err := os.CopyFS(b.folder, os.DirFS(b.folders["more"])); err != nil {
			b.t.Fatal(err)
		}
		b.put(note.Key, signed)
	},
	"1 GiB: the note":  func(b *theft) { b.grow(b.path(note.Key)) },
	"1 GiB: the root":  func(b *theft) { b.grow(b.path(site.RootKey)) },
	"1 GiB: a shard":   func(b *theft) { b.grow(b.path(site.ManifestKey(site.ManifestShard(victim, 1)))) },
	"1 GiB: an object": func(b *theft) { b.grow(b.path(victim)) },
	"1 GiB: an index": func(b *theft) {
		config, err := site.Config{BasePath: "api/v1"}.WithDefaults()
		if err != nil {
			b.t.Fatal(err)
		}
		large := memsite.New(b.t, site.Root{Format: site.Format, AsOf: "2026-11-27T00:00:00Z", Config: config, BucketDigits: 1, ShardDigits: 3,
			Counts: site.Counts{Objects: 1}}, map[site.Key]string{victim: "{}"})
		for key, body := range b.key.Sign(b.t, large, 2) {
			b.put(key, []byte(body))
		}
		b.grow(b.path(site.ManifestKey(site.ManifestShard(victim, 1))))
	},
	"1 GiB: a piece": func(b *theft) {
		x, _ := b.index(b.folder)
		b.grow(b.path(x.Tables["records"][0].Key()))
	},
	"1 GiB: the file of a key": func(b *theft) {
		b.publisher = filepath.Join(b.t.TempDir(), "key")
		if err := os.WriteFile(b.publisher, nil, 0o600); err != nil {
			b.t.Fatal(err)
		}
		b.grow(b.publisher)
	},
}

// mostAllocated bounds what a command allocates, one after the other: some 30 MiB, and 180 for a site with 4,096 shards.
const mostAllocated = 512 << 20

// fails runs a command that must fail, and returns its output.
func (b *theft) fails(f finding, args ...string) {
	b.t.Helper()
	var output bytes.Buffer
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	status := command.Run("followpress", about, &verbs{}, args, &output, &output)
	runtime.ReadMemStats(&after)
	if fmt.Sprint(status) != f.status {
		b.t.Errorf("%s, %s: got status %d: %s", f.fault, f.command, status, &output)
	}
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > mostAllocated {
		b.t.Errorf("%s, %s: allocates %d MiB", f.fault, f.command, bytes>>20)
	}
	f.isSaidIn(b.t, output.String())
}

// TestWhatIsFound: each fault is found by its command, with its message and status.
func TestWhatIsFound(t *testing.T) {
	t.Setenv("FOLLOWPRESS_NO_SYNC", "1")
	key, stranger := testkey.New(t, "follow.example"), testkey.New(t, "follow.example")
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	folders := map[string]string{}
	publish := func(name string, day int, text, more string, args ...string) {
		snapshot := at(name + "-snapshot")
		if err := os.CopyFS(snapshot, fixtures.Demo()); err != nil {
			t.Fatal(err)
		}
		for file, change := range map[string]func(body string) string{
			"meta.json":       func(string) string { return fmt.Sprintf(`{"format":1,"as_of":"2026-11-%d T00:00:00Z"}`, day) },
			"accounts.ndjson": func(body string) string { return strings.ReplaceAll(body, "sourdough", text) },
			"records.ndjson":  func(body string) string { return body + more },
		} {
			name := filepath.Join(snapshot, file)
			body, err := os.ReadFile(name)
			if err == nil {
				err = os.WriteFile(name, []byte(strings.ReplaceAll(change(string(body)), " T", "T")), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		folders[name] = at(name)
		done(t, append([]string{"publish", "--snapshot", snapshot, "--dest", "file://" + at(name), "--inputs"}, args...)...)
	}
	record := `{"token_id":"4","version":1,"record_type":"address","data":"0x00000000000000000000000000000000000000aa"}` + "\n"
	publish("yesterday", 26, "sourdough", "", "--sign", key.File(t))
	if err := os.CopyFS(at("today"), os.DirFS(at("yesterday"))); err != nil {
		t.Fatal(err)
	}
	publish("today", 27, "biscuits_", "", "--sign", key.File(t))
	publish("forged", 27, "poisoning", "")
	publish("more", 27, "biscuits_", record)
	publish("other", 27, "porridges", "", "--sign", stranger.File(t))

	tried := map[string]bool{}
	for _, f := range findings {
		if f.command == "audit" {
			continue // TestAudit has the nodes
		}
		tried[f.fault] = true
		t.Run(f.fault+", "+f.command, func(t *testing.T) {
			b := &theft{t: t, folder: filepath.Join(t.TempDir(), "bucket"), folders: folders, key: key, publisher: key.File(t)}
			if err := os.CopyFS(b.folder, os.DirFS(folders["today"])); err != nil {
				t.Fatal(err)
			}
			do := thefts[f.fault]
			if do == nil {
				t.Fatal("no such theft")
			}
			switch f.command {
			case "verify --key":
				do(b)
				online := served(t, http.FileServer(http.Dir(b.folder)))
				b.fails(f, "verify", "--dest", online, "--key", key.Public)
				if !strings.HasPrefix(f.fault, "1 GiB") { // the listing of a folder has digests of all files, which takes its time
					b.fails(f, "verify", "--dest", "file://"+b.folder, "--key", key.Public)
				}
			case "serve --key":
				b.isRefused(f, do)
			case "reproduce":
				do(b)
				b.fails(f, "reproduce", "file://"+b.folder)
			case "reproduce --key":
				do(b)
				b.fails(f, "reproduce", "file://"+b.folder, "--key", key.Public)
			case "publish --sign":
				do(b)
				b.fails(f, "publish", "--snapshot", at("today-snapshot"), "--dest", "file://"+b.folder, "--sign", b.publisher)
			default:
				t.Errorf("got the command %q, want one that this test knows", f.command)
			}
		})
	}
	for fault := range maps.Keys(thefts) {
		if !tried[fault] {
			t.Errorf("%s: no finding names this fault", fault)
		}
	}
}

// The recipe of docs/proof.md for a stolen key works with any counter that the thief has signed. A
// new key of the same name heals the bucket, and readers that replace the old key by the new one
// accept the site.
func TestStolenKey(t *testing.T) {
	t.Setenv("FOLLOWPRESS_NO_SYNC", "1")
	page, err := os.ReadFile("../../docs/proof.md")
	if err != nil {
		t.Fatal(err)
	}
	_, recipe, _ := strings.Cut(string(page), "\n### A stolen key\n")
	_, recipe, _ = strings.Cut(recipe, "```sh\n")
	recipe, _, _ = strings.Cut(recipe, "```")
	for name, counter := range map[string]uint64{"the last counter": 1<<53 - 1, "one of tomorrow": uint64(time.Now().Add(note.MaxAhead - time.Hour).Unix())} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := &theft{t: t, folder: filepath.Join(dir, "bucket"), key: testkey.New(t, "follow.example")}
			snapshot, newKey := filepath.Join(dir, "snapshot"), filepath.Join(dir, "new.key")
			if err := os.CopyFS(snapshot, fixtures.Demo()); err != nil {
				t.Fatal(err)
			}
			done(t, "publish", "--snapshot", snapshot, "--dest", "file://"+b.folder, "--sign", b.key.File(t))
			right := b.read(b.folder, victim)
			b.edit(victim, "{", " ")
			b.sign(counter)

			var public string
			place := strings.NewReplacer("s3://BUCKET", "file://"+b.folder, "out/snapshot", snapshot, "new.key", newKey)
			commands := 0
			for line := range strings.Lines(recipe) {
				line, _, _ = strings.Cut(line, "#")
				words := strings.Fields(place.Replace(line))
				if i := slices.Index(words, "--key"); i >= 0 {
					words[i+1] = public
				}
				var out, errs bytes.Buffer
				if status := command.Run("followpress", about, &verbs{}, words[1:], &out, &errs); status != command.Done {
					t.Fatalf("%s: got status %d: %s", line, status, &errs)
				}
				if words[1] == "key" {
					public = strings.TrimSpace(out.String())
				}
				commands++
			}
			if commands != 3 || !bytes.Equal(b.read(b.folder, victim), right) {
				t.Errorf("after %d commands: got %s, want what the publisher had signed", commands, b.read(b.folder, victim))
			}
			reader := process.Self(t, nil, "serve", "--site", "file://"+b.folder, "--key", public, "--addr", "127.0.0.1:0")
			reader.Args[0] = "followpress"
			p := process.Start(t, reader)
			if url, ok := p.Line(0); !ok || !strings.Contains(url, "http") {
				t.Errorf("a reader with the new key: got %s%s", url, p.Stderr())
			}
		})
	}
}

// isRefused serves the bucket, tampers with it, and asks for the victim. The wanted status is that
// of the answer, or the exit status of a server started afterwards.
func (b *theft) isRefused(f finding, do func(*theft)) {
	b.t.Helper()
	serve := func() *process.Process {
		command := process.Self(b.t, nil, "serve", "--site", "file://"+b.folder, "--key", b.key.Public, "--addr", "127.0.0.1:0", "--poll", "200ms")
		command.Args[0] = "followpress"
		return process.Start(b.t, command)
	}
	if f.status == "1" {
		do(b)
		p := serve()
		if status, _ := p.Wait(); status != 1 {
			b.t.Errorf("got status %d, want 1", status)
		}
		f.isSaidIn(b.t, p.Stderr())
		return
	}
	p := serve()
	url, ok := p.Line(0)
	if !ok {
		b.t.Fatal("the server does not start")
	}
	today := b.read(b.folder, victim)
	do(b)
	status, body := request(b.t, url+victim.URLPath())
	if fmt.Sprint(status) != f.status || status == http.StatusOK && !bytes.Equal(body, today) {
		b.t.Errorf("got %d %s, want %s", status, body, f.status)
	}
	for range 1000 { // the log may come later than the answer
		if strings.Contains(p.Stderr(), strings.Split(f.says, "…")[0]) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.isSaidIn(b.t, p.Stderr())
}

// ran runs a command, and returns its status, its standard output, and all its output.
func ran(args ...string) (status int, stdout, all string) {
	var out, messages bytes.Buffer
	status = command.Run("followpress", about, &verbs{}, args, &out, &messages)
	return status, out.String(), out.String() + messages.String()
}

// A playedSite is a site of the chains that nodes of this process have.
type playedSite struct {
	dir   string
	nodes map[uint64]*meanrpc.Node
	chain history.Chain // one with records
}

func (p *playedSite) at(name string) string { return filepath.Join(p.dir, name) }

// play starts nodes with a random history, and makes a snapshot from them.
func play(t *testing.T, seed uint64) (*playedSite, *history.History) {
	t.Helper()
	t.Setenv("FOLLOWPRESS_NO_SYNC", "1")
	played := history.Random(seed, history.Options{Chains: history.Production(), Transactions: 200})
	rpc, nodes := startNodes(t, played)
	p := &playedSite{dir: t.TempDir(), nodes: nodes, chain: played.Chains[0]}
	t.Setenv("RPC_OF_TEST", strings.Join(rpc, ";"))
	done(t, "snapshot", "chain", "--rpc", p.rpc(), "--state", p.at("state"), "--out", p.at("snapshot"))
	return p, played
}

func (*playedSite) rpc() string { return os.Getenv("RPC_OF_TEST") }

// publish publishes a snapshot as a bucket, and returns its URL.
func (p *playedSite) publish(t *testing.T, snapshot, bucket string, flags ...string) string {
	t.Helper()
	to := "file://" + p.at(bucket)
	done(t, append([]string{"publish", "--snapshot", p.at(snapshot), "--dest", to, "--inputs", "--max-loss", "100%"}, flags...)...)
	return to
}

// TestReproduceFromTheChains: reproduce --rpc makes the tables of the chains up to the blocks of
// the root, and finds them equal to those of the site. The earlier state and the current blocks of
// the nodes do not matter.
func TestReproduceFromTheChains(t *testing.T) {
	p, played := play(t, 21)
	for _, c := range played.Chains {
		last, _ := played.Last(c.ID)
		middle := c.First + (last.Number-c.First)/2
		p.nodes[c.ID].SetHead(middle, middle, middle)
	}
	done(t, "snapshot", "chain", "--rpc", p.rpc(), "--state", p.at("half-state"), "--out", p.at("half"))
	for _, c := range played.Chains {
		last, _ := played.Last(c.ID)
		p.nodes[c.ID].SetHead(last.Number+5, last.Number+2, last.Number+2)
	}
	half := p.publish(t, "half", "half-bucket", "--api", "efp", "--history-window", "50000h")
	all := p.publish(t, "snapshot", "bucket")
	for _, place := range []string{half, all, half} { // one state goes forwards and back
		status, stdout, said := ran("reproduce", place, "--rpc", p.rpc(), "--state", p.at("kept"))
		lines := strings.Split(stdout, "\n")
		if status != command.Done || !strings.HasPrefix(lines[len(lines)-2], "equal ") || strings.Contains(stdout, "differs") {
			t.Errorf("%s: got status %d and %s", place, status, said)
		}
		for _, table := range []string{"lists", "records", "accounts"} {
			if !strings.Contains(stdout, fmt.Sprintf("%-15s equal\n", table)) {
				t.Errorf("%s: got %s, want that %s are equal", place, stdout, table)
			}
		}
		if strings.Contains(stdout, "ops") != (place == half) {
			t.Errorf("%s: got %s, want ops if the site has operations", place, stdout)
		}
	}
	done(t, "snapshot", "chain", "--state", p.at("state"), "--out", p.at("past"), "--until", fmt.Sprintf("%d:%d", p.chain.ID, p.chain.First+10))
	past := p.publish(t, "past", "past-bucket")
	if status, stdout, said := ran("reproduce", past, "--rpc", p.rpc()); status != command.Done || !strings.Contains(stdout, "does not record the block's hash") {
		t.Errorf("of an earlier moment: got status %d and %s", status, said)
	}
}

// TestForgedTables: the chains expose a signed site that agrees with its own forged tables, and the
// output names the difference. Profiles are not on a chain.
func TestForgedTables(t *testing.T) {
	p, _ := play(t, 22)
	private, public, err := note.NewKey("site.example")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.at("key"), []byte(private+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	edit := func(name string, change func(lines []string) []string) func(map[string][]byte) {
		return func(of map[string][]byte) {
			lines := strings.SplitAfter(strings.TrimSuffix(string(of[name]), "\n"), "\n")
			lines[len(lines)-1] += "\n"
			of[name] = []byte(strings.Join(change(lines), ""))
		}
	}
	meta := func(change func(map[string]any)) func(map[string][]byte) {
		return func(of map[string][]byte) {
			var members map[string]any
			decoder := json.NewDecoder(bytes.NewReader(of["meta.json"]))
			decoder.UseNumber()
			if err := decoder.Decode(&members); err != nil {
				t.Fatal(err)
			}
			change(members)
			if of["meta.json"], err = json.Marshal(members); err != nil {
				t.Fatal(err)
			}
		}
	}
	firstChain := func(m map[string]any) map[string]any { return m["chains"].([]any)[0].(map[string]any) }
	lists := strings.SplitAfter(string(files(t, p.at("snapshot"))["lists.ndjson"]), "\n")
	var list struct {
		Token string `json:"token_id"`
	}
	if err := json.Unmarshal([]byte(lists[0]), &list); err != nil {
		t.Fatal(err)
	}
	const someone = "0x00000000000000000000000000000000000000aa"
	more := fmt.Sprintf(`{"token_id":%q,"version":1,"record_type":"address","data":%q,"added":"2026-01-01T00:00:00Z"}`, list.Token, someone) + "\n"
	profile := `{"address":"` + someone + `","ens":{"name":"someone.eth","avatar":"","records":{},"fresh":1}}` + "\n"
	named := `{"address":"` + someone + `","primary_list":"1"}` + "\n"
	for name, tc := range map[string]struct {
		change func(map[string][]byte)
		flags  []string
		want   []string
		right  bool
	}{
		"nothing": {func(map[string][]byte) {}, nil, []string{"records         equal\n", "accounts        equal\n"}, true},
		"a profile more": {
			edit("accounts.ndjson", func(l []string) []string { return slices.Insert(l, 0, profile) }), nil,
			[]string{"lists           equal\n", "accounts        equal in ", "profiles come from services"}, true,
		},
		"a record more": {
			edit("records.ndjson", func(l []string) []string { return slices.Insert(l, 1, more) }), nil,
			[]string{"lists           equal\n", "records         differs: digest", "1 rows only in the site, 0 only on the chains\n", "  site:   {\"token_id\":\"" + list.Token + "\"", "accounts        equal\n"}, false,
		},
		"a record less": {
			edit("records.ndjson", func(l []string) []string { return slices.Delete(l, 5, 6) }), nil,
			[]string{"0 rows only in the site, 1 only on the chains\n", "  chains: {\"token_id\":"}, false,
		},
		"four lists": {
			edit("lists.ndjson", func(l []string) []string { return l[4:] }), nil,
			[]string{"0 rows only in the site, 4 only on the chains\n", "  chains: and 1 more\n"}, false,
		},
		"another order": {
			edit("records.ndjson", func(l []string) []string { slices.Reverse(l); return l }), nil,
			[]string{"records         differs: the same rows, in another order"}, false,
		},
		"a primary list more": {
			edit("accounts.ndjson", func(l []string) []string { return slices.Insert(l, 0, named) }), nil,
			[]string{"accounts        differs: 1 rows only in the site", "account " + someone + " has the primary list 1"}, false,
		},
		"accounts in another order": {
			edit("accounts.ndjson", func(l []string) []string { slices.Reverse(l); return l }), nil, []string{"accounts        equal in "}, true,
		},
		"an operation less": {
			edit("ops.ndjson", func(l []string) []string { return l[1:] }), []string{"--api=efp", "--history-window=50000h"},
			[]string{"ops             differs: digest", "0 rows only in the site, 1 only on the chains\n"}, false,
		},
		"operations counted": {
			meta(func(m map[string]any) { m["list_ops"] = 7 }), []string{"--api=efp"},
			[]string{"operations      differs: ", "7 in the root\n"}, false,
		},
		"events": {meta(func(m map[string]any) { firstChain(m)["events"] = 7 }), nil, []string{"differs: the root has 7 events"}, false},
		"another hash": {
			meta(func(m map[string]any) { firstChain(m)["hash"] = "0x" + strings.Repeat("0a", 32) }), nil,
			[]string{"want 0x0a0a", "the chain was reorganized, or is another one"}, false,
		},
		"a chain less": {
			meta(func(m map[string]any) { m["chains"] = m["chains"].([]any)[1:] }), nil,
			[]string{"name the site's deployment"}, false,
		},
		"no chains": {meta(func(m map[string]any) { delete(m, "chains") }), nil, []string{"records no blocks of the chains"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			body, forged := files(t, p.at("snapshot")), t.TempDir()
			tc.change(body)
			for file, text := range body {
				if err := os.WriteFile(filepath.Join(forged, file), text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			bucket := "file://" + t.TempDir()
			done(t, append([]string{"publish", "--snapshot", forged, "--dest", bucket, "--inputs", "--sign", p.at("key")}, tc.flags...)...)
			if status, stdout, said := ran("reproduce", bucket, "--key", public); status != command.Done || !strings.HasPrefix(stdout, "equal ") {
				t.Fatalf("without the chains: got status %d and %s, want that nothing is found", status, said)
			}
			status, _, said := ran("reproduce", bucket, "--key", public, "--rpc", p.rpc())
			if (status == command.Done) != tc.right || !tc.right && status != command.Failed {
				t.Errorf("got status %d and %s", status, said)
			}
			for _, want := range tc.want {
				if !strings.Contains(said, want) {
					t.Errorf("got %s, want %q", said, want)
				}
			}
		})
	}
}
