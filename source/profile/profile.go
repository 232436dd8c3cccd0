// Package profile asks an ENS worker for the profiles of accounts and keeps its answers between
// runs. A run asks for as many as its budget allows, first for accounts never asked about.
//
// The API may change in any release.
package profile

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"path/filepath"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/internal/ask"
	"github.com/followpress/followpress/source/internal/collect"
	"github.com/followpress/followpress/source/internal/store"
)

// Options configure Refresh.
type Options struct {
	State  string                  // state folder; profiles are kept in its subfolder profiles
	URL    string                  // URL of the worker, such as https://ens.ethfollow.xyz
	Wanted map[site.Address]uint32 // accounts whose profiles are wanted, with the number of lists that follow them
	Budget source.Budget           // includes retries and waiting

	Progress  source.Progress
	Log       *slog.Logger      // nil for none
	Transport http.RoundTripper // nil for a default one
}

// ErrBusy means that another run is working on the profiles of the same state.
var ErrBusy = store.ErrBusy

const (
	// settled is how long an answer is not requested again: by default a worker caches its answers
	// for ten minutes.
	settled = 10 * time.Minute
	// forgotten is how long an account must be unwanted before its profile is dropped.
	forgotten = 90 * 24 * time.Hour
)

// A meta records the requests about an account. Times are in milliseconds since the Unix epoch.
type meta struct {
	Asked int64  `json:"asked,omitempty"` // last time that the worker answered, or failed to; 0 for never
	Gone  int64  `json:"gone,omitempty"`  // first time that it had no profile since it last had one
	Fresh int64  `json:"fresh,omitempty"` // time of the profile
	Error string `json:"error,omitempty"` // error of the last request
}

// until returns m without times after now, which a run with a wrong clock recorded: it makes the
// account due at once, its profile the oldest possible, and its absence just noticed.
func (m meta) until(now time.Time) meta {
	latest := now.UnixMilli()
	if m.Asked > latest {
		m.Asked = 1
	}
	if m.Fresh > latest {
		m.Fresh = 1
	}
	m.Gone = min(m.Gone, latest)
	return m
}

func folder(state string) string { return filepath.Join(state, "profiles") }

// Refresh asks for profiles within the budget and keeps the answers. A request without a usable
// answer changes nothing and is not an error; the report counts it. A missing profile is dropped if
// the worker lacks it twice, at least a day apart. Accounts last asked about 90 days ago, because
// they are no longer wanted, are dropped too.
//
// Refresh fails if the state cannot be read or written, if the options are invalid, or when ctx
// ends; earlier answers are kept even then. The error wraps ErrBusy if another run is working on
// the same state.
func Refresh(ctx context.Context, o Options) (_ *Report, err error) {
	c, err := collect.Open[meta](folder(o.State), ask.Options{URL: o.URL, Budget: o.Budget, Log: o.Log, Transport: o.Transport})
	if err != nil {
		return nil, fmt.Errorf("profiles: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	r := &refresher{Collector: c, o: o, size: bulkMost, report: &Report{Wanted: len(o.Wanted), Failed: map[string]int{}, Examples: []string{}}}
	if err := r.run(ctx); err != nil {
		return nil, fmt.Errorf("profiles: %w", err)
	}
	return r.report, nil
}

// queue returns the accounts in the order of requests. A profile whose account was never requested
// has the age in its own time.
func queue(wanted map[site.Address]uint32, kept *store.Store[meta], now time.Time) []site.Address {
	var all []collect.Question
	for address, lists := range wanted {
		m, hasBody, _ := kept.Meta(address.String())
		m = m.until(now)
		if m.Asked > 0 && now.UnixMilli()-m.Asked < settled.Milliseconds() {
			continue
		}
		q := collect.Question{Address: address, Lists: lists, Since: m.Asked}
		if hasBody && m.Asked == 0 {
			q.Since = max(1, m.Fresh)
		}
		all = append(all, q)
	}
	collect.Sort(all)
	queue := make([]site.Address, len(all))
	for i, q := range all {
		queue[i] = q.Address
	}
	return queue
}

// Profiles yields the profiles kept in a state, ordered by address. A state without profiles yields
// none.
func Profiles(state string) source.Profiles {
	return func(yield func(source.Profile, error) bool) {
		kept, err := store.Read[meta](folder(state))
		if err != nil {
			yield(source.Profile{}, fmt.Errorf("profiles: %w", err))
			return
		}
		defer kept.Close()
		for _, key := range kept.Keys() {
			if _, hasBody, _ := kept.Meta(key); !hasBody {
				continue
			}
			p, err := read(kept, key)
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

func read(kept *store.Store[meta], key string) (p source.Profile, err error) {
	if p.Address, err = site.ParseAddress(key); err != nil {
		return p, fmt.Errorf("profile of %q: %w", key, err)
	}
	body, err := kept.Body(key)
	if err == nil {
		err = json.Unmarshal(body, &p.ENS)
	}
	if err != nil {
		return p, fmt.Errorf("profile of %s: %w", key, err)
	}
	return p, nil
}

// Import keeps the profiles of accounts, for example of an earlier snapshot, in any order, where
// they are fresher than kept ones. It returns the number of profiles kept. It does not restore a
// profile dropped since.
func Import(state string, accounts iter.Seq2[snapshot.Account, error]) (n int, err error) {
	now := time.Now()
	kept, err := store.Open[meta](folder(state))
	if err != nil {
		return 0, fmt.Errorf("profiles: %w", err)
	}
	defer func() { err = errors.Join(err, kept.Close()) }()
	for a, err := range accounts {
		if err != nil {
			return n, err
		}
		if a.ENS == nil {
			continue
		}
		key := a.Address.String()
		m, hasBody, _ := kept.Meta(key)
		m = m.until(now)
		a.ENS.Fresh = min(a.ENS.Fresh, now.UnixMilli())
		dropped := !hasBody && m.Gone > 0 && m.Asked-m.Gone >= collect.Apart.Milliseconds() && m.Asked >= a.ENS.Fresh
		if dropped || hasBody && a.ENS.Fresh <= m.Fresh {
			continue
		}
		ens, err := a.ENS.Normalize()
		if err != nil {
			return n, fmt.Errorf("profile of %s: %w", key, err)
		}
		m.Fresh = ens.Fresh
		if err := put(kept, key, m, ens); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func put(kept *store.Store[meta], key string, m meta, ens site.Profile) error {
	body, err := json.MarshalWithOption(ens, json.DisableHTMLEscape())
	if err != nil {
		return fmt.Errorf("profile of %s: %w", key, err)
	}
	return kept.Put(key, m, body)
}
