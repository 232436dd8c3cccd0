package lock

import (
	"testing"
	"time"
)

// A machine's clock counts the time that passes, no faster than Go's.
func TestMachineTimePasses(t *testing.T) {
	before, begun := MachineTime(), time.Now()
	time.Sleep(20 * time.Millisecond)
	passed := MachineTime().Monotonic.Sub(before.Monotonic)
	if most := time.Since(begun); passed < 20*time.Millisecond || passed > most+time.Second {
		t.Errorf("time that passed: got %v, want 20ms to %v", passed, most)
	}
}
