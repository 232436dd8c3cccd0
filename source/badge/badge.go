// Package badge asks a POAP-like API who holds badges of events, and keeps its answers between runs:
// with one request for hundreds of owners where the API has that, else with one for each account and
// event, as many as a budget allows.
//
// The API may change until version 1.
package badge

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
)

// Options are options of Refresh.
type Options struct {
	State  string                  // folder of the state; badges are kept in its folder badges
	URL    string                  // of the API, such as https://api.poap.tech
	Key    string                  // sent as X-API-Key; "" sends none. It is in no error and in no log
	Events []string                // event ids
	Wanted map[site.Address]uint32 // whom to ask about without requests by event, and how many lists follow them
	Budget source.Budget           // of requests by account; retries count too, and waiting

	Progress  Progress
	Log       *slog.Logger      // nil means none
	Transport http.RoundTripper // nil means one of its own
}

// Progress is told how far a run has come.
type Progress interface {
	// Stage begins a part of the run. total is the sum of n over all calls of Add in this stage, or
	// 0 if it is not known.
	Stage(name string, total int64)
	// Add says that n more items are done.
	Add(n int64)
	// End ends the stage.
	End()
}

// A Report says what a refresh has done.
type Report struct {
	Events   []EventReport `json:"events"`   // in the order of Options.Events
	Requests int           `json:"requests"` // also those that failed
	Bytes    int64         `json:"bytes"`    // of answers
	Waited   float64       `json:"waited"`   // seconds, because of rate limits and failures
	GaveUp   string        `json:"gave_up"`  // why the API was not asked any longer; "" if it was
}

// An EventReport says what a refresh has done about one event.
type EventReport struct {
	ID     string         `json:"id"`
	Bulk   bool           `json:"bulk"`   // owners were listed by event
	Asked  int            `json:"asked"`  // accounts that the API answered about, unless Bulk
	Left   int            `json:"left"`   // accounts that the budget was not enough for
	Failed map[string]int `json:"failed"` // requests without a usable answer, by reason
	Badges int            `json:"badges"` // that are kept
}

// Refresh asks who holds badges, and keeps the answers. What the API fails to answer stays as it is,
// and is no error: the report has it. An error means that the API refuses the key (ErrKey), that it
// does not know an event and none is kept, that the state cannot be read or written, that the options
// are wrong, or that ctx ended; what was answered before is kept then too. It wraps ErrBusy if another
// run works on the same state.
func Refresh(ctx context.Context, o Options) (*Report, error) { panic("not yet") }

// Events describes events as they are kept in a state, in the order of ids. An event that is not kept
// is left out.
func Events(state string, ids []string) ([]site.Event, error) { panic("not yet") }

// Badges are the badges of events that are kept in a state, event by event in the order of ids, of
// each in the order of owners.
func Badges(state string, ids []string) iter.Seq2[snapshot.Badge, error] { panic("not yet") }

// String is the report for people, with a line end.
func (r *Report) String() string { panic("not yet") }

// ErrKey says that the API refuses the key.
var ErrKey = errors.New("the API refuses the key")

// ErrBusy says that another run works on the badges of the same state.
var ErrBusy = errors.New("another run refreshes the badges")
