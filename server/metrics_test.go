package server_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// scrape reads the numbers of a handler as Prometheus does: by name and labels.
func scrape(t testing.TB, handler *server.Handler) map[string]float64 {
	t.Helper()
	w := ask(handler.Metrics(), "/metrics")
	if w.Code != http.StatusOK {
		t.Fatalf("metrics: got %d, want 200", w.Code)
	}
	numbers := map[string]float64{}
	for line := range strings.Lines(w.Body.String()) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "} ")
		if ok {
			name += "}"
		} else {
			name, value, ok = strings.Cut(strings.TrimSpace(line), " ")
		}
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("%q: got %v, want a number", line, err)
		}
		numbers[strings.TrimPrefix(name, "followpress_")] = n
	}
	return numbers
}

// A broken store fails while the test says so.
type broken struct {
	bucket
	reads, writes atomic.Bool
}

var errBroken = errors.New("broken")

func (b *broken) Get(ctx context.Context, key site.Key) ([]byte, error) {
	if b.reads.Load() {
		return nil, errBroken
	}
	return b.bucket.Get(ctx, key)
}

func (b *broken) Put(ctx context.Context, o storage.Object, condition storage.Condition) (string, error) {
	if b.writes.Load() {
		return "", errBroken
	}
	return b.bucket.Put(ctx, o, condition)
}

// Every event is counted once, in the documented metric.
func TestMetrics(t *testing.T) {
	t.Parallel()
	store := &broken{bucket: local(t, demo(t))}
	u := newUpstream(t, nil, nil)
	name := 0
	good := profiles(func(string) site.Profile { name++; return profileOf(fmt.Sprint("x", name), 1_795_300_000_000) }).handler(t)
	u.tell(good, tokens(t, map[string]string{"214087": "99"}))
	handler := newHandler(t, store, server.Options{Refresh: u.options()})
	often := u.options()
	often.Interval = 0 // the default
	limited := newHandler(t, store.bucket, server.Options{Refresh: often})

	const (
		details = `requests_total{route="{base}/lists/{token_id}/details",status=`
		badges  = `requests_total{route="{base}/lists/{token_id}/badges",status=`
		none    = `requests_total{route="none",status=`
		read    = `store_seconds_count{operation="read",result=`
		write   = `store_seconds_count{operation="write",result=`
	)
	for _, c := range []struct {
		what    string
		handler *server.Handler
		do      func()
		path    string
		more    map[string]float64 // by how much which numbers go up
	}{
		{"a miss", handler, nil, largeList + "details", map[string]float64{
			details + `"200"}`: 1, "cache_misses_total": 1, read + `"done"}`: 1, "cache_objects": 1,
			`request_seconds_count{route="{base}/lists/{token_id}/details"}`: 1}},
		{"a hit", handler, nil, largeList + "details", map[string]float64{
			details + `"200"}`: 1, "cache_hits_total": 1, `request_seconds_count{route="{base}/lists/{token_id}/details"}`: 1, read + `"done"}`: 0}},
		{"an absence", handler, nil, "/api/v1/lists/999/details", map[string]float64{
			details + `"404"}`: 1, "cache_misses_total": 1, read + `"absent"}`: 1, read + `"error"}`: 0}},
		{"a bad request", handler, nil, "/api/v1/lists/x/details", map[string]float64{details + `"400"}`: 1, "cache_misses_total": 0}},
		{"no route", handler, nil, "/nothing", map[string]float64{none + `"404"}`: 1}},
		{"a search", handler, nil, largeList + "searchFollowing?term=a", map[string]float64{
			`requests_total{route="{base}/lists/{token_id}/searchFollowing",status="200"}`: 1, "cache_misses_total": 1}},
		{"a failing store", handler, func() { store.reads.Store(true) }, "/api/v1/lists/7/details", map[string]float64{
			details + `"503"}`: 1, read + `"error"}`: 1, read + `"done"}`: 0}},
		{"a refresh", handler, func() { store.reads.Store(false) }, freshDetails, map[string]float64{
			details + `"200"}`: 1, `refreshes_total{object="details",result="done"}`: 1, "cache_hits_total": 1, read + `"done"}`: 1, write + `"done"}`: 2,
			`upstream_seconds_count{object="details",result="found"}`: 1}},
		{"a refresh of badges", handler, nil, badgeData, map[string]float64{
			badges + `"200"}`: 1, `refreshes_total{object="badges",result="done"}`: 1,
			`upstream_seconds_count{object="badges",result="found"}`: 1, `upstream_seconds_count{object="badges",result="absent"}`: 4}},
		{"the same badges", handler, nil, badgeData, map[string]float64{
			`refreshes_total{object="badges",result="same"}`: 1, `refreshes_total{object="badges",result="done"}`: 0, write + `"done"}`: 1}},
		{"a failing upstream", handler, func() { u.tell(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, nil) }, freshDetails, map[string]float64{
			details + `"200"}`: 1, `refreshes_total{object="details",result="failed"}`: 1, write + `"done"}`: 0,
			`upstream_seconds_count{object="details",result="error"}`: 1}},
		{"a store that cannot be written", handler, func() { u.tell(good, nil); store.writes.Store(true) }, freshDetails, map[string]float64{
			details + `"503"}`: 1, `refreshes_total{object="details",result="error"}`: 1, write + `"error"}`: 1}},
		{"the first of two", limited, func() { store.writes.Store(false) }, freshDetails, map[string]float64{
			`refreshes_total{object="details",result="done"}`: 1}},
		{"one too often", limited, nil, freshDetails, map[string]float64{
			details + `"200"}`: 1, `refreshes_total{object="details",result="limited"}`: 1, `refreshes_total{object="details",result="done"}`: 0}},
	} {
		if c.do != nil {
			c.do()
		}
		before := scrape(t, c.handler)
		ask(c.handler, c.path)
		after := scrape(t, c.handler)
		for number, more := range c.more {
			if got := after[number] - before[number]; math.Abs(got-more) > 1e-9 {
				t.Errorf("%s, %s: got %v more, want %v", c.what, number, got, more)
			}
		}
	}
	is := scrape(t, handler)
	if is["ready"] != 1 || is["requests_in_flight"] != 0 || is["cache_bytes"] < 1000 || is["site_as_of_seconds"] == 0 || is["site_checked_seconds"] == 0 {
		t.Errorf("got ready %v, in flight %v, cache of %v bytes, as of %v, checked %v, want 1, 0, some, and times",
			is["ready"], is["requests_in_flight"], is["cache_bytes"], is["site_as_of_seconds"], is["site_checked_seconds"])
	}
	handler.Drain()
	if scrape(t, handler)["ready"] != 0 {
		t.Error("ready while it drains: got 1, want 0")
	}
}
