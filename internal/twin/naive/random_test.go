package naive_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/followpress/followpress/internal/twin/naive"
)

// TestRandom checks that what is made at random is worth asking: all of it can be read, and most requests find something.
func TestRandom(t *testing.T) {
	statuses, all := map[int]int{}, 0
	for seed := range uint64(25) {
		graph, err := naive.Load(naive.Random(seed), naive.Config{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, r := range naive.Requests(rand.New(rand.NewPCG(seed, 0)), graph, 200) {
			status, contentType, body := graph.Answer(r.Method, r.Path, r.RawQuery, r.Body)
			if json.Valid(body) == (contentType == "image/svg+xml") {
				t.Errorf("seed %d, %.300s: got %d and %.100q, want JSON or a picture", seed, r, status, body)
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
			t.Errorf("status %d: got none, want some", status)
		}
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
