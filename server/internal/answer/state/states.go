// Package state answers with the states that lists record for accounts: follow, block, mute.
package state

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/server/internal/answer/lookup"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/site/scan"
	"github.com/followpress/followpress/storage"
)

// UserFollower answers with the state that the other account's primary list records for the user.
func UserFollower(a *compute.Answer) error {
	user, err := lookup.Address(a, a.Ask.User)
	if err != nil {
		return err
	}
	other, err := lookup.User(a, a.Ask.Other)
	if err != nil {
		return err
	}
	said, err := state(a, other.List, other.Held, user)
	if err != nil {
		return err
	}
	return a.Add([]byte(`{"addressUser":"`+user+`","addressFollower":"`+other.Address+`","state":`), scan.AppendState(nil, said), []byte(`}`))
}

// ListFollower answers with the state that the other account's primary list records for the account
// of the list.
func ListFollower(a *compute.Answer) error {
	s, err := lookup.List(a, a.Ask.TokenID)
	if err != nil {
		return err
	}
	other, err := lookup.User(a, a.Ask.Other)
	if err != nil {
		return err
	}
	said, err := state(a, other.List, other.Held, s.Address)
	if err != nil {
		return err
	}
	return addState(a, a.Ask.TokenID, other.Address, said)
}

// Button answers with the state that the list, or the user's primary list, records for the other
// account.
func Button(a *compute.Answer) error {
	list, held, err := lookup.AskedList(a)
	if err != nil {
		return err
	}
	other, err := lookup.Address(a, a.Ask.Other)
	if err != nil {
		return err
	}
	said, err := state(a, list, held, other)
	if err != nil {
		return err
	}
	return addState(a, list, other, said)
}

func addState(a *compute.Answer, list, address string, state rules.State) error {
	return a.Add([]byte(`{"token_id":`+lookup.ListOrNull(list)+`,"address":"`+address+`","state":`), scan.AppendState(nil, state), []byte(`}`))
}

// state returns the state that a list records for an address; no state for the list "".
func state(a *compute.Answer, list string, held int, address string) (rules.State, error) {
	states := map[string]rules.State{address: 0}
	err := lookup.States(a, list, held, states)
	return states[address], err
}

// Relationship answers with the states that two accounts' primary lists record for each other.
func Relationship(a *compute.Answer) error {
	user, err := lookup.User(a, a.Ask.User)
	if err != nil {
		return err
	}
	other, err := lookup.User(a, a.Ask.Other)
	if err != nil {
		return err
	}
	by, err := state(a, user.List, user.Held, other.Address)
	if err != nil {
		return err
	}
	of, err := state(a, other.List, other.Held, user.Address)
	if err != nil {
		return err
	}
	b := []byte(`{"source":"` + user.Address + `","target":"` + other.Address + `","state":{`)
	for _, member := range []struct {
		name string
		set  bool
	}{
		{`"is_following":`, by&rules.Follow != 0}, {`,"is_followed_by":`, of&rules.Follow != 0},
		{`,"is_blocked":`, by&rules.Block != 0}, {`,"is_blocked_by":`, of&rules.Block != 0},
		{`,"is_muted":`, by&rules.Mute != 0}, {`,"is_muted_by":`, of&rules.Mute != 0},
	} {
		b = strconv.AppendBool(append(b, member.name...), member.set)
	}
	return a.Add(b, []byte("}}"))
}

// Buttons answers with the states that a list records for many users.
func Buttons(a *compute.Answer) error {
	if err := a.Expect(2*len(a.Users)*compute.StateEntryBytes, len(a.Users)); err != nil {
		return err
	}
	// Check the list first: without it there is nothing to look up.
	if err := hasList(a); err != nil {
		return err
	}
	addresses, err := addressesOf(a, a.Users)
	if err != nil {
		return err
	}
	states := make(map[string]rules.State, len(a.Users))
	for _, address := range addresses {
		states[address] = 0
	}
	if err := lookup.States(a, a.Ask.TokenID, lookup.AnyNumber, states); err != nil {
		return err
	}
	a.Body = append(a.Body, '[')
	for i, user := range a.Users {
		address, sent := addresses[i], []byte("null")
		if user != nil {
			sent = rawjson.AppendString(nil, *user)
		}
		err := a.AddEntry(i == 0, len(sent), func(b []byte) []byte {
			b = append(append(b, `{"token_id":"`...), a.Ask.TokenID...)
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
	return a.AddText("]")
}

// hasList fails unless the list that the path names exists.
func hasList(a *compute.Answer) error {
	err := a.Use(a.Root.Config.ListKey(a.Ask.TokenID, site.Records), func([]byte) error { return nil })
	if errors.Is(err, storage.ErrNotFound) {
		return &compute.ProblemError{Problem: site.NoSuchList}
	}
	return err
}

// addressesOf returns the addresses of users, "" for an unknown name or nil. It reads each bucket
// once.
func addressesOf(a *compute.Answer, users []*string) ([]string, error) {
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
			bucket := site.UserBucket(user, a.Root.BucketDigits)
			buckets[bucket] = append(buckets[bucket], named{user, i})
		}
	}
	names := slices.Collect(maps.Keys(buckets))
	key := func(n int) site.Key { return site.UserBucketKey(names[n]) }
	const bucketBytes = 16 << 10 // approximately
	n := 0
	for o, err := range a.Objects(compute.Series{Key: key, End: len(names), Bytes: bucketBytes}) {
		if err != nil {
			return nil, err
		}
		for _, user := range buckets[names[n]] {
			node, known, err := scan.FindUserNode(o.Body, user.name)
			if err != nil {
				return nil, err
			}
			if known {
				addresses[user.i] = node.Address
			}
		}
		n++
	}
	return addresses, nil
}
