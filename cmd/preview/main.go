// Command preview serves a site on this machine, with the handler that answers
// for real: the demo snapshot, a snapshot, or a site that was generated before.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"github.com/alecthomas/kong"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/storage"
)

const about = `Serve everything locally, as the service would answer.

Without flags it renders the demo snapshot in memory and serves that.`

// poll is short: whoever generates a site wants to see it.
const poll = time.Second

type flags struct {
	Snapshot string `placeholder:"DIR" help:"Render this snapshot in memory and serve it."`
	Site     string `placeholder:"SITE" help:"Serve this site: a folder or a .tar file that generate wrote."`
	Addr     string `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Where to listen; port 0 takes a free one (default ${default})."`
}

func main() { command.Main("preview", about, &flags{}) }

// AfterApply lets a flag win over the other's environment variable, which may be
// set for another command.
func (f *flags) AfterApply(parsed *kong.Context) error {
	given := map[string]bool{}
	for _, element := range parsed.Path {
		if element.Flag != nil {
			given[element.Flag.Name] = true
		}
	}
	switch {
	case f.Snapshot == "" || f.Site == "":
	case given["site"] == given["snapshot"]:
		return errors.New("--snapshot and --site exclude each other (FOLLOWPRESS_SNAPSHOT and FOLLOWPRESS_SITE set them too)")
	case given["site"]:
		f.Snapshot = ""
	default:
		f.Site = ""
	}
	return nil
}

// Run serves until it is interrupted.
func (f *flags) Run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	store, err := f.open(ctx, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	log := slog.New(slog.NewTextHandler(stderr, nil))
	handler, err := server.New(ctx, store, server.Options{Log: log, Poll: poll})
	if err != nil {
		return err
	}
	examples, err := server.FindExamples(ctx, store, handler.Root())
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", f.Addr)
	if err != nil {
		return fmt.Errorf("%w (--addr chooses another address)", err)
	}
	base := "http://" + listener.Addr().String()
	fmt.Fprintf(stdout, "Serving on %s/ (stop with Ctrl-C). Try:\n", base)
	for _, path := range firstPaths(handler.Root(), examples) {
		fmt.Fprintf(stdout, "  curl '%s%s'\n", base, path)
	}
	go handler.Watch(ctx)
	return server.Serve(ctx, listener, withStartPage(handler, examples, log), log, server.Limits{})
}

func (f *flags) open(ctx context.Context, stderr io.Writer) (storage.Site, error) {
	if f.Site != "" {
		return storage.OpenSite(f.Site)
	}
	snapshot := afero.Fs(afero.FromIOFS{FS: fixtures.Demo()})
	if f.Snapshot != "" {
		snapshot = afero.NewBasePathFs(afero.NewOsFs(), f.Snapshot)
	}
	progress := command.NewProgress(stderr)
	files, report, err := generator.ToMemory(ctx, snapshot, generator.Options{Progress: progress})
	progress.End()
	if err != nil {
		return nil, err
	}
	fmt.Fprint(stderr, report)
	return storage.NewFolder(files), nil
}
