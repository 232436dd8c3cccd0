package log

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/site/scan"
	"github.com/followpress/followpress/source/replay"
	"github.com/followpress/followpress/storage"
)

// A store has the objects of a site.
type store interface {
	// Get reads an object, or returns an error that wraps storage.ErrNotFound.
	Get(ctx context.Context, key site.Key) ([]byte, error)
	Close() error
}

// open opens a site, wherever it is.
func (c *Command) open(ctx context.Context) (store, error) {
	if storage.IsWeb(c.From) {
		return storage.OpenWeb(c.From)
	}
	return command.OpenSite(ctx, c.From, c.Server())
}

// fromSite reads the operations of the window of a site.
func (c *Command) fromSite(ctx context.Context, q *query) (lines []line, err error) {
	from, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	body, err := from.Get(ctx, site.RootKey)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, fmt.Errorf("%s is no state, no snapshot and no site, which has the object %s", c.From, site.RootKey)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", site.RootKey, err)
	}
	r := siteReader{query: q, store: from}
	if r.root, err = site.ParseServedRoot(body); err != nil {
		return nil, fmt.Errorf("%s: %w", site.RootKey, err)
	}
	if r.root.Config.HistoryWindow == 0 {
		return nil, fmt.Errorf("%s has no history: it was made with --history-window=0, of a snapshot without the table ops, or for another API than %s", c.From, site.APIEFP)
	}
	asOf, err := time.Parse(time.RFC3339, r.root.AsOf)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", site.RootKey, err)
	}
	if r.since, err = q.since(asOf); err != nil {
		return nil, err
	}
	q.tellWindow("the site", asOf.Add(-time.Duration(r.root.Config.HistoryWindow)), r.since)
	if err := r.read(ctx); err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.lines, func(a, b line) int { return cmp.Compare(a.time, b.time) })
	return r.lines, nil
}

type siteReader struct {
	*query
	store store
	root  site.Root
	since int64
	lines []line // the newest first, of each object
}

func (r *siteReader) read(ctx context.Context) error {
	var user party
	list := r.list
	if r.user != "" {
		bucket, err := r.get(ctx, site.UserBucketKey(site.UserBucket(r.user, r.root.BucketDigits)))
		if err != nil {
			return err
		}
		node, known, err := scan.FindUserNode(bucket, r.user)
		if err != nil {
			return err
		}
		if !known && !r.address {
			return fmt.Errorf("--user=%s: the site has no such name: try the address", site.Quoted(r.user))
		}
		user = party{address: r.user}
		if known {
			if user.address, err = addressOf(node.Address); err != nil {
				return err
			}
		}
		if user.name = r.user; r.address {
			if user.name, err = r.nameOf(ctx, user.address); err != nil {
				return err
			}
		}
		if list == "" {
			list = node.List
		}
	}
	if r.user != "" && r.list == "" {
		if err := r.notifications(ctx, user, list); err != nil {
			return err
		}
	}
	if list == "" {
		return nil
	}
	return r.activity(ctx, list, user)
}

