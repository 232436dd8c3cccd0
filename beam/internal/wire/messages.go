package wire

import (
	"encoding/binary"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// A Person is an account as shown by its objects.
type Person struct {
	Address site.Address
	Profile        // Name is "" if another account has the name
	Primary string // token ID; "" for none
	Counts  Counts
	Ranks   [Ranked]uint32
}

// Append appends the encoding.
func (p *Person) Append(b []byte) []byte {
	b = append(b, p.Address[:]...)
	b = p.Profile.Append(b)
	b = AppendText(b, p.Primary)
	b = p.Counts.Append(b)
	for _, n := range p.Ranks {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// Person decodes a Person.
func (d *Decoder) Person() (p Person) {
	p.Address, p.Profile, p.Primary, p.Counts = d.Address(), d.Profile(), d.Text(), d.Counts()
	for m := range p.Ranks {
		p.Ranks[m] = d.Uint32()
	}
	return p
}

// A Unit is an account with one of its lists, or with none.
type Unit struct {
	Person
	Badges []BadgeRow // by event
	Tokens []string   // token IDs of all its lists, if the list is the primary one or none
	List   []byte     // encoded; nil for none
}

// Append appends the encoding.
func (u *Unit) Append(b []byte) []byte {
	b = u.Person.Append(b)
	b = binary.AppendUvarint(b, uint64(len(u.Badges)))
	for _, row := range u.Badges {
		b = row.Append(b)
	}
	return append(AppendTexts(b, u.Tokens), u.List...)
}

// Unit decodes a Unit, and with it all the rest.
func (d *Decoder) Unit() (u Unit) {
	u.Person = d.Person()
	for range d.count() {
		u.Badges = append(u.Badges, d.BadgeRow())
	}
	u.Tokens, u.List = d.Texts(), d.rest
	return u
}

// A Shown holds the fields of an account that lists show.
type Shown struct {
	IsKnown   bool   // whether it has a row or a list
	ENS       []byte // shown prefix of its profile; empty for an empty profile
	SearchLen uint32
	Followers uint32
	Following uint32
	Primary   string
	Tokens    []string // token IDs of its lists
	Person    []byte   // its entry in discover; nil unless the API is efp
}

// Append appends the encoding.
func (s *Shown) Append(b []byte) []byte {
	b = AppendText(AppendBool(b, s.IsKnown), s.ENS)
	for _, n := range []uint32{s.SearchLen, s.Followers, s.Following} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return AppendText(AppendTexts(AppendText(b, s.Primary), s.Tokens), s.Person)
}

// Shown decodes a Shown.
func (d *Decoder) Shown() Shown {
	return Shown{d.Bool(), d.Bytes(), d.Uint32(), d.Uint32(), d.Uint32(), d.Text(), d.Texts(), d.Bytes()}
}

// A Request asks for the shown fields of a record's account, and informs the account of the record.
type Request struct {
	Unit    string // key of the requesting unit
	Record  uint32 // index in the list
	Answers bool   // whether it shows any field of the account
	IsHeld  bool   // whether the list holds the account
	Holder         // set if a primary list holds the account, under the API efp
}

// A Holder is a record of a primary list that holds an account.
type Holder struct {
	Token     string // "" if the record is not a holder
	Account   site.Address
	IsFollow  bool
	Added     int64
	Followers uint32 // followers of the holder's account
	Tags      []string
}

// Append appends the encoding.
func (r *Request) Append(b []byte) []byte {
	b = binary.AppendUvarint(AppendText(b, r.Unit), uint64(r.Record))
	b = AppendBool(AppendBool(b, r.Answers), r.IsHeld)
	return r.Holder.Append(b)
}

// Request decodes a Request.
func (d *Decoder) Request() Request {
	return Request{d.Text(), d.Uint32(), d.Bool(), d.Bool(), d.Holder()}
}

// Append appends the encoding.
func (h *Holder) Append(b []byte) []byte {
	b = AppendText(b, h.Token)
	if h.Token == "" {
		return b
	}
	b = AppendBool(append(b, h.Account[:]...), h.IsFollow)
	b = binary.AppendUvarint(binary.AppendVarint(b, h.Added), uint64(h.Followers))
	return AppendTexts(b, h.Tags)
}

// Holder decodes a Holder.
func (d *Decoder) Holder() (h Holder) {
	if h.Token = d.Text(); h.Token == "" {
		return h
	}
	return Holder{h.Token, d.Address(), d.Bool(), d.Varint(), d.Uint32(), d.Texts()}
}

// An Answer answers a Request. It comes in one part or two, with different fields set.
type Answer struct {
	Record    uint32
	ENS       []byte // empty for an empty profile, or if the other part has it
	SearchLen uint32
	Followers uint32
	Placed
}

// A Placed has the place of a holder's row among all holders of the account.
type Placed struct {
	IsPlaced bool
	Place    uint32 // from 0
	Holders  uint32 // number of holders of the account
	InHead   bool
	State    rules.State // state of the holder's account in the primary list of the held account
}

// Append appends the encoding.
func (a *Answer) Append(b []byte) []byte {
	b = AppendText(binary.AppendUvarint(b, uint64(a.Record)), a.ENS)
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(a.SearchLen)), uint64(a.Followers))
	if b = AppendBool(b, a.IsPlaced); !a.IsPlaced {
		return b
	}
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(a.Place)), uint64(a.Holders))
	return append(AppendBool(b, a.InHead), byte(a.State))
}

// Answer decodes an Answer.
func (d *Decoder) Answer() Answer {
	a := Answer{Record: d.Uint32(), ENS: d.Bytes(), SearchLen: d.Uint32(), Followers: d.Uint32()}
	if a.IsPlaced = d.Bool(); a.IsPlaced {
		a.Place, a.Holders, a.InHead, a.State = d.Uint32(), d.Uint32(), d.Bool(), rules.State(d.Byte())
	}
	return a
}

// A Follower is a holder with the state of its account in the primary list of the held account.
type Follower struct {
	Holder
	State rules.State
}

// Followers are the holders of an account that its lists show.
type Followers struct {
	Holders int
	Page    []Follower // latest follows
	Tagged  []Follower // holders with tags, by token ID
}

// Append appends the encoding.
func (f *Followers) Append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(f.Holders))
	for _, all := range [][]Follower{f.Page, f.Tagged} {
		b = binary.AppendUvarint(b, uint64(len(all)))
		for i := range all {
			b = append(all[i].Append(b), byte(all[i].State))
		}
	}
	return b
}

// Followers decodes a Followers.
func (d *Decoder) Followers() (f Followers) {
	f.Holders = int(d.Uvarint())
	for _, all := range []*[]Follower{&f.Page, &f.Tagged} {
		for range d.count() {
			*all = append(*all, Follower{d.Holder(), rules.State(d.Byte())})
		}
	}
	return f
}
