package snapshot

import (
	"math"
	"sync"
	"unsafe"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
)

// A rowScanner reads rows in the form in which programs write them, without a decoder and without
// allocating. It reports false for all others, valid or not: those are for the decoder, which also
// says what is wrong. What it returns is valid until the next row, and as long as the line.
type rowScanner struct {
	rawjson.Scanner
	record  Record
	op      Op
	data    []byte // of the record, or the op
	account Account
	profile site.Profile

	canonical []byte // spare memory of sum
}

// The members of a row, as bits, because a repeated member is for the decoder.
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

var rowScanners = sync.Pool{New: func() any { return &rowScanner{data: []byte{}} }}

func takeScanner() *rowScanner { return rowScanners.Get().(*rowScanner) }

func (s *rowScanner) giveBack() {
	s.Reset(nil) // do not keep the line in memory
	rowScanners.Put(s)
}

// start begins a row. The decoder takes none that begins with white space.
func (s *rowScanner) start(line []byte) {
	s.Reset(line)
	if len(line) == 0 || line[0] != '{' {
		s.Fail()
	}
}

func (s *rowScanner) scanRecord(line []byte, timed bool) (*Record, bool) {
	s.start(line)
	r := &s.record
	*r = Record{Tags: r.Tags[:0], Added: NoTime}
	seen := 0
	for s.Begin('{'); s.More('}'); {
		member := 0
		switch string(s.Name()) {
		case "token_id":
			member, r.TokenID = memberToken, view(s.Text())
		case "version":
			member, r.Version = memberVersion, uint32(s.Uint(math.MaxUint32))
		case "record_type":
			member, r.Type = memberType, view(s.Text())
		case "data":
			member = memberData
			if !s.hexadecimal(s.Text()) {
				s.Fail()
			}
			r.Data = s.data[:len(s.data):len(s.data)]
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

func (s *rowScanner) scanTags() {
	if s.Null() {
		return
	}
	tags := s.record.Tags
	for s.Begin('['); s.More(']'); {
		tags = append(tags, view(s.Text()))
	}
	s.setTags(tags)
}

func (s *rowScanner) scanAdded(timed bool) {
	if s.Null() {
		return
	}
	text := s.Text()
	if !timed || s.Failed() {
		return
	}
	added, err := parseTime("added", view(text))
	if err != nil {
		s.Fail()
	}
	s.record.Added = added
}

func (s *rowScanner) scanAccount(line []byte) (*Account, bool) {
	s.start(line)
	a := &s.account
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
				a.Primary = view(s.Text())
				if !site.ValidTokenID(a.Primary) {
					s.Fail()
				}
			}
		case "ens":
			member = memberENS
			if !s.Null() {
				s.profile = s.ens()
				a.ENS = &s.profile
			}
		}
		if member == 0 || seen&member != 0 {
			return nil, false
		}
		seen |= member
	}
	return a, s.Done() && seen&memberAddress != 0
}

// ens reads a profile, as site.Profile.Normalize returns it.
func (s *rowScanner) ens() site.Profile {
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
			*text = view(s.Text())
		case object != nil:
			*object = s.Texts()
		default:
			p.Fresh = s.Int()
		}
	}
	return p
}

var noEntries = []byte("{}")

func (s *rowScanner) address() site.Address {
	text := s.Text()
	address, err := site.ParseAddress(text)
	if err != nil || text[1] != 'x' {
		s.Fail()
	}
	return address
}

// view is a string that shares its memory with b.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
