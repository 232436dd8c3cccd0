package server_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// twoSites returns the sites of twoSnapshots.
func twoSites(t *testing.T) (sites [2]server.Store) {
	t.Helper()
	for i, snapshot := range twoSnapshots(t) {
		files, _, err := generator.ToMemory(t.Context(), snapshot, generator.Options{Config: site.Config{LeaderboardMax: 10}})
		if err != nil {
			t.Fatal(err)
		}
		sites[i] = storage.NewFolder(files)
	}
	return sites
}

// twoSnapshots are of the same lists and differ in every answer: other profiles,
// other tags, and lists of other lengths, some of them with several shards.
func twoSnapshots(t *testing.T) (snapshots [2]afero.Fs) {
	t.Helper()
	for i := range snapshots {
		var accounts, lists, records, badges strings.Builder
		lengths := [][2]int{{2500, 1500}, {1000, 2600}, {1200, 1199}, {40, 30}, {9, 11}, {12, 3}, {1, 0}}
		for list, length := range lengths {
			fmt.Fprintf(&lists, `{"token_id":"%d","owner":"%s"}`+"\n", list+1, numbered(list))
			fmt.Fprintf(&accounts, `{"address":"%s","primary_list":"%d","ens":{"name":"owner%d.eth","display":"site %d","fresh":1}}`+"\n",
				numbered(list), list+1, list, i)
			for n := range length[i] {
				fmt.Fprintf(&records, `{"token_id":"%d","version":1,"record_type":"address","data":"%s","tags":["site%d"]}`+"\n",
					list+1, numbered(100+n), i)
			}
			if i == 0 {
				fmt.Fprintf(&badges, `{"event_id":"1","token_id":"7","owner":"%s"}`+"\n", numbered(list))
			}
		}
		for n := range 2600 { // names that are shown but not looked up: no objects of their own
			fmt.Fprintf(&accounts, `{"address":"%s","ens":{"name":"Someone%d-%d.eth"}}`+"\n", numbered(100+n), n, i)
		}
		snapshot := afero.NewMemMapFs()
		for name, text := range map[string]string{
			"meta.json":       fmt.Sprintf(`{"format":1,"as_of":"2026-01-0%dT00:00:00Z"}`, i+1),
			"lists.ndjson":    lists.String(),
			"accounts.ndjson": accounts.String(),
			"records.ndjson":  records.String(),
			"badges.ndjson":   badges.String(),
			"events.ndjson": `{"id":1,"fancy_id":"e","name":"e","event_url":"","image_url":"","country":"","city":"","description":"","year":2026,` +
				`"start_date":"","end_date":"","expiry_date":""}`,
		} {
			if err := afero.WriteFile(snapshot, name, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		snapshots[i] = snapshot
	}
	return snapshots
}

func numbered(n int) string { return fmt.Sprintf("0x%040x", 1+n) }

// questions are requests of every kind, among them pages and searches that need
// several shards.
func questions() []string {
	all := []string{
		"leaderboard/followers", "leaderboard/following?limit=3", "users/owner0.eth/searchFollowing", "users/nobody.eth/searchFollowing",
	}
	for list := range 7 {
		of := fmt.Sprintf("lists/%d/", list+1)
		user := "users/" + numbered(list) + "/"
		all = append(all, of+"details", of+"badges", of+"records", of+"records?includeTags=false", of+"searchFollowing", user+"searchFollowing")
		for _, query := range []string{
			"offset=5", "offset=995&limit=10", "offset=950&limit=100", "offset=1195&limit=10", "offset=1990&limit=20", "offset=2400",
			"offset=9999", "term=someone99&limit=100", "term=someone2", "term=-0.eth&offset=1100", "term=-1.eth&offset=1100", "term=nothing",
		} {
			all = append(all, of+"searchFollowing?"+query, user+"searchFollowing?"+query)
		}
	}
	return all
}

// answerOf returns the status and the body of an answer.
func answerOf(t *testing.T, base, path string) string {
	t.Helper()
	response, err := http.Get(base + "/api/v1/" + path)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return fmt.Sprintf("%d %s", response.StatusCode, body)
}

// answersOf returns the answers of each of two sites, by their question.
func answersOf(t *testing.T, sites [2]server.Store) (want [2]map[string]string) {
	t.Helper()
	for i, s := range sites {
		want[i] = map[string]string{}
		base := serve(t, s)
		for _, path := range questions() {
			want[i][path] = answerOf(t, base, path)
		}
	}
	return want
}

// While two sites replace each other in the bucket again and again, every answer is
// that of one or the other, and none is an error.
func TestRepublishUnderLoad(t *testing.T) {
	const turns, clients = 20, 4
	sites := twoSites(t)
	want := answersOf(t, sites)
	for _, kind := range servers.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			s := servers.Start(t, kind)
			s.Env(t)
			bucket, err := storage.OpenBucket(t.Context(), storage.Location{Bucket: s.Bucket(t)}, storage.S3Options{Endpoint: s.Endpoint})
			if err != nil {
				t.Fatal(err)
			}
			publish := func(i int) {
				t.Helper()
				if _, err := publisher.Publish(t.Context(), sites[i], bucket, publisher.Options{Concurrency: 16, AllowRollback: true}); err != nil {
					t.Fatal(err)
				}
			}
			publish(0)
			// A cache that holds a part of the site: much is read while it changes.
			handler, err := server.New(t.Context(), bucket, server.Options{Poll: 20 * time.Millisecond, CacheBytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			go handler.Watch(t.Context())
			front := httptest.NewServer(handler)
			defer front.Close()

			stop := load(t, front.URL, clients, want)
			for turn := range turns {
				publish((turn + 1) % 2)
			}
			stop()
			// In the end there is one site, and every answer is its own.
			for asOf := fmt.Sprintf("2026-01-0%dT00:00:00Z", turns%2+1); handler.Root().AsOf != asOf; time.Sleep(time.Millisecond) {
				if t.Context().Err() != nil {
					return
				}
			}
			for _, path := range questions() {
				if got := answerOf(t, front.URL, path); got != want[turns%2][path] {
					t.Errorf("%s, at the end: got %.300s, want the answer of the last site", path, got)
				}
			}
		})
	}
}

// load asks until stop is called. Every answer has to be one of the two sites', and
// both have to be seen.
func load(t *testing.T, base string, clients int, want [2]map[string]string) (stop func()) {
	t.Helper()
	var seen [2]atomic.Int64 // answers that only this site gives
	var clientsAsking sync.WaitGroup
	end := make(chan struct{})
	for client := range clients {
		clientsAsking.Go(func() {
			paths := questions()
			for n := client; ; n += clients {
				select {
				case <-end:
					return
				default:
				}
				path := paths[n%len(paths)]
				got := answerOf(t, base, path)
				is := [2]bool{got == want[0][path], got == want[1][path]}
				switch is {
				case [2]bool{true, false}:
					seen[0].Add(1)
				case [2]bool{false, true}:
					seen[1].Add(1)
				case [2]bool{}:
					t.Errorf("%s: got %.300s, want an answer of one of the sites", path, got)
				}
			}
		})
	}
	return func() {
		t.Helper()
		close(end)
		clientsAsking.Wait()
		t.Logf("%d answers of one site, %d of the other", seen[0].Load(), seen[1].Load())
		if seen[0].Load() == 0 || seen[1].Load() == 0 {
			t.Error("answers: got those of one site, want those of both")
		}
	}
}
