package publish

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/ranks"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
)

// Publish refuses forged ranks in a signed bucket, and --ranks-from=none computes new ones.
func TestForgedRanksAreNotSigned(t *testing.T) {
	k, to := testkey.New(t, "follow.example"), filepath.Join(t.TempDir(), "out")
	file := k.File(t)
	args := []string{"--snapshot", demoSnapshot(t, asItIs), "--dest", "file://" + to, "--api", "efp", "--ranks-every", "24h", "--sign", file}
	done(t, "publish", args...)
	writeFile(t, to, "_ranks", string(forgedRanks(t, []byte(body(t, to, "_ranks")))))
	signed := readSite(t, to)
	status, _, stderr := runPublish(args...)
	if status != command.Failed || !strings.Contains(stderr, "no key of this run signed the site with these ranks") || !strings.Contains(stderr, "--ranks-from=none") {
		t.Errorf("forged ranks: got status %d: %s, want a refusal that names the way out", status, stderr)
	}
	if got := readSite(t, to); got["_site"] != signed["_site"] || got["_site.note"] != signed["_site.note"] {
		t.Error("forged ranks: the site was replaced")
	}
	done(t, "publish", append(args, "--ranks-from", "none")...)
	// Publish plans by the manifest, so only verify and repair notice an object changed without it.
	// The next site does not depend on that object.
	if got := readSite(t, to); got["_site"] != signed["_site"] {
		t.Error("--ranks-from=none: got another root than that of honest ranks")
	}
}

// forgedRanks are ranks that rank other accounts, with the checksum that anybody can make.
func forgedRanks(t *testing.T, honest []byte) []byte {
	t.Helper()
	body := bytes.Clone(honest[:len(honest)-sha256.Size])
	for i := len(body) - 1; i >= 0; i-- {
		body[i] ^= 1
		sum := sha256.Sum256(body)
		forged := append(bytes.Clone(body), sum[:]...)
		if _, err := ranks.Parse(forged); err == nil {
			return forged
		}
		body[i] ^= 1
	}
	t.Fatal("no other ranks can be parsed")
	return nil
}

// A signed site takes only refreshes signed by a known key, and publish reports how many it left
// out.
func TestRefreshesNeedASignature(t *testing.T) {
	to, snapshot := filepath.Join(t.TempDir(), "out"), demoSnapshot(t, asItIs)
	args := []string{"--snapshot", snapshot, "--dest", "file://" + to, "--api", "efp", "--sign", testkey.New(t, "follow.example").File(t)}
	done(t, "publish", args...)
	signed := readSite(t, to)
	for name, body := range map[string]string{
		"details/101": `{"name":"vitalik.eth","fresh":9000000000000}`, "details/None": "junk", "badges/101": "{}", "notes": "",
	} {
		writeFile(t, to, "_refresh/"+name, body)
	}
	status, _, stderr := runPublish(append(args, "--refreshed", filepath.Join(to, "_refresh"))...)
	if status != command.Done || !strings.Contains(stderr, "4 without effect (nobody has signed it)") {
		t.Errorf("got status %d: %s, want a publish that says that it left 4 objects", status, stderr)
	}
	if got := readSite(t, to); got["_site"] != signed["_site"] {
		t.Error("got another root, want that without refreshes")
	}
	refresher := testkey.New(t, "refresher")
	writeFile(t, to, "_refresh/details/102", signedRefresh(t, refresher, "_refresh/details/102", `{"name":"signed.eth","fresh":9000000000000}`))
	status, _, stderr = runPublish(append(args, "--refreshed", filepath.Join(to, "_refresh"), "--refreshed-key", refresher.Public)...)
	if status != command.Done || !strings.Contains(stderr, "4 without effect (nobody has signed it)") {
		t.Errorf("with a key: got status %d: %s, want a publish that says that it left 4 objects", status, stderr)
	}
	if got := readSite(t, to); !strings.Contains(got["api/v1/users/signed.eth/account"], "signed.eth") || got["api/v1/users/vitalik.eth/account"] != "" {
		t.Error("want only signed refreshes merged")
	}
	// Without a signature they count as before, and invalid entries are ignored.
	other := filepath.Join(t.TempDir(), "out")
	status, _, stderr = runPublish("--snapshot", snapshot, "--dest", "file://"+other, "--api", "efp", "--refreshed", filepath.Join(to, "_refresh"))
	if status != command.Done || !strings.Contains(stderr, "_refresh/details/None") {
		t.Errorf("junk: got status %d: %s, want a publish that names it", status, stderr)
	}
}

