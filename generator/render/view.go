package render

import (
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// A view is an account with one of its lists, or with none, as objects show it. A graph makes one for each
// of its units, and a Unit is made one. What renders views knows neither.
type view struct {
	account *Account
	user    string // the address, as keys have it
	name    string // for looking the account up; "" for none
	unknown bool   // whether it stands for all addresses that the graph does not know
	badges  []Badge
	tokens  []string // lists of the account, by token ID; those that are selected

	token   string // of the list; "" for none
	records records
	held    int // accounts that the list holds

	// Only for the API efp.
	page   []Follower // the latest follows of the account, at most site.DefaultLimit
	tagged []Follower // those with tags, by token ID
}

// isPrimary reports whether the view has the primary list, or none if there is none.
func (v *view) isPrimary() bool { return v.token == v.account.Primary }

// records are those of a list, in its order.
type records interface {
	Len() int
	form(i int) RecordForm
	state(i int) rules.State    // what the list says of the address; 0 if it does not hold one
	address(i int) site.Address // that the record is about, if text is ""
	text(i int) string          // data that is no address, as the API shows it
	shown(i int) Shown          // of the address
	followers(i int) uint32     // of the address, as in shown
	ahead(from, to int)         // reads what is shown from one index to another, so that rendering need not wait for it
}

// A RecordForm is what records have in common.
type RecordForm struct {
	rules.Kind
	*TagSet
	holds bool // whether a list holds an account by such a record
}

// NewRecordForm returns a form, for sorted tags without repetitions.
func NewRecordForm(version uint32, recordType string, tags []string) RecordForm {
	k := rules.Kind{Version: version, Type: recordType}
	return RecordForm{k, NewTagSet(tags), k.Holds()}
}

// Shown is what a record shows of the account that it is about.
type Shown struct {
	ENS       []byte // profile, which may end after the member header, or for site.APISpec at SearchLen; nil for none
	SearchLen uint32 // as in Profile
	Followers uint32

	ends profileEnds // zero if they were not looked for
}

// texts returns name and avatar as JSON strings.
func (s *Shown) texts() (name, avatar []byte) {
	a := Account{Profile: Profile{ENS: s.ENS, SearchLen: s.SearchLen}, ends: s.ends}
	name, avatar, _ = a.texts()
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
	Token   string       // of the list
	Account site.Address // of the list
	Tags    *TagSet
	Added   int64       // milliseconds since the Unix epoch, snapshot.NoTime for none
	State   rules.State // what the primary list of the Unit's account says of this one
}

// A Record is an entry of a list, with what is shown of the account that it is about.
type Record struct {
	Form    *RecordForm
	Data    string       // as the API shows it, 0x…; "" for an address, as snapshot.Record.Address says
	Address site.Address // then
	Shown                // of the address
}

type unitRecords []Record

func (r unitRecords) Len() int { return len(r) }

func (r unitRecords) form(i int) RecordForm { return *r[i].Form }

func (r unitRecords) state(i int) rules.State {
	if r[i].Data != "" || !r[i].Form.holds {
		return 0
	}
	return r[i].Form.State
}

func (r unitRecords) address(i int) site.Address { return r[i].Address }

func (r unitRecords) text(i int) string { return r[i].Data }

func (r unitRecords) shown(i int) Shown { return r[i].Shown }

func (r unitRecords) followers(i int) uint32 { return r[i].Followers }

func (r unitRecords) held() (n int) {
	for i := range r {
		if r.state(i) != 0 {
			n++
		}
	}
	return n
}

func (unitRecords) ahead(_, _ int) {} // a unit is read from one place
