// Package profile asks an ENS worker for the profiles of accounts, and keeps its answers between
// runs: a run asks for as many as its budget allows, those first that nobody has asked for.
//
// The API may change until version 1.
package profile

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
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/internal/ask"
	"github.com/followpress/followpress/source/internal/store"
)

// Options are options of Refresh.
type Options struct {
	State  string                  // folder of the state; profiles are kept in its folder profiles
	URL    string                  // of the worker, such as https://ens.ethfollow.xyz
	Wanted map[site.Address]uint32 // whose profiles are wanted, and how many lists follow them
	Budget source.Budget           // retries count too, and waiting

	Progress  source.Progress
	Log       *slog.Logger      // nil means none
	Transport http.RoundTripper // nil means one of its own
}

// ErrBusy says that another run works on the profiles of the same state.
var ErrBusy = store.ErrBusy

const (
	// settled is how long an answer is not asked for again: a worker caches its answers for ten
	// minutes unless configured otherwise.
	settled = 10 * time.Minute
	// apart is the time between two answers that an account has no profile, before the one that is
	// known is dropped. A worker gives that answer too when it cannot look the name up.
	apart = 24 * time.Hour
)

// forgotten is how long nobody must have wanted an account's profile before it is no longer kept.
const forgotten = 90 * 24 * time.Hour

// Known profiles of which so many were asked for, and most were said to be gone, are not dropped:
// then the worker has a fault.
const doubtFrom = 20

// A meta says when an account was asked about. Times are in milliseconds since the Unix epoch.
type meta struct {
	Asked int64  `json:"asked,omitempty"` // the last time that the worker answered, or failed to; 0 for never
	Gone  int64  `json:"gone,omitempty"`  // the first time that it had no profile, since it last had one
	Fresh int64  `json:"fresh,omitempty"` // of the profile
	Error string `json:"error,omitempty"` // of the last time
}

// until is the meta without times after now, which a run noted whose clock was wrong: the account was
// asked about as long ago as can be, its profile is as old, and was missed just now.
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

// Refresh asks for profiles within the budget and keeps the answers. What the worker fails to answer
// stays as it is, and is no error: the report has it. A profile that is gone is dropped if the worker
// says so twice, at least a day apart. What was last asked 90 days ago, because nobody wants it, is
// forgotten. An error means that the state cannot be read or written, that
// the options are wrong, or that ctx ended; what was answered before is kept then too. It wraps
// ErrBusy if another run works on the same state.
func Refresh(ctx context.Context, o Options) (_ *Report, err error) {
	client, err := ask.New(ask.Options{URL: o.URL, Budget: o.Budget, Log: o.Log, Transport: o.Transport})
	if err != nil {
		return nil, fmt.Errorf("profiles: %w", err)
	}
	defer client.Close()
	kept, err := store.Open[meta](folder(o.State))
	if err != nil {
		return nil, fmt.Errorf("profiles: %w", err)
	}
	defer func() { err = errors.Join(err, kept.Close()) }()

	r := &refresher{o: o, store: kept, client: client, size: bulkMost,
		report: &Report{Wanted: len(o.Wanted), Failed: map[string]int{}, Examples: []string{}}}
	r.queue = order(o.Wanted, kept, time.Now())
	o.Progress.Stage("profiles", r.expected())
	err = r.ask(ctx)
	o.Progress.End()
	if err != nil {
		return nil, fmt.Errorf("profiles: %w", err)
	}
	err = r.drop()
	r.forget(time.Now())
	if err := errors.Join(err, kept.Compact()); err != nil {
		return nil, fmt.Errorf("profiles: %w", err)
	}
	r.count()
	return r.report, nil
}

// order is the order in which accounts are asked about: first those of which nothing is known, of
// those the most followed ones; then those whose profile is the oldest.
func order(wanted map[site.Address]uint32, kept *store.Store[meta], now time.Time) []site.Address {
	type account struct {
		address site.Address
		lists   uint32
		known   bool
		since   int64
	}
	var all []account
	for address, lists := range wanted {
		m, hasBody, _ := kept.Meta(address.String())
		m = m.until(now)
		if m.Asked > 0 && now.UnixMilli()-m.Asked < settled.Milliseconds() {
			continue
		}
		all = append(all, account{address, lists, hasBody || m.Asked > 0, cmp.Or(m.Asked, m.Fresh)})
	}
	slices.SortFunc(all, func(a, b account) int {
		switch {
		case a.known != b.known && b.known:
			return -1
		case a.known != b.known:
			return 1
		case a.known && a.since != b.since:
			return cmp.Compare(a.since, b.since)
		}
		return cmp.Or(cmp.Compare(b.lists, a.lists), slices.Compare(a.address[:], b.address[:]))
	})
	queue := make([]site.Address, len(all))
	for i, a := range all {
		queue[i] = a.address
	}
	return queue
}

// Profiles are the profiles that are kept in a state, in the order of addresses. A state without any
// has none.
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

// Import keeps the profiles of accounts, such as those of an earlier snapshot, in any order, where
// they are fresher than those that are there. It returns how many it has kept. A profile that was
// dropped since does not come back.
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
		dropped := !hasBody && m.Gone > 0 && m.Asked-m.Gone >= apart.Milliseconds() && m.Asked >= a.ENS.Fresh
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
	return n, kept.Compact()
}

func put(kept *store.Store[meta], key string, m meta, ens site.Profile) error {
	body, err := json.MarshalWithOption(ens, json.DisableHTMLEscape())
	if err != nil {
		return fmt.Errorf("profile of %s: %w", key, err)
	}
	return kept.Put(key, m, body)
}
