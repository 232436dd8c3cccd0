package openapi_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/templates/openapi"
)

const (
	npmTools    = "../../internal/tools/packages/node_modules"
	pythonTools = "../../.tools/openapi-client/bin"
)

// tool runs an installed program in a folder and returns its output. A failure ends the test.
func tool(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	program, err := filepath.Abs(program)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v; `make test-tools` installs it", err)
	}
	command := exec.Command(program, args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(program), strings.Join(args, " "), err, out)
	}
	return string(out)
}

// The recommended rules of Redocly and Spectral find nothing in the descriptions, warnings included.
func TestLinters(t *testing.T) {
	servers.Wanted(t)
	dir := t.TempDir()
	write(t, dir, "spectral.yaml", []byte(`extends: ["spectral:oas"]`))
	write(t, dir, "redocly.yaml", []byte("extends: [recommended-strict]\n"))
	var files []string
	for name, config := range apis(t) {
		config.Data = true
		files = append(files, strings.ReplaceAll(name, " ", "-")+".json")
		write(t, dir, files[len(files)-1], describe(t, config).text)
	}
	tool(t, dir, npmTools+"/.bin/redocly", append([]string{"lint"}, files...)...)
	tool(t, dir, npmTools+"/.bin/spectral", append([]string{"lint", "--ruleset", "spectral.yaml", "--fail-severity", "hint"}, files...)...)
}

// TestGeneratedClients generates clients in TypeScript and Python from the descriptions that a server serves, and
// calls that server with them.
func TestGeneratedClients(t *testing.T) {
	servers.Wanted(t)
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Abs(npmTools)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "package.json", []byte(`{"type":"module"}`))
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	urls := map[string]string{}
	for name, config := range map[string]site.Config{
		"spec": {}, "efp": {API: site.APIEFP, Data: true, HistoryWindow: site.Window(site.DefaultHistoryWindow)},
	} {
		urls[name] = serve(t, config)
		answer, err := http.Get(urls[name] + "/openapi.json")
		if err != nil {
			t.Fatal(err)
		}
		description, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("/openapi.json: got status %d and error %v", answer.StatusCode, err)
		}
		write(t, dir, name+".json", description)
		tool(t, dir, npmTools+"/.bin/openapi-typescript", name+".json", "--output", name+".ts")
		tool(t, dir, pythonTools+"/openapi-python-client", "generate", "--path", name+".json", "--output-path", name, "--meta", "none",
			"--config", "python.yaml", "--fail-on-warning")
	}
	tool(t, dir, npmTools+"/.bin/tsc")
	for name, url := range urls {
		tool(t, dir, node, "--input-type=module", "--eval", fmt.Sprintf("await (await import('./client.js')).%s(%q)", name, url))
		called := tool(t, dir, pythonTools+"/python", "client.py", name, url)
		if got, want := strings.TrimSpace(called), map[string]string{"spec": "6", "efp": "63"}[name]; got != want {
			t.Errorf("%s: the Python client called %s operations, want %s", name, got, want)
		}
	}
}

// serve serves a site of the demo on loopback and returns its URL.
func serve(t *testing.T, config site.Config) string {
	t.Helper()
	files, _, err := generator.ToMemory(t.Context(), afero.FromIOFS{FS: fixtures.Demo()}, generator.Options{Config: config, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := memsite.Read(files)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := server.New(t.Context(), objects, server.Options{Log: slog.New(slog.DiscardHandler), Describe: openapi.Describe})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { handler.Close() })
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

func write(t *testing.T, dir, name string, body []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), body, 0o644); err != nil {
		t.Fatal(err)
	}
}
