package generator

import (
	"context"
	"errors"

	"github.com/followpress/followpress/generator/internal/output"
	"github.com/followpress/followpress/generator/summary"
)

// dryRun renders the whole site and compares it with the live one, but writes nothing.
func (r *run) dryRun(ctx context.Context, dest output.Destination) (err error) {
	live, err := dest.Check(ctx)
	if err != nil {
		return err
	}
	if r.Rebuild {
		live = nil
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	r.temp, r.report.DryRun = output.InTempFolder, true
	defer func() { err = errors.Join(err, r.close()) }()
	if live == nil {
		r.Progress.Stage("compare", r.site.Objects())
		err = r.render(ctx, output.Discard{})
	} else {
		err = r.compare(ctx, live, dest.Look())
	}
	if err != nil && !errors.Is(err, output.ErrManifest) {
		return err
	}
	if r.plan == nil { // the live site is unreadable, so a run would write everything
		r.report.Written = summary.WriteReport{Added: r.index.Objects()}
	}
	return nil
}
