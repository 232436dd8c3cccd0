package render

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// A Record is an entry of a list, with what is shown of the account that it is about.
type Record struct {
	Version   uint32
	Type      string
	Data      string       // as the API shows it, 0x…; "" if IsAddress
	Tags      []string     // sorted, without repetitions
	Added     int64        // milliseconds since the Unix epoch, snapshot.NoTime for none
	Address   site.Address // that it is about, if IsAddress
	IsAddress bool         // whether it is about an address, as snapshot.Record.Address says

	ENS       []byte // profile of the address, which may end after the member header, or for site.APISpec at SearchLen; nil for none
	SearchLen uint32 // as in Profile
	Followers uint32 // of the address
}

// holds reports whether the record is about an account, whatever its tags.
func (r *Record) holds() bool {
	return r.IsAddress && rules.Kind{Version: r.Version, Type: r.Type}.Holds()
}

// A Follower is a record of a primary list that holds the account of a Unit.
type Follower struct {
	Token   string       // of the list
	Account site.Address // of the list
	Tags    []string     // sorted, without repetitions
	Added   int64        // as in Record
	State   rules.State  // what the primary list of the Unit's account says of this one
}

// A Unit is an account with one of its lists, or with none.
type Unit struct {
	Account *Account
	Badges  []Badge  // by event
	Tokens  []string // all lists of the account, by token ID as site.CompareTokenIDs sorts them
	Token   string   // of the list; "" for none
	Records []Record // of the list, in its order, repeated ones merged

	// Only for the API efp.
	Page   []Follower // the latest follows of the account, as many as site.DefaultLimit if there are so many, latest first
	Tagged []Follower // all that have tags, by token ID
}

// Emit receives an object. The body is valid until it returns.
type Emit func(key site.Key, body []byte)

// A Renderer renders the site of a graph unit by unit. It reuses its memory, so it is for one goroutine.
type Renderer struct {
	site    *Site
	graph   *Graph
	ranks   *Ranks
	scratch Scratch
	body    []byte
	forms   FormCache

	numbered  int     // sets of tags whose tags are numbered
	formBytes int     // of these sets
	emit      Emit    // of the call
	emitter   Emitter // that hands over to emit
}

// Limits of what a Renderer remembers from one unit to the next: forms of records, and bytes of their tags.
const (
	maxKeptForms     = 1 << 8
	maxKeptFormBytes = 1 << 20
)

// New returns a Renderer for a configuration with defaults, the time of the snapshot (RFC 3339), and
// its events in their order.
func New(config site.Config, asOf string, events []site.Event) (*Renderer, error) {
	g := NewGraph(asOf)
	g.Events = events
	r := &Renderer{graph: g, ranks: &Ranks{}, forms: NewFormCache(&g.Forms)}
	r.site = &Site{Graph: g, ranks: r.ranks, Config: config, events: encodeEvents(events)}
	r.emitter = r.put
	r.resetForms()
	if config.Explorer {
		r.site.explore = &exploreRenderer{texts: explorerTexts(config)}
	}
	if !config.EFP() {
		return r, nil
	}
	lastUpdated, err := timeOfSnapshot(asOf)
	if err != nil {
		return nil, err
	}
	e := &efpRenderer{relations: &relations{Graph: g}, ranks: r.ranks, config: config, events: r.site.events, lastUpdated: lastUpdated}
	if e.texts, err = apiTexts(config); err != nil {
		return nil, err
	}
	r.site.efp = e
	return r, nil
}

// timeOfSnapshot returns the time of a snapshot as the API efp shows it.
func timeOfSnapshot(asOf string) (string, error) {
	t, err := time.Parse(time.RFC3339, asOf)
	if err != nil {
		return "", fmt.Errorf("as_of: %w", err)
	}
	return string(appendTime(nil, t.UnixMilli())), nil
}

// put is an Emitter.
func (r *Renderer) put(size int, render func(b []byte) []byte, keys ...site.Key) {
	r.body = render(slices.Grow(r.body[:0], size))
	for _, key := range keys {
		r.emit(key, r.body)
	}
}

