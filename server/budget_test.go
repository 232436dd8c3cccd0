package server

import (
	"context"
	"testing"
	"time"
)

// A claim that fits may overtake one that does not, but not for ever.
func TestClaimsPass(t *testing.T) {
	l := &budget{size: 100}
	l.take(90)
	granted := make(chan error, 1)
	go func() { granted <- l.acquire(t.Context(), 60) }()
	for !l.crowded() {
		time.Sleep(time.Millisecond)
	}
	passed := 0
	for ; passed < 1000; passed++ {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := l.acquire(ctx, 10)
		cancel()
		if err != nil {
			break
		}
		l.give(10)
	}
	if passed != 16 {
		t.Errorf("claims that passed: got %d, want %d", passed, 16)
	}
	l.give(90)
	if err := <-granted; err != nil {
		t.Errorf("the claim that waited: got %v, want no error", err)
	}
	l.give(60)
	if got := l.bytes(); got != 0 {
		t.Errorf("at the end: got %d bytes, want 0", got)
	}
}

// An object that the cache drops while its last user releases it cannot be found afterwards.
func TestTheLastReleaseOfADroppedObject(t *testing.T) {
	k := newTracker(1<<20, 1<<20, 1<<20, func() int64 { return time.Now().UnixNano() })
	o := &object{body: make([]byte, 10), tracker: k}
	o.pin()
	o.state.Or(notCached) // uncached begins
	o.release()
	k.hold(o) // uncached ends
	if got := len(k.uncached); got != 0 {
		t.Errorf("objects that nobody uses: got %d, want 0", got)
	}
	if got := k.small.bytes(); got != 0 {
		t.Errorf("bytes: got %d, want 0", got)
	}
}
