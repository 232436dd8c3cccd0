package server_test

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/testenv/fakes3"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/refresh"
	"github.com/followpress/followpress/storage"
)

var discard = slog.New(slog.DiscardHandler)

// An upstream is a source of fresh data that a test controls.
type upstream struct {
	*httptest.Server
	mu       sync.Mutex
	profiles http.HandlerFunc
	badges   http.HandlerFunc
	asked    []string // paths
	keys     []string // API keys of all requests, "" for none
}

const badgeKey = "a-secret"

// newUpstream starts an upstream with answers; nil means an upstream without accounts.
func newUpstream(t testing.TB, profiles, badges http.HandlerFunc) *upstream {
	t.Helper()
	u := &upstream{profiles: http.NotFound, badges: http.NotFound}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.mu.Lock()
		u.asked, u.keys = append(u.asked, r.URL.Path), append(u.keys, r.Header.Get("X-API-Key"))
		answer := u.profiles
		if strings.HasPrefix(r.URL.Path, "/scan/") {
			answer = u.badges
		}
		u.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(u.Close)
	u.tell(profiles, badges)
	return u
}

// options returns those of a handler without limits of refreshes.
func (u *upstream) options() server.RefreshOptions {
	return server.RefreshOptions{
		ProfileUpstream: u.URL + "/a/{address}", BadgeUpstream: u.URL + "/scan/{address}/{event_id}", BadgeAPIKey: badgeKey,
		Interval: 1, Rate: 1e6, ClientRate: 1e6,
	}
}

// tell sets the answers; nil leaves them.
func (u *upstream) tell(profiles, badges http.HandlerFunc) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if profiles != nil {
		u.profiles = profiles
	}
	if badges != nil {
		u.badges = badges
	}
}

// requests returns the paths that were asked for since the last call.
func (u *upstream) requests() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	asked := u.asked
	u.asked = nil
	return asked
}

// says returns an answer with a body.
func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
}

// profileOf returns an answer to /a/{address}.
func profileOf(name string, fresh int64) site.Profile {
	return site.Profile{
		Name: name, Avatar: "https://img.example/<" + name + ">.png", Display: name,
		Records: json.RawMessage(`{"b":1.50,"a":"<\u2028>"}`), Chains: json.RawMessage(`{}`), Fresh: fresh,
		Errors: json.RawMessage(`{}`),
	}
}

func (p profiles) handler(t testing.TB) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := json.Marshal(p(strings.TrimPrefix(r.URL.Path, "/a/")))
		if err != nil {
			t.Error(err)
		}
		_, _ = w.Write(body)
	}
}

// profiles gives the profile of an address.
type profiles func(address string) site.Profile

// TestRefreshLeavesOutLongTexts: the limit of the site's configuration applies to an
// upstream's answer, so that the next generate gives the same object, and to data that
// was stored before there was a limit.
func TestRefreshLeavesOutLongTexts(t *testing.T) {
	t.Parallel()
	files := demo(t)
	account := accountOf(t, files, "104")
	long := profileOf("new.eth", 1_795_300_000_000)
	long.Avatar = "data:," + strings.Repeat("x", 64<<10)
	want := readObject(t, generated(t, withProfile(t, account, long), site.Config{}), "api/v1/lists/104/details")
	if !strings.Contains(want, `"name":"new.eth","avatar":"","header":`) {
		t.Fatalf("the generator: got %.300s, want the profile without its avatar", want)
	}

	t.Run("fetched", func(t *testing.T) {
		b := local(t, files)
		u := newUpstream(t, profiles(func(string) site.Profile { return long }).handler(t), nil)
		base := listen(t, newHandler(t, b, server.Options{Refresh: u.options()}))
		if _, body := request(t, http.MethodGet, base+freshDetails); body != want {
			t.Errorf("got  %.300s\nwant %s", body, want)
		}
		if kept := content(t, b, "_refresh/")["_refresh/details/104"]; kept == "" || strings.Contains(kept, long.Avatar) {
			t.Errorf("kept: got %.300s, want it without the long avatar", kept)
		}
	})
	t.Run("kept", func(t *testing.T) {
		b := local(t, files)
		kept, err := refresh.KeptProfile{Address: account, Profile: long}.Keep(nil, []byte{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		o := storage.Object{Entry: site.Entry{Key: "_refresh/details/104", Size: int64(len(kept)), MD5: site.Sum(kept)}, Body: kept}
		if _, err := b.Put(t.Context(), o, ""); err != nil {
			t.Fatal(err)
		}
		h := newHandler(t, b, server.Options{Refresh: newUpstream(t, nil, nil).options(), Poll: 10 * time.Millisecond})
		watch(t, h)
		eventually(t, "the refresh is done again", func() bool {
			return content(t, b, "api/v1/lists/104/details")["api/v1/lists/104/details"] == want
		})
	})
}

// TestAnUpstreamThatLeavesMembersOut: omitted members keep their stored value, null and "" clear
// it, and entries that are not strings are omitted and counted. The data kept for the next site
// agrees.
func TestAnUpstreamThatLeavesMembersOut(t *testing.T) {
	t.Parallel()
	files := demo(t)
	account := accountOf(t, files, "104")
	before := profileOf("old.eth", 1_000)
	before.Header, before.Resolver, before.Chains = "https://h.example", account, []byte(`{"eth":"0x1"}`)
	b := local(t, generated(t, withProfile(t, account, before), site.Config{}))
	want := before
	want.Name, want.Display, want.Records, want.Fresh = "new.eth", "", []byte(`{"a":"b"}`), 1_795_300_000_000
	after := readObject(t, generated(t, withProfile(t, account, want), site.Config{}), "api/v1/lists/104/details")

	u := newUpstream(t, nil, nil)
	u.tell(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"name":"new.eth","display":null,"records":{"a":"b","c":7,"d":null},"fresh":1795300000000}`)
	}, nil)
	var log bytes.Buffer
	base := listen(t, newHandler(t, b, server.Options{Refresh: u.options(), Log: slog.New(slog.NewTextHandler(&log, nil))}))
	if _, body := request(t, http.MethodGet, base+freshDetails); body != after {
		t.Errorf("got  %s\nwant %s", body, after)
	}
	kept := content(t, b, "_refresh/")["_refresh/details/104"]
	if rest := `"header":"https://h.example","display":"","records":{"a":"b"},"chains":{"eth":"0x1"}`; !strings.Contains(kept, rest) {
		t.Errorf("kept: got %s, want in it %s", kept, rest)
	}
	if line := "key=api/v1/lists/104/details entries=1"; !strings.Contains(log.String(), line) {
		t.Errorf("log: got %s, want in it %s", log.String(), line)
	}
	if stored := content(t, b, "api/v1/lists/104/details")["api/v1/lists/104/details"]; stored != after {
		t.Errorf("stored: got %s, want %s", stored, after)
	}
}

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
			u := newUpstream(t, nil, nil)
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
