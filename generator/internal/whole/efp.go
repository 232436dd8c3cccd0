package whole

import (
	"cmp"
	"context"

	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/generator/internal/units"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/site"
)

// An efpRenderer renders the objects that only the API efp has, and with them everything else of an
// account and its lists. Like Site, it is immutable.
type efpRenderer struct {
	*graph.Relations
	render.Views
	ranks *graph.Ranks

	profileEnds []render.TextEnds // by account
	lastUpdated string            // time of the snapshot
	boards      graph.RankedBoards
	newest      []uint32    // accounts shown by discover
	texts       units.Texts // objects that do not depend on the snapshot

	addressBuckets, nameBuckets, listBuckets units.Partition
}

func newEFPRenderer(ctx context.Context, g *graph.Graph, r *graph.Ranks, config site.Config, workers int) (*efpRenderer, error) {
	relations, err := graph.NewRelations(ctx, g, workers)
	if err != nil {
		return nil, err
	}
	lastUpdated, err := render.TimeOfSnapshot(g.AsOf)
	if err != nil {
		return nil, err // impossible: checked by snapshot.ReadAsOf
	}
	e := &efpRenderer{
		Relations: relations, Views: render.NewViews(config, g.Events), ranks: r,
		lastUpdated: lastUpdated,
		boards:      graph.NewRankedBoards(r),
		newest:      relations.NewestFollowed(),
	}
	if e.texts, err = render.APITexts(config); err != nil {
		return nil, err
	}
	e.profileEnds = make([]render.TextEnds, len(e.Accounts))
	err = inorder.Chunks(ctx, workers, len(e.profileEnds), func(account int) error {
		e.profileEnds[account] = render.EndsOf(e.Profile(uint32(account)))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return e, e.fillBuckets(ctx, workers)
}

// objects returns the number of these objects, without fixed ones.
func (e *efpRenderer) objects() (n int) {
	for account := range e.Accounts {
		n += render.AccountObjects(e.Config, len(e.HoldersOf(uint32(account))))
	}
	for list := range e.Tokens {
		n += render.ListObjects(e.Config, int(e.Held[list]), 0, e.IsPrimary(uint32(list)))
	}
	return n
}

func (e *efpRenderer) shown(account uint32) render.Account {
	return e.Shown(e.ranks, e.profileEnds, account)
}

func (e *efpRenderer) fillBuckets(ctx context.Context, workers int) (err error) {
	names, lists := graph.NumbersBelow(len(e.Names)), graph.NumbersBelow(len(e.Tokens))
	inorder.Sort(workers, lists, func(a, b uint32) int { return cmp.Compare(e.Tokens[a], e.Tokens[b]) })
	userDigits, tokenDigits := e.Config.BucketDigits(len(e.Accounts)+len(names)), e.Config.TokenDigits(len(lists))
	e.addressBuckets, err = units.NewPartition(ctx, workers, userDigits, e.ranks.ByAddress, func(account uint32) string { return e.Accounts[account].String() })
	if err != nil {
		return err
	}
	e.nameBuckets, err = units.NewPartition(ctx, workers, userDigits, names, func(name uint32) string { return e.Names[name].Name })
	if err != nil {
		return err
	}
	e.listBuckets, err = units.NewPartition(ctx, workers, tokenDigits, lists, func(list uint32) string { return e.Tokens[list] })
	return err
}
