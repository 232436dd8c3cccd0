package server_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// Account number 1 of longSnapshot: its primary list 1 holds thousands of accounts, as its list 2 does, and
// thousands hold it.
const (
	longHeld      = 3456
	longFollowers = 2345
)

// longSnapshot returns a graph with lists and followers of several shards. Every fifth record blocks or mutes, so
// that the follows of a shard begin elsewhere than its rows.
func longSnapshot() fstest.MapFS { return efpSnapshot(1, longHeld, longFollowers) }

// longSite returns the site of longSnapshot. It is made once.
func longSite(t testing.TB) afero.Fs {
	t.Helper()
	longOnce.Do(func() { longFiles = efpSite(t, afero.FromIOFS{FS: longSnapshot()}, "") })
	return longFiles
}

var (
	longOnce  sync.Once
	longFiles afero.Fs
)

// efpSnapshot is longSnapshot with the given numbers of records and followers.
func efpSnapshot(seed uint64, held, followers int) fstest.MapFS {
	r := rand.New(rand.NewPCG(seed, 5))
	var lists, accounts, records strings.Builder
	list := func(token, account int) {
		fmt.Fprintf(&lists, `{"token_id":"%d","owner":"%s"}`+"\n", token, numbered(account))
	}
	record := func(token, about int) {
		tags := []string{`"block"`, `"mute"`, `"top8"`, `"a"`, ``, ``, ``, ``, ``, ``}[r.IntN(10)]
		fmt.Fprintf(&records, `{"token_id":"%d","version":1,"record_type":"address","data":"%s","tags":[%s],"added":"2025-01-01T00:00:%02dZ"}`+"\n",
			token, numbered(about), tags, r.IntN(60))
	}
	list(1, 1)
	list(2, 1)
	fmt.Fprintf(&accounts, `{"address":"%s","primary_list":"1","ens":{"name":"one.eth"}}`+"\n", numbered(1))
	for i := range held {
		record(1, 10+i)
		record(2, 20+i)
	}
	for i := range followers {
		token, account := 100+i, 1000+i
		list(token, account)
		fmt.Fprintf(&accounts, `{"address":"%s","primary_list":"%d","ens":{"name":"n%d.eth","avatar":"x","records":{"url":"y"}}}`+"\n", numbered(account), token, i)
		record(token, 1)
		for range r.IntN(4) {
			record(token, 10+r.IntN(50))
		}
	}
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"lists.ndjson": lists.String(), "accounts.ndjson": accounts.String(), "records.ndjson": records.String(), "events.ndjson": "", "badges.ndjson": "",
		"meta.json": `{"format":1,"as_of":"2026-11-01T00:00:00Z"}`,
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

// A counting store counts the requests to it, and takes time for each.
type counting struct {
	server.Store
	away     atomic.Int64 // nanoseconds
	requests atomic.Int64
}

func (s *counting) Get(ctx context.Context, key site.Key) ([]byte, error) {
	s.requests.Add(1)
	select {
	case <-time.After(time.Duration(s.away.Load())):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.Store.Get(ctx, key)
}

// longPaths returns the pages of the long lists and followers.
func longPaths() (paths []string) {
	for _, of := range []string{"users/" + numbered(1), "users/one.eth", "lists/1", "lists/2"} {
		for _, page := range []string{"following", "allFollowing", "followers", "allFollowers"} {
			for _, sort := range []string{"latest", "earliest", "followers"} {
				paths = append(paths, fmt.Sprintf("/api/v1/%s/%s?sort=%s", of, page, sort))
			}
		}
		paths = append(paths, "/api/v1/"+of+"/latestFollowers?x", "/api/v1/"+of+"/searchFollowing?x", "/api/v1/"+of+"/searchFollowers?x")
	}
	return paths
}

// TestPagesOfLongLists compares pages of several shards with a naive computation.
func TestPagesOfLongLists(t *testing.T) {
	t.Parallel()
	graph, err := naive.Load(longSnapshot(), naive.Config{})
	if err != nil {
		t.Fatal(err)
	}
	handler := efpHandler(t, longSite(t))
	r := rand.New(rand.NewPCG(1, 2))
	for i, path := range longPaths() {
		for j, more := range []string{
			"&offset=90&limit=10", "&offset=91&limit=10", fmt.Sprintf("&offset=%d&limit=%d", r.IntN(3500), 1+r.IntN(1000)), "&offset=990&limit=100",
			fmt.Sprintf("&offset=%d", r.IntN(3500)), "&offset=3400&limit=1000", "&tags=top8,a&limit=50&offset=20", "&tags=mute&limit=1000", "&tags=none",
			"&include=ens&limit=30&offset=2000", "&term=n1&limit=100&offset=30", "&term=" + url.QueryEscape(numbered(2000)),
		} {
			if (i+j)%servers.Rounds(4, 1) != 0 {
				continue
			}
			target := path + more
			path, query, _ := strings.Cut(target, "?")
			status, _, want := graph.Answer("GET", path, query, nil)
			if got := ask(handler, target); got.Code != status || !bytes.Equal(got.Body.Bytes(), want) {
				t.Errorf("%s: got %d %.300s, want %d %.300s", target, got.Code, got.Body, status, want)
			}
		}
	}
}

// TestRequestsToTheStore: a computation reads few objects.
func TestRequestsToTheStore(t *testing.T) {
	t.Parallel()
	files := longSite(t)
	check := func(path, body string, most int64) {
		t.Helper()
		store := &counting{Store: storage.NewFolder(files)}
		handler := newHandler(t, store, server.Options{})
		defer handler.Close()
		before := store.requests.Load()
		method := "GET"
		if body != "" {
			method = "POST"
		}
		for _, most := range []int64{most, 0} { // the second time from the cache
			if w := answerTo(handler, method, path, []byte(body)); w.Code != 200 {
				t.Errorf("%s: got %d, want 200", path, w.Code)
			}
			if got := store.requests.Load() - before; got > most {
				t.Errorf("%s: got %d requests to the store, want at most %d", path, got, most)
			}
			before = store.requests.Load()
		}
	}
	for _, path := range longPaths() {
		most := int64(2)
		if strings.Contains(path, "lists/2/") && strings.Contains(path, "ollowers?") {
			most = 3 // states of followers are in the records of a non-primary list
		}
		check(path+"&limit=20", "", most)
		check(path+"&offset=90&limit=10", "", most)
		if !strings.Contains(path, "sort=followers") {
			check(path+"&offset=1300&limit=10", "", most+1) // the shard, or two
		}
	}
	user, list, unknown := "/api/v1/users/"+numbered(1), "/api/v1/lists/1", "/api/v1/users/0x00000000000000000000000000000000deadbeef"
	for path, most := range map[string]int64{
		unknown + "/account": 1, unknown + "/followers": 1, unknown + "/following?limit=20&sort=followers": 1, unknown + "/ens": 1,
		user + "/ens": 1, user + "/simple-profile": 2, user + "/primary-list": 1, user + "/list-records": 2, user + "/allFollowingAddresses": 2,
		list + "/" + numbered(11) + "/buttonState": 1, user + "/" + numbered(11) + "/buttonState": 2, user + "/" + numbered(1001) + "/followerState": 2,
		list + "/" + numbered(1001) + "/followerState": 3, "/api/v1/exportState/1": 1, list + "/allFollowingAddresses": 1,
		user + "/commonFollowers?leader=" + numbered(11): 4, user + "/recommended": 3, "/api/v1/discover?offset=3": 1,
		"/api/v1/leaderboard/ranked?offset=20": 1, "/api/v1/leaderboard/ranked?sort=followers": 6, "/api/v1/leaderboard/search?term=n1&limit=20": 8,
	} {
		check(path, "", most)
	}
	store := &counting{Store: storage.NewFolder(files)}
	handler := newHandler(t, store, server.Options{})
	before := store.requests.Load()
	if w := answerTo(handler, "POST", list+"/buttonStateBatch", []byte(`["`+numbered(11)+`","`+numbered(12)+`"]`)); w.Code != 200 || store.requests.Load()-before != 1 {
		t.Errorf("a batch of addresses: got %d after %d requests to the store, want 200 after 1", w.Code, store.requests.Load()-before)
	}
}
