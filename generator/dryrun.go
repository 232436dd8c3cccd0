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
	if err := r.prepare(ctx); err != nil {
		return err
	}
	r.temp, r.report.DryRun = inTempFolder, true
	defer func() { err = errors.Join(err, r.close()) }()
	if live == nil {
		r.Progress.Stage("compare", r.site.Objects())
		err = r.render(ctx, discard{})
	} else {
		err = r.compare(ctx, live, dest.look())
	}
	if err != nil && !errors.Is(err, errManifest) {
		return err
	}
	if r.plan == nil { // the content of the live site is not known, so all would be written
		r.report.Written = WriteReport{Added: r.index.objects()}
	}
	return nil
}
