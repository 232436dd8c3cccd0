package edge_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dop251/goja"

	"github.com/followpress/followpress/edge"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/data"
)

// tableSite returns a site with a table, in a folder.
func tableSite(t testing.TB) (path string, table []byte) {
	t.Helper()
	path = exploredSite(t, site.APIEFP)
	body, err := os.ReadFile(filepath.Join(path, string(site.RootKey)))
	if err != nil {
		t.Fatal(err)
	}
	root, err := site.ParseRoot(body)
	if err != nil {
		t.Fatal(err)
	}
	root.Config.Data = true
	if body, err = root.Encode(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(path, "_data"), 0o755); err != nil {
		t.Fatal(err)
	}
	table = []byte(strings.Repeat("0123456789", 20_000))
	for key, body := range map[site.Key]string{site.RootKey: string(body), data.Key(data.Follows, 0): string(table), data.PackageKey: `{"resources":[]}`} {
		write(t, path, string(key), body)
	}
	return path, table
}

// TestTablesThroughEdges: on every edge, ranges of tables equal the handler's, first from the
// bucket and then from caches. Nothing compresses tables, and other objects are answered whole.
func TestTablesThroughEdges(t *testing.T) {
	path, _ := tableSite(t)
	const table = "/_data/follows.parquet"
	forEdges(t, func(t *testing.T, s subject) {
		for _, alone := range []bool{false, true} {
			o := newOriginsOf(t, path, "")
			fallbackURL := o.fallback.URL
			if alone {
				fallbackURL = ""
			}
			base := s.start(t, o.bucket.URL+"/bucket", fallbackURL)
			etag := o.direct(t, http.MethodHead, table).header.Get("Etag")
			for _, tc := range []struct {
				path    string
				headers []string
			}{
				{table, []string{"Range", "bytes=0-3"}}, {table, nil}, {table, []string{"Range", "bytes=0-0"}}, {table, []string{"Range", "bytes=7-150002"}}, {table, []string{"Range", "bytes=199990-"}},
				{table, []string{"Range", "bytes=-8"}}, {table, []string{"Range", "bytes=199999-999999999"}}, {table, []string{"Range", "bytes=200000-"}}, {table, []string{"Range", "bytes=0-3,8-9"}},
				{table, []string{"Range", "bytes=0-3", "If-Range", etag}}, {table, []string{"Range", "bytes=0-3", "If-Range", `"x"`}}, {table, []string{"Range", "bytes=0-3", "Accept-Encoding", "gzip, br, zstd"}},
				{table, []string{"Range", "bytes=0-3", "If-None-Match", etag}}, {table, []string{"Accept-Encoding", "gzip, br, zstd"}}, {table + "?x=1", []string{"Range", "bytes=0-3"}},
				{"/_data/ops.parquet", []string{"Range", "bytes=0-3"}}, {"/_data/datapackage.json", []string{"Range", "bytes=0-3"}}, {"/_explore/top", []string{"Range", "bytes=0-3"}},
				{"/api/v1/leaderboard/followers", []string{"Range", "bytes=0-3"}}, {"/api/v1/leaderboard/followers", []string{"Range", "bytes=999999-"}},
			} {
				what := tc.path + " " + strings.Join(tc.headers, " ")
				got, want := ask(t, http.MethodGet, base, tc.path, tc.headers...), ask(t, http.MethodGet, o.fallback.URL, tc.path, tc.headers...)
				if want.status == http.StatusRequestedRangeNotSatisfiable { // each has another text
					got.body, want.body = "", ""
					for _, name := range []string{"Content-Type", "Cache-Control", "Etag"} {
						got.header.Del(name)
						want.header.Del(name)
					}
				}
				if want.status == http.StatusNotModified {
					got.header.Del("Content-Type")
				}
				sameAnswer(t, what, got, want, s.unseen...)
				for _, name := range []string{"Content-Range", "Accept-Ranges", "Content-Encoding"} {
					is, should := got.header.Get(name), want.header.Get(name)
					if strings.HasPrefix(tc.path, table) && is != should && (name != "Accept-Ranges" || want.status == http.StatusOK) {
						t.Errorf("%s: %s: got %q, want %q", what, name, is, should)
					}
				}
			}
			if got, want := ask(t, http.MethodHead, base, table), o.direct(t, http.MethodHead, table); got.status != want.status || got.header.Get("Accept-Ranges") != "bytes" || got.header.Get("Content-Length") != want.header.Get("Content-Length") {
				t.Errorf("HEAD: got %d, %v, want %v", got.status, got.header, want.header)
			}
		}
	}, "cloudfront") // TestCloudFrontTables has its own servers for ranges
}

// TestCloudFrontTables: the function leaves a part to CloudFront where it is of a table, and the policy lets readers know.
func TestCloudFrontTables(t *testing.T) {
	for _, api := range []string{site.APISpec, site.APIEFP} {
		for _, has := range []bool{false, true} {
			dir := render(t, "cloudfront", "https://bucket.example.org", "https://fallback.example.org", "", func(o *edge.Options) {
				c, err := site.Config{API: api, Data: has}.WithDefaults()
				if err != nil {
					t.Fatal(err)
				}
				o.Config = c
			})
			code, err := os.ReadFile(filepath.Join(dir, "function.js"))
			if err != nil {
				t.Fatal(err)
			}
			stack, err := os.ReadFile(filepath.Join(dir, "cloudfront.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(stack), "Header: Accept-Ranges") == has {
				t.Errorf("data %v: got the reverse for Accept-Ranges", has)
			}
			c := &cloudFront{t: t, vm: goja.New()}
			c.load(string(code))
			for path, kept := range map[string]bool{"/_data/follows.parquet": has, "/_data/follows-0002.parquet": has, "/_data/datapackage.json": false, "/_site": false} {
				if strings.HasPrefix(path, "/_data") && !has {
					continue // no route
				}
				e := event(httptest.NewRequest(http.MethodGet, "/", nil), path, "")
				e["request"].(value)["headers"] = value{"range": value{"value": "bytes=0-3"}, "if-range": value{"value": "x"}, "if-match": value{"value": "x"}}
				got, err := c.handler(goja.Undefined(), c.vm.ToValue(e))
				if err != nil {
					t.Fatal(err)
				}
				left := got.Export().(value)["headers"].(value)
				if (left["range"] != nil && left["if-range"] != nil) != kept || left["if-match"] != nil {
					t.Errorf("%s: got the headers %v, want those of ranges kept: %v", path, left, kept)
				}
			}
		}
	}
}
