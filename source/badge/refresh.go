package badge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source/internal/ask"
	"github.com/followpress/followpress/source/internal/store"
)

const (
	pace         = 150 * time.Millisecond // between requests: the API has no documented limit, and wants none tested
	limitedPace  = time.Second            // once it has limited the rate
	pageTokens   = 300                    // the most that the API sends
	mostTokens   = 5_000_000              // of an event, so that a wrong total ends
	listings     = 3                      // of an event whose owners change meanwhile
	maxAnswer    = 1 << 20                // bytes; a page has some 100 kB
	mostFailures = 20                     // unusable answers about accounts in a row, before the run gives up
	doubtFrom    = 20                     // known badges; if so many were asked for and most are gone, none is dropped

	// Of the known owners of an event so many may be missing from a list. If there are more, the API has
	// to say so again in another run, at least this time later.
	fewGone = 2
	apart   = 24 * time.Hour
)

var (
	errAbsent = errors.New("status 404")
	errNoBulk = errors.New("no requests by event")
	errStatus = errors.New("unexpected answer") // keeps what is there
)

// A refresher asks the API.
type refresher struct {
	o      Options
	client *ask.Client
	lane   *ask.Lane
	store  *store.Store[meta]
	report *Report

	gone        []string // keys of badges that accounts have no more
	knownAsked  int      // known badges that were asked for by account
	knownAbsent int      // of those, the ones that are gone
	failures    int      // unusable answers about accounts, in a row
}

func newRefresher(o Options, client *ask.Client, kept *store.Store[meta]) *refresher {
	r := &refresher{o: o, client: client, lane: client.Lane(pace, limitedPace), store: kept, report: &Report{Events: []EventReport{}}}
	for _, id := range o.Events {
		r.report.Events = append(r.report.Events, EventReport{ID: id, Failed: map[string]int{}})
	}
	return r
}

// run asks as long as the budget allows.
func (r *refresher) run(ctx context.Context) error {
	byAccount, err := r.events(ctx)
	if err == nil {
		err = r.askAccounts(ctx, byAccount)
	}
	if errors.Is(err, ask.ErrGaveUp) || errors.Is(err, ask.ErrSpent) {
		r.report.Stopped = err.Error()
		return nil
	}
	return err
}

// events asks about the events and their owners. It returns those whose owners the API does not list.
func (r *refresher) events(ctx context.Context) (byAccount []*EventReport, err error) {
	r.o.Progress.Stage("events", int64(len(r.o.Events)))
	defer r.o.Progress.End()
	listed := false
	for i := range r.report.Events {
		e := &r.report.Events[i]
		if err := r.describe(ctx, e); err != nil {
			return nil, err
		}
		err := r.listOwners(ctx, e)
		switch {
		case errors.Is(err, errNoBulk):
			byAccount = append(byAccount, e)
		case err != nil:
			return nil, err
		default:
			listed = true
		}
		r.o.Progress.Add(1)
	}
	if listed { // then the API lists owners, and an event without a description does not exist
		byAccount = slices.DeleteFunc(byAccount, func(e *EventReport) bool { return e.Failed[reasonUnknown] > 0 })
	}
	return byAccount, nil
}

// Reasons of failures.
const (
	reasonUnknown = "unknown event"
	reasonInvalid = "invalid answer"
	reasonNone    = "no answer"
)

// failed counts a failure that leaves what is kept as it is. It returns errors that end the run.
func (e *EventReport) failed(err error) error {
	switch {
	case errors.Is(err, ask.ErrFailed):
		e.Failed[reasonNone]++
	case errors.Is(err, errStatus):
		e.Failed[reasonInvalid]++
	default:
		return err
	}
	if e.Example == "" {
		e.Example = err.Error()
	}
	return nil
}

