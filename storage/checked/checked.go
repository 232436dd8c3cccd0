package checked

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/internal/lru"
)

// A Store is the untrusted source of a site.
type Store interface {
	// GetAdmitted reads an object, or returns storage.ErrNotFound. It calls admit with the size in bytes before it
	// reads the body, and returns admit's error, if any.
	GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error)
}

// Options configure the checks. The zero value suits servers.
type Options struct {
	// Pinned requires that all objects belong to the root that Open read. Once another site is
	// published, objects that differ return ErrBetween. Otherwise the Site follows the published
	// site.
	Pinned bool
	// Seen is a note that an earlier reader accepted; an older site is refused. The zero note refuses none.
	Seen note.Note
	// AllowRollback accepts a site older than Seen.
	AllowRollback bool
	// Refreshers are the keys that sign entries below site.RefreshPrefix (note.SignEntry). With
	// keys, an object may also be the replacement listed by a signed entry. Get returns the entries
	// themselves unchecked.
	Refreshers note.Keys
	// ManifestBytes limits the memory of cached manifest shards, of some 56 KiB each; 0 means 8 MiB.
	ManifestBytes int
}

const (
	defaultManifestBytes = 8 << 20
	// shardsAtOnce is the maximum number of shards read concurrently. Each takes a multiple of its size while it is
	// parsed.
	shardsAtOnce = 4
	// maxRefresh is the maximum size in bytes of an entry below site.RefreshPrefix, and of a refreshed object.
	maxRefresh = 1 << 20
	// tries is the maximum number of reads of one object while the site changes.
	tries = 4
)

// A Site is a checked site in a store. It implements storage.Site.
type Site struct {
	store   Store
	keys    note.Keys
	options Options
	held    *lru.Cache[shardOf, []item] // shards of manifests
	flights singleflight.Group          // shards being read
	reading chan struct{}               // semaphore, held while a shard is read
	changed chan struct{}               // buffered, capacity 1
	state   atomic.Pointer[state]

	loading turn      // held while notes and the root are read
	seen    note.Note // under loading
}

// A turn is a mutex whose lock can be given up when a context ends.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take locks the turn, or returns the cause of the context's end.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) give() { <-t }

// A state is the content of the notes and the root at one time.
type state struct {
	begun  time.Time // before the first read
	live   *version
	next   []next // announced versions
	note   note.Note
	signed []byte   // the signed note; nil without keys
	coming []byte   // the signed notes of announced versions; nil without any
	ended  bool     // an announced root was already gone, so its publish may have ended after the live root was read
	older  error    // why an announced version was left out of next: it is older than the live site
	by     []string // names of the known keys that signed the note
	info   storage.Info
	// replaced means that a publish without an announcement may be in progress. It is set without keys only.
	replaced bool
}

// A next is an announced version, with the counter of its note.
type next struct {
	*version
	counter uint64
}

// same reports whether two states have the same versions.
func (s *state) same(other *state) bool {
	return s.live.digest == other.live.digest && slices.EqualFunc(s.next, other.next, func(a, b next) bool { return a.digest == b.digest })
}

// New returns a Site that reads nothing until its first use. Without keys, it trusts the root.
func New(store Store, keys note.Keys, o Options) *Site {
	if o.ManifestBytes == 0 {
		o.ManifestBytes = defaultManifestBytes
	}
	return &Site{
		store: store, keys: keys, options: o, held: lru.New[shardOf, []item](int64(o.ManifestBytes)), reading: make(chan struct{}, shardsAtOnce), changed: make(chan struct{}, 1), loading: newTurn(), seen: o.Seen,
	}
}

