package live

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w
}

// The page shows what nodes say, as text, whatever they say; it has no script, and its policy allows none.
func TestStatusPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hostile := `<script>alert(1)</script>"'&`
		m := NewMonitor(func() []Chain {
			return []Chain{{ID: 8453, Name: hostile, Block: 7, Lag: 90.5, Error: hostile}}
		})
		page := get(t, m.Pages(), "/")
		if !strings.Contains(page.Body.String(), "not serving: no graph was made yet") {
			t.Errorf("before the first round: got %s, want a reason", page.Body)
		}
		m.serving("")
		for range 3 {
			time.Sleep(sampleEvery)
			m.requests.Add(25)
			m.sample()
			m.round(roundGraph, 1500*time.Millisecond, 2500*time.Millisecond, time.Unix(1_700_000_000, 0))
		}
		m.Published(Publish{At: time.Now(), Outcome: Failed, Error: hostile})
		page = get(t, m.Pages(), "/")
		body := page.Body.String()
		for _, want := range []string{"serving</h1>", "2.5/s", "Block to answer: 2.5s", "1m31s", "&lt;script&gt;", "2023-11-14T22:13:20Z"} {
			if !strings.Contains(body, want) {
				t.Errorf("status page: got no %q in %s", want, body)
			}
		}
		if n := strings.Count(body, "<polyline"); n != 4 {
			t.Errorf("status page: got %d plots, want 4", n)
		}
		if strings.Contains(body, "<script") || strings.Contains(body, "style=") {
			t.Errorf("status page: got what its policy forbids: %s", body)
		}
		policy := page.Header().Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("status page: got the policy %q, want one that allows no script", policy)
		}
		var s Status
		if err := json.Unmarshal(get(t, m.Pages(), "/status.json").Body.Bytes(), &s); err != nil || s.Rounds["graph"] != 3 || s.Chains[0].Lag != 90.5 {
			t.Errorf("status.json: got %+v, %v", s, err)
		}
		for _, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(body, -1) {
			for d := xml.NewDecoder(strings.NewReader(svg)); ; {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%s: %v", svg, err)
				}
			}
		}
		if w := get(t, m.Pages(), "/other"); w.Code != http.StatusNotFound {
			t.Errorf("another path: got %d, want 404", w.Code)
		}
	})
}

// What is kept for plots is bounded.
func TestMonitorForgets(t *testing.T) {
	m := NewMonitor(nil)
	for range 3 * mostSamples {
		m.sample()
		m.round(roundGraph, time.Second, time.Second, time.Now())
	}
	if len(m.samples) != mostSamples || len(m.recent) != mostSamples {
		t.Errorf("samples and rounds: got %d and %d, want %d", len(m.samples), len(m.recent), mostSamples)
	}
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMonitor(func() []Chain {
			return []Chain{{ID: 10, Lag: 3, Block: 12, Finalized: 9, Requests: 4, Reorganisations: 1, Error: "away"}}
		})
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(m)
		m.round(roundHeads, 0, 0, time.Time{})
		m.round(roundGraph, time.Second, 4*time.Second, time.Now())
		m.Published(Publish{Outcome: Unchanged, Seconds: 2})
		time.Sleep(time.Minute)
		m.Published(Publish{Outcome: Busy})
		m.Copied(Failed)
		exposed := get(t, promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}), "/metrics").Body.String()
		for _, want := range []string{
			"followpress_live_publish_age_seconds 60", `followpress_live_rounds_total{outcome="graph"} 1`, `followpress_live_rounds_total{outcome="heads"} 1`,
			`followpress_live_lag_seconds{chain="10"} 3`, `followpress_live_node_failing{chain="10"} 1`, "followpress_live_serving 0",
			`followpress_live_block_to_answer_seconds_bucket{le="4"} 1`, `followpress_live_block_to_answer_seconds_bucket{le="3"} 0`,
			`followpress_live_publishes_total{outcome="busy"} 1`, `followpress_live_state_copies_total{outcome="failed"} 1`,
		} {
			if !strings.Contains(exposed, want+"\n") {
				t.Errorf("metrics: got no %q in\n%s", want, exposed)
			}
		}
	})
}
