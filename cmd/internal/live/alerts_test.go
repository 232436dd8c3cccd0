package live

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source/follow"
)

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
