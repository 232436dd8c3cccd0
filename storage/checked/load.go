package checked

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/storage"
)

// mostMark is more than the size of a mark, in bytes.
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

// optional is bounded that returns nil for an object that does not exist.
func (s *Site) optional(ctx context.Context, key site.Key, most int64) ([]byte, error) {
	body, err := s.bounded(ctx, key, most)
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, storage.ErrForbidden) {
		return nil, nil
	}
	return body, err
}

// reload reads notes and root again, unless another call has begun to since.
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
	if errors.Is(err, ErrBetween) || errors.Is(err, note.ErrOtherRoot) { // perhaps something was replaced between two reads
		is, err = s.load(ctx, was)
	}
	if err != nil {
		return err
	}
	if was != nil && s.options.Pinned && is.live.digest != was.live.digest {
		return fmt.Errorf("read %s: another site was published meanwhile: %w", site.RootKey, ErrBetween)
	}
	if !s.options.AllowRollback && !s.keys.None() {
		if err := is.note.After(s.seen); err != nil {
			return fmt.Errorf("%w: somebody has put an old site back: publish the newest one again, or allow a rollback if that was meant", err)
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

// load reads notes and root. was is the state so far, nil for none, whose manifests are kept.
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
	// The announcement is removed last. So if there is none, what is read now is the live site.
	announced, err := s.optional(ctx, note.NextPrefix+note.Key, note.MaxBytes)
	if err != nil && !errors.Is(err, storage.ErrTooLarge) {
		return nil, err
	}
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
	is.next, err = s.announced(ctx, is, announced, was)
	return is, err
}

// readRoot reads the root, and what the store says of it.
func (s *Site) readRoot(ctx context.Context, is *state) ([]byte, error) {
	if store, ok := s.store.(reader); ok { // it bounds the root itself
		body, info, err := store.Read(ctx, site.RootKey)
		is.info = info
		return body, err
	}
	return s.bounded(ctx, site.RootKey, site.MaxRootBytes)
}

// vouch checks that a note is about the root: that of the live site, or the announced one, which takes its place after
// the root.
func (s *Site) vouch(is *state, root, announced []byte) error {
	if is.signed == nil && announced == nil {
		return fmt.Errorf("read %s: there is none: %w", note.Key, note.ErrUnsigned)
	}
	n, by, err := s.keys.Open(is.signed)
	if err == nil {
		err = n.Names(root)
	}
	if err == nil {
		is.note, is.by = n, by
		return nil
	}
	if announced == nil || is.signed != nil && !errors.Is(err, note.ErrOtherRoot) {
		return err
	}
	n, by, err2 := s.keys.Open(announced)
	if err2 != nil {
		return err
	}
	if n.Names(root) == nil {
		is.note, is.signed, is.by = n, announced, by
		return nil
	}
	return fmt.Errorf("read %s: %w", site.RootKey, ErrBetween)
}

// announced returns the version that is announced; nil if there is none, or none that follows the live one.
func (s *Site) announced(ctx context.Context, is *state, signed []byte, was *state) (*version, error) {
	if signed == nil {
		return nil, nil
	}
	n, _, err := s.keys.Open(signed)
	if err != nil || n.Counter <= is.note.Counter || n.Origin != is.note.Origin || n.After(is.note) != nil && !s.options.AllowRollback {
		return nil, nil //nolint:nilerr // an announcement that nobody can believe is none
	}
	body, err := s.optional(ctx, note.NextPrefix+site.RootKey, site.MaxRootBytes)
	switch {
	case errors.Is(err, storage.ErrTooLarge) || err == nil && (body == nil || n.Names(body) != nil):
		return nil, nil //nolint:nilerr // an announcement that nobody can believe is none
	case err != nil:
		return nil, err
	}
	next, err := newVersion(body, was)
	if err != nil {
		return nil, nil //nolint:nilerr // likewise
	}
	is.coming = signed
	return next, nil
}

// newVersion parses a root, unless it is one of those so far.
func newVersion(body []byte, was *state) (*version, error) {
	digest := site.Sum256(body)
	if was != nil {
		for _, v := range was.versions() {
			if v.digest == digest {
				return v, nil
			}
		}
	}
	root, err := site.ParseRoot(body)
	if err != nil {
		return nil, err
	}
	return &version{root: &root, body: body, digest: digest, opening: newTurn()}, nil
}
