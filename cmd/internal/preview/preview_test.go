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
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/generate"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/siteflags"
	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

func TestMain(m *testing.M) {
	tempdir.InMemory()
	m.Run()
}

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
	go func() { _, _ = io.Copy(io.Discard, stdout) }() // a site of the whole API has more
	if base == "" {
		t.Fatalf("no address was printed: %v", lines.Err())
	}
	return base, printed
}

// direct follows no redirect.
var direct = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func get(t *testing.T, url string) (status int, contentType, body string) {
	t.Helper()
	response, err := direct.Get(url)
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

// The start page has every endpoint. Every URL that the command prints, and every link of that page, is answered.
func TestEveryLinkWorks(t *testing.T) {
	tar := t.TempDir() + "/site.tar"
	snapshot := afero.NewBasePathFs(afero.NewOsFs(), "../../../fixtures/conformance/snapshot")
	folder := filepath.Join(filepath.Dir(tar), "bucket")
	for _, out := range []string{tar, folder} {
		if _, err := generator.ToPath(context.Background(), snapshot, out, generator.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	for name, f := range map[string]Command{
		"demo":     {Addr: "127.0.0.1:0"},
		"snapshot": {Addr: "127.0.0.1:0", Snapshot: "../../../fixtures/conformance/snapshot"},
		"site":     {Addr: "127.0.0.1:0", Site: tar},
		"bucket":   {Addr: "127.0.0.1:0", Site: "file://" + folder},
		"efp":      {Addr: "127.0.0.1:0", Content: generate.Content{Flags: siteflags.Flags{API: "efp"}}},
	} {
		t.Run(name, func(t *testing.T) {
			base, urls := preview(t, f)
			status, contentType, page := get(t, base+"/")
			if status != http.StatusOK || contentType != "text/html; charset=utf-8" {
				t.Fatalf("the start page: %d %s", status, contentType)
			}
			config, err := site.Config{API: f.API}.WithDefaults()
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range config.Routes() {
				if r.UnderAPI() && !strings.Contains(html.UnescapeString(page), r.Path(config)) {
					t.Errorf("the start page lacks %s", r.Path(config))
				}
			}
			for _, link := range regexp.MustCompile(`<a href="([^"]+)"`).FindAllStringSubmatch(page, -1) {
				urls = append(urls, base+html.UnescapeString(link[1]))
			}
			if len(urls) < 25 {
				t.Errorf("only %d links", len(urls))
			}
			for _, url := range urls {
				status, contentType, body := get(t, url)
				if status != http.StatusOK && status != http.StatusFound || strings.Contains(contentType, "json") && !json.Valid([]byte(body)) {
					t.Errorf("%s: %d %s %.100s", url, status, contentType, body)
				}
				if strings.Contains(url, "?") && strings.HasSuffix(body, "[]}") {
					t.Errorf("%s: got %s, want an answer that is not empty", url, body)
				}
			}
		})
	}
}

// Without --addr it takes a port that is free, with it only that one.
func TestPort(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:8080")
	if err != nil {
		busy, err = net.Listen("tcp", "127.0.0.1:0") // another program has 8080
	}
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	chosen, err := new(Command).listen()
	if err != nil {
		t.Fatal(err)
	}
	defer chosen.Close()
	if got := chosen.Addr().String(); !strings.HasPrefix(got, "127.0.0.1:80") || got == "127.0.0.1:8080" {
		t.Errorf("got %s, want a port after 8080", got)
	}
	if _, err := (&Command{Addr: chosen.Addr().String()}).listen(); err == nil || !strings.Contains(err.Error(), "--addr") {
		t.Errorf("an address that is in use: got %v, want an error that names --addr", err)
	}
}

// Preview opens the explorer, which links to the page of the API and back. All files that the
// explorer loads exist.
func TestOpensOnTheExplorer(t *testing.T) {
	var f Command
	f.Addr, f.Explorer = "127.0.0.1:0", true
	base, _ := preview(t, f)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, path := range []string{"/", "/_explore", "/_explore/"} {
		response, err := client.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if to := response.Header.Get("Location"); response.StatusCode != http.StatusFound || to != "/_explore/index.html" {
			t.Errorf("%s: got %d and Location %q, want 302 and the explorer", path, response.StatusCode, to)
		}
	}
	status, contentType, page := get(t, base+"/_explore/index.html")
	if status != http.StatusOK || contentType != "text/html; charset=utf-8" || strings.Count(page, `<meta name="followpress-start" content="../_preview">`) != 1 {
		t.Errorf("the explorer: got %d, %s and %s, want the page with the place of the other one", status, contentType, page)
	}
	for _, loaded := range regexp.MustCompile(`(?:src|href)="([a-z]+-[^"]+)"`).FindAllStringSubmatch(page, -1) {
		want := map[bool]string{true: "text/javascript", false: "text/css; charset=utf-8"}[strings.HasSuffix(loaded[1], ".js")]
		if status, contentType, _ := get(t, base+"/_explore/"+loaded[1]); status != http.StatusOK || contentType != want {
			t.Errorf("%s: got %d and %s, want 200 and %s", loaded[1], status, contentType, want)
		}
	}
	if status, contentType, start := get(t, base+"/_preview"); status != http.StatusOK || contentType != "text/html; charset=utf-8" ||
		!strings.Contains(start, `href="/_explore/index.html"`) {
		t.Errorf("the page of the API: got %d, %s and %.300s, want a link to the explorer", status, contentType, start)
	}
	for path, want := range map[string]string{"/index.html": "text/html; charset=utf-8", "/_explore/sw.js": "text/javascript", "/_explore/top": "application/json",
		"/_explore/network": "application/json"} {
		if status, contentType, _ := get(t, base+path); status != http.StatusOK || contentType != want {
			t.Errorf("%s: got %d and %s, want 200 and %s", path, status, contentType, want)
		}
	}
	for _, path := range []string{"/_explore/none-AAAAAAAA.js", "/_explore/..%2fsecret", "/_reports/index", "/_preview/", "/index.htm"} {
		if status, contentType, _ := get(t, base+path); status != http.StatusNotFound || contentType != "application/problem+json" {
			t.Errorf("%s: got %d and %s, want 404 and a problem", path, status, contentType)
		}
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

// A site is served as it was generated: a flag that would have no effect is refused.
func TestFlagsOfASnapshotWithASite(t *testing.T) {
	for _, flag := range []string{"--on-invalid=skip", "--refreshed=_refresh", "--base-path=x", "--badges-field=x",
		"--leaderboard-max=50", "--api=efp", "--names=lookup", "--explorer=false", "--profile-url=https://x/{address}"} {
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

// The demo has the whole API unless another is asked for. A snapshot of the reader's has that of generate.
func TestAPIOfTheDemo(t *testing.T) {
	for _, c := range []struct {
		env  string
		args []string
		want string
	}{
		{"", nil, site.APIEFP},
		{"", []string{"--names=lookup"}, site.APIEFP},
		{"", []string{"--api=spec"}, site.APISpec},
		{"spec", nil, site.APISpec},
		{"spec", []string{"--api=efp"}, site.APIEFP},
		{"", []string{"--snapshot=folder"}, site.APISpec},
		{"snapshot", nil, site.APISpec},
		{"efp", []string{"--snapshot=folder"}, site.APIEFP},
	} {
		t.Run("", func(t *testing.T) {
			switch c.env {
			case "":
			case "snapshot":
				t.Setenv("FOLLOWPRESS_SNAPSHOT", "folder")
			default:
				t.Setenv("FOLLOWPRESS_API", c.env)
			}
			var f Command
			if _, err := command.NewParser("preview", "", &f).Parse(c.args); err != nil || f.API != c.want {
				t.Errorf("%q in the environment, %q: got the API %q and %v, want %q", c.env, c.args, f.API, err, c.want)
			}
			// The demo itself follows the specification. With an explicit API, the badges are those
			// of generate.
			want := map[bool]string{true: badgesField}[c.env == "" && !slices.ContainsFunc(c.args, func(arg string) bool { return !strings.HasPrefix(arg, "--names") })]
			if f.BadgesField != want {
				t.Errorf("%q in the environment, %q: got the badges field %q, want %q", c.env, c.args, f.BadgesField, want)
			}
		})
	}
}

// A key to sign with would have no effect.
func TestPreviewSignsNothing(t *testing.T) {
	f := Command{}
	f.RefreshKey = "key"
	if err := f.Validate(); err == nil || !strings.Contains(err.Error(), "preview keeps refreshed data in memory") {
		t.Errorf("got %v, want an error that says why", err)
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

// refreshed requests a URL, and returns the body and the value of X-Refresh.
func refreshed(t *testing.T, url string) (body, why string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: got %d, %v", url, response.StatusCode, err)
	}
	return string(text), response.Header.Get("X-Refresh")
}

// The commands printed by the demo show a newer answer from the first time, and then that refreshes
// are limited.
func TestDemoIsFresh(t *testing.T) {
	base, printed := preview(t, Command{Addr: "127.0.0.1:0"})
	shown := 0
	for _, url := range printed {
		stored, isFresh := strings.CutSuffix(url, "?cache=fresh")
		if !isFresh {
			continue
		}
		shown++
		before, _ := refreshed(t, stored)
		newer, why := refreshed(t, url)
		if newer == before || why != "" {
			t.Errorf("%s: got X-Refresh %q and %s, want an answer other than the stored one", url, why, newer)
		}
		if strings.HasSuffix(stored, "/details") && !strings.Contains(newer, "says the demo's upstream]") {
			t.Errorf("%s: got %s, want what the demo's upstream says", url, newer)
		}
		if strings.HasSuffix(stored, "/badges") && (strings.Contains(newer, `"participated":false`) || !strings.Contains(before, `"participated":false`)) {
			t.Errorf("%s: got\n%s\nwant a badge of every event, instead of\n%s", url, newer, before)
		}
		if again, why := refreshed(t, url); again != newer || why != "limited" {
			t.Errorf("%s again: got X-Refresh %q and %s, want limited and the stored answer", url, why, again)
		}
		if after, _ := refreshed(t, stored); after != newer {
			t.Errorf("%s afterwards: got %s, want the refreshed answer", stored, after)
		}
	}
	if shown != 2 {
		t.Errorf("got the commands %q, want two with cache=fresh", printed)
	}
	if _, why := refreshed(t, base+"/api/v1/lists/4/details?cache=fresh"); why != "" {
		t.Errorf("another list: got X-Refresh %q, want a fresh answer", why)
	}
}

// Preview does not change a site. A new site replaces all refreshed answers.
func TestPreviewOfASiteChangesNothing(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "out")
	demo := afero.Fs(afero.FromIOFS{FS: fixtures.Demo()})
	if _, err := generator.ToPath(t.Context(), demo, folder, generator.Options{NoSync: true}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "api/v1/lists/4/details")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"name":"newer.eth","fresh":1795300000000}`)
	}))
	defer upstream.Close()
	c := Command{Addr: "127.0.0.1:0", Site: folder}
	c.ProfileUpstream = upstream.URL + "/{address}"
	base, _ := preview(t, c)
	for _, path := range []string{"?cache=fresh", ""} {
		if body, why := refreshed(t, base+"/api/v1/lists/4/details"+path); !strings.Contains(body, `"newer.eth"`) || why != "" {
			t.Errorf("got X-Refresh %q and %s, want what the upstream says", why, body)
		}
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("got %v and the object %s, want it as it was", err, after)
	}
	if _, err := os.Stat(filepath.Join(folder, "_refresh")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want no folder of refreshed objects", err)
	}
}

// Under the whole API the buckets of users have another form: their lists are in an object.
func TestSampleOfTheWholeAPI(t *testing.T) {
	const (
		address, other = "0x0101010101010101010101010101010101010101", "0x0202020202020202020202020202020202020202"
		listless       = "0x0303030303030303030303030303030303030303"
	)
	files := afero.NewMemMapFs()
	for key, body := range map[string]string{
		"leaderboard/following":        `[{"rank":1,"address":"` + address + `","following_count":"1"}]`,
		"users/" + address + "/lists":  `{"primary_list":"7","lists":["3","7"]}`,
		"lists/7/details":              `{"address":"` + address + `","ens":{"name":"alice.eth"}}`,
		"lists/7/searchFollowing":      `{"following":[{"data":"` + other + `","ens":{"name":"bob.eth"}},{"data":"` + listless + `"}]}`,
		"users/" + other + "/lists":    `{"primary_list":"8","lists":["8"]}`,
		"users/" + listless + "/lists": `{"primary_list":null,"lists":["9"]}`,
	} {
		if err := afero.WriteFile(files, "api/v1/"+key, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	config, err := site.Config{API: site.APIEFP}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	got, err := findSample(t.Context(), storage.NewFolder(files), &site.Root{Config: config})
	if want := (sample{TokenID: "7", Address: address, Name: "alice.eth", Term: "bob", Other: other, Listless: listless}); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}
