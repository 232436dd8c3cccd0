package server_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
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

// newUpstream starts an upstream without accounts.
func newUpstream(t testing.TB) *upstream {
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
