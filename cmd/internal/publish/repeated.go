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

// Repeated has the flags of publish that a process has too that publishes again and again: all but those
// that are about one run, such as a report or the lock of somebody else.
type Repeated struct {
	signing  `group:"A signature:"`
	guards   `group:"Publishing on a clock:"`
	caches   `group:"Publishing on a clock:"`
	purging  `group:"Publishing on a clock:"`
	tagging  `group:"Publishing on a clock:"`
	patience `group:"Publishing on a clock:"`
	transfer `group:"Publishing on a clock:"`
	lease    `group:"Publishing on a clock:"`
}

// A Destination is a bucket that Repeated publishes to.
type Destination struct {
	URL    string            // s3://… or file:///…
	Server storage.S3Options // of s3://…
	Log    *slog.Logger
	Tell   io.Writer // gets lines about purges

	Refreshers note.Keys // of publisher.Options
}

// publishing is the publish that the flags describe.
func (r *Repeated) publishing(to Destination) *publishing {
	p := &publishing{guards: r.guards, signing: r.signing}
	p.refreshers = to.Refreshers
	p.Dest, p.Endpoint, p.Region = to.URL, command.Endpoint(to.Server.Endpoint), to.Server.Region
	p.caches, p.purging, p.patience, p.transfer, p.lease, p.tagging = r.caches, r.purging, r.patience, r.transfer, r.lease, r.tagging
	return p
}

// Keys are the public keys that sign what is published; none without a signature.
func (r *Repeated) Keys(ctx context.Context) (note.Keys, error) { return r.keys(ctx) }

// Check checks the flags before any work.
func (r *Repeated) Check(url string) error {
	return r.publishing(Destination{URL: url}).checkPublishing("")
}

// Publish renders the site of a snapshot, publishes it and purges the caches of what changed, exactly as
// publish --snapshot does. The report is never nil, and says how far the run came. Errors are those of
// publisher.Publish; after one of a purge, the report says that the site is live.
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
