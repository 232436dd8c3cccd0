package live_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/site"
)

// followed returns the graph after some operations of list 7 of account a, which follow and tag b.
func followed(a, b string, at time.Time, ops int) afero.Fs {
	texts := map[string]string{
		"meta.json":       fmt.Sprintf(`{"format":1,"as_of":%q}`, at.UTC().Format(time.RFC3339)),
		"lists.ndjson":    fmt.Sprintf(`{"token_id":"7","owner":%q}`, a),
		"accounts.ndjson": fmt.Sprintf(`{"address":%q,"primary_list":"7"}`, a),
		"records.ndjson":  "", "events.ndjson": "", "badges.ndjson": "", "ops.ndjson": "",
	}
	if ops > 0 {
		tags := ""
		if ops > 1 {
			tags = `"top8"`
		}
		texts["records.ndjson"] = fmt.Sprintf(`{"token_id":"7","version":1,"record_type":"address","data":%q,"tags":[%s]}`, b, tags)
	}
	for i, op := range []string{"0x01010101", "0x01030101"}[:ops] {
		tag := []string{"", "746f7038"}[i]
		texts["ops.ndjson"] += fmt.Sprintf(`{"token_id":"7","time":%q,"chain_id":8453,"block":%d,"log_index":0,"op":"%s%s%s"}`+"\n",
			at.Add(time.Duration(i-5)*time.Second).UTC().Format("2006-01-02T15:04:05.000Z"), 100+i, op, b[2:], tag)
	}
	return textSnapshot(texts)
}

// Notifications belong to the newest round. A request that waits for the block of an operation sees
// the operation. An operation that a reorganization removed is gone from notifications and from the
// history of its list.
func TestNotifications(t *testing.T) {
	t.Parallel()
	a, b := site.Address{19: 0xa}.String(), site.Address{19: 0xb}.String()
	o := options(site.APIEFP)
	o.Generator.Config.HistoryWindow = site.Window(site.DefaultHistoryWindow)
	l := run(t, o)
	now := time.Now().Truncate(time.Second)
	l.serve(t, atBlock(100, followed(a, b, now, 0)), live.NewGraph)
	paths := []string{"/api/v1/users/" + b + "/notifications", "/api/v1/lists/7/activity"}
	check := func(what string, follows, tags int, headers ...string) {
		t.Helper()
		for _, path := range paths {
			got := get(l, path, headers...)
			want := fmt.Sprintf(`"total":%d,"total_follows":%d,"total_unfollows":0,"total_tags":%d,"total_untags":0}`, follows+tags, follows, tags)
			if got.Code != http.StatusOK || !strings.Contains(got.Body.String(), want) {
				t.Errorf("%s: %s: got %d, %s, want %s", what, path, got.Code, got.Body, want)
			}
		}
	}
	check("before", 0, 0)
	written := make(chan *httptest.ResponseRecorder, len(paths))
	for _, path := range paths {
		go func() { written <- get(l, path, "X-After", fmt.Sprintf("%d:101", base)) }()
	}
	round := atBlock(101, followed(a, b, now, 2))
	l.serve(t, round, live.NewGraph)
	for range paths {
		if got := <-written; !strings.Contains(got.Body.String(), `"total":2,`) || got.Header().Get("X-Heads") != fmt.Sprintf("%d:101", base) {
			t.Errorf("a reader that waits for its own operation: got %s, %s, want it in the answer", got.Header().Get("X-Heads"), got.Body)
		}
	}
	check("both operations", 1, 1)
	reorganised := atBlock(102, followed(a, b, now, 1))
	reorganised.Undone = []uint64{base}
	l.serve(t, reorganised, live.NewGraph)
	check("the tag is gone", 1, 0, "X-After", fmt.Sprintf("%d:102", base))
	l.serve(t, atBlock(103, followed(a, b, now, 0)), live.NewGraph)
	check("the follow is gone", 0, 0)
}
