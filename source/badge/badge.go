// Package badge asks a POAP-like API for the holders of events' badges, and keeps its answers
// between runs. It sends one request for hundreds of owners if the API supports that, else one
// request per account and event, as many as a budget allows.
//
// The API may change in any release.
package badge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/internal/ask"
	"github.com/followpress/followpress/source/internal/collect"
	"github.com/followpress/followpress/source/internal/store"
)

// Options configure Refresh.
type Options struct {
	State  string                  // state folder; badges are kept in its subfolder badges
	URL    string                  // URL of the API, such as https://api.poap.tech
	Key    secret.Text             // sent as X-API-Key; "" sends none. Never in errors or logs
	Events []string                // event IDs
	Wanted map[site.Address]uint32 // accounts to ask about one by one, with the number of lists that follow them
	Budget source.Budget           // includes retries and waiting

	Progress  source.Progress
	Log       *slog.Logger      // nil for none
	Transport http.RoundTripper // nil for a default one
}

// ErrKey means that the API rejects the key.
var ErrKey = errors.New("the API rejects the key")

// ErrBusy means that another run is working on the badges of the same state.
var ErrBusy = store.ErrBusy

const headerKey = "X-API-Key"

// A meta is the state of an account and an event, or of an event alone, for which it is empty.
// Times are in milliseconds since the Unix epoch.
type meta struct {
	Asked int64  `json:"asked,omitempty"` // last time that the API answered, or failed to
	Token string `json:"token,omitempty"` // "" for none
	Gone  int64  `json:"gone,omitempty"`  // first time that a complete list of owners lacked the kept badge
	// Told is the time of the answer with the token, if the API was asked again later without
	// repeating it.
	Told int64 `json:"told,omitempty"`
}

// told returns the time of the answer with the token.
func (m *meta) told() int64 { return cmp.Or(m.Told, m.Asked) }

func folder(state string) string { return filepath.Join(state, "badges") }

// Keys of the store: the description of an event, and the badge of an account. The badges of an
// event are ordered by account.
func eventKey(id string) string                       { return "event/" + id }
func badgePrefix(id string) string                    { return id + "/" }
func badgeKey(id string, address site.Address) string { return badgePrefix(id) + address.String() }

// Refresh asks for the holders of badges and keeps the answers. A request without a usable answer
// changes nothing and is not an error; the report counts it. Only a 404, or a list of all owners
// without the account, means that the account has no badge. If a list lacks many known owners at
// once, it counts only if it still does a day later.
//
// Refresh fails if the API rejects the key (ErrKey), if the state cannot be read or written, if the
// options are invalid, or when ctx ends; earlier answers are kept even then. The error wraps
// ErrBusy if another run is working on the same state.
func Refresh(ctx context.Context, o Options) (_ *Report, err error) {
	if err := checkEvents(o.Events); err != nil {
		return nil, err
	}
	header := http.Header{}
	if o.Key != "" {
		header.Set(headerKey, string(o.Key))
	}
	c, err := collect.Open[meta](folder(o.State), ask.Options{URL: o.URL, Header: header, Budget: o.Budget, Log: o.Log, Transport: o.Transport})
	if err != nil {
		return nil, fmt.Errorf("badges: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	report, err := newRefresher(o, c).run(ctx)
	if err != nil {
		return nil, fmt.Errorf("badges: %w", err)
	}
	return report, nil
}

func checkEvents(ids []string) error {
	seen := map[string]bool{}
	for _, id := range ids {
		if err := site.CheckTokenID("badges: event", id); err != nil {
			return err
		}
		if seen[id] {
			return fmt.Errorf("badges: duplicate event %s", id)
		}
		seen[id] = true
	}
	return nil
}

// Events returns the kept descriptions of events, in the order of ids. It omits events without one.
func Events(state string, ids []string) ([]site.Event, error) {
	kept, err := store.Read[meta](folder(state))
	if err != nil {
		return nil, fmt.Errorf("badges: %w", err)
	}
	defer kept.Close()
	var events []site.Event
	for _, id := range ids {
		body, err := kept.Body(eventKey(id))
		if err == nil && body == nil {
			continue
		}
		var e site.Event
		if err == nil {
			err = json.Unmarshal(body, &e)
		}
		if err != nil {
			return nil, fmt.Errorf("badges: event %s: %w", id, err)
		}
		events = append(events, e)
	}
	return events, nil
}

// Badges yields the kept badges of events, in the order of ids, for each event ordered by owner.
func Badges(state string, ids []string) iter.Seq2[snapshot.Badge, error] {
	return all(state, ids, func(int64) {})
}

// all is Badges, and calls told with the time of the answer for each badge.
func all(state string, ids []string, told func(ms int64)) iter.Seq2[snapshot.Badge, error] {
	return func(yield func(snapshot.Badge, error) bool) {
		kept, err := store.Read[meta](folder(state))
		if err != nil {
			yield(snapshot.Badge{}, fmt.Errorf("badges: %w", err))
			return
		}
		defer kept.Close()
		keys := kept.Keys()
		for _, id := range ids {
			for _, key := range withPrefix(keys, badgePrefix(id)) {
				m, _, _ := kept.Meta(key)
				if m.Token == "" {
					continue
				}
				told(m.told())
				owner, err := ownerOf(key)
				if !yield(snapshot.Badge{EventID: id, TokenID: m.Token, Owner: owner}, err) || err != nil {
					return
				}
			}
		}
	}
}

// A Writer writes the tables events and badges; a snapshot.Writer is one.
type Writer interface {
	WriteEvent(site.Event) error
	WriteBadge(snapshot.Badge) error
}

// Write writes the tables events and badges from a state, in the order of Events and Badges. It
// returns a summary of the API's answers without Source, nil for none. Its digest covers the rows
// of events, then those of badges.
func Write(w Writer, state string, ids []string) (*site.ServiceInput, error) {
	var told source.Answers
	events, err := Events(state, ids)
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		told.At(0)
		if err := errors.Join(w.WriteEvent(e), told.Digest.AddEvent(e)); err != nil {
			return nil, err
		}
	}
	for b, err := range all(state, ids, told.At) {
		if err != nil {
			return nil, err
		}
		if err := errors.Join(w.WriteBadge(b), told.Digest.AddBadge(b)); err != nil {
			return nil, err
		}
	}
	return told.Input(), nil
}

// withPrefix returns the sorted keys that begin with prefix.
func withPrefix(keys []string, prefix string) []string {
	from, _ := slices.BinarySearch(keys, prefix)
	rest := keys[from:]
	return rest[:sort.Search(len(rest), func(i int) bool { return !strings.HasPrefix(rest[i], prefix) })]
}

// ownerOf returns the account in the key of a badge.
func ownerOf(key string) (site.Address, error) {
	_, text, _ := strings.Cut(key, "/")
	owner, err := site.ParseAddress(text)
	if err != nil {
		return owner, fmt.Errorf("badges: %q: %w", key, err)
	}
	return owner, nil
}
