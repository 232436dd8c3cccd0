package publisher

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/publisher/internal/plan"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/publisher/internal/spool"
	"github.com/followpress/followpress/publisher/internal/survey"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
)

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
	manifest, err := survey.OpenManifest(l.soft, retrying, &root)
	if err != nil {
		return nil, err
	}
	v := NewVerification()
	if err := v.Take(l.soft, o.survey(retrying, &root, manifest, manifest), nil); err != nil {
		return nil, err
	}
	v.Seconds = time.Since(begun).Seconds()
	return v, nil
}

// survey returns a survey of a bucket. manifest names the objects, and own describes how the bucket
// stores the manifest itself.
func (o Options) survey(b *requests.Bucket, root *site.Root, manifest, own *shards.Reader) *survey.Survey {
	return &survey.Survey{Bucket: b, Root: root, Manifest: manifest, Own: own, Exclude: o.Exclude, Progress: o.Progress, Refreshers: o.Refreshers, Memory: o.memory}
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
	defer r.close()
	repair := func(r *run, ctx context.Context, t lock.Tenure) (left lock.Aftermath, err error) {
		v, left.Marked, err = r.repair(ctx, t)
		return left, err
	}
	if o.DryRun {
		var t lock.Tenure
		if t, err = r.keeper.Read(r.soft); err == nil {
			_, err = repair(r, r.soft, t)
		}
	} else {
		err = r.locked(r.soft, repair)
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
	report.Seconds = time.Since(begun).Seconds()
	v.Repaired, v.Seconds = report, report.Seconds
	return v, err
}

// repair compares with the site's manifest, because the bucket's may be incomplete.
func (r *run) repair(ctx context.Context, t lock.Tenure) (v *Verification, marked []lock.Run, err error) {
	state, err := r.readState(ctx, t.Found)
	if err != nil {
		return nil, nil, err
	}
	if state.root == nil && len(state.body) == 0 {
		return nil, nil, fmt.Errorf("the bucket has no %s; run followpress publish instead, or check --dest", site.RootKey)
	}
	if state.root != nil { // tags do not count as a difference; keep the bucket's
		if err := r.source.Tag(state.root.Config.Tags); err != nil {
			return nil, nil, err
		}
		r.report.Config = r.source.Root.Config
	}
	if string(state.body) != string(r.source.Body) {
		return nil, nil, errors.New("the bucket holds another site; run followpress publish instead")
	}
	if state.mark != nil {
		return nil, nil, errors.New("a publish or repair was cut off, or its requests may still arrive; run followpress publish instead, which compares the site with a listing")
	}
	planner := &plan.Planner{Source: r.source, Bucket: r.bucket, Live: state.root}
	plan := plan.New(spool.New(r.options.Log, r.options.memory), state.root != nil)
	defer plan.Close()
	manifest, err := r.source.Manifest(ctx)
	if err != nil {
		return nil, nil, err
	}
	own, err := survey.OpenManifest(ctx, r.bucket, &r.source.Root) // the bucket may store it in another way
	if err != nil {
		return nil, nil, err
	}
	own.Trust(manifest)
	v = NewVerification()
	survey := r.options.survey(r.bucket, &r.source.Root, manifest, own)
	survey.Ours = true
	err = v.Take(ctx, survey, planner.Findings(plan))
	if err != nil {
		return nil, nil, r.source.Damaged(err)
	}
	if err := r.planned(plan, state.root); err != nil {
		return v, nil, err
	}
	if r.options.DryRun || plan.IsEmpty() {
		return v, nil, nil
	}
	marked, err = r.carryOut(ctx, state, plan, t.Found.Settled(r.bucket.Now()))
	return v, marked, err
}
