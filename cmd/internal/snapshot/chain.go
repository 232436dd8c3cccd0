package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
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

// Chain is the command snapshot chain, which reads the chains.
type Chain struct {
	State string `required:"" placeholder:"DIR" help:"Folder for blocks already read, so that the next run reads only new ones. If it is lost, everything is read again."`
	Nodes
	Finality    string   `enum:"finalized,safe,latest" default:"finalized" placeholder:"finalized|safe|latest" help:"Last block to read. Finalized blocks are never reorganized (default ${default})."`
	Reread      []string `placeholder:"CHAIN[:BLOCK]" help:"Discard and reread a chain, optionally from a block on."`
	Unchecked   bool     `help:"Proceed even if no node answers for the contracts (eth_call), so that missing logs go unnoticed. The next run rereads the same blocks."`
	ExpectState bool     `help:"Fail if --state is empty, to notice a lost state."`
	Until       string   `placeholder:"TIME|CHAIN:BLOCK" help:"Make the snapshot of an earlier moment from the state, without requests: a time such as 2026-10-31T00:00:00Z, a date (its start, UTC), or a block, whose time applies to other chains. Profiles and badges are the state's current ones."`
	Explain     string   `placeholder:"TOKEN" help:"Print the state's events for a list, with their effects. Asks no node and makes no snapshot."`
	output
	Requests   `group:"How nodes are asked:"`
	Profiles   `group:"Profiles:"`
	command.S3 `group:"Profiles:"`
	Tables     `group:"Badges and other tables:"`
}

// Nodes are the flags for contracts and nodes.
type Nodes struct {
	RPC        []string `name:"rpc" sep:";" placeholder:"CHAIN=URL,URL" help:"Nodes of a chain, by its id: 8453=https://…,https://…. Repeat it, or separate chains by semicolons. Set FOLLOWPRESS_RPC if a URL contains a key: other users can see flags."`
	Deployment string   `placeholder:"FILE" help:"JSON file with the contracts; by default those of the Ethereum Follow Protocol in production."`
}

// Requests are the flags for requests to nodes.
type Requests struct {
	Quorum int     `default:"1" placeholder:"N" help:"Hosts of a chain that must give the same answer (default ${default}). Logs from two hosts need no confirmation by contracts."`
	Rate   float64 `default:"0" placeholder:"N" help:"Requests per second to one host; 0 means no limit (default ${default})."`
}

// Help returns the text below the first line of --help.
func (*Chain) Help() string {
	return `It fetches the contracts' events from nodes, keeps them in the state, and replays them into lists and records. A killed run resumes. The contracts must confirm the events; otherwise the events are read again. Nodes that lag, fail, lose events or disagree cause an error, never a wrong snapshot.

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
	if err := c.Requests.Check(&c.Nodes); err != nil {
		return err
	}
	if _, err := parseReread(c.Reread); err != nil {
		return err
	}
	return errors.Join(c.validate(c.State), c.Tables.Check(&c.Profiles, c.State))
}

// checkUntil checks --until, which excludes flags that need requests.
func (c *Chain) checkUntil() error {
	if c.Until == "" {
		return nil
	}
	if _, err := chain.ParseMoment(c.Until); err != nil {
		return fmt.Errorf("--until: %w", err)
	}
	switch {
	case c.Explain != "":
		return errors.New("--until excludes --explain, which shows the whole state")
	case len(c.Reread) > 0:
		return errors.New("--until excludes --reread, which asks nodes")
	case c.ProfilesFrom != "":
		return errors.New("--until excludes --profiles-from, which changes the state")
	}
	return nil
}

// Check checks the flags.
func (r *Requests) Check(nodes *Nodes) error {
	if r.Quorum < 1 || !(r.Rate >= 0) { // NaN is a number to strconv
		return errors.New("--quorum must be 1 or more, --rate 0 or more")
	}
	urls, err := nodes.URLs()
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

// Options returns the provider's options.
func (r *Requests) Options(finality string) provider.Options {
	return provider.Options{Finality: finality, Quorum: r.Quorum, Rate: r.Rate}
}

// URLs returns the URLs of nodes by chain. Errors contain no URL, which may contain a key.
func (n *Nodes) URLs() (map[uint64][]string, error) {
	urls := map[uint64][]string{}
	for _, flag := range n.RPC {
		if flag = strings.TrimSpace(flag); flag == "" {
			continue // after the last semicolon
		}
		id, list, ok := strings.Cut(flag, "=")
		chain, err := strconv.ParseUint(strings.TrimSpace(id), 10, 64)
		if !ok || err != nil {
			return nil, errors.New("--rpc: want a chain's id, =, and URLs separated by commas: 8453=https://HOST/KEY")
		}
		if len(urls[chain]) > 0 {
			return nil, fmt.Errorf("--rpc: duplicate chain %d; separate its URLs by commas", chain)
		}
		for text := range strings.SplitSeq(list, ",") {
			text = strings.TrimSpace(text)
			if u, err := url.Parse(text); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
				return nil, fmt.Errorf("--rpc: chain %d: want URLs like https://HOST/KEY", chain)
			}
			urls[chain] = append(urls[chain], text)
		}
	}
	return urls, nil
}

// parseReread returns the first block to reread, by chain.
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

// lostState returns the error of --expect-state.
func (c *Chain) lostState() error {
	return fmt.Errorf("--expect-state: --state=%s is empty: lost, or in another place; "+
		"without --expect-state everything is read again, and profiles come from --profiles-from", c.State)
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
	if c.ExpectState && !chain.IsState(c.State) { // Open would create one
		return c.lostState()
	}
	if c.Until != "" && !chain.IsState(c.State) { // Open would create one
		return fmt.Errorf("--until: --state=%s is empty", c.State)
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

// sync reads new blocks into the state.
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
	urls, err := c.URLs()
	if err != nil {
		return chain.Options{}, err
	}
	reread, err := parseReread(c.Reread)
	return chain.Options{
		URLs: urls, Reread: reread, Unchecked: c.Unchecked, NoSync: c.NoSync, Progress: r.progress,
		Provider: c.Options(c.Finality),
	}, err
}

// past replays the state up to the moment of --until.
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

// A history is a state, or a state up to a moment.
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

// Replay writes the tables made from events alone: lists, records and ops. The Graph lacks AsOf and Chains.
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
	if !chain.IsState(c.State) { // Open would create one
		return fmt.Errorf("--explain: --state=%s is empty", c.State)
	}
	state, err := chain.Open(c.State, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, state.Close()) }()
	return replay.Explain(state.Events, d, token, stdout)
}