// Open is like New, but reads the note and the root. It returns an error that wraps storage.ErrNotFound if there is
// no root, ErrBetween, or an error of package note: a missing note is note.ErrUnsigned.
func Open(ctx context.Context, store Store, keys note.Keys, o Options) (*Site, error) {
	s := New(store, keys, o)
	_, err := s.now(ctx)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// now returns the last state, and reads it first if there is none.
func (s *Site) now(ctx context.Context) (*state, error) {
	if st := s.state.Load(); st != nil {
		return st, nil
	}
	if err := s.reload(ctx, time.Now()); err != nil {
		return nil, err
	}
	return s.state.Load(), nil
}

// Root returns the root that was checked last; if the Site is pinned, the one that Open read. The caller must not
// change it. Root, RootBody, Note and Shard panic before the first successful read.
func (s *Site) Root() *site.Root { return s.state.Load().live.root }

// RootBody returns the body of Root. The caller must not change it.
func (s *Site) RootBody() []byte { return s.state.Load().live.body }

// Note returns the note about Root and the names of the known keys that signed it. Without keys, the note is zero.
func (s *Site) Note() (n note.Note, by []string) {
	st := s.state.Load()
	return st.note, st.by
}

// Get reads an object, or returns storage.ErrNotFound. The caller must not change the body.
func (s *Site) Get(ctx context.Context, key site.Key) ([]byte, error) {
	return s.GetAdmitted(ctx, key, func(context.Context, int64) error { return nil })
}

// GetAdmitted is like Get, but first calls admit with the size of the object. It returns an *AlteredError, an error
// that wraps ErrBetween, or an error of the store.
func (s *Site) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	st, err := s.now(ctx)
	if err != nil {
		return nil, err
	}
	switch {
	case key == site.RootKey:
		return st.live.body, admit(ctx, int64(len(st.live.body)))
	case key == note.Key && st.signed == nil:
		return nil, storage.ErrNotFound
	case key == note.Key:
		return st.signed, admit(ctx, int64(len(st.signed)))
	case strings.HasPrefix(string(key), string(site.NextPrefix)):
		return s.getNext(ctx, key, admit)
	case !s.options.Refreshers.None() && strings.HasPrefix(string(key), string(site.RefreshPrefix)):
		return s.bounded(ctx, key, maxRefresh)
	}
	return s.getListed(ctx, key, admit)
}

// getListed reads an object that the manifest may list.
func (s *Site) getListed(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	var last *state
	var got string // the body at the previous try; a new body needs notes that were read after it
	for try := 1; ; try++ {
		st := s.state.Load()
		body, altered, err := s.getOrRefreshed(ctx, st, key, admit)
		if err != nil || altered == nil {
			return body, err
		}
		isSame := last != nil && st.same(last)
		switch {
		case isSame && st.replaced:
			return nil, fmt.Errorf("read %s: got %s during a publish: %w", key, altered.Got, ErrBetween)
		case isSame && (altered.Got == got || try == tries) && (st.next == nil || try > 2):
			return nil, altered.after(st)
		case try == tries:
			return nil, fmt.Errorf("read %s: %w", key, ErrBetween)
		}
		last, got = st, altered.Got
		if err := s.reloadFor(ctx, altered); err != nil {
			return nil, err
		}
	}
}

// getOrRefreshed is get, but accepts a refreshed object.
func (s *Site) getOrRefreshed(ctx context.Context, st *state, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, *AlteredError, error) {
	body, altered, err := s.get(ctx, st, key, admit)
	if err == nil && altered != nil && !s.options.Refreshers.None() {
		if body, err := s.refreshed(ctx, st, key, admit); body != nil || err != nil {
			return body, nil, err
		}
	}
	return body, altered, err
}

// after returns the final error for an object that still does not match after the state was read again.
func (e *AlteredError) after(st *state) error {
	if e.instead != nil {
		return e.instead
	}
	e.Cause = st.older
	return e
}

// reloadFor reads the notes and the root again because an object does not match.
func (s *Site) reloadFor(ctx context.Context, altered *AlteredError) error {
	err := s.reload(ctx, time.Now()) // now, because a concurrent reload may have read the notes before this body
	if err == nil || isOver(err) || storage.Temporary(err) || errors.Is(err, ErrBetween) {
		return err
	}
	altered.Cause = err
	return altered
}

// An expected is the entry that a state lists for a key.
type expected struct {
	right      []item     // acceptable objects
	of         []*version // the versions that list them
	absentIn   []*version // versions that do not list the key
	unreadable error      // damaged shards
}

// expect returns what the versions of a state list for a key.
func (s *Site) expect(ctx context.Context, st *state, key site.Key) (e expected, err error) {
	for _, v := range st.versions() {
		i, listed, err := s.listed(ctx, v, key)
		switch {
		case errors.Is(err, shards.ErrDamaged):
			e.unreadable = errors.Join(e.unreadable, err)
		case err != nil:
			return e, err
		case listed:
			e.right, e.of = append(e.right, i), append(e.of, v)
		default:
			e.absentIn = append(e.absentIn, v)
		}
	}
	return e, nil
}

