package publish

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/purger"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A cache records the URLs that it has to forget.
type cache struct {
	*httptest.Server
	mu     sync.Mutex
	told   []string
	status int // The status of all answers.
}

func newCache(t *testing.T) *cache {
	t.Helper()
	c := &cache{status: http.StatusOK}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.told = append(c.told, r.RequestURI)
		w.WriteHeader(c.status)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *cache) wasTold() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	told := c.told
	c.told = nil
	return told
}

// about reports whether one of the requests was for a URL that ends in this.
func about(told []string, end string) bool {
	return slices.ContainsFunc(told, func(uri string) bool { return strings.HasSuffix(uri, end) })
}

// changedDemo returns the site of the demo with its files changed.
func changedDemo(t *testing.T, change func(name, text string) string) string {
	t.Helper()
	return generated(t, demoSnapshot(t, func(t *testing.T, dir string) {
		for name, text := range readSite(t, dir) {
			writeFile(t, dir, string(name), change(string(name), text))
		}
	}), "site", site.Config{})
}

// parsed returns a publish with these flags.
func parsed(t *testing.T, args ...string) *Publish {
	t.Helper()
	p := &Publish{}
	parser, err := kong.New(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(args); err != nil {
		t.Fatal(err)
	}
	return p
}

// now returns an origin that serves the current site of a folder.
func now(t *testing.T, folder string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, err := server.New(r.Context(), storage.OpenLocal(folder), server.Options{})
		if err != nil {
			t.Error(err)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// urisOf returns the URLs of all objects of a site, some of them with queries.
func urisOf(t *testing.T, folder string) []string {
	t.Helper()
	config, err := site.Config{}.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	err = filepath.WalkDir(folder, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		key := site.Key(filepath.ToSlash(strings.TrimPrefix(name, folder+string(filepath.Separator))))
		route, ok := config.RouteOf(key)
		if !ok {
			t.Errorf("%s is no key", key)
			return nil
		}
		uri := (&url.URL{Path: "/" + string(key)}).EscapedPath()
		all = append(all, uri)
		for _, p := range route.Params {
			switch p {
			case site.ParamLimit:
				all = append(all, uri+"?limit=3", uri+"?limit=100")
			case site.ParamOffset:
				all = append(all, uri+"?limit=50&offset=2")
			case "term":
				all = append(all, uri+"?term=0x")
			case "includeTags":
				all = append(all, uri+"?includeTags=false")
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// withoutLast leaves out the last follow of the longest list: its first page, and so
// the default search, stays as it is.
func withoutLast(name, text string) string {
	if name != "records.ndjson" {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i], `{"token_id":"104",`) {
			return strings.Join(slices.Delete(lines, i, i+1), "")
		}
	}
	return text
}

// A purgedReport is the report of a publish that purges.
type purgedReport struct {
	publisher.Report
	Purged []purger.Result
}

// A publish purges changed objects and nothing else, and a dry run says so.
func TestPurge(t *testing.T) {
	first, second := demoSite(t, "site"), changedDemo(t, withoutLast)
	dest, cache := "file://"+filepath.Join(t.TempDir(), "out"), newCache(t)
	args := []string{"--site", second, "--dest", dest, "--purge", "http:" + cache.URL + "{path}", "--purge-wait", "0s"}
	done(t, "publish", "--site", first, "--dest", dest)

	if _, stderr := done(t, "publish", append(args, "--dry-run")...); !strings.Contains(stderr, "to purge, in ") || !strings.Contains(stderr, "/lists/104/searchFollowing") {
		t.Errorf("dry run: got %s", stderr)
	}
	if told := cache.wasTold(); len(told) > 0 {
		t.Errorf("a dry run got requests for %q", told)
	}

	report, _ := reported[purgedReport](t, "publish", args...)
	told := cache.wasTold()
	if !about(told, "/_site") || !about(told, "/lists/104/searchFollowing?*") || !about(told, "/lists/104/records?includeTags=false") || about(told, "/lists/4/details") {
		t.Errorf("got requests for %q, want those for the list that was changed", told)
	}
	if report.Outcome != publisher.Published || len(report.Purged) != 1 || report.Purged[0].Everything || report.Purged[0].Items == 0 || report.Purged[0].Requests != len(told) {
		t.Errorf("the report: got %+v after %d requests", report.Purged, len(told))
	}
	if _, stderr := done(t, "publish", args...); !strings.Contains(stderr, "unchanged") {
		t.Errorf("again: got %s", stderr)
	}
	if told := cache.wasTold(); len(told) > 0 {
		t.Errorf("nothing changed, but it got requests for %q", told)
	}
}

// If not all changes are known, or there are too many, everything is purged.
func TestPurgeEverything(t *testing.T) {
	first, second := demoSite(t, "site"), changedDemo(t, withoutLast)
	another := generated(t, demoSnapshot(t, asItIs), "site", site.Config{BadgesField: "b"})
	cache := newCache(t)
	for _, c := range []struct {
		name string
		args []string
		mark bool
	}{
		{"too many changes", []string{"--site", second, "--purge-max", "5"}, false},
		{"none is few enough", []string{"--site", second, "--purge-max", "0"}, false},
		{"a run was cut off", []string{"--site", second}, true},
		{"another setting", []string{"--site", another}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "out")
			done(t, "publish", "--site", first, "--dest", "file://"+to)
			if c.mark {
				writeFile(t, to, string(site.MarkKey), "{}")
			}
			args := append([]string{"--dest", "file://" + to, "--purge", "http:" + cache.URL + "{path}", "--purge-wait", "0s"}, c.args...)
			if status, _, stderr := runPublish(args...); status != command.Done || !strings.Contains(stderr, "everything, in 1 request;") {
				t.Errorf("got status %d: %s", status, stderr)
			}
			if told := cache.wasTold(); !slices.Equal(told, []string{"/*"}) {
				t.Errorf("it got requests for %q", told)
			}
		})
	}
}

// If only the purge fails, the message says that the site is published, and what to do.
func TestPurgeFails(t *testing.T) {
	from, to := demoSite(t, "site"), filepath.Join(t.TempDir(), "out")
	cache, other := newCache(t), newCache(t)
	cache.status = http.StatusServiceUnavailable
	summary := filepath.Join(t.TempDir(), "summary")
	t.Setenv("GITHUB_STEP_SUMMARY", summary)
	const token = "a-token-in-a-query"
	purge := []string{"--purge", "http:" + cache.URL + "/?k=" + token, "--purge", "http:" + other.URL, "--patience", "1ms", "--purge-wait", "1ms"}
	status, stdout, stderr := runPublish(append(purge, "--site", from, "--dest", "file://"+to, "--report", "-", "--log-level", "debug")...)
	if strings.Contains(stdout+stderr, token) {
		t.Errorf("the token is in what a person reads: %s%s", stdout, stderr)
	}
	line := lastLine(stderr)
	if status != command.Failed || !strings.Contains(line, "the site is published") || !strings.Contains(line, "followpress purge") || !strings.Contains(line, "503") || !strings.Contains(line, cache.URL) {
		t.Errorf("got status %d: %s", status, stderr)
	}
	if !strings.Contains(stdout, `"outcome": "published"`) || !strings.Contains(stdout, "503") || len(other.wasTold()) == 0 {
		t.Errorf("report: got %s", stdout)
	}
	if body, err := os.ReadFile(summary); err != nil || !strings.Contains(string(body), ": failed to purge ") {
		t.Errorf("the summary: %s, %v", body, err)
	}
	equalFolders(t, to, from)

	cache.status = http.StatusOK
	cache.wasTold()
	other.wasTold()
	if status, _, stderr := run("purge", "--patience", "1ms", "--purge", "http:"+cache.URL+"/?k="+token, "--purge", "http:"+other.URL); status != command.Done || !strings.Contains(stderr, "everything") {
		t.Errorf("purge: got status %d: %s", status, stderr)
	}
	if told := append(cache.wasTold(), other.wasTold()...); !slices.Equal(told, []string{"/?k=" + token, "/"}) {
		t.Errorf("purge got requests for %q", told)
	}
}

// Objects that a repair puts back are purged too, even if it leaves foreign objects alone.
func TestPurgeAfterRepair(t *testing.T) {
	from, to := demoSite(t, "site"), filepath.Join(t.TempDir(), "out")
	cache := newCache(t)
	done(t, "publish", "--site", from, "--dest", "file://"+to)
	args := []string{"--site", from, "--dest", "file://" + to, "--purge", "http:" + cache.URL + "{path}", "--purge-wait", "0s"}
	if status, _, stderr := run("repair", args...); status != command.Done || len(cache.wasTold()) > 0 {
		t.Errorf("nothing to repair: got status %d: %s", status, stderr)
	}
	if err := os.Remove(filepath.Join(to, "api/v1/lists/4/details")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, to, "robots.txt", "")
	status, _, stderr := run("repair", args...)
	if told := cache.wasTold(); status != command.Failed || !strings.Contains(lastLine(stderr), "1 foreign objects") || !about(told, "/lists/4/details") {
		t.Errorf("got status %d, got requests for %q: %s", status, told, stderr)
	}
}

// Changes are purged even if the folder of the site is replaced or removed right after
// the publish.
func TestPurgeWithoutTheSite(t *testing.T) {
	first, second := demoSite(t, "site"), changedDemo(t, withoutLast)
	cache, to := newCache(t), filepath.Join(t.TempDir(), "out")
	dest := "file://" + to
	done(t, "publish", "--site", first, "--dest", dest)
	p := parsed(t, "--site", second, "--dest", dest, "--purge", "http:"+cache.URL+"{path}", "--purge-wait", "0s")
	quiet := session{log: slog.New(slog.DiscardHandler), progress: command.NewProgress(io.Discard), stderr: io.Discard}
	told, err := p.publish(t.Context(), quiet, p.opener(p.Dest, &p.signing), false)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(second); err != nil {
		t.Fatal(err)
	}
	_, err = p.purge(t.Context(), quiet, told, false)
	if told := cache.wasTold(); err != nil || !about(told, "/lists/104/searchFollowing") {
		t.Errorf("got requests for %q: %v", told, err)
	}
}

// withoutLastList leaves out the last list.
func withoutLastList(name, text string) string {
	if name != "lists.ndjson" {
		return text
	}
	lines := strings.SplitAfter(strings.TrimSpace(text), "\n")
	return strings.Join(lines[:len(lines)-1], "")
}

// Once the root is replaced readers see the new site: caches are purged even if stale
// objects cannot be deleted. Both are reported.
func TestPurgeAfterDeletesThatFail(t *testing.T) {
	first, second := demoSite(t, "site"), changedDemo(t, withoutLastList)
	cache := newCache(t)
	for _, c := range []struct {
		name   string
		answer int // status of the cache
		says   []string
	}{
		{"it purges what it changed", http.StatusOK, []string{"delete api/v1/lists/140/details"}},
		{"both fail", http.StatusForbidden, []string{"delete api/v1/lists/140/details", "403", "the site is published", "followpress purge"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			to := filepath.Join(t.TempDir(), "out")
			done(t, "publish", "--site", first, "--dest", "file://"+to)
			// A folder that is not empty cannot be removed like a file.
			stuck := filepath.Join(to, "api/v1/lists/140/details")
			if err := errors.Join(os.Remove(stuck), os.Mkdir(stuck, 0o755), os.WriteFile(filepath.Join(stuck, "x"), nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			cache.status = c.answer
			status, stdout, stderr := runPublish("--site", second, "--dest", "file://"+to, "--purge", "http:"+cache.URL+"{path}", "--purge-wait", "0s", "--report", "-")
			line := lastLine(stderr)
			for _, says := range c.says {
				if status != command.Failed || !strings.Contains(line, says) {
					t.Errorf("got status %d, want %q: %s", status, says, stderr)
				}
			}
			if told := cache.wasTold(); len(told) == 0 || c.answer == http.StatusOK && !about(told, "/lists/140/details") { // a failure ends the purge
				t.Errorf("got requests for %q", told)
			}
			if !strings.Contains(stdout, `"outcome": "failed"`) || !strings.Contains(stdout, `"live": true`) {
				t.Errorf("report: got %s", stdout)
			}
		})
	}
}

// A run that takes up one that died after its last change purges everything, though it changes nothing.
func TestAResumedRunPurges(t *testing.T) {
	report := publisher.NewReport()
	report.Outcome, report.Live, report.Changed.Unknown = publisher.Unchanged, true, true
	for _, resumed := range []bool{false, true} {
		report.Resumed = resumed
		if what := (&writing{}).changed(&published{Report: report}); (what != nil && what.All) != resumed {
			t.Errorf("resumed %v: got %+v, want everything if it was resumed", resumed, what)
		}
	}
}

// It waits before it purges, and an interrupt ends the wait.
func TestPurgeWaits(t *testing.T) {
	cache := newCache(t)
	begun := time.Now()
	status, _, stderr := runPublish("--site", demoSite(t, "site"), "--dest", "file://"+filepath.Join(t.TempDir(), "out"), "--purge", "http:"+cache.URL+"{path}", "--purge-wait", "1s")
	if took := time.Since(begun); status != command.Done || took < time.Second || !strings.Contains(stderr, "waiting 1s for fallbacks to notice the new site, then purging http:"+cache.URL) || len(cache.wasTold()) == 0 {
		t.Errorf("got status %d after %s: %s", status, took, stderr)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	report := publisher.NewReport()
	report.Outcome, report.Live, report.Changed.Unknown = publisher.Published, true, true
	w := &writing{caches: caches{Purge: []string{"http:" + cache.URL + "{path}"}}, purging: purging{PurgeWait: time.Hour}}
	var said strings.Builder
	told, err := w.purge(ctx, session{stderr: &said}, &published{Report: report}, false)
	if !strings.Contains(said.String(), "waiting 1h0m0s") || !strings.Contains(said.String(), "the site is published") || !strings.Contains(said.String(), "followpress purge") {
		t.Errorf("it said %q", &said)
	}
	if !errors.Is(err, context.Canceled) || len(cache.wasTold()) > 0 || !strings.Contains(told.String(), "failed to purge everything") {
		t.Errorf("interrupted: %v, %s", err, told)
	}
}

// Each service of package purger is in the help of --purge and in docs/purge.md, and its credential is read.
func TestPurgeServices(t *testing.T) {
	_, err := purger.New("", purger.Options{})
	flag, _ := reflect.TypeFor[caches]().FieldByName("Purge")
	docs, docsErr := os.ReadFile("../../../docs/purge.md")
	code, codeErr := os.ReadFile("purge.go")
	if docsErr != nil || codeErr != nil {
		t.Fatal(docsErr, codeErr)
	}
	for _, form := range strings.Split(strings.TrimPrefix(err.Error(), "use "), ", ") {
		kind, _, _ := strings.Cut(form, ":")
		if !strings.Contains(flag.Tag.Get("help"), kind+":") {
			t.Fatalf("cmd/internal/publish/purge.go: the help of --purge lacks %s", form)
		}
		if !strings.Contains(string(docs), "\n| `"+kind+":") {
			t.Fatalf("docs/purge.md: the table of services lacks %s", form)
		}
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[purger.Options]()) {
		if field.Type == reflect.TypeFor[secret.Text]() && !strings.Contains(string(code), field.Name+":") {
			t.Fatalf("cmd/internal/publish/purge.go: purgers does not set purger.Options.%s", field.Name)
		}
	}
}

// A tagCache caches answers under their tags, as Fastly does, until a purge of one of the tags or
// of everything.
type tagCache struct {
	*httptest.Server
	kept map[string]string
	tags map[string][]string
	told []string
}

func newTagCache(t *testing.T) *tagCache {
	t.Helper()
	c := &tagCache{kept: map[string]string{}, tags: map[string][]string{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c.told = append(c.told, r.URL.Path)
		var body struct {
			Keys []string `json:"surrogate_keys"`
		}
		if strings.HasSuffix(r.URL.Path, "/purge") && json.NewDecoder(r.Body).Decode(&body) != nil {
			t.Error("the body is no JSON")
		}
		for uri, tags := range c.tags {
			if strings.HasSuffix(r.URL.Path, "/purge_all") || slices.ContainsFunc(tags, func(tag string) bool { return slices.Contains(body.Keys, tag) }) {
				delete(c.kept, uri)
			}
		}
	}))
	t.Cleanup(c.Close)
	t.Setenv("FASTLY_API_URL", c.URL)
	t.Setenv("FASTLY_API_TOKEN", "token")
	return c
}

// fill asks the origin for the answers missing from the cache.
func (c *tagCache) fill(origin http.Handler, uris []string) {
	for _, uri := range uris {
		if _, ok := c.kept[uri]; ok {
			continue
		}
		w := httptest.NewRecorder()
		origin.ServeHTTP(w, httptest.NewRequest(http.MethodGet, uri, nil))
		c.kept[uri], c.tags[uri] = w.Body.String(), strings.Fields(w.Header().Get("X-Amz-Meta-Surrogate-Key"))
	}
}

// A cache that is purged by tags serves nothing that has changed, under any query. The publish that switches tags on or
// off puts all objects and purges everything.
func TestPurgeByTags(t *testing.T) {
	first, second := demoSite(t, "site"), changedDemo(t, withoutLast)
	to := filepath.Join(t.TempDir(), "out")
	cache := newTagCache(t)
	publish := func(site string, more ...string) *purgedReport {
		t.Helper()
		cache.told = nil
		r, _ := reported[*purgedReport](t, "publish", append([]string{"--site", site, "--dest", "file://" + to, "--purge", "fastly:service1",
			"--purge-url", "https://api.example.org", "--purge-wait", "0s"}, more...)...)
		return r
	}
	publish(first)
	on := publish(first, "--tags", "fastly")
	if on.Outcome != publisher.Published || on.Plan.Put != on.Site.Objects || len(on.Purged) != 1 || !on.Purged[0].Everything {
		t.Errorf("switched on: got %s, %+v, want all objects put again, and everything purged", &on.Report, on.Purged)
	}
	uris := slices.Compact(slices.Sorted(slices.Values(append(urisOf(t, first), urisOf(t, second)...))))
	cache.fill(now(t, to), uris)
	before := len(cache.kept)

	r := publish(second, "--tags=fastly")
	if len(r.Purged) != 1 || !r.Purged[0].Tags || r.Purged[0].Everything || r.Purged[0].Requests != 1 || !slices.Equal(cache.told, []string{"/service/service1/purge"}) {
		t.Errorf("purge: got %+v in %q, want one request with tags", r.Purged, cache.told)
	}
	if kept := len(cache.kept); kept < 100 || kept == before {
		t.Errorf("kept: got %d of %d answers, want most of them", kept, before)
	}
	cache.fill(now(t, to), uris)
	for _, uri := range uris {
		fresh := httptest.NewRecorder()
		now(t, to).ServeHTTP(fresh, httptest.NewRequest(http.MethodGet, uri, nil))
		if cache.kept[uri] != fresh.Body.String() {
			t.Errorf("%s: got an old answer, with the tags %q", uri, cache.tags[uri])
		}
	}

	if r := publish(second, "--tags=fastly"); r.Outcome != publisher.Unchanged || len(cache.told) > 0 {
		t.Errorf("again: got %s and %q, want nothing", r.Outcome, cache.told)
	}
	done(t, "repair", "--site", second, "--dest", "file://"+to)
	if off := publish(second); off.Outcome != publisher.Published || off.Plan.Put != off.Site.Objects || !off.Purged[0].Everything {
		t.Errorf("switched off: got %s, %+v, want all objects put again, and everything purged", &off.Report, off.Purged)
	}
	if status, _, stderr := runPublish("--site", second, "--dest", "file://"+to, "--tags", "akamai"); status != command.Usage || !strings.Contains(stderr, "akamai") {
		t.Errorf("an unknown service: got status %d: %s", status, stderr)
	}
}

// More objects than --purge-max are purged by the tag of their group, if there are tags.
func TestTagsForManyObjects(t *testing.T) {
	first, second := demoSite(t, "site"), changedDemo(t, withoutLast)
	to := filepath.Join(t.TempDir(), "out")
	newTagCache(t)
	args := func(site string, most string) []string {
		return []string{"--site", site, "--dest", "file://" + to, "--tags", "fastly", "--tags", "cloudfront", "--purge", "fastly:service1",
			"--purge-url", "https://api.example.org", "--purge-wait", "0s", "--purge-max", most}
	}
	done(t, "publish", args(first, "10")...)
	if status, _, stderr := runPublish(args(second, "10")...); status != command.Done || !strings.Contains(stderr, " tags, in 1 request;") {
		t.Errorf("got status %d: %s, want tags", status, stderr)
	}
	if status, _, stderr := runPublish(args(first, "0")...); status != command.Done || !strings.Contains(stderr, "fastly:service1: everything") {
		t.Errorf("always everything: got status %d: %s", status, stderr)
	}
}
