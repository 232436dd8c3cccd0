package live

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	json "github.com/goccy/go-json"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/followpress/followpress/templates"
)

var english = message.NewPrinter(language.English)

var statusPage = template.Must(template.New("status").Funcs(template.FuncMap{
	"seconds": seconds,
	"moment":  templates.Moment,
	"count":   func(n any) string { return english.Sprint(n) },
	"ago":     func(t time.Time) string { return seconds(time.Since(t).Seconds()) + " ago" },
	"mib":     func(n int64) string { return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20)) },
}).Parse(templates.Status))

// pages serves the status for operators: a page with plots at /, and JSON at /status.json. The page
// reloads itself without scripts.
func (m *monitor) pages() *http.ServeMux {
	mux := http.NewServeMux()
	answer := func(path, kind string, body func() ([]byte, error)) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			h := w.Header()
			h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("Referrer-Policy", "no-referrer")
			h.Set("Cache-Control", "no-store")
			text, err := body()
			if err != nil {
				http.Error(w, "cannot show the status", http.StatusInternalServerError)
				return
			}
			h.Set("Content-Type", kind)
			_, _ = w.Write(text) // the reader may be gone
		})
	}
	answer("/{$}", "text/html; charset=utf-8", func() ([]byte, error) {
		var page bytes.Buffer
		err := statusPage.Execute(&page, struct {
			status
			Plots []plot
		}{m.status(), m.plots()})
		return page.Bytes(), err
	})
	answer("/status.json", "application/json", func() ([]byte, error) { return json.MarshalIndent(m.status(), "", " ") })
	answer("/status.css", "text/css; charset=utf-8", func() ([]byte, error) { return []byte(templates.StatusStyle), nil })
	return mux
}

// The size of a plot, in its own units.
const (
	plotWidth  = 480
	plotHeight = 96
)

// A plot is a line over time.
type plot struct {
	Title  string
	Latest string // latest value; "" if none
	Most   string
	Span   string // time span, such as 1h0m0s
	Points string // points of an SVG polyline, from 0 0 to plotWidth plotHeight
}

// plots returns the plots of the page, each with at least two points.
func (m *monitor) plots() []plot {
	m.mu.Lock()
	defer m.mu.Unlock()
	var rate []sample
	for i := 1; i < len(m.asked); i++ {
		before, is := m.asked[i-1], m.asked[i]
		rate = append(rate, sample{is.at, (is.value - before.value) / max(is.at.Sub(before.at).Seconds(), 1e-3)})
	}
	perSecond := func(n float64) string { return fmt.Sprintf("%.4g/s", n) }
	return []plot{
		line("Lag of the slowest chain", m.lags, seconds),
		line("Block to answer", m.reached, seconds),
		line("Duration of a round", m.took, seconds),
		line("Requests", rate, perSecond),
	}
}

func line(title string, samples []sample, text func(float64) string) plot {
	p := plot{Title: title}
	if len(samples) < 2 {
		return p
	}
	first, last := samples[0], samples[len(samples)-1]
	most, span := 0.0, max(last.at.Sub(first.at).Seconds(), 1e-3)
	for _, s := range samples {
		most = max(most, s.value)
	}
	var points strings.Builder
	for _, s := range samples {
		x := s.at.Sub(first.at).Seconds() / span * plotWidth
		y := plotHeight * (1 - s.value/max(most, 1e-9))
		fmt.Fprintf(&points, "%.1f,%.1f ", x, y)
	}
	p.Latest, p.Most, p.Points = text(last.value), text(most), points.String()
	p.Span = last.at.Sub(first.at).Round(time.Second).String()
	return p
}

// seconds formats a duration for people.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
