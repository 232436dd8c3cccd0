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
	"github.com/followpress/followpress/site"
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

	// Of a snapshot, as generate has them.
	OnInvalid      string  `enum:"stop,skip" default:"stop" help:"What to do about a row of the snapshot or a refreshed object that cannot be read: stop, or skip it and report it (default ${default})."`
	Refreshed      *string `placeholder:"LOCATION" help:"What refreshes have fetched (cache=fresh), merged where it is newer than the snapshot: s3://BUCKET/_refresh, s3://BUCKET/PREFIX/_refresh, or a folder, also as file:///FOLDER."`
	Endpoint       string  `placeholder:"URL" env:"FOLLOWPRESS_ENDPOINT,AWS_ENDPOINT_URL_S3,AWS_ENDPOINT_URL" help:"Server of --refreshed=s3://…; without one Amazon S3."`
	Region         string  `placeholder:"NAME" help:"Region of that bucket; by default AWS_REGION, or us-east-1."`
	BasePath       string  `default:"api/v1" help:"Path of the API of a snapshot (default ${default})."`
	BadgesField    string  `default:"badges" help:"Name of the member that holds the badges of a snapshot (default ${default})."`
	LeaderboardMax int     `default:"100" help:"Largest limit of a leaderboard of a snapshot (default ${default})."`
	MaxProfileText int     `default:"65536" placeholder:"BYTES" help:"Longest text of a profile of a snapshot (default ${default})."`
}

// ofSnapshot are the flags that a site has no use for: it was generated with its own.
var ofSnapshot = []string{"on-invalid", "refreshed", "endpoint", "region", "base-path", "badges-field", "leaderboard-max", "max-profile-text"}

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
	for _, name := range ofSnapshot {
		if f.Site != "" && given[name] {
			return fmt.Errorf("--%s is for a snapshot: the site %s is served as it was generated", name, f.Site)
		}
	}
	return nil
}

// Validate refuses what cannot work; kong calls it.
func (f *flags) Validate() error {
	if f.Refreshed != nil { // empty, it is a variable that is not set: an error
		if _, err := storage.ParseRefreshed(*f.Refreshed); err != nil {
			return fmt.Errorf("--refreshed: %w", err)
		}
	}
	if f.MaxProfileText == 0 { // else it would mean the default
		return errors.New("--max-profile-text=0: every text would be left out")
	}
	_, err := f.config().WithDefaults()
	return err
}

func (f *flags) config() site.Config {
	return site.Config{BasePath: f.BasePath, BadgesField: f.BadgesField, LeaderboardMax: f.LeaderboardMax, MaxProfileText: f.MaxProfileText}
}

// Run serves until it is interrupted.
func (f *flags) Run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	// First of all: nobody should wait for a site to hear that the address is taken.
	// Clients that come while it is rendered wait.
	listener, err := net.Listen("tcp", f.Addr)
	if err != nil {
		return fmt.Errorf("%w (--addr chooses another address)", err)
	}
	defer func() {
		if closed := listener.Close(); !errors.Is(closed, net.ErrClosed) { // by Serve
			err = errors.Join(err, closed)
		}
	}()
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
	refreshed, err := f.openRefreshed(ctx)
	if err != nil {
		return nil, fmt.Errorf("--refreshed: %w", err)
	}
	progress := command.NewProgress(stderr)
	files, report, err := generator.ToMemory(ctx, snapshot, generator.Options{
		Config: f.config(), SkipInvalid: f.OnInvalid == "skip", Refreshed: refreshed, Progress: progress,
	})
	progress.End()
	if err != nil {
		return nil, err
	}
	fmt.Fprint(stderr, report)
	return storage.NewFolder(files), nil
}

// openRefreshed gives nil where there is no --refreshed.
func (f *flags) openRefreshed(ctx context.Context) (generator.Refreshed, error) {
	if f.Refreshed == nil {
		return nil, nil
	}
	at, err := storage.ParseRefreshed(*f.Refreshed)
	if err != nil {
		return nil, err
	}
	return storage.OpenRefreshed(ctx, at, storage.S3Options{Endpoint: f.Endpoint, Region: f.Region})
}
