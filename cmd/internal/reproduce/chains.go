package reproduce

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/followpress/followpress/cmd/internal/snapshot"
	"github.com/followpress/followpress/site"
	tables "github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain"
	"github.com/followpress/followpress/source/chain/provider"
)

// The folders of what is read of chains, in that of the run.
const (
	stateFolder  = "chains"
	chainsFolder = "of-chains" // a snapshot
)

// ErrNotTheChains says that tables are not what the chains make.
var ErrNotTheChains = errors.New("the site was not made of what the chains say")

// facts are what the chains make, and how the tables of a site differ from that.
type facts struct {
	run   *run
	root  *site.Root
	dir   string // of the snapshot that the chains make
	named int    // primary lists
	// To be compared row by row: of accounts the chains know less than the table has.
	rows    []tables.Table
	differs bool
}

// err is an error if something differs. Nil facts are those of nobody.
func (f *facts) err() error {
	if f == nil || !f.differs {
		return nil
	}
	return ErrNotTheChains
}

// readChains reads the chains up to the blocks of the root, makes tables of their events, and compares these with the
// digests in the root.
func (r *run) readChains(ctx context.Context) (_ *facts, err error) {
	f := &facts{run: r, root: r.live.Root(), dir: filepath.Join(r.dir, chainsFolder)}
	d, err := r.Read()
	if err != nil {
		return nil, err
	}
	ends, err := f.ends(d)
	if err != nil {
		return nil, err
	}
	state, err := chain.Open(filepath.Join(r.dir, stateFolder), d)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, state.Close()) }()
	urls, err := r.URLs("http", "https")
	if err != nil {
		return nil, err
	}
	report, err := state.Sync(ctx, chain.Options{
		URLs: urls, Ends: ends, Progress: r.progress, Provider: r.Options(provider.Finalized),
		Unchecked: true, // tables that are equal lack no logs, and those that are not are told with what the contracts were asked
	})
	r.progress.End()
	if report != nil {
		fmt.Fprint(r.stderr, report)
	}
	if err != nil {
		return nil, err
	}
	g, counted, err := f.make(ctx, state, d, ends)
	if err != nil {
		return nil, err
	}
	return f, errors.Join(f.compareCounts(d, ends, g, counted), f.compareDigests(ctx))
}

// ends are the blocks that the root names. They must be those of all chains of the deployment.
func (f *facts) ends(d *source.Deployment) (map[uint64]provider.Block, error) {
	if f.root.Inputs == nil || len(f.root.Inputs.Chains) == 0 {
		return nil, errors.New("--rpc: the root does not say up to which blocks the chains were read, so nothing of them can be compared: its snapshot was made elsewhere, or by an older version")
	}
	ends := map[uint64]provider.Block{}
	for _, c := range f.root.Inputs.Chains {
		ends[c.ChainID] = provider.Block{Number: c.Block, Hash: common.HexToHash(c.Hash)}
	}
	var known []uint64
	for _, c := range d.Chains {
		known = append(known, c.ID)
	}
	slices.Sort(known)
	if named := slices.Sorted(maps.Keys(ends)); !slices.Equal(named, known) {
		return nil, fmt.Errorf("--rpc: the root names blocks of the chains %d, and the deployment has the chains %d: name the deployment of the site (--deployment)", named, known)
	}
	return ends, nil
}

// make makes the tables. It counts the events of each chain.
func (f *facts) make(ctx context.Context, state *chain.State, d *source.Deployment, ends map[uint64]provider.Block) (g *source.Graph, counted map[uint64]uint64, err error) {
	counted = map[uint64]uint64{}
	upTo := func(yield func(source.Event, error) bool) {
		for e, err := range state.Events() {
			if err == nil {
				if e.Block > ends[e.Contract.Chain].Number { // of a chain that ends before its contracts
					continue
				}
				counted[e.Contract.Chain]++
			}
			if !yield(e, err) {
				return
			}
		}
	}
	w, err := tables.Create(f.dir, tables.WriteOptions{NoSync: true})
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	g, report, err := snapshot.Replay(ctx, upTo, d, w, f.run.progress)
	if err != nil {
		return nil, nil, err
	}
	f.run.progress.End()
	fmt.Fprint(f.run.stderr, report)
	if err := source.WriteAccounts(w, g); err != nil {
		return nil, nil, err
	}
	if g.AsOf, err = state.AsOf(); err != nil {
		return nil, nil, err
	}
	f.named = len(g.Primary)
	return g, counted, w.Commit(g.Meta())
}

