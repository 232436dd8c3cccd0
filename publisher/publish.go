package publisher

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/followpress/followpress/publisher/internal/inputs"
	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/publisher/internal/origin"
	"github.com/followpress/followpress/publisher/internal/plan"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/publisher/internal/sign"
	"github.com/followpress/followpress/publisher/internal/survey"
	"github.com/followpress/followpress/publisher/internal/transfer"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/kept"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/storage"
)

var (
	// ErrLocked means that another publisher holds the lock.
	ErrLocked = lock.ErrLocked
	// ErrLockLost means that another publisher took the lock: it had no heartbeat for its lease, or
	// BreakLock was set.
	ErrLockLost    = lock.ErrLockLost
	errInterleaved = lock.ErrInterleaved
)

// Publish makes the bucket equal to the site. The report is never nil, also after an error. When
// ctx ends, Publish returns its cause after at most grace, because of requests in flight; the next
// publish, from any machine, resumes. Errors include ErrLocked, ErrLockLost and errInterleaved.
// Publish may run concurrently on different buckets.
func Publish(ctx context.Context, from Site, to Bucket, o Options) (*Report, error) {
	report := NewReport()
	defer report.end(time.Now())
	o, err := o.WithDefaults()
	if err != nil {
		return report, err
	}
	r, err := newRun(ctx, from, to, o, report)
	if err != nil {
		return report, err
	}
	defer r.end()
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
	id      string
	options Options
	source  *origin.Site
	asOf    time.Time        // time of the source
	bucket  *requests.Bucket // under the lease once the run holds the lock
	report  *Report
}

// A tenure describes a taken lock.
type tenure struct {
	held    *lock.Lock  // nil if the run publishes without a lock
	found   *lock.Doubt // doubt named by the lock
	doubted bool        // whether the bucket may differ from its manifest because of found
}

// An aftermath is the doubt to leave in the lock after the steps under it.
type aftermath struct {
	ended       *lock.Doubt // the earlier doubt, once this run has made sure that its cause is over
	marked      []lock.Run  // runs named by this run's mark; nil if it wrote none
	interleaved bool        // another run wrote the root, so objects of both may be mixed
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
	bucket := requests.New(l.hard, to, o.requests(&report.retries))
	return &run{lifetimes: l, options: o, source: source, asOf: asOf, bucket: bucket, report: report, id: lock.NewID()}, nil
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
	if err := r.refuseFuture(); err != nil {
		return err
	}
	body, _, err := r.bucket.Read(ctx, site.RootKey)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	if bytes.Equal(body, r.source.Body) {
		consistent, err := r.isConsistent(ctx)
		if err != nil {
			return err
		}
		if consistent {
			if consistent, err = r.inputs().Unchanged(ctx); err != nil {
				return err
			}
		}
		if consistent {
			if consistent, err = r.notes().Unchanged(ctx); err != nil {
				return err
			}
		}
		if consistent {
			r.report.Outcome, r.report.Live = Unchanged, true
			return nil
		}
	}
	if err := r.guard(ctx, body); err != nil {
		return err
	}
	if r.options.DryRun {
		return r.dryRun(ctx)
	}
	t, err := r.lock(ctx)
	if err != nil {
		return err
	}
	left, err := r.under(t).publishLocked(ctx, t)
	r.unlock(ctx, t, left)
	return err
}

// under returns a copy of the run that sends requests only while it holds the lock.
func (r *run) under(t tenure) *run {
	if t.held == nil {
		return r
	}
	leased := *r
	leased.bucket = r.bucket.Under(t.held.Lease, t.held.MD5ETags)
	return &leased
}

