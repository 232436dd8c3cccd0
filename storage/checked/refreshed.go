package checked

import (
	"context"
	"errors"
	"slices"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/refresh"
	"github.com/followpress/followpress/storage"
)

// refreshed returns an object that a refresh has replaced, by what is kept about it; nil if none has put the body that
// the store has.
func (s *Site) refreshed(ctx context.Context, c site.Config, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	var put []refresh.Replacement
	for _, of := range c.RefreshesOf(key) {
		kept, err := s.optional(ctx, of, maxRefresh)
		switch {
		case errors.Is(err, storage.ErrTooLarge) || err == nil && kept == nil:
			continue
		case err != nil:
			return nil, err
		}
		if stored, err := refresh.Replacements(kept); err == nil {
			put = append(put, stored...)
		}
	}
	if len(put) == 0 {
		return nil, nil
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
	if digest := site.Sum(body); !slices.ContainsFunc(put, func(r refresh.Replacement) bool { return r.MD5 == digest }) {
		return nil, nil
	}
	return body, nil
}
