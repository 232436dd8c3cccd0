package command

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// plainEvery is the time between lines about one stage where there is no terminal.
const plainEvery = 10 * time.Second

// Progress shows how far a run is: a bar on a terminal, plain lines elsewhere. Its
// methods may be called from many goroutines.
type Progress struct {
	out      io.Writer
	terminal bool

	mu    sync.Mutex
	bar   *progressbar.ProgressBar
	stage string
	total int64
	begun time.Time
	next  atomic.Int64 // Unix nanoseconds of the next plain line
	done  atomic.Int64
}

// NewProgress shows progress on out.
func NewProgress(out io.Writer) *Progress {
	file, ok := out.(*os.File)
	return &Progress{out: out, terminal: ok && term.IsTerminal(int(file.Fd()))}
}

// Stage ends the stage before and begins one that will add up to total, 0 if that
// is not known.
func (p *Progress) Stage(name string, total int64) {
	p.End()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stage, p.total, p.begun = name, total, time.Now()
	p.done.Store(0)
	p.next.Store(p.begun.Add(plainEvery).UnixNano())
	if !p.terminal {
		return
	}
	if total == 0 {
		total = -1 // a spinner
	}
	p.bar = progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(p.out), progressbar.OptionSetDescription(fmt.Sprintf("%-9s", name)),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionClearOnFinish(),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionFullWidth())
}

// Add says that n more are done.
func (p *Progress) Add(n int64) {
	done := p.done.Add(n)
	if p.terminal {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.bar != nil {
			_ = p.bar.Add64(n) // a bar that cannot be drawn is no reason to stop
		}
		return
	}
	now, next := time.Now(), p.next.Load()
	if now.UnixNano() >= next && p.next.CompareAndSwap(next, now.Add(plainEvery).UnixNano()) {
		p.mu.Lock()
		defer p.mu.Unlock()
		fmt.Fprintf(p.out, "%-9s %s so far\n", p.stage, p.count(done))
	}
}

// End ends the last stage.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Finish()
		p.bar = nil
	}
	if p.stage != "" && !p.terminal {
		fmt.Fprintf(p.out, "%-9s %s in %s\n", p.stage, p.count(p.done.Load()), time.Since(p.begun).Round(time.Millisecond))
	}
	p.stage = ""
}

func (p *Progress) count(done int64) string {
	switch {
	case p.total > 0:
		return fmt.Sprintf("%d of %d", done, p.total)
	case done > 0:
		return fmt.Sprint(done)
	}
	return "done"
}
