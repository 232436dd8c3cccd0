// Package search answers the basic API with pages of the accounts that a list follows. Its search
// shards hold the entries as answers show them.
package search

import (
	"errors"
	"iter"
	"slices"

	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/server/internal/answer/lookup"
	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/scan"
	"github.com/followpress/followpress/storage"
)

// A page selects entries.
type page struct {
	match         *scan.Matcher // nil matches all
	offset, limit int
}

const entriesStart, entriesEnd = `{"following":[`, "]}"

// Following answers with a page of the accounts that a list follows and that match a term, in list
// order. Without a term it reads the shards that the page touches; with a term it reads shard after
// shard until the page is full. It returns storage.ErrNotFound if there is no such list or user.
func Following(a *compute.Answer) (err error) {
	p := page{offset: a.Ask.Offset, limit: a.Ask.Limit}
	if a.Ask.Term != "" {
		p.match = scan.NewMatcher(a.Ask.Term)
	}
	a.Body = append(a.Body, entriesStart...)
	list := a.Ask.TokenID
	if a.Ask.User != "" {
		if list, err = primaryListOf(a, a.Ask.User); err != nil {
			return err
		}
	}
	if list != "" { // the user has a primary list
		err = ofShards(a, list, p)
		if errors.Is(err, storage.ErrNotFound) {
			err = ofFirstPage(a, list, p)
			if a.Ask.User != "" {
				err = fetch.MixedIfAbsent(err) // the user bucket names a list that does not exist
			}
		}
	}
	a.Body = append(a.Body, entriesEnd...)
	return err
}

// primaryListOf returns the user's primary list, "" for none. It returns storage.ErrNotFound if
// there is no such user.
func primaryListOf(a *compute.Answer, user string) (tokenID string, err error) {
	known := false
	err = a.UseKnown(lookup.UserBucket(a, user), func(bucket []byte) error {
		tokenID, known = scan.FindUser(bucket, user)
		return nil
	})
	if err == nil && !known {
		err = storage.ErrNotFound
	}
	return tokenID, err
}

// ofShards takes entries from search shards. It returns storage.ErrNotFound if the first shard does
// not exist.
func ofShards(a *compute.Answer, list string, p page) error {
	n, end := 0, 0      // shard numbers
	if p.match == nil { // the offset of an entry determines its shard
		n, end = p.offset/site.SearchShardSize, (p.offset+p.limit-1)/site.SearchShardSize+1
		p.offset -= n * site.SearchShardSize
	}
	key := func(n int) site.Key { return site.SearchShardKey(list, n) }
	var first scan.ShardHeader
	var size int64
	err := a.UseObject(key(n), func(shard *cache.Object) (err error) {
		size = int64(len(shard.Body))
		first, err = takeShard(a, shard, &p)
		return err
	})
	if err != nil || p.limit == 0 {
		return err
	}
	if end == 0 || end > first.Shards {
		end = first.Shards
	}
	if err := a.MustBeLarge((end - n) * compute.ShardObjects); err != nil {
		return err
	}
	for shard, err := range a.Objects(compute.Series{Key: key, From: n + 1, End: end, Bytes: size}) {
		if err != nil {
			return err
		}
		header, err := takeShard(a, shard, &p)
		switch {
		case err != nil:
			return err
		case header.Total != first.Total || header.Shards != first.Shards:
			return fetch.ErrMixed
		case p.limit == 0:
			return nil
		}
	}
	return nil
}

// takeShard takes entries from a search shard.
func takeShard(a *compute.Answer, shard *cache.Object, p *page) (scan.ShardHeader, error) {
	if x := shard.Index; x != nil {
		return x.Header, takeEntries(a, p, indexed(x, shard.Body, []byte(a.Ask.Term), p))
	}
	header, err := scan.ParseShardHeader(shard.Body)
	if err != nil {
		return header, err
	}
	return header, takeEntries(a, p, matching(shard.Body, p))
}

// ofFirstPage takes entries of a list without shards, whose first page holds the whole list. A
// longer list has a first shard. An offset beyond its end names a missing shard, and matches
// nothing.
func ofFirstPage(a *compute.Answer, list string, p page) error {
	return a.Use(a.Root.Config.ListKey(list, site.SearchFollowing), func(whole []byte) error {
		mayHaveShards := p.match != nil || p.offset < site.SearchShardSize
		if mayHaveShards && len(slices.Collect(scan.Entries(whole))) >= site.DefaultLimit {
			return fetch.ErrMixed
		}
		return takeEntries(a, &p, matching(whole, &p))
	})
}

// matching yields the entries of an object that match the term.
func matching(object []byte, p *page) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for entry := range scan.Entries(object) {
			if (p.match == nil || p.match.Match(entry)) && !yield(entry) {
				return
			}
		}
	}
}

// indexed is matching for a search shard with an index. Without a term it skips the entries before
// the offset and subtracts them from the offset.
func indexed(x *scan.ShardIndex, shard, term []byte, p *page) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := 0
		if p.match == nil {
			i = min(p.offset, x.Len())
			p.offset -= i
		}
		for ; ; i++ {
			if i = x.Next(i, term); i == x.Len() || !yield(x.Entry(shard, i)) {
				return
			}
		}
	}
}

// takeEntries appends entries until the page is full, counting offset and limit down.
func takeEntries(a *compute.Answer, p *page, entries iter.Seq[[]byte]) error {
	for entry := range entries {
		if p.offset > 0 {
			p.offset--
			continue
		}
		first := len(a.Body) == len(entriesStart)
		if !first && a.PageEnds(len(entry)) {
			p.limit = 0
			return nil
		}
		if err := a.Grow(len(entry) + len(",") + len(entriesEnd)); err != nil {
			return err
		}
		if !first {
			a.Body = append(a.Body, ',')
		}
		a.Body = append(a.Body, entry...)
		if p.limit--; p.limit == 0 {
			return nil
		}
	}
	return nil
}