// get asks for a JSON document. The error is errAbsent for a 404, ErrKey for a refused key, wraps
// errStatus for another status, and is that of Lane.Get otherwise.
func (r *refresher) get(ctx context.Context, path string, query url.Values) ([]byte, error) {
	answer, err := r.lane.Get(ctx, path, query, maxAnswer)
	switch {
	case err != nil:
		return nil, err
	case answer.Status == http.StatusOK:
		return bytes.TrimSpace(answer.Body), nil
	case answer.Status == http.StatusNotFound:
		return nil, errAbsent
	case answer.Status == http.StatusUnauthorized || answer.Status == http.StatusForbidden:
		return nil, fmt.Errorf("%w (status %d)", ErrKey, answer.Status)
	}
	return nil, fmt.Errorf("%w: status %d", errStatus, answer.Status)
}

// describe asks for the description of an event.
func (r *refresher) describe(ctx context.Context, e *EventReport) error {
	body, err := r.get(ctx, "/events/id/"+e.ID, nil)
	if errors.Is(err, errAbsent) {
		e.Failed[reasonUnknown]++
		return nil
	} else if err != nil {
		return e.failed(err)
	}
	return e.failed(r.keepEvent(e.ID, body))
}

// keepEvent keeps the description of an event. The error wraps errStatus if it is invalid.
func (r *refresher) keepEvent(id string, body []byte) error {
	event, err := decodeEvent(body, id)
	if err != nil {
		return fmt.Errorf("%w: event %s: %w", errStatus, id, err)
	}
	body, err = json.MarshalWithOption(event, json.DisableHTMLEscape())
	if err != nil {
		return err
	}
	return r.store.Put(eventKey(id), meta{Asked: time.Now().UnixMilli()}, body)
}

// listOwners asks for all owners of an event. The error is errNoBulk if the API cannot list them, or
// ends the run.
func (r *refresher) listOwners(ctx context.Context, e *EventReport) error {
	for range listings {
		owners, complete, err := r.owners(ctx, e.ID)
		if errors.Is(err, errNoBulk) {
			return err
		}
		e.Bulk = true
		if err == nil && complete {
			err = r.keepOwners(e.ID, owners)
		}
		if err != nil || complete {
			return e.failed(err)
		}
	}
	return e.failed(fmt.Errorf("%w: event %s: the list of owners is not complete", errStatus, e.ID))
}

// owners are the tokens of all owners of an event, the first one of each. The list is not complete if
// tokens were added while its pages were read.
func (r *refresher) owners(ctx context.Context, id string) (owners map[site.Address]string, complete bool, err error) {
	owners = map[site.Address]string{}
	tokens := map[string]bool{}
	for offset, total := 0, 0; ; {
		p, err := r.page(ctx, id, offset)
		if err != nil {
			return nil, false, err
		}
		if p.Total < total {
			return nil, false, nil // what a page before has said is no longer true
		}
		total = p.Total
		before := len(tokens)
		for _, t := range p.Tokens {
			token, owner, err := t.decode()
			if err != nil {
				return nil, false, fmt.Errorf("%w: event %s: %w", errStatus, id, err)
			}
			tokens[token] = true
			if first, ok := owners[owner]; !ok || site.CompareTokenIDs(token, first) < 0 {
				owners[owner] = token
			}
		}
		offset += len(p.Tokens)
		if len(tokens) == before || offset >= p.Total {
			return owners, len(tokens) == p.Total, nil
		}
	}
}

// A page is a part of the list of an event's tokens.
type page struct {
	Total  int         `json:"total"`
	Tokens []pageToken `json:"tokens"`
}

type pageToken struct {
	ID    json.RawMessage `json:"id"` // a text or a number
	Owner struct {
		ID string `json:"id"`
	} `json:"owner"`
}

func (t pageToken) decode() (token string, owner site.Address, err error) {
	token = string(bytes.Trim(t.ID, `"`))
	if err := site.CheckTokenID("id", token); err != nil {
		return "", owner, err
	}
	owner, err = site.DecodeAddress("owner.id", t.Owner.ID)
	return token, owner, err
}

