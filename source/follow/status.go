package follow

import (
	"time"

	"github.com/followpress/followpress/source"
)

// A Status is the condition of a Follower.
type Status struct {
	Chains []ChainStatus // in the order of the deployment
	// Confirmed is when the contracts last confirmed the state; zero before the first time.
	// Confirming is the error of the last attempt, "" for none.
	Confirmed  time.Time
	Confirming string
	Additions  string // error of reading Options.Tables again; "" for none
}

// A ChainStatus is the condition of one chain.
type ChainStatus struct {
	Name string // for example Base
	source.Head
	// Seen is when the newest block was first seen, by a monotonic clock; zero before the first.
	Seen time.Time
	// Behind is the age of the newest block when first seen, by this machine's clock as of the
	// start of the process: later clock changes do not matter. It is not negative.
	Behind          time.Duration
	Error           string       // error of the last attempt to ask nodes, with only the host of a URL; "" for none
	Nodes           []NodeStatus // nodes asked, by name
	Requests        int64        // HTTP requests to nodes
	Reorganisations uint64       // number of times that blocks were replaced
}

// A NodeStatus is the condition of the node at one URL.
type NodeStatus struct {
	Host     string    // as named in errors
	Answered time.Time // time of the last answer; zero for never
	Failing  bool      // the last attempt failed
	Error    string    // last error, perhaps resolved; "" for none
	Failed   time.Time // time of Error
}

// Lag returns the time since the newest block was seen, which grows until a new one arrives. known
// is false before the first.
func (s *ChainStatus) Lag() (lag time.Duration, known bool) {
	if s.Seen.IsZero() {
		return 0, false
	}
	return s.Behind + time.Since(s.Seen), true
}

// A clock starts at the machine's time and then runs monotonically: setting the machine's clock
// does not change it.
type clock struct{ began time.Time }

// since returns the age of a time in seconds since the Unix epoch; 0 if it is in the future.
func (c clock) since(seconds int64) time.Duration {
	return max(0, c.began.Add(time.Since(c.began)).Sub(time.Unix(seconds, 0)))
}

// Status returns the condition of the Follower.
func (f *Follower) Status() Status {
	f.mu.Lock()
	s := Status{Confirmed: f.confirmedAt, Confirming: f.confirming, Additions: f.unread}
	f.mu.Unlock()
	for _, l := range f.links {
		s.Chains = append(s.Chains, l.status())
	}
	return s
}
