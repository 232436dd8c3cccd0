package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/internal/awskeys"
	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/purger"
)

// Purge is the command purge, which empties caches.
type Purge struct {
	caches
	DryRun bool `help:"Show what would be purged, and send no requests to caches."`
	reporting
}

// Help returns the text below the first line of --help.
func (*Purge) Help() string {
	return `Use it after a failed purge: publish purges its own changes. It needs neither bucket nor site.

	followpress purge --purge http:http://10.0.0.5:8080/`
}

// Validate checks the flags before the run; kong calls it.
func (p *Purge) Validate() error {
	if len(p.Purge) == 0 {
		return errors.New("missing flags: --purge=CACHE")
	}
	_, err := p.purgers(p.Patience, session{stderr: io.Discard})
	return err
}

// Run purges.
func (p *Purge) Run(ctx context.Context, stdout, stderr io.Writer) error {
	return p.report(stdout, stderr, "", func(s session) (result, error) {
		all, err := p.purgers(p.Patience, s)
		if err != nil {
			return &purged{}, err
		}
		results, err := forget(ctx, s, all, purger.Everything(), p.DryRun, func(err error) error { return fmt.Errorf("%s: %w", stale, err) })
		return &purged{Purged: results}, err
	})
}

// stale describes the consequence of a failed purge, in messages.
const stale = "caches may serve old answers until they expire"

type caches struct {
	Purge    []string `placeholder:"CACHE" help:"Cache to purge: cloudfront:ID, cloudflare:ZONE, fastly:SERVICE, or http:URL, which purges everything unless it contains {path}; repeatable. Credentials: the bucket's, CLOUDFLARE_API_TOKEN, FASTLY_API_TOKEN."`
	PurgeURL []string `placeholder:"URL" help:"Public URL of the site, for caches that purge by URL; repeatable."`
}

func (c *caches) purgers(patience time.Duration, s session) ([]*purger.Purger, error) {
	keys := awskeys.New()
	o := purger.Options{
		Sites: c.PurgeURL, Patience: patience, Log: s.log,
		Tell:            func(line string) { fmt.Fprintln(s.stderr, line) },
		CloudflareToken: secret.Text(os.Getenv("CLOUDFLARE_API_TOKEN")), FastlyToken: secret.Text(os.Getenv("FASTLY_API_TOKEN")),
		AWS: func(ctx context.Context) (purger.Credentials, error) {
			v, err := awskeys.Get(ctx, keys)
			return purger.Credentials{AccessKeyID: v.AccessKeyID, SecretAccessKey: secret.Text(v.SecretAccessKey), SessionToken: secret.Text(v.SessionToken)}, err
		},
		// The variables of the services' own tools.
		Endpoints: map[purger.Kind]string{
			purger.CloudFront: os.Getenv("AWS_ENDPOINT_URL_CLOUDFRONT"),
			purger.Cloudflare: os.Getenv("CLOUDFLARE_BASE_URL"),
			purger.Fastly:     os.Getenv("FASTLY_API_URL"),
		},
	}
	var all []*purger.Purger
	for _, flag := range c.Purge {
		p, err := purger.New(flag, o)
		if err != nil {
			return nil, fmt.Errorf("--purge: %w", err)
		}
		all = append(all, p)
	}
	return all, nil
}

// forget purges all caches, or only reports what it would purge. It continues after a failure; explain
// adds the consequence to the error.
func forget(ctx context.Context, s session, all []*purger.Purger, what purger.Purge, dryRun bool, explain func(error) error) (results purges, err error) {
	for _, cache := range all {
		if dryRun {
			results = append(results, cache.Plan(what))
			continue
		}
		r, failed := cache.Purge(ctx, what)
		results, err = append(results, r), errors.Join(err, failed)
	}
	if err != nil {
		err = explain(err)
		if ctx.Err() != nil {
			command.Warn(s.stderr, err.Error()) // after a signal, the last line only names the signal
		}
	}
	return results, err
}

func (w *writing) purge(ctx context.Context, s session, told result, dryRun bool) (result, error) {
	if len(w.Purge) == 0 {
		return told, nil
	}
	what := w.changed(told)
	if what == nil {
		return told, nil
	}
	all, err := w.purgers(w.Patience, s)
	switch {
	case err != nil && dryRun:
		return told, err
	case err != nil:
		return told, purgeAgain(err)
	}
	if !dryRun && w.PurgeWait > 0 {
		fmt.Fprintf(s.stderr, "waiting %s for fallbacks to notice the new site, then purging %s\n", w.PurgeWait, names(all))
		select {
		case <-time.After(w.PurgeWait):
		case <-ctx.Done(): // each cache then reports that it was not purged
		}
	}
	results, err := forget(ctx, s, all, *what, dryRun, purgeAgain)
	return results.with(told), err
}

// purgeAgain adds the remedy to the error of a failed purge: a repeated publish would find nothing to purge.
func purgeAgain(err error) error {
	return fmt.Errorf("the site is published, but %s: %w; purge again with followpress purge and the same --purge", stale, err)
}

func names(caches []*purger.Purger) string {
	var all []string
	for _, c := range caches {
		all = append(all, c.Name())
	}
	return strings.Join(all, ", ")
}

// changed returns the purge for a run's changes; nil if nothing changed. It relies on the report alone,
// since the site may be gone.
func (w *writing) changed(told result) *purger.Purge {
	var run *publisher.Report
	switch t := told.(type) {
	case nil: // init without a site
		return nil
	case *publisher.Verification:
		if run = t.Repaired; run == nil || len(run.Changed.Keys) == 0 && !run.Changed.Unknown {
			return nil
		}
	case *published:
		run = t.Report
		// Even if deleting stale objects failed. An interrupted run may have been killed before its purge.
		became := run.Live && (run.Outcome != publisher.Unchanged || run.Resumed)
		if !became && run.Outcome != publisher.Planned {
			return nil // the run failed before the site was live; the next run purges its changes
		}
	}
	what := purger.Everything()
	if run.Changed.Unknown {
		return &what
	}
	if len(run.Changed.Keys) <= w.PurgeMax {
		what = purger.URLs(run.Before, run.Config, run.Changed.Keys)
	}
	if run.Before == run.Config {
		what.Tags, what.Tagged = purger.Tags(run.Config, run.Changed.Keys, w.PurgeMax), purger.Tagged(run.Config)
	}
	return &what
}

// purges are the results for all caches.
type purges []purger.Result

func (p purges) with(told result) result {
	switch t := told.(type) {
	case *published:
		t.Purged = p
	case *publisher.Verification:
		return &repairedAndPurged{t, p}
	}
	return told
}

// String returns a line per cache.
func (p purges) String() string {
	var b strings.Builder
	for _, r := range p {
		fmt.Fprintln(&b, r)
		for _, item := range r.First {
			fmt.Fprintf(&b, "          %s\n", item)
		}
		if more := r.Items - len(r.First); r.Planned && more > 0 {
			fmt.Fprintf(&b, "          … and %d more\n", more)
		}
	}
	return b.String()
}

type repairedAndPurged struct {
	*publisher.Verification
	Purged purges `json:"purged"`
}

func (r *repairedAndPurged) String() string { return r.Verification.String() + r.Purged.String() }

type purged struct {
	Purged purges `json:"purged"`
	Error  string `json:"error,omitempty"`
}

// Note implements result.
func (r *purged) Note(_ string, err error) {
	if err != nil {
		r.Error = err.Error()
	}
}

func (r *purged) String() string { return r.Purged.String() }
