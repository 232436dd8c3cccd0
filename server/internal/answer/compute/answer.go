package compute

import (
	"context"
	"time"

	"github.com/followpress/followpress/server/internal/gate"
	"github.com/followpress/followpress/site"
)

// An Answer is an answer in the making; one goroutine uses it. Its methods return fetch.ErrMixed if
// the objects belong to two sites, and an error known to Maker.Make if memory runs out. Fill
// functions return both unchanged, or a *ProblemError.
type Answer struct {
	Request
	Root *site.Root
	Body []byte // the answer so far; Grow makes room in it

	ctx     context.Context // context of the request
	read    reader
	maker   *Maker
	gate    *gate.Gate // gate that counts the memory until the answer is rendered
	used    int64      // bytes used by the body and by making it
	granted int64      // bytes taken from the gate
}

// A ProblemError carries a problem to answer with.
type ProblemError struct{ *site.Problem }

func (e *ProblemError) Error() string { return e.Name }

// AsOf returns the time of the snapshot, truncated to milliseconds like the times of operations.
func (a *Answer) AsOf() time.Time {
	asOf, _ := time.Parse(time.RFC3339, a.Root.AsOf) // ParseRoot has validated it
	return asOf.UTC().Truncate(time.Millisecond)
}

// A Request is the question: what Maker.Make answers.
type Request struct {
	Ask   site.Ask
	Query string    // in normal form
	Users []*string // users in the body; a null is nil
}
