// Package live is the command that follows the chains, answers from the newest graph, and publishes on a
// clock what is final.
package live

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/generate"
	"github.com/followpress/followpress/cmd/internal/publish"
	"github.com/followpress/followpress/cmd/internal/serve"
	"github.com/followpress/followpress/cmd/internal/snapshot"
	"github.com/followpress/followpress/storage"
)

// Command is the command with its flags.
type Command struct {
	State string `placeholder:"DIR" help:"Folder that keeps what was read, as snapshot chain has it, so that a start takes seconds. One process at a time may use it."`
	snapshot.Nodes

	Addr        string        `default:"127.0.0.1:8082" placeholder:"HOST:PORT" help:"Where to listen; a port alone is one of this machine only, and port 0 takes a free one (default ${default})."`
	Poll        time.Duration `default:"2s" placeholder:"DURATION" help:"How often to ask for the newest block of each chain (default ${default})."`
	MaxLag      time.Duration `default:"15m" placeholder:"DURATION" help:"Answer 503 once the newest block of a chain is older, so that edges take the bucket (default ${default})."`
	StatusAddr  string        `placeholder:"HOST:PORT" help:"Where to serve a page about the state of this process, with plots, and the same as JSON; by default nowhere."`
	MetricsAddr string        `placeholder:"HOST:PORT" help:"Where to serve /metrics for Prometheus, /healthz and /readyz, apart from the API; by default nowhere."`
	LogLevel    string        `group:"Advanced:" enum:"debug,info,warn,error" default:"info" placeholder:"debug|info|warn|error" help:"What to log on standard error, as JSON; debug logs every request (default ${default})."`
	command.S3

	Dest         string        `first:"" group:"Publishing on a clock:" placeholder:"URL" help:"Publish the site of finalized blocks to this bucket: s3://BUCKET, s3://BUCKET/PREFIX or file:///FOLDER. --refreshed is its _refresh, unless it is set."`
	PublishEvery time.Duration `first:"" group:"Publishing on a clock:" default:"1h" placeholder:"DURATION" help:"How often to publish, to ask for profiles and badges, and to copy the state (default ${default})."`
	publish.Repeated

	StateFrom string `group:"Copies of the state:" placeholder:"URL" help:"If --state is empty, begin with the copy of a state in this private bucket or folder."`
	StateTo   string `group:"Copies of the state:" placeholder:"URL" help:"Keep a copy of the state in this private bucket or folder, never in place of a newer one: s3://BUCKET/PREFIX or file:///FOLDER."`

	generate.Content  `group:"How a snapshot is rendered:"`
	snapshot.Requests `group:"How nodes are asked:"`
	snapshot.Profiles `group:"Profiles:"`
	snapshot.Tables   `group:"Badges and other tables:"`
	serve.Upstreams   `group:"Fresh data (cache=fresh):"`
	serve.Limits      `group:"Limits:"`
}

// About is the first line of --help.
const About = "Follow the chains, and answer every request from the newest graph."

// Help is what --help shows below the first line.
func (*Command) Help() string {
	return `It reads new blocks every few seconds, makes the next graph while the last one answers, and publishes what is final to a bucket. Edges ask it first, and take the bucket if it is away, slow or behind. Plan memory for two graphs: twice what generate needs.

	followpress live --state state --rpc 8453=URL --rpc 10=URL --rpc 1=URL --dest s3://BUCKET`
}

var schemes = []string{"ws", "wss", "http", "https"}

// Validate checks the flags before the run; kong calls it.
func (c *Command) Validate() error {
	if err := c.checkSource(); err != nil {
		return err
	}
	switch {
	case c.Poll <= 0:
		return errors.New("--poll must be positive")
	case c.MaxLag < time.Minute:
		return fmt.Errorf("--max-lag=%v: chains have pauses; use a minute or more", c.MaxLag)
	case c.PublishEvery < time.Minute:
		return fmt.Errorf("--publish-every=%v: use a minute or more", c.PublishEvery)
	}
	return errors.Join(c.Tables.Check(&c.Profiles, c.State), c.Content.Validate(), c.Upstreams.Check(), c.Limits.Check(), c.checkPlaces())
}

// checkSource checks the flags about what is followed.
func (c *Command) checkSource() error {
	switch {
	case len(c.RPC) == 0:
		return errors.New("missing flags: --rpc=CHAIN=URL,URL")
	case c.State == "":
		return errors.New("missing flags: --state=DIR")
	case strings.Contains(c.State, "://"):
		return fmt.Errorf("--state=%s: the state is a folder on this machine; --state-to keeps a copy elsewhere", c.State)
	}
	return c.Requests.Check(&c.Nodes, schemes...)
}

// checkPlaces checks the bucket, and those of copies, which readers of the bucket must not see.
func (c *Command) checkPlaces() error {
	if c.Dest != "" {
		if err := c.Repeated.Check(c.Dest); err != nil {
			return err
		}
		if at, err := storage.ParseLocation(c.Dest); err == nil && at.Folder != "" && command.Inside(c.State, at.Folder) {
			return fmt.Errorf("--state=%s is in --dest=%s, which everybody may read", c.State, c.Dest)
		}
	}
	for flag, text := range map[string]string{"state-from": c.StateFrom, "state-to": c.StateTo} {
		if text == "" {
			continue
		}
		at, err := storage.ParseLocation(text)
		if err != nil {
			return fmt.Errorf("--%s: %w", flag, err)
		}
		to, err := storage.ParseLocation(c.Dest)
		if err != nil {
			continue // without a destination, or that is said of it
		}
		if at.Folder != "" && to.Folder != "" && command.Inside(at.Folder, to.Folder) ||
			at.Bucket != "" && at.Bucket == to.Bucket && strings.HasPrefix(at.Prefix, to.Prefix) {
			return fmt.Errorf("--%s=%s is in --dest=%s, which everybody may read: name another bucket", flag, text, c.Dest)
		}
	}
	return nil
}
