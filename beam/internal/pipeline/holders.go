package pipeline

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/followpress/followpress/beam/internal/dofn"
	"github.com/followpress/followpress/beam/internal/wire"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
)

func init() {
	dofn.Register7x1(&answerFn{})
	dofn.Register5x1(&hotHoldersFn{})
}

// An answerFn answers the requests for an account under one of its keys. It also orders the
// account's holders, unless the account is hot; then it sends them to a hotHoldersFn.
type answerFn struct {
	Config site.Config

	holderOrder
	hot  salts
	says map[site.Address]rules.State
}

// A request is a wire.Request with the state of its holder.
type request struct {
	wire.Request
	state rules.State
}

// ProcessElement answers. The side input has the hot accounts. It emits values of units by their
// keys, the requests for a hot account by its address, and parts of objects.
func (f *answerFn) ProcessElement(
	key string, values, hot func(*[]byte) bool, units, hotHolders, parts func(string, []byte), _ func(string, int64),
) error {
	f.hot.read(hot)
	if f.says == nil {
		f.says = map[site.Address]rules.State{}
	}
	clear(f.says)
	address := wire.KeyAddress(key)
	var shown wire.Shown
	var requests []request
	isHeld := false
	var value []byte
	for values(&value) {
		d := wire.Decode(value[1:])
		switch value[0] {
		case kindShown:
			shown = d.Shown()
		case kindHolds:
			for d.More() {
				state := rules.State(d.Byte())
				f.says[d.Address()] = state
			}
		case kindRequest:
			r := request{Request: d.Request()}
			isHeld = isHeld || r.IsHeld
			requests = append(requests, r)
		}
		if err := d.Err(); err != nil {
			return err
		}
		value = nil
	}
	for i := range requests {
		r := &requests[i]
		if r.Token != "" {
			r.state = f.says[r.Account]
		}
		if r.Answers && (len(shown.ENS) > 0 || shown.Followers > 0) {
			answer := wire.Answer{Record: r.Record, ENS: shown.ENS, SearchLen: shown.SearchLen, Followers: shown.Followers}
			units(r.Unit, answer.Append([]byte{kindAnswer}))
		}
	}
	if f.hot.count(address) > 1 {
		hotHolders(wire.AddressKey(address), appendHotHolders(&shown, isHeld, requests))
		return nil
	}
	h := heldAccount{address: address, shown: &shown, isHeld: isHeld, holders: slices.DeleteFunc(requests, func(r request) bool { return r.Token == "" })}
	f.order(f.Config, &h, units, parts)
	return nil
}

func (f *answerFn) FinishBundle(_ func(*[]byte) bool, _, _, _ func(string, []byte), stats func(string, int64)) {
	f.stats.flush(stats)
}

// appendHotHolders packs a hot account's data under one of its keys.
func appendHotHolders(shown *wire.Shown, isHeld bool, requests []request) []byte {
	b := wire.AppendText(wire.AppendBool(nil, isHeld), shown.Append(nil))
	for i := range requests {
		if r := &requests[i]; r.Token != "" {
			b = append(wire.AppendText(b, r.Append(nil)), byte(r.state))
		}
	}
	return b
}

// A hotHoldersFn orders the holders of a hot account.
type hotHoldersFn struct {
	Config site.Config

	holderOrder
}

// ProcessElement orders the holders of one account.
func (f *hotHoldersFn) ProcessElement(
	address string, values func(*[]byte) bool, units, parts func(string, []byte), _ func(string, int64),
) error {
	h := heldAccount{address: wire.KeyAddress(address), shown: &wire.Shown{}}
	var value []byte
	for values(&value) {
		d := wire.Decode(value)
		h.isHeld = d.Bool() || h.isHeld
		shown := wire.Decode(d.Bytes())
		*h.shown = shown.Shown() // the same under each key
		for d.More() {
			q := wire.Decode(d.Bytes())
			r := request{Request: q.Request()}
			r.state = rules.State(d.Byte())
			h.holders = append(h.holders, r)
		}
		if err := d.Err(); err != nil {
			return err
		}
		value = nil
	}
	f.order(f.Config, &h, units, parts)
	return nil
}

func (f *hotHoldersFn) FinishBundle(_, _ func(string, []byte), stats func(string, int64)) {
	f.stats.flush(stats)
}

// A heldAccount is an account with its holders.
type heldAccount struct {
	address site.Address
	shown   *wire.Shown
	isHeld  bool // by any list
	holders []request
}

// A holderOrder orders the holders of accounts, sequentially.
type holderOrder struct{ stats tally }

