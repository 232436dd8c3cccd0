package sign

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/publisher/internal/origin"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/storage"
)

// Errors of a publish about the note of the bucket.
var (
	// ErrSigned says that a publish without a signature would leave readers of a signed bucket without one.
	ErrSigned = errors.New("the bucket is signed, and this publish is not")
	// ErrOtherNote says that none of a run's own keys has signed the note of the bucket.
	ErrOtherNote = errors.New("the bucket's note is by none of the keys of this publish")
	// ErrStolen says that a key of the run has signed what its publishers never do, so that somebody else may have it.
	ErrStolen = errors.New("the bucket's note is ahead of the clock")
	// ErrExplorerKeys says that the explorer of a site would show nothing, since no key that it checks by signs the site.
	ErrExplorerKeys = errors.New("the explorer checks by keys of which none signs the site")
)

// Notes reads and writes the notes of a bucket for one run.
type Notes struct {
	Bucket   *requests.Bucket
	Site     *origin.Site
	Signing  *Signing // nil: the run does not sign
	Unsigned bool     // remove the bucket's note
	Unlocked func()   // called when the server turns out to have no conditional writes
}

// A State is what the bucket has of notes. The zero Live stands for a note that none of the run's keys has signed.
type State struct {
	Signed    []byte // the note of the bucket; nil if there is none
	Live      note.Note
	condition storage.Condition // for replacing the note
	announced []note.Announced  // by publishes that were cut off and the run's keys, the greatest counter first
}

// greatest is the greatest counter that readers may have seen.
func (s *State) greatest() uint64 {
	if len(s.announced) == 0 {
		return s.Live.Counter
	}
	return max(s.Live.Counter, s.announced[0].Counter)
}

// announcedFor returns the announced note that names a root, if there is one.
func (s *State) announcedFor(root []byte) (note.Announced, bool) {
	i := slices.IndexFunc(s.announced, func(a note.Announced) bool { return a.Names(root) == nil })
	if i < 0 {
		return note.Announced{}, false
	}
	return s.announced[i], true
}

// NamesAnother reports whether a note of the run's keys names another root.
func (s *State) NamesAnother(root []byte) bool {
	return s.Live.Counter > 0 && s.Live.Names(root) != nil
}

// Unchanged reports whether the bucket, which has the site, also has the note that this run would put, or none if it would
// remove it.
func (n *Notes) Unchanged(ctx context.Context) (bool, error) {
	if n.Signing == nil && !n.Unsigned {
		return true, nil
	}
	signed, _, err := n.Bucket.Read(ctx, note.Key)
	if errors.Is(err, storage.ErrNotFound) {
		return n.Unsigned, nil
	} else if err != nil || n.Unsigned {
		return false, err
	}
	live, _, err := n.Signing.Keys.Open(signed, n.Signing.clock())
	return err == nil && n.isCurrent(&State{Signed: signed, Live: live}), nil // if not, Read says why
}

// isCurrent reports whether the bucket's note is about the site, and signed by all keys of the run and by nobody else.
func (n *Notes) isCurrent(s *State) bool {
	return s.Live.Counter > 0 && s.Live.Names(n.Site.Body) == nil && n.Signing.Keys.Sole(s.Signed)
}

