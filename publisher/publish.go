package publisher

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/followpress/followpress/publisher/internal/guard"
	"github.com/followpress/followpress/publisher/internal/inputs"
	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/publisher/internal/origin"
	"github.com/followpress/followpress/publisher/internal/plan"
	"github.com/followpress/followpress/publisher/internal/report"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/publisher/internal/sign"
	"github.com/followpress/followpress/publisher/internal/survey"
	"github.com/followpress/followpress/publisher/internal/transfer"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/kept"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/storage"
)

// A Site is the site to publish: a folder, a tar file or parts. Get is called from many goroutines
// and returns storage.ErrNotFound for an object that does not exist.
type Site interface {
	Get(ctx context.Context, key site.Key) ([]byte, error)
}

// Publish makes the bucket equal to the site. The report is never nil, also after an error. When
// ctx ends, Publish returns its cause after at most grace, because of requests in flight; the next
// publish, from any machine, resumes. Errors include ErrLocked, ErrLockLost and errInterleaved.
// Publish may run concurrently on different buckets.
func Publish(ctx context.Context, from Site, to Bucket, o Options) (*Report, error) {
	report := NewReport()
	defer func(begun time.Time) { report.Seconds = time.Since(begun).Seconds() }(time.Now())
	o, err := o.WithDefaults()
	if err != nil {
		return report, err
	}
	r, err := newRun(ctx, from, to, o, report)
	if err != nil {
		return report, err
	}
	defer r.close()
	err = r.publish(r.soft)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		report.Outcome = Interrupted
		err = context.Cause(ctx)
	default:
		report.Outcome = Failed
	}
	return report, err
}

// A run holds what the steps of a publish share. No step changes it; results are passed on.
type run struct {
	lifetimes
	options Options
	source  *origin.Site
	guard   *guard.Guard
	keeper  *lock.Keeper
	bucket  *requests.Bucket // under the lease once the run holds the lock
	report  *Report
	retries *atomic.Int64
}

func newRun(ctx context.Context, from Site, to Bucket, o Options, report *Report) (*run, error) {
	source, err := origin.Open(ctx, from)
	if err != nil {
		return nil, err
	}
	if err := source.Tag(o.Tags); err != nil {
		return nil, err
	}
	if !o.anyRules && !source.HasRules() {
		return nil, errors.New("a version with other content types or cache times generated the site; " +
			"publish it with that version, or generate it again")
	}
	asOf, err := time.Parse(time.RFC3339, source.Root.AsOf)
	if err != nil {
		return nil, fmt.Errorf("the site's as_of: %w", err)
	}
	report.AsOf, report.Site, report.Config = source.Root.AsOf, source.Root.Counts, source.Root.Config
	l := newLifetimes(ctx)
	retries := new(atomic.Int64)
	bucket := requests.New(l.hard, to, o.requests(retries))
	r := &run{
		lifetimes: l, options: o, source: source, bucket: bucket, report: report, retries: retries,
		guard: &guard.Guard{Site: &source.Root, AsOf: asOf, NotAfter: o.NotAfter, MaxLoss: o.MaxLoss, AllowRollback: o.AllowRollback, Overwrite: o.Overwrite},
	}
	r.keeper = &lock.Keeper{ID: lock.NewID(), Bucket: bucket, Options: o.lock(), Unlocked: r.warnUnlocked}
	return r, nil
}

// close completes the report and frees the resources of the run.
func (r *run) close() {
	r.report.Retries = r.retries.Load()
	r.end()
}

// lifetimes are the soft and the hard context of a run; see the package comment.
type lifetimes struct {
	soft, hard context.Context
	endSoft    context.CancelCauseFunc
	end        func() // ends both contexts and frees their resources
}

func newLifetimes(parent context.Context) lifetimes {
	hard, endHard := context.WithCancel(context.WithoutCancel(parent))
	soft, endSoft := context.WithCancelCause(parent)
	stop := context.AfterFunc(soft, func() { time.AfterFunc(grace, endHard) })
	return lifetimes{soft, hard, endSoft, func() { stop(); endSoft(nil); endHard() }}
}

