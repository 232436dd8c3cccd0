package reproduce

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/publish"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/fixtures/odd"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/kept"
	"github.com/followpress/followpress/snapshot/pieces"
)

func TestMain(m *testing.M) {
	tempdir.InMemory()
	os.Exit(m.Run())
}

func runReproduce(args ...string) (status int, stdout, stderr string) {
	var out, messages bytes.Buffer
	status = command.Run("reproduce", "", &Command{}, args, &out, &messages)
	return status, out.String(), messages.String()
}

func published(t *testing.T, args ...string) {
	t.Helper()
	var out bytes.Buffer
	if status := command.Run("publish", "", &publish.Publish{}, append(args, "--inputs", "--no-sync"), &out, &out); status != command.Done {
		t.Fatalf("publish %q: got status %d: %s", args, status, &out)
	}
}

// equals checks that a published site is the one that its inputs make.
func equals(t *testing.T, from string, args ...string) {
	t.Helper()
	status, stdout, stderr := runReproduce(append([]string{from}, args...)...)
	if status != command.Done || !strings.HasPrefix(stdout, "equal ") || len(stdout) != len("equal \n")+64 {
		t.Errorf("%s: got status %d, %q and %s", from, status, stdout, stderr)
	}
}

// folder writes files into a new folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), []byte(text))
	}
	return dir
}

func write(t *testing.T, name string, body []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, body, 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
}

// flip changes a bit in the middle of a file.
func flip(t *testing.T, name string) {
	t.Helper()
	body := read(t, name)
	body[len(body)/2] ^= 1
	write(t, name, body)
}

// follow adds a record to a list of a snapshot.
func follow(t *testing.T, snapshot string, account int) {
	t.Helper()
	file := filepath.Join(snapshot, "records.ndjson")
	write(t, file, fmt.Appendf(read(t, file), `{"token_id":"4","version":1,"record_type":"address","data":"0x%040x"}`+"\n", account))
}

func demo(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "snapshot")
	if err := os.CopyFS(dir, fixtures.Demo()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// bookkeeping returns the objects that reproduce and publish read from a bucket with the demo, by
// path. It publishes once.
var bookkeeping = sync.OnceValues(func() (files map[string][]byte, err error) {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.CopyFS(filepath.Join(dir, "snapshot"), fixtures.Demo()); err != nil {
		return nil, err
	}
	bucket := filepath.Join(dir, "bucket")
	var out bytes.Buffer
	args := []string{"--snapshot", filepath.Join(dir, "snapshot"), "--dest", "file://" + bucket, "--inputs", "--no-sync"}
	if status := command.Run("publish", "", &publish.Publish{}, args, &out, &out); status != command.Done {
		return nil, fmt.Errorf("publish: status %d: %s", status, &out)
	}
	files = map[string][]byte{}
	err = filepath.WalkDir(bucket, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(bucket, name)
		if first, _, _ := strings.Cut(relative, string(filepath.Separator)); err == nil && slices.Contains([]string{"_site", "_manifest", "_snapshot"}, first) {
			files[relative], err = os.ReadFile(name)
		}
		return err
	})
	return files, err
})

// demoBucket returns a new bucket with the bookkeeping of the demo. TestEqual uses complete buckets.
func demoBucket(t *testing.T) string {
	t.Helper()
	files, err := bookkeeping()
	if err != nil {
		t.Fatal(err)
	}
	bucket := filepath.Join(t.TempDir(), "bucket")
	for name, body := range files {
		write(t, filepath.Join(bucket, name), body)
	}
	return bucket
}

