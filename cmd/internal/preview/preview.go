// Package preview is the command that serves a site on this machine, with the same handler
// as the fallback: the demo snapshot, another snapshot, or a generated site.
package preview

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/alecthomas/kong"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/generate"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/templates"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/storage"
)

// poll is short, so that a newly generated site shows up at once.
const poll = time.Second

// Command is the command with its flags.
type Command struct {
	Snapshot string `placeholder:"DIR" help:"Render this snapshot in memory and serve it; in any of the formats that generate takes."`
	Site     string `placeholder:"SITE" help:"Serve this site: a folder or a .tar file that generate wrote, or parts: 'FOLDER/part-*', in quotes."`
	Addr     string `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Where to listen; port 0 takes a free one (default ${default})."`

	generate.Rendering `group:"How a snapshot is rendered:"`
}

// Help is what --help shows below the first line.
func (*Command) Help() string {
	return `Without flags it renders the demo snapshot in memory and serves that. The page at / is the explorer; another one, at /_preview, has a live link for every route. A site is reloaded when generate replaces it.

	followpress preview --site site.tar`
}

// AfterApply decides between --snapshot and --site.
func (c *Command) AfterApply(parsed *kong.Context) error {
	return generate.ChooseSource(parsed, &c.Snapshot, &c.Site)
}

// Run serves until it is interrupted.
func (c *Command) Run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	// Listen first, so that an address that is in use is reported before the site is
	// rendered. Clients that connect meanwhile wait.
	listener, err := command.Listen("addr", c.Addr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	store, err := c.open(ctx, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	log := slog.New(slog.NewTextHandler(stderr, nil))
	handler, err := server.New(ctx, store, server.Options{Log: log, Poll: poll, Describe: templates.OpenAPI})
	if err != nil {
		return err
	}
	examples, err := server.FindExamples(ctx, store, handler.Root())
	if err != nil {
		return err
	}
	base := "http://" + listener.Addr().String()
	fmt.Fprintf(stdout, "Serving on %s/ (stop with Ctrl-C). Try:\n", base)
	for _, path := range firstLinks(handler.Root(), examples) {
		fmt.Fprintf(stdout, "  curl '%s%s'\n", base, path)
	}
	go handler.Watch(ctx)
	return server.Serve(ctx, listener, withPages(handler, store, examples, log), log, server.Limits{})
}

func (c *Command) open(ctx context.Context, stderr io.Writer) (_ storage.Site, err error) {
	if c.Site != "" {
		return storage.OpenSite(c.Site)
	}
	from := afero.Fs(afero.FromIOFS{FS: fixtures.Demo()})
	if c.Snapshot != "" {
		folder, failed := snapshot.Open(c.Snapshot)
		if failed != nil {
			return nil, failed
		}
		defer func() { err = errors.Join(err, folder.Close()) }()
		from = folder
	}
	o, err := c.Options(ctx)
	if err != nil {
		return nil, err
	}
	progress := command.NewProgress(stderr)
	o.Progress = progress
	files, report, err := generator.ToMemory(ctx, from, o)
	progress.End()
	if err != nil {
		return nil, err
	}
	fmt.Fprint(stderr, report)
	return storage.NewFolder(files), nil
}
