package answer

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"unicode/utf8"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/site/scan"
	"github.com/followpress/followpress/storage"
)

// userFollowerState answers with what the primary list of the other account says of the user.
func (c *computation) userFollowerState() error {
	user, err := c.addressOf(c.ask.User)
	if err != nil {
		return err
	}
	other, err := c.lookUp(c.ask.Other)
	if err != nil {
		return err
	}
	state, err := c.state(other.list, other.held, user)
	if err != nil {
		return err
	}
	return c.add([]byte(`{"addressUser":"`+user+`","addressFollower":"`+other.address+`","state":`), scan.AppendState(nil, state), []byte(`}`))
}

// listFollowerState answers with what the primary list of the other account says of the account of the
// list.
func (c *computation) listFollowerState() error {
	s, err := c.lookUpList(c.ask.TokenID)
	if err != nil {
		return err
	}
	other, err := c.lookUp(c.ask.Other)
	if err != nil {
		return err
	}
	state, err := c.state(other.list, other.held, s.address)
	if err != nil {
		return err
	}
	return c.addState(c.ask.TokenID, other.address, state)
}

// buttonState answers with what the list, or the primary list of the user, says of the other account.
func (c *computation) buttonState() error {
	list, held, err := c.findList()
	if err != nil {
		return err
	}
	other, err := c.addressOf(c.ask.Other)
	if err != nil {
		return err
	}
	state, err := c.state(list, held, other)
	if err != nil {
		return err
	}
	return c.addState(list, other, state)
}

func (c *computation) addState(list, address string, state rules.State) error {
	return c.add([]byte(`{"token_id":`+listOrNull(list)+`,"address":"`+address+`","state":`), scan.AppendState(nil, state), []byte(`}`))
}

// state is what a list says of an address; nothing if there is no list.
func (c *computation) state(list string, held int, address string) (rules.State, error) {
	states := map[string]rules.State{address: 0}
	err := c.fillStates(list, held, states)
	return states[address], err
}

// ParseBatch reads the body of a batch. ok is false if it is not a JSON array, in UTF-8, of 1 to site.MaxBatch
// texts or nulls.
func ParseBatch(body []byte) (users []*string, ok bool) {
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) || !utf8.Valid(body) || !json.Valid(body) {
		return nil, false
	}
	if json.Unmarshal(body, &users) != nil || len(users) < 1 || len(users) > site.MaxBatch {
		return nil, false
	}
	return users, true
}

// buttonStates answers with what a list says of each of many users.
func (c *computation) buttonStates() error {
	if err := c.expect(c.ctx, 2*len(c.users)*stateBytes, len(c.users)); err != nil {
		return err
	}
	// The list comes first: without one there is nothing to look up.
	if err := c.hasList(); err != nil {
		return err
	}
	addresses, err := c.addressesOf(c.users)
	if err != nil {
		return err
	}
	states := make(map[string]rules.State, len(c.users))
	for _, address := range addresses {
		states[address] = 0
	}
	if err := c.fillStates(c.ask.TokenID, anyNumber, states); err != nil {
		return err
	}
	c.body = append(c.body, '[')
	for i, user := range c.users {
		address, sent := addresses[i], []byte("null")
		if user != nil {
			sent = rawjson.AppendString(nil, *user)
		}
		err := c.addEntry(i == 0, len(sent), func(b []byte) []byte {
			b = append(append(b, `{"token_id":"`...), c.ask.TokenID...)
			b = append(b, `","address":`...)
			if address == "" {
				return append(append(b, sent...), `,"state":null,"error":"ENS name not valid or does not exist"}`...)
			}
			b = append(append(append(b, '"'), address...), `","state":`...)
			return append(scan.AppendState(b, states[address]), '}')
		})
		if err != nil {
			return err
		}
	}
	return c.addText("]")
}

// hasList returns an error if there is no list that the path names.
func (c *computation) hasList() error {
	err := c.use(c.root.Config.ListKey(c.ask.TokenID, site.Records), func([]byte) error { return nil })
	if errors.Is(err, storage.ErrNotFound) {
		return &ProblemError{site.NoSuchList}
	}
	return err
}

// addressesOf returns the addresses of users, "" for an unknown name and for nil. It reads each bucket once.
func (c *computation) addressesOf(users []*string) ([]string, error) {
	addresses := make([]string, len(users))
	type named struct {
		name string
		i    int
	}
	buckets := map[string][]named{}
	for i, sent := range users {
		if sent == nil {
			continue
		}
		switch user, isAddress, ok := site.ParseUser(*sent); {
		case isAddress:
			addresses[i] = user
		case ok:
			bucket := site.UserBucket(user, c.root.BucketDigits)
			buckets[bucket] = append(buckets[bucket], named{user, i})
		}
	}
	names := slices.Collect(maps.Keys(buckets))
	key := func(n int) site.Key { return site.UserBucketKey(names[n]) }
	const bucketBytes = 16 << 10 // about
	n := 0
	for o, err := range c.m.readAhead(c.ctx, c.read, key, 0, len(names), bucketBytes) {
		if err != nil {
			return nil, fetch.MixedIfAbsent(err)
		}
		for _, user := range buckets[names[n]] {
			node, known, nodeErr := scan.FindUserNode(o.Body, user.name)
			if err = nodeErr; err != nil {
				break
			}
			if known {
				addresses[user.i] = node.Address
			}
		}
		o.Release()
		if err != nil {
			return nil, err
		}
		n++
	}
	return addresses, nil
}
