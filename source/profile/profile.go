// Package profile asks an ENS worker for the profiles of accounts, and keeps its answers between
// runs: a run asks for as many as its budget allows, those first that nobody has asked for.
//
// The API may change until version 1.
package profile

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
	State  string                  // folder of the state; profiles are kept in its folder profiles
	URL    string                  // of the worker, such as https://ens.ethfollow.xyz
	Wanted map[site.Address]uint32 // whose profiles are wanted, and how many lists follow them
	Budget source.Budget           // retries count too, and waiting

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
	Wanted   int            `json:"wanted"`   // accounts
	Asked    int            `json:"asked"`    // accounts that the worker answered about
	Found    int            `json:"found"`    // of those, with a profile
	Absent   int            `json:"absent"`   // of those, without one
	Dropped  int            `json:"dropped"`  // profiles that were known, and are gone
	Failed   map[string]int `json:"failed"`   // accounts without a usable answer, by reason
	Left     int            `json:"left"`     // accounts that the budget was not enough for
	NeverYet int            `json:"never"`    // of all wanted ones, those that no run has asked about
	Known    int            `json:"known"`    // profiles that are kept
	Bulk     int            `json:"bulk"`     // accounts in a request at most; 1 without bulk requests
	Requests int            `json:"requests"` // also those that failed
	Bytes    int64          `json:"bytes"`    // of answers
	Waited   float64        `json:"waited"`   // seconds, because of rate limits and failures
	GaveUp   string         `json:"gave_up"`  // why the worker was not asked any longer; "" if it was
}

// Refresh asks for profiles within the budget and keeps the answers. What the worker fails to answer
// stays as it is, and is no error: the report has it. An error means that the state cannot be read or
// written, that the options are wrong, or that ctx ended; what was answered before is kept then too.
// It wraps ErrBusy if another run works on the same state.
func Refresh(ctx context.Context, o Options) (*Report, error) { panic("not yet") }

// Profiles are the profiles that are kept in a state, in the order of addresses. A state without any
// has none.
func Profiles(state string) source.Profiles { panic("not yet") }

// Import keeps the profiles of accounts, such as those of an earlier snapshot, in any order, where
// they are fresher than those that are there. It returns how many it has kept.
func Import(state string, accounts iter.Seq2[snapshot.Account, error]) (int, error) { panic("not yet") }

// String is the report for people, with a line end.
func (r *Report) String() string { panic("not yet") }

// ErrBusy says that another run works on the profiles of the same state.
var ErrBusy = errors.New("another run refreshes the profiles")
