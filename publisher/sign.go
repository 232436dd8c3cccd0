package publisher

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/publisher/internal/origin"
	"github.com/followpress/followpress/publisher/internal/plan"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/publisher/internal/transfer"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/routes"
	"github.com/followpress/followpress/storage"
)

// Errors of a publish about the note of the bucket.
var (
	// ErrSigned says that a publish without a signature would leave readers of a signed bucket without one.
	ErrSigned = errors.New("the bucket is signed, and this publish is not")
	// errOtherNote says that none of a run's own keys has signed the note of the bucket.
	errOtherNote = errors.New("the bucket's note is by none of the keys of this publish")
	// errStolen says that a key of the run has signed what its publishers never do, so that somebody else may have it.
	errStolen = errors.New("the bucket's note is ahead of the clock")
	// errExplorerKeys says that the explorer of a site would show nothing, since no key that it checks by signs the site.
	errExplorerKeys = errors.New("the explorer checks by keys of which none signs the site")
)

// Signing says how a site is signed.
type Signing struct {
	Signers     []note.Signer // of keys with one name; each signs the note
	Keys        note.Keys     // the public keys of the signers
	ReplaceNote bool          // replace the bucket's note even if no key of Keys has signed it

	now func() time.Time // that of counters; nil means time.Now
}

// counter is that of a note which follows one with the counter last. It is the time, in seconds: so it is greater than all
// that readers have seen even if the bucket's note was lost, or somebody has put an old one back. Of the bucket's clock
// nothing is believed, since who has the bucket could use up all counters.
func (s *Signing) counter(last uint64) uint64 {
	return max(last+1, uint64(max(0, s.clock().Unix())))
}

func (s *Signing) clock() time.Time {
	if s.now != nil {
		return s.now()
	}
	return time.Now()
}

func (s *Signing) check() error {
	if s == nil {
		return nil
	}
	if len(s.Signers) == 0 || s.Keys.None() {
		return errors.New("sign: there is no key")
	}
	seen := map[uint32]bool{}
	for _, signer := range s.Signers {
		if name := s.Signers[0].Name(); signer.Name() != name {
			return fmt.Errorf("the keys have the names %s and %s: use keys with one name, that of the site", site.Quoted(name), site.Quoted(signer.Name()))
		}
		if seen[signer.KeyHash()] {
			return fmt.Errorf("a key of %s is given twice", site.Quoted(signer.Name()))
		}
		seen[signer.KeyHash()] = true
	}
	return nil
}

// signsFor reports whether one of some public keys, with spaces between, is that of a signer.
func (s *Signing) signsFor(publics string) bool {
	return s != nil && slices.ContainsFunc(s.Signers, func(signer note.Signer) bool {
		prefix := fmt.Sprintf("%s+%08x+", signer.Name(), signer.KeyHash())
		return slices.ContainsFunc(strings.Fields(publics), func(public string) bool { return strings.HasPrefix(public, prefix) })
	})
}

// A Signature says what a run has signed.
type Signature struct {
	Origin  string `json:"origin"`
	Counter uint64 `json:"counter"`
	Keys    int    `json:"keys"` // number of signatures
}

// A noteState is what the bucket has of notes. The zero Note stands for one that none of the run's keys has signed.
type noteState struct {
	signed    []byte            // the note of the bucket; nil if there is none
	condition storage.Condition // for replacing it
	live      note.Note
	announced []note.Announced // by publishes that were cut off and the run's keys, the greatest counter first
}

// greatest is the greatest counter that readers may have seen.
func (n *noteState) greatest() uint64 {
	if len(n.announced) == 0 {
		return n.live.Counter
	}
	return max(n.live.Counter, n.announced[0].Counter)
}

// of is the announced note of a root.
func (n *noteState) of(root []byte) (note.Announced, bool) {
	i := slices.IndexFunc(n.announced, func(a note.Announced) bool { return a.Names(root) == nil })
	if i < 0 {
		return note.Announced{}, false
	}
	return n.announced[i], true
}

// noteUnchanged reports whether the bucket, which has the site, also has the note that this run would put, or none if
// it would remove it.
func (r *run) noteUnchanged(ctx context.Context) (bool, error) {
	if r.options.Signing == nil && !r.options.Unsigned {
		return true, nil
	}
	signed, _, err := r.bucket.Read(ctx, note.Key)
	if errors.Is(err, storage.ErrNotFound) {
		return r.options.Unsigned, nil
	} else if err != nil || r.options.Unsigned {
		return false, err
	}
	n, _, err := r.options.Signing.Keys.Open(signed, r.options.Signing.clock())
	return err == nil && r.isCurrent(signed, n), nil // if not, readNotes says why
}

