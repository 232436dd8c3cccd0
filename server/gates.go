package server

import (
	"runtime"

	"github.com/followpress/followpress/server/internal/answer"
	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fresh"
	"github.com/followpress/followpress/server/internal/gate"
	"github.com/followpress/followpress/site"
)

// gates bound what a handler does at a time, and what it holds beyond its cache. What does not fit waits, and
// gets a 503 if it waits too long, or if too many wait.
type gates struct {
	requests *gate.Gate // that are being answered
	waiting  *gate.Gate // requests that wait for anything
	doubts   *gate.Gate // those that wait for a read of the root
	bodies   bodyGates
	streams  *gate.Gate // bytes of buffers of objects that the store sends while clients receive them

	cache  cache.Gates
	answer answer.Gates
	fresh  fresh.Gates
}

type bodyGates struct {
	receiving *gate.Gate // requests whose body is being read
	arriving  *gate.Gate // bytes of the beginnings of bodies that are being read
	growing   *gate.Gate // bytes of the rest of those
	read      *gate.Gate // bytes of those that were read
}

// rereadsAtOnce bounds the reads in the background while the store hangs.
const rereadsAtOnce = 64

func newGates(o Options) gates {
	// requests is a gate for a share of all requests.
	requests := func(share int, within *gate.Gate) *gate.Gate {
		return &gate.Gate{Size: int64(max(1, share)), Within: within}
	}
	bytes := func(size, least int64) *gate.Gate { return &gate.Gate{Size: max(size, least)} }

	// If the store hangs, at most three quarters of the requests wait for it. The rest is for
	// answers from the cache.
	waiting := requests(o.MaxRequests*3/4, nil)
	// Requests that wait for the memory of large answers leave room to others, and so do those that send a body.
	small, large := requests(o.MaxRequests/4, waiting), requests(o.MaxRequests/8, waiting)
	forAnswers := max(o.InFlightBytes/6, answer.LeastBytes)
	return gates{
		requests: &gate.Gate{Size: int64(o.MaxRequests)},
		waiting:  waiting,
		doubts:   requests(o.MaxRequests/8, waiting),
		// Bodies that arrive have memory of their own: a slow client must not keep others out.
		bodies: bodyGates{
			receiving: requests(o.MaxRequests/4, waiting),
			arriving:  bytes(o.InFlightBytes/24, firstBodyBytes),
			growing:   bytes(o.InFlightBytes/24, site.MaxBatchBytes),
			read:      bytes(o.InFlightBytes/12, mostBodyBytes),
		},
		streams: &gate.Gate{Size: max(o.InFlightBytes/12, streamBytes), Line: requests(o.MaxRequests/2, waiting)},
		// Objects get five sixths of the bytes, answers that are being made the last. Large answers, those
		// that are being sent, and bodies get another sixth each.
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
			Ahead:    &gate.Gate{Size: o.InFlightBytes / 6},           // of what objects get
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
