package naive_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/twin/naive"
)

// TestRandom: random graphs are valid, and most requests to them have nonempty answers.
func TestRandom(t *testing.T) {
	statuses, all, news := map[int]int{}, 0, 0
	for seed := range uint64(25) {
		graph, err := naive.Load(naive.Random(seed), naive.Config{HistoryWindow: 999 * time.Hour})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, r := range naive.Requests(rand.New(rand.NewPCG(seed, 0)), graph, 400) {
			status, contentType, body := graph.Answer(r.Method, r.Path, r.RawQuery, r.Body)
			if status == http.StatusFound {
				continue
			}
			if json.Valid(body) == (contentType == "image/svg+xml" || contentType == "application/atom+xml; charset=utf-8") {
				t.Errorf("seed %d, %.300s: got %d and %.100q, want JSON, a picture or a feed", seed, r, status, body)
			}
			if bytes.Contains(body, []byte(`"total_follows":`)) && !bytes.Contains(body, []byte(`"total":0`)) {
				news++
			}
			if _, err := http.NewRequest(r.Method, "http://site.example"+r.URL(), nil); err != nil {
				t.Errorf("seed %d, %.300s: got %v, want a request that can be sent", seed, r, err)
			}
			statuses[status]++
			all++
		}
	}
	for _, status := range []int{200, 400, 404, 405, 413} {
		if statuses[status] == 0 {
			t.Errorf("status %d: got no answer with it, want some", status)
		}
	}
	if news < 15 {
		t.Errorf("answers with operations: got %d, want many", news)
	}
	if statuses[200] < all*6/10 {
		t.Errorf("status 200: got %d of %d, want most", statuses[200], all)
	}
}

func TestRandomIsTheSameForASeed(t *testing.T) {
	for seed := range uint64(5) {
		one, other := naive.Random(seed), naive.Random(seed)
		names, err := fs.Glob(one, "*")
		if err != nil || len(names) < 6 {
			t.Errorf("seed %d: got %v, %v, want the tables", seed, names, err)
		}
		for _, name := range names {
			a, errA := fs.ReadFile(one, name)
			b, errB := fs.ReadFile(other, name)
			if errA != nil || errB != nil || !bytes.Equal(a, b) {
				t.Errorf("seed %d, %s: got two contents (%v, %v), want one", seed, name, errA, errB)
			}
		}
	}
}
