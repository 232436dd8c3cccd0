package generator

import (
	"context"
	"errors"
)

// dryRun renders the whole site as another run would, and compares it with the live one, but writes
// nothing.
func (r *run) dryRun(ctx context.Context, dest destination) (err error) {
	live, err := dest.check(ctx)
	if err != nil {
		return err
	}
	if r.Rebuild {
		live = nil
	}
	renderer, err := r.prepare(ctx)
	if err != nil {
		return err
	}
	r.Progress.Stage("compare", renderer.Objects())
	x, err := r.render(ctx, renderer, discard{}, inTempFolder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.entries.close()) }()
	r.report.DryRun = true
	r.report.Written = WriteReport{Added: x.objects()}
	if live == nil {
		return nil
	}
	switch p, err := x.diff(ctx, live, nil); {
	case errors.Is(err, errManifest): // the content of the live site is not known, so all would be written
	case err != nil:
		return err
	default:
		r.report.Written = p.report(x.objects())
	}
	return nil
}
