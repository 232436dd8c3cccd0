package report

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/followpress/followpress/internal/sample"
	"github.com/followpress/followpress/publisher/internal/survey"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// maxKeysListed bounds the listed keys of each kind in a verification; all are counted.
const maxKeysListed = 1000

// A Verification describes how a bucket differs from its manifest.
type Verification struct {
	Dest      string              `json:"dest"`            // set by Note
	Error     string              `json:"error,omitempty"` // set by Note
	AsOf      string              `json:"as_of"`
	Objects   int                 `json:"objects"`   // objects named by the manifest
	Manifests int                 `json:"manifests"` // objects of the manifest itself
	Listed    int                 `json:"listed"`    // objects in the bucket
	Missing   Found               `json:"missing"`
	Altered   Found               `json:"altered"`            // bytes differ from the manifest
	Refreshed Found               `json:"refreshed"`          // bytes come from a refresh, which is allowed
	Unknown   Found               `json:"unknown"`            // not named by the manifest, with keys of a site; Repair deletes them
	Foreign   Found               `json:"foreign"`            // keys of no site and not used by followpress; Repair leaves them
	Signed    *SignedVerification `json:"signed,omitempty"`   // set by the caller; nil if no key was given
	Unlisted  bool                `json:"unlisted,omitempty"` // set by the caller: the location cannot be listed, so only signed objects were compared
	Marked    bool                `json:"marked"`             // whether a publish is running or was cut off
	Repaired  *Report             `json:"repaired,omitempty"`
	Seconds   float64             `json:"seconds"`

	announced Found // below _next/
}

// A SignedVerification describes how a bucket differs from its signed root.
type SignedVerification struct {
	Origin  string   `json:"origin"`
	Counter uint64   `json:"counter"`
	AsOf    string   `json:"as_of"`
	Objects int      `json:"objects"`         // objects that the manifest lists
	Checked int      `json:"checked"`         // objects read; a sample may read one twice
	Differ  int      `json:"differ"`          // objects and manifest shards that differ from the signed root
	Altered []string `json:"altered"`         // descriptions of the first differences
	Bound   *float64 `json:"bound,omitempty"` // upper bound of the share of objects that differ, with sample.Confidence; nil without a sample
}

// Found lists the keys of one kind.
type Found struct {
	Count int        `json:"count"`
	Keys  []site.Key `json:"keys"` // the first 1,000, sorted
}

// add counts a key. Between calls of end, Keys may grow to twice its limit.
func (f *Found) add(key site.Key) {
	f.Count++
	f.Keys = append(f.Keys, key)
	if len(f.Keys) >= 2*maxKeysListed {
		f.end()
	}
}

func (f *Found) end() {
	slices.Sort(f.Keys)
	f.Keys = slices.Clone(f.Keys[:min(len(f.Keys), maxKeysListed)])
}

// Good reports whether the bucket equals its manifest, refreshed objects aside.
func (v *Verification) Good() bool {
	return v.Missing.Count == 0 && v.Altered.Count == 0 && v.Unknown.Count == 0 && v.Foreign.Count == 0 && (v.Signed == nil || v.Signed.Differ == 0)
}

// NewVerification returns an empty verification.
func NewVerification() *Verification {
	v := &Verification{}
	for _, kind := range v.kinds() {
		kind.Keys = []site.Key{}
	}
	return v
}

func (v *Verification) kinds() []*Found {
	return []*Found{&v.Missing, &v.Altered, &v.Refreshed, &v.Unknown, &v.Foreign}
}

func (v *Verification) add(f survey.Finding) {
	switch f.State {
	case survey.Missing:
		v.Missing.add(f.Key)
	case survey.Altered:
		v.Altered.add(f.Key)
	case survey.Refreshed:
		v.Refreshed.add(f.Key)
	case survey.Unknown:
		v.Unknown.add(f.Key)
	case survey.Announced:
		v.announced.add(f.Key)
	case survey.Foreign:
		v.Foreign.add(f.Key)
	}
}

// Take takes a survey of a site, ignoring headers, and copies the results. found, unless nil, receives
// every difference too.
func (v *Verification) Take(ctx context.Context, s *survey.Survey, found func(survey.Finding)) error {
	s.Configs, s.UpToDate = []site.Config{s.Root.Config}, func(storage.Info) bool { return true }
	s.Found = func(f survey.Finding) {
		v.add(f)
		if found != nil {
			found(f)
		}
	}
	if err := s.Take(ctx); err != nil {
		return err
	}
	v.AsOf, v.Objects, v.Manifests, v.Listed, v.Marked = s.Root.AsOf, s.Expected, s.Manifests, s.Listed, s.Marked
	if !s.Marked { // no running publish will remove them
		v.Unknown.Count += v.announced.Count
		v.Unknown.Keys = append(v.Unknown.Keys, v.announced.Keys...)
	}
	for _, kind := range v.kinds() {
		kind.end()
	}
	return nil
}

// String formats the verification for a person.
func (v *Verification) String() string {
	var b strings.Builder
	if v.AsOf == "" {
		return "" // the run failed early
	}
	fmt.Fprintf(&b, "manifest  %10d objects and %d manifest shards, as of %s\n", v.Objects, v.Manifests, v.AsOf)
	if !v.Unlisted {
		v.tellListed(&b)
	}
	if s := v.Signed; s != nil {
		s.tell(&b)
	}
	if v.Unlisted {
		b.WriteString("not checked: objects outside the manifest, because this location cannot be listed\n")
	}
	if v.Marked {
		b.WriteString("a publish is running or was cut off, or its requests may still arrive; publish again to compare with a listing\n")
	}
	switch r := v.Repaired; {
	case r != nil && r.Outcome == Planned:
		fmt.Fprintf(&b, "to do     %10d objects to put, %d manifest shards; %d to delete\n", r.Plan.Put, r.Plan.Manifests, r.Plan.Delete)
	case r != nil:
		fmt.Fprintf(&b, "repaired  %10d objects put, %d manifest shards; %d deleted\n",
			r.Done.Put, r.Done.Manifests, r.Done.Deleted)
	case v.Good() && !v.Marked && v.Error == "":
		b.WriteString("OK\n")
	}
	return b.String()
}

func (v *Verification) tellListed(b *strings.Builder) {
	fmt.Fprintf(b, "listed    %10d objects in all\n", v.Listed)
	for _, kind := range []struct {
		name  string
		found Found
	}{{"missing", v.Missing}, {"altered", v.Altered}, {"unknown", v.Unknown}, {"foreign", v.Foreign}, {"refreshed", v.Refreshed}} {
		fmt.Fprintf(b, "%-9s %10d\n", kind.name, kind.found.Count)
		for i, key := range kind.found.Keys {
			if i == 10 {
				fmt.Fprintf(b, "          … and %d more\n", kind.found.Count-i)
				break
			}
			fmt.Fprintf(b, "          %s\n", key)
		}
	}
}

func (s *SignedVerification) tell(b *strings.Builder) {
	fmt.Fprintf(b, "signed    %10d is the counter of %s; %d objects read, %d differ\n", s.Counter, s.Origin, s.Checked, s.Differ)
	for _, text := range s.Altered {
		fmt.Fprintf(b, "          %s\n", text)
	}
	if s.Bound != nil {
		fmt.Fprintf(b, "sample    at most %.2g %% of all %d objects differ, with a probability of %.0f %%\n", *s.Bound*100, s.Objects, sample.Confidence*100)
	}
}

// Note sets the fields that only the caller knows, like Report.Note.
func (v *Verification) Note(dest string, err error) {
	v.Dest = dest
	if err != nil {
		v.Error = err.Error()
	}
}