// nameOf is the name of an account; "" for none.
func (r *siteReader) nameOf(ctx context.Context, address string) (name string, err error) {
	key := r.root.Config.UserObjectKey(address, site.Account)
	body, err := r.get(ctx, key)
	if err != nil || body == nil {
		return "", err
	}
	account, err := scan.ParseAccount(body)
	if err == nil && account.HasName() {
		err = json.Unmarshal(account.Name, &name)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	return name, nil
}

// notifications reads what lists did to the user. What its own list did is part of that list's activity.
func (r *siteReader) notifications(ctx context.Context, user party, own string) error {
	key := func(n int) site.Key { return site.NotificationsKey(user.address, n) }
	return r.shards(ctx, key, func(entry []json.RawMessage) (l line, wanted bool, err error) {
		var tag string
		var code op.Code
		err = members(entry, &l.time, &l.list, &l.by.address, &l.by.name, nil, &code, &tag)
		if err == nil {
			l.by.address, err = addressOf(l.by.address)
		}
		if err == nil {
			err = site.CheckTokenID("list", l.list)
		}
		if err == nil {
			err = l.tellOp(code, user.address, tag)
		}
		l.about.name = user.name
		return l, l.list != own, err
	})
}

// activity reads what a list did; to one account, if that is asked for.
func (r *siteReader) activity(ctx context.Context, list string, user party) error {
	bucket, err := r.get(ctx, site.TokenBucketKey(site.UserBucket(list, r.root.TokenDigits)))
	if err != nil {
		return err
	}
	node, known, err := scan.FindListNode(bucket, list)
	switch {
	case err != nil:
		return err
	case !known:
		return fmt.Errorf("--list=%s: the site has no such list", list)
	}
	account, err := addressOf(node.Account)
	if err != nil {
		return err
	}
	by := user
	if by.address != account {
		by.address = account
		if by.name, err = r.nameOf(ctx, account); err != nil {
			return err
		}
	}
	key := func(n int) site.Key { return site.ActivityKey(list, n) }
	return r.shards(ctx, key, func(entry []json.RawMessage) (l line, wanted bool, err error) {
		var address, tag string
		var code op.Code
		l.list, l.by = list, by
		err = members(entry, &l.time, &address, &l.about.name, nil, &code, &tag)
		if err == nil {
			err = l.tellOp(code, address, tag)
		}
		return l, r.list == "" || user.address == "" || address == user.address, err
	})
}

// addressOf is an address that an object has. Whoever made the object could have written anything there, which would
// be printed.
func addressOf(text string) (string, error) {
	address, err := site.DecodeAddress("address", text)
	return address.String(), err
}

// tellOp says what an operation did that has a code, an address and a tag.
func (l *line) tellOp(code op.Code, about, tag string) error {
	address, err := site.DecodeAddress("address", about)
	if err != nil {
		return err
	}
	l.op = op.Append(nil, code, address, tag)
	if _, ignored := op.Parse(l.op); ignored != "" {
		return errors.New(string(ignored))
	}
	l.tell(replay.TellOp(l.op))
	return nil
}

// members decodes the members of an entry; nil is for those of no interest.
func members(entry []json.RawMessage, to ...any) error {
	if len(entry) < len(to) {
		return fmt.Errorf("an entry has %d members, want %d", len(entry), len(to))
	}
	for i, one := range to {
		if one == nil {
			continue
		}
		if err := json.Unmarshal(entry[i], one); err != nil {
			return fmt.Errorf("member %d of an entry: %w", i+1, err)
		}
	}
	return nil
}

// shards reads an object of operations, and those with older ones as far as they are wanted. The first is absent if there are none.
func (r *siteReader) shards(ctx context.Context, key func(n int) site.Key, lineOf func(entry []json.RawMessage) (l line, wanted bool, err error)) error {
	total, before := -1, len(r.lines)
	for n, shards := 0, 1; n < shards; n++ {
		body, err := r.get(ctx, key(n))
		if err != nil || n == 0 && body == nil {
			return err
		}
		var shard struct {
			Total   int                 `json:"total"`
			Shards  int                 `json:"shards"`
			Entries [][]json.RawMessage `json:"entries"`
		}
		if body == nil {
			return mixed(key(n))
		}
		if err := json.Unmarshal(body, &shard); err != nil {
			return fmt.Errorf("%s: %s", key(n), site.JSONReason(err))
		}
		if n == 0 {
			total, shards = shard.Total, shard.Shards
			if total < 1 || shards != (total-1)/site.HistoryShardSize+1 {
				return fmt.Errorf("%s: %d operations in %d objects: no site has that; name another one", key(n), total, shards)
			}
		}
		if shard.Total != total || len(shard.Entries) != min(site.HistoryShardSize, total-n*site.HistoryShardSize) {
			return mixed(key(n))
		}
		for i, entry := range shard.Entries {
			l, wanted, err := lineOf(entry)
			if err != nil {
				return fmt.Errorf("%s: entry %d: %w", key(n), i+1, err)
			}
			if l.time < r.since {
				shards = 0
				break
			}
			if wanted {
				r.lines = append(r.lines, l)
			}
		}
	}
	slices.Reverse(r.lines[before:])
	return nil
}

func mixed(key site.Key) error {
	return fmt.Errorf("%s is of another site than the objects before it: a publish goes on; try again", key)
}

// get reads an object; nil if it is absent.
func (r *siteReader) get(ctx context.Context, key site.Key) ([]byte, error) {
	body, err := r.store.Get(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return body, nil
}
