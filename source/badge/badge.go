// Package badge asks a POAP-like API who holds badges of events, and keeps its answers between runs:
// with one request for hundreds of owners where the API has that, else with one for each account and
// event, as many as a budget allows.
//
// The API may change until version 1.
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

// Options are options of Refresh.
type Options struct {
	State  string                  // folder of the state; badges are kept in its folder badges
	URL    string                  // of the API, such as https://api.poap.tech
	Key    secret.Text             // sent as X-API-Key; "" sends none. It is in no error and in no log
	Events []string                // event ids
	Wanted map[site.Address]uint32 // whom to ask about without requests by event, and how many lists follow them
	Budget source.Budget           // retries count too, and waiting

	Progress  source.Progress
	Log       *slog.Logger      // nil means none
	Transport http.RoundTripper // nil means one of its own
}

// ErrKey says that the API refuses the key.
var ErrKey = errors.New("the API refuses the key")

// ErrBusy says that another run works on the badges of the same state.
var ErrBusy = store.ErrBusy

const headerKey = "X-API-Key"

// A meta is what is known about an account and an event; about the event alone it is empty. Asked is
// in milliseconds since the Unix epoch.
type meta struct {
	Asked int64  `json:"asked,omitempty"` // the last time that the API answered, or failed to
	Token string `json:"token,omitempty"` // "" for none
	Gone  int64  `json:"gone,omitempty"`  // the first time that a list of the owners lacked it, though it is kept
	// Told is the time of the answer that has the token, if the API has not told it again when it was asked last.
	Told int64 `json:"told,omitempty"`
}

// told is the time of the answer that has the token.
func (m *meta) told() int64 { return cmp.Or(m.Told, m.Asked) }

func folder(state string) string { return filepath.Join(state, "badges") }

// Keys of the store: an event's description, and the badge of an account. The second ones of an event
// are in the order of accounts.
func eventKey(id string) string                       { return "event/" + id }
func badgePrefix(id string) string                    { return id + "/" }
func badgeKey(id string, address site.Address) string { return badgePrefix(id) + address.String() }

// Refresh asks who holds badges, and keeps the answers. What the API fails to answer stays as it is,
// and is no error: the report has it. Only a 404 means that an account has no badge, or a list of all
// owners without it; if a list lacks many at once, it has to do so again a day later. An error means
// that the API refuses the key (ErrKey), that the state cannot be read or written, that the options
// are wrong, or that ctx ended; what was answered before is kept then too. It wraps ErrBusy if another
// run works on the same state.
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
			return fmt.Errorf("badges: event %s is there twice", id)
		}
		seen[id] = true
	}
	return nil
}

// Events describes events as they are kept in a state, in the order of ids. An event that is not kept
// is left out.
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

// Badges are the badges of events that are kept in a state, event by event in the order of ids, of
// each in the order of owners.
func Badges(state string, ids []string) iter.Seq2[snapshot.Badge, error] {
	return all(state, ids, func(int64) {})
}

// all is Badges. told gets the time of the answer that has each badge.
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

// A Writer takes the tables events and badges; a snapshot.Writer is one.
type Writer interface {
	WriteEvent(site.Event) error
	WriteBadge(snapshot.Badge) error
}

// Write writes the tables events and badges as a state has them, in the order of Events and Badges. It returns what the API
// told, without Source: its digest is that of the rows of events, and of badges after them. It is nil for none.
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

// withPrefix are the sorted keys that begin with prefix.
func withPrefix(keys []string, prefix string) []string {
	from, _ := slices.BinarySearch(keys, prefix)
	rest := keys[from:]
	return rest[:sort.Search(len(rest), func(i int) bool { return !strings.HasPrefix(rest[i], prefix) })]
}

// ownerOf is the account of a key of a badge.
func ownerOf(key string) (site.Address, error) {
	_, text, _ := strings.Cut(key, "/")
	owner, err := site.ParseAddress(text)
	if err != nil {
		return owner, fmt.Errorf("badges: %q: %w", key, err)
	}
	return owner, nil
}
