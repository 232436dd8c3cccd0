package badge

import (
	"bytes"
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
	"github.com/followpress/followpress/source/internal/collect"
)

const (
	pace        = 150 * time.Millisecond // between requests: the API documents no limit, and asks not to probe for one
	limitedPace = time.Second            // after a rate limit
	pageTokens  = 300                    // page size, the API's maximum
	mostTokens  = 5_000_000              // per event, so that a wrong total ends
	listings    = 3                      // tries per event, if its owners change during a listing
	maxAnswer   = 1 << 20                // bytes; a page has some 100 kB

	// fewGone known owners may be missing from a list. If more are, a later run must confirm it.
	fewGone = 2
)

var (
	errAbsent = errors.New("status 404")
	errNoBulk = errors.New("no requests by event")
	errStatus = errors.New("unexpected answer") // kept data stays
)

type refresher struct {
	*collect.Collector[meta]

	o      Options
	lane   *ask.Lane
	report *Report
}

func newRefresher(o Options, c *collect.Collector[meta]) *refresher {
	r := &refresher{Collector: c, o: o, lane: c.Client.Lane(pace, limitedPace), report: &Report{Events: []EventReport{}}}
	for _, id := range o.Events {
		r.report.Events = append(r.report.Events, EventReport{ID: id, Failed: map[string]int{}})
	}
	return r
}

func (r *refresher) run(ctx context.Context) (*Report, error) {
	byAccount, err := r.events(ctx)
	if err == nil {
		err = r.askAccounts(ctx, byAccount)
	}
	if r.report.Cost, err = r.Cost(err); err != nil {
		return nil, err
	}
	_, doubted, err := r.Drop(func(m meta) meta { return meta{Asked: m.Asked} })
	if err := errors.Join(err, r.Store.Flush()); err != nil {
		return nil, err
	}
	r.report.Doubted += doubted
	r.count()
	return r.report, nil
}

// events asks about the events and their owners. It returns the events whose owners the API does
// not list.
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
	if listed { // the API lists owners, so an event without a description does not exist
		byAccount = slices.DeleteFunc(byAccount, func(e *EventReport) bool { return e.Failed[reasonUnknown] > 0 })
	}
	return byAccount, nil
}

// Reasons of failures, as in the report.
const (
	reasonUnknown = "unknown event"
	reasonInvalid = "invalid answer"
	reasonNone    = "no answer"
)

// failed counts a failure that leaves kept data unchanged. It returns errors that end the run.
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

// get fetches a JSON document. The error is errAbsent for a 404 and ErrKey for a rejected key. It
// wraps errStatus for another status, and is that of Lane.Get otherwise.
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
	return r.Store.Put(eventKey(id), meta{Asked: time.Now().UnixMilli()}, body)
}

// listOwners asks for all owners of an event. It returns errNoBulk if the API cannot list them;
// other errors end the run.
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

