package browser

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
	json "github.com/goccy/go-json"
)

// A Span is an activity of a browser thread.
type Span struct {
	Name string `json:"name"` // Chromium's name, such as "ThreadControllerImpl::RunTask", "Layout", "Paint"
	Of   string `json:"-"`    // name of the thread; a page has "CrRendererMain"
	// Start by the browser's clock, duration, and processor time, in microseconds.
	Begun float64 `json:"ts"`
	Took  float64 `json:"dur"`
	Busy  float64 `json:"tdur"`
}

// A traced is a span in Chromium's format.
type traced struct {
	Span
	Process int `json:"pid"`
	Thread  int `json:"tid"`
	Args    struct {
		Name string `json:"name"` // name of the thread, in events called "thread_name"
	} `json:"args"`
}

// Trace returns the spans of the browser while during ran, other pages included.
func (p *Page) Trace(during func()) (spans []Span) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	complete := make(chan struct{})
	type thread struct{ process, thread int }
	var all []traced
	names := map[thread]string{}
	var failed error
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *tracing.EventDataCollected:
			for _, value := range e.Value {
				var span traced
				if err := json.Unmarshal(value, &span); err != nil {
					failed = err
				}
				if span.Name == "thread_name" {
					names[thread{span.Process, span.Thread}] = span.Args.Name
				} else if span.Took > 0 {
					all = append(all, span)
				}
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
	for _, span := range all {
		span.Of = names[thread{span.Process, span.Thread}]
		spans = append(spans, span.Span)
	}
	return spans
}