// Read reads the notes of the bucket, and refuses what its readers could not accept.
func (n *Notes) Read(ctx context.Context) (*State, error) {
	if keys := n.Site.Root.Config.ExplorerKeys; keys != "" && !n.Signing.signsFor(keys) {
		return nil, fmt.Errorf("%w: sign it with that of %s, or make the site with --explorer-key of the key that signs, or without",
			ErrExplorerKeys, strings.ReplaceAll(keys, " ", " or "))
	}
	s := &State{condition: storage.IfAbsent}
	body, info, err := n.Bucket.Read(ctx, note.Key)
	if err == nil {
		s.Signed, s.condition = body, storage.Condition(info.ETag)
	} else if !errors.Is(err, storage.ErrNotFound) {
		return nil, err
	}
	if n.Signing == nil {
		if s.Signed != nil && !n.Unsigned {
			return nil, fmt.Errorf("%w: sign it with the key of %s, or publish with --unsigned, which removes the signature first", ErrSigned, note.Key)
		}
		return s, nil
	}
	if s.Signed != nil {
		s.Live, _, err = n.Signing.Keys.Open(s.Signed, n.Signing.clock())
		switch {
		case err == nil || n.Signing.ReplaceNote:
		case errors.Is(err, note.ErrAhead):
			return nil, fmt.Errorf("%w: %w: readers refuse that note; --replace-note signs anew, with a new key if this one was stolen", ErrStolen, err)
		default:
			return nil, fmt.Errorf("%w: %w: publish with the key that signed it too, or find out who replaced it; "+
				"--replace-note signs anew", ErrOtherNote, err)
		}
	}
	body, _, err = n.Bucket.Read(ctx, note.NextKey)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return nil, err
	}
	s.announced = n.Signing.Keys.OpenAnnounced(body, n.Signing.clock())
	return s, nil
}

// Replaces reports whether the run signs over a note that it does not believe: then it does not believe the manifest
// either, nor that the objects are those of the root.
func (n *Notes) Replaces(s *State) bool {
	return n.Signing != nil && s.Signed != nil && s.Live.Counter == 0
}

// sign makes the note of the site. It is the text of the bucket's if that is about the same root. What the signers return
// is checked before anything is written.
func (n *Notes) sign(s *State) ([]byte, *Signature, error) {
	next := s.Live
	if next.Counter < max(1, s.greatest()) || next.Names(n.Site.Body) != nil {
		next = note.Of(n.Signing.Signers[0].Name(), n.Signing.counter(s.greatest()), n.Site.Root.AsOf, n.Site.Body)
	}
	signed, err := note.Sign(next, n.Signing.Signers...)
	if err != nil {
		return nil, nil, err
	}
	if _, _, err := n.Signing.Keys.Open(signed, n.Signing.clock()); err != nil {
		return nil, nil, fmt.Errorf("check the new signature: %w", err)
	}
	if !n.Signing.Keys.Sole(signed) {
		return nil, nil, errors.New("check the new signature: the signers are not those of the public keys")
	}
	return signed, &Signature{Origin: next.Origin, Counter: next.Counter, Keys: len(n.Signing.Signers)}, nil
}

// Settle gives a bucket that has the site its note, or removes the note. changed is whether that was necessary; the
// signature is nil if the run put no note.
func (n *Notes) Settle(ctx context.Context, s *State) (signature *Signature, changed bool, err error) {
	switch {
	case n.Unsigned && s.Signed != nil:
		return nil, true, n.Bucket.Delete(ctx, note.Key)
	case n.Signing == nil, n.isCurrent(s):
		return nil, false, nil
	}
	signed, signature, err := n.sign(s)
	if err != nil {
		return nil, false, err
	}
	return signature, true, n.put(ctx, s, signed)
}

// put puts the note, provided that the bucket's is still the one that this run has read: a note of an earlier run may
// arrive late.
func (n *Notes) put(ctx context.Context, s *State, signed []byte) (err error) {
	s.condition, err = lock.Replace(ctx, n.Bucket, besideObject(note.Key, signed), s.condition, &n.Site.Root, n.Unlocked)
	return err
}

// besideObject is a note, or an object below site.NextPrefix, with the headers of its route.
func besideObject(key site.Key, body []byte) storage.Object {
	o := storage.Object{Entry: site.NewEntry(key, body), Body: body}
	route, ok := site.AllFeatures().RouteOf(key)
	if !ok {
		route = site.RouteBy(routes.NextRoot)
	}
	o.ContentType, o.CacheControl = route.ContentType, route.CacheControl
	return o
}