// TestEqual: the inputs put by publish --inputs reproduce the site, for every snapshot and all
// settings, from a folder and over HTTP.
func TestEqual(t *testing.T) {
	later := demo(t)
	write(t, filepath.Join(later, "meta.json"), []byte(`{"format":1,"as_of":"2026-11-01T06:00:00Z","list_ops":500,"chains":[{"chain_id":10,"block":7,"hash":"0x`+strings.Repeat("0a", 32)+`","events":3}]}`))
	refreshed := filepath.Join(folder(t, map[string]string{
		"_refresh/details/4": `{"address":"0x974b780c0cfb5343cbb4a44384cf9a10f80eb9cd","name":"renamed.eth","fresh":1900000000000}`,
		"_refresh/badges/4":  `{"address":"0x974b780c0cfb5343cbb4a44384cf9a10f80eb9cd","fetched":1900000000000,` + "\n" + `"badges":[]}`,
	}), "_refresh")
	type row struct {
		snapshots []string
		flags     []string
	}
	rows := map[string]row{
		"demo":           {[]string{demo(t)}, nil},
		"demo, efp":      {[]string{demo(t)}, []string{"--api=efp", "--explorer", "--names=lookup", "--history-window=1000h", "--pictures=off"}},
		"settings":       {[]string{demo(t)}, []string{"--base-path=x/y", "--badges-field=poaps", "--leaderboard-max=12", "--tags=fastly"}},
		"two sites":      {[]string{demo(t), later}, []string{"--api=efp"}},
		"held ranks":     {[]string{demo(t), later}, []string{"--ranks-every=24h"}},
		"refreshed":      {[]string{demo(t)}, []string{"--refreshed=" + refreshed}},
		"refreshed, efp": {[]string{demo(t)}, []string{"--api=efp", "--refreshed=" + refreshed}},
	}
	for seed := range uint64(servers.Rounds(4, 30)) {
		shape := odd.Shape{Accounts: 60, Lists: 40, Events: 5, Timed: seed%2 == 0, Hostile: seed%4 > 1}
		files := odd.Cut(seed, odd.Snapshot(seed, shape))
		apis := []string{"spec", "efp"}
		if servers.Rounds(1, 2) == 1 {
			apis = apis[(seed+seed/2)%2:][:1] // so timed snapshots, and hostile ones, are there for each API
		}
		for _, api := range apis {
			rows[fmt.Sprintf("random %d, %s", seed, api)] = row{[]string{folder(t, files)}, []string{"--api=" + api}}
		}
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			bucket := filepath.Join(t.TempDir(), "bucket")
			for _, s := range r.snapshots {
				published(t, append([]string{"--snapshot", s, "--dest", "file://" + bucket, "--max-loss=100%"}, r.flags...)...)
			}
			equals(t, "file://"+bucket)
			online := httptest.NewServer(http.StripPrefix("/prefix", http.FileServer(http.Dir(bucket))))
			t.Cleanup(online.Close)
			equals(t, online.URL+"/prefix/")
		})
	}
}