// order sends the holders of an account their places, and its lists their followers.
func (o *holderOrder) order(c site.Config, h *heldAccount, units, parts func(string, []byte)) {
	o.stats.add(statAccounts, 1)
	if h.shown.IsKnown || h.isHeld {
		o.stats.add(statAddresses, 1)
	}
	if !c.EFP() {
		return
	}
	o.stats.add(statObjects, int64(render.AccountObjects(c, len(h.holders))))
	slices.SortFunc(h.holders, func(a, b request) int {
		return cmp.Or(cmp.Compare(render.ShownTime(b.Added), render.ShownTime(a.Added)), site.CompareTokenIDs(b.Token, a.Token))
	})
	followers := wire.Followers{Holders: len(h.holders)}
	for i := range h.holders {
		r := &h.holders[i]
		if r.IsFollow && len(followers.Page) < site.DefaultLimit {
			followers.Page = append(followers.Page, wire.Follower{Holder: r.Holder, State: r.state})
		}
		if len(r.Tags) > 0 {
			followers.Tagged = append(followers.Tagged, wire.Follower{Holder: r.Holder})
		}
	}
	slices.SortFunc(followers.Tagged, func(a, b wire.Follower) int { return site.CompareTokenIDs(a.Token, b.Token) })
	body := followers.Append([]byte{kindFollowers})
	units(accountUnit(h.address), body)
	for _, token := range h.shown.Tokens {
		if token != h.shown.Primary {
			units(unitKey(h.address, token, false), body)
		}
	}
	o.place(h, units, parts)
	discover(h, parts)
}

// place sends the holders the places of their rows, and emits the headers of their shards and the
// head.
func (o *holderOrder) place(h *heldAccount, units, parts func(string, []byte)) {
	address, n := h.address.String(), len(h.holders)
	inHead := headRows(h)
	for i := range h.holders {
		r := &h.holders[i]
		answer := wire.Answer{Record: r.Record, Placed: wire.Placed{
			IsPlaced: true, Place: uint32(i), Holders: uint32(n), InHead: inHead[i], State: r.state,
		}}
		units(r.Unit, answer.Append([]byte{kindAnswer}))
	}
	if n <= site.PackedRows {
		return
	}
	before := []int{0}
	follows := 0
	for i := range h.holders {
		if h.holders[i].IsFollow {
			follows++
		}
		if i+1 == n || (i+1)%site.SearchShardSize == 0 {
			before = append(before, follows)
		}
	}
	for shard := range render.ShardCount(n, site.SearchShardSize) {
		header := binary.AppendUvarint([]byte{partHeader}, uint64(n))
		header = binary.AppendUvarint(binary.AppendUvarint(header, uint64(follows)), uint64(before[shard]))
		parts(followersPart(address, shard), header)
	}
	if n > site.SearchShardSize {
		parts(keyHead+address, binary.AppendUvarint([]byte{partHeader}, uint64(n)))
	}
}

// headRows marks the rows of the head of an account with several shards: the first ones in order,
// in reverse, and by followers, each among all rows and among follows only.
func headRows(h *heldAccount) []bool {
	n := len(h.holders)
	in := make([]bool, n)
	if n <= site.SearchShardSize {
		return in
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	add := func() {
		follows := 0
		for at, i := range all {
			if at < site.HeadRows {
				in[i] = true
			}
			if h.holders[i].IsFollow && follows < site.HeadRows {
				in[i] = true
				follows++
			}
		}
	}
	add()
	slices.Reverse(all)
	add()
	slices.SortFunc(all, func(i, j int) int {
		a, b := &h.holders[i], &h.holders[j]
		return cmp.Or(cmp.Compare(b.Followers, a.Followers), bytes.Compare(a.Account[:], b.Account[:]))
	})
	add()
	return in
}

// discover emits the account if it was followed at a known time.
func discover(h *heldAccount, parts func(string, []byte)) {
	for i := range h.holders {
		r := &h.holders[i]
		if r.Added == snapshot.NoTime || !r.IsFollow {
			continue
		}
		entry := binary.AppendVarint([]byte{partDiscover}, render.ShownTime(r.Added))
		entry = binary.AppendUvarint(wire.AppendText(entry, r.Token), uint64(r.Record))
		entry = wire.AppendText(entry, personOf(h))
		parts(keyDiscover, entry)
		return
	}
}

// personOf returns the account's entry of discover.
func personOf(h *heldAccount) []byte {
	if len(h.shown.Person) > 0 {
		return h.shown.Person
	}
	a := render.Account{Address: h.address}
	return render.AppendPerson(nil, &a)
}
