package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/followpress/followpress/browsers/internal/browser"
)

// Names of the measures.
const (
	first       = "first view usable"
	words       = "first words, at 400 kbit/s"
	searched    = "search as you type, with the index: list shown, p95"
	early       = "search as you type, without the index: list shown, p95"
	lookup      = "search without the index: account of a whole name shown"
	profile     = "profile of the most followed account shown"
	board       = "board, scrolling through 10,000 rows: longest frame"
	boardFrames = "board, scrolling: frames"
	boardTask   = "board, scrolling: longest task of the page, on a processor"
	boardBusy   = "board, scrolling: all tasks of the page, on a processor"
	graph       = "neighbourhood, dragging: frames"
	graphShown  = "neighbourhood shown"
)

// A visitor opens pages.
type visitor struct {
	browser.T
	*bench
	*browser.Browser
	base string
}

// listening records key presses, and the text shown after each.
const listening = `
	globalThis.typed = [];
	globalThis.listed = [];
	addEventListener('keydown', (event) => { if (event.key.length === 1) globalThis.pressed = event.timeStamp; }, true);
	addEventListener('input', (event) => typed.push({ text: event.target.value, at: pressed }), true);
	new PerformanceObserver((list) => {
		for (const mark of list.getEntries()) {
			if (mark.name === 'followpress:search') {
				listed.push({ text: mark.detail, at: mark.startTime, people: document.querySelectorAll('[role=option]').length > 1 });
			}
		}
	}).observe({ type: 'mark' });
`

func (v *visitor) open(view string, late map[string]time.Duration) *browser.Page {
	network := browser.Slow
	network.Late = late
	p := v.OpenSlow(v.T, v.base+view, browser.View{Size: browser.Desktop, Moving: true, Before: listening}, network)
	p.Forgive("/_search/users/") // the bucket of a name's beginning may not exist
	return p
}

// mark returns the time of an event, in milliseconds since the visit began.
func (v *visitor) mark(p *browser.Page, name string) float64 {
	entry := fmt.Sprintf("performance.getEntriesByName('followpress:%s')", name)
	p.Wait(entry + ".length > 0")
	return browser.Eval[float64](p, entry+"[0].startTime")
}

// narrow is a slow mobile network, as on a train.
var narrow = browser.Network{BytesPerSecond: 400e3 / 8, Latency: 40 * time.Millisecond}

// words measures the time until text is readable.
func (v *visitor) words() {
	p := v.OpenSlow(v.T, v.base+"#/", browser.View{Size: browser.Phone, Moving: true}, narrow)
	v.found(words, browser.Eval[float64](p, "performance.getEntriesByName('first-contentful-paint')[0].startTime"))
	p.Close()
}

func (v *visitor) first() {
	p := v.open("#/", nil)
	v.found(first, v.mark(p, "usable"))
	p.Close()
}

// A moment is the time when a text was typed, or when its results appeared.
type moment struct {
	Text   string
	At     float64
	People bool
}

// keystrokes returns the time from each keystroke until the list for the text was shown.
func keystrokes(p *browser.Page) (all []float64) {
	typed := browser.Eval[[]moment](p, "typed")
	listed := browser.Eval[[]moment](p, "listed")
	for _, key := range typed {
		i := slices.IndexFunc(listed, func(m moment) bool { return m.Text == key.Text && m.At >= key.At })
		if i >= 0 {
			all = append(all, listed[i].At-key.At)
		}
	}
	return all
}

// between is the pause between keys of a fast typist.
const between = 100 * time.Millisecond

func focusSearch(p *browser.Page) {
	p.WaitFor("[role=combobox]")
	browser.Eval[any](p, "void document.querySelector('[role=combobox]').focus()")
}

