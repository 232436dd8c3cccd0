package gate

import (
	"context"
	"testing"
	"time"
)

// A claim that fits may overtake one that does not, but not for ever.
func TestClaimsPass(t *testing.T) {
	l := &Gate{Size: 100}
	l.Count(90)
	granted := make(chan error, 1)
	go func() { granted <- l.Take(t.Context(), 60) }()
	for !l.Crowded() {
		time.Sleep(time.Millisecond)
	}
	passed := 0
	for ; passed < 1000; passed++ {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := l.Take(ctx, 10)
		cancel()
		if err != nil {
			break
		}
		l.Give(10)
	}
	if passed != 16 {
		t.Errorf("claims that passed: got %d, want %d", passed, 16)
	}
	l.Give(90)
	if err := <-granted; err != nil {
		t.Errorf("the claim that waited: got %v, want no error", err)
	}
	l.Give(60)
	if got := l.Taken(); got != 0 {
		t.Errorf("at the end: got %d bytes, want 0", got)
	}
}

// What it costs to wait, and to leave a gate where others wait, does not grow with how many do.
func TestManyWait(t *testing.T) {
	took := func(waiting int) time.Duration { // the least of some, since a busy machine interrupts
		g := &Gate{Size: 1}
		g.Count(1)
		for range waiting {
			g.queue.PushBack(&claim{n: 1, granted: make(chan struct{})})
			g.waiting.Add(1)
		}
		least := time.Hour
		for range 5 {
			begun := time.Now()
			for range 1000 {
				g.grant()
			}
			least = min(least, time.Since(begun))
		}
		return least
	}
	if few, many := took(10), took(10_000); many > 50*few+time.Millisecond {
		t.Errorf("a thousand looks at 10,000 claims: got %v, want about the %v that those at 10 take", many, few)
	}
}
