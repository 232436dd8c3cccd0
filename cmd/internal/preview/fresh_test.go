package preview

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

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

// Objects in memory are replaced under the conditions of a bucket, and forgotten with the site that they belong to.
func TestPatched(t *testing.T) {
	files := afero.NewMemMapFs()
	write := func(key site.Key, text string) {
		if err := afero.WriteFile(files, string(key), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(site.RootKey, "1")
	write("a", "old")
	p := &patched{Site: storage.NewFolder(files)}
	put := func(key site.Key, text string, condition storage.Condition) error {
		o := storage.Object{Entry: site.NewEntry(key, []byte(text)), Body: []byte(text)}
		etag, err := p.Put(t.Context(), o, condition)
		if err == nil && etag != site.Sum([]byte(text)).String() {
			t.Errorf("got the ETag %s of %s", etag, text)
		}
		return err
	}
	is := func(key site.Key, want string) {
		t.Helper()
		body, info, err := p.Read(t.Context(), key)
		if errors.Is(err, storage.ErrNotFound) {
			body = []byte("none")
		}
		if string(body) != want || err == nil && info.ETag != site.Sum(body).String() {
			t.Errorf("%s: got %q, %+v, %v, want %q", key, body, info, err, want)
		}
	}
	is(site.RootKey, "1")
	etag := func(text string) storage.Condition { return storage.Condition(site.Sum([]byte(text)).String()) }
	for _, c := range []struct {
		key   site.Key
		text  string
		when  storage.Condition
		holds bool
	}{
		{"a", "x", storage.IfAbsent, false}, {"a", "x", etag("other"), false}, {"a", "new", etag("old"), true}, {"a", "x", etag("old"), false},
		{"b", "x", etag("old"), false}, {"b", "new", storage.IfAbsent, true}, {"b", "x", storage.IfAbsent, false}, {"b", "newer", storage.Always, true},
	} {
		if err := put(c.key, c.text, c.when); (err == nil) != c.holds || err != nil && !errors.Is(err, storage.ErrCondition) {
			t.Errorf("put %s = %s if %s: got %v, want it to hold: %v", c.key, c.text, c.when, err, c.holds)
		}
	}
	is("a", "new")
	is("b", "newer")
	is(site.RootKey, "1") // the same root
	is("a", "new")
	write(site.RootKey, "2")
	is(site.RootKey, "2")
	is("a", "old")
	is("b", "none")
}

// The upstream of the demo knows the demo's accounts and events, and a refresh accepts each of its
// answers.
func TestDemoUpstream(t *testing.T) {
	u, err := newDemoUpstream(fixtures.Demo())
	if err != nil || len(u.profiles) != 40 || len(u.events) != 5 {
		t.Fatalf("got %d profiles and %d events, %v, want 40 and 5", len(u.profiles), len(u.events), err)
	}
	const unknown = "/0x00000000000000000000000000000000000000ff"
	for path, status := range map[string]int{
		"/0x974b780c0cfb5343cbb4a44384cf9a10f80eb9cd": 200, unknown: 200, unknown + "/214087": 200, unknown + "/1": 404, "/0x97/": 404,
	} {
		w := httptest.NewRecorder()
		u.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != status || status == 200 && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: got %d %s, want %d", path, w.Code, w.Body, status)
		}
	}
}
