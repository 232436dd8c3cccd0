package server_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/followpress/followpress/internal/testenv/fakes3"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// Refreshes stay on a server without conditional writes, which a warning says once. What somebody else puts while the
// upstream is asked stays, too, and so does a newer profile.
func TestRefreshesWithoutConditionalWrites(t *testing.T) {
	demo := demo(t)
	account := accountOf(t, demo, "104")
	const fresh = 1_795_300_000_000
	for name, c := range map[string]struct {
		lacks    fakes3.Lacks
		warnings int
	}{
		"conditions are kept":    {fakes3.Lacks{}, 0},
		"If-Match has no quotes": {fakes3.Lacks{Match: fakes3.Unquoted}, 0},
		"If-Match is refused":    {fakes3.Lacks{Match: fakes3.None}, 1},
		"conditions are refused": {fakes3.Lacks{Conditions: fakes3.Refused}, 1},
		"conditions are ignored": {fakes3.Lacks{Conditions: fakes3.Ignored}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			fake := fakes3.Start(t, c.lacks)
			b, err := storage.OpenBucket(t.Context(), storage.Location{Bucket: "bucket"}, storage.S3Options{Endpoint: fake.Endpoint})
			if err != nil {
				t.Fatal(err)
			}
			published(t, demo, b)
			details := strings.TrimPrefix(largeList, "/") + "details"
			replaced := func(from, to string) {
				body := strings.Replace(string(fake.Body(details)), from, to, 1)
				if body == string(fake.Body(details)) {
					t.Fatalf("%s has no %s", body, from)
				}
				o := storage.Object{Entry: site.Entry{Key: site.Key(details), Size: int64(len(body)), MD5: site.Sum([]byte(body))}, Body: []byte(body)}
				if _, err := b.Put(t.Context(), o, storage.Always); err != nil {
					t.Fatal(err)
				}
			}
			var log bytes.Buffer
			u := newUpstream(t)
			handler := newHandler(t, b, server.Options{Refresh: u.options(), Log: slog.New(slog.NewTextHandler(&log, nil))})
			for _, step := range []struct {
				name, from, to string // what somebody else changes while the upstream is asked; "" for nothing
				want           []string
			}{
				{name: "first.eth", want: []string{`"name":"first.eth"`}},
				{"second.eth", `"mutuals_rank":"`, `"mutuals_rank":"7`, []string{`"name":"second.eth"`, `"mutuals_rank":"7`}},
				{"third.eth", `"name":"second.eth"`, `"name":"newer.eth"`, []string{`"name":"newer.eth"`}},
			} {
				u.tell(profiles(func(string) site.Profile {
					if step.from != "" {
						replaced(step.from, step.to)
					}
					if step.name == "third.eth" {
						replaced(`"fresh":1795300000000`, `"fresh":1795300000001`)
					}
					return profileOf(step.name, fresh)
				}).handler(t), nil)
				if w := ask(handler, freshDetails); w.Code != http.StatusOK || w.Header().Get("X-Refresh") != "" {
					t.Fatalf("%s: got %d %v %s, want a refresh", step.name, w.Code, w.Header(), w.Body)
				}
				for _, part := range step.want {
					if got := string(fake.Body(details)); !strings.Contains(got, part) || !strings.Contains(got, account) {
						t.Errorf("%s: got %s, want %s", step.name, got, part)
					}
				}
				if got := string(fake.Body(string(site.RefreshKey(site.Details, "104")))); !strings.Contains(got, step.name) {
					t.Errorf("%s: got %q kept, want it", step.name, got)
				}
			}
			if n := strings.Count(log.String(), "no conditional writes"); n != c.warnings {
				t.Errorf("got %d warnings, want %d: %s", n, c.warnings, log.String())
			}
		})
	}
}
