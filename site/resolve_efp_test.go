package site_test

import (
	"strings"
	"testing"

	"github.com/followpress/followpress/site"
)

func TestResolveEFP(t *testing.T) {
	users, lists := "api/v1/users/"+alice, "api/v1/lists/7"
	testResolve(t, efpConfig(t, site.NamesCopies), []resolveCase{
		// Requests without parameters that matter have an object.
		{"/" + users + "/account", users + "/account or empty"},
		{"/api/v1/users/" + aliceUpper + "/account?cache=fresh&x=1", users + "/account or empty"},
		{"/api/v1/users/Alice.ETH/stats", "api/v1/users/alice.eth/stats or no-such-name"},
		{"/" + lists + "/following?limit=10&offset=0&sort=LATEST&tags=,&include=avatar&direction=asc", lists + "/following or no-such-list"},
		{"/" + lists + "/details?cache=fresh", "fresh " + lists + "/details or no-such-list"},
		{"/" + users + "/badges?cache=fresh", "fresh " + users + "/badges or empty"},
		{"/api/v1/leaderboard/blocked?limit=3", "_variants/leaderboard/blocked/limit=3 or no-such-route"},
		{"/api/v1/leaderboard/ranked?sort=mutuals&limit=50&term=x", "api/v1/leaderboard/ranked or no-such-route"},
		{"/api/v1/discover", "api/v1/discover or no-such-route"},
		{"/openapi.json", "openapi.json or no-such-route"},
		{"/_client/shim.js", "_client/shim.js or no-such-route"},
		{"/_unknown/account", "_unknown/account or no-such-route"},
		{"/_search/followers/" + alice + "/head", "_search/followers/" + alice + "/head or no-such-route"},
		{"/_search/ranked/top8/0", "_search/ranked/top8/0 or no-such-route"},

		// The rest is computed. Parameters are in their normal form.
		{"/" + users + "/following?sort=Followers&tags=&limit=20", "compute " + users + "/following?limit=20&sort=followers"},
		{"/" + lists + "/followers?include=x&include=a,ens&tags=%2Ctop8,,%20x&offset=5000", "compute " + lists + "/followers?include=ens&offset=5000&tags=top8%2C%20x"},
		{"/" + lists + "/followers?limit=5000", "compute " + lists + "/followers?limit=1000"},
		{"/" + lists + "/searchFollowers?limit=5000&term=FOX", "compute " + lists + "/searchFollowers?limit=100&term=fox"},
		{"/" + users + "/ens?limit=x", "compute " + users + "/ens?"},
		{"/api/v1/users/Bob.eth/" + aliceUpper + "/followerState", "compute api/v1/users/bob.eth/" + alice + "/followerState?"},
		{"/" + lists + "/ALICE.eth/buttonState", "compute " + lists + "/alice.eth/buttonState?"},
		{"/api/v1/exportState/7", "compute api/v1/exportState/7?"},
		{"/" + users + "/commonFollowers?leader=Bob.eth&limit=2000", "compute " + users + "/commonFollowers?leader=bob.eth"},
		{"/" + users + "/recommended/details?limit=3", "compute " + users + "/recommended/details?limit=3"},
		{"/api/v1/leaderboard/ranked?direction=ASC&sort=Top8&limit=5000", "compute api/v1/leaderboard/ranked?direction=ASC&limit=100&sort=top8"},
		{"/api/v1/leaderboard/search?term=%20Fox&limit=1000", "compute api/v1/leaderboard/search?term=fox"},

		// Form comes before existence.
		{"/" + users + "/commonFollowers", "compute " + users + "/commonFollowers?"},
		{"/" + users + "/relationships?direction=in&tag=x&direction=up", "compute " + users + "/relationships?direction=in&tag=x"},
		{"/" + users + "/relationships?direction=IN&tag=x", "400 bad-relationships"},
		{"/" + users + "/relationships?direction=in&tag=", "400 bad-relationships"},
		{"/" + users + "/relationships?direction=in", "400 bad-relationships"},
		{"/" + users + "/following?include=muted,x&include=ens,blocked", "compute " + users + "/following?include=blocked%2Cens%2Cmuted"},
		{"/" + users + "/commonFollowers?leader=&leader=x", "400 bad-leader"},
		{"/" + lists + "/followers?limit=0", "400 bad-limit"},
		{"/api/v1/exportState/07", "400 bad-token-id"},
		{"/" + lists + "/a%2Fb/buttonState", "404 no-such-name"},
		{"/api/v1/users/a%2Fb/account", "404 no-such-name"},
		{"/" + lists + "/buttonStateBatch", "405 post-only"},
		{"/api/v1/users/a/buttonStateBatch", "404 no-such-route"},
		{"/api/v1/leaderboard/top8", "404 no-such-route"},
	})
	// No object has a name.
	testResolve(t, efpConfig(t, site.NamesLookup), []resolveCase{
		{"/api/v1/users/Alice.eth/account", "compute api/v1/users/alice.eth/account?"},
		{"/api/v1/users/alice.eth/badges?cache=fresh", "compute api/v1/users/alice.eth/badges?cache=fresh"},
		{"/" + users + "/account", users + "/account or empty"},
	})
}

// Methods are checked after the path, and before everything else.
func TestResolveMethodsEFP(t *testing.T) {
	c := efpConfig(t, site.NamesCopies)
	for request, want := range map[string]string{
		"POST /api/v1/lists/7/buttonStateBatch":    "compute api/v1/lists/7/buttonStateBatch?",
		"POST /api/v1/lists/07/buttonStateBatch":   "400 bad-token-id",
		"HEAD /api/v1/lists/07/buttonStateBatch":   "405 post-only",
		"PUT /api/v1/lists/7/buttonStateBatch":     "405 post-only",
		"POST /api/v1/lists/7/following?limit=x":   "405 method-not-allowed",
		"DELETE /api/v1/users/x/followers":         "405 method-not-allowed",
		"DELETE /api/v1/users/x/nothing":           "404 no-such-route",
		"OPTIONS /api/v1/lists/7/buttonStateBatch": "preflight",
	} {
		method, target, _ := strings.Cut(request, " ")
		path, query, _ := strings.Cut(target, "?")
		r := c.Resolve(method, path, query)
		equal(t, request, describe(r), want)
		checkResolution(t, c, method, path, query, r)
	}
}
