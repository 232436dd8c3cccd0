package render

import (
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// A View is an account with one of its lists, or with none, as shown by objects. Graphs and Units
// are rendered through views.
type View struct {
	Account *Account
	User    string // the address as in keys
	Name    string // lookup name; "" for none
	unknown bool   // whether it represents all addresses unknown to the graph
	Badges  []Badge
	Tokens  []string // selected lists of the account, by token ID

	Token   string // token ID of the list; "" for none
	Records records
	Held    int // number of accounts that the list holds

	// Only for the API efp.
	Page   []Follower // latest follows of the account, at most site.DefaultLimit
	Tagged []Follower // holders with tags, by token ID
}

// isPrimary reports whether the list of the view is the primary one, or missing because there is
// none.
func (v *View) isPrimary() bool { return v.Token == v.Account.Primary }

// records are the records of a list, in order.
type records interface {
	Len() int
	Form(i int) RecordForm
	State(i int) rules.State    // state of the address in the list; 0 if the record holds no account
	Address(i int) site.Address // subject of the record, if text is ""
	Text(i int) string          // data other than an address, as shown by the API
	Shown(i int) Shown          // shown fields of the address
	Followers(i int) uint32     // as in shown
	Ahead(from, to int)         // reads the shown data of [from, to) in advance, so that rendering need not wait
}

// A RecordForm is the common part of records of a form.
type RecordForm struct {
	rules.Kind
	*TagSet
	Holds bool // whether records of this form hold an account
}

// NewRecordForm returns a form. tags must be sorted and unique.
func NewRecordForm(version uint32, recordType string, tags []string) RecordForm {
	k := rules.Kind{Version: version, Type: recordType}
	return RecordForm{k, NewTagSet(tags), k.Holds()}
}

// A TagSet is a set of tags of records; most records share a few.
type TagSet struct {
	Tags  []string    // sorted by bytes
	JSON  string      // the array as written by the API
	State rules.State // state of an account held by a record with these tags
	Top8  bool        // whether the account is in the top 8
}

// NewTagSet returns a set of tags, which must be sorted and unique.
func NewTagSet(tags []string) *TagSet {
	return &TagSet{Tags: tags, JSON: string(appendTags(nil, tags)), State: rules.StateOf(tags), Top8: rules.IsTop8(tags)}
}

// Shown holds the shown fields of a record's subject.
type Shown struct {
	ENS       []byte // profile; it may end after the member header, or for site.APISpec at SearchLen; nil for none
	SearchLen uint32 // as in Profile
	Followers uint32

	Ends TextEnds // zero if not computed
}

// texts returns name and avatar as JSON strings.
func (s *Shown) texts() (name, avatar []byte) {
	a := Account{Profile: Profile{ENS: s.ENS, SearchLen: s.SearchLen}, Ends: s.Ends}
	name, avatar, _ = a.Texts()
	return name, avatar
}

// searched returns the beginning of the profile that searches show.
func (s *Shown) searched() []byte {
	if len(s.ENS) == 0 {
		return emptyProfile.ENS[:emptyProfile.SearchLen]
	}
	return s.ENS[:s.SearchLen]
}

// A Follower is a record of a primary list that holds the account of a Unit.
type Follower struct {
	Token   string       // token ID of the list
	Account site.Address // account of the list
	Tags    *TagSet
	Added   int64       // milliseconds since the Unix epoch, snapshot.NoTime for none
	State   rules.State // state of this account in the primary list of the Unit's account
}

// A Record is an entry of a list, with the shown fields of its subject.
type Record struct {
	Form    *RecordForm
	Data    string       // as shown by the API, 0x…; "" for an address, see snapshot.Record.Address
	Address site.Address // set if Data is ""
	Shown                // shown fields of the address
}

type unitRecords []Record

func (r unitRecords) Len() int { return len(r) }

func (r unitRecords) Form(i int) RecordForm { return *r[i].Form }

func (r unitRecords) State(i int) rules.State {
	if r[i].Data != "" || !r[i].Form.Holds {
		return 0
	}
	return r[i].Form.State
}

func (r unitRecords) Address(i int) site.Address { return r[i].Address }

func (r unitRecords) Text(i int) string { return r[i].Data }

func (r unitRecords) Shown(i int) Shown { return r[i].Shown }

func (r unitRecords) Followers(i int) uint32 { return r[i].Followers }

func (r unitRecords) held() (n int) {
	for i := range r {
		if r.State(i) != 0 {
			n++
		}
	}
	return n
}

func (unitRecords) Ahead(_, _ int) {} // a unit is contiguous in memory

// AheadRows is the number of rows read ahead at a time.
const AheadRows = 32
