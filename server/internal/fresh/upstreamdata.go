package fresh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/internal/panics"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/server/internal/gate"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/refresh"
	"github.com/followpress/followpress/site/rules"
)

// upstreamData is an upstream's answer about an account.
type upstreamData interface {
	// applyTo returns a stored object of the given kind with the data merged in. The error wraps
	// ErrUpstream if the object belongs to another account.
	applyTo(kind site.ListObject, stored []byte) ([]byte, error)
	// olderThan reports whether a stored object certainly has newer data.
	olderThan(kind site.ListObject, stored []byte) bool
	// newerThan reports whether a stored object may have older data.
	newerThan(kind site.ListObject, stored []byte) bool
	// orNewer returns the data in a kept entry of the same account if it is newer, else the data
	// itself.
	orNewer(c site.Config, kept []byte) upstreamData
	// complete adds what the upstream omitted from the stored object, which must not be a copy.
	complete(stored []byte) error
	// owner returns the account that the data belongs to.
	owner() site.Address
	// Keep encodes the entry below site.RefreshPrefix. The generator merges its data into the next
	// site; its digests tell publishers that the replaced object is not damaged. kept is the
	// present entry; nil for none.
	Keep(replaced, by, kept []byte) ([]byte, error)
}

// fetch asks the upstream for the data of a stored object. Errors about the upstream or its answer
// wrap ErrUpstream.
func (f *Refresher) fetch(ctx context.Context, t Target, stored []byte, memory *claimed) (upstreamData, error) {
	ctx, cancel := context.WithTimeout(ctx, f.options.UpstreamTimeout)
	defer cancel()
	if t.Object == site.Details {
		_, account, err := site.DecodeDetails(stored)
		if err != nil {
			return nil, err
		}
		return f.fetchProfile(ctx, t, account)
	}
	return f.fetchBadges(ctx, t, stored, memory)
}

func (f *Refresher) fetchProfile(ctx context.Context, t Target, account site.Address) (*profileData, error) {
	body, err := f.ask(ctx, site.Details, f.profiles, maxUpstreamBytes, "{address}", account.String())
	if errors.Is(err, errUpstreamAbsent) {
		err = fmt.Errorf("%w: status 404", ErrUpstream)
	}
	if err != nil {
		return nil, err
	}
	now := time.Now()
	u, err := refresh.DecodeUpdate(body, account, now)
	if err != nil {
		return nil, fmt.Errorf("%w: profile of %s: %w", ErrUpstream, account, err)
	}
	u.Fresh = min(u.Fresh, now.UnixMilli()) // otherwise no later answer would be newer
	return &profileData{KeptProfile: u.KeptProfile, update: &u, limits: t.Config.ProfileLimits()}, nil
}

