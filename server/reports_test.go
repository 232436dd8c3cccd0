package server_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A report that is put into the bucket, replaced or removed shows within a second or so, without a new site.
func TestReportsAreRead(t *testing.T) {
	t.Parallel()
	files, _, err := generator.ToMemory(t.Context(), afero.FromIOFS{FS: fixtures.Demo()}, generator.Options{Config: site.Config{Explorer: true, LeaderboardMax: 10}})
	if err != nil {
		t.Fatal(err)
	}
	to := local(t, files)
	handler := newHandler(t, to, server.Options{})
	ask := func(key site.Key) *http.Response {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, key.URLPath(), nil))
		return w.Result()
	}
	for key, contentType := range map[site.Key]string{
		site.ReportsKey: "application/json", site.ReportKey("2026-01-31", site.ReportPage): "text/html; charset=utf-8",
		site.ReportKey("2026-01-31", site.ReportData): "application/json",
	} {
		if got := ask(key); got.StatusCode != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404 as long as there is none", key, got.StatusCode)
		}
		for _, body := range []string{"first", "second"} {
			object := storage.Object{Entry: site.Entry{Key: key, Size: int64(len(body)), MD5: site.Sum([]byte(body))}, Body: []byte(body)}
			if _, err := to.Put(t.Context(), object, storage.Always); err != nil {
				t.Fatal(err)
			}
			eventually(t, body+" at "+string(key), func() bool {
				got := ask(key)
				return got.StatusCode == http.StatusOK && got.Header.Get("Content-Type") == contentType &&
					got.Header.Get("Cache-Control") == "no-cache" && got.Header.Get("Etag") == `"`+object.MD5.String()+`"`
			})
		}
		if err := to.Delete(t.Context(), []site.Key{key}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "nothing at "+string(key), func() bool { return ask(key).StatusCode == http.StatusNotFound })
	}
}
