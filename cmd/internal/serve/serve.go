// Package serve implements the command serve, the fallback: it answers requests that no file of a site can
// answer, such as search pages and terms, records without tags, and fresh data.
package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/parts"
	"github.com/followpress/followpress/templates/openapi"
)

// Command is serve with its flags.
type Command struct {
	Site string `required:"" placeholder:"SITE" help:"The site: s3://BUCKET, s3://BUCKET/PREFIX, folder (file:///FOLDER too), .tar file, or parts ('FOLDER/part-*' or 's3://BUCKET/PREFIX/part-*', quoted)."`
	command.S3

	Addr        string `default:"127.0.0.1:8081" placeholder:"HOST:PORT" help:"Where to listen; a port alone means this machine only, port 0 any free port (default ${default})."`
	MetricsAddr string `placeholder:"HOST:PORT" help:"Where to serve /metrics for Prometheus, /healthz and /readyz, separate from the API; off by default."`

	Poll time.Duration `default:"10s" placeholder:"DURATION" help:"Interval between checks for a new site (default ${default})."`
	command.MaxAge
	Upstreams
	Checks
	Limits

	LogLevel string `enum:"debug,info,warn,error" default:"info" placeholder:"debug|info|warn|error" help:"Minimum level of the JSON log on standard error; debug logs every request (default ${default})."`

	// LimitMemory limits the process's memory. It is nil in tests, which share a process.
	LimitMemory func(bytes int64) `kong:"-"`
}

// besides is the collector's allowance, in bytes, beyond the cache, the bytes in flight and an index. It
// excludes the binary's pages, some 17 MiB. A lower value costs processor time, and saves memory only down
// to the live heap: 37 MiB with a 32 MiB cache, 50 connections and a site that does not fit, at a peak of 64
// to 65 MiB with both 4 and 8 MiB here. So the default cache is 28 MiB, to keep the promised 64 (2026-11-22,
// TestReleased, on a busy machine).
const besides = 8 << 20

// About is the first line of --help.
const About = "Run the fallback, which answers every request of the API, including those no file can answer."

// Help returns the text below the first line of --help.
func (*Command) Help() string {
	return `It runs behind a CDN, reads the site from a bucket and keeps no state: run any number of instances, and replace them at any time. /healthz returns 200 while it runs, /readyz once it has read a site. Credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the shared credentials file, or the machine's role.

	followpress serve --site s3://BUCKET --addr 0.0.0.0:8081`
}

// Validate checks the flags before the run; kong calls it.
func (c *Command) Validate() error {
	if _, err := storage.ParsePlace(c.Site); err != nil {
		return fmt.Errorf("--site: %w", err)
	}
	if c.Poll <= 0 {
		return errors.New("--poll must be positive")
	}
	return errors.Join(c.CheckMaxAge(), c.Upstreams.Check(), c.check(), c.Limits.Check())
}

// needed returns the memory that the limits require, in bytes, without the index of a tar file.
func (c *Command) needed() int64 {
	const beside = server.DefaultInFlightBytes + besides
	return int64(min(c.CacheBytes, uint64(math.MaxInt64-beside))) + beside
}

// limitMemory sets the collector's limit, and updates it when the store's index changes.
func (c *Command) limitMemory(store storage.Site) {
	if c.LimitMemory == nil {
		return
	}
	c.LimitMemory(c.needed())
	if indexed, ok := store.(interface{ OnIndex(told func(bytes int64)) }); ok {
		indexed.OnIndex(func(index int64) { c.LimitMemory(c.needed() + index) })
	}
}

// Run serves until interrupted.
func (c *Command) Run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	log := slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: command.LogLevel(c.LogLevel)}))
	store, err := c.open(ctx)
	if err != nil {
		return err
	}
	c.limitMemory(store)
	defer func() { err = errors.Join(err, store.Close()) }()
	listeners, err := Listen(c.Addr, c.MetricsAddr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, listeners.Close()) }()
	o := c.Handling()
	o.MaxAge, o.Log, o.Poll, o.Refresh, o.Describe = c.MaxAge.MaxAge, log, c.Poll, c.Refresh(), openapi.Describe
	keys, err := c.keys()
	if err != nil {
		return err
	}
	refreshers, err := c.refreshers()
	if err != nil {
		return err
	}
	if o.Refresh.Signing, err = c.Signing(c.RefreshedKey...); err != nil {
		return err
	}
	site := server.Store(store)
	if !keys.None() {
		site, o.CacheBytes = c.checked(store, keys, refreshers, o.CacheBytes)
	}
	handler, err := server.New(ctx, site, o)
	switch {
	case errors.Is(err, server.ErrNoSite):
		return fmt.Errorf("%s: %w; publish a site there, or name another place with --site", c.Site, err)
	case errors.Is(err, note.ErrUnsigned):
		return fmt.Errorf("%s: %w; publish it with --sign and the key of --key, or check --key", c.Site, err)
	case err != nil:
		return fmt.Errorf("%s: %w", c.Site, err)
	}
	url := "http://" + listeners.Public.Addr().String()
	serving := []any{"site", c.Site, "url", url}
	if root := handler.Root(); root != nil { // nil if the store cannot be read yet
		serving = append(serving, "as_of", root.AsOf, "objects", root.Counts.Objects)
	}
	log.Info("serving", serving...)
	fmt.Fprintln(stdout, url)
	return c.Serve(ctx, Service{
		Listeners: listeners, Log: log, Handler: handler.Probes(), Operations: operations(handler), Drain: handler.Drain,
		Work: []func(context.Context) error{func(ctx context.Context) error {
			handler.Watch(ctx)
			return nil
		}},
	})
}

// operations returns the handler for metrics and health checks.
func operations(handler *server.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", handler.Metrics())
	probes := handler.Probes()
	mux.Handle("/healthz", probes)
	mux.Handle("/readyz", probes)
	return mux
}

// requestBuffer is the write buffer of a bucket connection, in bytes. Reads send little, and object-sized
// buffers for 64 connections would take 2 MiB.
const requestBuffer = 4 << 10

// open opens the site. A folder is opened as a bucket only to store refreshes.
func (c *Command) open(ctx context.Context) (storage.Site, error) {
	refreshes := c.Refresh().Refreshes()
	if _, parts := parts.At(c.Site); parts {
		if refreshes {
			return nil, errors.New("parts cannot store refreshed data; use a folder or a bucket, or no upstream")
		}
		return storage.OpenSite(ctx, c.Site, c.server())
	}
	at, err := storage.ParsePlace(c.Site)
	if err != nil {
		return nil, fmt.Errorf("--site: %w", err)
	}
	switch {
	case at.Folder == "":
		return storage.OpenBucket(ctx, at, c.server())
	case !refreshes:
		return storage.OpenSite(ctx, at.Folder, c.server())
	case strings.HasSuffix(at.Folder, ".tar"):
		return nil, errors.New("a .tar file cannot store refreshed data; use a folder or a bucket, or no upstream")
	}
	return storage.OpenLocal(at.Folder), nil
}

// server returns the options for s3://….
func (c *Command) server() storage.S3Options {
	o := c.Server()
	o.WriteBuffer = requestBuffer
	return o
}
