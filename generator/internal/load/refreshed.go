package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/refresh"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
)

type merge struct {
	*loader
	counts   *summary.RefreshedReport
	profiles map[uint32]render.Profile // newest profile of each account, if newer than the snapshot's

	digest *snapshot.Digest // digest of readable objects; nil if not wanted
	row    []byte           // spare memory
}

// readRefreshed reads the refreshed data. It merges profiles at once, because names are chosen
// next. Badges are merged after the snapshot's badges have been read.
func (l *loader) readRefreshed(ctx context.Context) error {
	if l.Refreshed == nil {
		return nil
	}
	l.Progress.Stage("refreshed", 0)
	asOf, err := time.Parse(time.RFC3339, l.graph.AsOf)
	if err != nil {
		return fmt.Errorf("as_of: %w", err) // impossible: checked by snapshot.ReadAsOf
	}
	counts := &summary.RefreshedReport{WithoutEffect: map[string]int{}}
	l.Report.Refreshed = counts
	if !l.BadgesAsOf.IsZero() {
		asOf = l.BadgesAsOf
	}
	l.badges.AsOf = asOf.UnixMilli()
	m := &merge{loader: l, counts: counts, profiles: map[uint32]render.Profile{}}
	if l.Inputs != nil {
		m.digest = new(snapshot.Digest)
	}
	err = l.Refreshed.Each(ctx, func(key site.Key, body []byte) error {
		counts.Objects++
		l.Progress.AddBytes(1, int64(len(body)))
		if body == nil {
			counts.WithoutEffect[summary.Unsigned]++
			return nil
		}
		if err := m.add(key, bytes.TrimSpace(body)); err != nil {
			// Anyone with write access there must not be able to stop every publish.
			l.skip(&counts.Skipped, &snapshot.RowError{File: string(site.RefreshPrefix + key), Reason: err.Error()})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if counts.Objects > counts.Skipped+counts.WithoutEffect[summary.Unsigned] {
		m.fillInputs()
	}
	l.renamed = map[uint32]struct{}{}
	for account, p := range m.profiles {
		before := bytes.Clone(l.graph.Profiles.Name(account))
		l.graph.Profiles.Set(account, p)
		if !bytes.Equal(before, l.graph.Profiles.Name(account)) {
			l.renamed[account] = struct{}{}
		}
	}
	m.count()
	return nil
}

// fillInputs adds the digest of the readable objects to the inputs.
func (m *merge) fillInputs() {
	if m.digest == nil {
		return
	}
	sum := m.digest.Sum()
	m.Inputs.Refreshed = &sum
	if !m.BadgesAsOf.IsZero() {
		m.Inputs.BadgesAsOf = m.BadgesAsOf.UTC().Format(time.RFC3339Nano)
	}
}

// add decodes an object. It returns an error if the object cannot be read.
func (m *merge) add(key site.Key, body []byte) error {
	object, tokenID, ok := site.ParseRefreshKey(key)
	switch {
	case !ok:
		return errors.New("the key is neither details/{token_id} nor badges/{token_id}")
	case object == site.Details:
		return m.addProfile(tokenID, body)
	default:
		return m.addBadges(tokenID, body)
	}
}

func (m *merge) addProfile(tokenID string, body []byte) error {
	fresh, address, err := refresh.DecodeKeptProfile(body)
	if err != nil {
		return err
	}
	if m.digest != nil {
		m.row = refresh.AppendProfileRow(m.row[:0], tokenID, &fresh, address)
		m.digest.Add(m.row)
	}
	account, ok := m.accountOfList(tokenID, address)
	if !ok {
		return nil
	}
	newest, ok := m.profiles[account]
	if !ok {
		newest, ok = m.graph.Profiles.Of(account)
	}
	if !ok || rules.IsNewer(fresh.Fresh, newest.Fresh) {
		p, long := fresh.Within(m.Config.ProfileLimits())
		m.profiles[account] = render.EncodeProfile(p)
		m.Report.LongTexts.Add(string(site.RefreshKey(site.Details, tokenID)), 0, long)
		m.Report.NoTexts.Add(p.NoTexts)
	}
	return nil
}

func (m *merge) addBadges(tokenID string, body []byte) error {
	kept, address, err := refresh.DecodeKeptBadges(body)
	if err != nil {
		return err
	}
	if m.digest != nil {
		m.row = refresh.AppendBadgesRow(m.row[:0], tokenID, &kept, address)
		m.digest.Add(m.row)
	}
	account, ok := m.accountOfList(tokenID, &address)
	if !ok {
		return nil
	}
	if !rules.IsNewer(kept.Fetched, m.badges.AsOf) {
		return nil
	}
	known := false
	for _, b := range kept.Badges {
		event, ok := m.eventOf[b.EventID]
		if !ok {
			continue
		}
		known = true
		token := ""
		if b.Collection != nil {
			token = strings.Clone(b.Collection.TokenID) // do not retain the whole object
		}
		m.badges.Add(accountEvent{account, event}, token, kept.Fetched, m.counts.Objects)
	}
	if !known {
		m.counts.WithoutEffect[summary.UnknownEvent]++
	}
	return nil
}

// accountOfList returns the account of a list. ok is false if the list does not exist, or if its
// account is not the refreshed one anymore.
func (m *merge) accountOfList(tokenID string, refreshed *site.Address) (account uint32, ok bool) {
	g := m.graph
	list, ok := g.Lists.Find(tokenID)
	if !ok {
		m.counts.WithoutEffect[summary.UnknownList]++
		return 0, false
	}
	account = g.Owners[list]
	if refreshed != nil && g.Accounts[account] != *refreshed {
		m.counts.WithoutEffect[summary.ForeignList]++
		return 0, false
	}
	return account, true
}

// count completes the report: objects counted nowhere else are older than the snapshot or another
// object.
func (m *merge) count() {
	c := m.counts
	c.Profiles, c.Badges = len(m.profiles), m.badges.Objects()
	c.Older = c.Objects - c.Profiles - c.Badges - c.Skipped
	for _, n := range c.WithoutEffect {
		c.Older -= n
	}
}
