package source

import (
	"math"
	"net/url"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// Answers add up what a service has told of accounts, for the ServiceInput. The zero value is none.
type Answers struct {
	Digest snapshot.Digest // of the rows that they became

	told        bool
	first, last int64
}

// At says when the service gave an answer that is used, in milliseconds since the Unix epoch; 0 if that is not known.
func (a *Answers) At(ms int64) {
	if !a.told {
		a.told, a.first, a.last = true, math.MaxInt64, 0
	}
	if ms > 0 && ms <= latest {
		a.first, a.last = min(a.first, ms), max(a.last, ms)
	}
}

// latest is the last time that RFC 3339 has.
var latest = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC).UnixMilli()

// Input is what was added up; nil for no answers. Its Source is not set.
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

// maxSource is how many bytes a root takes of a URL.
const maxSource = 2 << 10

// From sets the Source of what a service told: its URL without what may be secret. A nil ServiceInput stays nil.
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
