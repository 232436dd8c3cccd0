package follow

import (
	"time"

	"github.com/followpress/followpress/source"
)

// A Status says how a Follower gets on.
type Status struct {
	Chains []ChainStatus // in the order of the deployment
	// Confirmed is when the contracts last confirmed what the state has; the zero time before. Confirming
	// says what was wrong with the last attempt, "" if nothing was.
	Confirmed  time.Time
	Confirming string
	Additions  string // why the tables of Options.Tables could not be read again; "" if they could
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
	Error           string       // of the last attempt to ask nodes; "" if they answered. It has nothing of a URL but the host
	Nodes           []NodeStatus // those that were asked, by their names
	Requests        int64        // HTTP requests to nodes
	Subscribed      bool         // whether a node tells of new blocks by itself
	Reorganisations uint64       // times that blocks were replaced
}

// A NodeStatus says how the node at one URL gets on.
type NodeStatus struct {
	Host     string    // as errors name it; of a URL that tells of new blocks with its scheme
	Answered time.Time // the last time; zero if never
	Failing  bool      // whether it did not answer the last time
	Error    string    // the last one, which may have passed; "" for none
	Failed   time.Time // when that was
}

// Lag is the time since the newest block that was seen: it grows while no new one comes. It is not known before the first.
func (s *ChainStatus) Lag() (lag time.Duration, known bool) {
	if s.Seen.IsZero() {
		return 0, false
	}
	return s.Behind + time.Since(s.Seen), true
}

// A clock tells the time as it was when it began, and the time since: setting the clock of the machine
// does not change it.
type clock struct{ began time.Time }

// since is how old a time in seconds since the Unix epoch is; 0 if it is in the future.
func (c clock) since(seconds int64) time.Duration {
	return max(0, c.began.Add(time.Since(c.began)).Sub(time.Unix(seconds, 0)))
}

// Status says how the Follower gets on.
func (f *Follower) Status() Status {
	f.mu.Lock()
	s := Status{Confirmed: f.confirmedAt, Confirming: f.confirming, Additions: f.unread}
	f.mu.Unlock()
	for _, l := range f.links {
		s.Chains = append(s.Chains, l.status())
	}
	return s
}