// publish makes the bucket equal to the site. For an equal bucket this takes three requests, and
// one for the note.
func (r *run) publish(ctx context.Context) error {
	if err := r.guard.Future(); err != nil {
		return err
	}
	body, _, err := r.bucket.Read(ctx, site.RootKey)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	if bytes.Equal(body, r.source.Body) {
		unchanged, err := r.isUnchanged(ctx)
		if err != nil {
			return err
		}
		if unchanged {
			r.report.Outcome, r.report.Live = Unchanged, true
			return nil
		}
	}
	if err := r.guard.Loss(ctx, r.bucket, body); err != nil {
		return err
	}
	if r.options.DryRun {
		return r.dryRun(ctx)
	}
	return r.locked(ctx, (*run).publishLocked)
}

// isUnchanged reports whether the bucket, which has the site's root, needs no change.
func (r *run) isUnchanged(ctx context.Context) (bool, error) {
	for _, unchanged := range []func(context.Context) (bool, error){r.keeper.IsConsistent, r.inputs().Unchanged, r.notes().Unchanged} {
		if yes, err := unchanged(ctx); err != nil || !yes {
			return false, err
		}
	}
	return true, nil
}

// locked does some steps while it holds the lock.
func (r *run) locked(ctx context.Context, steps func(*run, context.Context, lock.Tenure) (lock.Aftermath, error)) error {
	t, err := r.keeper.Take(ctx, r.endSoft)
	if err != nil {
		return err
	}
	leased := *r
	leased.bucket = r.keeper.Under(t)
	left, err := steps(&leased, ctx, t)
	left.Interleaved = errors.Is(err, errInterleaved)
	r.keeper.Leave(ctx, t, left)
	return err
}

type state struct {
	body      []byte            // body of the root; nil if there is none
	condition storage.Condition // for replacing the root
	root      *site.Root        // nil if there is none or it is unreadable
	mark      *lock.Mark        // nil if there is none
	known     *lock.Mark        // runs of the last mark, from a doubt, if the mark itself is gone
	notes     *sign.State       // set by readNotes
}

// holds reports whether, according to root and mark, the bucket equals the site.
func (s *state) holds(next *origin.Site) bool { return bytes.Equal(s.body, next.Body) && s.mark == nil }

func (r *run) readState(ctx context.Context, found *lock.Doubt) (*state, error) {
	s := &state{condition: storage.IfAbsent, notes: &sign.State{}}
	body, info, err := r.bucket.Read(ctx, site.RootKey)
	switch {
	case errors.Is(err, storage.ErrNotFound):
	case err != nil:
		return nil, err
	default:
		s.body, s.condition = body, storage.Condition(info.ETag)
		root, err := site.ParseRoot(body)
		if errors.Is(err, site.ErrNewer) {
			return nil, guard.NewerSite(err)
		} else if err == nil {
			s.root = &root
		}
	}
	if s.mark, err = lock.ReadMark(ctx, r.bucket); err != nil {
		return nil, err
	}
	if s.mark == nil && found != nil && len(found.Sites) > 0 {
		s.known = &lock.Mark{Runs: found.Sites}
	}
	return s, nil
}

// publishLocked reads the state again under the lock, and carries out the plan.
func (r *run) publishLocked(ctx context.Context, t lock.Tenure) (left lock.Aftermath, err error) {
	state, err := r.readState(ctx, t.Found)
	if err != nil {
		return left, err
	}
	if err := r.readNotes(ctx, state); err != nil {
		return left, err
	}
	settled := t.Found.Settled(r.bucket.Now()) // before the run reads the bucket
	changed, marked, err := r.replace(ctx, t, state, settled)
	left.Marked = marked
	if err != nil {
		return left, err
	}
	if r.report.Outcome, r.report.Live = Unchanged, true; changed {
		r.report.Outcome = Published
	}
	if settled { // the bucket equals its manifest
		left.Ended = t.Found
	}
	return left, r.inputs().Prune(ctx, kept.IndexKey(site.Sum256(state.body)), r.report.Inputs)
}

func (r *run) warnUnlocked() {
	if !r.report.Unlocked {
		r.options.Log.Warn("the server has no conditional writes: publishing without a lock; make sure that nobody else publishes")
		r.report.Unlocked = true
	}
}

func (r *run) notes() *sign.Notes {
	return &sign.Notes{Bucket: r.bucket, Site: r.source, Signing: r.options.Signing, Unsigned: r.options.Unsigned, Unlocked: r.warnUnlocked}
}

