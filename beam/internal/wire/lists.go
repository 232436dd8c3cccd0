package wire

import (
	"encoding/binary"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// A Form is the common part of many records.
type Form struct {
	Version uint32
	Type    string
	Tags    []string // sorted, unique

	State rules.State // state of an address held by a record of this form; 0 for none
	Top8  bool        // whether the address is in the top 8
}

// NewForm returns a form.
func NewForm(version uint32, recordType string, tags []string) Form {
	f := Form{Version: version, Type: recordType, Tags: tags}
	if (rules.Kind{Version: version, Type: recordType}).Holds() {
		f.State, f.Top8 = rules.StateOf(tags), rules.IsTop8(tags)
	}
	return f
}

// Append appends the encoding.
func (f *Form) Append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(f.Version))
	return AppendTexts(AppendText(b, f.Type), f.Tags)
}

func (d *Decoder) form() Form { return NewForm(d.Uint32(), d.Text(), d.Texts()) }

// A Record is an entry of a list, after repeated rows were merged.
type Record struct {
	Form      uint32 // index into List.Forms
	IsAddress bool   // whether it is about Address, or else Data
	Address   site.Address
	Data      []byte
	Added     int64 // snapshot.NoTime if unknown or not shown
}

// A List is a list with all of its records.
type List struct {
	Token   string
	Account site.Address
	Primary bool // whether it is the primary list of its account
	Forms   []Form
	Records []Record
}

// IsHeld reports whether the list holds the record's address.
func (l *List) IsHeld(r *Record) bool { return l.State(r) != 0 }

// IsFollow reports whether the list follows the record's address.
func (l *List) IsFollow(r *Record) bool { return l.State(r) == rules.Follow }

// State returns the list's state of a record's address; 0 if the list does not hold one.
func (l *List) State(r *Record) rules.State {
	if !r.IsAddress {
		return 0
	}
	return l.Forms[r.Form].State
}

// Append appends the encoding.
func (l *List) Append(b []byte) []byte {
	b = AppendText(b, l.Token)
	b = append(b, l.Account[:]...)
	b = AppendBool(b, l.Primary)
	b = binary.AppendUvarint(b, uint64(len(l.Forms)))
	for i := range l.Forms {
		b = l.Forms[i].Append(b)
	}
	b = binary.AppendUvarint(b, uint64(len(l.Records)))
	for i := range l.Records {
		r := &l.Records[i]
		if r.IsAddress {
			b = append(binary.AppendUvarint(b, uint64(r.Form)<<1|1), r.Address[:]...)
		} else {
			b = AppendText(binary.AppendUvarint(b, uint64(r.Form)<<1), r.Data)
		}
		b = binary.AppendVarint(b, r.Added)
	}
	return b
}

// List decodes a list into l, reusing its memory.
func (d *Decoder) List(l *List) {
	l.Token, l.Account, l.Primary = d.Text(), d.Address(), d.Bool()
	l.Forms, l.Records = l.Forms[:0], l.Records[:0]
	for range d.count() {
		l.Forms = append(l.Forms, d.form())
	}
	for range d.count() {
		var r Record
		form := d.Uvarint()
		if r.Form, r.IsAddress = uint32(form>>1), form&1 == 1; r.IsAddress {
			r.Address = d.Address()
		} else {
			r.Data = d.Bytes()
		}
		r.Added = d.Varint()
		if int(r.Form) >= len(l.Forms) {
			d.fail()
			return
		}
		l.Records = append(l.Records, r)
	}
}

// count decodes a number of elements, each of at least one byte.
func (d *Decoder) count() uint64 {
	n := d.Uvarint()
	if n > uint64(len(d.rest)) {
		d.fail()
		return 0
	}
	return n
}
