package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain"
	"github.com/followpress/followpress/source/chain/provider"
	"github.com/followpress/followpress/source/replay"
)

// Chain is the command that reads the chains.
type Chain struct {
	State string `required:"" placeholder:"DIR" help:"Folder that keeps what was read, so that the next run reads only new blocks. If it is lost, everything is read again."`
	Nodes
	Finality    string   `enum:"finalized,safe,latest" default:"finalized" placeholder:"finalized|safe|latest" help:"The last block to read. No reorganisation reaches finalized blocks (default ${default})."`
	Reread      []string `placeholder:"CHAIN[:BLOCK]" help:"Forget what was read of a chain, from a block on, and read it again."`
	Unchecked   bool     `help:"Make the snapshot even if no node tells what the contracts say (eth_call), so that nobody knows whether logs are missing. The next run reads the same blocks again."`
	ExpectState bool     `help:"Fail if nothing was read into --state yet: for a job that would not notice that its state is lost."`
	Until       string   `placeholder:"TIME|CHAIN:BLOCK" help:"Ask nobody, and make the snapshot as of an earlier moment of the state: a time like 2026-10-31T00:00:00Z, a date, which is its beginning (UTC), or a block of a chain; of other chains that is the time of the block. Profiles and badges are those that the state has now."`
	Explain     string   `placeholder:"TOKEN" help:"Ask no node and make no snapshot: show each event of the state that concerns a list, and what it did."`
	output
	Requests   `group:"How nodes are asked:"`
	Profiles   `group:"Profiles:"`
	command.S3 `group:"Profiles:"`
	Tables     `group:"Badges and other tables:"`
}

// Nodes are the flags that say which contracts are read from which nodes.
type Nodes struct {
	RPC        []string `name:"rpc" sep:";" placeholder:"CHAIN=URL,URL" help:"Nodes of a chain, by its id: 8453=https://…,https://…. Repeat it for each chain, or separate chains by semicolons. Set FOLLOWPRESS_RPC if a URL has a key: others can see the flags of a process."`
	Deployment string   `placeholder:"FILE" help:"Where the contracts are, as JSON; by default those of the Ethereum Follow Protocol in production."`
}

// Requests are the flags about how nodes are asked.
type Requests struct {
	Quorum      int     `default:"1" placeholder:"N" help:"How many hosts of a chain must give the same answer (default ${default}). Logs that two hosts agree on need no contracts to confirm them."`
	Concurrency int     `default:"8" placeholder:"N" help:"Requests at a time with one key, or to one host, for all chains together (default ${default})."`
	Rate        float64 `default:"0" placeholder:"N" help:"Requests per second with one key, or to one host; 0 means as many as it takes (default ${default})."`
	MaxRange    uint64  `default:"10000" placeholder:"BLOCKS" help:"Blocks that one request asks for at most (default ${default}); what a node takes is found out."`
	Batch       int     `default:"100" placeholder:"N" help:"Calls in one request at most; 1 means that the node takes no batches (default ${default})."`
}

// Help is what --help shows below the first line.
func (*Chain) Help() string {
	return `It asks nodes for the events of the contracts, keeps them in the state, and replays them into lists and records. A killed run goes on where it was. The contracts must confirm what the events say; if not, the events are read again. Nodes that lag, fail, lose events or disagree cause an error, never a wrong snapshot.

	followpress snapshot chain --state state --rpc 8453=URL --rpc 10=URL --rpc 1=URL`
}

// Validate checks the flags before the run; kong calls it.
func (c *Chain) Validate() error {
	if err := c.checkUntil(); err != nil {
		return err
	}
	if c.Explain == "" && c.Until == "" && len(c.RPC) == 0 {
		return errors.New("missing flags: --rpc=CHAIN=URL,URL")
	}
	if _, err := source.ParseDecimal(c.Explain); err != nil && c.Explain != "" {
		return fmt.Errorf("--explain: %w", err)
	}
	if err := c.Requests.Check(&c.Nodes, "http", "https"); err != nil {
		return err
	}
	if _, err := parseReread(c.Reread); err != nil {
		return err
	}
	return errors.Join(c.validate(c.State), c.Tables.Check(&c.Profiles, c.State))
}

