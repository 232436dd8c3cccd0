// Package preview implements the command preview, which serves the demo, a snapshot or a generated site on
// this machine, with the fallback's handler.
package preview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/generate"
	"github.com/followpress/followpress/cmd/internal/serve"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/templates/openapi"
)

// poll is short, so that a newly generated site shows up at once.
const poll = time.Second

// Command is preview with its flags.
type Command struct {
	Snapshot string `placeholder:"DIR" help:"Render this snapshot in memory and serve it: a folder, or s3://BUCKET/PREFIX; in any format that generate reads."`
	Site     string `placeholder:"SITE" help:"Serve this site: folder, .tar file, bucket (s3://BUCKET, s3://BUCKET/PREFIX, file:///FOLDER) or parts ('FOLDER/part-*', quoted)."`
	Addr     string `placeholder:"HOST:PORT" help:"Where to listen; a port alone means this machine only, port 0 any free port (default 127.0.0.1:8080, or the next free port)."`

	command.S3

	serve.Upstreams `group:"Fresh data (cache=fresh):"`

	generate.Content `group:"How a snapshot is rendered:"`
}

// Help returns the text below the first line of --help.
func (*Command) Help() string {
	return `Without flags it serves the demo from memory, with the whole read API and a source of fresh profiles and badges. / is the explorer; /_preview has a live link for every route. A site is reloaded when generate replaces it; cache=fresh does not change it.

	followpress preview --site site.tar`
}

// badgesField is the member of the demo's badges, as in the specification, whatever the API.
const badgesField = "badges"

// BeforeApply makes the demo show everything, unless flags ask for less.
func (c *Command) BeforeApply(parsed *kong.Context) error {
	given := command.Given(parsed)
	if c.Snapshot == "" && c.Site == "" && !given["snapshot"] && !given["site"] && !command.Asked(parsed, "api") {
		c.API = site.APIEFP
		if !command.Asked(parsed, "badges-field") {
			c.BadgesField = badgesField
		}
	}
	return nil
}

// Validate checks the flags before the run; kong calls it.
func (c *Command) Validate() error {
	if c.RefreshKey != "" {
		return errors.New("--refresh-key: preview keeps refreshed data in memory and signs nothing")
	}
	return errors.Join(c.Content.Validate(), c.Check())
}

// AfterApply resolves --snapshot and --site.
func (c *Command) AfterApply(parsed *kong.Context) error {
	return generate.ChooseSource(parsed, &c.Snapshot, &c.Site)
}

// Run serves until interrupted.
func (c *Command) Run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	// Listen first, to report an address in use before the site is rendered. Early clients wait.
	listener, err := c.listen()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	opened, err := c.open(ctx, "http://"+listener.Addr().String(), stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if c.Snapshot == "" && c.Site == "" && !c.Refresh().Refreshes() {
		wait, failed := c.startDemoUpstream(ctx)
		if failed != nil {
			return failed
		}
		defer func() { stop(); err = errors.Join(err, wait()) }()
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	store, o := server.Store(opened), server.Options{Log: log, Poll: poll, Describe: openapi.Describe, Refresh: c.Refresh()}
	if o.Refresh.Refreshes() {
		store, o.Refresh.InMemory = &patched{Site: opened}, true
	}
	handler, err := server.New(ctx, store, o)
	if err != nil {
		return err
	}
	examples, err := findSample(ctx, store, handler.Root())
	if err != nil {
		return err
	}
	base := "http://" + listener.Addr().String()
	if handler.Root().Config.Explorer {
		fmt.Fprintf(stdout, "Serving on %s/ (stop with Ctrl-C): the explorer.\nAll routes: %[1]s%s. Try:\n", base, startPath)
	} else {
		fmt.Fprintf(stdout, "Serving on %s/ (stop with Ctrl-C): all routes. Try:\n", base)
	}
	for _, path := range firstLinks(handler.Root(), examples, func(r row) row { return withAnswers(handler, r) }) {
		fmt.Fprintf(stdout, "  curl '%s%s'\n", base, path)
	}
	go handler.Watch(ctx)
	return server.Serve(ctx, listener, withPages(handler, store, examples, log), log)
}

// listen listens at --addr, by default at the first free port from 8080 on.
func (c *Command) listen() (net.Listener, error) {
	if c.Addr != "" {
		return command.Listen("addr", c.Addr)
	}
	const first, ports = 8080, 20
	for port := first; ; port++ {
		listener, err := command.Listen("addr", fmt.Sprintf("127.0.0.1:%d", port))
		if !errors.Is(err, syscall.EADDRINUSE) || port == first+ports {
			return listener, err
		}
	}
}

// open opens the site or renders the snapshot. The demo also has data files, and pages for a site at base.
func (c *Command) open(ctx context.Context, base string, stderr io.Writer) (_ storage.Site, err error) {
	if c.Site != "" {
		return command.OpenSite(ctx, c.Site, c.Server())
	}
	from := afero.Fs(afero.FromIOFS{FS: fixtures.Demo()})
	if c.Snapshot != "" {
		files, closeFiles, failed := generate.OpenSnapshot(ctx, c.Snapshot, c.Server())
		if failed != nil {
			return nil, failed
		}
		defer func() { err = errors.Join(err, closeFiles()) }()
		from = files
	}
	o, err := c.Options(ctx, "", c.Server(), note.Keys{})
	if err != nil {
		return nil, err
	}
	o.Config.ExplorerKeys = "" // sites in memory are not signed
	if c.Snapshot == "" && o.Config.EFP() && !o.Config.Pages {
		o.Config.Pages, o.Config.PublicURL = true, base
	}
	if c.Snapshot == "" {
		o.Config.Data = true
		o.Config.Title = cmp.Or(o.Config.Title, "Demo of followpress")
		o.Config.About = cmp.Or(o.Config.About, "A demo of invented people: none of these accounts exists.")
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
