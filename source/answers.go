package source

import (
	"math"
	"net/url"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// Answers summarizes the answers of a service about accounts, for a ServiceInput. The zero value
// has no answers.
type Answers struct {
	Digest snapshot.Digest // over the rows made of the answers

	told        bool
	first, last int64
}

// At records a used answer with its time, in milliseconds since the Unix epoch; 0 if unknown.
func (a *Answers) At(ms int64) {
	if !a.told {
		a.told, a.first, a.last = true, math.MaxInt64, 0
	}
	if ms > 0 && ms <= latest {
		a.first, a.last = min(a.first, ms), max(a.last, ms)
	}
}

// latest is the last time that RFC 3339 can express.
var latest = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC).UnixMilli()

// Input returns the summary, without Source; nil for no answers.
func (a *Answers) Input() *site.ServiceInput {
	if !a.told {
		return nil
	}
	in := &site.ServiceInput{Digest: a.Digest.Sum()}
	if a.last > 0 {
		in.From, in.Until = time.UnixMilli(a.first).UTC().Format(time.RFC3339), time.UnixMilli(a.last).UTC().Format(time.RFC3339)
	}
	return in
}

// maxSource limits the bytes of a URL in a root.
const maxSource = 2 << 10

// From sets in.Source to the service's URL without parts that may be secret. A nil in stays nil.
func From(in *site.ServiceInput, service string) {
	u, err := url.Parse(service)
	if in == nil || err != nil {
		return
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	if text := u.String(); len(text) <= maxSource {
		in.Source = text
	}
}
