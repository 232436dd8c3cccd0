package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// The minimum rate of bodies, so that a server that sends one byte a second cannot stall a run.
const (
	paceWindow = 30 * time.Second // time during which at least one body was read
	paceBytes  = 30 << 10         // minimum within paceWindow
	paceTick   = time.Second      // interval of checks while no bytes arrive
)

var errSlow = errors.New("the server sends less than 1 KiB/s; use another server, or try later")

// A pace measures the rate of a server over all requests. Only the time in which bodies are read counts: the wait for
// a response has its own timeout. It is safe for concurrent use.
type pace struct {
	mu      sync.Mutex
	reading int           // number of bodies being read
	since   time.Time     // up to when spent is counted
	spent   time.Duration // reading time in the current window
	bytes   int           // received in the current window
}

// begin and end bracket the reading of one body.
func (p *pace) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count()
	p.reading++
}

func (p *pace) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count()
	p.reading--
}

// count adds the reading time until now. The caller holds mu.
func (p *pace) count() {
	now := time.Now()
	if p.reading > 0 {
		p.spent += now.Sub(p.since)
	}
	p.since = now
}

// got adds received bytes. It returns errSlow if the window is over and had too few.
func (p *pace) got(n int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count()
	p.bytes += n
	if p.spent < paceWindow {
		return nil
	}
	few := p.bytes < paceBytes
	p.spent, p.bytes = 0, 0
	if few {
		return errSlow
	}
	return nil
}

// A pacedBody fails with errSlow if its server is too slow.
type pacedBody struct {
	body   io.ReadCloser
	pace   *pace
	cancel context.CancelCauseFunc // interrupts a blocked read
	ctx    context.Context
	timer  *time.Timer
}

// paced begins to read a body. cancel ends the request, whose context is ctx.
func (p *pace) paced(ctx context.Context, body io.ReadCloser, cancel context.CancelCauseFunc) *pacedBody {
	p.begin()
	b := &pacedBody{body: body, pace: p, cancel: cancel, ctx: ctx}
	b.timer = time.AfterFunc(paceWindow, func() {
		if err := p.got(0); err != nil {
			cancel(err)
		} else if ctx.Err() == nil {
			b.timer.Reset(paceTick)
		}
	})
	b.timer.Reset(paceTick)
	return b
}

func (b *pacedBody) Read(into []byte) (int, error) {
	n, err := b.body.Read(into)
	if slow := b.pace.got(n); slow != nil {
		return n, slow
	}
	if cause := context.Cause(b.ctx); err != nil && errors.Is(cause, errSlow) {
		err = cause
	}
	return n, err
}

func (b *pacedBody) Close() error {
	b.cancel(nil)
	b.timer.Stop()
	b.pace.end()
	if err := b.body.Close(); err != nil {
		return fmt.Errorf("close a body: %w", err)
	}
	return nil
}