// index returns the index of the site in a bucket, and its file.
func index(t *testing.T, bucket string) (*pieces.Index, string) {
	t.Helper()
	root := read(t, filepath.Join(bucket, "_site"))
	name := filepath.Join(bucket, string(kept.IndexKey(site.Sum256(root))))
	x, err := pieces.ParseIndex(read(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return x, name
}

// moreRecords is an index of a table with one record more, whose pieces are all right.
func moreRecords(t *testing.T, bucket string) {
	t.Helper()
	other := filepath.Join(t.TempDir(), "bucket")
	from := demo(t)
	follow(t, from, 0xaa)
	published(t, "--snapshot", from, "--dest", "file://"+other)
	x, _ := index(t, other)
	if err := os.CopyFS(filepath.Join(bucket, "more"), os.DirFS(filepath.Join(other, "_snapshot"))); err != nil {
		t.Fatal(err)
	}
	for _, p := range x.All() {
		write(t, filepath.Join(bucket, string(p.Key())), read(t, filepath.Join(bucket, "more", p.SHA256.String())))
	}
	_, name := index(t, bucket)
	body, err := x.Encode()
	if err != nil {
		t.Fatal(err)
	}
	write(t, name, body)
}

// rewritten changes the index of a bucket.
func rewritten(change func(*pieces.Index)) func(t *testing.T, bucket string) {
	return func(t *testing.T, bucket string) {
		t.Helper()
		x, name := index(t, bucket)
		change(x)
		body, err := x.Encode()
		if err != nil {
			t.Fatal(err)
		}
		write(t, name, body)
	}
}

// rewriteRoot changes the root of a bucket, and keeps the index for it.
func rewriteRoot(change func(*site.Root)) func(t *testing.T, bucket string) {
	return func(t *testing.T, bucket string) {
		t.Helper()
		_, name := index(t, bucket)
		text := read(t, name)
		root, err := site.ParseRoot(read(t, filepath.Join(bucket, "_site")))
		if err != nil {
			t.Fatal(err)
		}
		change(&root)
		body, err := root.Encode()
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(bucket, "_site"), body)
		write(t, filepath.Join(bucket, string(kept.IndexKey(site.Sum256(body)))), text)
	}
}

// TestFaults: reproduce names each altered object, and exits with status 1.
func TestFaults(t *testing.T) {
	first := func(t *testing.T, bucket, table string) string {
		t.Helper()
		x, _ := index(t, bucket)
		return filepath.Join(bucket, string(x.Tables[table][0].Key()))
	}
	equals(t, "file://"+demoBucket(t))
	for name, tc := range map[string]struct {
		alter func(t *testing.T, bucket string)
		want  []string
	}{
		"no site": {func(t *testing.T, bucket string) { remove(t, filepath.Join(bucket, "_site")) }, []string{"no site: "}},
		"no index": {func(t *testing.T, bucket string) {
			_, name := index(t, bucket)
			remove(t, name)
		}, []string{"publish with --inputs"}},
		"a root without inputs": {rewriteRoot(func(r *site.Root) { r.Inputs = nil }), []string{"its root lists none"}},
		"a piece missing":       {func(t *testing.T, bucket string) { remove(t, first(t, bucket, "lists")) }, []string{"table lists, piece 1 of 1"}},
		"a bit of a piece":      {func(t *testing.T, bucket string) { flip(t, first(t, bucket, "records")) }, []string{"table records, piece 1 of 1", "it was altered"}},
		"a piece of 64 MiB": {func(t *testing.T, bucket string) {
			write(t, first(t, bucket, "records"), make([]byte, 64<<20))
		}, []string{"table records, piece 1 of 1", "67108864 bytes"}},
		"an index of 64 MiB": {func(t *testing.T, bucket string) {
			_, name := index(t, bucket)
			write(t, name, make([]byte, 64<<20))
		}, []string{"67108864 bytes"}},
		"an index of nonsense": {func(t *testing.T, bucket string) {
			_, name := index(t, bucket)
			write(t, name, []byte("["))
		}, []string{"not an index"}},
		"a record more":             {moreRecords, []string{"table records: it was altered: its rows have the digest"}},
		"a table too few":           {rewritten(func(x *pieces.Index) { delete(x.Tables, "badges") }), []string{"the root lists"}},
		"a table's rows in another": {rewritten(func(x *pieces.Index) { x.Tables["lists"] = x.Tables["records"] }), []string{"table lists: it was altered"}},
		"a table without rows":      {rewritten(func(x *pieces.Index) { x.Tables["records"] = nil }), []string{"table records: it was altered"}},
		"a piece twice":             {rewritten(func(x *pieces.Index) { x.Tables["badges"] = append(x.Tables["badges"], x.Tables["badges"]...) }), []string{"table badges: it was altered"}},
		"a piece of 1 GiB of text":  {rewritten(func(x *pieces.Index) { x.Tables["records"][0].Text = 1 << 30 }), []string{"which is impossible"}},
		"too many pieces": {rewritten(func(x *pieces.Index) {
			for range 10_000 {
				x.Tables["records"] = append(x.Tables["records"], pieces.Piece{SHA256: site.Sum256(nil), Bytes: 100, Text: 4 << 20})
			}
		}), []string{"which is too much for"}},
		"a piece very often, in a site that says it is large": {func(t *testing.T, bucket string) {
			t.Helper()
			rewriteRoot(func(r *site.Root) { r.Counts.Bytes = 1 << 60 })(t, bucket)
			rewritten(func(x *pieces.Index) {
				p := x.Tables["records"][0]
				for text := int64(0); text < 64<<20+256*p.Bytes*16; text += p.Text {
					x.Tables["records"] = append(x.Tables["records"], p)
				}
			})(t, bucket)
		}, []string{"which is too much for"}},
		"a piece very often, which says that it is small": {rewritten(func(x *pieces.Index) {
			p := x.Tables["records"][0]
			p.Text = 1
			for range 10_000 {
				x.Tables["records"] = append(x.Tables["records"], p)
			}
		}), []string{"bytes in one place, and 1 in another"}},
		"more text than it says":   {rewritten(func(x *pieces.Index) { x.Tables["records"][0].Text-- }), []string{"table records, piece 1 of 1", "more than"}},
		"other counts in the root": {rewriteRoot(func(r *site.Root) { r.Counts.Follows++ }), []string{"the root differs in: counts", "0 objects differ", "differs from a rebuild of its inputs"}},
		"another setting in the root": {rewriteRoot(func(r *site.Root) { r.Config.LeaderboardMax = 50 }), []string{
			"100 other objects: /_variants/leaderboard/followers/limit=100 ", "differs from a rebuild of its inputs",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bucket := demoBucket(t)
			tc.alter(t, bucket)
			status, stdout, stderr := runReproduce("file://" + bucket)
			if status != command.Failed {
				t.Errorf("got status %d and %q, want 1", status, stdout)
			}
			for _, want := range tc.want {
				if !strings.Contains(stdout+stderr, want) {
					t.Errorf("got %s%s, want %q", stdout, stderr, want)
				}
			}
		})
	}
}

// TestObjects: objects that the bucket's manifest lists otherwise are named by kind.
func TestObjects(t *testing.T) {
	bucket, other := demoBucket(t), filepath.Join(t.TempDir(), "other")
	from := demo(t)
	file := filepath.Join(from, "lists.ndjson")
	write(t, file, append(read(t, file), `{"token_id":"999","owner":"0x00000000000000000000000000000000000000aa","user":null}`+"\n"...))
	published(t, "--snapshot", from, "--dest", "file://"+other)
	// Another site claims the inputs of the first one.
	root, err := site.ParseRoot(read(t, filepath.Join(bucket, "_site")))
	if err != nil {
		t.Fatal(err)
	}
	_, name := index(t, bucket)
	rewriteRoot(func(r *site.Root) { r.Inputs = root.Inputs })(t, other)
	write(t, filepath.Join(other, string(kept.IndexKey(site.Sum256(read(t, filepath.Join(other, "_site")))))), read(t, name))
	x, _ := index(t, bucket)
	for _, p := range x.All() {
		write(t, filepath.Join(other, string(p.Key())), read(t, filepath.Join(bucket, string(p.Key()))))
	}
	status, stdout, stderr := runReproduce("file://" + other)
	for _, want := range []string{"the root differs in: counts, manifest", "objects differ", " 1 {base}/lists/{token_id}/records: /api/v1/lists/999/records\n"} {
		if status != command.Failed || !strings.Contains(stdout, want) {
			t.Errorf("got status %d, %s and %s, want %q", status, stdout, stderr, want)
		}
	}
}

// TestResumes: an interrupted run keeps the objects it fetched, and the next run fetches only the
// rest.
func TestResumes(t *testing.T) {
	bucket := demoBucket(t)
	x, _ := index(t, bucket)
	var mu sync.Mutex
	fetched, most := map[string]bool{}, 3 // paths, since a request may be repeated
	fetch := func(path string) bool {
		mu.Lock()
		defer mu.Unlock()
		fetched[path] = true
		return len(fetched) <= most
	}
	files := http.FileServer(http.Dir(bucket))
	online := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/_snapshot/") && !strings.Contains(r.URL.Path, "index") && !fetch(r.URL.Path) {
			w.WriteHeader(http.StatusGone)
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(online.Close)
	state := filepath.Join(t.TempDir(), "state")
	if status, stdout, _ := runReproduce(online.URL, "--state", state); status != command.Failed {
		t.Fatalf("got status %d and %q, want a failure", status, stdout)
	}
	had, err := filepath.Glob(filepath.Join(state, ".followpress-reproduce", "pieces", strings.Repeat("?", 64))) // not those cut off
	if err != nil {
		t.Fatal(err)
	}
	again := func() {
		mu.Lock()
		defer mu.Unlock()
		fetched, most = map[string]bool{}, 100
	}
	again()
	equals(t, online.URL, "--state", state)
	if want := len(x.All()) - len(had); len(fetched) != want {
		t.Errorf("fetched %d pieces, want the %d that were not there", len(fetched), want)
	}
	again()
	piece := filepath.Join(state, ".followpress-reproduce", "pieces", x.Tables["lists"][0].SHA256.String())
	write(t, piece, []byte("damaged"))
	equals(t, online.URL, "--state", state)
	if len(fetched) != 1 {
		t.Errorf("fetched %d pieces, want the damaged one", len(fetched))
	}
}

// TestStateKeepsOthers: a folder for state may have files of its user, which stay.
func TestStateKeepsOthers(t *testing.T) {
	bucket := demoBucket(t)
	state := folder(t, map[string]string{"snapshot/lists.ndjson": "mine", "pieces/notes": "mine", "meta.json": "mine"})
	for range 2 {
		equals(t, "file://"+bucket, "--state", state)
	}
	write(t, filepath.Join(state, ".followpress-reproduce/pieces/notes"), []byte("mine"))
	equals(t, "file://"+bucket, "--state", state)
	for _, name := range []string{"snapshot/lists.ndjson", "pieces/notes", "meta.json", ".followpress-reproduce/pieces/notes"} {
		if got := read(t, filepath.Join(state, name)); string(got) != "mine" {
			t.Errorf("%s: got %q", name, got)
		}
	}
	other := folder(t, map[string]string{".followpress-reproduce/snapshot/lists.ndjson": "mine"})
	if status, _, stderr := runReproduce("file://"+bucket, "--state", other); status != command.Failed || !strings.Contains(stderr, pieces.ErrNotOwn.Error()) {
		t.Errorf("a subfolder without the marker: got status %d and %s", status, stderr)
	}
	if got := read(t, filepath.Join(other, ".followpress-reproduce/snapshot/lists.ndjson")); string(got) != "mine" {
		t.Errorf("a subfolder without the marker: got %q", got)
	}
}

// TestServers: the same from servers of buckets.
func TestServers(t *testing.T) {
	servers.Wanted(t)
	for _, kind := range servers.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			s := servers.Start(t, kind)
			s.Env(t)
			dest := "s3://" + s.Bucket(t) + "/prefix"
			published(t, "--snapshot", demo(t), "--dest", dest, "--api=efp", "--endpoint", s.Endpoint)
			equals(t, dest, "--endpoint", s.Endpoint)
		})
	}
}

