package main

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// An action is action.yml, and which of its steps a test ran.
type action struct {
	t      *testing.T
	Inputs map[string]struct{ Default string }
	Runs   struct {
		Steps []struct {
			Name, If, Run string
			Env           map[string]string
			MayFail       bool `json:"continue-on-error"`
		}
	}
	ran map[string]bool
}

var (
	comparison = regexp.MustCompile(`^inputs\.([a-z-]+) (==|!=) '(.*)'$`)
	expression = regexp.MustCompile(`\$\{\{ (.*?) \}\}`)
)

// holds decides one term of a condition, as GitHub does while no step has failed.
func (a *action) holds(term string, inputs map[string]string) bool {
	m := comparison.FindStringSubmatch(term)
	switch {
	case m != nil:
		return (inputs[m[1]] == m[3]) == (m[2] == "==")
	case term == "!startsWith(inputs.snapshot, 's3://')":
		return !strings.HasPrefix(inputs["snapshot"], "s3://")
	case !slices.Contains([]string{"", "always()", "steps.restore.outcome == 'success'"}, term):
		a.t.Fatalf("action.yml: got the condition %q, which this test cannot decide", term)
	}
	return true
}

// night runs the shell steps in a folder, in a new shell each. It returns the output of the step that failed.
func (a *action) night(dir string, given map[string]string, env ...string) (failure string) {
	a.t.Helper()
	inputs := map[string]string{}
	for name, input := range a.Inputs {
		inputs[name] = input.Default
	}
	for name, value := range given {
		if _, ok := inputs[name]; !ok {
			a.t.Fatalf("action.yml has no input %s", name)
		}
		inputs[name] = value
	}
	for _, step := range a.Runs.Steps {
		left := slices.ContainsFunc(strings.Split(step.If, " && "), func(term string) bool { return !a.holds(term, inputs) })
		if step.Run == "" || left {
			continue
		}
		a.ran[step.Name] = true
		c := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.Run)
		c.Dir, c.Env = dir, append(os.Environ(), env...)
		for name, text := range step.Env {
			value := expression.ReplaceAllStringFunc(text, func(found string) string {
				of := expression.FindStringSubmatch(found)[1]
				if name, ok := strings.CutPrefix(of, "inputs."); ok && !strings.Contains(name, " ") {
					return inputs[name]
				}
				return fmt.Sprint(of != "github.token" && a.holds(of, inputs))
			})
			c.Env = append(c.Env, name+"="+value)
		}
		if out, err := c.CombinedOutput(); err != nil && !step.MayFail {
			return fmt.Sprintf("%s: %v: %s", step.Name, err, out)
		}
	}
	return ""
}

// TestActionSteps runs the shell steps of action.yml with an object store, nodes and a release: a first night from the
// chains, another one, and one of a snapshot that exists. Only steps that use other actions, and gh, are not those of GitHub.
func TestActionSteps(t *testing.T) {
	s3 := servers.Start(t, servers.MinIO)
	s3.Env(t)
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("FOLLOWPRESS_NO_SYNC", "1")
	t.Setenv("FOLLOWPRESS_EXPLORER", "false")
	decode := exec.Command("node", "-p", `JSON.stringify(require("js-yaml").load(require("fs").readFileSync("../../../action.yml", "utf8")))`)
	decode.Dir = root + "/internal/tools/packages"
	text, err := decode.Output()
	if err != nil {
		t.Fatal(err)
	}
	a := &action{t: t, ran: map[string]bool{}}
	if err := json.Unmarshal(text, a); err != nil {
		t.Fatal(err)
	}
	played := history.Random(5, history.Options{Chains: history.Production(), Transactions: 100})
	rpc, _ := startNodes(t, played)
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	bucket, private, release := s3.Bucket(t), s3.Bucket(t), theRelease(t)
	begin := func(dest string) (dir string, env []string) {
		dir = t.TempDir()
		if err := os.Mkdir(dir+"/temp", 0o755); err != nil {
			t.Fatal(err)
		}
		return dir, []string{
			"GITHUB_ACTION_PATH=" + here, "GITHUB_WORKSPACE=" + dir, "RUNNER_TEMP=" + dir + "/temp", "RUNNER_ARCH=" + map[string]string{"amd64": "X64", "arm64": "ARM64"}[runtime.GOARCH],
			"PATH=" + release + ":" + os.Getenv("PATH"), "RELEASE=" + release,
			"FOLLOWPRESS_DEST=s3://" + dest, "FOLLOWPRESS_API=efp", "FOLLOWPRESS_ENDPOINT=" + s3.Endpoint, "FOLLOWPRESS_RPC=" + strings.Join(rpc, ";"),
		}
	}
	has := func(dir string, names ...string) {
		t.Helper()
		for _, name := range names {
			if _, err := os.Stat(dir + "/reports/" + name); err != nil {
				t.Errorf("reports: %v", err)
			}
		}
	}

	inputs := map[string]string{"state": "s3://" + private + "/state.tar", "first-run": "true", "max-age": "1000000h", "publish-report": "true"}
	dir, env := begin(bucket)
	if failure := a.night(dir, inputs, env...); failure != "" {
		t.Fatalf("the first night: %s", failure)
	}
	has(dir, "snapshot.json", "generate.json", "audit.json", "publish.json", "verify.json")

	inputs["first-run"] = "false"
	dir, env = begin(bucket)
	if failure := a.night(dir, inputs, env...); failure != "" {
		t.Fatalf("the second night: %s", failure)
	}
	has(dir, "changes.json", "changes.md")

	folder := t.TempDir()
	if output, err := exec.Command("tar", "-C", root+"/fixtures/demo", "-czf", folder+"/snapshot.tar.gz", ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	url := served(t, http.FileServer(http.Dir(folder))) + "/snapshot.tar.gz"
	dir, env = begin(s3.Bucket(t))
	if failure := a.night(dir, map[string]string{"snapshot": url, "max-age": "1000000h"}, env...); failure != "" {
		t.Errorf("a snapshot that exists: %s", failure)
	}
	for _, step := range a.Runs.Steps {
		if step.Run != "" && !a.ran[step.Name] && step.Name != "Build" { // go build would take minutes
			t.Errorf("the step %q: got no run, want one", step.Name)
		}
	}

	if err := os.WriteFile(release+"/SHA256SUMS", []byte(strings.Repeat("0", 64)+"  "+archive()+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir, env = begin(bucket)
	if failure := a.night(dir, inputs, env...); !strings.HasPrefix(failure, "Install: ") {
		t.Errorf("a release with another digest: got %q, want a failure to install it", failure)
	}
}

// archive returns the name of the release's archive for this machine.
func archive() string { return "followpress_1.0.0_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz" }

// theRelease returns a folder with a release of this program, and a gh that downloads it.
func theRelease(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	inside := strings.TrimSuffix(archive(), ".tar.gz")
	const gh = `#!/bin/sh
case $1 in release) cp "$RELEASE"/*.tar.gz "$RELEASE"/SHA256SUMS . ;; attestation) [ -f "$3" ] ;; *) exit 1 ;; esac
`
	out, err := exec.Command("bash", "-euc", `cd "$1"; mkdir "$2"; ln -s "$3" "$2/followpress"; tar -czf "$2.tar.gz" "$2"; rm -r "$2"; echo "$4" >gh; chmod +x gh`, "-", dir, inside, self, gh).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	body, err := os.ReadFile(dir + "/" + archive())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/SHA256SUMS", fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(body), archive()), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}