// checkUntil checks --until, which excludes what asks somebody.
func (c *Chain) checkUntil() error {
	if c.Until == "" {
		return nil
	}
	if _, err := chain.ParseMoment(c.Until); err != nil {
		return fmt.Errorf("--until: %w", err)
	}
	switch {
	case c.Explain != "":
		return errors.New("--until excludes --explain: that shows all that the state has")
	case len(c.Reread) > 0:
		return errors.New("--until excludes --reread: it asks no node")
	case c.ProfilesFrom != "":
		return errors.New("--until excludes --profiles-from: it changes nothing in the state")
	}
	return nil
}

// Check checks the flags, for URLs of some schemes.
func (r *Requests) Check(nodes *Nodes, schemes ...string) error {
	if r.Quorum < 1 || r.Concurrency < 1 || r.MaxRange < 1 || r.Batch < 1 || !(r.Rate >= 0) { // NaN is a number to strconv
		return errors.New("--quorum, --concurrency, --max-range and --batch must be 1 or more, --rate 0 or more")
	}
	urls, err := nodes.URLs(schemes...)
	if err != nil {
		return err
	}
	for id, of := range urls {
		if len(of) < r.Quorum {
			return fmt.Errorf("--quorum=%d: chain %d has %d URLs", r.Quorum, id, len(of))
		}
	}
	return nil
}

// Options are those of the provider that the flags ask for.
func (r *Requests) Options(finality string) provider.Options {
	return provider.Options{
		Finality: finality, Quorum: r.Quorum, Concurrency: r.Concurrency, Rate: r.Rate, MaxRange: r.MaxRange, Batch: r.Batch,
	}
}

// URLs reads the URLs of nodes by chain, of some schemes. Errors have no URL: it may contain a key.
func (n *Nodes) URLs(schemes ...string) (map[uint64][]string, error) {
	urls := map[uint64][]string{}
	for _, flag := range n.RPC {
		if flag = strings.TrimSpace(flag); flag == "" {
			continue // after the last semicolon
		}
		id, list, ok := strings.Cut(flag, "=")
		chain, err := strconv.ParseUint(strings.TrimSpace(id), 10, 64)
		if !ok || err != nil {
			return nil, errors.New("--rpc: each chain is its id, =, and URLs separated by commas: 8453=https://HOST/KEY")
		}
		if len(urls[chain]) > 0 {
			return nil, fmt.Errorf("--rpc: duplicate chain %d: separate its URLs by commas", chain)
		}
		for text := range strings.SplitSeq(list, ",") {
			text = strings.TrimSpace(text)
			if u, err := url.Parse(text); err != nil || !slices.Contains(schemes, u.Scheme) || u.Host == "" {
				return nil, fmt.Errorf("--rpc: chain %d: a URL must be like %s://HOST/KEY", chain, schemes[len(schemes)-1])
			}
			urls[chain] = append(urls[chain], text)
		}
	}
	return urls, nil
}

// parseReread reads the first block to read again by chain.
func parseReread(flags []string) (map[uint64]uint64, error) {
	from := map[uint64]uint64{}
	for _, flag := range flags {
		id, block, found := strings.Cut(flag, ":")
		chain, err := strconv.ParseUint(id, 10, 64)
		first := uint64(0)
		if found && err == nil {
			first, err = strconv.ParseUint(block, 10, 64)
		}
		if err != nil {
			return nil, fmt.Errorf("--reread: %s is neither a chain's id nor an id, a colon and a block", site.Quoted(flag))
		}
		from[chain] = first
	}
	return from, nil
}

// Read reads the deployment.
func (n *Nodes) Read() (*source.Deployment, error) {
	if n.Deployment == "" {
		return source.Production(), nil
	}
	text, err := os.ReadFile(n.Deployment)
	if err != nil {
		return nil, fmt.Errorf("--deployment: %w", err)
	}
	d, err := source.ParseDeployment(text)
	if err != nil {
		return nil, fmt.Errorf("--deployment: %s: %w", n.Deployment, err)
	}
	return d, nil
}

// lostState is the error of --expect-state.
func (c *Chain) lostState() error {
	return fmt.Errorf("--expect-state: nothing was read into --state=%s yet: the state is lost, or in another place; "+
		"without --expect-state all is read again, and profiles come from --profiles-from", c.State)
}

