package server_test

import (
	"net/http"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
)

// A user is refreshed as the primary list is. Without one there is nothing to refresh.
func TestRefreshOfAUser(t *testing.T) {
	t.Parallel()
	for _, names := range allNames {
		files := efpSite(t, afero.FromIOFS{FS: fixtures.Demo()}, names)
		account := accountOf(t, files, "104")
		fresh := profileOf("fresh.eth", 1_795_300_000_000)
		want := readObject(t, efpSite(t, withProfile(t, account, fresh), names), "api/v1/lists/104/details")
		name := profileNameOf(t, files, "104")
		onBuckets(t, func(t *testing.T, open func() bucket) {
			published(t, files, open())
			u := newUpstream(t)
			u.tell(profiles(func(string) site.Profile { return fresh }).handler(t), nil)
			base := listen(t, newHandler(t, open(), server.Options{Refresh: u.options()})) + "/api/v1/"
			r, body := request(t, http.MethodGet, base+"users/"+name+"/details?cache=fresh")
			if r.StatusCode != 200 || body != want || r.Header.Get("Cache-Control") != site.NoStore {
				t.Errorf("got %d %v %s, want 200, not cached, %s", r.StatusCode, r.Header, body, want)
			}
			if _, body := request(t, http.MethodGet, base+"lists/104/details"); body != want {
				t.Errorf("the list afterwards: got %s, want %s", body, want)
			}
			r, body = request(t, http.MethodGet, base+"users/0x00000000000000000000000000000000DeaDBeef/details?cache=fresh")
			if r.StatusCode != 200 || len(u.requests()) != 1 || r.Header.Get("Cache-Control") != site.NoStore {
				t.Errorf("an unknown address: got %d %v %s after %q, want 200 and no request to the upstream", r.StatusCode, r.Header, body, u.requests())
			}
			r, _ = request(t, http.MethodGet, base+"users/nobody-has-this.eth/details?cache=fresh")
			if r.StatusCode != 404 || r.Header.Get("Cache-Control") != site.NoStore {
				t.Errorf("an unknown name: got %d %v, want 404, not cached", r.StatusCode, r.Header)
			}
		})
	}
}

// profileNameOf returns the name of the account of a list.
func profileNameOf(t testing.TB, files afero.Fs, tokenID string) string {
	t.Helper()
	details, _, err := site.DecodeDetails([]byte(readObject(t, files, site.Key("api/v1/lists/"+tokenID+"/details"))))
	if err != nil || !site.LookupName(details.ENS.Name) {
		t.Fatalf("list %s: got %q, %v, want a name", tokenID, details.ENS.Name, err)
	}
	return details.ENS.Name
}
