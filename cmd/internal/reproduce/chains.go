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

// Subfolders of a run's folder.
const (
	stateFolder  = "chains"
	chainsFolder = "of-chains" // a snapshot
)

// ErrNotTheChains means that tables differ from the chains.
var ErrNotTheChains = errors.New("the site does not match the chains")

// facts are the tables replayed from the chains, and their comparison with a site's.
type facts struct {
	run   *run
	root  *site.Root
	dir   string // folder of the replayed snapshot
	named int    // number of primary lists
	// Tables to compare row by row; the chains know only part of the accounts.
	rows    []tables.Table
	differs bool
}

// err returns an error if something differs; nil facts return nil.
func (f *facts) err() error {
	if f == nil || !f.differs {
		return nil
	}
	return ErrNotTheChains
}

// readChains reads the chains up to the root's blocks, replays their events into tables, and compares these
// with the digests in the root.
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
	urls, err := r.URLs()
	if err != nil {
		return nil, err
	}
	report, err := state.Sync(ctx, chain.Options{
		URLs: urls, Ends: ends, Progress: r.progress, Provider: r.Options(provider.Finalized),
		Unchecked: true, // equal tables lack no logs, and differences are reported with the contracts' answers
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

// ends returns the root's blocks, which must cover exactly the deployment's chains.
func (f *facts) ends(d *source.Deployment) (map[uint64]provider.Block, error) {
	if f.root.Inputs == nil || len(f.root.Inputs.Chains) == 0 {
		return nil, errors.New("--rpc: the root records no blocks of the chains, so there is nothing to compare; its snapshot was made elsewhere, or by an older version")
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
		return nil, fmt.Errorf("--rpc: the root has blocks of chains %d, and the deployment chains %d; name the site's deployment with --deployment", named, known)
	}
	return ends, nil
}

// make writes the tables, and counts the events of each chain.
func (f *facts) make(ctx context.Context, state *chain.State, d *source.Deployment, ends map[uint64]provider.Block) (g *source.Graph, counted map[uint64]uint64, err error) {
	counted = map[uint64]uint64{}
	upTo := func(yield func(source.Event, error) bool) {
		for e, err := range state.Events() {
			if err == nil {
				if e.Block > ends[e.Contract.Chain].Number { // a chain that ends before its contracts begin
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

// compareCounts compares the root's counts for each chain. Sync has checked the blocks themselves.
func (f *facts) compareCounts(d *source.Deployment, ends map[uint64]provider.Block, g *source.Graph, counted map[uint64]uint64) error {
	for _, c := range f.root.Inputs.Chains {
		at := slices.IndexFunc(d.Chains, func(of source.Chain) bool { return of.ID == c.ChainID })
		name, events := fmt.Sprintf("%s (%d)", d.Chains[at].Name, c.ChainID), counted[c.ChainID]
		verdict := "equal"
		switch {
		case c.Events != 0 && c.Events != events: // 0 may mean that the source does not count
			f.differs = true
			verdict = fmt.Sprintf("differs: the root has %d events", c.Events)
		case c.Hash == "":
			verdict = "the root does not record the block's hash"
		}
		if err := f.run.say("%-15s %s: block %d, %d events", name, verdict, ends[c.ChainID].Number, events); err != nil {
			return err
		}
	}
	if ops := f.root.Inputs.ListOps; ops != nil && *ops != g.ListOps {
		f.differs = true
		return f.run.say("%-15s differs: %d on the chains, %d in the root", "operations", g.ListOps, *ops)
	}
	return nil
}

// compareDigests compares whole tables with the root, before reading from the bucket.
func (f *facts) compareDigests(ctx context.Context) (err error) {
	made, err := tables.Open(f.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, made.Close()) }()
	for _, t := range []tables.Table{tables.TableLists, tables.TableRecords, tables.TableOps, tables.TableAccounts} {
		want, read := f.root.Inputs.Tables[string(t)]
		if !read {
			continue // absent in this API
		}
		if from := f.root.Inputs.OpsFrom; t == tables.TableOps && from != "" {
			if err := f.run.say("%-15s not compared: it begins at %s, the chains' with the first event", t, from); err != nil {
				return err
			}
			continue
		}
		f.run.progress.Stage("compare", 0)
		var rows tables.Digest
		if err := rows.AddTable(ctx, made, t, !f.root.Config.EFP()); err != nil {
			return err
		}
		switch got := rows.Sum(); {
		case got == want:
			err = f.run.say("%-15s equal", t)
		case t == tables.TableAccounts:
			f.rows = append(f.rows, t)
		default:
			f.differs = true
			f.rows = append(f.rows, t)
			err = f.run.say("%-15s differs: digest %s from the chains, %s in the root", t, got, want)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// compareRows compares the remaining tables with the site's, whose digests the root has confirmed.
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
			err = f.run.say("%-15s equal in %d primary lists; profiles come from services, so the chains cannot confirm them", t, f.named)
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