func (r *refresher) page(ctx context.Context, id string, offset int) (p page, err error) {
	query := url.Values{"limit": {strconv.Itoa(pageTokens)}, "offset": {strconv.Itoa(offset)}}
	answer, err := r.lane.Get(ctx, "/event/"+id+"/poaps", query, maxAnswer)
	switch {
	case err != nil:
		return p, err
	case answer.Status == http.StatusOK:
	case answer.Status == http.StatusUnauthorized || answer.Status == http.StatusForbidden:
		return p, fmt.Errorf("%w (status %d)", ErrKey, answer.Status)
	case offset == 0 && (answer.Status == http.StatusNotFound || answer.Status == http.StatusMethodNotAllowed || answer.Status == http.StatusNotImplemented):
		return p, errNoBulk
	default:
		return p, fmt.Errorf("%w: status %d", errStatus, answer.Status)
	}
	err = site.DecodeObject(bytes.TrimSpace(answer.Body), &p)
	if err == nil && (p.Total < 0 || p.Total > mostTokens) {
		err = fmt.Errorf("total: %d", p.Total)
	}
	if err != nil {
		return p, fmt.Errorf("%w: event %s: %w", errStatus, id, err)
	}
	return p, nil
}

// keepOwners replaces the badges of an event. An empty list in the place of one with owners is taken
// for a fault. If far fewer owners are there than before, none is dropped yet.
func (r *refresher) keepOwners(id string, owners map[site.Address]string) error {
	asked := time.Now().UnixMilli()
	var gone []string
	known := 0
	for _, key := range withPrefix(r.store.Keys(), badgePrefix(id)) {
		owner, err := ownerOf(key)
		if err != nil {
			return err
		}
		if m, _, _ := r.store.Meta(key); m.Token != "" {
			known++
			if owners[owner] == "" {
				gone = append(gone, key)
			}
		}
	}
	if len(owners) == 0 && len(gone) > 0 {
		return fmt.Errorf("%w: event %s: no owners, where %d are known", errStatus, id, len(gone))
	}
	if err := r.dropOwners(gone, len(gone) > max(fewGone, known/10), asked); err != nil {
		return err
	}
	for owner, token := range owners {
		if err := r.store.Put(badgeKey(id, owner), meta{Asked: asked, Token: token}, nil); err != nil {
			return err
		}
	}
	return r.store.Flush()
}

// dropOwners drops badges that are no longer listed. Those that are doubted are kept until they have
// been missing for some time.
func (r *refresher) dropOwners(gone []string, doubted bool, asked int64) error {
	for _, key := range gone {
		m, _, _ := r.store.Meta(key)
		if m.Gone == 0 || m.Gone > asked {
			m.Gone = asked
		}
		m.Asked = asked
		if doubted && asked-m.Gone < apart.Milliseconds() {
			r.report.Doubted++
		} else {
			m = meta{Asked: asked}
		}
		if err := r.store.Put(key, m, nil); err != nil {
			return err
		}
	}
	return nil
}

// A question is whether an account has a badge.
type question struct {
	event   *EventReport
	address site.Address
	lists   uint32
	asked   int64
}

