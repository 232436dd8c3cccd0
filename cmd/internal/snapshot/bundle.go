package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/eventlog"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/bundle"
	"github.com/followpress/followpress/source/chain"
)

// Bundle is the command that reads a log which somebody has published.
type Bundle struct {
	From       string `required:"" placeholder:"URL" help:"Where a site with a log is published, by publish --history: https://HOST, s3://BUCKET/PREFIX or file:///FOLDER."`
	State      string `required:"" placeholder:"DIR" help:"Folder for the state, with which snapshot chain goes on. Nothing may have been read into it yet."`
	Deployment string `placeholder:"FILE" help:"Where the contracts are, as JSON; by default those of the Ethereum Follow Protocol in production."`
	output
	Profiles   `group:"Profiles:"`
	command.S3 `group:"Profiles:"`
	Tables     `group:"Badges and other tables:"`
}

// Help is what --help shows below the first line.
func (*Bundle) Help() string {
	return `It downloads the bundles of the log, compares each with its digest in the index, and makes the same state and the same snapshot as the nodes would have given. A killed run goes on where it was. Who publishes the log is believed: snapshot chain --from-bundles has the contracts confirm it.

	followpress snapshot bundle --from https://api.example.org --state state`
}

// Validate checks the flags before the run; kong calls it.
func (b *Bundle) Validate() error {
	if b.From == "" || b.State == "" {
		return nil // kong says what is missing
	}
	if err := checkFrom(b.From); err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	return errors.Join(b.validate(b.State), b.Check(&b.Profiles, b.State))
}

func checkFrom(from string) error {
	if from == "" {
		return nil
	}
	return eventlog.Check(from)
}

// Run makes the state and the snapshot.
func (b *Bundle) Run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	d, err := (&Nodes{Deployment: b.Deployment}).Read()
	if err != nil {
		return err
	}
	r := run{output: &b.output, server: b.Server(), progress: command.NewProgress(stderr), stderr: stderr}
	defer r.progress.End()
	if chain.IsState(b.State) && !begun(b.State) {
		return fmt.Errorf("--state=%s has events already: name an empty folder, or go on with followpress snapshot chain", b.State)
	}
	state, err := chain.Open(b.State, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, state.Close()) }()
	write := func(w *snapshot.Writer) (*source.Graph, error) {
		if err := r.bootstrap(ctx, state, b.From, b.State, true); err != nil {
			return nil, fmt.Errorf("--from: %w", err)
		}
		asOf, err := state.AsOf()
		if err != nil {
			return nil, err
		}
		return r.replay(ctx, state, asOf, d, w)
	}
	err = r.make(ctx, stdout, &b.Profiles, &b.Tables, write, func(w *snapshot.Writer, g *source.Graph) error {
		return r.add(ctx, w, g, &b.Profiles, &b.Tables, b.State)
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(bundles(b.State))
}

// bundles is the folder of a state with the bundles that were downloaded. It is there until the state is
// made of them, and confirmed or the snapshot made, so that a run which was cut off can be made again.
func bundles(state string) string { return filepath.Join(state, "bundles") }

func begun(state string) bool {
	info, err := os.Stat(bundles(state))
	return err == nil && info.IsDir()
}

// A Bootstrap says what was read of a published log.
type Bootstrap struct {
	From    string  `json:"from"`
	Rows    uint64  `json:"rows"`
	Bundles int     `json:"bundles"`
	Bytes   int64   `json:"bytes"` // of the bundles
	Digest  string  `json:"digest"`
	Seconds float64 `json:"seconds"`
}

// String formats it for a person.
func (b *Bootstrap) String() string {
	return fmt.Sprintf("%s: a log of %d events in %d bundles, %.1f MB (%.1fs)\n", b.From, b.Rows, b.Bundles, float64(b.Bytes)/1e6, b.Seconds)
}

// bootstrap fills a state with a published log, unless a run before has done it. If alone is set, there are
// no nodes that have the rest.
func (r *run) bootstrap(ctx context.Context, state *chain.State, from, dir string, alone bool) error {
	start := time.Now()
	if chain.IsState(dir) {
		return nil
	}
	fetch, closeFetch, err := eventlog.Open(ctx, from, r.server)
	if err != nil {
		return err
	}
	log, err := bundle.Download(ctx, fetch, bundles(dir), r.progress)
	if err := errors.Join(err, closeFetch()); err != nil {
		return err
	}
	for _, c := range log.Index.Chains {
		if c.Point == nil && alone {
			return fmt.Errorf("the log has no block of chain %d yet up to which it is complete: try again after the next publish, or use snapshot chain --from-bundles", c.ID)
		}
	}
	r.progress.Stage("events", 0)
	if err := state.Adopt(ctx, log, r.NoSync); err != nil {
		return err
	}
	r.progress.End()
	told := &Bootstrap{From: from, Rows: log.Index.Rows, Bundles: len(log.Index.Bundles), Digest: log.Index.Digest, Seconds: time.Since(start).Seconds()}
	for i := range log.Index.Bundles {
		told.Bytes += log.Index.Bundles[i].Bytes
	}
	r.report.Log = told
	r.tell(told)
	return nil
}

// begin begins a state with a published log, and has the contracts confirm it.
func (c *Chain) begin(ctx context.Context, state *chain.State, r *run) error {
	if chain.IsState(c.State) && !begun(c.State) {
		return nil // it has begun already
	}
	if err := r.bootstrap(ctx, state, c.FromBundles, c.State, false); err != nil {
		return fmt.Errorf("--from-bundles: %w", err)
	}
	o, err := c.syncOptions(r)
	if err != nil {
		return err
	}
	err = state.Confirm(ctx, o)
	if err == nil || errors.Is(err, chain.ErrRefused) {
		err = errors.Join(err, os.RemoveAll(bundles(c.State)))
	}
	if err != nil {
		return fmt.Errorf("--from-bundles: %w", err)
	}
	return nil
}