// Unit renders what a site has of a list, and, if it is the primary list or there is none, of its
// account. For the API efp these are all objects under the account's address and name, and those of its
// lists that show the account only. Buckets, and the shards and the head of who holds the account,
// are not among them.
func (r *Renderer) Unit(u *Unit, emit Emit) error {
	if u.Token == "" && u.Account.Primary != "" {
		return errors.New("an account with a primary list is rendered with that list")
	}
	r.emit = emit
	list := r.load(u)
	e := r.site.efp
	switch {
	case e != nil:
		user := e.user(0)
		if list == user.primary {
			e.renderUser(&r.scratch, user, r.emitter)
		}
		if list != None {
			e.renderList(&r.scratch, user, list, r.emitter)
		}
	case list != None:
		r.site.renderList(int(list), &r.scratch, r.emitter)
	case u.Account.Profile.Name != "":
		emitText(r.emitter, site.EmptySearch, r.site.Config.UserKey(u.Account.Profile.Name))
	}
	return nil
}

// Fixed renders what depends on the configuration only.
func (r *Renderer) Fixed(emit Emit) error {
	r.emit = emit
	for i := range r.site.Config.Problems() {
		r.site.renderProblem(i, &r.scratch, r.emitter)
	}
	if e := r.site.efp; e != nil {
		for i := range e.texts {
			e.renderText(i, &r.scratch, r.emitter)
		}
		e.renderUnknown(0, &r.scratch, r.emitter)
	}
	if r.site.explore != nil {
		for _, t := range r.site.explore.texts {
			emitText(r.emitter, t.body, t.key)
		}
	}
	return nil
}

// load makes the graph of a unit, and returns its list. It has the account, followers of the page,
// accounts of records, other followers, and the lists of the first and of followers. An account of a
// record is not looked for among the others, because nothing depends on it, with one exception: what
// another list than the primary one says of the followers on the page.
func (r *Renderer) load(u *Unit) (list uint32) {
	if len(r.graph.ByNumber) > maxKeptForms || r.formBytes > maxKeptFormBytes {
		r.resetForms()
	}
	list = r.loadAccount(u)
	g, e := r.graph, r.site.efp
	g.Records.reset()
	g.Added, g.Offsets = g.Added[:0], append(g.Offsets[:0], 0)
	var page, known []Follower
	if e != nil {
		page = u.Page[:min(len(u.Page), site.DefaultLimit)]
		for i := range page {
			r.add(page[i].Account, 0)
		}
		if list != g.Primary[0] {
			known = page
		}
		e.held = append(e.held[:0], make([]uint32, len(g.Tokens))...)
	}
	for own := range g.Tokens {
		if uint32(own) == list {
			r.loadRecords(u.Records, known)
			if e != nil {
				e.held[own] = uint32(held(u.Records))
			}
		}
		g.Offsets = append(g.Offsets, uint64(g.Records.Len()))
	}
	if e != nil {
		r.loadFollowers(page, u.Tagged)
	}
	r.useForms()
	return list
}

// loadAccount replaces the account and its lists, and returns the one of the unit, or None.
func (r *Renderer) loadAccount(u *Unit) (list uint32) {
	g, a := r.graph, u.Account
	g.Profiles.reset()
	g.Accounts, g.Other, g.Badges = g.Accounts[:0], g.Other[:0], g.Badges[:0]
	for m, n := range a.Counts {
		r.ranks.Count[m] = append(r.ranks.Count[m][:0], n)
	}
	for m, n := range a.Ranks {
		r.ranks.Rank[m] = append(r.ranks.Rank[m][:0], n)
	}
	g.Accounts = append(g.Accounts, a.Address)
	g.Profiles.Set(0, a.Profile)
	for _, b := range u.Badges {
		g.Badges = append(g.Badges, AccountBadge{Badge: b})
	}
	g.Tokens = append(g.Tokens[:0], u.Tokens...)
	list = r.ownList(u.Token)
	g.Primary = append(g.Primary[:0], r.ownList(a.Primary))
	g.Owners = append(g.Owners[:0], make([]uint32, len(g.Tokens))...)
	if e := r.site.efp; e != nil {
		e.lists = e.lists[:0]
		for own := range g.Tokens {
			e.lists = append(e.lists, uint32(own))
		}
		e.listOffsets = append(e.listOffsets[:0], 0, uint32(len(e.lists)))
	}
	return list
}

// ownList returns the list of the account with a token ID, or None for "". It adds a list that the unit
// does not name, which only matters for the API efp.
func (r *Renderer) ownList(token string) uint32 {
	if token == "" {
		return None
	}
	g := r.graph
	list := slices.Index(g.Tokens, token)
	if list < 0 {
		list = len(g.Tokens)
		g.Tokens = append(g.Tokens, token)
	}
	return uint32(list)
}