// A key may come from a pipe, which is read once. A pipe without a writer is an error, and does not
// block.
func TestSignFromPipe(t *testing.T) {
	k, out, folder := testkey.New(t, "follow.example"), demoSite(t, "out"), t.TempDir()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	if _, err := fmt.Fprintln(w, k.Private); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	done(t, "publish", "--site", out, "--dest", "file://"+folder, "--sign", fmt.Sprintf("/dev/fd/%d", r.Fd()))
	signed, err := os.ReadFile(filepath.Join(folder, "_site.note"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.Keys.Open(signed, time.Now()); err != nil {
		t.Error(err)
	}

	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := runPublish("--site", out, "--dest", "file://"+folder, "--sign", fifo); status == 0 || !strings.Contains(stderr, "is empty") {
		t.Errorf("a pipe without a writer: got status %d: %s", status, stderr)
	}
}

// TestSignWithSaysNonsense: nothing is written before the signature of a command has been checked.
func TestSignWithSaysNonsense(t *testing.T) {
	public := testkey.New(t, "follow.example").Public
	out := demoSite(t, "out")
	for _, c := range []struct{ name, command, says string }{
		{"no signature", "echo no signature", "--sign-with"},
		{"that of another text", "head -c 64 /dev/zero", "not one of the public key"},
		{"too much", "head -c 1000000 /dev/zero", "printed more than 4 KiB"},
		{"a failure", "echo the HSM is away >&2; exit 3", "the HSM is away"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := t.TempDir()
			status, _, stderr := runPublish("--site", out, "--dest", "file://"+folder, "--sign-with", c.command, "--sign-with-key", public)
			if status != 1 || !strings.Contains(lastLine(stderr), c.says) {
				t.Errorf("got status %d, %q, want 1 and %q", status, stderr, c.says)
			}
			if _, err := os.Stat(filepath.Join(folder, "_site")); err == nil {
				t.Error("got a site, want none")
			}
		})
	}
}

// TestCommandThatSignsHasNoOtherKey: the secret key in the environment is not passed on to the command of --sign-with.
func TestCommandThatSignsHasNoOtherKey(t *testing.T) {
	t.Setenv(secretVariable, "PRIVATE+KEY+follow.example+x")
	t.Setenv("OTHER_VARIABLE", "passed")
	signature, err := signWith(t.Context(), `test "$OTHER_VARIABLE" = passed && test -z "$`+secretVariable+`" && head -c 64 /dev/zero`, nil)
	if err != nil || !bytes.Equal(signature, make([]byte, 64)) {
		t.Errorf("got %d bytes and %v, want that the command has the other variables and not %s", len(signature), err, secretVariable)
	}
}

// sampled compares a sample of a signed site, after some of its objects were altered.
func sampled(t *testing.T, inShard func(shard string) bool, n int, altered memsite.Site) (publisher.SignedVerification, error) {
	t.Helper()
	objects := map[site.Key]string{}
	for i := 0; len(objects) < 400; i++ {
		if key := site.Key(fmt.Sprintf("api/v1/lists/%d/details", i)); inShard(site.ManifestShard(key, 1)) {
			objects[key] = fmt.Sprint(i)
		}
	}
	config, err := site.Config{BasePath: "api/v1"}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	k, folder := testkey.New(t, "follow.example"), t.TempDir()
	made := memsite.New(t, site.Root{Format: site.Format, AsOf: "2026-11-24T00:00:00Z", Config: config, BucketDigits: 1, ShardDigits: 1,
		Counts: site.Counts{Objects: len(objects)}}, objects)
	put := func(s memsite.Site) {
		for key, body := range s {
			writeFile(t, folder, string(key), body)
		}
	}
	put(k.Sign(t, made, 1))
	signed, err := checked.Open(t.Context(), storage.OpenLocal(folder), k.Keys, checked.Options{Pinned: true})
	if err != nil {
		t.Fatal(err)
	}
	put(altered)
	c := &comparison{site: signed, told: publisher.SignedVerification{Objects: signed.Root().Counts.Objects}, inFlight: 2, add: func(int64) {}}
	err = c.sample(t.Context(), n)
	return c.told, err
}

// TestListedWhereNobodyLooks: a key listed in the wrong shard has no reader, so it differs.
func TestListedWhereNobodyLooks(t *testing.T) {
	k := testkey.New(t, "follow.example")
	config, err := site.Config{BasePath: "api/v1"}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	made := memsite.New(t, site.Root{Format: site.Format, AsOf: "2026-11-24T00:00:00Z", Config: config, BucketDigits: 1, ShardDigits: 1}, map[site.Key]string{})
	web, err := storage.OpenPublished(t.Context(), newOnline(t, k.Sign(t, made, 1)).url, storage.S3Options{})
	if err != nil {
		t.Fatal(err)
	}
	signed, err := checked.Open(t.Context(), web, k.Keys, checked.Options{Pinned: true})
	if err != nil {
		t.Fatal(err)
	}
	c := &comparison{site: signed, add: func(int64) {}}
	if err := c.compare(t.Context(), "api/v1/lists/1/details"); err != nil || c.told.Differ != 1 || c.told.Checked != 1 {
		t.Errorf("got %+v and %v, want one that differs", c.told, err)
	}
}

// TestSampleOfDamagedShards: all objects drawn from an unreadable shard count as different, so the
// bound is about their number.
func TestSampleOfDamagedShards(t *testing.T) {
	damaged := memsite.Site{}
	for _, name := range site.HashPrefixes(1) {
		damaged[site.ManifestKey(name)] = "damaged"
	}
	any := func(string) bool { return true }
	if told, err := sampled(t, any, 100, damaged); err != nil || told.Differ != told.Checked || told.Checked < 100 || *told.Bound < 0.99 {
		t.Errorf("all shards: got %+v, %v, want that all 100 differ", told, err)
	}
	if told, err := sampled(t, any, 100, nil); err != nil || told.Differ != 0 || told.Checked < 100 || *told.Bound > 0.1 {
		t.Errorf("none: got %+v, %v, want that none differs", told, err)
	}
}

// TestSampleOfAnUnevenManifest: a forged manifest could put all wrong objects into one shard, of
// which the sample would draw too few.
func TestSampleOfAnUnevenManifest(t *testing.T) {
	if told, err := sampled(t, func(shard string) bool { return shard == "7" }, 10, nil); !errors.Is(err, errUneven) {
		t.Errorf("got %+v, %v, want that no sample says anything", told, err)
	}
}

// TestSecretKeyAsAFlag: a key given instead of its file is an error that does not repeat the key.
func TestSecretKeyAsAFlag(t *testing.T) {
	k := testkey.New(t, "follow.example")
	status, stdout, stderr := runPublish("--site", demoSite(t, "out"), "--dest", "file://"+t.TempDir(), "--sign", k.Private)
	if status != 2 || !strings.Contains(stderr, secretVariable) || strings.Contains(stdout+stderr, k.Private[len(k.Private)-8:]) {
		t.Errorf("got status %d, %q, %q, want 2, the variable that may hold a key, and not the key", status, stdout, stderr)
	}
}

// A vault is a signed bucket, and the publish that comes next.
type vault struct {
	key       testkey.Key
	file      string       // path to the key
	refresher testkey.Key  // key of a fallback that refreshed a profile
	after     string       // the next snapshot
	bucket    string       // the untouched bucket before the publish
	old, want memsite.Site // the objects before and after the publish
}

func newVault(t *testing.T) *vault {
	t.Helper()
	v := &vault{key: testkey.New(t, "follow.example"), refresher: testkey.New(t, "refresher"), bucket: filepath.Join(t.TempDir(), "out")}
	v.file = v.key.File(t)
	before, honest := snapshotAsOf(t, "2026-01-01T00:00:00Z", asItIs), filepath.Join(t.TempDir(), "out")
	v.after = snapshotAsOf(t, "2026-01-01T01:00:00Z", aFollow)
	for _, to := range []string{v.bucket, honest} {
		writeFile(t, to, refreshedKey, signedRefresh(t, v.refresher, refreshedKey, `{"name":"refreshed.eth","fresh":9000000000000}`))
	}
	for _, run := range []struct{ snapshot, to string }{{before, v.bucket}, {before, honest}, {v.after, honest}} {
		if status, stderr := v.publish(t, run.snapshot, run.to); status != command.Done {
			t.Fatalf("got status %d: %s", status, stderr)
		}
	}
	v.old, v.want = readSite(t, v.bucket), readSite(t, honest)
	if !strings.Contains(v.want["api/v1/users/refreshed.eth/account"], "refreshed.eth") {
		t.Fatal("the signed refresh was not merged")
	}
	delete(v.old, refreshedKey) // who removes it undoes the refresh, and that is all
	return v
}

func (v *vault) publish(t *testing.T, snapshot, to string) (status int, stderr string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(to, "_refresh"), 0o755); err != nil {
		t.Fatal(err)
	}
	status, _, stderr = runPublish("--snapshot", snapshot, "--dest", "file://"+to, "--api", "efp", "--ranks-every", "24h",
		"--sign", v.file, "--inputs", "--refreshed", filepath.Join(to, "_refresh"), "--refreshed-key", v.refresher.Public, "--no-sync")
	return status, stderr
}