// TestKeeps: a bucket keeps the inputs of the last sites, and stores shared inputs once. An
// unchanged site puts nothing.
func TestKeeps(t *testing.T) {
	bucket := filepath.Join(t.TempDir(), "bucket")
	report := func(snapshot string) (r struct {
		Outcome string
		Inputs  *struct{ Objects, Put, Deleted int }
	}) {
		t.Helper()
		var out, messages bytes.Buffer
		args := []string{"--snapshot", snapshot, "--dest", "file://" + bucket, "--inputs", "--no-sync", "--report=-"}
		if status := command.Run("publish", "", &publish.Publish{}, args, &out, &messages); status != command.Done {
			t.Fatalf("got status %d: %s", status, &messages)
		}
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	from := demo(t)
	if r := report(from); r.Inputs == nil || r.Inputs.Put != r.Inputs.Objects || r.Inputs.Objects == 0 {
		t.Errorf("the first: got %+v", r.Inputs)
	}
	if r := report(from); r.Outcome != "unchanged" || r.Inputs != nil {
		t.Errorf("the same again: got %s, %+v", r.Outcome, r.Inputs)
	}
	// A run that was cut off before it put the index has left a piece.
	write(t, filepath.Join(bucket, string(kept.PieceKey(site.Sum256([]byte("left"))))), []byte("left"))
	for i, deleted := range []int{1, 0, 0, 0, 0, 0, 2, 2} { // first the leftover piece, in the end an index and a piece of records
		follow(t, from, 1<<40+i)
		if r := report(from); r.Inputs == nil || r.Inputs.Put != 1 || r.Inputs.Deleted != deleted {
			t.Errorf("a record more: got %+v, want one put and %d deleted", r.Inputs, deleted)
		}
		equals(t, "file://"+bucket)
	}
	indexes, err := os.ReadDir(filepath.Join(bucket, "_snapshot/index"))
	if err != nil || len(indexes) != 7 {
		t.Errorf("got %d indexes, %v, want 7", len(indexes), err)
	}
	// A publish without --inputs does not touch stored inputs. The site then has none until they
	// are put.
	x, name := index(t, bucket)
	remove(t, name)
	remove(t, filepath.Join(bucket, string(x.Tables["lists"][0].Key())))
	if r := report(from); r.Inputs == nil || r.Inputs.Put != 1 {
		t.Errorf("after a loss: got %+v, want one put", r.Inputs)
	}
	equals(t, "file://"+bucket)
	var out bytes.Buffer
	if status := command.Run("verify", "", &publish.Verify{}, []string{"--dest", "file://" + bucket}, &out, &out); status != command.Done {
		t.Errorf("verify: got status %d: %s", status, &out)
	}
}

// TestRepairsInputs: the next publish restores altered, truncated and removed inputs, for the same
// site or another one.
func TestRepairsInputs(t *testing.T) {
	for _, same := range []bool{true, false} {
		for name, alter := range map[string]func(t *testing.T, piece, index string){
			"a bit of a piece":     func(t *testing.T, piece, _ string) { flip(t, piece) },
			"a piece cut off":      func(t *testing.T, piece, _ string) { write(t, piece, read(t, piece)[:7]) },
			"a piece removed":      func(t *testing.T, piece, _ string) { remove(t, piece) },
			"an index of nonsense": func(t *testing.T, _, index string) { write(t, index, []byte("[")) },
			"an index removed":     func(t *testing.T, _, index string) { remove(t, index) },
		} {
			t.Run(fmt.Sprintf("%s, same site %v", name, same), func(t *testing.T) {
				bucket, from := demoBucket(t), demo(t)
				x, file := index(t, bucket)
				alter(t, filepath.Join(bucket, string(x.Tables["lists"][0].Key())), file)
				if !same {
					follow(t, from, 0xab)
				}
				published(t, "--snapshot", from, "--dest", "file://"+bucket)
				equals(t, "file://"+bucket)
			})
		}
	}
}

// TestKeepsWhatWasLive: a bucket keeps the inputs of the last live sites, at least those of the
// current site and the one before it. The order of publishes and interrupted runs do not matter.
func TestKeepsWhatWasLive(t *testing.T) {
	var snapshots []string
	for i := range 4 {
		from := demo(t)
		follow(t, from, 1<<40+i)
		snapshots = append(snapshots, from)
	}
	const keep = 2 // interrupted runs take the other places
	bucket, random := filepath.Join(t.TempDir(), "bucket"), rand.New(rand.NewPCG(1, 2))
	var live []string // the indexes of the sites that were live, each once, the last one first
	for range 20 {
		from := snapshots[random.IntN(len(snapshots))]
		published(t, "--snapshot", from, "--dest", "file://"+bucket)
		for i := range 6 {
			write(t, filepath.Join(bucket, "_snapshot/index", strings.Repeat(fmt.Sprintf("%02x", i), 32)), []byte(`{"format":1,"tables":{}}`))
		}
		_, file := index(t, bucket)
		live = append([]string{file}, slices.DeleteFunc(live, func(was string) bool { return was == file })...)
		for _, name := range live[:min(keep, len(live))] {
			x, err := pieces.ParseIndex(read(t, name))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range x.All() {
				read(t, filepath.Join(bucket, string(p.Key())))
			}
		}
	}
	equals(t, "file://"+bucket)
}

// texts are rows of a test.
func texts(all []string, err error) rows {
	return func(_ context.Context, found func([]byte) error) error {
		for _, text := range all {
			if err := found([]byte(text)); err != nil {
				return err
			}
		}
		return err
	}
}

// TestDiffRows: diffRows counts the rows that only one of two tables has, including repeated rows,
// and shows some of them. Order and number of rows do not matter.
func TestDiffRows(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 3))
		var site []string
		for range random.IntN(3 * rowsAtOnce) {
			site = append(site, fmt.Sprint("row ", random.IntN(400)))
		}
		chains := slices.Clone(site)
		if random.IntN(3) == 0 {
			random.Shuffle(len(chains), func(i, j int) { chains[i], chains[j] = chains[j], chains[i] })
		}
		for range random.IntN(4) {
			if at := random.IntN(len(chains) + 1); at < len(chains) && random.IntN(2) == 0 {
				chains = slices.Delete(chains, at, at+1)
			} else {
				chains = slices.Insert(chains, at, fmt.Sprint("row ", random.IntN(500)))
			}
		}
		left, want := map[string]int{}, [sides]int{}
		for _, row := range chains {
			left[row]++
		}
		for _, row := range site {
			left[row]--
		}
		for _, n := range left {
			want[onlySite] -= min(n, 0)
			want[onlyChains] += max(n, 0)
		}
		d, err := diffRows(t.Context(), texts(site, nil), texts(chains, nil))
		if err != nil {
			t.Fatal(err)
		}
		if same := slices.Equal(site, chains); same || d == nil {
			if !same || d != nil {
				t.Fatalf("seed %d: got %v, want a difference: %v", seed, d, !same)
			}
			continue
		}
		if d.count != want {
			t.Fatalf("seed %d: got %v, want %v", seed, d.count, want)
		}
		for side, first := range d.first {
			if len(first) != min(mostRows, want[side]) {
				t.Fatalf("seed %d: got %q, want some of %d rows", seed, first, want[side])
			}
			for _, row := range first {
				if n := left[row]; n == 0 || n > 0 != (side == onlyChains) {
					t.Fatalf("seed %d: got %q of side %d, want rows that the other lacks", seed, row, side)
				}
			}
		}
	}
}

// TestDiffRowsFails: a read error is not a difference, and ends both sides.
func TestDiffRowsFails(t *testing.T) {
	broken := errors.New("broken")
	many := slices.Repeat([]string{"row"}, 10*rowsAtOnce)
	if _, err := diffRows(t.Context(), texts(nil, broken), texts(many, nil)); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	if _, err := diffRows(t.Context(), texts(many, nil), texts(nil, broken)); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

// TestPrintableRow: a row is cut and cannot control the terminal.
func TestPrintableRow(t *testing.T) {
	if got := printableRow([]byte("a\x1b[2J\u202eb\xff é")); got != "a\uFFFD[2J\uFFFDb é" {
		t.Errorf("got %q", got)
	}
	if got := printableRow([]byte(strings.Repeat("é", 1000))); len(got) > mostShown+len("…") || !strings.HasSuffix(got, "é…") {
		t.Errorf("got %q", got)
	}
}
