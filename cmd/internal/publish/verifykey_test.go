package publish

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
)

// TestVerifyKey: verify --key finds unsigned objects, and exits with status 1.
func TestVerifyKey(t *testing.T) {
	k, stranger := testkey.New(t, "follow.example"), testkey.New(t, "follow.example").Public
	key, public := k.File(t), k.Public
	out := demoSite(t, "out")
	publish := func(t *testing.T, args ...string) (folder string) {
		t.Helper()
		folder = t.TempDir()
		if status, _, stderr := runPublish(append([]string{"--site", out, "--dest", "file://" + folder}, args...)...); status != 0 {
			t.Fatal(stderr)
		}
		return folder
	}
	alter := func(t *testing.T, folder, name, from, to string) {
		t.Helper()
		path := filepath.Join(folder, filepath.FromSlash(name))
		body, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(body), from) {
			t.Fatalf("%s: %v, want %q in it", name, err, from)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(body), from, to, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		signed bool
		alter  func(t *testing.T, folder string)
		args   []string
		status int
		says   string
	}{
		{"all is well", true, nil, []string{"--key", public}, 0, "0 differ"},
		{"a sample", true, nil, []string{"--key", public, "--sample", "10"}, 0, "0 differ"},
		{"one of two keys", true, nil, []string{"--key", stranger, "--key", public}, 0, "0 differ"},
		{"another key", true, nil, []string{"--key", stranger}, 1, "no known key has signed it"},
		{"no note", false, nil, []string{"--key", public}, 1, "_site.note"},
		{"an object altered", true, func(t *testing.T, folder string) {
			alter(t, folder, "api/v1/leaderboard/followers", `"rank"`, `"Rank"`)
		}, []string{"--key", public}, 1, "api/v1/leaderboard/followers"},
		{"a forged counter", true, func(t *testing.T, folder string) {
			alter(t, folder, "_site.note", "follow.example\n", "follow.example\n1")
		}, []string{"--key", public}, 1, "a signature is not that of its key"},
		{"another root", true, func(t *testing.T, folder string) {
			alter(t, folder, "_site", `"as_of":"2026`, `"as_of":"2025`)
		}, []string{"--key", public}, 1, "_site"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var folder string
			if c.signed {
				folder = publish(t, "--sign", key)
			} else {
				folder = publish(t)
			}
			if c.alter != nil {
				c.alter(t, folder)
			}
			status, stdout, stderr := run("verify", append([]string{"--dest", "file://" + folder}, c.args...)...)
			if status != c.status || !strings.Contains(stdout+stderr, c.says) {
				t.Errorf("got status %d, %q, %q; want %d, and %q", status, stdout, stderr, c.status, c.says)
			}
		})
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
			name := filepath.Join(folder, filepath.FromSlash(string(key)))
			if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(body), 0o644)); err != nil {
				t.Fatal(err)
			}
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
