package wire

import (
	"encoding/binary"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
)

// A Position is the position of a row in its table: the number of the file, from 0, and the line,
// from 1. Grouping keeps no order, so elements whose order matters carry their position.
type Position struct {
	File uint32
	Line uint64
}

func (p Position) append(b []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(p.File)), p.Line)
}

func (d *Decoder) position() Position { return Position{d.Uint32(), d.Uvarint()} }

// A ListRow is a row of lists, under its token ID.
type ListRow struct {
	Position
	Account site.Address
}

// Append appends the encoding.
func (r ListRow) Append(b []byte) []byte { return append(r.append(b), r.Account[:]...) }

// ListRow decodes a ListRow.
func (d *Decoder) ListRow() ListRow { return ListRow{d.position(), d.Address()} }

// An AccountRow is a row of accounts, under the key of its address.
type AccountRow struct {
	Position
	Primary string // token ID; "" for none
	Profile        // empty ENS: none
}

// A Profile is an encoded profile (render.Profile).
type Profile struct {
	ENS       []byte
	SearchLen uint32
	Fresh     int64
	Name      string
}

// Append appends the encoding.
func (p Profile) Append(b []byte) []byte {
	b = AppendText(b, p.ENS)
	b = binary.AppendUvarint(b, uint64(p.SearchLen))
	b = binary.AppendVarint(b, p.Fresh)
	return AppendText(b, p.Name)
}

// Profile decodes a Profile.
func (d *Decoder) Profile() Profile { return Profile{d.Bytes(), d.Uint32(), d.Varint(), d.Text()} }

// Append appends the encoding.
func (r AccountRow) Append(b []byte) []byte {
	return r.Profile.Append(AppendText(r.append(b), r.Primary))
}

// AccountRow decodes an AccountRow.
func (d *Decoder) AccountRow() AccountRow { return AccountRow{d.position(), d.Text(), d.Profile()} }

// A RecordRow is a row of records.
type RecordRow struct {
	Line uint64
	snapshot.Record
}

// AppendRun begins a run: successive rows of one list, which is its key, in a file.
func AppendRun(b []byte, file uint32) []byte { return binary.AppendUvarint(b, uint64(file)) }

// AppendRecord appends a row of a run without its line, which precedes it, and without its token
// ID.
func AppendRecord(b []byte, r *snapshot.Record) []byte {
	b = binary.AppendUvarint(b, uint64(r.Version))
	b = AppendText(b, r.Type)
	b = AppendText(b, r.Data)
	b = AppendTexts(b, r.Tags)
	return binary.AppendVarint(b, r.Added)
}

// RunFile decodes the beginning of a run. Use More and Row for the rest.
func (d *Decoder) RunFile() uint32 { return d.Uint32() }

// Row decodes a row of a run.
func (d *Decoder) Row() RecordRow {
	return RecordRow{d.Uvarint(), snapshot.Record{Version: d.Uint32(), Type: d.Text(), Data: d.Bytes(), Tags: d.Texts(), Added: d.Varint()}}
}

// A BadgeRow is a row of badges, under the key of its owner's address.
type BadgeRow struct {
	Event   uint32 // index into the events
	TokenID string
}

// Append appends the encoding.
func (r BadgeRow) Append(b []byte) []byte {
	return AppendText(binary.AppendUvarint(b, uint64(r.Event)), r.TokenID)
}

// BadgeRow decodes a BadgeRow.
func (d *Decoder) BadgeRow() BadgeRow { return BadgeRow{d.Uint32(), d.Text()} }

// A Note is an item of a report: an invalid row, or an omitted text of a profile.
type Note struct {
	Position        // position of the row; Line is the number of a refreshed object
	Nth      uint32 // index among several texts of a profile, from 0
	Name     string // name of the file or the object
	Text     string // reason why the row is invalid, or the member with the text
	Bytes    uint64 // length of the text; 0 for an invalid row
}

// Append appends the encoding.
func (n Note) Append(b []byte) []byte {
	b = binary.AppendUvarint(n.append(b), uint64(n.Nth))
	b = AppendText(AppendText(b, n.Name), n.Text)
	return binary.AppendUvarint(b, n.Bytes)
}

// Note decodes a Note.
func (d *Decoder) Note() Note { return Note{d.position(), d.Uint32(), d.Text(), d.Text(), d.Uvarint()} }

// A RefreshedObject is an object of the refreshed data, under its token ID.
type RefreshedObject struct {
	Number uint64 // in the order of keys, from 1
	Badges bool   // badges, or else a profile
	Body   []byte
}

// Append appends the encoding.
func (o RefreshedObject) Append(b []byte) []byte {
	return AppendText(AppendBool(binary.AppendUvarint(b, o.Number), o.Badges), o.Body)
}

// RefreshedObject decodes a RefreshedObject.
func (d *Decoder) RefreshedObject() RefreshedObject {
	return RefreshedObject{d.Uvarint(), d.Bool(), d.Bytes()}
}

// Measures is the number of counted measures. Ranked is the number of ranked measures in
// details, which come first.
const (
	Measures = int(rules.Muting) + 1
	Ranked   = int(rules.Blocks) + 1
)

// Counts are the counts of an account by measure, under its address.
type Counts [Measures]uint32

// Append appends the encoding.
func (c *Counts) Append(b []byte) []byte {
	for _, n := range c {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

// Counts decodes a Counts.
func (d *Decoder) Counts() (c Counts) {
	for m := range c {
		c[m] = d.Uint32()
	}
	return c
}

// A Place is the place of an account, from 1, in the order of a measure: count descending, then
// address ascending.
type Place struct {
	Measure byte
	Place   uint32
	Count   uint32
}

// Append appends the encoding.
func (p Place) Append(b []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(append(b, p.Measure), uint64(p.Place)), uint64(p.Count))
}

// Place decodes a Place.
func (d *Decoder) Place() Place { return Place{d.Byte(), d.Uint32(), d.Uint32()} }
