package command

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Intervals between lines about a stage; a terminal rewrites one line.
const (
	terminalEvery = 100 * time.Millisecond
	plainEvery    = 10 * time.Second
)

// eraseLine moves a terminal's cursor to the start of its line and erases the line (ECMA-48, EL).
const eraseLine = "\r\x1b[K"

// Progress shows the progress of a run: a rewritten line on a terminal, otherwise a line now and then,
// and a line for each stage that ended. Its methods are safe for concurrent use.
type Progress struct {
	out      io.Writer
	terminal bool

	mu     sync.Mutex
	stage  string
	total  int64
	begun  time.Time
	stages []Stage      // ended stages
	next   atomic.Int64 // time of the next line, Unix nanoseconds
	done   atomic.Int64
	bytes  atomic.Int64
}

// A Stage is a part of a run that ended.
type Stage struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Items   int64   `json:"items"` // 0 if not counted
	Bytes   int64   `json:"bytes"` // 0 if not counted
}

// NewProgress shows progress on out.
func NewProgress(out io.Writer) *Progress {
	p := &Progress{out: out}
	if file, ok := out.(*os.File); ok && os.Getenv("TERM") != "dumb" {
		info, err := file.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

// Stage ends the previous stage and begins one of total items; 0 if unknown.
func (p *Progress) Stage(name string, total int64) {
	p.End()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stage, p.total, p.begun = name, total, time.Now()
	p.done.Store(0)
	p.bytes.Store(0)
	p.next.Store(p.begun.Add(p.every()).UnixNano())
}

// every returns the interval between lines.
func (p *Progress) every() time.Duration {
	if p.terminal {
		return terminalEvery
	}
	return plainEvery
}

// Add reports n more items done.
func (p *Progress) Add(n int64) { p.AddBytes(n, 0) }

// AddBytes reports n more items done, of this many bytes together.
func (p *Progress) AddBytes(n, bytes int64) {
	done, size := p.done.Add(n), p.bytes.Add(bytes)
	now, next := time.Now(), p.next.Load()
	if now.UnixNano() >= next && p.next.CompareAndSwap(next, now.Add(p.every()).UnixNano()) {
		p.mu.Lock()
		defer p.mu.Unlock()
		line := fmt.Sprintf("%-9s %s so far%s", p.stage, p.count(done), p.speed(done, size, now.Sub(p.begun)))
		if p.terminal {
			fmt.Fprint(p.out, eraseLine+line)
			return
		}
		fmt.Fprintln(p.out, line)
	}
}

func (p *Progress) speed(done, bytes int64, took time.Duration) string {
	text := ", " + rate(done, took)
	if bytes > 0 {
		text += ", " + perSecond(bytes, took)
	}
	if p.total > done && done > 0 {
		left := time.Duration(float64(took) / float64(done) * float64(p.total-done))
		text += fmt.Sprintf(", %s left", left.Round(time.Second))
	}
	return text
}

// rate formats a number of items per second: 0.2/s, 730/s, 12k/s, 234M/s.
func rate(items int64, took time.Duration) string {
	n := float64(items) / max(took, time.Millisecond).Seconds()
	switch {
	case n < 10:
		return fmt.Sprintf("%.1f/s", n)
	case n < 1e4:
		return fmt.Sprintf("%.0f/s", n)
	case n < 1e7:
		return fmt.Sprintf("%.0fk/s", n/1e3)
	}
	return fmt.Sprintf("%.0fM/s", n/1e6)
}

func perSecond(bytes int64, took time.Duration) string {
	return fmt.Sprintf("%.1f MB/s", float64(bytes)/1e6/took.Seconds())
}

// End ends the last stage.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stage != "" {
		if p.terminal {
			fmt.Fprint(p.out, eraseLine)
		}
		fmt.Fprintf(p.out, "%-9s %s in %s\n", p.stage, p.count(p.done.Load()), time.Since(p.begun).Round(time.Millisecond))
		p.stages = append(p.stages, Stage{p.stage, time.Since(p.begun).Seconds(), p.done.Load(), p.bytes.Load()})
	}
	p.stage = ""
}

// Stages returns the ended stages in order, never nil.
func (p *Progress) Stages() []Stage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Stage{}, p.stages...)
}

func (p *Progress) count(done int64) string {
	switch {
	case p.total > 0 && done <= p.total: // a listing may exceed the expected total
		return fmt.Sprintf("%d of %d", done, p.total)
	case done > 0:
		return fmt.Sprint(done)
	}
	return "done"
}
