package publish

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/purger"
)

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
	type told struct {
		publisher.Report
		Purged []purger.Result
	}
	publish := func(site string, more ...string) *told {
		t.Helper()
		cache.told = nil
		r := &told{}
		status, stdout, stderr := runPublish(append([]string{"--site", site, "--dest", "file://" + to, "--report", "-", "--purge", "fastly:service1",
			"--purge-url", "https://api.example.org", "--purge-wait", "0s"}, more...)...)
		if err := json.Unmarshal([]byte(stdout), r); err != nil || status != command.Done {
			t.Fatalf("publish: got status %d, %v: %s", status, err, stderr)
		}
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
	if status, _, stderr := run("repair", "--site", second, "--dest", "file://"+to); status != command.Done {
		t.Errorf("repair, which keeps the tags: got status %d: %s", status, stderr)
	}
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
	if status, _, stderr := runPublish(args(first, "10")...); status != command.Done {
		t.Fatal(stderr)
	}
	if status, _, stderr := runPublish(args(second, "10")...); status != command.Done || !strings.Contains(stderr, " tags, in 1 request;") {
		t.Errorf("got status %d: %s, want tags", status, stderr)
	}
	if status, _, stderr := runPublish(args(first, "0")...); status != command.Done || !strings.Contains(stderr, "fastly:service1: everything") {
		t.Errorf("always everything: got status %d: %s", status, stderr)
	}
}
