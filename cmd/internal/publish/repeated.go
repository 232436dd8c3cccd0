package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/storage"
)

// Repeated are the flags of publish that live shares: all except those for a single run, such as --report or
// --break-lock.
type Repeated struct {
	signing  `group:"A signature:"`
	guards   `group:"Publishing on a clock:"`
	caches   `group:"Publishing on a clock:"`
	purging  `group:"Publishing on a clock:"`
	tagging  `group:"Publishing on a clock:"`
	patience `group:"Publishing on a clock:"`
	transfer `group:"Publishing on a clock:"`
}

// A Destination is a bucket for Repeated.
type Destination struct {
	URL    string            // s3://… or file:///…
	Server storage.S3Options // for s3://…
	Log    *slog.Logger
	Tell   io.Writer // receives lines about purges

	Refreshers note.Keys // for publisher.Options
}

// publishing returns the publish that the flags describe.
func (r *Repeated) publishing(to Destination) *publishing {
	p := &publishing{guards: r.guards, signing: r.signing}
	p.refreshers = to.Refreshers
	p.Dest, p.Endpoint, p.Region = to.URL, command.Endpoint(to.Server.Endpoint), to.Server.Region
	p.caches, p.purging, p.patience, p.transfer, p.tagging = r.caches, r.purging, r.patience, r.transfer, r.tagging
	return p
}

// Keys returns the public keys that sign published sites; none without a signature.
func (r *Repeated) Keys(ctx context.Context) (note.Keys, error) { return r.keys(ctx) }

// Check checks the flags before any work.
func (r *Repeated) Check(url string) error {
	return r.publishing(Destination{URL: url}).checkPublishing("")
}

// Publish renders the site of a snapshot, publishes it and purges caches, as publish --snapshot does. The
// report is never nil, and shows how far the run came. Errors are those of publisher.Publish; if only a
// purge failed, the report marks the site as live.
func (r *Repeated) Publish(ctx context.Context, to Destination, snapshot afero.Fs, o generator.Options) (*publisher.Report, error) {
	p := r.publishing(to)
	s := session{log: to.Log, progress: command.NewProgress(io.Discard), stderr: to.Tell}
	told, err := p.publish(ctx, s, func(ctx context.Context, s session, _ storage.S3Options) (openSite, *summary.Report, error) {
		return render(ctx, s, snapshot, o)
	}, false)
	after, purgeErr := p.purge(ctx, s, told, false)
	if all, ok := after.(*published); ok {
		fmt.Fprint(to.Tell, all.Purged)
	}
	return told.Report, errors.Join(err, purgeErr)
}
