package conventions

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/servers"
)

// startPatience limits the time of all commands in docs/start.md, builds included.
const startPatience = 8 * time.Minute

// Every command of docs/start.md works over MinIO, in order: the demo gets a URL that answers, the
// nightly job replaces the site, and the first site comes back. The test changes only addresses and
// folders.
func TestOnlineInTenMinutes(t *testing.T) {
	minio := servers.Start(t, servers.MinIO)
	minio.Env(t)
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("XDG_DATA_HOME", dir)
	standIns(t, dir)

	blocks := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(read(t, "docs/start.md").text, -1)
	var script strings.Builder
	script.WriteString("trap 'kill $(jobs -p); wait' EXIT\n")
	for _, block := range blocks {
		if strings.Contains(block[1], "cat > nightly.sh") { // the second night changes something
			script.WriteString("cp -r followpress/fixtures/demo changed; sed -i 1d changed/records.ndjson\n" +
				"sed -i 's,^export SNAPSHOT=.*,export SNAPSHOT=changed,' settings\ncurl -sSf \"$BUCKET_URL/_site\" > first\n")
		}
		if strings.HasPrefix(block[1], "followpress publish --site sites/first.tar") {
			script.WriteString("if curl -sSf \"$BUCKET_URL/_site\" | cmp -s - first; then echo 'the night changed nothing'; exit 1; fi\n")
		}
		script.WriteString(strings.Replace(block[1], "\n./nightly.sh\n", "\n./nightly.sh\n./nightly.sh > mail 2>&1 # a night without changes says nothing\n! test -s mail\n", 1))
	}
	script.WriteString("curl -sSf \"$BUCKET_URL/_site\" | cmp - first\n")
	text := script.String()
	for _, place := range [][2]string{
		{"AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=…", fmt.Sprintf("AWS_ACCESS_KEY_ID=%s AWS_SECRET_ACCESS_KEY=%s", minio.AccessKey, minio.SecretKey)},
		{"SERVER=https://…\n", "SERVER=" + minio.Endpoint + "\n"},
		{"BUCKET_URL=https://…/my-graph", "BUCKET_URL=" + minio.Endpoint + "/my-graph"},
		{"caddy run ", "sed -i '1i {\\n\\tadmin off\\n}' edge/Caddyfile; caddy run "}, // one address for the whole machine
		{"127.0.0.1:8080", servers.FreeAddress(t)},
		{"127.0.0.1:8081", servers.FreeAddress(t)},
	} {
		if !strings.Contains(text, place[0]) {
			t.Errorf("docs/start.md: got no %q", place[0])
		}
		text = strings.ReplaceAll(text, place[0], place[1])
	}

	ctx, cancel := context.WithTimeout(t.Context(), startPatience)
	defer cancel()
	run := exec.CommandContext(ctx, "bash", "-euxo", "pipefail", "-c", text)
	run.Dir = dir
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	run.Cancel = func() error { return syscall.Kill(-run.Process.Pid, syscall.SIGKILL) }
	output, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("docs/start.md: %v\n%s", err, output)
	}
	for _, answer := range []string{"32 lists and 47 accounts", `"followers_count":`, `"following_count":`, `{"following":[`} {
		if !strings.Contains(string(output), answer) {
			t.Errorf("docs/start.md: got no %s:\n%s", answer, output)
		}
	}
	table, err := os.ReadFile(filepath.Join(dir, "crontab"))
	if err != nil {
		t.Fatal(err)
	}
	job := strings.Fields(string(table))
	if info, err := os.Stat(job[len(job)-1]); len(job) != 6 || err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("crontab: got %q, %v, want five fields and a program", table, err)
	}
}

// standIns puts fakes first in PATH: a git that clones this tree, and a crontab that writes a file.
func standIns(t *testing.T, dir string) {
	t.Helper()
	tree, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for name, text := range map[string]string{
		"git":     fmt.Sprintf("if [ \"$1\" = clone ]; then exec ln -s %q followpress; fi\nexec %q \"$@\"\n", tree, git),
		"crontab": fmt.Sprintf("if [ \"$1\" = - ]; then exec cat > %q; fi\n", filepath.Join(dir, "crontab")),
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}
