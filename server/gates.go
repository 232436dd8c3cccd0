package server

import (
	"runtime"

	"github.com/followpress/followpress/server/internal/answer"
	"github.com/followpress/followpress/server/internal/body"
	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fresh"
	"github.com/followpress/followpress/server/internal/gate"
	"github.com/followpress/followpress/site"
)

// gates bound the work in progress and the memory beyond the cache. Work that does not fit waits; a
// request that waits too long, or finds too many waiting, gets a 503.
type gates struct {
	requests *gate.Gate // requests being answered
	waiting  *gate.Gate // requests waiting for anything
	doubts   *gate.Gate // requests waiting for a read of the root
	streams  *gate.Gate // buffer bytes of objects streamed from the store to clients

	bodies body.Reader
	cache  cache.Gates
	answer answer.Gates
	fresh  fresh.Gates
}

// streamBytes is the memory of one streamed object: a buffer on either side.
const streamBytes = 64 << 10

// rereadsAtOnce bounds background reads while the store hangs.
const rereadsAtOnce = 64

func newGates(o Options) gates {
	// requests returns a gate for a share of all requests.
	requests := func(share int, within *gate.Gate) *gate.Gate {
		return &gate.Gate{Size: int64(max(1, share)), Within: within}
	}
	bytes := func(size, least int64) *gate.Gate { return &gate.Gate{Size: max(size, least)} }

	// If the store hangs, at most three quarters of the requests wait for it. The remaining quarter
	// serves from the cache.
	waiting := requests(o.MaxRequests*3/4, nil)
	// Requests waiting for memory for large answers leave room for others; so do requests with a
	// body.
	small, large := requests(o.MaxRequests/4, waiting), requests(o.MaxRequests/8, waiting)
	forAnswers := max(o.InFlightBytes/6, answer.LeastBytes)
	return gates{
		requests: &gate.Gate{Size: int64(o.MaxRequests)},
		waiting:  waiting,
		doubts:   requests(o.MaxRequests/8, waiting),
		// Arriving bodies have their own memory, so that slow clients do not keep others out.
		bodies: body.Reader{
			Receiving: requests(o.MaxRequests/4, waiting),
			Arriving:  bytes(o.InFlightBytes/24, body.FirstBytes),
			Growing:   bytes(o.InFlightBytes/24, site.MaxBatchBytes),
			Done:      bytes(o.InFlightBytes/12, body.MostBytes),
			Timeout:   o.Timeout,
		},
		streams: &gate.Gate{Size: max(o.InFlightBytes/12, streamBytes), Line: requests(o.MaxRequests/2, waiting)},
		// Objects get five sixths of the bytes, answers in the making one sixth. Large answers,
		// answers being sent, and bodies each get another sixth on top.
		cache: cache.Gates{
			Small:   &gate.Gate{Size: o.InFlightBytes / 3, AnySize: true},
			Large:   &gate.Gate{Size: o.InFlightBytes / 2, AnySize: true},
			Waiting: waiting,
			Rereads: &gate.Gate{Size: rereadsAtOnce},
		},
		answer: answer.Gates{
			Small:    &gate.Gate{Size: forAnswers, Line: small},
			Large:    &gate.Gate{Size: forAnswers, Line: large},
			Oversize: &gate.Gate{Size: 1, AnySize: true, Line: large}, // one at a time
			Ahead:    &gate.Gate{Size: o.InFlightBytes / 6},           // part of the objects' share
			Scanning: &gate.Gate{Size: int64(max(1, runtime.GOMAXPROCS(0)/2))},
			Mixed:    requests(o.MaxRequests/8, waiting),
			Waiting:  waiting,
		},
		fresh: fresh.Gates{
			Waiting: requests(o.MaxRequests/2, waiting),
			Flights: &gate.Gate{Size: fresh.MostFlights},
			Badges:  &gate.Gate{Size: fresh.BadgeBytes},
		},
	}
}
