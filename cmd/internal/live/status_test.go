package live

import (
	"bytes"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	json "github.com/goccy/go-json"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/follow"
)

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w
}

// A stage holds the statuses that a monitor shows.
type stage struct {
	answers live.Status
	follows follow.Status
}

func (s *stage) monitor() *monitor {
	return newMonitor(func() live.Status { return s.answers }, func() follow.Status { return s.follows })
}

// The page shows all text from nodes escaped. It has no script, and its policy allows none.
func TestStatusPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hostile := `<script>alert(1)</script>"'&`
		s := &stage{answers: live.Status{NotReady: live.ErrNoGraph.Error()}}
		s.follows.Chains = []follow.ChainStatus{{Name: hostile, Head: source.Head{Chain: 8453, Block: 7}, Error: hostile, Seen: time.Now(), Behind: 61500 * time.Millisecond}}
		m := s.monitor()
		page := get(t, m.pages(), "/")
		if !strings.Contains(page.Body.String(), "not serving: no graph was made yet") {
			t.Errorf("before the first round: got %s, want a reason", page.Body)
		}
		s.answers = live.Status{AsOf: time.Unix(1_700_000_000, 0).UTC(), Rounds: map[live.Outcome]uint64{live.NewGraph: 3}}
		for range 3 {
			time.Sleep(10 * time.Second)
			m.answered(8453, 2500*time.Millisecond)
			m.round(live.RoundEnd{Outcome: live.NewGraph, Took: 1500 * time.Millisecond})
		}
		m.publishEnded(publishStatus{At: time.Now(), Outcome: failed, Error: hostile})
		page = get(t, m.pages(), "/")
		body := page.Body.String()
		for _, want := range []string{"serving</h1>", "in 1.5s, 2.5s after its block", "1m32s", "&lt;script&gt;", "14 November 2023, 22:13:20 UTC", "3 graph."} {
			if !strings.Contains(body, want) {
				t.Errorf("status page: got no %q in %s", want, body)
			}
		}
		if strings.Contains(body, "<script") || strings.Contains(body, "style=") {
			t.Errorf("status page: got what its policy forbids: %s", body)
		}
		policy := page.Header().Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("status page: got the policy %q, want one that allows no script", policy)
		}
		var told status
		if err := json.Unmarshal(get(t, m.pages(), "/status.json").Body.Bytes(), &told); err != nil || told.Rounds["graph"] != 3 || *told.Chains[0].Lag != 91.5 || told.Last.BlockToAnswer != 2.5 {
			t.Errorf("status.json: got %+v, %v", told, err)
		}
		if w := get(t, m.pages(), "/other"); w.Code != http.StatusNotFound {
			t.Errorf("another path: got %d, want 404", w.Code)
		}
	})
}

// A chain that was never read has no lag, and its nodes show the reason.
func TestStatusOfNodesThatNeverAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{answers: live.Status{NotReady: live.ErrNoGraph.Error()}}
		s.follows.Confirming = "the chains cannot be read"
		s.follows.Chains = []follow.ChainStatus{
			{Name: "Base", Head: source.Head{Chain: 8453}, Error: "a.example: connection refused", Nodes: []follow.NodeStatus{
				{Host: "a.example", Failing: true, Error: "connection refused", Failed: time.Now()},
				{Host: "b.example", Failing: true, Error: "status 429", Failed: time.Now().Add(-time.Minute)},
			}},
			{Name: "OP", Head: source.Head{Chain: 10, Block: 5}, Seen: time.Now(), Nodes: []follow.NodeStatus{
				{Host: "c.example", Answered: time.Now(), Error: "status 500", Failed: time.Now().Add(-time.Hour)},
			}},
		}
		m := s.monitor()
		time.Sleep(5 * time.Second)
		page := get(t, m.pages(), "/").Body.String()
		for _, want := range []string{
			"None yet", "Unknown", `<p class="bad">a.example: connection refused</p>`, "b.example</span>: never answered, last error 1m5s ago: status 429",
			"c.example: answered 5s ago, last error 1h0m5s ago: status 500", "the chains cannot be read",
		} {
			if !strings.Contains(page, want) {
				t.Errorf("status page: got no %q in %s", want, page)
			}
		}
		body := get(t, m.pages(), "/status.json").Body.Bytes()
		var told struct {
			Chains []map[string]any `json:"chains"`
			Faults []string         `json:"faults"`
		}
		if err := json.Unmarshal(body, &told); err != nil {
			t.Fatal(err)
		}
		if lag, there := told.Chains[0]["lag_seconds"]; !there || lag != nil || told.Chains[0]["read"] != false || told.Chains[1]["lag_seconds"] != 5.0 || told.Chains[1]["read"] != true {
			t.Errorf("status.json: got %s, want the lag null of one chain, and 5 of the other", body)
		}
		if len(told.Faults) != 1 || len(told.Chains[0]["nodes"].([]any)) != 2 {
			t.Errorf("status.json: got %s, want a fault and two nodes", body)
		}
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(m)
		exposed := get(t, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), "/metrics").Body.String()
		if strings.Contains(exposed, `lag_seconds{chain="8453"}`) || !strings.Contains(exposed, `lag_seconds{chain="10"} 5`) || !strings.Contains(exposed, `node_failing{chain="8453"} 1`) {
			t.Errorf("metrics: got %s, want no lag of the chain that was never read", exposed)
		}
	})
}

