package answer

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/site/scan"
)

// relationship answers with what the primary lists of two accounts say of each other.
func (c *computation) relationship() error {
	user, err := c.lookUp(c.ask.User)
	if err != nil {
		return err
	}
	other, err := c.lookUp(c.ask.Other)
	if err != nil {
		return err
	}
	by, err := c.state(user.list, user.held, other.address)
	if err != nil {
		return err
	}
	of, err := c.state(other.list, other.held, user.address)
	if err != nil {
		return err
	}
	b := []byte(`{"source":"` + user.address + `","target":"` + other.address + `","state":{`)
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
	return c.add(b, []byte("}}"))
}

// relationships answers with the accounts that the user's list holds with a tag, in its order, or with those
// whose primary lists hold the user with it, by the number of the list.
func (c *computation) relationships() error {
	s, err := c.lookUp(c.ask.User)
	if err != nil {
		return err
	}
	tagged := scan.TagFilter{string(rawjson.AppendString(nil, c.ask.Tag)): {}}
	if err := c.addText(`{"relationships":[`); err != nil {
		return err
	}
	if c.ask.Incoming {
		err = c.taggedBy(s, tagged)
	} else {
		err = c.tagged(s, tagged)
	}
	if err != nil {
		return err
	}
	return c.addText("]}")
}

// tagged appends the accounts that the list of a user holds with a tag.
func (c *computation) tagged(s subject, tagged scan.TagFilter) error {
	skip, added := c.ask.Offset, 0
	return c.records(s.list, s.held, func(r scan.HeldRecord) error {
		switch {
		case !tagged.Match(r.Tags) || added == c.ask.Limit:
			return nil
		case skip > 0:
			skip--
			return nil
		}
		added++
		return c.addTagged(added == 1, r.Address, r.Tags)
	})
}

func (c *computation) addTagged(first bool, address, tags []byte) error {
	return c.addEntry(first, len(tags), func(b []byte) []byte {
		b = append(append(b, `{"address":"`...), address...)
		return append(append(append(b, `","tags":`...), tags...), '}')
	})
}

// taggedBy appends the accounts whose primary lists hold a user with a tag.
func (c *computation) taggedBy(s subject, tagged scan.TagFilter) error {
	type holder struct {
		list  []byte
		index int
	}
	const holderBytes = 48 // without the text of the list
	var holders []holder
	t := c.followerTable(s)
	err := c.eachRow(t, func(i int, row []byte) error {
		r, err := scan.ParseFollowerRow(row)
		if err != nil || !tagged.Match(r.Tags) {
			return err
		}
		if err := c.take(2*holderBytes + len(r.List)); err != nil {
			return err
		}
		holders = append(holders, holder{bytes.Clone(r.List), i})
		return nil
	})
	if err != nil {
		return err
	}
	slices.SortFunc(holders, func(a, b holder) int {
		return cmp.Or(cmp.Compare(len(a.list), len(b.list)), bytes.Compare(a.list, b.list))
	})
	var indexes []int
	for _, h := range window(holders, c.ask.Offset, c.ask.Limit) {
		indexes = append(indexes, h.index)
	}
	page, err := c.rowsAt(t, indexes)
	if err != nil {
		return err
	}
	for i := range page.len() {
		r, err := scan.ParseFollowerRow(page.at(i))
		if err != nil {
			return err
		}
		if err := c.addTagged(i == 0, r.Address, r.Tags); err != nil {
			return err
		}
	}
	return nil
}

// mutuals answers with a page of the followers whom the user follows.
func (c *computation) mutuals() error {
	s, err := c.lookUp(c.ask.User)
	if err != nil {
		return err
	}
	t := c.followerTable(s)
	page := c.selection(t, false)
	page.mutualOf = s.address
	return c.followersPage("mutuals", s, t, page, c.appendFollower(s))
}

// isMutual reports whether the account of a table of followers and the follower of a row follow each other.
func isMutual(account string, follower []byte, tags []byte, back rules.State) bool {
	return scan.StateOf(tags) == rules.Follow && rules.IsMutual(account, string(follower), back&rules.Follow != 0)
}

// mutualsAmong returns which of the accounts in rows of a list are mutuals of the account of the list.
func (c *computation) mutualsAmong(s subject, t table, page *rows) (map[string]bool, error) {
	if !c.ask.Mutuals {
		return nil, nil
	}
	if err := c.take(page.len() * stateBytes); err != nil {
		return nil, err
	}
	mutual := make(map[string]bool, page.len())
	for i := range page.len() {
		r, err := t.parse(page.at(i))
		if err != nil {
			return nil, err
		}
		mutual[string(r.address)] = false
	}
	if page.len() == 0 || s.followers == 0 {
		return mutual, nil
	}
	return mutual, c.eachRow(c.followerTable(s), func(_ int, row []byte) error {
		r, err := scan.ParseFollowerRow(row)
		if _, asked := mutual[string(r.Address)]; asked && err == nil {
			mutual[string(r.Address)] = isMutual(s.address, r.Address, r.Tags, r.State)
		}
		return err
	})
}

// avatar answers with the URL of the avatar of a user.
func (c *computation) avatar() error {
	return c.userFile(site.Account, func(body []byte) error {
		if body == nil {
			return &ProblemError{site.NoAvatar}
		}
		account, err := scan.ParseAccount(body)
		if err != nil {
			return err
		}
		location, ok := redirectURL(string(scan.Text(account.Avatar)))
		if !ok {
			return &ProblemError{site.NoAvatar}
		}
		return c.addText(location)
	})
}
