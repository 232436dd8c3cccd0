package site_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
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

// A root has the window as a text, and no member for none.
func TestHistoryWindow(t *testing.T) {
	c := withHistory(efpConfig(t, ""))
	body, err := json.Marshal(site.Root{Config: c})
	if err != nil || !strings.Contains(string(body), `"history_window":"999h0m0s"`) {
		t.Errorf("root: got %s, %v, want the window as a text", body, err)
	}
	var back site.Root
	if err := json.Unmarshal(body, &back); err != nil || back.Config.HistoryWindow != c.HistoryWindow {
		t.Errorf("read again: got %v, %v, want the same window", back.Config.HistoryWindow, err)
	}
	if body, err = json.Marshal(site.Root{Config: efpConfig(t, "")}); err != nil || strings.Contains(string(body), "history") {
		t.Errorf("root without history: got %s, %v, want no member", body, err)
	}
	for name, c := range map[string]site.Config{
		"another API":     {HistoryWindow: site.Window(time.Hour)},
		"negative":        {API: site.APIEFP, HistoryWindow: -site.Window(time.Hour)},
		"parts of second": {API: site.APIEFP, HistoryWindow: site.Window(time.Hour + 1)},
		"a century":       {API: site.APIEFP, HistoryWindow: site.Window(100 * 366 * 24 * time.Hour)},
	} {
		if c, err := c.WithDefaults(); err == nil {
			t.Errorf("%s: got %+v, want an error", name, c)
		}
	}
}

func TestResolveHistory(t *testing.T) {
	c := withHistory(efpConfig(t, ""))
	const week = 168 * time.Hour
	for _, test := range []struct {
		path, query, normal string
		ask                 site.Ask
	}{
		{"users/bob.eth/notifications", "", "", site.Ask{User: "bob.eth", Limit: 10, Interval: week}},
		{"users/bob.eth/notifications", "start=x&opcode=all&interval=week&limit=10&tag=", "", site.Ask{User: "bob.eth", Limit: 10, Interval: week}},
		{"users/Bob.eth/notifications", "tag=Top8+%ff&opcode=3&offset=2&interval=hour&limit=9999", "interval=hour&limit=1000&offset=2&opcode=3&tag=Top8%20%FF",
			site.Ask{User: "bob.eth", Limit: 1000, Offset: 2, Interval: time.Hour, Opcode: 3, Tag: "Top8 \xff"}},
		{"users/bob.eth/notifications", "opcode=5&interval=year", "", site.Ask{User: "bob.eth", Limit: 10, Interval: week}},
		{"users/bob.eth/notifications", "opcode=01&interval=Day", "", site.Ask{User: "bob.eth", Limit: 10, Interval: week}},
		{"users/bob.eth/notifications", "interval=day&interval=month", "interval=day", site.Ask{User: "bob.eth", Limit: 10, Interval: 24 * time.Hour}},
		{"users/bob.eth/notifications.atom", "interval=all", "interval=all", site.Ask{User: "bob.eth", Limit: 50, Interval: 999 * time.Hour}},
		{"users/bob.eth/notifications.atom", "limit=50&interval=month", "interval=month", site.Ask{User: "bob.eth", Limit: 50, Interval: 720 * time.Hour}},
		{"users/bob.eth/notifications", "start=005&start=6", "start=5", site.Ask{User: "bob.eth", Limit: 10, Interval: week, Start: 5}},
		{"users/bob.eth/notifications", "start=0", "start=0", site.Ask{User: "bob.eth", Limit: 10, Interval: week}},
		{"lists/7/activity", "tag=,a,,B", "tag=%2Ca%2C%2CB", site.Ask{TokenID: "7", Limit: 10, Interval: week, Tag: ",a,,B"}},
	} {
		if !strings.HasPrefix(test.normal, "start=") {
			test.ask.Start = -1
		}
		r := c.Resolve(http.MethodGet, "/api/v1/"+test.path, test.query)
		if r.Action != site.AnswerComputed || r.Query != test.normal || r.Ask != test.ask {
			t.Errorf("%s?%s: got %+v\nwant %q, %+v", test.path, test.query, r, test.normal, test.ask)
		}
		without := c
		without.HistoryWindow = 0
		if r := without.Resolve(http.MethodGet, "/api/v1/"+test.path, test.query); r.Problem != site.NoSuchRoute {
			t.Errorf("%s without history: got %+v, want no such route", test.path, r)
		}
	}
	if r := c.Resolve(http.MethodGet, "/api/v1/lists/07/activity", ""); r.Problem != site.BadTokenID {
		t.Errorf("a malformed list: got %+v", r)
	}
}

func TestHistoryKeys(t *testing.T) {
	const address = "0x00000000000000000000000000000000000000aa"
	c := withExplorer(withHistory(efpConfig(t, "")))
	for key, want := range map[site.Key]struct {
		text string
		id   routes.ID
	}{
		site.NotificationsKey(address, 0): {"_search/notifications/" + address, routes.NotificationsShard},
		site.NotificationsKey(address, 3): {"_search/notifications/older/" + address + "/3", routes.OlderNotifications},
		site.ActivityKey("7", 0):          {"_search/activity/7", routes.ActivityShard},
		site.ActivityKey("7", 12):         {"_search/activity/older/7/12", routes.OlderActivity},
		site.RecentKey:                    {"_explore/recent", routes.Recent},
		site.ExplorerKey("active"):        {"_explore/active", routes.Active},
		site.GrowthKey:                    {"_explore/growth", routes.Growth},
	} {
		route, ok := c.RouteOf(key)
		if string(key) != want.text || !ok || route.ID != want.id {
			t.Errorf("%s: got %s, %v, want %s", want.text, key, route, site.RouteBy(want.id).Pattern)
		}
		without := c
		without.HistoryWindow = 0
		if route, ok := without.RouteOf(key); ok {
			t.Errorf("%s without history: got %s, want no route", key, route.Pattern)
		}
	}
	c.Explorer = false
	if route, ok := c.RouteOf(site.RecentKey); ok {
		t.Errorf("%s without the explorer: got %s, want no route", site.RecentKey, route.Pattern)
	}
}
