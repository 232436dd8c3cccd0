package live

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
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

// pages serves the status for operators: a page at /, and JSON at /status.json. The page
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
		err := statusPage.Execute(&page, m.status())
		return page.Bytes(), err
	})
	answer("/status.json", "application/json", func() ([]byte, error) { return json.MarshalIndent(m.status(), "", " ") })
	answer("/status.css", "text/css; charset=utf-8", func() ([]byte, error) { return []byte(templates.StatusStyle), nil })
	return mux
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