// readNotes reads the notes of the bucket, and rejects a site older than one that readers have
// seen, regardless of the current root.
func (r *run) readNotes(ctx context.Context, s *state) (err error) {
	if s.notes, err = r.notes().Read(ctx); err != nil {
		return err
	}
	return r.guard.Rollback(s.notes.Live.AsOf)
}

// hasOtherRoot reports whether the root differs from the one in a note signed by the run's keys
// although no publish was interrupted. Then somebody else wrote it, and perhaps other objects too.
func (r *run) hasOtherRoot(s *state) bool {
	return r.notes().Replaces(s.notes) || s.mark == nil && s.body != nil && s.notes.NamesAnother(s.body)
}

func (r *run) inputs() *inputs.Run {
	return &inputs.Run{Bucket: r.bucket, Site: r.source, Inputs: r.options.Inputs, Progress: r.options.Progress, Log: r.options.Log}
}

// putInputs puts the inputs of the site, before the site itself.
func (r *run) putInputs(ctx context.Context) (err error) {
	r.report.Inputs, err = r.inputs().Put(ctx)
	return err
}

// replace makes the bucket equal to the site. It returns whether the bucket had to change and which
// runs the mark names.
func (r *run) replace(ctx context.Context, t lock.Tenure, state *state, settled bool) (changed bool, marked []lock.Run, err error) {
	if state.holds(r.source) && !t.Doubted && !r.notes().Replaces(state.notes) { // another run was faster, or late requests repeated earlier ones
		if err := r.putInputs(ctx); err != nil {
			return false, nil, err
		}
		changed, err = r.confirm(ctx, t, state)
		return changed, nil, err
	}
	if err := r.guard.Loss(ctx, r.bucket, state.body); err != nil { // another run may have published in between
		return false, nil, err
	}
	plan, err := r.plan(ctx, state, t.Doubted)
	if err != nil {
		return false, nil, err
	}
	defer plan.Close()
	if err := r.putInputs(ctx); err != nil {
		return false, nil, err
	}
	if state.holds(r.source) && plan.IsEmpty() {
		changed, err = r.confirm(ctx, t, state)
		return changed, nil, err
	}
	marked, err = r.carryOut(ctx, state, plan, settled)
	return true, marked, err
}

// carryOut carries out the plan. It puts the root even if the bucket has it. Fallbacks then reapply
// refreshes overwritten by this run or by an interrupted one.
func (r *run) carryOut(ctx context.Context, state *state, plan *plan.Plan, settled bool) (marked []lock.Run, err error) {
	notes := r.notes()
	announced, err := notes.Announcement(state.notes, state.body, plan)
	if err != nil {
		return marked, err
	}
	if announced != nil {
		r.report.Signed = announced.Signature
	}
	err = r.bucket.Durably(ctx, func() (err error) {
		marked, err = lock.WriteMark(ctx, r.bucket, cmp.Or(state.mark, state.known), state.root, &r.source.Root)
		return err
	})
	if err != nil {
		return marked, err
	}
	if err := notes.Announce(ctx, state.notes, state.body, announced); err != nil {
		return marked, err
	}
	transfer := transfer.New(r.source, r.bucket, r.options.packFrom, r.options.Progress, func(s transfer.Sent) { r.report.Add(report.Done(s)) })
	err = r.bucket.Durably(ctx, func() error { return transfer.Put(ctx, plan) })
	r.report.Bulk = transfer.Packs
	if err != nil {
		return marked, err
	}
	if err := r.bucket.Durably(ctx, func() error { return r.putRoot(ctx, state) }); err != nil {
		return marked, err
	}
	if err := notes.PutNote(ctx, state.notes, announced); err != nil {
		return marked, err
	}
	if err := r.bucket.Durably(ctx, func() error { return transfer.Delete(ctx, plan) }); err != nil {
		return marked, err
	}
	if err := notes.Unannounce(ctx, announced); err != nil {
		return marked, err
	}
	if !settled { // the mark lists requests that may still arrive, for the next run
		return marked, nil
	}
	return marked, r.bucket.Delete(ctx, site.MarkKey)
}

