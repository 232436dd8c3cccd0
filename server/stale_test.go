package server_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
)

// A replaceable site is in memory.
type replaceable struct{ site atomic.Pointer[memsite.Site] }

func (r *replaceable) Get(ctx context.Context, key site.Key) ([]byte, error) {
	return r.site.Load().Get(ctx, key)
}

func (r *replaceable) replace(s memsite.Site) { r.site.Store(&s) }

// A syncLog is a log that is read while others write to it.
type syncLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *syncLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *syncLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A stale site is logged once, counted in a metric, and still served, until a newer site replaces
// it.
func TestASiteThatBecomesTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)))
		var log syncLog
		store := &replaceable{}
		store.replace(dailySite(t, 1))
		h, err := server.New(t.Context(), store, server.Options{MaxAge: 36 * time.Hour, Poll: time.Minute, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go h.Watch(ctx)
		const warning, end = "older than --max-age or dated in the future; check", "no longer stale"
		for _, tt := range []struct {
			after           time.Duration
			next            int // the day of the site that is put then; 0 for none
			stale, warnings int
			ends            int
		}{
			{23 * time.Hour, 0, 0, 0, 0},
			{time.Hour + time.Minute, 0, 1, 1, 0},
			{100 * time.Hour, 0, 1, 1, 0},
			{0, 6, 0, 1, 1},
			{48 * time.Hour, 0, 1, 2, 1},
			{0, 10, 1, 2, 1}, // more than a day ahead of the clock
			{2 * time.Minute, 9, 0, 2, 2},
		} {
			if tt.next > 0 {
				store.replace(dailySite(t, tt.next))
			}
			time.Sleep(tt.after + time.Minute)
			synctest.Wait()
			if got := scrape(t, h)["site_stale"]; got != float64(tt.stale) {
				t.Errorf("%v: site_stale: got %v, want %d", time.Now(), got, tt.stale)
			}
			if w, e := strings.Count(log.String(), warning), strings.Count(log.String(), end); w != tt.warnings || e != tt.ends {
				t.Errorf("%v: got %d warnings and %d ends, want %d and %d:\n%s", time.Now(), w, e, tt.warnings, tt.ends, &log)
			}
			if !h.Ready() {
				t.Errorf("%v: got not ready, want ready: other fallbacks have the same site", time.Now())
			}
		}
		cancel()
		synctest.Wait()
	})
}