// texts returns beginnings of names that the search finds.
func (v *visitor) texts(n int) (texts []string) {
	for i, a := range v.top {
		if text, _, ok := strings.Cut(a.name, ".eth"); ok && i%7 == 0 && len(text) >= 3 && len(texts) < n && isASCII(text) {
			texts = append(texts, text[:min(6, len(text))])
		}
	}
	if len(texts) == 0 {
		v.Fatalf("no account of the most followed has a name to search for")
	}
	return texts
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

func (v *visitor) search() {
	p := v.open("#/", nil)
	v.mark(p, "usable")
	focusSearch(p)
	p.Settle() // focusing the box loads the index
	for _, text := range v.texts(12) {
		browser.Eval[any](p, "void document.querySelector('[role=combobox]').select()")
		for _, key := range text {
			p.Press(string(key))
			time.Sleep(between)
		}
	}
	p.Settle()
	v.percentile(searched, p)
	p.Close()
}

// percentile records the p95 of the keystrokes in a page. Each keystroke must have results.
func (v *visitor) percentile(measure string, p *browser.Page) {
	took := keystrokes(p)
	if typed := browser.Eval[int](p, "typed.length"); len(took) < typed || typed == 0 {
		v.Fatalf("%s: a list was shown for %d of %d keystrokes", measure, len(took), typed)
	}
	v.found(measure, percentile(took, 95))
}

// early types before the index has arrived; the test delays it.
func (v *visitor) early() {
	p := v.open("#/", map[string]time.Duration{"http://*:*/_explore/top": 20 * time.Second})
	focusSearch(p)
	name := v.top[0].name
	for _, a := range v.top {
		if isASCII(a.name) && strings.HasSuffix(a.name, ".eth") && strings.Count(a.name, ".") == 1 {
			name = a.name
			break
		}
	}
	for _, key := range strings.TrimSuffix(name, ".eth") {
		p.Press(string(key))
		time.Sleep(between)
	}
	p.Wait("listed.some((shown) => shown.people && shown.text === typed.at(-1).text)")
	v.percentile(early, p)
	v.found(lookup, browser.Eval[float64](p, "listed.find((shown) => shown.people && shown.text === typed.at(-1).text).at - typed.at(-1).at"))
	p.Close()
}

func (v *visitor) profile() {
	p := v.open("#/"+v.top[0].address, nil)
	v.found(profile, v.mark(p, "profile"))
	p.Close()
}

// board scrolls quickly through the ranked accounts: once to measure frames, and once to measure
// tasks, since tracing takes time itself. Frames depend on other work of the machine, tasks do not.
func (v *visitor) board() {
	v.scrolling(func(p *browser.Page, scroll func()) {
		frames := p.Frames(scroll)
		v.found(board, slices.Max(frames))
		v.found(boardFrames, rate(frames))
	})
	v.scrolling(func(p *browser.Page, scroll func()) {
		longest, all := 0.0, 0.0
		for _, task := range p.Trace(scroll) {
			if task.Name == "ThreadControllerImpl::RunTask" && task.Of == "CrRendererMain" {
				longest, all = max(longest, task.Busy/1000), all+task.Busy/1000
			}
		}
		v.found(boardTask, longest)
		v.found(boardBusy, all)
	})
}

func (v *visitor) scrolling(measure func(p *browser.Page, scroll func())) {
	p := v.open("#/boards/followers", nil)
	v.mark(p, "board")
	p.Settle()
	height := browser.Eval[float64](p, "document.querySelector('[data-index]').getBoundingClientRect().height")
	steps := 150
	measure(p, func() {
		for range steps {
			p.Wheel(700, 500, 10_000*height/float64(steps))
			time.Sleep(30 * time.Millisecond)
		}
	})
	last := browser.Eval[float64](p, "Math.max(...[...document.querySelectorAll('[data-index]')].map((row) => Number(row.dataset.index)))")
	if last < 9_000 {
		v.Logf("board: scrolled to row %v only", last)
	}
	p.Close()
}

// graph drags the picture in circles.
func (v *visitor) graph() {
	p := v.open("#/a/"+v.centre.address+"/graph", nil)
	v.found(graphShown, v.mark(p, "graph"))
	p.Settle()
	x, y := p.Middle("main canvas")
	p.Hold(x, y)
	frames := p.Frames(func() {
		for i := range 200 {
			p.Mouse(x+float64(i%40*5), y+float64(i%30*4), true)
			time.Sleep(10 * time.Millisecond)
		}
	})
	p.Release(x, y)
	v.found(graph, rate(frames))
	p.Close()
}

// rate returns the number of frames per second.
func rate(frames []float64) float64 {
	total := 0.0
	for _, frame := range frames {
		total += frame
	}
	return 1000 * float64(len(frames)) / total
}