// isConsistent reports whether, according to mark and lock, the bucket equals its manifest.
func (r *run) isConsistent(ctx context.Context) (bool, error) {
	mark, err := lock.ReadMark(ctx, r.bucket)
	if err != nil || mark != nil {
		return false, err
	}
	lock, _, err := lock.Read(ctx, r.bucket)
	if errors.Is(err, storage.ErrNotFound) {
		return true, nil
	}
	// A run that takes the lock ends an old doubt: see confirm.
	return err == nil && lock.Released && !lock.Doubted() && (lock.Doubt == nil || !lock.Doubt.Settled(r.now())), err
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

func newerSite(err error) error {
	return fmt.Errorf("compare with the live site: %w; use the newer version", err)
}

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
			return nil, newerSite(err)
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

// lock takes the lock if the server has conditional writes, and waits until no request of the
// previous run can arrive. After an error there is nothing to unlock.
func (r *run) lock(ctx context.Context) (tenure, error) {
	held, err := lock.Acquire(ctx, r.id, r.bucket, r.options.lock(), r.endSoft)
	if err != nil {
		return tenure{}, err
	}
	if held == nil {
		r.warnUnlocked()
		return r.readDoubt(ctx)
	}
	if held.Drain > 0 {
		r.options.Log.Warn("waiting until the other run's requests arrive or expire", "for", held.Drain.Round(time.Second))
		select {
		case <-time.After(held.Drain):
		case <-ctx.Done():
			held.ReleaseUnused(ctx)
			return tenure{}, context.Cause(ctx)
		}
	}
	return tenure{held, held.Found, held.Doubted}, nil
}

// unlock frees the lock, and leaves a doubt in it if requests of this run may still arrive.
func (r *run) unlock(ctx context.Context, t tenure, left aftermath) {
	switch {
	case t.held == nil:
		r.changeLock(func(lock *lock.Body) bool {
			was := lock.Doubt
			if lock.Released { // no other publisher is running
				lock.ID, lock.Owner = r.id, r.options.Owner
			}
			lock.Doubt = r.remainingDoubt(left, t.found.Merge(was.NotInFuture(r.now())))
			return !lock.Doubt.Equal(was)
		})
	case errors.Is(context.Cause(ctx), lock.ErrLockLost):
		t.held.Abandon()
		r.changeLock(func(lock *lock.Body) bool {
			lock.Doubt = lock.Doubt.Merge(r.doubt(r.id))
			return true
		})
	default:
		if err := t.held.Release(ctx, func(was *lock.Doubt) *lock.Doubt { return r.remainingDoubt(left, was) }); err != nil {
			r.options.Log.Warn("lock not released: the next run will wait for its lease and compare with a listing", "lease", r.options.Lease, "error", err)
		}
	}
}

// readDoubt reads the doubt from the lock, for a run that does not take the lock.
func (r *run) readDoubt(ctx context.Context) (tenure, error) {
	body, info, err := lock.Read(ctx, r.bucket)
	if errors.Is(err, storage.ErrNotFound) {
		return tenure{}, nil
	} else if err != nil {
		return tenure{}, err
	}
	t := tenure{found: body.Doubt.NotInFuture(r.now()), doubted: body.Doubted()}
	if !body.Released {
		t.found, t.doubted = t.found.Merge(body.DoubtOf(info, r.now())), true
	}
	return t, nil
}

func (r *run) now() time.Time { return r.bucket.Now() }

// doubt returns a new doubt about requests of the run with this ID, or of several runs if id is "".
func (r *run) doubt(id string) *lock.Doubt {
	return &lock.Doubt{Run: id, Since: r.now().UTC()}
}

// remainingDoubt returns the doubt to leave in the lock at the end of this run: the earlier one
// unless this run ended it, and a new one if requests of this run may still arrive.
func (r *run) remainingDoubt(left aftermath, was *lock.Doubt) *lock.Doubt {
	if was.Equal(left.ended) {
		was = nil
	}
	switch {
	case left.interleaved:
		was = was.Merge(r.doubt(""))
	case !r.bucket.Settled():
		was = was.Merge(r.doubt(r.id))
	}
	if was == nil {
		return nil
	}
	return was.WithSites(left.marked)
}

// changeLock changes the doubt in a lock that another run may hold.
func (r *run) changeLock(change func(*lock.Body) bool) {
	ctx, cancel := lock.FinalContext(r.soft)
	defer cancel()
	if err := lock.Change(ctx, r.bucket.WithoutWindow().WithHard(ctx), change); err != nil {
		r.options.Log.Warn("cannot record in the lock that requests may still arrive; verify the bucket in an hour", "error", err)
	}
}

func (r *run) warnUnlocked() {
	if !r.report.Unlocked {
		r.options.Log.Warn("the server has no conditional writes: publishing without a lock; make sure that nobody else publishes")
		r.report.Unlocked = true
	}
}

// publishLocked reads the state again under the lock, and carries out the plan.
func (r *run) publishLocked(ctx context.Context, t tenure) (left aftermath, err error) {
	defer func() { left.interleaved = errors.Is(err, errInterleaved) }()
	state, err := r.readState(ctx, t.found)
	if err != nil {
		return left, err
	}
	if err := r.readNotes(ctx, state); err != nil {
		return left, err
	}
	settled := t.found.Settled(r.now()) // before the run reads the bucket
	changed, marked, err := r.replace(ctx, t, state, settled)
	left.marked = marked
	if err != nil {
		return left, err
	}
	if r.report.Outcome, r.report.Live = Unchanged, true; changed {
		r.report.Outcome = Published
	}
	if settled { // the bucket equals its manifest
		left.ended = t.found
	}
	return left, r.inputs().Prune(ctx, kept.IndexKey(site.Sum256(state.body)), r.report.Inputs)
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
	return r.refuseRollback(s.notes.Live.AsOf)
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
func (r *run) replace(ctx context.Context, t tenure, state *state, settled bool) (changed bool, marked []lock.Run, err error) {
	if state.holds(r.source) && !t.doubted && !r.notes().Replaces(state.notes) { // another run was faster, or late requests repeated earlier ones
		if err := r.putInputs(ctx); err != nil {
			return false, nil, err
		}
		changed, err = r.confirm(ctx, t, state)
		return changed, nil, err
	}
	if err := r.guard(ctx, state.body); err != nil { // another run may have published in between
		return false, nil, err
	}
	plan, err := r.plan(ctx, state, t.doubted)
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
	transfer := transfer.New(r.source, r.bucket, r.options.packFrom, r.options.Progress, func(s transfer.Sent) { r.report.add(done(s)) })
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
func (r *run) confirm(ctx context.Context, t tenure, state *state) (changed bool, err error) {
	if t.found != nil {
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
			r.report.Before, r.report.Changed = r.source.Root.Config, Changed{Keys: []site.Key{note.Key}}
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
		if damaged, err = r.hasManifest(ctx); err != nil {
			return nil, err
		}
	}
	if s.body == nil && s.mark == nil && s.known == nil && !damaged {
		if err := r.refuseForeign(survey.Overwritten(ctx, r.bucket, r.source)); err != nil {
			return nil, err
		}
	}
	resharded := s.root != nil && s.root.ShardDigits != r.source.Root.ShardDigits
	if s.mark == nil && !damaged && !doubted && !resharded {
		compared, err := planner.Compare(ctx)
		if err == nil && s.root != nil {
			if err = r.refuseForeign(survey.OverwrittenAmong(ctx, r.bucket, compared.Fixed)); err != nil {
				compared.Close()
				return nil, err
			}
		}
		if !errors.Is(err, plan.ErrInconsistent) {
			return r.reportPlan(compared, s.root, err)
		}
		damaged = true
	}
	switch {
	case damaged:
		r.options.Log.Warn("the bucket differs from its root: comparing with a listing")
	case resharded:
		r.options.Log.Info("the manifest has another number of shards: comparing with a listing")
	default:
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
	if err := r.report.plan(p, live, r.options.MaxChanged); err != nil {
		return err
	}
	if !r.report.Changed.Unknown && (r.options.Signing != nil || r.options.Unsigned) {
		r.report.Changed.Keys = append(r.report.Changed.Keys, note.Key, note.NextKey) // announced objects never change
	}
	return nil
}

// hasManifest reports whether a bucket without a root has a manifest: then somebody removed the
// root.
func (r *run) hasManifest(ctx context.Context) (bool, error) {
	for shard := "0"; len(shard) <= maxProbedDigits; shard += "0" {
		_, _, err := r.bucket.Read(ctx, site.ManifestKey(shard))
		if !errors.Is(err, storage.ErrNotFound) {
			return err == nil, err
		}
	}
	return false, nil
}

// maxProbedDigits covers all manifests without indexes.
const maxProbedDigits = 3

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
	t, err := r.readDoubt(ctx)
	if err != nil {
		return err
	}
	state, err := r.readState(ctx, t.found)
	if err != nil {
		return err
	}
	if err := r.readNotes(ctx, state); err != nil {
		return err
	}
	plan, err := r.plan(ctx, state, t.doubted)
	if err != nil {
		return err
	}
	plan.Close()
	r.report.Outcome = Planned
	return nil
}
