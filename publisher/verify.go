package publisher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/followpress/followpress/internal/sample"
	"github.com/followpress/followpress/publisher/internal/plan"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/publisher/internal/spool"
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

// Verify compares a bucket with its own manifest, by a listing of sizes and ETags. It writes
// nothing. Where ETags are not MD5s, it requests digests one by one. It fails if the bucket has no
// readable root; differences are not errors.
func Verify(ctx context.Context, bucket Bucket, o Options) (*Verification, error) {
	begun := time.Now()
	o, err := o.WithDefaults()
	if err != nil {
		return nil, err
	}
	l := newLifetimes(ctx)
	defer l.end()
	retrying := requests.New(l.hard, bucket, o.requests(new(atomic.Int64)))
	body, _, err := retrying.Read(l.soft, site.RootKey)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, fmt.Errorf("the bucket has no %s; publish a site first, or check --dest", site.RootKey)
	} else if err != nil {
		return nil, err
	}
	root, err := site.ParseRoot(body)
	if err != nil {
		return nil, fmt.Errorf("the bucket: %w; publish the site to repair it", err)
	}
	v := NewVerification()
	v.AsOf = root.AsOf
	manifest, err := survey.OpenManifest(l.soft, retrying, &root)
	if err != nil {
		return nil, err
	}
	err = v.take(l.soft, &survey.Survey{Bucket: retrying, Root: &root, Found: v.add, Manifest: manifest, Own: manifest}, o)
	if err != nil {
		return nil, err
	}
	v.Seconds = time.Since(begun).Seconds()
	return v, nil
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

// take takes a survey of a site, ignoring headers, and copies the results.
func (v *Verification) take(ctx context.Context, s *survey.Survey, o Options) error {
	s.Configs, s.Exclude, s.Progress, s.Refreshers, s.Memory = []site.Config{s.Root.Config}, o.Exclude, o.Progress, o.Refreshers, o.memory
	s.UpToDate = func(storage.Info) bool { return true }
	if err := s.Take(ctx); err != nil {
		return err
	}
	v.Objects, v.Manifests, v.Listed, v.Marked = s.Expected, s.Manifests, s.Listed, s.Marked
	if !s.Marked { // no running publish will remove them
		v.Unknown.Count += v.announced.Count
		v.Unknown.Keys = append(v.Unknown.Keys, v.announced.Keys...)
	}
	for _, kind := range v.kinds() {
		kind.end()
	}
	return nil
}

// Repair puts objects that Verify finds missing or altered, and deletes unknown ones. Foreign
// objects stay. The site must be the one in the bucket. With Options.DryRun, Repair takes no lock
// and writes nothing, and Repaired has the plan. After an error, the verification is nil if nothing
// was changed.
func Repair(ctx context.Context, from Site, to Bucket, o Options) (v *Verification, err error) {
	begun := time.Now()
	if o, err = o.WithDefaults(); err != nil {
		return nil, err
	}
	report := NewReport()
	r, err := newRun(ctx, from, to, o, report)
	if err != nil {
		return nil, err
	}
	defer r.end()
	if o.DryRun {
		v, err = r.planRepair(r.soft)
	} else {
		v, err = r.lockAndRepair(r.soft)
	}
	if v == nil {
		return nil, err
	}
	switch report.Live = true; {
	case err != nil:
	case o.DryRun:
		report.Outcome = Planned
	default:
		report.Outcome = Published
	}
	report.end(begun)
	v.Repaired, v.Seconds = report, time.Since(begun).Seconds()
	return v, err
}

func (r *run) planRepair(ctx context.Context) (*Verification, error) {
	t, err := r.readDoubt(ctx)
	if err != nil {
		return nil, err
	}
	v, _, err := r.repair(ctx, t)
	return v, err
}

