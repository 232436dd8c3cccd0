package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/serve"
	snapshots "github.com/followpress/followpress/cmd/internal/snapshot"
	"github.com/followpress/followpress/live"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain"
	"github.com/followpress/followpress/source/chain/provider"
	"github.com/followpress/followpress/source/follow"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/templates/openapi"
)

// A follower makes rounds, and snapshots of finalized blocks.
type follower interface {
	live.Source
	finalizer
	Status() follow.Status
	Close() error
}

// Run follows, answers and publishes until interrupted.
func (c *Command) Run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	log := slog.New(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: command.LogLevel(c.LogLevel)}))
	listeners, err := serve.Listen(c.Addr, c.MetricsAddr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, listeners.Close()) }()
	kept, err := c.openKept(ctx)
	if err != nil {
		return err
	}
	var copied *copies
	if c.StateCopy != "" {
		bucket, err := openBucket(ctx, c.StateCopy, c.Server())
		if err != nil {
			return fmt.Errorf("--state-copy: %w", err)
		}
		copied = &copies{bucket, c.StateCopy}
	}
	from, closeSource, err := c.open(ctx, copied, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	p := &instance{Command: c, log: log, source: from, copies: copied}
	if err := p.prepare(kept); err != nil {
		return err
	}
	log.Info("listening", "url", "http://"+listeners.Public.Addr().String())
	fmt.Fprintf(stdout, "http://%s\n", listeners.Public.Addr())
	return p.run(ctx, listeners)
}

// refreshes reports whether upstreams are configured.
func (c *Command) refreshes() bool { return c.ProfileUpstream != "" || c.BadgeUpstream != "" }

// openKept opens the bucket for refreshed data; nil if there is none.
func (c *Command) openKept(ctx context.Context) (live.Bucket, error) {
	location, flag := c.Dest, "dest"
	if !c.refreshes() {
		location = "" // no known process stores refreshed data there
	}
	if c.Refreshed != nil {
		prefix := strings.TrimSuffix(string(site.RefreshPrefix), "/")
		inside, ok := strings.CutSuffix(strings.TrimSuffix(*c.Refreshed, "/"), "/"+prefix)
		if !ok {
			return nil, fmt.Errorf("--refreshed=%s: live stores fresh data there, so the name must end in /%s", *c.Refreshed, prefix)
		}
		location, flag = inside, "refreshed"
	}
	if location == "" {
		return nil, nil //nolint:nilnil // none is not an error
	}
	at, err := storage.ParsePlace(location)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	bucket, err := storage.OpenBucket(ctx, at, c.Server())
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return bucket, nil
}

// open opens the source.
func (c *Command) open(ctx context.Context, copied *copies, log *slog.Logger) (_ follower, closeAll func() error, err error) {
	tables := follow.Tables{State: c.State, ProfilesURL: string(c.ProfilesURL), BadgesURL: string(c.Badges), BadgeEvents: c.BadgeEvents, Files: map[snapshot.Table]string{}}
	for name, file := range c.Table {
		tables.Files[snapshot.Table(name)] = file
	}
	told := &progress{log: log}
	deployment, err := c.Read()
	if err != nil {
		return nil, nil, err
	}
	state, err := c.openState(ctx, deployment, copied, log)
	if err != nil {
		return nil, nil, err
	}
	urls, err := c.URLs()
	if err == nil {
		err = c.importProfiles(ctx, log)
	}
	var f *follow.Follower
	if err == nil {
		f, err = follow.Open(follow.Options{
			State: state, Deployment: deployment, URLs: urls, Provider: c.Requests.Options(provider.Finalized), Poll: c.Poll,
			History: c.window(), Tables: tables, Progress: told, Log: log,
		})
	}
	if err != nil {
		return nil, nil, errors.Join(err, state.Close())
	}
	return f, func() error { return errors.Join(f.Close(), state.Close()) }, nil
}

// window returns how far back a graph has operations.
func (c *Command) window() time.Duration {
	if c.API != site.APIEFP {
		return 0
	}
	return c.HistoryWindow
}

// openState opens the state. An empty state starts from the copy, if any.
func (c *Command) openState(ctx context.Context, d *source.Deployment, copied *copies, log *slog.Logger) (*chain.State, error) {
	state, err := chain.Open(c.State, d) // locks the state before the restore
	if errors.Is(err, chain.ErrBusy) {
		return nil, fmt.Errorf("--state=%s: %w; one process at a time may use a state, so name another folder, or stop the other process", c.State, err)
	} else if err != nil {
		return nil, fmt.Errorf("--state: %w", err)
	}
	if copied == nil || chain.IsState(c.State) {
		return state, nil
	}
	begun := time.Now()
	blocks, err := copied.restore(ctx, c.State)
	switch {
	case errors.Is(err, errNoCopy):
		log.Warn("no copy of a state yet: reading all blocks from nodes", "state_copy", c.StateCopy)
		return state, nil
	case err == nil:
		log.Info("restored the state", "state_copy", c.StateCopy, "blocks", blocks, "seconds", time.Since(begun).Seconds())
		return state, nil
	}
	return nil, errors.Join(fmt.Errorf("--state-copy: %w", err), state.Close())
}

