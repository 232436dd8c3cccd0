package report

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/followpress/followpress/site"
)

const mostProfiles = 50

// A profileCounter counts the accounts whose profiles changed. Under the API spec, several lists may show an
// account's profile, and a refresh may have replaced one of them. Then the primary list counts, or else the one with
// the smallest number, in any order of comparisons.
type profileCounter struct {
	most     int
	shown    map[site.Address]shownBy
	found    Profiles
	examples *top[ProfileChange]
}

// A shownBy is the place of a changed profile, and its changes.
type shownBy struct {
	list    string // "" under the API efp
	primary bool
	changed []Text
}

// isBetter reports whether a list takes precedence over another one of the same account.
func (s shownBy) isBetter(than shownBy) bool {
	if s.primary != than.primary {
		return s.primary
	}
	return site.CompareTokenIDs(s.list, than.list) < 0
}

func newProfileCounter(most int) profileCounter {
	return profileCounter{most: most, shown: map[site.Address]shownBy{}, examples: newTop(mostProfiles, byRank)}
}

func byRank(a, b ProfileChange) int {
	unranked := func(p ProfileChange) int {
		if p.Rank == 0 {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(unranked(a), unranked(b)), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Address, b.Address))
}

// sameProfile reports whether two details start with the same account and profile. Most details differ only in their
// ranks, at the end, so decoding them would take most of the time.
func sameProfile(before, after []byte) bool {
	const end = `},"ranks":{` // never part of a profile's text, because JSON escapes quotation marks
	i, j := bytes.LastIndex(before, []byte(end)), bytes.LastIndex(after, []byte(end))
	return i >= 0 && i == j && bytes.Equal(before[:i], after[:j])
}

// compareDetails compares two answers to /details. A list with a new account shows another profile, not a changed
// one.
func (c *comparison) compareDetails(key site.Key, before, after []byte) error {
	if sameProfile(before, after) {
		return nil
	}
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
	change := ProfileChange{Address: plain(has.String()), Changed: []Text{}}
	for _, member := range []struct {
		name    Text
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
	by := shownBy{changed: change.Changed}
	if !c.config.EFP() {
		by.list = c.tokenOf(key)
		by.primary = is.PrimaryList != nil && *is.PrimaryList == by.list
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.profiles.add(has, by, change)
	return nil
}

func (p *profileCounter) add(address site.Address, by shownBy, change ProfileChange) {
	other, known := p.shown[address]
	switch {
	case known && !by.isBetter(other):
		return
	case known:
		p.count(other.changed, -1)
		p.examples.first = slices.DeleteFunc(p.examples.first, func(x ProfileChange) bool { return x.Address == change.Address })
	case len(p.shown) >= p.most:
		p.found.NotCounted++
		return
	default:
		p.found.Changed++
	}
	p.shown[address] = by
	p.count(by.changed, 1)
	p.examples.add(change)
}

func (p *profileCounter) count(changed []Text, n int) {
	for _, name := range changed {
		switch name {
		case "name":
			p.found.Names += n
		case "avatar":
			p.found.Avatars += n
		case "header":
			p.found.Headers += n
		case "texts":
			p.found.Texts += n
		}
	}
}

func (p *profileCounter) result() Profiles {
	p.found.Examples = p.examples.first
	return p.found
}
