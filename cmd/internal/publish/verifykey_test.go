package publish

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/followpress/followpress/internal/testenv/testkey"
)

// TestVerifyKey: verify --key finds what is not signed, and says so with status 1.
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
		{"too much", "head -c 1000000 /dev/zero", "--sign-with"},
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
