package browser

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
	json "github.com/goccy/go-json"
)

// A Span is something that a thread of the browser did for a while, by the name that Chromium gives it: "RunTask",
// "Layout", "Paint".
type Span struct {
	Name    string  `json:"name"`
	Process int     `json:"pid"`
	Thread  int     `json:"tid"`
	Begun   float64 `json:"ts"`   // in microseconds, by a clock of its own
	Took    float64 `json:"dur"`  // in microseconds
	Busy    float64 `json:"tdur"` // of them on a processor
	// Args depend on the name. Of "thread_name", which takes no time, they have the name of a thread.
	Args map[string]any `json:"args"`
}

// Trace is what the browser did while during ran, also for other pages.
func (p *Page) Trace(during func()) (spans []Span) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	complete := make(chan struct{})
	var failed error
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *tracing.EventDataCollected:
			for _, value := range e.Value {
				var span Span
				if err := json.Unmarshal(value, &span); err != nil {
					failed = err
				}
				spans = append(spans, span)
			}
		case *tracing.EventTracingComplete:
			close(complete)
		}
	})
	if err != nil {
		p.t.Fatalf("trace: %v", err)
	}
	command(p, tracing.Start, tracing.StartParams{TraceConfig: &tracing.TraceConfig{
		IncludedCategories: []string{"devtools.timeline", "toplevel", "cc", "viz", "__metadata"},
	}})
	during()
	command(p, tracing.End, struct{}{})
	select {
	case <-complete:
	case <-time.After(patience):
		p.t.Fatalf("trace: it has not ended after %v", patience)
	}
	if failed != nil {
		p.t.Fatalf("trace: %v", failed)
	}
	return spans
}
