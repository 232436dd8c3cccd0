package pipeline

import (
	"strconv"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/followpress/followpress/beam/internal/dofn"
	"github.com/followpress/followpress/beam/internal/wire"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// Kinds of values by the key of an account, for counts.
const (
	kindHolder byte = iota // a primary list that holds the account
	kindOwn                // accounts that the account follows
)

// saysTop8 is set, in addition to the State, if a holder has the account in the top 8.
const saysTop8 = byte(rules.Mute) << 1

func init() {
	dofn.Register5x1(&spreadFn{})
	dofn.Register3x1(&holdersFn{})
	dofn.Register4x1(&sumCountsFn{})
}

// A spreadFn sends a primary list's states to the accounts that it holds, and counts them.
type spreadFn struct {
	list wire.List
	hot  salts
	own  map[string][]byte
}

// ProcessElement spreads a list. The side input has the hot accounts.
func (f *spreadFn) ProcessElement(
	_ string, value []byte, hot func(*[]byte) bool, held, counts func(string, []byte),
) error {
	f.hot.read(hot)
	l := &f.list
	if value[0] != kindList {
		return nil
	}
	d := wire.Decode(value[1:])
	d.List(l)
	if err := d.Err(); err != nil {
		return err
	}
	if !l.Primary {
		return nil
	}
	var c wire.Counts
	if f.own == nil {
		f.own = map[string][]byte{}
	}
	clear(f.own)
	for i := range l.Records {
		r := &l.Records[i]
		if !l.IsHeld(r) {
			continue
		}
		form := &l.Forms[r.Form]
		counted, _ := rules.Counted(form.State, form.Top8)
		for _, m := range counted {
			c[m]++
		}
		says := byte(form.State)
		if form.Top8 {
			says |= saysTop8
		}
		if form.State == rules.Follow {
			key := f.hot.key(l.Account, r.Address[:])
			f.own[key] = append(f.own[key], r.Address[:]...)
		}
		held(f.hot.key(r.Address, l.Account[:]), append(append(make([]byte, 0, 22), kindHolder, says), l.Account[:]...))
	}
	for key, addresses := range f.own {
		held(key, append([]byte{kindOwn}, addresses...))
	}
	if c != (wire.Counts{}) {
		counts(wire.AddressKey(l.Account), c.Append(nil))
	}
	return nil
}

// A holdersFn counts the states that primary lists give an account, under one of its keys.
type holdersFn struct {
	own     map[site.Address]struct{}
	holders []byte
}

func (f *holdersFn) ProcessElement(key string, values func(*[]byte) bool, emit func(string, []byte)) error {
	if f.own == nil {
		f.own = map[site.Address]struct{}{}
	}
	clear(f.own)
	f.holders = f.holders[:0]
	address := wire.KeyAddress(key)
	var c wire.Counts
	var value []byte
	for values(&value) {
		d := wire.Decode(value[1:])
		switch value[0] {
		case kindOwn:
			for d.More() {
				f.own[d.Address()] = struct{}{}
			}
		case kindHolder:
			says := d.Byte()
			state := rules.State(says &^ saysTop8)
			_, counted := rules.Counted(state, says&saysTop8 != 0)
			for _, m := range counted {
				c[m]++
			}
			if state == rules.Follow {
				f.holders = append(f.holders, d.Rest()...)
			}
		}
		if err := d.Err(); err != nil {
			return err
		}
		value = nil
	}
	for at := 0; at < len(f.holders) && len(f.own) > 0; at += 20 {
		holder := f.holders[at : at+20]
		if _, back := f.own[site.Address(holder)]; rules.IsMutual(address, site.Address(holder), back) {
			c[rules.Mutuals]++
		}
	}
	if c != (wire.Counts{}) {
		emit(wire.AddressKey(address), c.Append(nil))
	}
	return nil
}

// A sumCountsFn sums the counts of an account.
type sumCountsFn struct{ stats tally }

func (f *sumCountsFn) ProcessElement(address string, values func(*[]byte) bool, emit func(string, []byte), _ func(string, int64)) error {
	var sum wire.Counts
	var value []byte
	for values(&value) {
		d := wire.Decode(value)
		for m, n := range d.Counts() {
			sum[m] += n
		}
		if err := d.Err(); err != nil {
			return err
		}
		value = nil
	}
	ranked := false
	for m := range render.Measures {
		ranked = ranked || sum[m] > 0
	}
	if ranked {
		f.stats.add(statRanked, 1)
	}
	if n := sum[rules.Followers]; n > 0 {
		f.stats.add(statFollowed, 1)
		f.stats.add(statFollowers+strconv.FormatUint(uint64(n), 10), 1)
	}
	if n := sum[rules.Following]; n > 0 {
		f.stats.add(statFollowing+strconv.FormatUint(uint64(n), 10), 1)
	}
	emit(address, sum.Append(nil))
	return nil
}

func (f *sumCountsFn) FinishBundle(_ func(string, []byte), stats func(string, int64)) {
	f.stats.flush(stats)
}

// countAccounts counts, for each account, the states that primary lists give it, and those in its
// own primary list.
func countAccounts(s beam.Scope, lists, hot beam.PCollection) (counts, stats beam.PCollection) {
	s = s.Scope("count")
	held, own := beam.ParDo2(s, &spreadFn{}, lists, beam.SideInput{Input: hot})
	counted := beam.ParDo(s, &holdersFn{}, beam.GroupByKey(s, held))
	return beam.ParDo2(s, &sumCountsFn{}, grouped(s, own, counted))
}