// update writes testdata/status.html again, which a test in a browser looks at.
var update = flag.Bool("update", false, "write the golden file again")

// TestStatusGolden: the page of a site with trouble, whose nodes say long things.
func TestStatusGolden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := "https://" + strings.Repeat("very-long-name.", 12) + "example: connection refused"
		s := &stage{answers: live.Status{AsOf: time.Now(), Rounds: map[live.Outcome]uint64{live.NewGraph: 1234, live.Failed: 2}, Graphs: 2}}
		s.follows.Additions = refused
		s.follows.Chains = []follow.ChainStatus{
			{Name: "Base", Head: source.Head{Chain: 8453, Block: 23_456_789, Finalized: 23_456_000}, Seen: time.Now(), Requests: 98_765, Nodes: []follow.NodeStatus{
				{Host: "a.example", Answered: time.Now()}, {Host: strings.Repeat("b", 120) + ".example", Failing: true, Error: refused, Failed: time.Now()},
			}},
			{Name: "OP Mainnet", Head: source.Head{Chain: 10}, Error: refused, Nodes: []follow.NodeStatus{{Host: "c.example", Failing: true, Error: refused, Failed: time.Now()}}},
		}
		m := s.monitor()
		time.Sleep(50 * time.Second)
		m.requests.Add(3000)
		m.answered(8453, 2500*time.Millisecond)
		m.round(live.RoundEnd{Outcome: live.NewGraph, Took: 1400 * time.Millisecond})
		m.publishEnded(publishStatus{At: time.Now(), Outcome: failed, Error: refused, Objects: 61_410, Bytes: 131_000_000, Seconds: 83})
		page := regexp.MustCompile(`\d+ MiB`).ReplaceAll(get(t, m.pages(), "/").Body.Bytes(), []byte("812 MiB"))
		const file = "testdata/status.html"
		if *update {
			if err := os.WriteFile(file, page, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || !bytes.Equal(page, want) {
			t.Errorf("got another page than %s (%v): look at it, and write it with -update\n%s", file, err, page)
		}
	})
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stage{answers: live.Status{NotReady: "chain 10 lags", Waiting: 2}}
		s.follows.Chains = []follow.ChainStatus{{Head: source.Head{Chain: 10, Block: 12, Finalized: 9}, Requests: 4, Reorganisations: 1, Error: "away", Seen: time.Now()}}
		s.answers.Chains = []live.ChainStatus{{Chain: 10, Block: 11, Lag: 63 * time.Second}}
		m := s.monitor()
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(m)
		m.round(live.RoundEnd{Outcome: live.NewHeads})
		m.round(live.RoundEnd{Outcome: live.NewGraph, Took: time.Second})
		m.answered(10, 4*time.Second)
		m.publishEnded(publishStatus{Outcome: unchanged, Seconds: 2})
		time.Sleep(time.Minute)
		m.publishEnded(publishStatus{Outcome: busy})
		m.copyEnded(failed)
		exposed := get(t, promhttp.HandlerFor(registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}), "/metrics").Body.String()
		for _, want := range []string{
			"followpress_live_publish_age_seconds 60", `followpress_live_rounds_total{outcome="graph"} 1`, `followpress_live_rounds_total{outcome="heads"} 1`,
			`followpress_live_lag_seconds{chain="10"} 63`, `followpress_live_node_failing{chain="10"} 1`, "followpress_live_serving 0", "followpress_live_waiting 2",
			`followpress_live_head_block{chain="10"} 11`,
			`followpress_live_block_to_answer_seconds_bucket{le="4"} 1`, `followpress_live_block_to_answer_seconds_bucket{le="3"} 0`,
			`followpress_live_publishes_total{outcome="busy"} 1`, `followpress_live_state_copies_total{outcome="failed"} 1`,
		} {
			if !strings.Contains(exposed, want+"\n") {
				t.Errorf("metrics: got no %q in\n%s", want, exposed)
			}
		}
	})
}

const (
	monitoring = "../../../docs/monitoring/"
	alerts     = monitoring + "rules.yml"
)

