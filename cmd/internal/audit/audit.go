// Package audit implements the command audit, which compares a site or a snapshot with the contracts.
package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/snapshot"
	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/site/note"
	files "github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source/audit"
	"github.com/followpress/followpress/source/chain/provider"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
	"github.com/followpress/followpress/storage/parts"
)

// Command is audit with its flags.
type Command struct {
	What string `arg:"" name:"place" help:"A site: folder, .tar file, bucket (s3://BUCKET, s3://BUCKET/PREFIX, file:///FOLDER), https://HOST, or parts ('FOLDER/part-*', quoted). Or the folder of a snapshot."`
	snapshot.Nodes
	Sample int      `default:"1000" placeholder:"N" help:"Number of random lists to compare (default ${default}); 0 means all."`
	Seed   *uint64  `placeholder:"N" help:"Seed of the sample, to compare the same lists again; by default random, and printed."`
	Key    []string `sep:"none" placeholder:"PUBLIC" help:"Audit only data signed by this public key; repeatable, any key suffices."`
	Report string   `placeholder:"FILE" help:"Write results and differences as JSON; - is standard output."`
	command.S3
	Rate float64 `group:"How nodes are asked:" default:"0" placeholder:"N" help:"Requests per second to one host; 0 means no limit (default ${default})."`
}

// Help returns the text below the first line of --help.
func (*Command) Help() string {
	return `For a sample of lists, it reads owners, slots, users, primary lists and all operations from the contracts, at the site's blocks, replays the operations, and compares. It reports differences, and the bound they imply for all lists. The exit status is 1 if anything differs or cannot be compared.

	followpress audit s3://BUCKET --rpc 8453=URL --rpc 10=URL --rpc 1=URL`
}

// Validate checks the flags before the run; kong calls it.
func (c *Command) Validate() error {
	switch {
	case len(c.RPC) == 0:
		return errors.New("missing flags: --rpc=CHAIN=URL,URL")
	case c.Sample < 0 || !(c.Rate >= 0): // NaN is a number to strconv
		return errors.New("--sample and --rate must be 0 or more")
	}
	if _, err := c.URLs(); err != nil {
		return err
	}
	if _, err := note.ParseKeys(c.Key...); err != nil {
		return fmt.Errorf("--key: %w", err)
	}
	if _, parts := parts.At(c.What); parts || !strings.Contains(c.What, "://") {
		return nil
	}
	return storage.CheckPublished(c.What)
}

// Run audits the site or snapshot, and reports an error if anything differs.
func (c *Command) Run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	if err := command.CheckFile("report", c.Report, ""); err != nil {
		return err
	}
	d, err := c.Read()
	if err != nil {
		return err
	}
	urls, err := c.URLs()
	if err != nil {
		return err
	}
	seed := rand.Uint64()
	if c.Seed != nil {
		seed = *c.Seed
	}
	subject, done, err := c.open(ctx, stderr)
	if err != nil {
		return fmt.Errorf("%s: %w", secret.URL(c.What), err)
	}
	defer func() { err = errors.Join(err, done()) }()
	progress := command.NewProgress(stderr)
	r, err := audit.Run(ctx, subject, audit.Options{
		Deployment: d, URLs: urls, Sample: c.Sample, All: c.Sample == 0, Seed: seed, Progress: progress,
		Provider: provider.Options{Rate: c.Rate},
	})
	progress.End()
	if err != nil {
		return err
	}
	text := stdout
	if c.Report == "-" {
		text = stderr
	}
	if _, err := fmt.Fprint(text, r); err != nil {
		return err
	}
	return errors.Join(command.WriteReport(c.Report, r, stdout), r.Err())
}

// open opens the site or the snapshot.
func (c *Command) open(ctx context.Context, stderr io.Writer) (s audit.Subject, done func() error, err error) {
	if info, err := os.Stat(filepath.Join(c.What, "meta.json")); err == nil && info.Mode().IsRegular() {
		if len(c.Key) > 0 {
			return nil, nil, errors.New("--key is for sites: snapshots are not signed")
		}
		folder, err := files.Open(c.What)
		if err != nil {
			return nil, nil, err
		}
		s, err := audit.OpenSnapshot(folder)
		if err != nil {
			return nil, nil, errors.Join(err, folder.Close())
		}
		return s, folder.Close, nil
	}
	from, err := c.openSite(ctx)
	if err != nil {
		return nil, nil, err
	}
	site, err := c.check(ctx, from, stderr)
	if err != nil {
		return nil, nil, errors.Join(err, from.Close())
	}
	return site, from.Close, nil
}

// check opens a site. With keys, reads return signed data only.
func (c *Command) check(ctx context.Context, from storage.Site, stderr io.Writer) (audit.Subject, error) {
	if len(c.Key) == 0 {
		return audit.OpenSite(ctx, from)
	}
	keys, err := note.ParseKeys(c.Key...)
	if err != nil {
		return nil, err
	}
	signed, err := checked.Open(ctx, from, keys, checked.Options{Pinned: true})
	if err != nil {
		return nil, err
	}
	n, by := signed.Note()
	fmt.Fprintf(stderr, "%-15s by %s, number %d\n", "signed", strings.Join(by, ", "), n.Counter)
	return audit.OpenSite(ctx, signed)
}

func (c *Command) openSite(ctx context.Context) (storage.Site, error) {
	if storage.IsWeb(c.What) {
		return storage.OpenPublished(ctx, c.What, c.Server())
	}
	return command.OpenSite(ctx, c.What, c.Server())
}
