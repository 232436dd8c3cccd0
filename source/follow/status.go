package follow

import (
	"time"

	"github.com/followpress/followpress/source"
)

// A Status says how a Follower or a Database gets on.
type Status struct {
	Chains []ChainStatus // in the order of the deployment
	// Confirmed is when the contracts last confirmed what the state has; the zero time before. Confirming
	// says what was wrong with the last attempt, "" if nothing was.
	Confirmed  time.Time
	Confirming string
}

// A ChainStatus says how far one chain is.
type ChainStatus struct {
	Name string // such as Base
	source.Head
	// Seen is when the newest block was first seen, with a monotonic clock; the zero time before the first.
	Seen time.Time
	// Behind is how old the newest block was when it was first seen, by the clock of this machine as it
	// was when the process began: it does not jump. It is not negative.
	Behind          time.Duration
	Error           string // of the last attempt to ask nodes; "" if they answered. It has nothing of a URL but the host
	Requests        int64  // HTTP requests to nodes
	Subscribed      bool   // whether a node tells of new blocks by itself
	Reorganisations uint64 // times that blocks of a round were replaced
}

// Lag is the time since the newest block that was seen: it grows while no new one comes.
func (s *ChainStatus) Lag() time.Duration {
	if s.Seen.IsZero() {
		return 0
	}
	return s.Behind + time.Since(s.Seen)
}
