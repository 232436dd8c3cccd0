package render

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/followpress/followpress/site"
)

// A Unit is an account with one of its lists, or with none.
type Unit struct {
	Account *Account
	Badges  []Badge  // by event
	Tokens  []string // all lists of the account, ordered by site.CompareTokenIDs
	Token   string   // token ID of the list; "" for none
	Records []Record // records of the list in order, without duplicates

	// Only for the API efp.
	Page   []Follower // latest follows of the account, latest first, at most site.DefaultLimit
	Tagged []Follower // all holders with tags, by token ID
}

// Emit receives an object. The body is valid until it returns.
type Emit func(key site.Key, body []byte)

// A Renderer renders the site of a graph unit by unit. It reuses its memory, so only one goroutine
// may use it.
type Renderer struct {
	views       Views
	texts       []Text // objects that depend on the configuration only
	lastUpdated string // time of the snapshot
	scratch     Scratch
	body        []byte

	emit    Emit    // emit function of the current call
	emitter Emitter // passes objects to emit
}

// New returns a Renderer for a configuration with its defaults set, the time of the snapshot (RFC
// 3339), and its events in order.
func New(config site.Config, asOf string, events []site.Event) (r *Renderer, err error) {
	r = &Renderer{views: NewViews(config, events), texts: ProblemTexts(config)}
	r.emitter = r.put
	if r.lastUpdated, err = TimeOfSnapshot(asOf); err != nil {
		return nil, err
	}
	if config.Explorer {
		r.texts = append(r.texts, ExplorerTexts(config)...)
	}
	if config.EFP() {
		texts, err := APITexts(config)
		if err != nil {
			return nil, err
		}
		r.texts = append(r.texts, texts...)
	}
	return r, nil
}

// TimeOfSnapshot returns the time of a snapshot in the format of the API efp.
func TimeOfSnapshot(asOf string) (string, error) {
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

// Unit renders the objects of a list, and of its account if the list is primary or missing. For the
// API efp these are all objects under the account's address and name, and the objects of its lists
// that show the account only. Buckets, and the shards and the head of the account's holders, are
// not included.
func (r *Renderer) Unit(u *Unit, emit Emit) error {
	if u.Token == "" && u.Account.Primary != "" {
		return errors.New("an account with a primary list is rendered with that list")
	}
	r.emit = emit
	v := View{
		Account: u.Account, User: u.Account.Address.String(), Name: u.Account.Profile.Name, Badges: u.Badges, Tokens: u.Tokens,
		Token: u.Token, Records: unitRecords(u.Records), Held: unitRecords(u.Records).held(),
		Page: u.Page[:min(len(u.Page), site.DefaultLimit)], Tagged: u.Tagged,
	}
	r.views.renderUnit(&r.scratch, &v, r.emitter)
	return nil
}

// Fixed renders the objects that depend on the configuration only.
func (r *Renderer) Fixed(emit Emit) {
	r.emit = emit
	for _, t := range r.texts {
		emit(t.Key, t.Body)
	}
	if r.views.Config.EFP() {
		r.views.RenderUnknown(&r.scratch, r.emitter)
	}
}
