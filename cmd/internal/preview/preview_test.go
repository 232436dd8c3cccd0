package preview

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"html"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	json "github.com/goccy/go-json"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/generator"
)

// preview runs the command until the end of the test and gives the URL that it prints.
func preview(t *testing.T, f Command) (base string, printed []string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	stdout, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := f.Run(ctx, out, io.Discard)
		out.CloseWithError(io.EOF)
		ended <- err
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if _, url, ok := strings.Cut(lines.Text(), "Serving on "); ok {
			base, _, _ = strings.Cut(url, "/ ")
		} else if url, ok := strings.CutPrefix(lines.Text(), "  curl '"); ok {
			printed = append(printed, strings.TrimSuffix(url, "'"))
		}
		if len(printed) == 6 { // one for each endpoint
			break
		}
	}
	if base == "" {
		t.Fatalf("no address was printed: %v", lines.Err())
	}
	return base, printed
}

func get(t *testing.T, url string) (status int, contentType, body string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get("Content-Type"), string(text)
}

// Every URL that the command prints and every link of the start page is answered.
func TestEveryLinkWorks(t *testing.T) {
	tar := t.TempDir() + "/site.tar"
	snapshot := afero.NewBasePathFs(afero.NewOsFs(), "../../../fixtures/conformance/snapshot")
	if _, err := generator.ToPath(context.Background(), snapshot, tar, generator.Options{}); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]Command{
		"demo":     {Addr: "127.0.0.1:0"},
		"snapshot": {Addr: "127.0.0.1:0", Snapshot: "../../../fixtures/conformance/snapshot"},
		"site":     {Addr: "127.0.0.1:0", Site: tar},
	} {
		t.Run(name, func(t *testing.T) {
			base, urls := preview(t, f)
			status, contentType, page := get(t, base+"/")
			if status != http.StatusOK || contentType != "text/html; charset=utf-8" {
				t.Fatalf("the start page: %d %s", status, contentType)
			}
			for _, link := range regexp.MustCompile(`href="([^"]+)"`).FindAllStringSubmatch(page, -1) {
				urls = append(urls, base+html.UnescapeString(link[1]))
			}
			if len(urls) < 25 {
				t.Errorf("only %d links", len(urls))
			}
			for _, url := range urls {
				if status, contentType, body := get(t, url); status != http.StatusOK || !json.Valid([]byte(body)) {
					t.Errorf("%s: %d %s %.100s", url, status, contentType, body)
				}
			}
		})
	}
}

func TestOpenAPINamesEveryEndpoint(t *testing.T) {
	base, _ := preview(t, Command{Addr: "127.0.0.1:0"})
	_, _, body := get(t, base+"/openapi.json")
	var api struct {
		OpenAPI string `json:"openapi"`
		Paths   map[string]struct {
			Get struct {
				Parameters []struct{ Name, In, Description string } `json:"parameters"`
			} `json:"get"`
		} `json:"paths"`
	}
	if err := json.Unmarshal([]byte(body), &api); err != nil {
		t.Fatal(err)
	}
	for path, parameters := range map[string]int{
		"/api/v1/leaderboard/{board}": 2, "/api/v1/lists/{token_id}/records": 2, "/api/v1/lists/{token_id}/details": 2,
		"/api/v1/lists/{token_id}/badges": 2, "/api/v1/lists/{token_id}/searchFollowing": 4, "/api/v1/users/{user}/searchFollowing": 4,
	} {
		if got := len(api.Paths[path].Get.Parameters); got != parameters {
			t.Errorf("%s has %d parameters, want %d", path, got, parameters)
		}
		for _, p := range api.Paths[path].Get.Parameters {
			if p.Description == "" {
				t.Errorf("%s: %s is not described", path, p.Name)
			}
		}
	}
	if len(api.Paths) != 6 {
		t.Errorf("%d paths, want the six endpoints", len(api.Paths))
	}
}

func TestOtherMethodsOfThePages(t *testing.T) {
	base, _ := preview(t, Command{Addr: "127.0.0.1:0"})
	response, err := http.Post(base+"/", "text/plain", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST /: %d", response.StatusCode)
	}
}

// An address that is in use is reported before anything is rendered.
func TestAnAddressThatIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	var told bytes.Buffer
	f := Command{Addr: taken.Addr().String()}
	if err := f.Run(t.Context(), io.Discard, &told); err == nil || !strings.Contains(err.Error(), "--addr") {
		t.Errorf("got %v, want an error that names --addr", err)
	}
	if told.Len() > 0 {
		t.Errorf("it began to render: %s", &told)
	}
}

