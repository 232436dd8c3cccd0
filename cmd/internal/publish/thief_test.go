package publish

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
)

// Somebody who may write anywhere in a signed bucket, but has no key, changes what the bucket has. The next signed publish
// then refuses, or its site is that of a bucket that nobody has touched; and readers with the key see only what was signed.
func TestThief(t *testing.T) {
	const seed = 1
	k := testkey.New(t, "follow.example")
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(k.Private), 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(asOf string, change func(t *testing.T, dir string)) string {
		dir := demoSnapshot(t, change)
		if err := os.WriteFile(filepath.Join(dir, "meta.json"), []byte(`{"format":1,"as_of":"`+asOf+`"}`), 0o644); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	before, after := at("2026-01-01T00:00:00Z", asItIs), at("2026-01-01T01:00:00Z", aFollow)
	publish := func(snapshot, to string) (status int, stderr string) {
		if err := os.MkdirAll(filepath.Join(to, "_refresh"), 0o755); err != nil {
			t.Fatal(err)
		}
		status, _, stderr = runPublish("--snapshot", snapshot, "--dest", "file://"+to, "--api", "efp", "--ranks-every", "24h",
			"--sign", file, "--inputs", "--refreshed", filepath.Join(to, "_refresh"), "--no-sync")
		return status, stderr
	}
	untouched, honest := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "out")
	for _, run := range []struct{ snapshot, to string }{{before, untouched}, {before, honest}, {after, honest}} {
		if status, stderr := publish(run.snapshot, run.to); status != command.Done {
			t.Fatalf("got status %d: %s", status, stderr)
		}
	}
	old, want := readSite(t, untouched), readSite(t, honest)
	refused := 0
	for i := range servers.Rounds(20, 500) {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		to := filepath.Join(t.TempDir(), "out")
		if err := os.CopyFS(to, os.DirFS(untouched)); err != nil {
			t.Fatal(err)
		}
		var did []string
		for range 1 + random.IntN(3) {
			did = append(did, steal(t, random, to, old))
		}
		onlySigned(t, random, to, k, old, want, did)
		status, stderr := publish(after, to)
		if status != command.Done {
			refused++
			if root := body(t, to, "_site"); root == want["_site"] {
				t.Errorf("%q: the site was published in spite of %s", did, lastLine(stderr))
			}
		} else if root := body(t, to, "_site"); root != want["_site"] {
			t.Errorf("%q: the site is another one than that of a bucket that nobody has touched", did)
		}
		onlySigned(t, random, to, k, old, want, did)
	}
	t.Logf("%d publishes were refused", refused)
}

// steal changes the bucket in one place, and says how. A lock or a mark only makes a publish wait.
func steal(t *testing.T, random *rand.Rand, to string, old memsite.Site) string {
	keys := slices.Sorted(maps.Keys(old))
	beside := []string{"_ranks", "_site", "_site.note", "_next/_site.note", "_next/9/_site", "_refresh/details/2", "_refresh/badges/2",
		"_refresh/None", "_refresh/copies/api/v1/users/a/account", "_snapshot/index/x", "_reports/index", "_log/index", "stranger.txt"}
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
	path := filepath.Join(to, filepath.FromSlash(key))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, kind.body(), 0o644); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %s", kind.name, key)
}

// onlySigned reads some objects with the key: each is that of one of both sites, or an error.
func onlySigned(t *testing.T, random *rand.Rand, to string, k testkey.Key, old, want memsite.Site, did []string) {
	t.Helper()
	reader, err := checked.Open(t.Context(), storage.OpenLocal(to), k.Keys, checked.Options{})
	if err != nil {
		return
	}
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(want)), func(k site.Key) bool {
		return k == site.NoteKey || strings.HasPrefix(string(k), "_manifest/") // each has several forms that say the same
	})
	for range 40 {
		key := keys[random.IntN(len(keys))]
		if got, err := reader.Get(t.Context(), key); err == nil && string(got) != old[key] && string(got) != want[key] {
			t.Errorf("%q: read of %s what nobody has signed: %.200q", did, key, got)
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
