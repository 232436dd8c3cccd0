package checked

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/internal/object"
)

// mostMark is the maximum size of a mark in bytes.
const mostMark = 1 << 20

// bounded reads an object of at most that many bytes.
func (s *Site) bounded(ctx context.Context, key site.Key, most int64) ([]byte, error) {
	body, err := s.store.GetAdmitted(ctx, key, func(_ context.Context, size int64) error {
		if size > most {
			return fmt.Errorf("read %s: %d bytes, expected at most %d: %w", key, size, most, storage.ErrTooLarge)
		}
		return nil
	})
	if err == nil && int64(len(body)) > most {
		err = fmt.Errorf("read %s: %d bytes, expected at most %d: %w", key, len(body), most, storage.ErrTooLarge)
	}
	return body, err
}

// optional is like bounded, but returns nil for a missing object.
func (s *Site) optional(ctx context.Context, key site.Key, most int64) ([]byte, error) {
	body, err := s.bounded(ctx, key, most)
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, object.ErrForbidden) {
		return nil, nil
	}
	return body, err
}

// reload reads the notes and the root again, unless another call began to after since.
func (s *Site) reload(ctx context.Context, since time.Time) error {
	if err := s.loading.take(ctx); err != nil {
		return fmt.Errorf("read %s: %w", site.RootKey, err)
	}
	defer s.loading.give()
	was := s.state.Load()
	if was != nil && was.begun.After(since) {
		return nil
	}
	is, err := s.load(ctx, was)
	if errors.Is(err, ErrBetween) || errors.Is(err, note.ErrOtherRoot) || err == nil && is.ended { // something may have been replaced between two reads
		is, err = s.load(ctx, was)
	}
	if err != nil {
		return err
	}
	if was != nil && s.options.Pinned && is.live.digest != was.live.digest {
		return fmt.Errorf("read %s: another site has been published: %w", site.RootKey, ErrBetween)
	}
	if !s.options.AllowRollback && !s.keys.None() {
		if err := is.note.After(s.seen); err != nil {
			return fmt.Errorf("%w: an old site was put back; publish the newest one again, or allow the rollback if it is intended", err)
		}
	}
	s.seen = is.note
	s.state.Store(is)
	if was != nil && is.live.digest != was.live.digest {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	return nil
}

// load reads the notes and the root. It reuses the manifests of was, the previous state, which may be nil.
func (s *Site) load(ctx context.Context, was *state) (*state, error) {
	is := &state{begun: time.Now()}
	if s.keys.None() {
		body, err := s.readRoot(ctx, is)
		if err != nil {
			return nil, err
		}
		if is.live, err = newVersion(body, was); err != nil {
			return nil, err
		}
		mark, err := s.optional(ctx, site.MarkKey, mostMark)
		is.replaced = mark != nil || errors.Is(err, storage.ErrTooLarge)
		if errors.Is(err, storage.ErrTooLarge) {
			err = nil
		}
		return is, err
	}
	// The announcement is removed last. So without one, the following reads return the live site.
	joined, err := s.optional(ctx, note.NextKey, note.MaxAnnouncedBytes)
	if err != nil && !errors.Is(err, storage.ErrTooLarge) {
		return nil, err
	}
	announced := s.keys.OpenAnnounced(joined, is.begun)
	body, err := s.readRoot(ctx, is)
	if err != nil {
		return nil, err
	}
	is.signed, err = s.optional(ctx, note.Key, note.MaxBytes)
	if err != nil {
		return nil, err
	}
	if err := s.vouch(is, body, announced); err != nil {
		return nil, err
	}
	if is.live, err = newVersion(body, was); err != nil {
		return nil, err
	}
	is.coming = joined
	return is, s.addAnnounced(ctx, is, announced, was)
}

// readRoot reads the root, and its Info if the store returns one.
func (s *Site) readRoot(ctx context.Context, is *state) ([]byte, error) {
	if store, ok := s.store.(reader); ok { // the store limits the root itself
		body, info, err := store.Read(ctx, site.RootKey)
		is.info = info
		return body, err
	}
	return s.bounded(ctx, site.RootKey, site.MaxRootBytes)
}

// vouch checks that a note covers the root: the live note, or an announced one, because a publish replaces the note
// after the root.
func (s *Site) vouch(is *state, root []byte, announced []note.Announced) error {
	if is.signed == nil && len(announced) == 0 {
		if r, err := site.ParseServedRoot(root); err == nil && r.Live {
			return fmt.Errorf("read %s: this address answers from live, which is not signed; use the bucket: %w", site.RootKey, note.ErrUnsigned)
		}
		return fmt.Errorf("read %s: no note: %w", note.Key, note.ErrUnsigned)
	}
	n, by, err := s.keys.Open(is.signed, is.begun)
	if err == nil {
		err = n.Names(root)
	}
	if err == nil {
		is.note, is.by = n, by
		return nil
	}
	if len(announced) == 0 || is.signed != nil && !errors.Is(err, note.ErrOtherRoot) {
		return err
	}
	for _, a := range announced {
		if a.Names(root) == nil {
			is.note, is.signed, is.by = a.Note, a.Signed, a.By
			return nil
		}
	}
	return fmt.Errorf("read %s: %w", site.RootKey, ErrBetween)
}

// addAnnounced adds the announced versions that follow the live one.
func (s *Site) addAnnounced(ctx context.Context, is *state, announced []note.Announced, was *state) error {
	for _, a := range announced {
		if a.Counter <= is.note.Counter || a.Origin != is.note.Origin {
			continue
		}
		if err := a.After(is.note); err != nil && !s.options.AllowRollback {
			is.older = err
			continue
		}
		body, err := s.optional(ctx, site.NextKey(a.Counter, site.RootKey), site.MaxRootBytes)
		switch {
		case err == nil && body == nil:
			is.ended = true
			continue
		case errors.Is(err, storage.ErrTooLarge) || err == nil && a.Names(body) != nil:
			continue // not signed, so ignored
		case err != nil:
			return err
		}
		if v, err := newVersion(body, is, was); err == nil { // ignored, too
			is.next = append(is.next, next{v, a.Counter})
		}
	}
	return nil
}

// newVersion parses a root, or reuses the version that a state has of it.
func newVersion(body []byte, states ...*state) (*version, error) {
	digest := site.Sum256(body)
	for _, st := range states {
		if st == nil {
			continue
		}
		for _, v := range st.versions() {
			if v != nil && v.digest == digest {
				return v, nil
			}
		}
	}
	root, err := site.ParseRoot(body)
	if err != nil {
		return nil, err
	}
	reopened := rate.NewLimiter(rate.Every(damagedFor/mostReopened), mostReopened)
	return &version{root: &root, body: body, digest: digest, opening: newTurn(), reopened: reopened}, nil
}
