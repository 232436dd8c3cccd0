package badge_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/followpress/followpress/fixtures/worst"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/badge"
)

// TestWorstAnswers: with any answers of the API, a run allocates at most a small multiple of the
// largest accepted answer, 1 MiB, per request.
func TestWorstAnswers(t *testing.T) {
	const requests = 4
	for _, name := range worst.Names() {
		for where, begin := range map[string]string{
			"alone": ``, "tokens": `{"total":9,"tokens":`, "owner": `{"total":9,"tokens":[{"id":"1","owner":`, "text": `{"id":10,"name":`, "unknown": `{"unknown":`,
		} {
			synctest.Test(t, func(t *testing.T) {
				worst.Check(t, where+": "+name, requests*40<<20, func() {
					report, err := badge.Refresh(t.Context(), badge.Options{
						State: t.TempDir(), URL: "https://badges.example", Events: []string{"10"}, Wanted: wanted(2), Budget: source.Budget{Requests: requests},
						Progress: silent{}, Transport: worst.JSON[name].Around(begin).Answer(worst.Size),
					})
					if err != nil || report.Events[0].Badges > 0 {
						t.Errorf("%s, %s: got %+v and %v", where, name, report, err)
					}
				})
			})
		}
	}
}

// TestShrinkingList: many owners that a list no longer has are kept until it has lacked them for a
// day, also if it shrinks while its pages are read; few are dropped at once.
func TestShrinkingList(t *testing.T) {
	const n = 1_000
	for _, test := range []struct{ left, want, dayLater int }{{1, n, 1}, {n / 2, n, n / 2}, {n - 101, n, n - 101}, {n - 100, n - 100, n - 100}} {
		synctest.Test(t, func(t *testing.T) {
			state, all := t.TempDir(), api(n, true)
			only := badge.Options{Events: []string{"10"}}
			refresh(t, state, all, only)
			fewer := api(test.left, true)
			for _, wait := range []time.Duration{0, time.Hour} {
				time.Sleep(wait)
				report := refresh(t, state, fewer, only)
				check(t, "badges", report.Events[0].Badges, test.want)
				check(t, "doubted", report.Doubted, test.want-test.left)
			}
			time.Sleep(23 * time.Hour)
			report := refresh(t, state, fewer, only)
			check(t, "badges a day later", report.Events[0].Badges, test.dayLater)
			check(t, "doubted a day later", report.Doubted, 0)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		state, all := t.TempDir(), api(n, true)
		only := badge.Options{Events: []string{"10"}}
		refresh(t, state, all, only)
		refresh(t, state, api(1, true), only)
		time.Sleep(time.Hour)
		refresh(t, state, all, only) // they are back, so the day starts over
		time.Sleep(24 * time.Hour)
		check(t, "badges", refresh(t, state, api(1, true), only).Events[0].Badges, n)
	})
	synctest.Test(t, func(t *testing.T) {
		state, all := t.TempDir(), api(n, true)
		refresh(t, state, all, badge.Options{})
		want := badges(t, state)
		shrinks := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.RawQuery, "offset=0") || !strings.Contains(r.URL.Path, "poaps") {
				all.ServeHTTP(w, r)
				return
			}
			_, _ = fmt.Fprintf(w, `{"total":%d,"tokens":[{"id":"1000","owner":{"id":"%s"}}]}`, 1, address(0))
		})
		report := refresh(t, state, shrinks, badge.Options{})
		if got := badges(t, state); !slices.Equal(got, want) {
			t.Errorf("a list that shrinks within a run: got %d badges, want %d", len(got), len(want))
		}
		check(t, "failures", report.Events[0].Failed["invalid answer"], 1)
	})
}