// askAccounts asks about each account and event: first what was never asked, of that the most followed
// accounts; then what was asked the longest time ago.
func (r *refresher) askAccounts(ctx context.Context, events []*EventReport) error {
	var all []question
	now := time.Now().UnixMilli()
	for _, e := range events {
		for address, lists := range r.o.Wanted {
			m, _, _ := r.store.Meta(badgeKey(e.ID, address))
			if m.Asked > now { // by a run whose clock was wrong: else it would be the last one for long
				m.Asked = 0
			}
			all = append(all, question{e, address, lists, m.Asked})
			e.Left++
		}
	}
	slices.SortFunc(all, func(a, b question) int {
		return cmp.Or(cmp.Compare(a.asked, b.asked), cmp.Compare(b.lists, a.lists), slices.Compare(a.address[:], b.address[:]), cmp.Compare(a.event.ID, b.event.ID))
	})
	r.o.Progress.Stage("badges", int64(len(all)))
	defer r.o.Progress.End()
	for _, q := range all {
		if err := r.scan(ctx, q); err != nil {
			return err
		}
		if r.failures >= mostFailures {
			return fmt.Errorf("%w: the last %d answers were unusable", ask.ErrGaveUp, r.failures)
		}
		q.event.Left--
		r.o.Progress.Add(1)
		if err := r.store.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// scan asks whether an account has a badge. An error ends the run.
func (r *refresher) scan(ctx context.Context, q question) error {
	key := badgeKey(q.event.ID, q.address)
	old, _, _ := r.store.Meta(key)
	body, err := r.get(ctx, "/actions/scan/"+q.address.String()+"/"+q.event.ID, nil)
	asked := time.Now().UnixMilli()
	if err == nil {
		var token string
		if token, err = r.scanned(q, body); err == nil {
			q.event.Asked++
			r.answered(old, false)
			return r.store.Put(key, meta{Asked: asked, Token: token}, nil)
		}
	}
	if errors.Is(err, errAbsent) {
		q.event.Asked++
		r.answered(old, true)
		if old.Token != "" {
			r.gone = append(r.gone, key)
		}
	} else if err = q.event.failed(err); err != nil {
		return err
	} else {
		r.failures++
	}
	return r.store.Put(key, meta{Asked: asked, Token: old.Token}, nil)
}

func (r *refresher) answered(old meta, absent bool) {
	r.failures = 0
	if old.Token == "" {
		return
	}
	r.knownAsked++
	if absent {
		r.knownAbsent++
	}
}

// scanned is the token of an answer to a scan. It also describes the event, for an API that does not
// describe events by themselves.
func (r *refresher) scanned(q question, body []byte) (token string, err error) {
	var in struct {
		Event   json.RawMessage `json:"event"`
		TokenID json.RawMessage `json:"tokenId"` // a text or a number
		Owner   string          `json:"owner"`
	}
	if err := site.DecodeObject(body, &in); err != nil {
		return "", fmt.Errorf("%w: %w", errStatus, err)
	}
	token = string(bytes.Trim(in.TokenID, `"`))
	owner, err := site.DecodeAddress("owner", in.Owner)
	if err == nil && owner != q.address {
		err = fmt.Errorf("the owner is %s, not %s", owner, q.address)
	}
	if err := errors.Join(err, site.CheckTokenID("tokenId", token)); err != nil {
		return "", fmt.Errorf("%w: event %s: %w", errStatus, q.event.ID, err)
	}
	if _, known, _ := r.store.Meta(eventKey(q.event.ID)); !known {
		return token, r.keepEvent(q.event.ID, in.Event)
	}
	event, err := decodeEvent(in.Event, q.event.ID)
	if err != nil {
		return "", fmt.Errorf("%w: event %s (%d): %w", errStatus, q.event.ID, event.ID, err)
	}
	return token, nil
}

// drop drops the badges that accounts have no more, unless the API knows hardly any in this run.
func (r *refresher) drop() error {
	if r.knownAsked >= doubtFrom && r.knownAbsent > r.knownAsked/2 {
		r.report.Doubted += len(r.gone)
		return nil
	}
	for _, key := range r.gone {
		m, _, _ := r.store.Meta(key)
		if err := r.store.Put(key, meta{Asked: m.Asked}, nil); err != nil {
			return err
		}
	}
	return nil
}

// count completes the report.
func (r *refresher) count() {
	keys := r.store.Keys()
	for i := range r.report.Events {
		e := &r.report.Events[i]
		_, e.Known, _ = r.store.Meta(eventKey(e.ID))
		for _, key := range withPrefix(keys, badgePrefix(e.ID)) {
			if m, _, _ := r.store.Meta(key); m.Token != "" {
				e.Badges++
			}
		}
	}
	cost := r.client.Cost()
	r.report.Requests, r.report.Bytes, r.report.Waited = cost.Requests, cost.Bytes, cost.Waited.Seconds()
}
