// Package live implements the command live: it follows the chains, answers from the newest graph, and
// publishes finalized blocks on a clock.
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

// Command is live with its flags.
type Command struct {
	State string `placeholder:"DIR" help:"Folder for blocks already read, as in snapshot chain, so that a start takes seconds. One process at a time may use it."`
	snapshot.Nodes

	Addr        string        `default:"127.0.0.1:8082" placeholder:"HOST:PORT" help:"Where to listen; a port alone means this machine only, port 0 any free port (default ${default})."`
	Poll        time.Duration `default:"2s" placeholder:"DURATION" help:"Interval between requests for each chain's newest block (default ${default})."`
	MaxLag      time.Duration `default:"15m" placeholder:"DURATION" help:"Answer 503 once a chain's newest block is older, so that edges use the bucket (default ${default})."`
	MetricsAddr string        `placeholder:"HOST:PORT" help:"Where to serve a status page, /status.json, /metrics for Prometheus, /healthz and /readyz, separate from the API; off by default."`
	LogLevel    string        `group:"Advanced:" enum:"debug,info,warn,error" default:"info" placeholder:"debug|info|warn|error" help:"Minimum level of the JSON log on standard error; debug logs every request (default ${default})."`
	command.S3

	Dest         string        `first:"" group:"Publishing on a clock:" placeholder:"URL" help:"Publish the site of finalized blocks to this bucket: s3://BUCKET, s3://BUCKET/PREFIX or file:///FOLDER. Its _refresh is the default of --refreshed."`
	PublishEvery time.Duration `first:"" group:"Publishing on a clock:" default:"1h" placeholder:"DURATION" help:"Interval between publishes, requests for profiles and badges, and copies of the state (default ${default})."`
	publish.Repeated

	StateCopy string `group:"Advanced:" placeholder:"URL" help:"Copy the state to this private bucket or folder, never over a newer copy: s3://BUCKET/PREFIX or file:///FOLDER. If --state is empty, start from that copy."`

	generate.Content  `group:"How a snapshot is rendered:"`
	snapshot.Requests `group:"How nodes are asked:"`
	snapshot.Profiles `group:"Profiles:"`
	snapshot.Tables   `group:"Badges and other tables:"`
	serve.Upstreams   `group:"Fresh data (cache=fresh):"`
	serve.Limits      `group:"Limits:"`
}

// About is the first line of --help.
const About = "Follow the chains, and answer every request from the newest graph."

// Help returns the text below the first line of --help.
func (*Command) Help() string {
	return `It reads new blocks every few seconds, builds the next graph while the current one answers, and publishes finalized blocks to a bucket. Edges ask it first, and use the bucket if it is down, slow or stale. Plan memory for two graphs: twice what generate needs.

	followpress live --state state --rpc 8453=URL --rpc 10=URL --rpc 1=URL --dest s3://BUCKET`
}

// Validate checks the flags before the run; kong calls it.
func (c *Command) Validate() error {
	if err := c.checkSource(); err != nil {
		return err
	}
	switch {
	case c.Poll <= 0:
		return errors.New("--poll must be positive")
	case c.MaxLag < time.Minute:
		return fmt.Errorf("--max-lag=%v: chains pause at times; use a minute or more", c.MaxLag)
	case c.PublishEvery < time.Minute:
		return fmt.Errorf("--publish-every=%v: use a minute or more", c.PublishEvery)
	}
	return errors.Join(c.Tables.Check(&c.Profiles, c.State), c.Content.Validate(), c.Upstreams.Check(), c.Limits.Check(), c.checkPlaces())
}

// checkSource checks the flags for chains and state.
func (c *Command) checkSource() error {
	switch {
	case len(c.RPC) == 0:
		return errors.New("missing flags: --rpc=CHAIN=URL,URL")
	case c.State == "":
		return errors.New("missing flags: --state=DIR")
	case strings.Contains(c.State, "://"):
		return fmt.Errorf("--state=%s: must be a folder on this machine; --state-copy keeps a copy elsewhere", c.State)
	}
	return c.Requests.Check(&c.Nodes)
}

// checkPlaces checks the bucket, and that its readers cannot see copies of the state.
func (c *Command) checkPlaces() error {
	if c.Dest != "" {
		if err := c.Repeated.Check(c.Dest); err != nil {
			return err
		}
		if at, err := storage.ParseLocation(c.Dest); err == nil && at.Folder != "" && command.Inside(c.State, at.Folder) {
			return fmt.Errorf("--state=%s is in --dest=%s, which is public; name another folder", c.State, c.Dest)
		}
	}
	if c.StateCopy == "" {
		return nil
	}
	at, err := storage.ParseLocation(c.StateCopy)
	if err != nil {
		return fmt.Errorf("--state-copy: %w", err)
	}
	to, err := storage.ParseLocation(c.Dest)
	if err != nil {
		return nil //nolint:nilerr // no destination, or an invalid one, reported elsewhere
	}
	if at.Folder != "" && to.Folder != "" && command.Inside(at.Folder, to.Folder) ||
		at.Bucket != "" && at.Bucket == to.Bucket && strings.HasPrefix(at.Prefix, to.Prefix) {
		return fmt.Errorf("--state-copy=%s is in --dest=%s, which is public; name another bucket", c.StateCopy, c.Dest)
	}
	return nil
}
