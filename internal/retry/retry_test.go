package retry

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var errBusy = errors.New("busy")

func policy() Policy {
	return Policy{
		Retryable: func(err error) bool { return errors.Is(err, errBusy) },
		First:     100 * time.Millisecond, Longest: time.Second, NoJitter: true,
	}
}

// starts runs Do on virtual time and returns its error and when each attempt began.
func starts(t *testing.T, p Policy, ctx func() context.Context, attempt func(n int) error) (at []time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		begun := time.Now()
		err = p.Do(ctx(), func() error {
			at = append(at, time.Since(begun))
			return attempt(len(at))
		})
	})
	return at, err
}

func milliseconds(n ...int) []time.Duration {
	all := make([]time.Duration, len(n))
	for i := range n {
		all[i] = time.Duration(n[i]) * time.Millisecond
	}
	return all
}

func TestDo(t *testing.T) {
	errFinal := errors.New("final")
	for _, test := range []struct {
		name    string
		change  func(*Policy)
		attempt func(n int) error
		starts  []time.Duration
		err     error
		text    string
	}{
		{"success at once", func(*Policy) {}, func(int) error { return nil }, milliseconds(0), nil, ""},
		{"waits double up to the longest", func(p *Policy) { p.Longest = 300 * time.Millisecond },
			func(n int) error {
				if n < 5 {
					return errBusy
				}
				return nil
			}, milliseconds(0, 100, 300, 600, 900), nil, ""},
		{"an error that is not retryable", func(*Policy) {}, func(int) error { return errFinal }, milliseconds(0), errFinal, "final"},
		{"attempts", func(p *Policy) { p.Attempts = 3 }, func(int) error { return errBusy }, milliseconds(0, 100, 300), errBusy, "busy (tried 3 times)"},
		{"patience, and a hint", func(p *Policy) { p.Patience, p.Hint = time.Second, "check the server" },
			func(int) error { return errBusy }, milliseconds(0, 100, 300, 700), errBusy, "busy (tried for 1s: check the server)"},
		{"patience counts from the first failure", func(p *Policy) { p.Patience = 250 * time.Millisecond },
			func(n int) error {
				if n == 1 {
					time.Sleep(time.Minute)
				}
				return errBusy
			}, milliseconds(0, 60_100), errBusy, "busy (tried for 250ms)"},
		{"patience does not count the time in Before", func(p *Policy) {
			p.Patience, p.Before = 400*time.Millisecond, func() error { time.Sleep(time.Second); return nil }
		}, func(int) error { return errBusy }, milliseconds(1000, 2100, 3300), errBusy, "busy (tried for 400ms)"},
		{"an error of Before", func(p *Policy) { p.Before = func() error { return errBusy } }, nil, nil, errBusy, "busy"},
		{"attempts end before patience does", func(p *Policy) { p.Attempts, p.Patience = 3, time.Minute },
			func(int) error { return errBusy }, milliseconds(0, 100, 300), errBusy, "busy (tried 3 times)"},
		{"patience ends before attempts do", func(p *Policy) { p.Attempts, p.Patience = 3, 150*time.Millisecond },
			func(int) error { return errBusy }, milliseconds(0, 100), errBusy, "busy (tried for 150ms)"},
		{"the server asks for a longer wait than patience", func(p *Policy) { p.Patience = 2 * time.Minute },
			func(int) error { return After(errBusy, 5*time.Minute) }, milliseconds(0), errBusy,
			"busy (the server asks to wait 5m0s, longer than the patience of 2m0s)"},
		{"a server that asks for no wait gets the backoff", func(p *Policy) { p.Attempts = 5 },
			func(int) error { return After(errBusy, 0) }, milliseconds(0, 100, 300, 700, 1500), errBusy, "busy (tried 5 times)"},
		{"one that asks for a shorter wait too", func(p *Policy) { p.Attempts = 4 },
			func(int) error { return After(errBusy, 50*time.Millisecond) }, milliseconds(0, 100, 300, 700), errBusy, "busy (tried 4 times)"},
		{"a wait that the server asks for begins the backoff again", func(p *Policy) { p.Attempts = 4 }, func(n int) error {
			if n == 2 {
				return After(errBusy, 5*time.Second)
			}
			return errBusy
		}, milliseconds(0, 100, 5100, 5200), errBusy, "busy (tried 4 times)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := policy()
			test.change(&p)
			at, err := starts(t, p, context.Background, test.attempt)
			if !slices.Equal(at, test.starts) {
				t.Errorf("starts of attempts: got %v, want %v", at, test.starts)
			}
			if !errors.Is(err, test.err) || err != nil && err.Error() != test.text {
				t.Errorf("error: got %v, want %q", err, test.text)
			}
		})
	}
}

func TestContextEndsWaits(t *testing.T) {
	errCause := errors.New("interrupted")
	at, err := starts(t, policy(), func() context.Context {
		ctx, cancel := context.WithCancelCause(context.Background())
		time.AfterFunc(150*time.Millisecond, func() { cancel(errCause) })
		return ctx
	}, func(int) error { return errBusy })
	if want := milliseconds(0, 100); !slices.Equal(at, want) {
		t.Errorf("starts of attempts: got %v, want %v", at, want)
	}
	if !errors.Is(err, errCause) {
		t.Errorf("error: got %v, want %v", err, errCause)
	}
}

func TestJitter(t *testing.T) {
	p := policy()
	p.NoJitter, p.Attempts = false, 2
	waits := map[time.Duration]bool{}
	for range 20 {
		at, _ := starts(t, p, context.Background, func(int) error { return errBusy })
		if at[1] < p.First/2 || at[1] > p.First*3/2 {
			t.Errorf("first wait: got %v, want %v to %v", at[1], p.First/2, p.First*3/2)
		}
		waits[at[1]] = true
	}
	if len(waits) < 2 {
		t.Errorf("different first waits of 20 calls: got %d, want 2 or more", len(waits))
	}
}

func TestRetriesAreCountedAndLogged(t *testing.T) {
	var log strings.Builder
	p := policy()
	p.Retries, p.Attempts = &atomic.Int64{}, 3
	p.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	synctest.Test(t, func(t *testing.T) {
		_ = p.Do(t.Context(), func() error { return errBusy }, "request", "get x")
	})
	if got := p.Retries.Load(); got != 2 {
		t.Errorf("retries: got %d, want 2", got)
	}
	want := `level=WARN msg="trying again" request="get x" in=100ms error=busy
level=INFO msg="trying again" request="get x" in=200ms error=busy
`
	if log.String() != want {
		t.Errorf("log: got %s, want %s", log.String(), want)
	}
}
