// Package reproduce implements the command reproduce, which rebuilds a published site and compares it.
package reproduce

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/snapshot"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/release"
	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/ranks"
	tables "github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/snapshot/pieces"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
)

// Command is reproduce with its flags.
type Command struct {
	From secret.URL `arg:"" name:"place" help:"Where the site is published: https://HOST, s3://BUCKET, s3://BUCKET/PREFIX or file:///FOLDER."`
	Key  []string   `sep:"none" placeholder:"PUBLIC" help:"Public key, from followpress key, that must have signed the site; repeatable. Without one, you trust the root."`
	snapshot.Nodes
	snapshot.Requests `group:"How nodes are asked:"`
	command.S3
	State string `group:"Advanced:" placeholder:"DIR" help:"Folder for fetched data and blocks read, reused by the next run; by default a temporary one."`
}

// Help returns the text below the first line of --help.
func (*Command) Help() string {
	return `It fetches the site's inputs (publish --inputs), rebuilds the site in memory, and compares all digests. It prints "equal" and the root's SHA-256, or the differences, with exit status 1. With --rpc it first replays lists, records, operations and primary lists from the chains and compares them; profiles and badges are not on the chains.

	followpress reproduce https://HOST
	followpress reproduce https://HOST --rpc 8453=URL --rpc 10=URL --rpc 1=URL`
}

// Validate checks the flags before the run; kong calls it.
func (c *Command) Validate() error {
	if err := c.Check(&c.Nodes); err != nil {
		return err
	}
	if _, err := note.ParseKeys(c.Key...); err != nil {
		return fmt.Errorf("--key: %w", err)
	}
	return storage.CheckPublished(string(c.From))
}

// ErrDiffers means that the site differs from a rebuild of its inputs.
var ErrDiffers = errors.New("the site differs from a rebuild of its inputs")

// patience is how long to retry a failing request.
const patience = 20 * time.Second

// fetchFrom returns a function that fetches a site's inputs.
func fetchFrom(store storage.Retrying) pieces.Fetch {
	return func(ctx context.Context, key site.Key, most int64) ([]byte, error) {
		body, err := store.GetBounded(ctx, key, most)
		switch {
		case errors.Is(err, storage.ErrTooLarge):
			err = fmt.Errorf("read %s: %w: %w", key, pieces.ErrAltered, err)
		case errors.Is(err, storage.ErrNotFound):
			err = fmt.Errorf("read %s: %w", key, err)
		}
		return body, err
	}
}

// Run rebuilds the site and compares.
func (c *Command) Run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	keys, err := note.ParseKeys(c.Key...)
	if err != nil {
		return fmt.Errorf("--key: %w", err)
	}
	store, err := storage.OpenPublished(ctx, string(c.From), c.Server())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	from := storage.Retrying{From: store, Retry: storage.Retry{Patience: patience, Hint: "check the address, and that the server is up"}}
	live, err := checked.Open(ctx, from, keys, checked.Options{Pinned: true})
	if errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("%s: no site: %w", c.From, err)
	} else if err != nil {
		return fmt.Errorf("%s: %w", c.From, err)
	}
	dir := c.State
	if dir == "" {
		if dir, err = os.MkdirTemp("", "followpress-reproduce-*"); err != nil {
			return err
		}
		temporary := dir // dir becomes a folder in it
		defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	} else if dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if dir, err = pieces.Own(dir); err != nil {
		return err
	}
	r := &run{Command: c, live: live, dir: dir, progress: command.NewProgress(stderr), stdout: stdout, stderr: stderr}
	defer r.progress.End()
	if err := r.reproduce(ctx, from); err != nil {
		return fmt.Errorf("%s: %w", c.From, err)
	}
	return nil
}

// A run rebuilds one site.
type run struct {
	*Command
	live           *checked.Site
	dir            string // private to the run
	progress       *command.Progress
	stdout, stderr io.Writer
}

// say prints a line of the result.
func (r *run) say(format string, args ...any) error {
	r.progress.End()
	_, err := fmt.Fprintf(r.stdout, format+"\n", args...)
	return err
}

// reproduce compares the tables with the chains, if nodes are given, and then the site with the tables.
func (r *run) reproduce(ctx context.Context, from storage.Retrying) (err error) {
	var facts *facts
	if len(r.RPC) > 0 {
		if facts, err = r.readChains(ctx); err != nil {
			return err
		}
	}
	got, err := r.fetch(ctx, from)
	if err != nil {
		return errors.Join(facts.err(), err)
	}
	if facts != nil {
		if err := facts.compareRows(ctx, got.Snapshot()); err != nil {
			return err
		}
	}
	err = r.compareSite(ctx, got)
	return errors.Join(facts.err(), err)
}

// compareSite rebuilds the site and compares.
func (r *run) compareSite(ctx context.Context, got *pieces.Fetched) (err error) {
	made, err := r.make(ctx, got)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	r.progress.End()
	if told := r.live.Root().Inputs.Generator; told != release.Version() {
		if _, err := fmt.Fprintf(r.stderr, "reproduce: followpress %s made the site, this is %s; if they differ, try that version\n", quotedVersion(told), release.Version()); err != nil {
			return err
		}
	}
	d, err := compare(ctx, r.live, made)
	if err != nil {
		return err
	}
	if d == nil {
		return r.say("equal %s", site.Sum256(r.live.RootBody()))
	}
	if _, err := fmt.Fprint(r.stdout, d); err != nil {
		return err
	}
	return ErrDiffers
}

func quotedVersion(version string) string {
	if version == "" {
		return "of an unknown version"
	}
	return version
}

// fetch fetches the site's inputs, and checks them against the root.
func (r *run) fetch(ctx context.Context, from storage.Retrying) (*pieces.Fetched, error) {
	r.progress.Stage("fetch", 0)
	got, err := pieces.Get(ctx, fetchFrom(from), r.live.Root(), r.live.RootBody(), r.dir, r.progress.AddBytes)
	if err != nil {
		return nil, err
	}
	r.progress.Stage("check", 0)
	return got, got.Check(ctx)
}

// make renders the site from the fetched inputs.
func (r *run) make(ctx context.Context, got *pieces.Fetched) (made *generator.Site, err error) {
	root := r.live.Root()
	config := root.Config
	config.Tags = "" // the publisher sets it
	o := generator.Options{Config: config, Generator: root.Inputs.Generator, Progress: r.progress}
	if got.HasRefreshed() {
		o.Refreshed, o.SkipInvalid = got, true // the publisher skipped invalid entries too; digests cover the merged ones
	}
	if at := root.Inputs.BadgesAsOf; at != "" {
		if o.BadgesAsOf, err = time.Parse(time.RFC3339, at); err != nil {
			return nil, err
		}
	}
	body, err := got.Ranks()
	if err == nil && body != nil {
		o.Ranks, err = ranks.Parse(body)
	}
	if err != nil {
		return nil, err
	}
	folder, err := tables.Open(got.Snapshot())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	made, _, err = generator.Open(ctx, folder, o)
	return made, err
}
