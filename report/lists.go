package report

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/site/scan"
)

// mostLists is the maximum number of lists, accounts and tags that a report names.
const mostLists = 20

const (
	listNew     = "new"
	listGone    = "gone"
	listChanged = "changed"
)

func byChange(a, b ListChange) int {
	return cmp.Or(cmp.Compare(b.Follows+b.Unfollows, a.Follows+a.Unfollows), site.CompareTokenIDs(string(a.List), string(b.List)))
}

// A recordChange is a held account whose tags in a list changed.
type recordChange struct {
	address   site.Address
	was, is   rules.State // 0 if not held
	tags, had []byte      // JSON arrays; nil if not held
}

// compareRecords compares two answers to /records. A body is nil if that site lacks the list.
func (c *comparison) compareRecords(key site.Key, before, after []byte) error {
	if err := checkRecords(before); err != nil {
		return c.from.explain(key, err)
	}
	if err := checkRecords(after); err != nil {
		return c.to.explain(key, err)
	}
	changes := diffRecords(before, after)
	change := ListChange{List: plain(c.tokenOf(key)), State: listChanged}
	switch {
	case before == nil:
		change.State = listNew
	case after == nil:
		change.State = listGone
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f := &c.report.Follows
	for _, r := range changes {
		follows, unfollows := f.Follows, f.Unfollows
		f.add(r.was, r.is)
		if begun, ended := f.Follows-follows, f.Unfollows-unfollows; begun+ended > 0 {
			c.accounts.add(r.address, begun, ended)
			change.Follows, change.Unfollows = change.Follows+begun, change.Unfollows+ended
		}
		countTags(&c.tags, r.had, r.tags)
	}
	switch change.State {
	case listNew:
		f.OfNew += change.Follows
		c.report.Lists.New++
	case listGone:
		f.OfGone += change.Unfollows
		c.report.Lists.Gone++
	default:
		c.report.Lists.Changed++
	}
	if change.Follows+change.Unfollows > 0 {
		c.lists.add(change)
	}
	return nil
}

func (f *Follows) add(was, is rules.State) {
	count := func(bit rules.State, begun, ended *int) {
		switch {
		case was&bit == 0 && is&bit != 0:
			*begun++
		case was&bit != 0 && is&bit == 0:
			*ended++
		}
	}
	count(rules.Follow, &f.Follows, &f.Unfollows)
	count(rules.Block, &f.Blocks, &f.Unblocks)
	count(rules.Mute, &f.Mutes, &f.Unmutes)
}

// diffRecords returns the accounts that a list holds with different tags, or in only one of the sites, in no
// particular order.
func diffRecords(before, after []byte) (changes []recordChange) {
	held := map[site.Address][]byte{}
	for r := range scan.HeldRecords(before) {
		if address, err := site.ParseAddress(r.Address); err == nil { // HeldRecords has checked it
			held[address] = r.Tags
		}
	}
	for r := range scan.HeldRecords(after) {
		address, err := site.ParseAddress(r.Address)
		if err != nil {
			continue
		}
		had, was := held[address]
		delete(held, address)
		switch {
		case !was:
			changes = append(changes, recordChange{address: address, is: scan.StateOf(r.Tags), tags: r.Tags})
		case !bytes.Equal(had, r.Tags):
			changes = append(changes, recordChange{address, scan.StateOf(had), scan.StateOf(r.Tags), r.Tags, had})
		}
	}
	for address, had := range held {
		changes = append(changes, recordChange{address: address, was: scan.StateOf(had), had: had})
	}
	return changes
}

func checkRecords(body []byte) error {
	if body != nil && (!bytes.HasPrefix(body, []byte(`{"records":[`)) || !bytes.HasSuffix(body, []byte(`]}`))) {
		return fmt.Errorf("records: %w", site.ErrMalformed)
	}
	return nil
}

// accountsOf returns the accounts that lists followed and unfollowed most.
func accountsOf(c *counter[site.Address]) Accounts {
	gained, lost := mostChanged(c, site.Address.Compare, func(account site.Address, follows, unfollows int) AccountChange {
		return AccountChange{Address: plain(account.String()), Follows: follows, Unfollows: unfollows}
	})
	return Accounts{len(c.counts), gained, lost, c.skipped}
}
