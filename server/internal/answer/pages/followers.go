package pages

import (
	"strconv"

	"github.com/followpress/followpress/server/internal/answer/compute"
	"github.com/followpress/followpress/server/internal/answer/lookup"
	"github.com/followpress/followpress/server/internal/answer/table"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/site/scan"
)

// Followers answers with a page of the followers of an account.
func Followers(a *compute.Answer) error { return followers(a, false) }

// AllFollowers answers with a page of all accounts whose primary lists hold an account, followers
// or not.
func AllFollowers(a *compute.Answer) error { return followers(a, true) }

func followers(a *compute.Answer, all bool) error {
	s, err := lookup.Asked(a)
	if err != nil {
		return err
	}
	t := table.Followers(a, s)
	return followersPage(a, "followers", s, t, t.Asked(a, all), followerOf(a, s))
}

// Mutuals answers with a page of the followers that the user follows back.
func Mutuals(a *compute.Answer) error {
	s, err := lookup.User(a, a.Ask.User)
	if err != nil {
		return err
	}
	t := table.Followers(a, s)
	page := t.Asked(a, false)
	page.MutualOf = s.Address
	return followersPage(a, "mutuals", s, t, page, followerOf(a, s))
}

// SearchFollowers answers with a page of the followers that match a term, latest first.
func SearchFollowers(a *compute.Answer) error {
	s, err := lookup.Asked(a)
	if err != nil {
		return err
	}
	return followersPage(a, "followers", s, table.Followers(a, s), matching(a), func(b []byte, r scan.FollowerRow, state rules.State, _ []byte) []byte {
		b = appendNameAvatar(append(b, '"'), r.Name, r.Avatar)
		b = append(append(b, `,"tags":`...), r.Tags...)
		return appendStates(b, state)
	})
}

// An appendRest appends the members of a follower after the address, starting with the address's
// closing quotation mark.
type appendRest func(b []byte, r scan.FollowerRow, state rules.State, ens []byte) []byte

// followerOf returns the function that appends the followers of a subject.
func followerOf(a *compute.Answer, s lookup.Subject) appendRest {
	return func(b []byte, r scan.FollowerRow, state rules.State, ens []byte) []byte {
		b = append(append(b, `","tags":`...), r.Tags...)
		b = appendStates(b, state)
		b = compute.AppendMillis(append(b, `,"updated_at":`...), r.Time)
		if a.Ask.Mutuals {
			b = appendIsMutual(b, table.IsMutual(s.Address, r.Address, r.Tags, r.State))
		}
		return append(b, ens...)
	}
}

func appendStates(b []byte, s rules.State) []byte {
	for _, member := range []struct {
		name string
		bit  rules.State
	}{{`,"is_following":`, rules.Follow}, {`,"is_blocked":`, rules.Block}, {`,"is_muted":`, rules.Mute}} {
		b = strconv.AppendBool(append(b, member.name...), s&member.bit != 0)
	}
	return b
}

// followersPage appends a page of the accounts that hold an account, as a JSON member.
func followersPage(a *compute.Answer, member string, s lookup.Subject, t *table.Table, page table.Selection, rest appendRest) error {
	selected, err := t.Select(a, page)
	if err != nil {
		return err
	}
	profiles, err := profilesOf(a, t, &selected)
	if err != nil {
		return err
	}
	states, err := statesTowards(a, s, &selected)
	if err != nil {
		return err
	}
	if err := growFor(a, &selected, profiles); err != nil {
		return err
	}
	return compute.AddRows(a, `{"`+member+`":[`, &selected, scan.ParseFollowerRow, func(b []byte, i int, r scan.FollowerRow) []byte {
		state := r.State
		if states != nil {
			state = states[string(r.Address)]
		}
		b = append(append(b, `{"efp_list_nft_token_id":"`...), r.List...)
		b = append(append(b, `","address":"`...), r.Address...)
		return append(rest(b, r, state, profiles.at(i)), '}')
	}, "]}")
}

// statesTowards returns the states that a non-primary list records for followers, by address. It
// returns nil for a primary list, since its states are in the rows.
func statesTowards(a *compute.Answer, s lookup.Subject, followers *compute.Rows) (map[string]rules.State, error) {
	if s.Primary || s.List == "" || followers.Len() == 0 {
		return nil, nil
	}
	if err := a.Take(followers.Len() * compute.StateEntryBytes); err != nil {
		return nil, err
	}
	states := make(map[string]rules.State, followers.Len())
	for i := range followers.Len() {
		r, err := scan.ParseFollowerRow(followers.At(i))
		if err != nil {
			return nil, err
		}
		states[string(r.Address)] = 0
	}
	return states, lookup.States(a, s.List, s.Held, states)
}
