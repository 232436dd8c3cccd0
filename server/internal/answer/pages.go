package answer

import (
	"fmt"
	"math"
	"strconv"

	"github.com/followpress/followpress/server/internal/cache"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/site/scan"
)

// following answers with a page of what a list holds: all of it, or the follows.
func following(all bool) func(*computation) error {
	return func(c *computation) error {
		s, err := c.findSubject()
		if err != nil {
			return err
		}
		t := c.heldTable(s)
		page := c.selection(t, all)
		if c.ask.Mutuals {
			followers := c.followerTable(s)
			page.objects = followers.shardCount() * shardObjects
		}
		return c.followingPage(s, t, page, nil)
	}
}

// appendNameAvatar appends the profile that searches show.
func appendNameAvatar(b, name, avatar []byte) []byte {
	b = append(append(b, `,"ens":{"name":`...), name...)
	b = append(append(b, `,"avatar":`...), avatar...)
	return append(b, '}')
}

// followingPage appends a page of what the list of a subject holds. appendENS appends the profile to an entry; nil for
// none, or for that of ask.ENS.
func (c *computation) followingPage(of subject, t table, s selection, appendENS func(b, name, avatar []byte) []byte) error {
	selected, err := c.selectRows(t, s)
	if err != nil {
		return err
	}
	profiles, err := c.profiles(t, &selected)
	if err != nil {
		return err
	}
	mutual, err := c.mutualsAmong(of, t, &selected)
	if err != nil {
		return err
	}
	if err := c.growFor(&selected, profiles); err != nil {
		return err
	}
	if err := c.addText(`{"following":[`); err != nil {
		return err
	}
	for i := range selected.len() {
		r, err := scan.ParseHeldRow(selected.at(i))
		if err != nil {
			return err
		}
		ens := profiles.at(i)
		err = c.addEntry(i == 0, len(selected.at(i))+len(ens), func(b []byte) []byte {
			b = appendFollowing(b, r.Version, r.Address, r.Tags)
			if appendENS != nil {
				b = appendENS(b, r.Name, r.Avatar)
			}
			if c.ask.Mutuals {
				b = appendIsMutual(b, mutual[string(r.Address)])
			}
			return append(append(c.appendAsked(b, scan.StateOf(r.Tags)), ens...), '}')
		})
		if err != nil {
			return err
		}
	}
	return c.addText("]}")
}

// appendFollowing appends what a list holds, without the closing brace.
func appendFollowing(b []byte, version uint32, address, tags []byte) []byte {
	b = strconv.AppendUint(append(b, `{"version":`...), uint64(version), 10)
	b = append(append(b, `,"record_type":"`+rules.TypeAddress+`","data":"`...), address...)
	b = append(append(b, `","address":"`...), address...)
	return append(append(b, `","tags":`...), tags...)
}

// followers answers with a page of who holds an account: all of them, or those who follow it.
func followers(all bool) func(*computation) error {
	return func(c *computation) error {
		s, err := c.findSubject()
		if err != nil {
			return err
		}
		t := c.followerTable(s)
		return c.followersPage("followers", s, t, c.selection(t, all), c.appendFollower(s))
	}
}

// appendFollower appends the members of a follower after the address, from its closing quotation mark on.
func (c *computation) appendFollower(s subject) func(b []byte, r scan.FollowerRow, state rules.State, ens []byte) []byte {
	return func(b []byte, r scan.FollowerRow, state rules.State, ens []byte) []byte {
		b = append(append(b, `","tags":`...), r.Tags...)
		b = appendStates(b, state)
		b = appendMillis(append(b, `,"updated_at":`...), r.Time)
		if c.ask.Mutuals {
			b = appendIsMutual(b, isMutual(s.address, r.Address, r.Tags, r.State))
		}
		return append(b, ens...)
	}
}

func appendIsMutual(b []byte, is bool) []byte {
	return strconv.AppendBool(append(b, `,"is_mutual":`...), is)
}

// appendAsked appends the states of an entry that the request includes.
func (c *computation) appendAsked(b []byte, s rules.State) []byte {
	if c.ask.Blocked {
		b = strconv.AppendBool(append(b, `,"is_blocked":`...), s&rules.Block != 0)
	}
	if c.ask.Muted {
		b = strconv.AppendBool(append(b, `,"is_muted":`...), s&rules.Mute != 0)
	}
	return b
}

