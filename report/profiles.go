package report

import (
	"bytes"
	"cmp"
	"strconv"

	"github.com/followpress/followpress/site"
)

// mostProfiles bounds the profiles that a report shows.
const mostProfiles = 50

// A profileCounter counts the accounts whose profiles changed. Under the API spec, several lists may
// show the same one.
type profileCounter struct {
	most     int
	counted  map[site.Address]struct{}
	found    Profiles
	examples *top[ProfileChange]
}

func newProfileCounter(most int) profileCounter {
	return profileCounter{most: most, counted: map[site.Address]struct{}{}, examples: newTop(mostProfiles, byRank)}
}

// byRank orders profiles by the rank of their accounts.
func byRank(a, b ProfileChange) int {
	unranked := func(p ProfileChange) int {
		if p.Rank == 0 {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(unranked(a), unranked(b)), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Address, b.Address))
}

// compareDetails compares two answers to /details. If the list has got another account, that is
// another profile and not a changed one.
func (c *comparison) compareDetails(key site.Key, before, after []byte) error {
	was, had, err := site.DecodeDetails(before)
	if err != nil {
		return c.from.explain(key, err)
	}
	is, has, err := site.DecodeDetails(after)
	if err != nil {
		return c.to.explain(key, err)
	}
	if had != has {
		return nil
	}
	change := ProfileChange{Address: has.String(), Changed: []string{}}
	for _, member := range []struct {
		name    string
		changed bool
	}{
		{"name", was.ENS.Name != is.ENS.Name}, {"avatar", was.ENS.Avatar != is.ENS.Avatar}, {"header", was.ENS.Header != is.ENS.Header},
		{"texts", was.ENS.Display != is.ENS.Display || !bytes.Equal(was.ENS.Records, is.ENS.Records)},
	} {
		if member.changed {
			change.Changed = append(change.Changed, member.name)
		}
	}
	if len(change.Changed) == 0 {
		return nil
	}
	change.NameFrom, change.NameTo = shorten(was.ENS.Name), shorten(is.ENS.Name)
	change.AvatarFrom, change.AvatarTo = shorten(was.ENS.Avatar), shorten(is.ENS.Avatar)
	if change.Rank, err = strconv.Atoi(is.Ranks.Followers); err != nil || change.Rank < 0 {
		change.Rank = 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.profiles.add(has, change)
	return nil
}

func (p *profileCounter) add(address site.Address, change ProfileChange) {
	if _, ok := p.counted[address]; ok {
		return
	}
	if len(p.counted) >= p.most {
		p.found.NotCounted++
		return
	}
	p.counted[address] = struct{}{}
	p.found.Changed++
	for _, name := range change.Changed {
		switch name {
		case "name":
			p.found.Names++
		case "avatar":
			p.found.Avatars++
		case "header":
			p.found.Headers++
		case "texts":
			p.found.Texts++
		}
	}
	p.examples.add(change)
}

func (p *profileCounter) result() Profiles {
	p.found.Examples = p.examples.first
	return p.found
}
