// Package log is the command that prints what happened: what lists did to an account, and what an
// account's lists did. It reads a state, a snapshot, or a site.
package log

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain"
	"github.com/followpress/followpress/storage"
)

// Command is the command with its flags.
type Command struct {
	From       string `arg:"" name:"place" placeholder:"PLACE" help:"What to read: the folder of a state or of a snapshot, or a site: a folder, a .tar file, s3://BUCKET, s3://BUCKET/PREFIX, file:///FOLDER, or https://HOST."`
	User       string `placeholder:"NAME|ADDRESS" help:"What lists did to this account, and what its lists did."`
	List       string `placeholder:"ID" help:"What this list did; with --user, what it did to that account."`
	Since      string `placeholder:"TIME|DURATION" help:"Only what happened since a time, such as 2026-10-31 or 2026-10-31T11:22:33Z, or in the last 48h or 30d before the time of the data."`
	All        bool   `help:"From a state: also what had no effect, and why."`
	JSON       bool   `name:"json" env:"FOLLOWPRESS_LOG_JSON" help:"Print an object of JSON for each line."`
	Deployment string `placeholder:"FILE" help:"With a state: where the contracts are, as snapshot chain has it."`
	command.S3
	command.Messages
}

// Help is what --help shows below the first line.
func (*Command) Help() string {
	return `It prints one line for each event, the newest last. A state knows all: also moved lists, transfers, users and primary lists, by which a follow may come or go without an operation. A snapshot has the visible operations of its table ops, a site those of its window.

	followpress log --user NAME --since 30d https://HOST`
}

// Validate checks the flags before the run; kong calls it.
func (c *Command) Validate() error {
	if c.User == "" && c.List == "" {
		return errors.New("missing flags: --user=NAME|ADDRESS or --list=ID")
	}
	if c.User != "" {
		if _, _, ok := site.ParseUser(c.User); !ok {
			return fmt.Errorf("--user=%s is neither an address nor a name", site.Quoted(c.User))
		}
	}
	if c.List != "" {
		if _, err := source.ParseDecimal(c.List); err != nil {
			return fmt.Errorf("--list: %w", err)
		}
	}
	_, err := c.since(time.Unix(0, 0))
	return err
}

// since is the time of --since, in milliseconds since the Unix epoch, if the data are as of another one.
func (c *Command) since(asOf time.Time) (int64, error) {
	if c.Since == "" {
		return math.MinInt64, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, c.Since); err == nil {
			return t.UnixMilli(), nil
		}
	}
	var back time.Duration
	var err error
	if days, ok := strings.CutSuffix(c.Since, "d"); ok {
		const most = 100_000 // some 270 years, which a time.Duration has
		n, failed := strconv.ParseUint(days, 10, 32)
		if err = failed; n > most {
			err = strconv.ErrRange
		}
		back = time.Duration(min(n, most)) * 24 * time.Hour
	} else {
		back, err = time.ParseDuration(c.Since)
	}
	if err != nil || back < 0 {
		return 0, fmt.Errorf("--since=%s is neither a time such as 2026-10-31 or 2026-10-31T11:22:33Z, nor a duration such as 48h or 30d", site.Quoted(c.Since))
	}
	return asOf.Add(-back).UnixMilli(), nil
}

// A query is what is asked for.
type query struct {
	user    string // an address or a name in the form of keys; "" for any
	address bool   // whether user is an address
	list    string // a token id; "" for any
	all     bool
	since   func(asOf time.Time) (int64, error)
	warn    func(text string)
}

// Run prints the lines.
func (c *Command) Run(ctx context.Context, stdout, stderr io.Writer) error {
	q := query{all: c.All, since: c.since, warn: func(text string) { command.Warn(stderr, "log: "+text) }}
	if c.User != "" {
		q.user, q.address, _ = site.ParseUser(c.User)
	}
	if c.List != "" {
		id, err := source.ParseDecimal(c.List)
		if err != nil {
			return fmt.Errorf("--list: %w", err)
		}
		q.list = id.Decimal()
	}
	lines, err := c.read(ctx, &q)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(stdout)
	for i := range lines {
		if c.JSON {
			err = lines[i].writeJSON(out)
		} else {
			err = lines[i].write(out)
		}
		if err != nil {
			return err
		}
	}
	if len(lines) == 0 {
		q.warn("nothing happened")
	}
	return out.Flush()
}

// read reads the lines, in the order in which they are printed.
func (c *Command) read(ctx context.Context, q *query) ([]line, error) {
	_, parts := storage.PartsAt(c.From)
	folder := !parts && !strings.Contains(c.From, "://")
	if folder && chain.IsState(c.From) {
		return c.fromState(q)
	}
	if err := c.onlyOfStates(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(c.From, "meta.json")); folder && err == nil {
		return fromSnapshot(ctx, c.From, q)
	}
	return c.fromSite(ctx, q)
}

// onlyOfStates returns an error for flags that nothing but a state has an answer to.
func (c *Command) onlyOfStates() error {
	switch {
	case c.All:
		return fmt.Errorf("--all: only a state has what had no effect, and %s is none", site.Quoted(c.From))
	case c.Deployment != "":
		return fmt.Errorf("--deployment: only a state needs to know the contracts, and %s is none", site.Quoted(c.From))
	}
	return nil
}