// fetchBadges asks for each event of the stored object, badgesAtOnce at a time.
func (f *Refresher) fetchBadges(ctx context.Context, t Target, stored []byte, memory *claimed) (upstreamData, error) {
	badges, err := decodeBadges(t.Config, stored)
	if err != nil {
		return nil, err
	}
	account, err := f.accountOf(ctx, t)
	if err != nil {
		return nil, err
	}
	fetched := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(badgesAtOnce)
	for i, b := range badges {
		group.Go(func() (err error) {
			defer panics.Catch(&err)
			collection, err := f.fetchCollection(ctx, account, b.EventID, memory)
			badges[i] = refresh.Badge{EventID: b.EventID, Participated: collection != nil, Collection: collection}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return badgeData{t.Config, refresh.KeptBadges{Address: account.String(), Fetched: fetched.UnixMilli(), Badges: badges}}, nil
}

// The operator chooses the events, but an upstream describes them, and the badges of an account
// repeat the description. No text is longer than the answer about its event.
const (
	mostEventBytes  = 64 << 10 // limit for one answer
	mostBadgesBytes = 1 << 20  // limit for all answers of a refresh
	decodedBadges   = 8        // memory of an answer divided by its size: decoded, and in the objects that show it
)

// claimed is the memory that a refresh has taken from the common gate. It is safe for concurrent
// use.
type claimed struct {
	of    *gate.Gate
	bytes atomic.Int64
}

// add counts an answer. The error wraps ErrUpstream if the answers are too large, and is a
// *TooOftenError if other refreshes hold the memory.
func (c *claimed) add(answer int) error {
	bytes := int64(answer) * decodedBadges
	if c.bytes.Add(bytes) > mostBadgesBytes*decodedBadges {
		c.bytes.Add(-bytes)
		return fmt.Errorf("%w: the events have more than %d bytes together", ErrUpstream, mostBadgesBytes)
	}
	if !c.of.TryTake(bytes) {
		c.bytes.Add(-bytes)
		return &TooOftenError{time.Second}
	}
	return nil
}

func (c *claimed) free() { c.of.Give(c.bytes.Load()) }

// accountOf reads the account of the target's list from its details, because badges name no account
// if it holds none.
func (f *Refresher) accountOf(ctx context.Context, t Target) (site.Address, error) {
	details, err := f.fetcher.Get(ctx, t.Config.ListKey(t.TokenID, site.Details))
	if err != nil {
		return site.Address{}, fmt.Errorf("account of the badges: %w", fetch.MixedIfAbsent(err))
	}
	_, account, err := site.DecodeDetails(details)
	return account, err
}

// fetchCollection asks for the account's token of an event; nil if it holds none.
func (f *Refresher) fetchCollection(ctx context.Context, account site.Address, eventID string, memory *claimed) (*refresh.Collection, error) {
	body, err := f.ask(ctx, site.Badges, f.badges, mostEventBytes, "{address}", account.String(), "{event_id}", eventID)
	if errors.Is(err, errUpstreamAbsent) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("event %s: %w", eventID, err)
	}
	if err := memory.add(len(body)); err != nil {
		return nil, fmt.Errorf("event %s: %w", eventID, err)
	}
	c, err := refresh.DecodeCollection(body, account, eventID)
	if err != nil {
		return nil, fmt.Errorf("%w: event %s: %w", ErrUpstream, eventID, err)
	}
	return &c, nil
}

func (f *Refresher) ask(ctx context.Context, object site.ListObject, u *upstream, most int64, replacements ...string) ([]byte, error) {
	begun := time.Now()
	body, err := u.get(ctx, most, replacements...)
	result := "found"
	switch {
	case errors.Is(err, errUpstreamAbsent):
		result = "absent"
	case err != nil:
		result = "error"
	}
	f.counts.Asked(object, result, time.Since(begun))
	return bytes.TrimSpace(body), err
}

// profileData is a profile sent by an upstream or kept by a refresh.
type profileData struct {
	refresh.KeptProfile
	update *refresh.Update // nil for a kept profile, which is complete
	limits site.ProfileLimits
}

func (p *profileData) complete(stored []byte) error {
	if p.update == nil {
		return nil
	}
	details, _, err := site.DecodeDetails(stored)
	if err != nil {
		return err
	}
	p.KeptProfile = p.update.Over(details.ENS)
	p.Profile, _ = p.Within(p.limits) // like the generator
	return nil
}

func (p *profileData) applyTo(kind site.ListObject, stored []byte) ([]byte, error) {
	if kind == site.Account {
		a, _, err := decodeAccount(stored)
		if err != nil {
			return nil, err
		}
		a.ENS = p.Profile
		return a.encode(), p.belongsTo(a.Address)
	}
	details, _, err := site.DecodeDetails(stored)
	if err == nil {
		err = p.belongsTo(details.Address)
	}
	if err != nil {
		return nil, err
	}
	details.ENS = p.Profile
	return encode(details)
}

func (p *profileData) owner() site.Address { return addressOf(p.Address) }

// addressOf returns the address of data, which was validated when decoded.
func addressOf(text string) site.Address {
	address, _ := site.ParseAddress(text)
	return address
}

func (p *profileData) belongsTo(address string) error {
	if address != p.Address {
		return fmt.Errorf("%w: the list belongs to another account now", ErrUpstream)
	}
	return nil
}

// freshOf returns the time of the profile in a stored object; 0, the oldest, if that time is in the
// future. ok is false if the profile is unreadable.
func freshOf(kind site.ListObject, stored []byte) (fresh int64, ok bool) {
	var err error
	if kind == site.Account {
		var a accountAnswer
		a, _, err = decodeAccount(stored)
		fresh = a.ENS.Fresh
	} else {
		var details site.ListDetails
		details, _, err = site.DecodeDetails(stored)
		fresh = details.ENS.Fresh
	}
	if fresh > time.Now().Add(mostSkew).UnixMilli() {
		fresh = 0
	}
	return fresh, err == nil
}

// mostSkew is the largest accepted difference between the clocks of fallbacks.
const mostSkew = time.Hour

func (p *profileData) olderThan(kind site.ListObject, stored []byte) bool {
	fresh, ok := freshOf(kind, stored)
	return ok && rules.IsNewer(fresh, p.Fresh)
}

func (p *profileData) newerThan(kind site.ListObject, stored []byte) bool {
	fresh, ok := freshOf(kind, stored)
	return ok && rules.IsNewer(p.Fresh, fresh)
}

func (p *profileData) orNewer(c site.Config, kept []byte) upstreamData {
	is, err := refresh.DecodeProfile(kept, p.owner(), time.UnixMilli(0))
	if err != nil || !rules.IsNewer(is.Fresh, p.Fresh) {
		return p
	}
	newer := &profileData{KeptProfile: p.KeptProfile}
	newer.Profile, _ = is.Within(c.ProfileLimits())
	return newer
}

type badgeData struct {
	config site.Config
	refresh.KeptBadges
}

func (b badgeData) owner() site.Address { return addressOf(b.Address) }

// complete does nothing: an answer about badges is complete.
func (b badgeData) complete([]byte) error { return nil }

// applyTo keeps the events of the stored object, because a publish may have changed them since the
// upstream was asked.
func (b badgeData) applyTo(_ site.ListObject, stored []byte) ([]byte, error) {
	badges, err := decodeBadges(b.config, stored)
	if err != nil {
		return nil, err
	}
	told := make(map[string]refresh.Badge, len(b.Badges))
	for _, badge := range b.Badges {
		told[badge.EventID] = badge
	}
	for i := range badges {
		badge, ok := told[badges[i].EventID]
		if !ok || badge.Participated && badges[i].Participated && badge.Collection.TokenID == badges[i].Collection.TokenID {
			continue // unchanged: keep the site's description of the event
		}
		badges[i] = badge
	}
	return encodeBadges(b.config, badges)
}

// olderThan returns false: badges do not show when they were fetched.
func (b badgeData) olderThan(site.ListObject, []byte) bool { return false }

func (b badgeData) orNewer(_ site.Config, kept []byte) upstreamData {
	if is, account, err := refresh.DecodeKeptBadges(kept); err == nil && account == b.owner() && rules.IsNewer(is.Fetched, b.Fetched) {
		b.KeptBadges = is
	}
	return b
}

func (b badgeData) newerThan(site.ListObject, []byte) bool { return true }
