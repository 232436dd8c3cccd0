package render

import (
	"cmp"
	"context"

	"github.com/followpress/followpress/internal/inorder"
	"github.com/followpress/followpress/site"
)

// An efpRenderer renders the objects that only the API efp has, and with them everything else of an
// account and its lists. Like Site, it is immutable.
type efpRenderer struct {
	*relations
	viewRenderer
	ranks *Ranks

	profileEnds []profileEnds // by account
	lastUpdated string        // time of the snapshot
	boards      rankedBoards
	newest      []uint32 // accounts shown by discover
	texts       texts    // objects that do not depend on the snapshot

	addressBuckets, nameBuckets, listBuckets partition
}

func newEFPRenderer(ctx context.Context, g *Graph, r *Ranks, config site.Config, workers int) (*efpRenderer, error) {
	relations, err := newRelations(ctx, g, workers)
	if err != nil {
		return nil, err
	}
	lastUpdated, err := timeOfSnapshot(g.AsOf)
	if err != nil {
		return nil, err // impossible: checked by snapshot.ReadAsOf
	}
	e := &efpRenderer{
		relations: relations, viewRenderer: viewRenderer{config, encodeEvents(g.Events)}, ranks: r,
		lastUpdated: lastUpdated,
		boards:      newRankedBoards(r),
		newest:      relations.newestFollowed(),
	}
	if e.texts, err = apiTexts(config); err != nil {
		return nil, err
	}
	e.profileEnds = make([]profileEnds, len(e.Accounts))
	err = inorder.Chunks(ctx, workers, len(e.profileEnds), func(account int) error {
		e.profileEnds[account] = endsOf(e.profile(uint32(account)))
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
		n += AccountObjects(e.config, len(e.holdersOf(uint32(account))))
	}
	for list := range e.Tokens {
		n += ListObjects(e.config, int(e.held[list]), 0, e.isPrimary(uint32(list)))
	}
	return n
}

func (e *efpRenderer) shown(account uint32) Account {
	return e.Graph.shown(e.ranks, e.profileEnds, account)
}

func (e *efpRenderer) fillBuckets(ctx context.Context, workers int) (err error) {
	names, lists := numbersBelow(len(e.Names)), numbersBelow(len(e.Tokens))
	inorder.Sort(workers, lists, func(a, b uint32) int { return cmp.Compare(e.Tokens[a], e.Tokens[b]) })
	userDigits, tokenDigits := e.config.BucketDigits(len(e.Accounts)+len(names)), e.config.TokenDigits(len(lists))
	e.addressBuckets, err = newPartition(ctx, workers, userDigits, e.ranks.ByAddress, func(account uint32) string { return e.Accounts[account].String() })
	if err != nil {
		return err
	}
	e.nameBuckets, err = newPartition(ctx, workers, userDigits, names, func(name uint32) string { return e.Names[name].Name })
	if err != nil {
		return err
	}
	e.listBuckets, err = newPartition(ctx, workers, tokenDigits, lists, func(list uint32) string { return e.Tokens[list] })
	return err
}
