package generate

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A list of the demo, its account and the account's name.
const (
	refreshedList    = "4"
	refreshedAccount = "0x974b780c0cfb5343cbb4a44384cf9a10f80eb9cd"
	refreshedName    = "miralund.eth"
)

// newer is newer than the demo.
var newer = map[site.Key]string{
	"details/" + refreshedList: `{"address":"` + refreshedAccount + `","name":"renamed.eth","fresh":1900000000000}`,
	"badges/" + refreshedList:  `{"address":"` + refreshedAccount + `","fetched":1000,"badges":[]}`, // an older refresh
}

// refreshes makes a folder of refreshed objects.
func refreshes(t *testing.T, objects map[site.Key]string) (folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "bucket", "_refresh")
	for key, body := range objects {
		name := filepath.Join(folder, filepath.FromSlash(string(key)))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// showsTheNewer checks a site in which only the details were refreshed.
func showsTheNewer(t *testing.T, out string) {
	t.Helper()
	details, err := os.ReadFile(filepath.Join(out, "api/v1/lists", refreshedList, "details"))
	if err != nil || !strings.Contains(string(details), `"ens":{"name":"renamed.eth"`) {
		t.Errorf("details %s, %v", details, err)
	}
	if user := filepath.Join(out, "api/v1/users"); !exists(filepath.Join(user, "renamed.eth")) || exists(filepath.Join(user, refreshedName)) {
		t.Error("the account is not found by its new name alone")
	}
	searches, err := filepath.Glob(filepath.Join(out, "api/v1/lists/*/searchFollowing"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range searches {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found += strings.Count(string(body), `"name":"renamed.eth"`)
		if strings.Contains(string(body), `"name":"`+refreshedName+`"`) {
			t.Errorf("%s shows the old name", name)
		}
	}
	if found == 0 {
		t.Error("the new name is in no search")
	}
}

func TestRefreshed(t *testing.T) {
	dir, folder := demo(t), refreshes(t, newer)
	for _, location := range []string{folder, folder + "/", "file://" + folder} {
		out := filepath.Join(t.TempDir(), "site")
		status, stdout, stderr := generate("--snapshot", dir, "--out", out, "--refreshed", location, "--report=-")
		if status != command.Done || !strings.Contains(stderr, "refreshed          2 objects, 1 merged into profiles, 0 into badges, 1 not newer\n") {
			t.Fatalf("%s: got status %d: %s", location, status, stderr)
		}
		showsTheNewer(t, out)
		if r := parseReport(t, stdout).Refreshed; r == nil || r.Objects != 2 || r.Profiles != 1 || r.Older != 1 {
			t.Errorf("report: got %s", stdout)
		}
	}
	t.Setenv("FOLLOWPRESS_REFRESHED", folder)
	out := filepath.Join(t.TempDir(), "site")
	if status, _, stderr := generate("--snapshot", dir, "--out", out); status != command.Done {
		t.Fatal(stderr)
	}
	showsTheNewer(t, out)
}

func TestRefreshedInABucket(t *testing.T) {
	for _, kind := range servers.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			s := servers.Start(t, kind)
			s.Env(t)
			bucket, dir := s.Bucket(t), demo(t)
			b, err := storage.OpenBucket(t.Context(), storage.Location{Bucket: bucket, Prefix: "site/_refresh/"}, storage.S3Options{Endpoint: s.Endpoint})
			if err != nil {
				t.Fatal(err)
			}
			args := []string{"--snapshot", dir, "--refreshed", "s3://" + bucket + "/site/_refresh", "--endpoint", s.Endpoint}
			out := filepath.Join(t.TempDir(), "site")
			status, _, stderr := generate(append(args, "--out", out)...)
			if status != command.Done || !strings.Contains(stderr, "refreshed          0 objects") {
				t.Errorf("nothing was refreshed: got status %d: %s", status, stderr)
			}
			for key, body := range newer {
				o := storage.Object{Entry: site.Entry{Key: key, Size: int64(len(body)), MD5: site.Sum([]byte(body))}, Body: []byte(body)}
				if _, err := b.Put(t.Context(), o, storage.Always); err != nil {
					t.Fatal(err)
				}
			}
			if status, _, stderr := generate(append(args, "--out", out)...); status != command.Done {
				t.Errorf("got status %d: %s", status, stderr)
			}
			showsTheNewer(t, out)

			nowhere := filepath.Join(t.TempDir(), "nowhere")
			status, _, stderr = generate("--snapshot", dir, "--refreshed", "s3://no-such-bucket/_refresh", "--endpoint", s.Endpoint, "--out", nowhere)
			if status != command.Failed || !failedWith(stderr, "no such bucket") || exists(nowhere) {
				t.Errorf("no bucket: got status %d: %s", status, stderr)
			}
		})
	}
}

// TestSnapshotInABucket: a snapshot in a bucket becomes the site that it becomes from a folder.
func TestSnapshotInABucket(t *testing.T) {
	for _, kind := range servers.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			s := servers.Start(t, kind)
			s.Env(t)
			bucket, dir := s.Bucket(t), demo(t)
			s.Upload(t, bucket, "snapshots/new", dir)
			want, got := filepath.Join(t.TempDir(), "site.tar"), filepath.Join(t.TempDir(), "site.tar")
			if status, _, stderr := generate("--snapshot", dir, "--out", want); status != command.Done {
				t.Fatal(stderr)
			}
			status, stdout, stderr := generate("--snapshot", "s3://"+bucket+"/snapshots/new", "--endpoint", s.Endpoint, "--out", got, "--report=-")
			if status != command.Done || parseReport(t, stdout).Snapshot != "s3://"+bucket+"/snapshots/new" {
				t.Fatalf("got status %d: %s", status, stderr)
			}
			if !bytes.Equal(content(t, got), content(t, want)) {
				t.Error("the sites differ")
			}
			for location, reason := range map[string]string{
				"s3://" + bucket + "/no": "s3://" + bucket + "/no/meta.json is not there: is this the folder of a snapshot?",
				"s3://no-such-bucket/x":  "--snapshot: read s3://no-such-bucket/x/: no such bucket; check its name, --endpoint and --region",
				"s3://":                  "--snapshot: s3://: not a bucket; use s3://BUCKET",
			} {
				nowhere := filepath.Join(t.TempDir(), "nowhere")
				status, _, stderr := generate("--snapshot", location, "--endpoint", s.Endpoint, "--out", nowhere)
				if status != command.Failed || !failedWith(stderr, reason) || exists(nowhere) {
					t.Errorf("%s: got status %d: %s", location, status, stderr)
				}
			}
		})
	}
}

func content(t *testing.T, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
