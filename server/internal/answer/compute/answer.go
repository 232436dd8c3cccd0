package compute

import (
	"context"
	"time"

	"github.com/followpress/followpress/server/internal/gate"
	"github.com/followpress/followpress/site"
)

// An Answer is one that is being made, by one goroutine. Its methods return fetch.ErrMixed if what they
// read is of two sites, and an error that Maker.Make understands if the memory does not suffice: whoever
// makes the answer hands both on. What fills it may return a *ProblemError too.
type Answer struct {
	Request
	Root *site.Root
	Body []byte // what is made so far. Grow makes room in it

	ctx     context.Context // of the request
	read    reader
	maker   *Maker
	gate    *gate.Gate // where the memory counts until the answer is rendered
	used    int64      // bytes: of the body, and of what else the making takes
	granted int64      // bytes taken at the gate
}

// A ProblemError says that the answer is a problem.
type ProblemError struct{ *site.Problem }

func (e *ProblemError) Error() string { return e.Name }

// AsOf is the time of the snapshot, cut to milliseconds, as the times of operations are.
func (a *Answer) AsOf() time.Time {
	asOf, _ := time.Parse(time.RFC3339, a.Root.AsOf) // ParseRoot has checked it
	return asOf.UTC().Truncate(time.Millisecond)
}

// A Request is what is asked for.
type Request struct {
	Ask   site.Ask
	Query string    // in its normal form
	Users []*string // of the body; nil for a null
}