// get reads an object and compares it with a state. altered describes the difference; the site may have changed.
func (s *Site) get(ctx context.Context, st *state, key site.Key, admit func(ctx context.Context, size int64) error) (body []byte, altered *AlteredError, err error) {
	if strings.HasPrefix(string(key), string(site.ManifestKey(""))) {
		return s.getManifest(ctx, st, key, admit)
	}
	e, err := s.expect(ctx, st, key)
	switch {
	case err != nil:
		return nil, nil, err
	case len(e.right) == 0 && len(e.absentIn) > 0:
		return nil, nil, s.pinnedTo(key, st, e.absentIn, storage.ErrNotFound)
	case len(e.right) == 0:
		shard := site.ManifestKey(site.ManifestShard(key, st.live.root.ShardDigits))
		return nil, &AlteredError{Key: shard, Expected: namedByRoot, Got: fmt.Sprintf("something else, so %s cannot be checked: %v", key, e.unreadable)}, nil
	}
	body, err = s.getUpTo(ctx, key, e.most(), admit)
	altered = &AlteredError{Key: key, Expected: describeAll(e.right)}
	if len(e.absentIn) > 0 { // the stored object may be a leftover of an earlier site
		altered.instead = s.pinnedTo(key, st, e.absentIn, storage.ErrNotFound)
	}
	var other *otherSizeError
	switch {
	case errors.As(err, &other):
		altered.Got = other.Error()
		return nil, altered, nil
	case errors.Is(err, storage.ErrTooLarge): // the store's own limit
		altered.Got = err.Error()
		return nil, altered, nil
	case errors.Is(err, storage.ErrNotFound) && len(e.absentIn) > 0:
		return nil, nil, s.pinnedTo(key, st, e.absentIn, storage.ErrNotFound)
	case errors.Is(err, storage.ErrNotFound):
		altered.Got = absent
		return nil, altered, nil
	case err != nil:
		return nil, nil, err
	}
	for n, i := range e.right {
		if i.matches(body) {
			if err := s.pinnedTo(key, st, e.of[n:], nil); err != nil {
				return nil, nil, err
			}
			return body, nil, nil
		}
	}
	altered.Got = item{size: int64(len(body)), sha256: site.Sum256(body)}.describe()
	return nil, altered, nil
}

// most returns the size of the largest acceptable body.
func (e *expected) most() (most int64) {
	for _, i := range e.right {
		most = max(most, i.size)
	}
	return most
}

// An otherSizeError reports an object that is larger than expected.
type otherSizeError struct{ size int64 }

// Error returns the size.
func (e *otherSizeError) Error() string { return fmt.Sprintf("%d bytes", e.size) }

// getUpTo reads an object of at most that many bytes, or returns an *otherSizeError. The store may report a smaller
// size than the body has; the digest decides. admit is called once, with most.
func (s *Site) getUpTo(ctx context.Context, key site.Key, most int64, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	admitted := false
	return s.store.GetAdmitted(ctx, key, func(ctx context.Context, size int64) error {
		switch {
		case size > most:
			return &otherSizeError{size}
		case admitted:
			return nil
		}
		admitted = true
		return admit(ctx, most)
	})
}

// pinnedTo returns err, unless the Site is pinned and the result is valid only in newer versions:
// then the next site has replaced an object of the pinned one.
func (s *Site) pinnedTo(key site.Key, st *state, in []*version, err error) error {
	if s.options.Pinned && in[0] != st.live {
		return fmt.Errorf("read %s: the next site is being published: %w", key, ErrBetween)
	}
	return err
}

func (s *state) versions() []*version {
	all := []*version{s.live}
	for _, n := range s.next {
		if n.version != s.live {
			all = append(all, n.version)
		}
	}
	return all
}

// getManifest is get for manifest objects.
func (s *Site) getManifest(ctx context.Context, st *state, key site.Key, admit func(ctx context.Context, size int64) error) (body []byte, altered *AlteredError, err error) {
	missing := false
	for _, v := range st.versions() {
		body, err := s.manifestObject(ctx, v, key)
		switch {
		case err == nil:
			if err := s.pinnedTo(key, st, []*version{v}, nil); err != nil {
				return nil, nil, err
			}
			return body, nil, admit(ctx, int64(len(body)))
		case errors.Is(err, shards.ErrDamaged):
			altered = &AlteredError{Key: key, Expected: namedByRoot, Got: fmt.Sprintf("something else: %v", err)}
		case errors.Is(err, storage.ErrNotFound):
			missing = true
		default:
			return nil, nil, err
		}
	}
	if missing {
		return nil, nil, storage.ErrNotFound
	}
	return nil, altered, nil
}

