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

// Add appends texts to the body.
func (a *Answer) Add(text ...[]byte) error {
	n := 0
	for _, t := range text {
		n += len(t)
	}
	if err := a.Grow(n); err != nil {
		return err
	}
	for _, t := range text {
		a.Body = append(a.Body, t...)
	}
	return nil
}

// AddText appends a text to the body.
func (a *Answer) AddText(text string) error {
	if err := a.Grow(len(text)); err != nil {
		return err
	}
	a.Body = append(a.Body, text...)
	return nil
}

// Write appends to the body, for encoders.
func (a *Answer) Write(text []byte) (int, error) {
	if err := a.Add(text); err != nil {
		return 0, err
	}
	return len(text), nil
}

// EntrySpare is more than an entry has beside its texts, in bytes.
const EntrySpare = 512

// AddEntry appends an entry to a list in the body. textBytes is the length of its texts.
func (a *Answer) AddEntry(first bool, textBytes int, render func(b []byte) []byte) error {
	if err := a.Grow(textBytes + EntrySpare); err != nil {
		return err
	}
	if !first {
		a.Body = append(a.Body, ',')
	}
	a.Body = render(a.Body)
	return nil
}

// AppendMillis appends a time in milliseconds since the Unix epoch, with its quotation marks.
func AppendMillis(b []byte, ms int64) []byte {
	return time.UnixMilli(ms).UTC().AppendFormat(b, `"2006-01-02T15:04:05.000Z"`)
}

// NullIfEmpty returns null for an empty JSON string.
func NullIfEmpty(text []byte) []byte {
	if string(text) == `""` {
		return []byte("null")
	}
	return text
}
