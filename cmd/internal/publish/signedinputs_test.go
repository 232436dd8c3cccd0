package publish

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/site/ranks"
)

// Publish refuses forged ranks in a signed bucket, and --ranks-from=none computes new ones.
func TestForgedRanksAreNotSigned(t *testing.T) {
	k, to := testkey.New(t, "follow.example"), filepath.Join(t.TempDir(), "out")
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(k.Private), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--snapshot", demoSnapshot(t, asItIs), "--dest", "file://" + to, "--api", "efp", "--ranks-every", "24h", "--sign", file}
	if status, _, stderr := runPublish(args...); status != command.Done {
		t.Fatalf("first publish: got status %d: %s", status, stderr)
	}
	path := filepath.Join(to, "_ranks")
	honest, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	forged := forgedRanks(t, honest)
	if err := os.WriteFile(path, forged, 0o644); err != nil {
		t.Fatal(err)
	}
	signed := readSite(t, to)
	status, _, stderr := runPublish(args...)
	if status != command.Failed || !strings.Contains(stderr, "no key of this run signed the site with these ranks") || !strings.Contains(stderr, "--ranks-from=none") {
		t.Errorf("forged ranks: got status %d: %s, want a refusal that names the way out", status, stderr)
	}
	if got := readSite(t, to); got["_site"] != signed["_site"] || got["_site.note"] != signed["_site.note"] {
		t.Error("forged ranks: the site was replaced")
	}
	if status, _, stderr := runPublish(append(args, "--ranks-from", "none")...); status != command.Done {
		t.Errorf("--ranks-from=none: got status %d: %s", status, stderr)
	}
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
	k, to := testkey.New(t, "follow.example"), filepath.Join(t.TempDir(), "out")
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(k.Private), 0o600); err != nil {
		t.Fatal(err)
	}
	snapshot := demoSnapshot(t, asItIs)
	args := []string{"--snapshot", snapshot, "--dest", "file://" + to, "--api", "efp", "--sign", file}
	if status, _, stderr := runPublish(args...); status != command.Done {
		t.Fatalf("first publish: got status %d: %s", status, stderr)
	}
	signed := readSite(t, to)
	for name, body := range map[string]string{
		"details/101": `{"name":"vitalik.eth","fresh":9000000000000}`, "details/None": "junk", "badges/101": "{}", "notes": "",
	} {
		path := filepath.Join(to, "_refresh", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
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