// isCurrent reports whether a note of the run's keys is about the site, and signed by all of them and nobody else.
func (r *run) isCurrent(signed []byte, n note.Note) bool {
	return n.Counter > 0 && n.Names(r.source.Body) == nil && r.options.Signing.Keys.Sole(signed)
}

// readNotes reads the notes of the bucket, and refuses what its readers could not accept.
func (r *run) readNotes(ctx context.Context, s *state) error {
	if keys := r.source.Root.Config.ExplorerKeys; keys != "" && !r.options.Signing.signsFor(keys) {
		return fmt.Errorf("%w: sign it with that of %s, or make the site with --explorer-key of the key that signs, or without",
			errExplorerKeys, strings.ReplaceAll(keys, " ", " or "))
	}
	body, info, err := r.bucket.Read(ctx, note.Key)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		s.notes.condition = storage.IfAbsent
	case err != nil:
		return err
	default:
		s.notes.signed, s.notes.condition = body, storage.Condition(info.ETag)
	}
	signing := r.options.Signing
	if signing == nil {
		if s.notes.signed != nil && !r.options.Unsigned {
			return fmt.Errorf("%w: sign it with the key of %s, or publish with --unsigned, which removes the signature first", ErrSigned, note.Key)
		}
		return nil
	}
	if s.notes.signed != nil {
		s.notes.live, _, err = signing.Keys.Open(s.notes.signed, signing.clock())
		switch {
		case err == nil || signing.ReplaceNote:
		case errors.Is(err, note.ErrAhead):
			return fmt.Errorf("%w: %w: readers refuse that note; --replace-note signs anew, with a new key if this one was stolen", errStolen, err)
		default:
			return fmt.Errorf("%w: %w: publish with the key that signed it too, or find out who replaced it; "+
				"--replace-note signs anew", errOtherNote, err)
		}
	}
	body, _, err = r.bucket.Read(ctx, note.NextKey)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	s.notes.announced = signing.Keys.OpenAnnounced(body, signing.clock())
	return r.refuseRollback(s.notes.live.AsOf) // which readers have seen, whatever root the bucket has now: guard reads that
}

// replacesNote reports whether the run signs over a note that it does not believe: then it does not believe the manifest
// either, nor that the objects are those of the root.
func (r *run) replacesNote(s *state) bool {
	return r.options.Signing != nil && s.body != nil && s.notes.signed != nil && s.notes.live.Counter == 0
}

// hasOtherRoot reports whether the root is not the one that a note of the run's keys names, though no publish was cut off:
// somebody else has put it, and perhaps more.
func (r *run) hasOtherRoot(s *state) bool {
	return r.replacesNote(s) || s.mark == nil && s.body != nil && s.notes.live.Counter > 0 && s.notes.live.Names(s.body) != nil
}

// sign makes the note of the site. It is the text of the bucket's if that is about the same root. What the signers return
// is checked before anything is written.
func (r *run) sign(s *state) (signed []byte, err error) {
	signing := r.options.Signing
	n := s.notes.live
	if n.Counter < max(1, s.notes.greatest()) || n.Names(r.source.Body) != nil {
		n = note.Of(signing.Signers[0].Name(), signing.counter(s.notes.greatest()), r.source.Root.AsOf, r.source.Body)
	}
	if signed, err = note.Sign(n, signing.Signers...); err != nil {
		return nil, err
	}
	if _, _, err := signing.Keys.Open(signed, signing.clock()); err != nil {
		return nil, fmt.Errorf("check the new signature: %w", err)
	}
	if !signing.Keys.Sole(signed) {
		return nil, errors.New("check the new signature: the signers are not those of the public keys")
	}
	r.report.Signed = &Signature{Origin: n.Origin, Counter: n.Counter, Keys: len(signing.Signers)}
	return signed, nil
}

// An announcement is what a publish puts below _next/ before it replaces objects in place, so that readers who check
// them can tell a publish from a forgery.
type announcement struct {
	signed  []byte // the note
	counter uint64 // of the note
	plan    *plan.Plan
	bare    bool // there is no site whose objects readers could check meanwhile: the manifest is not announced
}

// announcement signs the next root. It is nil if the note of the bucket needs no other, or the run does not sign.
func (r *run) announcement(s *state, p *plan.Plan) (*announcement, error) {
	if r.options.Signing == nil || r.isCurrent(s.notes.signed, s.notes.live) && s.notes.live.Counter >= s.notes.greatest() && s.holdsRoot(r.source) {
		return nil, nil
	}
	signed, err := r.sign(s)
	if err != nil {
		return nil, err
	}
	p.Announced = true
	return &announcement{signed, r.report.Signed.Counter, p, s.body == nil}, nil
}

func (s *state) holdsRoot(next *origin.Site) bool { return bytes.Equal(s.body, next.Body) }