// Patterns that split an expression: names matches metrics, functions and operators. The others
// match text to remove first.
var (
	inQuotes  = regexp.MustCompile(`"[^"]*"`)
	groupings = regexp.MustCompile(`\b(by|without|on|ignoring)\s*\([^)]*\)`)
	selectors = regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]`)
	names     = regexp.MustCompile(`\b[a-z_:][a-z0-9_:]*\b(\s*\()?`)
	operators = map[string]bool{"and": true, "or": true, "unless": true}
)

// rule matches an alert in the form that the file uses throughout, and groups matches the lines
// around alerts.
var (
	rule = regexp.MustCompile(`(?m)^      - alert: (\w+)
        expr: ([a-z(].*)
(?:        for: \d+[mh]
)?        labels: \{severity: (?:info|warning|critical)\}
        annotations:
          summary: "[^"\\]+"
`)
	groups = regexp.MustCompile(`^(?:#.*\n)+groups:\n(?:(?:  #.*\n)?  - name: [a-z-]+\n    rules:\n)+$`)
)

// metricsOf returns the metrics that an expression names.
func metricsOf(expression string) (all []string) {
	for _, cut := range []*regexp.Regexp{inQuotes, groupings, selectors} {
		expression = cut.ReplaceAllString(expression, " ")
	}
	for _, name := range names.FindAllString(expression, -1) {
		if strings.HasSuffix(name, "(") || operators[name] || strings.HasPrefix(name, "by") && strings.Contains(name, " ") {
			continue // a function
		}
		all = append(all, name)
	}
	return all
}

// exposed returns the metrics of a process after some requests, so histograms and counters have values.
func exposed(t *testing.T) string {
	t.Helper()
	s := &stage{}
	s.follows.Chains = []follow.ChainStatus{{Seen: time.Now()}}
	m := s.monitor()
	m.round(live.RoundEnd{Outcome: live.NewGraph})
	m.answered(1, 1)
	m.publishEnded(publishStatus{Outcome: done})
	m.copyEnded(done)
	shared, err := server.NewShared(server.Options{Collectors: []prometheus.Collector{m}})
	if err != nil {
		t.Fatal(err)
	}
	shared.Refuse(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), site.Unavailable)
	return get(t, shared.Metrics(), "/metrics").Body.String()
}

// nightly returns the metrics that the line of docs/monitoring.md writes when a run ends with status 3.
func nightly(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(monitoring + "../monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(page), "```sh\n")
	line, _, _ = strings.Cut(line, "```")
	run := exec.CommandContext(t.Context(), "sh", "-euc", line+"exit 3")
	folder := t.TempDir()
	run.Env = append(os.Environ(), "METRICS="+folder)
	_ = run.Run()
	text, err := os.ReadFile(folder + "/followpress.prom")
	if err != nil || !strings.HasPrefix(string(text), "followpress_nightly_exit_status 3\n") {
		t.Errorf("metrics of a run that failed: got %q, %v, want its status", text, err)
	}
	return "\n" + string(text)
}

// Alerts and dashboards name only existing metrics. All alert rules have the same form, and
// Prometheus accepts them.
func TestAlertsNameMetrics(t *testing.T) {
	text, err := os.ReadFile(alerts)
	if err != nil {
		t.Fatal(err)
	}
	expressions := map[string]string{}
	for _, r := range rule.FindAllStringSubmatch(string(text), -1) {
		if expressions["alert "+r[1]] != "" || strings.Contains(r[2], ": ") || strings.Contains(r[2], " #") {
			t.Errorf("alert %s: got the expression %s, want a name of its own, and nothing that YAML reads otherwise", r[1], r[2])
		}
		expressions["alert "+r[1]] = r[2]
	}
	if rest := rule.ReplaceAllString(string(text), ""); !groups.MatchString(rest) {
		t.Errorf("%s: got besides rules:\n%s", alerts, rest)
	}
	for _, name := range []string{"live.json", "serve.json"} {
		var dashboard struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if text, err = os.ReadFile(monitoring + name); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &dashboard); err != nil {
			t.Fatal(err)
		}
		for _, p := range dashboard.Panels {
			for _, target := range p.Targets {
				expressions[name+" "+p.Title+" "+target.Expr] = target.Expr
			}
		}
	}
	if len(expressions) < 40 {
		t.Errorf("expressions: got %d, want more", len(expressions))
	}
	all := exposed(t) + nightly(t)
	for where, expression := range expressions {
		found := metricsOf(expression)
		if len(found) == 0 {
			t.Errorf("%s: got no metric in %s", where, expression)
		}
		for _, name := range found {
			if name != "up" && !strings.Contains(all, "\n"+name+"{") && !strings.Contains(all, "\n"+name+" ") {
				t.Errorf("%s: got the metric %s, want one that is exposed", where, name)
			}
		}
	}
	for _, bad := range []string{"followpress_live_nothing > 1", "sum by (le) (rate(followpress_live_nothing[5m]))"} {
		if got := metricsOf(bad); len(got) != 1 || got[0] != "followpress_live_nothing" {
			t.Errorf("metrics of %s: got %q", bad, got)
		}
	}
}

// The rules are valid to Prometheus itself.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed; apt-get install prometheus, then run this test again")
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", alerts).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v: %s", err, out)
	}
}
