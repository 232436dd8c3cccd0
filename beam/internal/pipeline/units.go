package pipeline

import (
	"encoding/hex"

	"github.com/followpress/followpress/beam/internal/dofn"
	"github.com/followpress/followpress/beam/internal/wire"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
)

func init() {
	dofn.Register4x1(&unitFn{})
}

// A unitFn renders units: an account with one of its lists, or with none.
type unitFn struct {
	Config site.Config
	AsOf   string
	Events []site.Event

	renderer *render.Renderer
	list     wire.List
	unit     render.Unit
}

// Setup makes the renderer.
func (f *unitFn) Setup() (err error) {
	f.renderer, err = render.New(f.Config, f.AsOf, f.Events)
	return err
}

// ProcessElement renders a unit. It emits objects by key, and parts of other objects.
func (f *unitFn) ProcessElement(key string, values func(*[]byte) bool, objects, parts func(string, []byte)) error {
	var u wire.Unit
	var answers []wire.Answer
	var followers wire.Followers
	isUnit := false
	var value []byte
	for values(&value) {
		d := wire.Decode(value[1:])
		switch value[0] {
		case kindUnit:
			u, isUnit = d.Unit(), true
		case kindAnswer:
			answers = append(answers, d.Answer())
		case kindFollowers:
			followers = d.Followers()
		}
		if err := d.Err(); err != nil {
			return err
		}
		value = nil
	}
	if !isUnit { // an address that only occurs in a record
		u = wire.Unit{Person: wire.Person{Address: wire.KeyAddress(key[1:])}}
	}
	if err := f.fill(&u); err != nil {
		return err
	}
	placed := f.answer(answers)
	f.followers(&followers)
	err := f.renderer.Unit(&f.unit, func(key site.Key, body []byte) { objects(string(key), body) })
	if err != nil || !f.Config.EFP() {
		return err
	}
	f.bucketParts(&followers, parts)
	f.rows(placed, parts)
	return nil
}

// fill sets the unit without shown fields of others.
func (f *unitFn) fill(u *wire.Unit) error {
	a := person(&u.Person)
	out := &f.unit
	*out = render.Unit{Account: &a, Badges: out.Badges[:0], Tokens: u.Tokens, Records: out.Records[:0], Page: out.Page[:0], Tagged: out.Tagged[:0]}
	for _, b := range u.Badges {
		out.Badges = append(out.Badges, render.Badge{Event: b.Event, TokenID: b.TokenID})
	}
	f.list.Records = f.list.Records[:0]
	if len(u.List) == 0 {
		return nil
	}
	d := wire.Decode(u.List)
	l := &f.list
	d.List(l)
	out.Token = l.Token
	forms := make([]render.RecordForm, len(l.Forms))
	for i := range l.Forms {
		forms[i] = render.NewRecordForm(l.Forms[i].Version, l.Forms[i].Type, l.Forms[i].Tags)
	}
	for i := range l.Records {
		r := &l.Records[i]
		record := render.Record{Form: &forms[r.Form], Address: r.Address}
		if !r.IsAddress {
			record.Data = string(hex.AppendEncode([]byte("0x"), r.Data))
		}
		out.Records = append(out.Records, record)
	}
	return d.Err()
}

// answer sets the shown fields of others. It returns the answers with places of the list's rows.
func (f *unitFn) answer(answers []wire.Answer) (placed []wire.Answer) {
	for _, a := range answers {
		if a.IsPlaced {
			placed = append(placed, a)
			continue
		}
		f.unit.Records[a.Record].Shown = render.Shown{ENS: a.ENS, SearchLen: a.SearchLen, Followers: a.Followers}
	}
	return placed
}

// followers sets the holders of the account.
func (f *unitFn) followers(all *wire.Followers) {
	for _, from := range []struct {
		of []wire.Follower
		to *[]render.Follower
	}{{all.Page, &f.unit.Page}, {all.Tagged, &f.unit.Tagged}} {
		for i := range from.of {
			h := &from.of[i]
			*from.to = append(*from.to, render.Follower{Token: h.Token, Account: h.Account, Tags: render.NewTagSet(h.Tags), Added: h.Added, State: h.State})
		}
	}
}

// bucketParts emits the unit's entries in the buckets of users and of lists.
func (f *unitFn) bucketParts(followers *wire.Followers, parts func(string, []byte)) {
	u := &f.unit
	if u.Token != "" {
		parts(keyToken+u.Token, wire.AppendText(wire.AppendText(nil, u.Token), f.renderer.AppendListEntry(nil, u, followers.Holders)))
	}
	if u.Token != u.Account.Primary {
		return
	}
	held := 0
	for i := range f.list.Records {
		if f.list.IsHeld(&f.list.Records[i]) {
			held++
		}
	}
	address, sizes := u.Account.Address, render.AppendSizes(nil, u.Account.Primary, held, followers.Holders)
	parts(userPart(address.String()), append(append([]byte{partAccount}, address[:]...), sizes...))
	if name := u.Account.Profile.Name; name != "" {
		entry := wire.AppendText([]byte{partName}, name)
		parts(userPart(name), append(append(entry, address[:]...), sizes...))
	}
}

// rows emits the rows of the primary list among the holders of others.
func (f *unitFn) rows(answers []wire.Answer, parts func(string, []byte)) {
	for i := range answers {
		a := &answers[i]
		r := &f.list.Records[a.Record]
		row := placed(int(a.Place), render.AppendFollowerRow(nil, render.FollowerRow{
			Token: f.unit.Token, Account: f.unit.Account, Tags: f.list.Forms[r.Form].Tags, State: a.State, Added: render.ShownTime(r.Added),
		}))
		address := r.Address.String()
		if a.Holders <= site.PackedRows {
			parts(userPart(address), append(append([]byte{partRow}, r.Address[:]...), row...))
			continue
		}
		parts(followersPart(address, int(a.Place)/site.SearchShardSize), append([]byte{partRow}, row...))
		if a.InHead {
			parts(keyHead+address, append([]byte{partRow}, row...))
		}
	}
}
