package publish

import (
	"context"
	"errors"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot/pieces"
)

// inputs are the flags for publishing a site's inputs.
type inputs struct {
	Inputs bool `help:"Also publish the site's inputs below _snapshot/, so that others can rebuild it with reproduce. Only with --snapshot. The bucket keeps those of the last 7 sites."`
}

func (i *inputs) checkInputs(snapshot, onInvalid string) error {
	switch {
	case !i.Inputs:
		return nil
	case snapshot == "":
		return errors.New("--inputs needs --snapshot: a site does not contain its input tables")
	case onInvalid == "skip":
		return errors.New("--inputs excludes --on-invalid=skip: skipped rows cannot be published")
	}
	return nil
}

// keptInputs are the inputs of a site, open until the site is closed.
type keptInputs struct {
	pieces.Source
	closeFolder func() error
}

// openKept renders the site of a snapshot, and keeps its inputs.
func (s *source) openKept(ctx context.Context, run session, folder afero.Fs, closeFolder func() error, o generator.Options) (openSite, *summary.Report, error) {
	kept := &keptInputs{pieces.Source{Snapshot: folder}, closeFolder}
	if o.Refreshed != nil {
		kept.Refreshed = pieces.Record(o.Refreshed)
		o.Refreshed = kept.Refreshed
	}
	if o.Ranks != nil {
		kept.Ranks = o.Ranks.Body
	}
	opened, report, err := render(ctx, run, folder, o)
	if err != nil {
		return nil, nil, errors.Join(err, kept.close())
	}
	opened.inputs, report.Snapshot = kept, s.Snapshot
	return opened, report, nil
}

// Build implements publisher.Inputs.
func (k *keptInputs) Build(ctx context.Context, root *site.Root, put func(site.Key, []byte) error) ([]byte, error) {
	x, err := k.Source.Build(ctx, root, func(p pieces.Piece, body []byte) error { return put(p.Key(), body) })
	if err != nil {
		return nil, err
	}
	return x.Encode()
}

// Named implements publisher.Inputs.
func (*keptInputs) Named(index []byte) ([]site.Entry, error) {
	x, err := pieces.ParseIndex(index)
	if err != nil {
		return nil, err
	}
	var all []site.Entry
	for _, p := range x.All() {
		all = append(all, site.Entry{Key: p.Key(), Size: p.Bytes, MD5: p.MD5})
	}
	return all, nil
}

func (k *keptInputs) close() error {
	var err error
	if k.Refreshed != nil {
		err = k.Refreshed.Close()
	}
	return errors.Join(err, k.closeFolder())
}

// Close closes the site and its inputs.
func (s *renderedSite) Close() error {
	err := s.Site.Close()
	if s.inputs != nil {
		err = errors.Join(err, s.inputs.close())
	}
	return err
}

var _ publisher.Inputs = (*keptInputs)(nil)
