package server_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/storage"
)

// TestAnswersAreThoseOfTheTwin compares a site of each of some random graphs with a naive computation.
func TestAnswersAreThoseOfTheTwin(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	asked := 0
	for seed := range uint64(servers.Rounds(2, 20)) {
		snapshot := naive.Random(seed)
		graph, err := naive.Load(snapshot, naive.Config{BadgesField: "badges"})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		memory, _, err := generator.ToMemory(ctx, afero.FromIOFS{FS: snapshot}, generator.Options{NoSync: true})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		handler, err := server.New(ctx, storage.NewFolder(memory), server.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range naive.Requests(rand.New(rand.NewPCG(seed, 0)), graph, 2000) {
			if !inSpec.MatchString(r.Path) || r.Method == "POST" {
				continue
			}
			asked++
			status, _, want := graph.Answer(r.Method, r.Path, r.RawQuery, r.Body)
			if strings.Contains(r.Path, "/searchFollowing") {
				want = addressOfEntry.ReplaceAll(want, []byte(`,"tags":`))
			}
			got := httptest.NewRecorder()
			handler.ServeHTTP(got, httptest.NewRequest(r.Method, r.URL(), nil))
			body := got.Body.Bytes()
			if got.Code != status || status == 200 && r.Method == "GET" && !bytes.Equal(body, want) {
				t.Errorf("seed %d, %s: got %d and %.500s, want %d and %.500s", seed, r, got.Code, body, status, want)
			}
		}
		handler.Close()
	}
	if asked < 200 {
		t.Errorf("requests: got %d, want many", asked)
	}
}

var (
	inSpec         = regexp.MustCompile(`/leaderboard/follow|^/api/v1/lists/[^/]*/(records|details|badges|searchFollowing)$|^/api/v1/users/[^/]*/searchFollowing$`)
	addressOfEntry = regexp.MustCompile(`,"address":"0x[0-9a-f]{40}","tags":`)
)
