package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// The least that a server may send while bodies are read: so that one that sends a byte a second does not hold a run.
const (
	paceWindow = 30 * time.Second // of time in which a body is read, of one request or of many
	paceBytes  = 30 << 10         // within that
	paceTick   = time.Second      // between two looks while nothing comes
)

var errSlow = errors.New("the server sends less than 1 KiB a second: name another place, or try later")

// A pace measures what a server sends, over all requests. Waiting for an answer does not count: that has a limit of its
// own. It is safe for concurrent use.
type pace struct {
	mu      sync.Mutex
	reading int           // bodies
	since   time.Time     // when the first of them began, or was looked at last
	spent   time.Duration // of the window
	bytes   int           // within it
}

// begin begins the time in which a body is read, and end ends it.
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

// count adds the time until now. The caller has the lock.
func (p *pace) count() {
	now := time.Now()
	if p.reading > 0 {
		p.spent += now.Sub(p.since)
	}
	p.since = now
}

// got notes bytes that have come. It is errSlow if they are too few of a window that is over.
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

// A pacedBody is a body that ends with errSlow if its server is too slow.
type pacedBody struct {
	body   io.ReadCloser
	pace   *pace
	cancel context.CancelCauseFunc // ends a read that waits
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
