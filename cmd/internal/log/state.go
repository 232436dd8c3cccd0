package log

import (
	"errors"
	"fmt"
	"iter"

	"github.com/followpress/followpress/cmd/internal/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain"
	profiles "github.com/followpress/followpress/source/profile"
	"github.com/followpress/followpress/source/replay"
)

// fromState reads the events of a state.
func (c *Command) fromState(q *query) (lines []line, err error) {
	d, err := (&snapshot.Nodes{Deployment: c.Deployment}).Read()
	if err != nil {
		return nil, err
	}
	state, err := chain.Open(c.From, d)
	if errors.Is(err, chain.ErrBusy) {
		return nil, fmt.Errorf("%s: %w: read a copy of it, or a site", c.From, err)
	} else if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, state.Close()) }()
	asOf, err := state.AsOf()
	if err != nil {
		return nil, err
	}
	since, err := q.since(asOf)
	if err != nil {
		return nil, err
	}
	names := profilesOf(c.From)
	of := replay.Query{}
	if of.User, err = q.find(names, "the state"); err != nil {
		return nil, err
	}
	if q.list != "" {
		id, err := source.ParseDecimal(q.list)
		if err != nil {
			return nil, err
		}
		of.List = &id
	}
	found, err := replay.History(state.Events, d, of)
	if err != nil {
		return nil, err
	}
	if q.list != "" && len(found) == 0 {
		return nil, fmt.Errorf("--list=%s: the state has no event of this list", q.list)
	}
	for _, h := range found {
		if h.At >= since && (q.all || h.Effect) {
			lines = append(lines, lineOf(&h))
		}
	}
	return lines, name(lines, names)
}

func lineOf(h *replay.Happening) line {
	l := line{time: h.Time, place: &place{h.Contract.Chain, h.Block, h.Index}, list: h.TokenID, told: h.Told, op: h.Value}
	if h.Account != nil {
		l.by.address = h.Account.String()
	}
	l.tell(h.Told)
	return l
}

// tell says what happened.
func (l *line) tell(told replay.Told) {
	if l.told = told; told.About != nil {
		l.about.address = told.About.String()
	}
}

// profilesOf are the profiles that a state keeps.
func profilesOf(state string) iter.Seq2[profile, error] {
	return func(yield func(profile, error) bool) {
		for p, err := range profiles.Profiles(state) {
			if !yield(profile{p.Address, p.ENS.Name, p.ENS.Fresh}, err) {
				return
			}
		}
	}
}