func (r *run) lockAndRepair(ctx context.Context) (*Verification, error) {
	t, err := r.lock(ctx)
	if err != nil {
		return nil, err
	}
	v, left, err := r.under(t).repair(ctx, t)
	r.unlock(ctx, t, left)
	return v, err
}

// repair compares with the site's manifest, because the bucket's may be incomplete.
func (r *run) repair(ctx context.Context, t tenure) (v *Verification, left aftermath, err error) {
	defer func() { left.interleaved = errors.Is(err, errInterleaved) }()
	state, err := r.readState(ctx, t.found)
	if err != nil {
		return nil, left, err
	}
	if state.root == nil && len(state.body) == 0 {
		return nil, left, fmt.Errorf("the bucket has no %s; run followpress publish instead, or check --dest", site.RootKey)
	}
	if state.root != nil { // tags do not count as a difference; keep the bucket's
		if err := r.source.Tag(state.root.Config.Tags); err != nil {
			return nil, left, err
		}
		r.report.Config = r.source.Root.Config
	}
	if string(state.body) != string(r.source.Body) {
		return nil, left, errors.New("the bucket holds another site; run followpress publish instead")
	}
	if state.mark != nil {
		return nil, left, errors.New("a publish or repair was cut off, or its requests may still arrive; run followpress publish instead, which compares the site with a listing")
	}
	planner := &plan.Planner{Source: r.source, Bucket: r.bucket, Live: state.root}
	v = NewVerification()
	v.AsOf = r.source.Root.AsOf
	plan := plan.New(spool.New(r.options.Log, r.options.memory), state.root != nil)
	defer plan.Close()
	repairs := planner.Findings(plan)
	manifest, err := r.source.Manifest(ctx)
	if err != nil {
		return nil, left, err
	}
	own, err := survey.OpenManifest(ctx, r.bucket, &r.source.Root) // the bucket may store it in another way
	if err != nil {
		return nil, left, err
	}
	own.Trust(manifest)
	err = v.take(ctx, &survey.Survey{Bucket: r.bucket, Root: &r.source.Root, Manifest: manifest, Own: own, Ours: true, Found: func(f survey.Finding) { v.add(f); repairs(f) }}, r.options)
	if err != nil {
		return nil, left, r.source.Damaged(err)
	}
	if err := r.planned(plan, state.root); err != nil {
		return v, left, err
	}
	if r.options.DryRun || plan.IsEmpty() {
		return v, left, nil
	}
	left.marked, err = r.carryOut(ctx, state, plan, t.found.Settled(r.now()))
	return v, left, err
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

// Markdown formats the verification as a table, for the summary of a CI job.
func (v *Verification) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s: %s\n\n", v.Dest, map[bool]string{true: "verified", false: "verified, with errors"}[v.Error == ""])
	if !v.Unlisted {
		fmt.Fprintf(&b, "| objects | missing | altered | unknown | foreign | refreshed |\n|---:|---:|---:|---:|---:|---:|\n| %d | %d | %d | %d | %d | %d |\n\n",
			v.Objects, v.Missing.Count, v.Altered.Count, v.Unknown.Count, v.Foreign.Count, v.Refreshed.Count)
	}
	if s := v.Signed; s != nil {
		fmt.Fprintf(&b, "signed: %d objects of %d read, %d differ\n\n", s.Checked, s.Objects, s.Differ)
	}
	if r := v.Repaired; r != nil && r.Outcome == Planned {
		fmt.Fprintf(&b, "to do: %d objects and %d manifest shards to put, %d to delete\n\n", r.Plan.Put, r.Plan.Manifests, r.Plan.Delete)
	} else if r != nil {
		fmt.Fprintf(&b, "repaired: %d objects and %d manifest shards put, %d deleted\n\n", r.Done.Put, r.Done.Manifests, r.Done.Deleted)
	}
	if v.Error != "" {
		fmt.Fprintf(&b, "error: %s\n\n", strings.ReplaceAll(v.Error, "\n", " "))
	}
	return b.String()
}
