package answer

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/scan"
	"github.com/followpress/followpress/storage"
)

// searchFollowing answers with a page of the follows of a list that match a term, in its order. Without a
// term it reads the shards that the page touches; with a term it reads shard after shard until the page is
// full. Under site.APIEFP shards have rows, else entries as the answer has them.
func (c *computation) searchFollowing() error {
	s := selection{match: c.matcher(), offset: c.ask.Offset, limit: c.ask.Limit}
	if !c.root.Config.EFP() {
		return c.entriesPage(s)
	}
	list, err := c.findSubject()
	if err != nil {
		return err
	}
	return c.followingPage(list, c.heldTable(list), s, appendNameAvatar)
}

func (c *computation) matcher() *scan.Matcher {
	if c.ask.Term == "" {
		return nil
	}
	return scan.NewMatcher(c.ask.Term)
}

const entriesStart, entriesEnd = `{"following":[`, "]}"

// entriesPage appends a page of entries. storage.ErrNotFound means that there is no such list or user.
func (c *computation) entriesPage(s selection) (err error) {
	c.body = append(c.body, entriesStart...)
	list := c.ask.TokenID
	if c.ask.User != "" {
		if list, err = c.primaryListOf(c.ask.User); err != nil {
			return err
		}
	}
	if list != "" { // else the user has no primary list
		err = c.entriesOfShards(list, s)
		if errors.Is(err, storage.ErrNotFound) {
			err = c.entriesOfFirstPage(list, s)
			if c.ask.User != "" {
				err = fetch.MixedIfAbsent(err) // the user bucket names a list that does not exist
			}
		}
	}
	c.body = append(c.body, entriesEnd...)
	return err
}

// primaryListOf looks up the primary list of a user, "" for none. storage.ErrNotFound means that there is
// no such user.
func (c *computation) primaryListOf(user string) (tokenID string, err error) {
	known := false
	err = c.useKnown(site.UserBucketKey(site.UserBucket(user, c.root.BucketDigits)), func(bucket []byte) error {
		tokenID, known = scan.FindUser(bucket, user)
		return nil
	})
	if err == nil && !known {
		err = storage.ErrNotFound
	}
	return tokenID, err
}

// entriesOfShards takes entries from search shards. storage.ErrNotFound means that the first one does not exist.
func (c *computation) entriesOfShards(list string, s selection) error {
	n, end := 0, 0      // of shards
	if s.match == nil { // the offset of an entry determines its shard
		n, end = s.offset/site.SearchShardSize, (s.offset+s.limit-1)/site.SearchShardSize+1
		s.offset -= n * site.SearchShardSize
	}
	key := func(n int) site.Key { return site.SearchShardKey(list, n) }
	shard, err := c.read.get(c.ctx, key(n))
	if err != nil {
		return fmt.Errorf("search shard: %w", err)
	}
	size := int64(len(shard.Body))
	first, err := c.takeShard(shard, &s)
	if err != nil || s.limit == 0 {
		return err
	}
	if end == 0 || end > first.Shards {
		end = first.Shards
	}
	if err := c.mustBeLarge((end - n) * shardObjects); err != nil {
		return err
	}
	for shard, err := range c.m.readAhead(c.ctx, c.read, key, n+1, end, size) {
		if err != nil {
			return fmt.Errorf("search shard: %w", fetch.MixedIfAbsent(err))
		}
		header, err := c.takeShard(shard, &s)
		switch {
		case err != nil:
			return err
		case header.Total != first.Total || header.Shards != first.Shards:
			return fetch.ErrMixed
		case s.limit == 0:
			return nil
		}
	}
	return nil
}

// takeShard takes entries of a search shard, and releases the shard.
func (c *computation) takeShard(shard *cache.Object, s *selection) (header scan.ShardHeader, err error) {
	defer shard.Release()
	err = c.m.scan(c.ctx, len(shard.Body), func() error {
		if x := shard.Index; x != nil {
			header = x.Header
			return c.takeEntries(s, indexed(x, shard.Body, []byte(c.ask.Term), s))
		}
		var err error
		if header, err = scan.ParseShardHeader(shard.Body); err != nil {
			return err
		}
		return c.takeEntries(s, matching(shard.Body, s))
	})
	return header, err
}

// entriesOfFirstPage takes entries of a list without shards: the object of its first page holds the whole
// list. A longer list has a first shard. An offset beyond its end names a shard that does not
// exist, and finds nothing.
func (c *computation) entriesOfFirstPage(list string, s selection) error {
	return c.use(c.root.Config.ListKey(list, site.SearchFollowing), func(whole []byte) error {
		mayHaveShards := s.match != nil || s.offset < site.SearchShardSize
		if mayHaveShards && len(slices.Collect(scan.Entries(whole))) >= site.DefaultLimit {
			return fetch.ErrMixed
		}
		return c.takeEntries(&s, matching(whole, &s))
	})
}

// matching yields the entries of an object that match.
func matching(object []byte, s *selection) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for entry := range scan.Entries(object) {
			if (s.match == nil || s.match.Match(entry)) && !yield(entry) {
				return
			}
		}
	}
}

// indexed is matching for a search shard with an index. Without a term it skips what comes before the
// offset, and counts that down.
func indexed(x *scan.ShardIndex, shard, term []byte, s *selection) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := 0
		if s.match == nil {
			i = min(s.offset, x.Len())
			s.offset -= i
		}
		for ; ; i++ {
			if i = x.Next(i, term); i == x.Len() || !yield(x.Entry(shard, i)) {
				return
			}
		}
	}
}

// takeEntries appends entries until the page is full. It counts offset and limit down.
func (c *computation) takeEntries(s *selection, entries iter.Seq[[]byte]) error {
	for entry := range entries {
		if s.offset > 0 {
			s.offset--
			continue
		}
		first := len(c.body) == len(entriesStart)
		if !first && c.pageEnds(len(entry)) {
			s.limit = 0
			return nil
		}
		if err := c.grow(len(entry) + len(",") + len(entriesEnd)); err != nil {
			return err
		}
		if !first {
			c.body = append(c.body, ',')
		}
		c.body = append(c.body, entry...)
		if s.limit--; s.limit == 0 {
			return nil
		}
	}
	return nil
}