// add adds an account.
func (r *Renderer) add(address site.Address, followers uint32) uint32 {
	g, counts := r.graph, &r.ranks.Count[Followers]
	g.Accounts, *counts = append(g.Accounts, address), append(*counts, followers)
	return uint32(len(g.Accounts) - 1)
}

// loadRecords adds the records of the list. Some accounts are known already: those after the first one.
func (r *Renderer) loadRecords(records []Record, known []Follower) {
	g := r.graph
	for i := range records {
		in := &records[i]
		data := OtherData | uint32(len(g.Other))
		if in.IsAddress {
			data = r.accountOf(in, known)
		} else {
			g.Other = append(g.Other, in.Data)
		}
		r.addRecord(data, r.form(in.Version, in.Type, in.Tags), in.Added)
	}
}

// accountOf returns the account that a record is about.
func (r *Renderer) accountOf(in *Record, known []Follower) uint32 {
	account := uint32(1)
	for i := range known {
		if known[i].Account == in.Address {
			r.ranks.Count[Followers][account] = in.Followers
			break
		}
		account++
	}
	if int(account) > len(known) {
		account = r.add(in.Address, in.Followers)
	}
	if len(in.ENS) > 0 {
		r.graph.Profiles.Set(account, Profile{ENS: in.ENS, SearchLen: in.SearchLen})
	}
	return account
}

// addRecord adds a record to the last list.
func (r *Renderer) addRecord(data, form uint32, added int64) {
	r.graph.Records.Append(data, form)
	r.graph.Added = append(r.graph.Added, added)
}

// loadFollowers adds the lists of followers, those of the page first. Some of the page may be among the
// tagged ones too.
func (r *Renderer) loadFollowers(page, tagged []Follower) {
	g, e := r.graph, r.site.efp
	e.holders, e.states = e.holders[:0], e.states[:0]
	e.tokenRank = append(e.tokenRank[:0], make([]uint32, len(g.Tokens))...)
	for i := range page {
		r.addFollower(&page[i], uint32(1+i), 0)
	}
	for rank := range tagged {
		f := &tagged[rank]
		if at := slices.IndexFunc(page, func(p Follower) bool { return p.Token == f.Token }); at >= 0 {
			e.tokenRank[e.holders[at].list] = uint32(rank)
			continue
		}
		r.addFollower(f, r.add(f.Account, 0), uint32(rank))
	}
	e.holderOffsets = append(e.holderOffsets[:0], 0, uint64(len(e.holders)))
}

// addFollower adds the list of a follower, with the record that holds the account.
func (r *Renderer) addFollower(f *Follower, owner, tokenRank uint32) {
	g, e := r.graph, r.site.efp
	e.holders = append(e.holders, holder{list: uint32(len(g.Tokens))})
	e.states = append(e.states, f.State)
	e.tokenRank = append(e.tokenRank, tokenRank)
	g.Tokens, g.Owners = append(g.Tokens, f.Token), append(g.Owners, owner)
	r.addRecord(0, r.form(usualKind.Version, usualKind.Type, f.Tags), f.Added)
	g.Offsets = append(g.Offsets, uint64(g.Records.Len()))
}

// usualKind is the kind of most records.
var usualKind = rules.HeldKinds()[0]

// form returns the number of the form of a record. Most are follows without tags.
func (r *Renderer) form(version uint32, recordType string, tags []string) uint32 {
	if len(tags) == 0 && version == usualKind.Version && recordType == usualKind.Type {
		return 0
	}
	return r.forms.Number(version, recordType, tags)
}

// resetForms forgets all forms but that of a follow without tags.
func (r *Renderer) resetForms() {
	g := r.graph
	g.Forms = Forms{}
	g.initForms()
	g.Number(usualKind.Version, usualKind.Type, nil)
	g.Records = RecordList{}
	r.forms, r.numbered, r.formBytes = NewFormCache(&g.Forms), 0, 0
}

// useForms makes the forms of a unit known.
func (r *Renderer) useForms() {
	g, e := r.graph, r.site.efp
	g.Records.Use(g.ByNumber)
	if r.numbered == len(g.TagSets) {
		return
	}
	for _, set := range g.TagSets[r.numbered:] {
		r.formBytes += len(set.json)
	}
	r.numbered = len(g.TagSets)
	if e != nil {
		e.numberTags()
	}
}

// held counts the records that hold an account.
func held(records []Record) (n int) {
	for i := range records {
		if records[i].holds() {
			n++
		}
	}
	return n
}