// Run makes the snapshot.
func (c *Chain) Run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	d, err := c.Read()
	if err != nil {
		return err
	}
	if c.Explain != "" {
		return c.explain(d, stdout)
	}
	if c.ExpectState && !chain.IsState(c.State) { // which Open would make one
		return c.lostState()
	}
	if c.Until != "" && !chain.IsState(c.State) { // which Open would make one
		return fmt.Errorf("--until: nothing was read into --state=%s yet", c.State)
	}
	r := run{output: &c.output, server: c.Server(), progress: command.NewProgress(stderr), stderr: stderr, asksNobody: c.Until != ""}
	defer r.progress.End()
	state, err := chain.Open(c.State, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, state.Close()) }()
	if c.ExpectState {
		if read, err := state.HasRead(); err != nil {
			return err
		} else if !read {
			return c.lostState()
		}
	}
	write := func(w *snapshot.Writer) (*source.Graph, error) {
		if c.Until != "" {
			return c.past(ctx, state, d, &r, w)
		}
		if err := c.sync(ctx, state, &r); err != nil {
			return nil, err
		}
		asOf, err := state.AsOf()
		if err != nil {
			return nil, err
		}
		return r.replay(ctx, state, asOf, d, w)
	}
	return r.make(ctx, stdout, &c.Profiles, &c.Tables, write, func(w *snapshot.Writer, g *source.Graph) error {
		return r.add(ctx, w, g, &c.Profiles, &c.Tables, c.State)
	})
}

// sync reads the blocks that the state does not have yet.
func (c *Chain) sync(ctx context.Context, state *chain.State, r *run) error {
	o, err := c.syncOptions(r)
	if err != nil {
		return err
	}
	report, err := state.Sync(ctx, o)
	if report != nil {
		r.report.Chain = report
		r.tell(report)
	}
	return err
}

func (c *Chain) syncOptions(r *run) (chain.Options, error) {
	urls, err := c.URLs("http", "https")
	if err != nil {
		return chain.Options{}, err
	}
	reread, err := parseReread(c.Reread)
	return chain.Options{
		URLs: urls, Reread: reread, Unchecked: c.Unchecked, NoSync: c.NoSync, Progress: r.progress,
		Provider: c.Options(c.Finality),
	}, err
}

// past replays what the state had at the moment of --until.
func (c *Chain) past(ctx context.Context, state *chain.State, d *source.Deployment, r *run, w *snapshot.Writer) (*source.Graph, error) {
	moment, err := chain.ParseMoment(c.Until)
	if err != nil {
		return nil, fmt.Errorf("--until: %w", err)
	}
	past, err := state.Until(moment)
	if err != nil {
		return nil, fmt.Errorf("--until=%s: %w", c.Until, err)
	}
	return r.replay(ctx, past, past.AsOf(), d, w)
}

// A history is a State, or what it had at a moment.
type history interface {
	Events() source.Events
	Chains() ([]site.ChainInput, error)
}

func (r *run) replay(ctx context.Context, all history, asOf time.Time, d *source.Deployment, w *snapshot.Writer) (*source.Graph, error) {
	g, report, err := Replay(ctx, all.Events(), d, w, r.progress)
	if err != nil {
		return nil, err
	}
	if g.Chains, err = all.Chains(); err != nil {
		return nil, err
	}
	g.AsOf = asOf
	r.report.Replay = report
	r.tell(report)
	return g, nil
}

// Replay writes the tables that events alone make: lists, records and ops. The Graph has no AsOf and no Chains.
func Replay(ctx context.Context, all source.Events, d *source.Deployment, w *snapshot.Writer, progress source.Progress) (*source.Graph, *replay.Report, error) {
	events := replay.New(d)
	progress.Stage("replay", 0)
	for e, err := range all {
		if err != nil {
			return nil, nil, err
		}
		if err := errors.Join(events.Add(e), ctx.Err()); err != nil {
			return nil, nil, err
		}
		progress.Add(1)
	}
	g, err := events.Write(ctx, w)
	return g, events.Report(), err
}

func (c *Chain) explain(d *source.Deployment, stdout io.Writer) (err error) {
	token, err := source.ParseDecimal(c.Explain)
	if err != nil {
		return fmt.Errorf("--explain: %w", err)
	}
	if !chain.IsState(c.State) { // which Open would make one
		return fmt.Errorf("--explain: nothing was read into --state=%s yet", c.State)
	}
	state, err := chain.Open(c.State, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, state.Close()) }()
	return replay.Explain(state.Events, d, token, stdout)
}
