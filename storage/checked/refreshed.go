package checked

import (
	"context"
	"errors"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/refresh"
	"github.com/followpress/followpress/storage"
)

// refreshed returns the replacement of a listed object according to a signed entry, or nil without
// an entry.
func (s *Site) refreshed(ctx context.Context, st *state, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	put, err := s.replacements(ctx, st.live.root.Config, key)
	if len(put) == 0 || err != nil {
		return nil, err
	}
	var refused error
	body, err := s.store.GetAdmitted(ctx, key, func(ctx context.Context, size int64) error {
		if size > maxRefresh {
			return storage.ErrTooLarge
		}
		refused = admit(ctx, size)
		return refused
	})
	switch {
	case refused != nil:
		return nil, refused
	case errors.Is(err, storage.ErrTooLarge) || errors.Is(err, storage.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	e, err := s.expect(ctx, st, key)
	if err != nil {
		return nil, err
	}
	digest := site.Sum256(body)
	for n, listed := range e.right {
		for _, r := range put {
			if r.SHA256 == digest && r.FromSHA256 == listed.sha256 {
				return body, s.pinnedTo(key, st, e.of[n:], nil)
			}
		}
	}
	return nil, nil
}

// replacements returns what the signed entries about an object list.
func (s *Site) replacements(ctx context.Context, c site.Config, key site.Key) (put []refresh.Replacement, err error) {
	for _, of := range c.RefreshesOf(key) {
		signed, err := s.optional(ctx, of, maxRefresh)
		switch {
		case errors.Is(err, storage.ErrTooLarge) || err == nil && signed == nil:
			continue
		case err != nil:
			return nil, err
		}
		entry, err := s.options.Refreshers.OpenEntry(of, signed, time.Now())
		if err != nil {
			continue // then the object counts as altered
		}
		if stored, err := refresh.Replacements(entry); err == nil {
			put = append(put, stored...)
		}
	}
	return put, nil
}