// refreshedKey is the key of a profile that a fallback refreshed.
const refreshedKey = "_refresh/details/102"

// signedRefresh returns an entry that a fallback has signed.
func signedRefresh(t *testing.T, k testkey.Key, key site.Key, entry string) string {
	t.Helper()
	signed, err := note.SignEntry(key, time.Now(), []byte(entry), k.Signer)
	if err != nil {
		t.Fatal(err)
	}
	return string(signed)
}

// writeFile writes an object of a bucket that is a folder.
func writeFile(t *testing.T, to, name, text string) {
	t.Helper()
	path := filepath.Join(to, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// copy copies the untouched bucket.
func (v *vault) copy(t *testing.T) (to string) {
	t.Helper()
	to = filepath.Join(t.TempDir(), "out")
	if err := os.CopyFS(to, os.DirFS(v.bucket)); err != nil {
		t.Fatal(err)
	}
	return to
}

// robbed publishes to a bucket that somebody has changed, and reports whether that was refused.
func (v *vault) robbed(t *testing.T, to, did string) (refused bool) {
	t.Helper()
	status, stderr := v.publish(t, v.after, to)
	refused = status != command.Done
	if root := body(t, to, "_site"); refused && root == v.want["_site"] {
		t.Errorf("%s: the site was published in spite of %s", did, lastLine(stderr))
	} else if !refused && root != v.want["_site"] {
		t.Errorf("%s: the site is another one than that of a bucket that nobody has touched", did)
	}
	return refused
}

var thiefSeed = flag.Uint64("thief-seed", 1, "seed of what TestThief writes")

// A thief may write anywhere in a signed bucket but has no key. After each theft, the next signed
// publish either refuses or puts the same site as in an untouched bucket. Readers with the key see
// only signed objects.
func TestThief(t *testing.T) {
	v, refused := newVault(t), 0
	for i := range servers.Rounds(8, 500) {
		random, to := rand.New(rand.NewPCG(*thiefSeed, uint64(i))), v.copy(t)
		var steps []string
		for range 1 + random.IntN(3) {
			steps = append(steps, steal(t, random, to, v.old))
		}
		did := strings.Join(steps, ", ")
		v.onlySigned(t, random, to, did)
		if v.robbed(t, to, did) {
			refused++
		}
		v.onlySigned(t, random, to, did)
	}
	t.Logf("%d publishes were refused", refused)
}

// TestInputsOfASignedSite alters each input of a signed site in the table of docs/proof.md. The
// check named in the table must find it.
func TestInputsOfASignedSite(t *testing.T) {
	v := newVault(t)
	each := func(prefix string) func(t *testing.T, to string) {
		return func(t *testing.T, to string) {
			for key, text := range v.old {
				if strings.HasPrefix(string(key), prefix) {
					writeFile(t, to, string(key), text[:len(text)/2])
				}
			}
		}
	}
	alter := map[string][]func(t *testing.T, to string){
		"the tables of the snapshot": nil, // the signature covers the tables; rows are checked when read
		"`_ranks` of the destination (`--ranks-every`)": {func(t *testing.T, to string) {
			writeFile(t, to, "_ranks", string(forgedRanks(t, []byte(v.old["_ranks"]))))
		}},
		"`_refresh/` (`--refreshed`)": {
			func(t *testing.T, to string) {
				writeFile(t, to, "_refresh/details/104", `{"name":"vitalik.eth","fresh":9000000000000}`)
			},
			func(t *testing.T, to string) {
				writeFile(t, to, "_refresh/details/104", body(t, to, refreshedKey))
			},
			func(t *testing.T, to string) {
				writeFile(t, to, "_refresh/details/104", signedRefresh(t, v.key, "_refresh/details/104", `{"name":"vitalik.eth","fresh":9000000000000}`))
			},
		},
		"notes and counters of the bucket": {
			func(t *testing.T, to string) { writeFile(t, to, "_site.note", "a note") },
			func(t *testing.T, to string) { writeFile(t, to, "_site.note", v.want["_site.note"]) },
			func(t *testing.T, to string) { writeFile(t, to, "_site", v.want["_site"][:100]) },
			func(t *testing.T, to string) { writeFile(t, to, "_next/_site.note", v.want["_site.note"]) },
		},
		"pieces of `--inputs`, shards of the manifest": {each("_manifest/"), each("_snapshot/")},
		"the state, and its copy (`--state-copy`)":     nil, // no publish reads them: TestDamagedCopies of live
		"`--site`, `--ranks-from` of `generate`":       nil, // nothing checks them
	}
	table, err := os.ReadFile("../../../docs/proof.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(table), "| input | what checks it |\n|---|---|\n")
	rows := 0
	for line := range strings.Lines(text) {
		name, ok := strings.CutPrefix(line, "| ")
		if !ok {
			break
		}
		name, _, _ = strings.Cut(name, " | ")
		faults, known := alter[name]
		if !known {
			t.Errorf("no test alters the input %q", name)
		}
		for i, fault := range faults {
			to := v.copy(t)
			fault(t, to)
			v.robbed(t, to, fmt.Sprintf("%s, %d", name, i))
			v.onlySigned(t, rand.New(rand.NewPCG(1, 1)), to, name)
		}
		rows++
	}
	if rows != len(alter) {
		t.Errorf("got %d rows in the table, want %d", rows, len(alter))
	}
}

// steal changes the bucket in one place, and says how. A lock or a mark only makes a publish wait.
func steal(t *testing.T, random *rand.Rand, to string, old memsite.Site) string {
	keys := slices.Sorted(maps.Keys(old))
	beside := []string{"_ranks", "_site", "_site.note", "_next/_site.note", "_next/9/_site", "_refresh/details/2", "_refresh/badges/2",
		"_refresh/None", "_refresh/copies/x", "_snapshot/index/x", "_reports/index", "_log/index", "stranger.txt"}
	key := string(keys[random.IntN(len(keys))])
	switch random.IntN(4) {
	case 0:
		key = beside[random.IntN(len(beside))]
	case 1:
		if shards := slices.DeleteFunc(slices.Clone(keys), func(k site.Key) bool { return !strings.HasPrefix(string(k), "_manifest/") }); len(shards) > 0 {
			key = string(shards[random.IntN(len(shards))])
		}
	}
	other := old[keys[random.IntN(len(keys))]]
	was, _ := os.ReadFile(filepath.Join(to, filepath.FromSlash(key)))
	kinds := []struct {
		name string
		body func() []byte
	}{
		{"another's", func() []byte { return []byte(other) }},
		{"one bit of", func() []byte {
			b := slices.Clone(was)
			if len(b) > 0 {
				b[random.IntN(len(b))] ^= 1 << random.IntN(8)
			}
			return b
		}},
		{"half of", func() []byte { return was[:len(was)/2] }},
		{"nothing for", func() []byte { return nil }},
		{"a digit more in", func() []byte { return []byte(strings.Replace(string(was), "1", "11", 1)) }},
		{"a fresh name for", func() []byte { return []byte(`{"name":"vitalik.eth","fresh":1767225600000}`) }},
		{"ranks for", func() []byte {
			if body, err := os.ReadFile(filepath.Join(to, "_ranks")); err == nil && len(body) > 64 {
				return forgedRanks(t, body)
			}
			return nil
		}},
	}
	if key == "_ranks" && random.IntN(2) == 0 {
		kinds = kinds[len(kinds)-1:]
	}
	if random.IntN(6) == 0 {
		if err := os.RemoveAll(filepath.Join(to, filepath.FromSlash(key))); err != nil {
			t.Fatal(err)
		}
		return "remove " + key
	}
	kind := kinds[random.IntN(len(kinds))]
	writeFile(t, to, key, string(kind.body()))
	return fmt.Sprintf("%s %s", kind.name, key)
}

// onlySigned reads some objects with the key: each is that of one of both sites, or an error.
func (v *vault) onlySigned(t *testing.T, random *rand.Rand, to, did string) {
	t.Helper()
	reader, err := checked.Open(t.Context(), storage.OpenLocal(to), v.key.Keys, checked.Options{})
	if err != nil {
		return
	}
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(v.want)), func(k site.Key) bool {
		return k == site.NoteKey || strings.HasPrefix(string(k), "_manifest/") // each has several forms that say the same
	})
	for range 40 {
		key := keys[random.IntN(len(keys))]
		if got, err := reader.Get(t.Context(), key); err == nil && string(got) != v.old[key] && string(got) != v.want[key] {
			t.Errorf("%s: read of %s what nobody has signed: %.200q", did, key, got)
		}
	}
}

func body(t *testing.T, folder, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}