// getNext is GetAdmitted for an announced site. Its objects have been checked, so that readers with checks of their
// own can read from this Site.
func (s *Site) getNext(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	if key == note.NextKey { // readers ask for this key first
		if err := s.reload(ctx, time.Now()); err != nil {
			return nil, err
		}
	}
	st := s.state.Load()
	var of site.Key
	n := slices.IndexFunc(st.next, func(n next) bool {
		of = site.Key(strings.TrimPrefix(string(key), string(site.NextKey(n.counter, ""))))
		return of != key
	})
	switch {
	case key == note.NextKey && st.next != nil:
		return st.coming, admit(ctx, int64(len(st.coming)))
	case n < 0:
		return nil, storage.ErrNotFound
	case of == site.RootKey:
		return st.next[n].body, admit(ctx, int64(len(st.next[n].body)))
	case !strings.HasPrefix(string(of), string(site.ManifestKey(""))):
		return nil, storage.ErrNotFound
	}
	body, err := s.manifestObject(ctx, st.next[n].version, of)
	switch {
	case errors.Is(err, shards.ErrDamaged):
		return nil, &AlteredError{Key: key, Expected: "what " + string(site.NextKey(st.next[n].counter, site.RootKey)) + " names", Got: fmt.Sprintf("something else: %v", err)}
	case err != nil:
		return nil, err
	}
	return body, admit(ctx, int64(len(body)))
}

// Changed returns a channel that receives a value after another site has become live. Only one receiver gets each
// value.
func (s *Site) Changed() <-chan struct{} { return s.changed }

// Shard returns the entries of a manifest shard of Root, sorted by key. An error that wraps
// shards.ErrDamaged means that the shard differs from the root: it was altered, or another site is
// being published.
func (s *Site) Shard(ctx context.Context, name string) ([]site.Entry, error) {
	live := s.state.Load().live
	entries, err := s.readShard(ctx, live, name)
	if err == nil {
		s.hold(shardOf{live.digest, name}, entries) // the caller will ask for these objects next
	}
	return entries, err
}

// Read is like Get and returns the store's Info, if the store has any. It reads and checks the root again.
func (s *Site) Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error) {
	if key == site.RootKey {
		if err := s.reload(ctx, time.Now()); err != nil {
			return nil, storage.Info{}, err
		}
		st := s.state.Load()
		return st.live.body, st.info, nil
	}
	for try := 1; ; try++ {
		body, err := s.Get(ctx, key)
		store, ok := s.store.(reader)
		if err != nil || !ok {
			return body, storage.Info{Key: key, Size: int64(len(body))}, err
		}
		again, info, err := store.Read(ctx, key)
		if err != nil || bytes.Equal(again, body) {
			return again, info, err
		}
		if try == tries { // replaced each time
			return nil, storage.Info{}, fmt.Errorf("read %s: %w", key, ErrBetween)
		}
	}
}

// A reader is a store that also returns the Info of an object.
type reader interface {
	Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error)
}

// Stat returns the store's Info of an object, or an empty one if the store has none.
func (s *Site) Stat(ctx context.Context, key site.Key) (storage.Info, error) {
	if store, ok := s.store.(interface {
		Stat(ctx context.Context, key site.Key) (storage.Info, error)
	}); ok {
		return store.Stat(ctx, key)
	}
	return storage.Info{}, nil
}

// Now returns the time by the clock of the store, or of this machine.
func (s *Site) Now() time.Time {
	if store, ok := s.store.(interface{ Now() time.Time }); ok {
		return store.Now()
	}
	return time.Now()
}

// Reopen makes a store switch to a new site, if stores like tar files need the request.
func (s *Site) Reopen(ctx context.Context) error {
	if store, ok := s.store.(interface {
		Reopen(ctx context.Context) error
	}); ok {
		return store.Reopen(ctx)
	}
	return nil
}

// Close closes the store if it can be closed.
func (s *Site) Close() error {
	if store, ok := s.store.(io.Closer); ok {
		return store.Close()
	}
	return nil
}