// confirm ends a run that has nothing to change except, perhaps, the note. With a doubt, it puts
// the root too: a late request may have replaced a refreshed object by the site's own, which looks
// right.
func (r *run) confirm(ctx context.Context, t lock.Tenure, state *state) (changed bool, err error) {
	if t.Found != nil {
		if err := r.bucket.Durably(ctx, func() error { return r.putRoot(ctx, state) }); err != nil {
			return false, err
		}
	}
	err = r.bucket.Durably(ctx, func() (err error) {
		var signature *sign.Signature
		if signature, changed, err = r.notes().Settle(ctx, state.notes); signature != nil {
			r.report.Signed = signature
		}
		if changed {
			r.report.Before, r.report.Changed = r.source.Root.Config, report.Changed{Keys: []site.Key{note.Key}}
		}
		return err
	})
	return changed, err
}

// plan compares the manifests, or compares the site with a listing if the bucket's manifest cannot
// be trusted. The caller closes the plan.
func (r *run) plan(ctx context.Context, s *state, doubted bool) (*plan.Plan, error) { //nolint:gocyclo // a kind of damage after the other
	planner := &plan.Planner{Source: r.source, Bucket: r.bucket, Live: s.root, MaxDelta: r.options.maxDelta, Memory: r.options.memory, Refreshers: r.options.Refreshers}
	r.options.Progress.Stage("compare", 0)
	damaged := s.body != nil && s.root == nil || r.hasOtherRoot(s)
	if s.body == nil && s.mark == nil {
		var err error
		if damaged, err = survey.HasManifest(ctx, r.bucket); err != nil {
			return nil, err
		}
	}
	if s.body == nil && s.mark == nil && s.known == nil && !damaged {
		foreign, err := survey.Overwritten(ctx, r.bucket, r.source)
		if err = cmp.Or(err, r.guard.Foreign(foreign)); err != nil {
			return nil, err
		}
	}
	if s.mark == nil && !damaged && !doubted {
		compared, err := planner.Compare(ctx)
		if err == nil && s.root != nil {
			var foreign []site.Key
			foreign, err = survey.OverwrittenAmong(ctx, r.bucket, compared.Fixed)
			if err = cmp.Or(err, r.guard.Foreign(foreign)); err != nil {
				compared.Close()
				return nil, err
			}
		}
		if !errors.Is(err, plan.ErrInconsistent) {
			return r.reportPlan(compared, s.root, err)
		}
		damaged = true
	}
	if damaged {
		r.options.Log.Warn("the bucket differs from its root: comparing with a listing")
	} else {
		r.options.Log.Info("an earlier run was cut off, or its requests may have arrived late: comparing with a listing")
	}
	r.report.Resumed = true
	listed, err := planner.FromListing(ctx, cmp.Or(s.mark, s.known), r.options.Progress)
	return r.reportPlan(listed, s.root, err)
}

func (r *run) reportPlan(p *plan.Plan, live *site.Root, err error) (*plan.Plan, error) {
	if err != nil {
		return nil, err
	}
	if err := r.planned(p, live); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (r *run) planned(p *plan.Plan, live *site.Root) error {
	if err := r.report.SetPlan(p, live, r.options.MaxChanged); err != nil {
		return err
	}
	if !r.report.Changed.Unknown && (r.options.Signing != nil || r.options.Unsigned) {
		r.report.Changed.Keys = append(r.report.Changed.Keys, note.Key, note.NextKey) // announced objects never change
	}
	return nil
}

// putRoot makes the site live, unless the root is no longer the one that the plan is based on.
func (r *run) putRoot(ctx context.Context, s *state) (err error) {
	defer func() {
		r.report.Live = err == nil || bytes.Equal(s.body, r.source.Body) && !errors.Is(err, errInterleaved)
	}()
	root := r.source.Object(site.Entry{Key: site.RootKey, Size: int64(len(r.source.Body)), MD5: site.Sum(r.source.Body)}, r.source.Body)
	_, err = lock.Replace(ctx, r.bucket, root, s.condition, &r.source.Root, r.warnUnlocked)
	return err
}

func (r *run) dryRun(ctx context.Context) error {
	t, err := r.keeper.Read(ctx)
	if err != nil {
		return err
	}
	state, err := r.readState(ctx, t.Found)
	if err != nil {
		return err
	}
	if err := r.readNotes(ctx, state); err != nil {
		return err
	}
	plan, err := r.plan(ctx, state, t.Doubted)
	if err != nil {
		return err
	}
	plan.Close()
	r.report.Outcome = Planned
	return nil
}
