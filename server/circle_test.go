package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/refreshed"
)

// A circle is a bucket over several days: published, refreshed, generated again.
type circle struct {
	bucket    publisher.Bucket
	options   storage.S3Options
	refreshed storage.Location // where the bucket keeps refreshed data
	snapshot  afero.Fs
}

// TestTheCircle refreshes a profile and badges, generates from the old snapshot and
// publishes. The refreshed data is still in the details and badges of its account and
// in the searches of its followers. A newer snapshot wins again.
func TestTheCircle(t *testing.T) {
	t.Run("folder", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "bucket")
		(&circle{bucket: storage.OpenLocal(dir), refreshed: storage.Location{Folder: filepath.Join(dir, "_refresh")}}).run(t)
	})
	for _, kind := range servers.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			s := servers.Start(t, kind)
			s.Env(t)
			name, options := s.Bucket(t), storage.S3Options{Endpoint: s.Endpoint}
			bucket, err := storage.OpenBucket(t.Context(), storage.Location{Bucket: name, Prefix: "site/"}, options)
			if err != nil {
				t.Fatal(err)
			}
			(&circle{bucket: bucket, options: options, refreshed: storage.Location{Bucket: name, Prefix: "site/_refresh/"}}).run(t)
		})
	}
}

// A refresh between a generate and the end of its publish is overwritten by the new
// site: a fallback that notices the new site reapplies it.
func TestRefreshesOutliveAPublish(t *testing.T) {
	t.Run("folder", func(t *testing.T) {
		(&circle{bucket: storage.OpenLocal(filepath.Join(t.TempDir(), "bucket"))}).outlive(t)
	})
	for _, kind := range servers.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			s := servers.Start(t, kind)
			s.Env(t)
			bucket, err := storage.OpenBucket(t.Context(), storage.Location{Bucket: s.Bucket(t)}, storage.S3Options{Endpoint: s.Endpoint})
			if err != nil {
				t.Fatal(err)
			}
			(&circle{bucket: bucket}).outlive(t)
		})
	}
}

