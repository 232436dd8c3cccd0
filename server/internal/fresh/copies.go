package fresh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/internal/panics"
	"github.com/followpress/followpress/server/internal/fetch"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/refresh"
	"github.com/followpress/followpress/storage"
)

// A copied is another object that shows the data of a target.
type copied struct {
	key  site.Key
	kind site.ListObject
	name string // the object belongs to the account only while the account has this name; "" for objects without a name
}

// StandsFor returns the target whose refresh updates an object of a list or user: that of the
// account's primary list, or else of its first list. So all fallbacks refresh an account in one
// place, whichever object is requested. key is the key of the object; get reads other objects. ok
// is false if there is nothing to refresh, because the user has no primary list.
func (t Target) StandsFor(ctx context.Context, key site.Key, get getter) (_ Target, ok bool, err error) {
	if !t.Config.EFP() {
		return t, true, nil
	}
	details, err := get(ctx, sibling(key, site.Details))
	if err != nil {
		return t, false, fmt.Errorf("account to refresh: %w", fetch.MixedIfAbsent(err))
	}
	d, account, err := site.DecodeDetails(details)
	switch {
	case err != nil:
		return t, false, err
	case d.PrimaryList != nil:
		t.TokenID = *d.PrimaryList
		return t, true, nil
	case t.TokenID == "":
		return t, false, nil
	}
	lists, err := t.listsOf(ctx, account, get)
	if len(lists) > 0 {
		t.TokenID = lists[0]
	}
	return t, true, err
}

// A getter reads an object, from the store or a cache.
type getter func(ctx context.Context, key site.Key) ([]byte, error)

// sibling returns the key of another object of the same list or user.
func sibling(key site.Key, object site.ListObject) site.Key {
	return site.Key(path.Dir(string(key)) + "/" + string(object))
}

// listsOf returns all lists of an account; none for an account missing from the site.
func (t Target) listsOf(ctx context.Context, account site.Address, get getter) (lists []string, err error) {
	body, err := get(ctx, t.Config.UserObjectKey(account.String(), site.Lists))
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return decodeLists(body)
}

// copies returns the other objects that show the data of a target: those of all lists of the
// account, of the account, and of its names.
func (f *Refresher) copies(ctx context.Context, t Target, account site.Address) ([]copied, error) {
	kinds := []site.ListObject{t.Object}
	if t.Object == site.Details {
		kinds = append(kinds, site.Account)
	}
	lists, err := t.listsOf(ctx, account, f.fetcher.Get)
	if err != nil {
		return nil, err
	}
	names, err := f.namesOf(ctx, t, account)
	if err != nil {
		return nil, err
	}
	var all []copied
	for _, kind := range kinds {
		for _, list := range lists {
			if key := t.Config.ListKey(list, kind); key != t.key() {
				all = append(all, copied{key: key, kind: kind})
			}
		}
		all = append(all, copied{key: t.Config.UserObjectKey(account.String(), kind), kind: kind})
		for _, name := range names {
			all = append(all, copied{t.Config.UserObjectKey(name, kind), kind, name})
		}
	}
	return all, nil
}

// replaceCopies updates all copies, several at a time, and calls put for each one replaced. For
// newer, see replaceCopy.
func (f *Refresher) replaceCopies(ctx context.Context, t Target, data upstreamData, newer bool, put func(site.Key, []byte)) error {
	copies, err := f.copies(ctx, t, data.owner())
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(copiesAtOnce)
	for _, c := range copies {
		group.Go(func() (err error) {
			defer panics.Catch(&err)
			body, err := f.replaceCopy(ctx, t, c, data, newer)
			if err != nil {
				return fmt.Errorf("%s: %w", c.key, err)
			}
			if body != nil {
				put(c.key, body)
			}
			return nil
		})
	}
	return group.Wait()
}

// copiesAtOnce is the number of copies that one refresh replaces at a time.
const copiesAtOnce = 4

// namesOf returns the names under which the account may have objects.
func (f *Refresher) namesOf(ctx context.Context, t Target, account site.Address) ([]string, error) {
	if t.Config.Names == site.NamesLookup {
		return nil, nil
	}
	kept, err := f.fetcher.Get(ctx, site.RefreshKey(site.Details, t.TokenID))
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return nil, err
	}
	names := refresh.Names(f.options.Signing.Believed(site.RefreshKey(site.Details, t.TokenID), kept))
	body, err := f.fetcher.Get(ctx, t.Config.UserObjectKey(account.String(), site.Account))
	if errors.Is(err, storage.ErrNotFound) {
		return names, nil
	} else if err != nil {
		return nil, err
	}
	a, _, err := decodeAccount(body)
	for _, name := range lookupNames(a.ENS.Name) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, err
}

// lookupNames returns name, unless it cannot be looked up.
func lookupNames(name string) []string {
	if site.LookupName(name) {
		return []string{name}
	}
	return nil
}

// replaceCopy updates a copy and returns the new body. It returns nil if there was nothing to do:
// the copy does not exist, belongs to another account, or, if newer is set, is at least as new as
// data. Like store, it keeps the digest before it replaces the copy.
func (f *Refresher) replaceCopy(ctx context.Context, t Target, c copied, data upstreamData, newer bool) ([]byte, error) {
	for try := 0; ; try++ {
		stored, info, err := f.fetcher.Read(ctx, f.bucket, c.key)
		if errors.Is(err, storage.ErrNotFound) {
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		if mine, err := f.isNamed(ctx, c, data.owner()); err != nil || !mine {
			return nil, err
		}
		if newer && !data.newerThan(c.kind, stored) || try > 0 && data.olderThan(c.kind, stored) {
			return nil, nil
		}
		body, err := data.applyTo(c.kind, stored)
		if errors.Is(err, ErrUpstream) {
			return nil, nil
		}
		if err != nil || bytes.Equal(body, stored) {
			return nil, err
		}
		err = f.keep(ctx, site.RefreshCopyKey(c.key), func(kept []byte) ([]byte, error) {
			return refresh.KeepCopy(stored, body, kept)
		})
		if err == nil {
			err = f.put(ctx, t.Config, c.key, body, storage.Condition(info.ETag))
		}
		if err == nil {
			return body, nil
		}
		if !errors.Is(err, storage.ErrCondition) || try == Tries {
			return nil, err
		}
	}
}

// isNamed reports whether a copy under a name belongs to the account. Badges do not show their
// account.
func (f *Refresher) isNamed(ctx context.Context, c copied, account site.Address) (bool, error) {
	if c.name == "" {
		return true, nil
	}
	body, err := f.fetcher.Get(ctx, sibling(c.key, site.Account))
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	_, is, err := decodeAccount(body)
	return is == account, err
}
