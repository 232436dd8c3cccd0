package sign

import (
	"context"
	"slices"
	"strings"

	"github.com/followpress/followpress/publisher/internal/plan"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/publisher/internal/transfer"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/storage"
)

// An Announcement is put below _next/ before objects are replaced in place, so that readers who
// check them can tell a publish from a forgery.
type Announcement struct {
	Signature *Signature
	signed    []byte // the note
	plan      *plan.Plan
	bare      bool // there is no site yet whose objects readers could check, so the manifest is not announced
}

// Announcement signs the next site, for a bucket whose root is root. It returns nil if the bucket's
// note is current, or the run does not sign.
func (n *Notes) Announcement(s *State, root []byte, p *plan.Plan) (*Announcement, error) {
	if n.Signing == nil || n.isCurrent(s) && s.Live.Counter >= s.greatest() && string(root) == string(n.Site.Body) {
		return nil, nil
	}
	signed, signature, err := n.sign(s)
	if err != nil {
		return nil, err
	}
	p.Announced = true
	return &Announcement{signature, signed, p, root == nil}, nil
}

// Announce prepares the bucket's notes before objects are replaced. It puts the announced notes
// last, after everything they vouch for. Sites whose publishes were cut off stay announced: the
// bucket may have their objects until this run has replaced them all.
func (n *Notes) Announce(ctx context.Context, s *State, root []byte, a *Announcement) error {
	switch {
	case n.Unsigned && s.Signed != nil:
		return n.Bucket.Durably(ctx, func() error { return n.Bucket.Delete(ctx, note.Key) })
	case a == nil:
		return nil
	}
	if missing, ok := s.announcedFor(root); ok && s.Live.Counter < missing.Counter && s.Live.Names(root) != nil {
		// An earlier run was cut off between its root and its note: only its announcement vouches
		// for the root.
		if err := n.Bucket.Durably(ctx, func() error { return n.put(ctx, s, missing.Signed) }); err != nil {
			return err
		}
		s.Live = missing.Note
	}
	if err := n.Bucket.Durably(ctx, func() error { return n.putAnnounced(ctx, a) }); err != nil {
		return err
	}
	all := [][]byte{a.signed}
	for _, other := range s.announced {
		if other.Counter > s.Live.Counter && other.Names(n.Site.Body) != nil && len(all) < note.MaxAnnounced {
			all = append(all, other.Signed)
		}
	}
	return n.Bucket.Durably(ctx, func() error {
		_, err := n.Bucket.Put(ctx, besideObject(note.NextKey, note.Join(all...)), storage.Always)
		return err
	})
}

// putAnnounced puts the manifest and then the root of the announced site.
func (n *Notes) putAnnounced(ctx context.Context, a *Announcement) error {
	put := func(ctx context.Context, key site.Key, body []byte) error {
		_, err := n.Bucket.Put(ctx, besideObject(site.NextKey(a.Signature.Counter, key), body), storage.Always)
		return err
	}
	if !a.bare {
		for _, d := range a.plan.Deltas {
			if err := put(ctx, d.Key, d.Body); err != nil {
				return err
			}
		}
		names := a.plan.ManifestNames()
		err := requests.Parallel(ctx, transfer.ManifestsInFlight, len(names), func(ctx context.Context, i int) error {
			o, err := n.Site.ManifestObject(ctx, names[i])
			if err != nil {
				return err
			}
			return put(ctx, o.Key, o.Body)
		})
		if err != nil {
			return err
		}
	}
	return put(ctx, site.RootKey, n.Site.Body)
}

// PutNote makes the announced note the note of the bucket, once the root is live.
func (n *Notes) PutNote(ctx context.Context, s *State, a *Announcement) error {
	if a == nil {
		return nil
	}
	return n.Bucket.Durably(ctx, func() error { return n.put(ctx, s, a.signed) })
}

// maxStaleAnnounced bounds the keys of announcements in memory.
const maxStaleAnnounced = 100_000

// Unannounce deletes all announcements, including objects that late requests of an earlier run put.
func (n *Notes) Unannounce(ctx context.Context, a *Announcement) error {
	if a == nil {
		return nil
	}
	return n.Bucket.Durably(ctx, func() error {
		for {
			var stale []site.Key
			err := n.Bucket.List(ctx, site.NextPrefix, func(info storage.Info) error {
				if len(stale) < maxStaleAnnounced {
					stale = append(stale, site.Key(strings.Clone(string(info.Key))))
				}
				return nil
			})
			if err != nil {
				return err
			}
			for chunk := range slices.Chunk(stale, storage.MaxDelete) {
				if err := n.Bucket.Delete(ctx, chunk...); err != nil {
					return err
				}
			}
			if len(stale) < maxStaleAnnounced {
				return nil
			}
		}
	})
}
