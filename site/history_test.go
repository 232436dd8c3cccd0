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
			test.ask.Start = site.NoStart
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
