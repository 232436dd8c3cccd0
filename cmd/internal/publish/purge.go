package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/purger"
	"github.com/followpress/followpress/storage"
)

// purgers opens the caches of --purge, without asking them anything.
func (f *flags) purgers(log *slog.Logger, stderr io.Writer) ([]*purger.Purger, error) {
	credentials := storage.AWSCredentials()
	o := purger.Options{
		Sites: f.PurgeURL, Patience: f.Patience, Log: log,
		Tell:            func(line string) { fmt.Fprintln(stderr, line) },
		CloudflareToken: os.Getenv("CLOUDFLARE_API_TOKEN"), FastlyToken: os.Getenv("FASTLY_API_TOKEN"),
		AWS: func(ctx context.Context) (purger.Credentials, error) {
			v, err := credentials(ctx)
			return purger.Credentials{AccessKeyID: v.AccessKeyID, SecretAccessKey: v.SecretAccessKey, SessionToken: v.SessionToken}, err
		},
		// As the services' own tools call them.
		Endpoints: map[purger.Kind]string{
			purger.CloudFront: os.Getenv("AWS_ENDPOINT_URL_CLOUDFRONT"),
			purger.Cloudflare: os.Getenv("CLOUDFLARE_BASE_URL"),
			purger.Fastly:     os.Getenv("FASTLY_API_URL"),
		},
	}
	var all []*purger.Purger
	for _, flag := range f.Purge {
		p, err := purger.New(flag, o)
		if err != nil {
			return nil, fmt.Errorf("--purge: %w", err)
		}
		all = append(all, p)
	}
	return all, nil
}

// purge makes the caches forget what a run has changed. All are asked, also after one
// has failed.
func (f *flags) purge(ctx context.Context, told result, log *slog.Logger, stderr io.Writer) (result, error) {
	if len(f.Purge) == 0 {
		return told, nil
	}
	what := f.changed(told)
	if what == nil {
		return told, nil
	}
	caches, err := f.purgers(log, stderr)
	if err != nil {
		return told, f.stale(err)
	}
	if !f.DryRun && !f.PurgeAll && f.PurgeWait > 0 {
		fmt.Fprintf(stderr, "waiting %s for fallbacks to notice the new site, then purging %s\n", f.PurgeWait, names(caches))
		select {
		case <-time.After(f.PurgeWait):
		case <-ctx.Done(): // each cache says that it was not asked
		}
	}
	var results purges
	var failed []error
	for _, cache := range caches {
		if f.DryRun {
			results = append(results, cache.Plan(*what))
			continue
		}
		r, err := cache.Purge(ctx, *what)
		results, failed = append(results, r), append(failed, err)
	}
	err = f.stale(errors.Join(failed...))
	if err != nil && ctx.Err() != nil {
		fmt.Fprintln(stderr, err) // the last line of a run that was stopped only says so
	}
	return results.with(told), err
}

// stale says what an error of a purge means, and how to go on: the next publish finds
// the site published and purges nothing.
func (f *flags) stale(err error) error {
	switch {
	case err == nil || f.DryRun:
		return err
	case f.PurgeAll:
		return fmt.Errorf("caches may serve old answers until they expire: %w", err)
	}
	return fmt.Errorf("the site is published, but caches may serve old answers until they expire: %w: "+
		"purge again with --purge-all and the same --purge", err)
}

func names(caches []*purger.Purger) string {
	var all []string
	for _, c := range caches {
		all = append(all, c.Name())
	}
	return strings.Join(all, ", ")
}

// changed is what caches have to forget; nil if nothing changed. It asks nothing, not
// even the site: that may be gone by now, and what it said then is in the report.
func (f *flags) changed(told result) *purger.Purge {
	var run *publisher.Report
	switch t := told.(type) {
	case nil:
		if !f.PurgeAll {
			return nil // only set up
		}
		run = &publisher.Report{Changed: publisher.Changed{Unknown: true}}
	case *publisher.Verification:
		if run = t.Repaired; run == nil || len(run.Changed.Keys) == 0 && !run.Changed.Unknown {
			return nil
		}
	case *publisher.Report:
		run = t
		became := run.Live && run.Outcome != publisher.Unchanged // perhaps what is gone could not be deleted
		if !became && run.Outcome != publisher.Planned {
			return nil // what a run has put that failed before that, the next one purges
		}
	}
	what := purger.Everything()
	if !run.Changed.Unknown {
		what = purger.URLs(run.Config, run.Changed.Keys)
	}
	return &what
}

// purges are what all caches were asked.
type purges []purger.Result

// with adds them to what a run tells.
func (p purges) with(told result) result {
	switch t := told.(type) {
	case *publisher.Report:
		return &publishedAndPurged{t, p}
	case *publisher.Verification:
		return &repairedAndPurged{t, p}
	}
	return &purged{Purged: p}
}

// String is a line for each cache.
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

// Markdown is a row for each cache.
func (p purges) Markdown() string {
	var b strings.Builder
	b.WriteString("| cache | items | requests | tried again | seconds |\n|---|---:|---:|---:|---:|\n")
	for _, r := range p {
		items := fmt.Sprint(r.Items)
		if r.Everything {
			items = "everything"
		}
		name := r.Service
		if r.Error != "" {
			name += ": failed"
		} else if r.Planned {
			name += ": planned"
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %.1f |\n", strings.ReplaceAll(name, "|", `\|`), items, r.Requests, r.Retries, r.Seconds)
	}
	return b.String() + "\n"
}

type publishedAndPurged struct {
	*publisher.Report
	Purged purges `json:"purged"`
}

func (r *publishedAndPurged) String() string   { return r.Report.String() + r.Purged.String() }
func (r *publishedAndPurged) Markdown() string { return r.Report.Markdown() + r.Purged.Markdown() }

type repairedAndPurged struct {
	*publisher.Verification
	Purged purges `json:"purged"`
}

func (r *repairedAndPurged) String() string   { return r.Verification.String() + r.Purged.String() }
func (r *repairedAndPurged) Markdown() string { return r.Verification.Markdown() + r.Purged.Markdown() }

// purged is what --purge-all tells.
type purged struct {
	Purged purges `json:"purged"`
	Error  string `json:"error,omitempty"`
}

// Note adds what only the caller knows, as that of the other results does.
func (r *purged) Note(_ string, err error) {
	if err != nil {
		r.Error = err.Error()
	}
}

func (r *purged) String() string   { return r.Purged.String() }
func (r *purged) Markdown() string { return "### caches purged\n\n" + r.Purged.Markdown() }
