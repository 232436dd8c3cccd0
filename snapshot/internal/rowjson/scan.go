package rowjson

import (
	"encoding/hex"
	"math"
	"sync"
	"unsafe"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// A Scanner reads rows in their usual form, without a JSON decoder and without allocations. For other rows, valid or
// not, it returns false; the decoder then reads them, or explains the error. Results are valid until the next row,
// and as long as the line.
type Scanner struct {
	rawjson.Scanner
	Record  Record
	Op      Op
	Data    []byte // data of the record or operation
	Account Account
	Profile site.Profile

	canonical []byte // spare memory of Sum
}

// The members of a row, as bits, to detect repetitions, which are left to the decoder.
const (
	memberToken = 1 << iota
	memberVersion
	memberType
	memberData
	memberTags
	memberAdded
)

const (
	memberAddress = 1 << iota
	memberPrimary
	memberENS
)

var rowScanners = sync.Pool{New: func() any { return &Scanner{Data: []byte{}} }}

// TakeScanner returns a Scanner. Call GiveBack after use.
func TakeScanner() *Scanner { return rowScanners.Get().(*Scanner) }

// GiveBack returns the Scanner for reuse.
func (s *Scanner) GiveBack() {
	s.Reset(nil) // release the line
	rowScanners.Put(s)
}

// start begins a row. Like the decoder, it rejects leading white space.
func (s *Scanner) start(line []byte) {
	s.Reset(line)
	if len(line) == 0 || line[0] != '{' {
		s.Fail()
	}
}

// ScanRecord reads a row of records in the usual form; with its time if timed.
func (s *Scanner) ScanRecord(line []byte, timed bool) (*Record, bool) {
	s.start(line)
	r := &s.Record
	*r = Record{Tags: r.Tags[:0], Added: NoTime}
	seen := 0
	for s.Begin('{'); s.More('}'); {
		member := 0
		switch string(s.Name()) {
		case "token_id":
			member, r.TokenID = memberToken, View(s.Text())
		case "version":
			member, r.Version = memberVersion, uint32(s.Uint(math.MaxUint32))
		case "record_type":
			member, r.Type = memberType, View(s.Text())
		case "data":
			member = memberData
			if !s.Hexadecimal(s.Text()) {
				s.Fail()
			}
			r.Data = s.Data[:len(s.Data):len(s.Data)]
		case "tags":
			member = memberTags
			s.scanTags()
		case "added":
			member = memberAdded
			s.scanAdded(timed)
		}
		if member == 0 || seen&member != 0 {
			return nil, false
		}
		seen |= member
	}
	const required = memberToken | memberVersion | memberType | memberData
	return r, s.Done() && seen&required == required && r.Type != "" && site.ValidTokenID(r.TokenID)
}

func (s *Scanner) scanTags() {
	if s.Null() {
		return
	}
	tags := s.Record.Tags
	for s.Begin('['); s.More(']'); {
		tags = append(tags, View(s.Text()))
	}
	s.SetTags(tags)
}

func (s *Scanner) scanAdded(timed bool) {
	if s.Null() {
		return
	}
	text := s.Text()
	if !timed || s.Failed() {
		return
	}
	added, err := ParseTime("added", View(text))
	if err != nil {
		s.Fail()
	}
	s.Record.Added = added
}

// ScanAccount reads a row of accounts in the usual form.
func (s *Scanner) ScanAccount(line []byte) (*Account, bool) {
	s.start(line)
	a := &s.Account
	*a = Account{}
	seen := 0
	for s.Begin('{'); s.More('}'); {
		member := 0
		switch string(s.Name()) {
		case "address":
			member, a.Address = memberAddress, s.address()
		case "primary_list":
			member = memberPrimary
			if !s.Null() {
				a.Primary = View(s.Text())
				if !site.ValidTokenID(a.Primary) {
					s.Fail()
				}
			}
		case "ens":
			member = memberENS
			if !s.Null() {
				s.Profile = s.scanProfile()
				a.ENS = &s.Profile
			}
		}
		if member == 0 || seen&member != 0 {
			return nil, false
		}
		seen |= member
	}
	return a, s.Done() && seen&memberAddress != 0
}

// scanProfile reads a profile in the form of site.Profile.Normalize.
func (s *Scanner) scanProfile() site.Profile {
	p := site.Profile{Records: noEntries, Chains: noEntries, Errors: noEntries}
	seen := 0
	for s.Begin('{'); s.More('}'); {
		var text *string
		var object *[]byte
		member := 0
		switch string(s.Name()) {
		case "name":
			member, text = 1<<0, &p.Name
		case "avatar":
			member, text = 1<<1, &p.Avatar
		case "header":
			member, text = 1<<2, &p.Header
		case "display":
			member, text = 1<<3, &p.Display
		case "resolver":
			member, text = 1<<4, &p.Resolver
		case "records":
			member, object = 1<<5, (*[]byte)(&p.Records)
		case "chains":
			member, object = 1<<6, (*[]byte)(&p.Chains)
		case "errors":
			member, object = 1<<7, (*[]byte)(&p.Errors)
		case "fresh":
			member = 1 << 8
		}
		if member == 0 || seen&member != 0 {
			s.Fail()
		}
		seen |= member
		switch {
		case s.Failed() || s.Null():
		case text != nil:
			*text = View(s.Text())
		case object != nil:
			*object = s.Texts()
		default:
			p.Fresh = s.Int()
		}
	}
	return p
}

var noEntries = []byte("{}")

func (s *Scanner) address() site.Address {
	text := s.Text()
	address, err := site.ParseAddress(text)
	if err != nil || text[1] != 'x' {
		s.Fail()
	}
	return address
}

// View returns a string that shares memory with b.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Hexadecimal decodes text into s.Data. It returns false if text is not hexadecimal.
func (s *Scanner) Hexadecimal(text []byte) bool {
	if len(text) < 2 || text[0] != '0' || text[1] != 'x' {
		return false
	}
	var err error
	s.Data, err = hex.AppendDecode(s.Data[:0], text[2:])
	return err == nil
}

// SetTags sets the tags of the record, sorted and unique.
func (s *Scanner) SetTags(tags []string) {
	if len(tags) > 1 {
		tags = rules.MergeTags(tags)
	}
	s.Record.Tags = tags
}