// A snapshot is rendered as by generate with the same flags.
func TestFlagsOfASnapshot(t *testing.T) {
	snapshot, refreshed := t.TempDir(), t.TempDir()
	const account = "0x00000000000000000000000000000000000000aa"
	for name, text := range map[string]string{
		"meta.json": `{"format":1,"as_of":"2026-01-01T00:00:00Z"}`, "badges.ndjson": "",
		"records.ndjson":  `{"token_id":"1","version":1,"record_type":"address","data":"` + account + `"}` + "\nnot a row\n",
		"lists.ndjson":    `{"token_id":"1","owner":"` + account + `"}`,
		"accounts.ndjson": `{"address":"` + account + `","primary_list":"1","ens":{"name":"old.eth","fresh":1,"avatar":"` + strings.Repeat("x", 301) + `"}}`,
		"events.ndjson":   "",
	} {
		if err := os.WriteFile(filepath.Join(snapshot, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept := filepath.Join(refreshed, "details", "1")
	if err := errors.Join(os.MkdirAll(filepath.Dir(kept), 0o755),
		os.WriteFile(kept, []byte(`{"address":"`+account+`","name":"new.eth","fresh":2,"avatar":"`+strings.Repeat("x", 301)+`"}`), 0o644)); err != nil {
		t.Fatal(err)
	}
	var f Command
	parser, err := kong.New(&f)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--addr=127.0.0.1:0", "--snapshot=" + snapshot, "--base-path=v2", "--badges-field=poaps", "--refreshed=" + refreshed, "--max-profile-text=300"}
	if _, err := parser.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := f.Run(t.Context(), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "records.ndjson") {
		t.Errorf("an invalid row: got %v, want an error that names its table", err)
	}
	f.OnInvalid = "skip"
	base, _ := preview(t, f)
	if status, _, body := get(t, base+"/v2/lists/1/badges"); status != http.StatusOK || body != `{"poaps":[]}` {
		t.Errorf("badges: got %d %s, want 200 with poaps", status, body)
	}
	if _, _, body := get(t, base+"/v2/lists/1/details"); !strings.Contains(body, "new.eth") || strings.Contains(body, "xxx") {
		t.Errorf("details: got %s, want what was refreshed without its long text", body)
	}
	for _, wrong := range []string{"--base-path=/", "--refreshed=", "--refreshed=s3://bucket", "--on-invalid=ask", "--leaderboard-max=-1",
		"--max-profile-text=0", "--max-profile-text=100", "--api=v2", "--names=lookup"} {
		var f Command
		parser, err := kong.New(&f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse([]string{wrong}); err == nil {
			t.Errorf("%s: got no error", wrong)
		}
	}
}

// A site is served as it was generated: a flag that would have no effect is refused.
func TestFlagsOfASnapshotWithASite(t *testing.T) {
	for _, flag := range []string{"--on-invalid=skip", "--refreshed=_refresh", "--endpoint=http://x", "--region=x", "--base-path=x", "--badges-field=x",
		"--leaderboard-max=50", "--max-profile-text=300", "--api=efp", "--names=lookup", "--profile-url=https://x/{address}"} {
		var stdout, stderr bytes.Buffer
		status := command.Run("preview", "", &Command{}, []string{"--site=" + t.TempDir(), flag}, &stdout, &stderr)
		name, _, _ := strings.Cut(flag, "=")
		if status != command.Usage || !strings.Contains(stderr.String(), name+" is for a snapshot") {
			t.Errorf("%s: got status %d, want %d and a line that names it: %s", flag, status, command.Usage, &stderr)
		}
		t.Setenv("FOLLOWPRESS_"+strings.ToUpper(strings.ReplaceAll(name[2:], "-", "_")), flag[len(name)+1:])
	}
	// Variables may be set for another command.
	status := command.Run("preview", "", &Command{}, []string{"--site=" + t.TempDir(), "--addr=127.0.0.1:0"}, io.Discard, io.Discard)
	if status != command.Failed { // there is no site in it
		t.Errorf("from the environment: got status %d, want %d", status, command.Failed)
	}
}

func TestNothingToServe(t *testing.T) {
	for _, f := range []Command{{Snapshot: t.TempDir()}, {Site: t.TempDir()}, {Addr: "nowhere:-1"}} {
		if err := f.Run(context.Background(), io.Discard, io.Discard); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: %v, want one clear line", f, err)
		}
	}
}

// A flag wins over the environment variable of the other, which may be meant for
// another command; two flags exclude each other.
func TestSourceOfTheSite(t *testing.T) {
	for _, c := range []struct {
		env, args      []string
		snapshot, site string
		fails          bool
	}{
		{nil, nil, "", "", false},
		{[]string{"SNAPSHOT"}, nil, "env", "", false},
		{[]string{"SNAPSHOT"}, []string{"--site=flag"}, "", "flag", false},
		{[]string{"SITE"}, []string{"--snapshot=flag"}, "flag", "", false},
		{[]string{"SITE", "SNAPSHOT"}, nil, "", "", true},
		{nil, []string{"--site=a", "--snapshot=b"}, "", "", true},
	} {
		t.Run("", func(t *testing.T) {
			for _, name := range c.env {
				t.Setenv("FOLLOWPRESS_"+name, "env")
			}
			var f Command
			parser, err := kong.New(&f, kong.DefaultEnvars("FOLLOWPRESS"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = parser.Parse(c.args)
			if (err != nil) != c.fails || err == nil && (f.Snapshot != c.snapshot || f.Site != c.site) {
				t.Errorf("%v %v: snapshot %q, site %q, %v", c.env, c.args, f.Snapshot, f.Site, err)
			}
		})
	}
}