// compareCounts compares what the root says of each chain. The blocks themselves are right, or Sync had failed.
func (f *facts) compareCounts(d *source.Deployment, ends map[uint64]provider.Block, g *source.Graph, counted map[uint64]uint64) error {
	for _, c := range f.root.Inputs.Chains {
		at := slices.IndexFunc(d.Chains, func(of source.Chain) bool { return of.ID == c.ChainID })
		name, events := fmt.Sprintf("%s (%d)", d.Chains[at].Name, c.ChainID), counted[c.ChainID]
		verdict := "equal"
		switch {
		case c.Events != 0 && c.Events != events: // 0 may mean that its source does not count
			f.differs = true
			verdict = fmt.Sprintf("differs: the root says %d events", c.Events)
		case c.Hash == "":
			verdict = "the root does not say which hash the block has"
		}
		if err := f.run.say("%-15s %s: block %d, %d events", name, verdict, ends[c.ChainID].Number, events); err != nil {
			return err
		}
	}
	if ops := f.root.Inputs.ListOps; ops != nil && *ops != g.ListOps {
		f.differs = true
		return f.run.say("%-15s differs: %d by the chains, and the root says %d", "operations", g.ListOps, *ops)
	}
	return nil
}

// compareDigests compares whole tables with the root, before anything of the bucket is read.
func (f *facts) compareDigests(ctx context.Context) (err error) {
	made, err := tables.Open(f.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	for _, t := range []tables.Table{tables.TableLists, tables.TableRecords, tables.TableOps, tables.TableAccounts} {
		want, read := f.root.Inputs.Tables[string(t)]
		if !read {
			continue // by this API
		}
		if from := f.root.Inputs.OpsFrom; t == tables.TableOps && from != "" {
			if err := f.run.say("%-15s not compared: it begins at %s, and that of the chains with them", t, from); err != nil {
				return err
			}
			continue
		}
		f.run.progress.Stage("compare", 0)
		got, err := tables.TableDigest(ctx, made, t, !f.root.Config.EFP())
		if err != nil {
			return err
		}
		switch {
		case got == want:
			err = f.run.say("%-15s equal", t)
		case t == tables.TableAccounts:
			f.rows = append(f.rows, t)
		default:
			f.differs = true
			f.rows = append(f.rows, t)
			err = f.run.say("%-15s differs: the chains make the digest %s, and the root says %s", t, got, want)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compareRows compares the tables that are left with those of the site, which the root has vouched for.
func (f *facts) compareRows(ctx context.Context, dir string) (err error) {
	made, err := tables.Open(f.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	theirs, err := tables.Open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, theirs.Close()) }()
	for _, t := range f.rows {
		f.run.progress.Stage("compare", 0)
		untimed := !f.root.Config.EFP()
		ofSite, ofChains := rowsOf(theirs, t, untimed), rowsOf(made, t, untimed)
		if t == tables.TableAccounts {
			ofSite, ofChains = primaryLists(theirs), primaryLists(made)
		}
		d, err := diffRows(ctx, ofSite, ofChains)
		if err != nil {
			return fmt.Errorf("table %s: %w", t, err)
		}
		if t == tables.TableAccounts && (d == nil || d.sameRows()) {
			err = f.run.say("%-15s equal in %d primary lists; profiles are what services told, and no chain knows them", t, f.named)
		} else {
			f.differs = true
			err = f.run.say("%-15s differs: %s", t, strings.TrimSuffix(d.String(), "\n"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