// announce does what has to be done about notes before objects are replaced. The announced notes come last, so that what
// they vouch for is there. The sites whose publishes were cut off stay announced: the bucket may have objects of theirs
// until this run has replaced them all.
func (r *run) announce(ctx context.Context, s *state, a *announcement) error {
	switch {
	case r.options.Unsigned && s.notes.signed != nil:
		return r.bucket.Durably(ctx, func() error { return r.bucket.Delete(ctx, note.Key) })
	case a == nil:
		return nil
	}
	if missing, ok := s.notes.of(s.body); ok && s.notes.live.Counter < missing.Counter && s.notes.live.Names(s.body) != nil {
		// An earlier run was cut off between its root and its note, which only what it announced vouches for.
		if err := r.bucket.Durably(ctx, func() error { return r.putNote(ctx, s, missing.Signed) }); err != nil {
			return err
		}
		s.notes.live = missing.Note
	}
	if err := r.bucket.Durably(ctx, func() error { return r.putAnnounced(ctx, a) }); err != nil {
		return err
	}
	all := [][]byte{a.signed}
	for _, other := range s.notes.announced {
		if other.Counter > s.notes.live.Counter && other.Names(r.source.Body) != nil && len(all) < note.MaxAnnounced {
			all = append(all, other.Signed)
		}
	}
	return r.bucket.Durably(ctx, func() error {
		_, err := r.bucket.Put(ctx, besideObject(note.NextKey, note.Join(all...)), storage.Always)
		return err
	})
}

// putAnnounced puts what the note is about: the root last.
func (r *run) putAnnounced(ctx context.Context, a *announcement) error {
	put := func(ctx context.Context, key site.Key, body []byte) error {
		_, err := r.bucket.Put(ctx, besideObject(site.NextKey(a.counter, key), body), storage.Always)
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
			o, err := r.source.ManifestObject(ctx, names[i])
			if err != nil {
				return err
			}
			return put(ctx, o.Key, o.Body)
		})
		if err != nil {
			return err
		}
	}
	return put(ctx, site.RootKey, r.source.Body)
}

// maxStaleAnnounced bounds the keys in memory of what was announced.
const maxStaleAnnounced = 100_000

// unannounce removes all that was announced: also what requests of an earlier run have put after it had removed it.
func (r *run) unannounce(ctx context.Context, a *announcement) error {
	if a == nil {
		return nil
	}
	for {
		var stale []site.Key
		err := r.bucket.List(ctx, site.NextPrefix, func(info storage.Info) error {
			if len(stale) < maxStaleAnnounced {
				stale = append(stale, site.Key(strings.Clone(string(info.Key))))
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := r.deleteAll(ctx, stale); err != nil || len(stale) < maxStaleAnnounced {
			return err
		}
	}
}

func (r *run) deleteAll(ctx context.Context, keys []site.Key) error {
	for chunk := range slices.Chunk(keys, storage.MaxDelete) {
		if err := r.bucket.Delete(ctx, chunk...); err != nil {
			return err
		}
	}
	return nil
}

// putNote puts the note, provided that the bucket's is still the one that this run has read: a note of an earlier run may
// arrive late.
func (r *run) putNote(ctx context.Context, s *state, signed []byte) error {
	etag, err := r.bucket.Put(ctx, besideObject(note.Key, signed), s.notes.condition)
	if errors.Is(err, storage.ErrUnsupported) {
		r.warnUnlocked()
		etag, err = r.bucket.Put(ctx, besideObject(note.Key, signed), storage.Always)
	}
	if errors.Is(err, storage.ErrCondition) || errors.Is(err, storage.ErrNotFound) {
		body, info, readErr := r.bucket.Read(ctx, note.Key)
		if readErr == nil && bytes.Equal(body, signed) {
			s.notes.condition = storage.Condition(info.ETag)
			return nil
		}
		_, marked := lock.WriteMark(ctx, r.bucket, nil, nil, &r.source.Root)
		return errors.Join(fmt.Errorf("put %s: %w: publish again", note.Key, errInterleaved), marked)
	}
	if err == nil {
		s.notes.condition = storage.Condition(etag)
	}
	return err
}

// settleNote gives a bucket that has the site its note, or removes the note, and reports whether that was necessary.
func (r *run) settleNote(ctx context.Context, s *state) (changed bool, err error) {
	switch {
	case r.options.Unsigned && s.notes.signed != nil:
		return true, r.bucket.Delete(ctx, note.Key)
	case r.options.Signing == nil, r.isCurrent(s.notes.signed, s.notes.live):
		return false, nil
	}
	signed, err := r.sign(s)
	if err != nil {
		return false, err
	}
	return true, r.putNote(ctx, s, signed)
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