// searchFollowers answers with a page of the followers that match a term, the latest first.
func (c *computation) searchFollowers() error {
	s, err := c.findSubject()
	if err != nil {
		return err
	}
	page := selection{match: c.matcher(), offset: c.ask.Offset, limit: c.ask.Limit}
	return c.followersPage("followers", s, c.followerTable(s), page, func(b []byte, r scan.FollowerRow, state rules.State, _ []byte) []byte {
		b = appendNameAvatar(append(b, '"'), r.Name, r.Avatar)
		b = append(append(b, `,"tags":`...), r.Tags...)
		return appendStates(b, state)
	})
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

// followersPage appends a page of who holds an account, as a member of that name. appendRest appends the members
// of an entry after the address, from its closing quotation mark on.
func (c *computation) followersPage(member string, s subject, t table, page selection, appendRest func(b []byte, r scan.FollowerRow, state rules.State, ens []byte) []byte) error {
	selected, err := c.selectRows(t, page)
	if err != nil {
		return err
	}
	profiles, err := c.profiles(t, &selected)
	if err != nil {
		return err
	}
	states, err := c.statesTowards(s, selected)
	if err != nil {
		return err
	}
	if err := c.growFor(&selected, profiles); err != nil {
		return err
	}
	if err := c.addText(`{"` + member + `":[`); err != nil {
		return err
	}
	for i := range selected.len() {
		r, err := scan.ParseFollowerRow(selected.at(i))
		if err != nil {
			return err
		}
		ens, state := profiles.at(i), r.State
		if states != nil {
			state = states[string(r.Address)]
		}
		err = c.addEntry(i == 0, len(selected.at(i))+len(ens), func(b []byte) []byte {
			b = append(append(b, `{"efp_list_nft_token_id":"`...), r.List...)
			b = append(append(b, `","address":"`...), r.Address...)
			return append(appendRest(b, r, state, ens), '}')
		})
		if err != nil {
			return err
		}
	}
	return c.addText("]}")
}

// stateBytes is about what an entry of a map of states takes.
const stateBytes = 96

// statesTowards returns what a list that is not primary says of followers, by their addresses; nil for a
// primary list, whose states are in the rows.
func (c *computation) statesTowards(s subject, followers rows) (map[string]rules.State, error) {
	if s.primary || s.list == "" || followers.len() == 0 {
		return nil, nil
	}
	if err := c.take(followers.len() * stateBytes); err != nil {
		return nil, err
	}
	states := make(map[string]rules.State, followers.len())
	for i := range followers.len() {
		r, err := scan.ParseFollowerRow(followers.at(i))
		if err != nil {
			return nil, err
		}
		states[string(r.Address)] = 0
	}
	return states, c.fillStates(s.list, s.held, states)
}

// fillStates sets the states of addresses to what a list says of them.
func (c *computation) fillStates(list string, held int, states map[string]rules.State) error {
	return c.records(list, held, func(r scan.HeldRecord) error {
		if _, asked := states[string(r.Address)]; asked {
			states[string(r.Address)] = scan.StateOf(r.Tags)
		}
		return nil
	})
}

// Profiles are the members ens of the entries of a page; nil if it shows none.
type profiles [][]byte

func (p profiles) at(i int) []byte {
	if p == nil {
		return nil
	}
	return p[i]
}

// profiles reads the profiles of accounts in rows, if the request includes them, as far as a page may have
// them: the rows after them are left out. Those without a name have no member.
func (c *computation) profiles(t table, of *rows) (all profiles, err error) {
	if !c.ask.ENS {
		return nil, nil
	}
	keys := make([]site.Key, of.len())
	for i := range keys {
		r, err := t.parse(of.at(i))
		if err != nil {
			return nil, err
		}
		keys[i] = c.root.Config.UserObjectKey(string(r.address), site.Account)
	}
	size := len(of.text)
	for o, err := range c.m.readAhead(c.ctx, c.read, func(i int) site.Key { return keys[i] }, 0, len(keys), pageRowENSBytes) {
		if err != nil {
			return nil, fetch.MixedIfAbsent(err)
		}
		entry, err := c.profile(o)
		if err != nil {
			return nil, err
		}
		if size += len(entry); size > mostPageBytes && len(all) > 0 {
			of.spans = of.spans[:len(all)]
			break
		}
		all = append(all, entry)
	}
	return all, nil
}

// growFor makes room for the entries of a page, so that a large body does not double.
func (c *computation) growFor(page *rows, p profiles) error {
	bytes := entrySpare
	for i := range page.len() {
		bytes += len(page.at(i)) + len(p.at(i)) + entryBytes
	}
	return c.grow(bytes)
}

// entryBytes is about what an entry of a page has beside the texts of its row and its profile.
const entryBytes = 256

// profile makes the member ens of an account, and releases the object.
func (c *computation) profile(account *cache.Object) ([]byte, error) {
	defer account.Release()
	a, err := scan.ParseAccount(account.Body)
	if err != nil || !a.HasName() {
		return nil, err
	}
	if err := c.take(len(account.Body)); err != nil {
		return nil, err
	}
	return a.AppendEntry([]byte(`,"ens":`)), nil
}

// followingAddresses answers with the addresses that a list holds, in its order.
func (c *computation) followingAddresses() error {
	list, held, err := c.findList()
	if err != nil {
		return err
	}
	c.body = append(c.body, '[')
	first := true
	err = c.records(list, held, func(r scan.HeldRecord) error {
		err := c.addEntry(first, len(r.Address), func(b []byte) []byte {
			return append(append(append(b, '"'), r.Address...), '"')
		})
		first = false
		return err
	})
	if err != nil {
		return err
	}
	return c.addText("]")
}

// exportState answers with all follows of a list, in its order.
func (c *computation) exportState() error {
	c.body = append(c.body, `{"following":[`...)
	first := true
	err := c.records(c.ask.TokenID, anyNumber, func(r scan.HeldRecord) error {
		if scan.StateOf(r.Tags) != rules.Follow {
			return nil
		}
		err := c.addEntry(first, len(r.Tags), func(b []byte) []byte { return append(appendFollowing(b, r.Version, r.Address, r.Tags), '}') })
		first = false
		return err
	})
	if err != nil {
		return err
	}
	return c.addText("]}")
}

// listRecords answers with the records of the primary list of a user.
func (c *computation) listRecords() error {
	s, err := c.lookUp(c.ask.User)
	if err != nil {
		return err
	}
	if s.list == "" {
		return c.addText(`{"records":[]}`)
	}
	return c.useKnown(c.root.Config.ListKey(s.list, site.Records), func(records []byte) error { return c.add(records) })
}

// commonBytes is about what an entry of a set of addresses takes.
const commonBytes = 48

// commonFollowers answers with the accounts that a user follows and that follow the leader: the user, unless another
// one is named.
func (c *computation) commonFollowers() error {
	user, err := c.lookUp(c.ask.User)
	if err != nil {
		return err
	}
	led := user
	if c.ask.Leader != "" {
		leader, _, ok := site.ParseUser(c.ask.Leader)
		if !ok {
			return &ProblemError{site.NoSuchName}
		}
		if led, err = c.lookUp(leader); err != nil {
			return err
		}
	}
	common, length, err := c.common(user, c.followerTable(led))
	if err != nil {
		return err
	}
	if err := c.addText(`{"results":[`); err != nil {
		return err
	}
	for i := range common.len() {
		row := common.at(i)
		r, err := scan.ParseFollowerRow(row)
		if err != nil {
			return err
		}
		err = c.addEntry(i == 0, len(row), func(b []byte) []byte {
			b = append(append(b, `{"address":"`...), r.Address...)
			b = append(append(b, `","name":`...), r.Name...)
			b = append(append(b, `,"avatar":`...), r.Avatar...)
			b = append(append(b, `,"header":`...), r.Header...)
			return fmt.Appendf(b, `,"mutuals_rank":"%d"}`, r.MutualsRank)
		})
		if err != nil {
			return err
		}
	}
	return c.addText(fmt.Sprintf(`],"length":%d}`, length))
}

// common returns the page of the followers in a table that a user follows, by their mutuals rank, and how many
// there are.
func (c *computation) common(user subject, t table) (page rows, length int, err error) {
	if user.list == "" || t.total == 0 {
		return rows{}, 0, nil
	}
	if err := c.take(user.held * commonBytes); err != nil {
		return rows{}, 0, err
	}
	followed := make(map[site.Address]struct{}, user.held)
	err = c.records(user.list, user.held, func(r scan.HeldRecord) error {
		if a, err := site.ParseAddress(r.Address); err == nil && scan.StateOf(r.Tags) == rules.Follow {
			followed[a] = struct{}{}
		}
		return nil
	})
	if err != nil {
		return rows{}, 0, err
	}
	var order []sortKey // by mutuals rank
	err = c.eachRow(t, func(i int, row []byte) error {
		r, err := scan.ParseFollowerRow(row)
		if err != nil {
			return err
		}
		a, err := site.ParseAddress(r.Address)
		if _, ok := followed[a]; !ok || err != nil || scan.StateOf(r.Tags) != rules.Follow {
			return err
		}
		last := math.MaxUint32 // unranked ones come after all others
		if r.MutualsRank > 0 {
			last = r.MutualsRank
		}
		return c.appendSortKey(&order, tableRow{address: r.Address, followers: math.MaxUint32 - last}, i)
	})
	if err != nil {
		return rows{}, 0, err
	}
	indexes, err := c.pageOf(order, c.ask.Offset, c.ask.Limit)
	if err != nil {
		return rows{}, 0, err
	}
	page, err = c.rowsAt(t, indexes)
	return page, len(order), err
}
