// Package retry repeats requests that fail for a passing reason, with exponential backoff.
// The publisher, the purger and the storage package share it.
package retry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// A Policy describes which errors to retry, when and for how long. It may be copied and used
// from many goroutines.
type Policy struct {
	Retryable func(error) bool // reports whether another attempt may succeed
	First     time.Duration    // as in Waits
	Longest   time.Duration    // the same; After may ask for more
	Patience  time.Duration    // give up once the next wait would end later than this after the first failure; 0 means no limit
	Attempts  int              // give up after this many attempts; 0 means no limit
	NoJitter  bool             // wait exactly as long; otherwise each wait is up to half shorter or longer

	// Before, unless nil, is called before each attempt, for example to wait for a slot.
	// Its time does not count towards Patience. Its error ends Do.
	Before func() error

	Hint    string        // what to check, for the error message after giving up; may be empty
	Log     *slog.Logger  // logs each retry; nil means none
	Retries *atomic.Int64 // counts the retries of all calls that share it; nil means none
}

// Waits are the times between attempts: the first, then each twice the one before, up to the longest; by chance up to half
// shorter or longer.
type Waits struct {
	First, Longest time.Duration
	Exact          bool // without chance
	last           time.Duration
}

// Next returns how long to wait now.
func (w *Waits) Next() time.Duration {
	if w.last == 0 {
		w.last = w.First
	} else {
		w.last = min(2*w.last, w.Longest)
	}
	if w.Exact {
		return w.last
	}
	return w.last/2 + rand.N(w.last+1)
}

// Reset makes the next wait the first one.
func (w *Waits) Reset() { w.last = 0 }

// Do calls attempt until it succeeds, fails with an error that is not retryable, or the
// policy gives up; then Do returns that error, in the latter case wrapped. When ctx ends, Do
// does not wait any longer, and returns the cause instead of a retryable error; an attempt
// that is running is left to end by itself. The attributes describe the request in the log.
func (p Policy) Do(ctx context.Context, attempt func() error, attributes ...any) error {
	waits := Waits{First: p.First, Longest: p.Longest, Exact: p.NoJitter}
	var patienceFrom time.Time
	for n := 1; ; n++ {
		if p.Before != nil {
			begun := time.Now()
			if err := p.Before(); err != nil {
				return err
			}
			patienceFrom = patienceFrom.Add(time.Since(begun))
		}
		err := attempt()
		if err == nil || !p.Retryable(err) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if n == 1 {
			patienceFrom = time.Now()
		}
		wait, after := waits.Next(), (*afterError)(nil)
		asked := errors.As(err, &after) && after.wait > wait
		if asked {
			wait = after.wait
			waits.Reset()
		}
		if why := p.enough(n, time.Since(patienceFrom), wait, asked); why != "" {
			return p.giveUp(err, why)
		}
		p.note(err, wait, attributes)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// enough returns the reason to stop after n attempts and a wait, or "" to continue.
func (p Policy) enough(n int, tried, wait time.Duration, asked bool) string {
	switch {
	case p.Attempts > 0 && n >= p.Attempts:
		return fmt.Sprintf("tried %d times", n)
	case p.Patience > 0 && asked && wait > p.Patience:
		return fmt.Sprintf("the server asks to wait %s, longer than the patience of %s", wait.Round(time.Second), p.Patience)
	case p.Patience > 0 && tried+wait > p.Patience:
		return fmt.Sprintf("tried for %s", p.Patience)
	}
	return ""
}

func (p Policy) giveUp(err error, why string) error {
	if p.Hint != "" {
		why += ": " + p.Hint
	}
	return fmt.Errorf("%w (%s)", err, why)
}

func (p Policy) note(err error, wait time.Duration, attributes []any) {
	level := slog.LevelInfo
	if p.Retries != nil && p.Retries.Add(1) == 1 {
		level = slog.LevelWarn // the first retry explains to a person why nothing moves
	}
	if p.Log != nil {
		p.Log.Log(context.Background(), level, "trying again", append(attributes, "in", wait.Round(time.Millisecond), "error", err)...)
	}
}

// After wraps an error with the wait that the server asked for, as in the header
// Retry-After. It takes the place of the next backoff if it is longer, and may exceed
// Policy.Longest. A server that asks for no wait, or for one that is over, gets the backoff.
func After(err error, wait time.Duration) error { return &afterError{err, wait} }

type afterError struct {
	error
	wait time.Duration
}

func (e *afterError) Unwrap() error { return e.error }