func (c *circle) outlive(t *testing.T) {
	upstream := circleUpstream()
	defer upstream.Close()
	c.snapshot = circleSnapshot(t, "2026-01-01T00:00:00Z", `"ens":{"name":"before.eth","fresh":1000}`)
	c.publish(t, nil)
	handler, err := server.New(t.Context(), c.bucket.(server.Bucket), server.Options{Refresh: circleUpstreams(upstream), Poll: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() {
		handler.Watch(ctx)
		close(watched)
	}()
	defer func() {
		stop()
		<-watched
	}()
	front := httptest.NewServer(handler)
	defer front.Close()
	refreshList(t, front.URL)

	c.publishAgain(t, "2026-01-02T00:00:00Z", 2000)
	c.shows(t, front.URL)

	// A fallback that starts only then reapplies it too.
	stop()
	<-watched
	c.publishAgain(t, "2026-01-03T00:00:00Z", 3000)
	handler, err = server.New(t.Context(), c.bucket.(server.Bucket), server.Options{Refresh: circleUpstreams(upstream), Poll: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stopSecond := context.WithCancel(t.Context())
	second := make(chan struct{})
	go func() {
		handler.Watch(ctx)
		close(second)
	}()
	defer func() {
		stopSecond()
		<-second
	}()
	later := httptest.NewServer(handler)
	defer later.Close()
	c.shows(t, later.URL)

	v, err := publisher.Verify(t.Context(), c.bucket, publisher.Options{})
	if err != nil || !v.Good() || v.Refreshed.Count != 2 {
		t.Errorf("verify: got %v, %v, want a good bucket with 2 refreshed objects", v, err)
	}
}

// publishAgain publishes a site with other details and badges, made without the refreshed data.
func (c *circle) publishAgain(t *testing.T, asOf string, fresh int) {
	t.Helper()
	c.snapshot = circleSnapshot(t, asOf, fmt.Sprintf(`"ens":{"name":"between%d.eth","fresh":%d}`, fresh, fresh))
	events := circleEvent + "\n" + strings.Replace(strings.Replace(circleEvent, `"id":1`, `"id":2`, 1), `"year":2026`, fmt.Sprintf(`"year":%d`, fresh), 1)
	if fresh > 2000 {
		events += "\n" + strings.Replace(circleEvent, `"id":1`, `"id":3`, 1)
	}
	if err := afero.WriteFile(c.snapshot, "events.ndjson", []byte(events), 0o644); err != nil {
		t.Fatal(err)
	}
	c.publish(t, nil)
}

// shows waits until a fallback answers with the refreshed data.
func (c *circle) shows(t *testing.T, base string) {
	t.Helper()
	want := map[string]string{"details": `"renamed.eth"`, "badges": `"participated":true,`}
	for begun := time.Now(); len(want) > 0; time.Sleep(10 * time.Millisecond) {
		for object, text := range want {
			_, answer := request(t, http.MethodGet, base+"/api/v1/lists/2/"+object)
			if strings.Contains(answer, text) && (object != "badges" || strings.Contains(answer, `"eventId":"2"`)) {
				delete(want, object)
			} else if time.Since(begun) > 20*time.Second {
				t.Fatalf("%s after 20 s: got %s, want the refreshed one", object, answer)
			}
		}
	}
}

func circleUpstream() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(r.URL.Path, "/")
		switch {
		case parts[1] == "profile":
			fmt.Fprint(w, refreshedProfile)
		case parts[3] == "1":
			fmt.Fprintf(w, `{"event":%s,"tokenId":"99","owner":%q}`, circleEvent, parts[2])
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
}

func circleUpstreams(upstream *httptest.Server) server.RefreshOptions {
	return server.RefreshOptions{
		ProfileUpstream: upstream.URL + "/profile/{address}", BadgeUpstream: upstream.URL + "/badge/{address}/{event_id}",
	}
}

func refreshList(t *testing.T, base string) {
	t.Helper()
	for _, object := range []string{"details", "badges"} {
		response, body := request(t, http.MethodGet, base+"/api/v1/lists/2/"+object+"?cache=fresh")
		if response.StatusCode != http.StatusOK || response.Header.Get("X-Refresh") != "" {
			t.Fatalf("refresh of %s: got %d %s, want 200 without X-Refresh", object, response.StatusCode, body)
		}
	}
}

const (
	refreshedProfile = `{"name":"renamed.eth","avatar":"https://img.example/new.png","display":"Renamed","fresh":1790000000000}`
	circleEvent      = `{"id":1,"fancy_id":"e","name":"e","event_url":"","image_url":"","country":"","city":"","description":"","year":2026,"start_date":"","end_date":"","expiry_date":""}`
)

func (c *circle) run(t *testing.T) {
	upstream := circleUpstream()
	defer upstream.Close()

	c.snapshot = circleSnapshot(t, "2026-01-01T00:00:00Z", `"ens":{"name":"before.eth","fresh":1000}`)
	c.publish(t, nil)
	c.check(t, "before", "before.eth", false)

	base, stop := c.serve(t, circleUpstreams(upstream))
	refreshList(t, base)
	stop()

	c.publish(t, nil) // a publish of the unchanged site keeps it
	base, stop = c.serve(t, server.RefreshOptions{})
	if _, body := request(t, http.MethodGet, base+"/api/v1/lists/2/details"); !strings.Contains(body, `"renamed.eth"`) {
		t.Errorf("after a run without --refreshed: got %s, want the refreshed profile", body)
	}
	stop()

	kept, err := refreshed.Open(t.Context(), c.refreshed, c.options)
	if err != nil {
		t.Fatal(err)
	}
	c.publish(t, kept)
	c.check(t, "after a night", "renamed.eth", true)
	c.publish(t, kept)
	c.check(t, "after another", "renamed.eth", true)

	c.snapshot = circleSnapshot(t, "2096-01-01T00:00:00Z", `"ens":{"name":"later.eth","fresh":3900000000000}`)
	c.publish(t, kept)
	c.check(t, "with a newer snapshot", "later.eth", false)
}

// circleSnapshot has two accounts with a list each; list 1 follows the account of list 2.
func circleSnapshot(t *testing.T, asOf, ens string) afero.Fs {
	t.Helper()
	snapshot := afero.NewMemMapFs()
	for name, text := range map[string]string{
		"meta.json":      `{"format":1,"as_of":"` + asOf + `"}`,
		"events.ndjson":  circleEvent,
		"badges.ndjson":  "",
		"lists.ndjson":   fmt.Sprintf(`{"token_id":"1","owner":%q}`+"\n"+`{"token_id":"2","owner":%q}`, numbered(1), numbered(2)),
		"records.ndjson": fmt.Sprintf(`{"token_id":"1","version":1,"record_type":"address","data":%q}`, numbered(2)),
		"accounts.ndjson": fmt.Sprintf(`{"address":%q,"primary_list":"1"}`+"\n"+`{"address":%q,"primary_list":"2",%s}`,
			numbered(1), numbered(2), ens),
	} {
		if err := afero.WriteFile(snapshot, name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return snapshot
}

func (c *circle) publish(t *testing.T, refreshed generator.Refreshed) {
	t.Helper()
	files, _, err := generator.ToMemory(t.Context(), c.snapshot, generator.Options{Refreshed: refreshed})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := publisher.Publish(t.Context(), storage.NewFolder(files), c.bucket, publisher.Options{}); err != nil {
		t.Fatal(err)
	}
}

func (c *circle) serve(t *testing.T, o server.RefreshOptions) (base string, stop func()) {
	t.Helper()
	handler, err := server.New(context.Background(), c.bucket.(server.Bucket), server.Options{Refresh: o})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(handler)
	return s.URL, s.Close
}

// check asks a new fallback for everything that shows the profile or the badge.
func (c *circle) check(t *testing.T, when, name string, participated bool) {
	t.Helper()
	base, stop := c.serve(t, server.RefreshOptions{})
	defer stop()
	for path, want := range map[string]string{
		"lists/2/details":                      fmt.Sprintf(`"ens":{"name":%q`, name),
		"lists/1/searchFollowing":              fmt.Sprintf(`"ens":{"name":%q`, name),
		"lists/1/searchFollowing?term=" + name: fmt.Sprintf(`"ens":{"name":%q`, name),
		"users/" + name + "/searchFollowing":   `{"following":[]}`,
		"lists/2/badges":                       fmt.Sprintf(`"participated":%v`, participated),
	} {
		if response, body := request(t, http.MethodGet, base+"/api/v1/"+path); response.StatusCode != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s, %s: got %d %s, want 200 with %q", when, path, response.StatusCode, body, want)
		}
	}
}
