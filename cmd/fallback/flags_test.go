package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/serve"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// Wrong usage has its own exit status and one line that names the flag.
func TestWrongUsage(t *testing.T) {
	for _, c := range []struct{ args, line string }{
		{"", "--site"},
		{"--site=x extra", "extra"},
		{"--site=x --no-such-flag", "--no-such-flag"},
		{"--site=ftp://x", "--site: ftp://x: use s3://BUCKET"},
		{"--site=s3://", "--site: s3://: not a bucket; use s3://BUCKET"},
		{"--site=s3://key:secret@bucket", "--site: the location has a user"},
		{"--site=s3://B", "--site: s3://B: "},
		{"--site=s3://bucket/a/../b", "--site: s3://bucket/a/../b: not a bucket; use"},
		{"--site=file://folder", "--site: file://folder: not an absolute path; use"},
		{"--site=x --cache-bytes=-1", "--cache-bytes"},
		{"--site=x --cache-bytes=0", "--cache-bytes must be positive"},
		{"--site=x --cache-bytes=32MiB", "--cache-bytes"},
		{"--site=x --poll=0s", "--poll must be positive"},
		{"--site=x --poll=10", "--poll"},
		{"--site=x --timeout=-1s", "--timeout must be positive"},
		{"--site=x --drain-delay=-1s", "--drain-delay cannot be negative"},
		{"--site=x --profile-upstream=https://x/", "{address}"},
		{"--site=x --profile-upstream=x/{address}", "the URL must be like https://HOST/{address}"},
		{"--site=x --profile-upstream=https://{address}/", "placeholder in its host"},
		{"--site=x --profile-upstream=https://x.{address}", "placeholder in its host"},
		{"--site=x --profile-upstream=https://{address}@x/", "placeholder in its host"},
		{"--site=x --profile-upstream=https://{address}:80?x", "placeholder in its host"},
		{"--site=x --badge-upstream=https://x/{address}", "{event_id}"},
		{"--site=x --timeout=25s", "--timeout=25s must be less than 25s"},
		{"--site=x --log-level=loud", "--log-level"},
		{"--site=s3://bucket --endpoint=nonsense", "--endpoint: want a URL"},
	} {
		var stdout, stderr bytes.Buffer
		status := command.Run("fallback", "", &serve.Command{}, strings.Fields(c.args), &stdout, &stderr)
		if status != command.Usage || stdout.Len() > 0 || !oneLine(stderr.String(), c.line) {
			t.Errorf("%s: got status %d, %q, %q, want 2 and %q", c.args, status, &stdout, &stderr, c.line)
		}
	}
}

func oneLine(text, with string) bool {
	return strings.HasPrefix(text, "fallback: ") && strings.Count(text, "\n") == 1 && strings.HasSuffix(text, "\n") && strings.Contains(text, with)
}

// An impossible configuration ends the command with a one-line error before it serves anything.
func TestFailure(t *testing.T) {
	dir := demoSite(t)
	running := run(t, executable(t), "--site="+dir)
	taken := strings.TrimPrefix(running.base, "http://")
	damaged := filepath.Join(t.TempDir(), "site")
	if err := os.MkdirAll(damaged, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(damaged, "_site"), []byte(`{"format":`), 0o644); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	for _, c := range []struct {
		line string
		args []string
	}{
		{"/nowhere", []string{"--site=/nowhere"}},
		{"/nowhere.tar", []string{"--site=/nowhere.tar"}},
		{empty + ": there is no site: it has no _site; publish a site there", []string{"--site=" + empty}},
		{"/nowhere", []string{"--site=file:///nowhere"}},
		{"_site", []string{"--site=" + damaged}},
		{"a .tar file cannot store", []string{"--site=" + dir + ".tar", "--profile-upstream=https://x/{address}"}},
		{"choose another address with --addr", []string{"--site=" + dir, "--addr=" + taken}},
		{"--addr=nonsense: missing port in address; want HOST:PORT", []string{"--site=" + dir, "--addr=nonsense"}},
		{"choose another address with --metrics-addr", []string{"--site=" + dir, "--addr=127.0.0.1:0", "--metrics-addr=" + taken}},
	} {
		fails(t, nil, c.line, c.args...)
	}
}

// fails runs the command, which must end with exit status 1 and one line.
func fails(t *testing.T, environment []string, line string, args ...string) {
	t.Helper()
	p := begin(t, executable(t), environment, args...)
	if status, told := p.wait(), p.Stderr(); status != command.Failed || !oneLine(told, line) {
		t.Errorf("%q: got status %d, %q, want 1 and %q", args, status, told, line)
	}
}

// A bucket with a wrong configuration is an error; one that cannot be reached may come
// back, so the command keeps running.
func TestFailureOfABucket(t *testing.T) {
	s := servers.Start(t, servers.MinIO)
	s.Env(t)
	empty := s.Bucket(t)
	at := func(bucket string) []string { return []string{"--site=s3://" + bucket, "--endpoint=" + s.Endpoint} }
	fails(t, nil, "no such bucket", at("no-such-bucket")...)
	fails(t, nil, "s3://"+empty+": there is no site: it has no _site", at(empty)...)
	fails(t, nil, "s3://"+empty+"/prefix: there is no site: it has no _site", at(empty+"/prefix")...)
	fails(t, []string{"AWS_ACCESS_KEY_ID=nobody"}, "", at(empty)...)
	fails(t, []string{"AWS_SECRET_ACCESS_KEY=wrong"}, "", at(empty)...)
	fails(t, []string{"AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "HOME=/nowhere"}, "no credentials", at(empty)...)
}
