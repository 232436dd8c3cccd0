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

// Add appends byte strings to the body.
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

// AddText appends a string to the body.
func (a *Answer) AddText(text string) error {
	if err := a.Grow(len(text)); err != nil {
		return err
	}
	a.Body = append(a.Body, text...)
	return nil
}

// Write appends to the body. It lets encoders write to an Answer.
func (a *Answer) Write(text []byte) (int, error) {
	if err := a.Add(text); err != nil {
		return 0, err
	}
	return len(text), nil
}

// EntrySpare exceeds the bytes of an entry apart from its strings.
const EntrySpare = 512

// AddEntry appends an entry to a list in the body. textBytes is the total length of its strings.
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

// AppendMillis appends a time, given in milliseconds since the Unix epoch, as a quoted JSON string.
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

// Rows holds copies of rows for a page. The gate of the answer counts their memory.
type Rows struct {
	text  []byte
	spans []span
	ended bool // another row would exceed the size limit of a page
}

type span struct{ from, to int }

// Len returns the number of rows.
func (r *Rows) Len() int { return len(r.spans) }

// Bytes returns the total length of the rows.
func (r *Rows) Bytes() int { return len(r.text) }

// At returns row i.
func (r *Rows) At(i int) []byte { return r.text[r.spans[i].from:r.spans[i].to] }

// IsFull reports whether a page of at most limit rows takes no more.
func (r *Rows) IsFull(limit int) bool { return r.ended || r.Len() == limit }

// Truncate keeps the first n rows.
func (r *Rows) Truncate(n int) { r.spans = r.spans[:n] }

// Copy appends a copy of a row, unless that would exceed the size limit of a page.
func (r *Rows) Copy(a *Answer, row []byte) error {
	if r.ended = r.ended || r.Len() > 0 && len(r.text)+len(row) > MostPageBytes; r.ended {
		return nil
	}
	if more := len(r.text) + len(row) - cap(r.text); more > 0 {
		more = max(more, cap(r.text), firstBytes)
		if err := a.Take(more); err != nil {
			return err
		}
		r.text = append(make([]byte, 0, cap(r.text)+more), r.text...)
	}
	r.spans = append(r.spans, span{len(r.text), len(r.text) + len(row)})
	r.text = append(r.text, row...)
	return nil
}

// AddRows appends begin, a list of entries, and end. For each row it calls parse, then render to
// append the entry.
func AddRows[R any](
	a *Answer, begin string, page *Rows, parse func(row []byte) (R, error), render func(b []byte, i int, r R) []byte, end string,
) error {
	if err := a.AddText(begin); err != nil {
		return err
	}
	for i := range page.Len() {
		r, err := parse(page.At(i))
		if err != nil {
			return err
		}
		if err := a.AddEntry(i == 0, len(page.At(i)), func(b []byte) []byte { return render(b, i, r) }); err != nil {
			return err
		}
	}
	return a.AddText(end)
}
