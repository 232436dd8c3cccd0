package cache

import (
	"testing"
	"time"

	"github.com/followpress/followpress/server/internal/gate"
)

// An object that the cache drops while its last user releases it cannot be found afterwards.
func TestTheLastReleaseOfADroppedObject(t *testing.T) {
	k := newTracker(Gates{Small: &gate.Gate{Size: 1 << 20}}, 1<<20, func() int64 { return time.Now().UnixNano() })
	o := &Object{Body: make([]byte, 10), tracker: k}
	o.Pin()
	o.state.Or(notCached) // uncached begins
	o.Release()
	k.hold(o) // uncached ends
	if got := len(k.uncached); got != 0 {
		t.Errorf("objects that nobody uses: got %d, want 0", got)
	}
	if got := k.gates.Small.Taken(); got != 0 {
		t.Errorf("bytes: got %d, want 0", got)
	}
}