func (c *Command) importProfiles(ctx context.Context, log *slog.Logger) error {
	if c.ProfilesFrom == "" {
		return nil
	}
	kept, err := c.Import(ctx, c.State, c.Server())
	if err == nil {
		log.Info("took over profiles", "from", c.ProfilesFrom, "kept", kept)
	}
	return err
}

// An instance is a run of the command.
type instance struct {
	*Command
	log      *slog.Logger
	source   follower
	copies   *copies // nil if none
	live     *live.Live
	monitor  *monitor
	draining atomic.Bool
	ready    chan struct{} // closed once the first graph answers
}

func (p *instance) prepare(kept live.Bucket) error {
	content := p.Content
	content.Refreshed = nil // live reads refreshed data from the bucket as it changes
	content.RanksFrom = nil // only the bucket holds ranks; graphs in memory always have current ranks
	rendering, err := content.Options(context.Background(), "", storage.S3Options{}, note.Keys{})
	if err != nil {
		return err
	}
	p.ready = make(chan struct{})
	p.monitor = newMonitor(func() live.Status { return p.live.Status() }, p.source.Status)
	hooks, first := p.monitor.hooks(), sync.OnceFunc(func() {
		p.tellMemory()
		close(p.ready)
	})
	count := hooks.Round
	hooks.Round = func(r live.RoundEnd) {
		count(r)
		if r.Outcome == live.NewGraph {
			first()
		}
	}
	answering := p.Handling()
	answering.Log, answering.Refresh, answering.Describe = p.log, p.Refresh(), openapi.Describe
	if answering.Refresh.Signing, err = p.Signing(p.RefreshedKey...); err != nil {
		return err
	}
	answering.Collectors = []prometheus.Collector{p.monitor}
	p.live, err = live.New(p.source, live.Options{
		Generator: rendering, Server: answering, Kept: kept, MaxLag: p.MaxLag, Hooks: hooks, Log: p.log,
	})
	return err
}

// tellMemory logs how much memory two graphs need, measured on the first.
func (p *instance) tellMemory() {
	needs, has := p.live.Status().NeedBytes, command.AvailableMemory()
	if needs > has {
		p.log.Warn("two graphs may not fit into memory; both exist while the next one is built", "need_bytes", needs, "available_bytes", has)
		return
	}
	p.log.Info("memory needed for two graphs", "need_bytes", needs)
}

// run answers until ctx ends.
func (p *instance) run(ctx context.Context, l serve.Listeners) error {
	work := []func(context.Context) error{
		func(rest context.Context) error { // ends event streams, so that their readers do not delay the stop
			stop, cancel := context.WithCancel(rest)
			defer cancel()
			defer context.AfterFunc(ctx, func() { time.AfterFunc(p.DrainDelay, cancel) })()
			return p.live.Run(stop)
		},
		func(rest context.Context) error { // stops at once, not after the last request
			stop, cancel := context.WithCancel(rest)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			p.workOnClock(stop)
			return nil
		},
	}
	operations := p.monitor.pages()
	operations.Handle("/metrics", p.live.Metrics())
	return p.Serve(ctx, serve.Service{
		Listeners: l, Log: p.log, Handler: server.Probes(http.HandlerFunc(p.public), p.notReady),
		Operations: server.Probes(operations, p.notReady),
		Drain:      func() { p.draining.Store(true) }, Work: work,
	})
}

// workOnClock runs the background work once the first graph answers.
func (p *instance) workOnClock(ctx context.Context) {
	select {
	case <-p.ready:
	case <-ctx.Done():
		return
	}
	b := &background{Command: p.Command, source: p.source, copies: p.copies, monitor: p.monitor, log: p.log}
	services := &snapshots.Services{Profiles: &p.Profiles, Tables: &p.Tables, State: p.State, Progress: &progress{log: p.log}}
	if services.Asks() {
		b.services = services
	}
	if b.services != nil || b.copies != nil || b.Dest != "" {
		b.run(ctx)
	}
}

var errDraining = errors.New("told to stop")

func (p *instance) notReady() error {
	if p.draining.Load() {
		return errDraining
	}
	return p.live.Ready()
}

// public answers API requests.
func (p *instance) public(w http.ResponseWriter, r *http.Request) {
	p.monitor.requests.Add(1)
	p.live.ServeHTTP(w, r)
}
