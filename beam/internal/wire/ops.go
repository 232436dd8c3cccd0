package wire

import (
	"encoding/binary"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/snapshot"
)

// AppendOp appends the ordering fields of a row of ops: all except its bytes.
func AppendOp(b []byte, o *snapshot.Op) []byte {
	b = binary.AppendVarint(AppendText(b, o.TokenID), o.Time)
	return AppendNumbers(b, o.Chain, o.Block, uint64(o.LogIndex))
}

// Op decodes the encoding of AppendOp.
func (d *Decoder) Op() snapshot.Op {
	return snapshot.Op{TokenID: d.Text(), Time: d.Varint(), Chain: d.Uvarint(), Block: d.Uvarint(), LogIndex: d.Uint32()}
}

// An OpRow is a row of ops, under its token ID.
type OpRow struct {
	Position
	Op snapshot.Op // without its bytes

	Code    op.Code // 0 if the operation is not about an account
	IsShown bool    // whether the operation is about an account, and within the window
	About
}

// An About is the subject of a shown operation.
type About struct {
	Address site.Address
	Tag     string
}

func (a *About) appendAbout(b []byte) []byte { return AppendText(append(b, a.Address[:]...), a.Tag) }

func (d *Decoder) about() About { return About{d.Address(), d.Text()} }

// Append appends the encoding.
func (r *OpRow) Append(b []byte) []byte {
	b = append(AppendOp(r.append(b), &r.Op), byte(r.Code))
	if b = AppendBool(b, r.IsShown); r.IsShown {
		b = r.appendAbout(b)
	}
	return b
}

// OpRow decodes an OpRow.
func (d *Decoder) OpRow() (r OpRow) {
	r.Position, r.Op, r.Code, r.IsShown = d.position(), d.Op(), op.Code(d.Byte()), d.Bool()
	if r.IsShown {
		r.About = d.about()
	}
	return r
}

// A ShownOp is an operation that the site shows, of an existing list.
type ShownOp struct {
	Op        snapshot.Op // without its bytes
	Code      op.Code
	Nth, Of   uint32 // index among the shown operations of the list, newest first, from 0, and their number
	IsPrimary bool   // whether the list is primary
	About
	By Actor // the account of the list; only its address if its profile is unknown
}

// Append appends the encoding.
func (o *ShownOp) Append(b []byte) []byte {
	b = append(AppendOp(b, &o.Op), byte(o.Code))
	b = AppendBool(AppendNumbers(b, uint64(o.Nth), uint64(o.Of)), o.IsPrimary)
	return o.By.Append(o.appendAbout(b))
}

// ShownOp decodes a ShownOp.
func (d *Decoder) ShownOp() ShownOp {
	return ShownOp{d.Op(), op.Code(d.Byte()), d.Uint32(), d.Uint32(), d.Bool(), d.about(), d.Actor()}
}

// An Actor is an account in entries of operations: render.Actor.
type Actor struct {
	Address      site.Address
	Name, Avatar []byte // JSON strings; nil for none
}

// Append appends the encoding.
func (a *Actor) Append(b []byte) []byte {
	return AppendText(AppendText(append(b, a.Address[:]...), a.Name), a.Avatar)
}

// Actor decodes an Actor.
func (d *Decoder) Actor() Actor {
	a := Actor{Address: d.Address()}
	for _, text := range []*[]byte{&a.Name, &a.Avatar} {
		if b := d.Bytes(); len(b) > 0 {
			*text = b
		}
	}
	return a
}

// An Entry is an entry of an object that shows operations.
type Entry struct {
	Nth, Of uint32 // index among all entries of an account or a list, from 0, and their number
	Row     []byte
}

// Append appends the encoding.
func (e Entry) Append(b []byte) []byte {
	return AppendText(AppendNumbers(b, uint64(e.Nth), uint64(e.Of)), e.Row)
}

// Entry decodes an Entry.
func (d *Decoder) Entry() Entry { return Entry{d.Uint32(), d.Uint32(), d.Bytes()} }