// owners returns the first token of each owner of an event. complete is false if tokens were added
// while the pages were read.
func (r *refresher) owners(ctx context.Context, id string) (owners map[site.Address]string, complete bool, err error) {
	owners = map[site.Address]string{}
	tokens := map[string]bool{}
	for offset, total := 0, 0; ; {
		p, err := r.page(ctx, id, offset)
		if err != nil {
			return nil, false, err
		}
		if p.Total < total {
			return nil, false, nil // an earlier page is outdated
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

// A page is one page of an event's tokens.
type page struct {
	Total  int         `json:"total"`
	Tokens []pageToken `json:"tokens"`
}

type pageToken struct {
	ID    json.RawMessage `json:"id"` // string or number
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

// keepOwners replaces the badges of an event. It treats an empty list as a fault if there are kept
// owners. If far fewer owners are listed than kept, it drops none yet.
func (r *refresher) keepOwners(id string, owners map[site.Address]string) error {
	asked := time.Now().UnixMilli()
	var gone []string
	known := 0
	for _, key := range withPrefix(r.Store.Keys(), badgePrefix(id)) {
		owner, err := ownerOf(key)
		if err != nil {
			return err
		}
		if m, _, _ := r.Store.Meta(key); m.Token != "" {
			known++
			if owners[owner] == "" {
				gone = append(gone, key)
			}
		}
	}
	if len(owners) == 0 && len(gone) > 0 {
		return fmt.Errorf("%w: event %s: no owners, but %d are known from earlier runs", errStatus, id, len(gone))
	}
	if err := r.dropOwners(gone, len(gone) > max(fewGone, known/10), asked); err != nil {
		return err
	}
	for owner, token := range owners {
		if err := r.Store.Put(badgeKey(id, owner), meta{Asked: asked, Token: token}, nil); err != nil {
			return err
		}
	}
	return r.Store.Flush()
}

// dropOwners drops badges that are no longer listed. It keeps doubted ones until they have been
// missing for some time.
func (r *refresher) dropOwners(gone []string, doubted bool, asked int64) error {
	for _, key := range gone {
		m, _, _ := r.Store.Meta(key)
		if m.Gone == 0 || m.Gone > asked {
			m.Gone = asked
		}
		m.Told, m.Asked = m.told(), asked
		if doubted && asked-m.Gone < collect.Apart.Milliseconds() {
			r.report.Doubted++
		} else {
			m = meta{Asked: asked}
		}
		if err := r.Store.Put(key, m, nil); err != nil {
			return err
		}
	}
	return nil
}

func (r *refresher) askAccounts(ctx context.Context, events []*EventReport) error {
	var all []collect.Question
	now := time.Now().UnixMilli()
	for i, e := range events {
		for address, lists := range r.o.Wanted {
			m, _, _ := r.Store.Meta(badgeKey(e.ID, address))
			if m.Asked > now { // by a run with a wrong clock: otherwise this would be asked last for long
				m.Asked = 0
			}
			all = append(all, collect.Question{Address: address, Topic: i, Lists: lists, Since: m.Asked})
			e.Left++
		}
	}
	collect.Sort(all)
	r.o.Progress.Stage("badges", int64(len(all)))
	defer r.o.Progress.End()
	for _, q := range all {
		e := events[q.Topic]
		if err := r.scan(ctx, e, q.Address); err != nil {
			return err
		}
		if err := r.GaveUp(); err != nil {
			return err
		}
		e.Left--
		r.o.Progress.Add(1)
		if err := r.Store.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// scan asks whether an account has a badge. An error ends the run.
func (r *refresher) scan(ctx context.Context, e *EventReport, address site.Address) error {
	key := badgeKey(e.ID, address)
	old, _, _ := r.Store.Meta(key)
	body, err := r.get(ctx, "/actions/scan/"+address.String()+"/"+e.ID, nil)
	asked := time.Now().UnixMilli()
	token := old.Token
	if err == nil {
		token, err = r.scanned(e, address, body)
	}
	now := meta{Asked: asked}
	if err != nil && old.Token != "" {
		now.Told = old.told()
	}
	switch {
	case err == nil:
		e.Asked++
		r.Answered(old.Token != "")
	case errors.Is(err, errAbsent):
		e.Asked++
		r.Answered(old.Token != "")
		token = old.Token
		if token != "" {
			r.Missed(key, true)
		}
	default:
		if err := e.failed(err); err != nil {
			return err
		}
		r.Failed()
		token = old.Token
	}
	now.Token = token
	return r.Store.Put(key, now, nil)
}

// scanned returns the token in a scan's answer. The answer also describes the event, for APIs
// without a description of events.
func (r *refresher) scanned(e *EventReport, address site.Address, body []byte) (token string, err error) {
	var in struct {
		Event   json.RawMessage `json:"event"`
		TokenID json.RawMessage `json:"tokenId"` // string or number
		Owner   string          `json:"owner"`
	}
	if err := site.DecodeObject(body, &in); err != nil {
		return "", fmt.Errorf("%w: %w", errStatus, err)
	}
	token = string(bytes.Trim(in.TokenID, `"`))
	owner, err := site.DecodeAddress("owner", in.Owner)
	if err == nil && owner != address {
		err = fmt.Errorf("the owner is %s, not %s", owner, address)
	}
	if err := errors.Join(err, site.CheckTokenID("tokenId", token)); err != nil {
		return "", fmt.Errorf("%w: event %s: %w", errStatus, e.ID, err)
	}
	if _, known, _ := r.Store.Meta(eventKey(e.ID)); !known {
		return token, r.keepEvent(e.ID, in.Event)
	}
	event, err := decodeEvent(in.Event, e.ID)
	if err != nil {
		return "", fmt.Errorf("%w: event %s (%d): %w", errStatus, e.ID, event.ID, err)
	}
	return token, nil
}

func (r *refresher) count() {
	keys := r.Store.Keys()
	for i := range r.report.Events {
		e := &r.report.Events[i]
		_, e.Known, _ = r.Store.Meta(eventKey(e.ID))
		for _, key := range withPrefix(keys, badgePrefix(e.ID)) {
			if m, _, _ := r.Store.Meta(key); m.Token != "" {
				e.Badges++
			}
		}
	}
}
