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

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
)

// A Store is where a site is read from. Nothing that it says is believed.
type Store interface {
	// GetAdmitted reads an object, or returns storage.ErrNotFound. It calls admit with the size in bytes before it reads
	// the body, and returns the error of admit, if any.
	GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error)
}

// Options say how a site is checked. The zero value suits who serves a site.
type Options struct {
	// Pinned means that all objects must be those of the root that Open read. Once another site is published, objects
	// that differ are ErrBetween. Otherwise the Site follows what is published.
	Pinned bool
	// Seen is a note that an earlier reader has seen: an older site is refused. The zero note refuses none.
	Seen note.Note
	// AllowRollback means that the store may go back to an older site than was seen.
	AllowRollback bool
	// Refreshers are the keys that sign entries below site.RefreshPrefix (note.SignEntry): an object may also be what such
	// an entry says that a refresh has put in its place. Entries are returned as they are. Without keys there are none.
	Refreshers note.Keys
	// ManifestBytes is the memory for what shards of the manifest list, those that were asked for last; 0 means 8 MiB. A
	// shard takes some 56 KiB.
	ManifestBytes int
}

const (
	defaultManifestBytes = 8 << 20
	// shardsAtOnce are the shards that are read at a time: each takes some times its size while it is parsed.
	shardsAtOnce = 4
	// maxRefresh bounds an entry below site.RefreshPrefix, and what a refresh has put, in bytes.
	maxRefresh = 1 << 20
	// tries bounds how often an object is read while the site changes.
	tries = 4
)

// A Site is a site in a store that is checked. It is a storage.Site.
type Site struct {
	store   Store
	keys    note.Keys
	options Options
	shelf   *shelf
	reading chan struct{} // held while a shard is read
	changed chan struct{} // has room for one
	state   atomic.Pointer[state]

	loading turn      // held while notes and root are read
	seen    note.Note // under loading
}

// A turn is a mutex that nobody waits for longer than there is time.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits until nobody else has the turn. The error is that of the context.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) give() { <-t }

// A state is what notes and root said when they were read.
type state struct {
	begun  time.Time // before the first of them was read
	live   *version
	next   []next // announced
	note   note.Note
	signed []byte   // the note; nil without keys
	coming []byte   // the notes of what is announced; nil if there are none
	ended  bool     // something that is announced was gone already: that publish may have ended since the root was read
	older  error    // why something that is announced is not in next: it is older than the live site
	by     []string // names of the known keys that signed it
	info   storage.Info
	// replaced says that a publish may be going on that announces nothing. Only asked for without keys.
	replaced bool
}

// A next version is one that is announced, by a note with that counter.
type next struct {
	*version
	counter uint64
}

// same reports whether two states have the same sites.
func (s *state) same(other *state) bool {
	return s.live.digest == other.live.digest && slices.EqualFunc(s.next, other.next, func(a, b next) bool { return a.digest == b.digest })
}

// New returns a site that is read when it is first asked for. Without keys it believes the root as it is.
func New(store Store, keys note.Keys, o Options) *Site {
	if o.ManifestBytes == 0 {
		o.ManifestBytes = defaultManifestBytes
	}
	return &Site{
		store: store, keys: keys, options: o, shelf: newShelf(o.ManifestBytes), reading: make(chan struct{}, shardsAtOnce), changed: make(chan struct{}, 1), loading: newTurn(), seen: o.Seen,
	}
}

// Open is New that reads note and root. The error wraps storage.ErrNotFound if there is no root; ErrBetween; or an error
// of package note: ErrUnsigned too if there is no note.
func Open(ctx context.Context, store Store, keys note.Keys, o Options) (*Site, error) {
	s := New(store, keys, o)
	_, err := s.now(ctx)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// now is what notes and root said when they were read last.
func (s *Site) now(ctx context.Context) (*state, error) {
	if st := s.state.Load(); st != nil {
		return st, nil
	}
	if err := s.reload(ctx, time.Now()); err != nil {
		return nil, err
	}
	return s.state.Load(), nil
}

// Root is the root that was checked last; that of Open if the Site is pinned. The caller must not change it. The site
// must have been read, as for RootBody, Note and Shard.
func (s *Site) Root() *site.Root { return s.state.Load().live.root }

// RootBody is the body of Root. The caller must not change it.
func (s *Site) RootBody() []byte { return s.state.Load().live.body }

// Note is the note about Root, and the names of the known keys that have signed it. Without keys it is the zero note.
func (s *Site) Note() (n note.Note, by []string) {
	st := s.state.Load()
	return st.note, st.by
}

// Get reads an object, or returns storage.ErrNotFound. The caller must not change the body.
func (s *Site) Get(ctx context.Context, key site.Key) ([]byte, error) {
	return s.GetAdmitted(ctx, key, func(context.Context, int64) error { return nil })
}

// GetAdmitted is Get that calls admit with the size of the object before it is read. Errors are an *AlteredError; some
// that wrap ErrBetween; and those of the store.
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

// getListed is GetAdmitted of an object that the manifest may list.
func (s *Site) getListed(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	var last *state
	var got string // what was there at the last try: for another body, notes are needed that were read after it
	for try := 1; ; try++ {
		st := s.state.Load()
		body, altered, err := s.getOrRefreshed(ctx, st, key, admit)
		if err != nil || altered == nil {
			return body, err
		}
		isSame := last != nil && st.same(last)
		switch {
		case isSame && st.replaced:
			return nil, fmt.Errorf("read %s: it is %s, and a publish is going on: %w", key, altered.Got, ErrBetween)
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

// getOrRefreshed is get, which a refresh may have replaced.
func (s *Site) getOrRefreshed(ctx context.Context, st *state, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, *AlteredError, error) {
	body, altered, err := s.get(ctx, st, key, admit)
	if err == nil && altered != nil && !s.options.Refreshers.None() {
		if body, err := s.refreshed(ctx, st, key, admit); body != nil || err != nil {
			return body, nil, err
		}
	}
	return body, altered, err
}

// after is the error of an object that was read again, and fits nothing of a state either.
func (e *AlteredError) after(st *state) error {
	if e.instead != nil {
		return e.instead
	}
	e.Cause = st.older
	return e
}

// reloadFor reads notes and root again, since an object is not what they say.
func (s *Site) reloadFor(ctx context.Context, altered *AlteredError) error {
	err := s.reload(ctx, time.Now()) // begun after the body was seen: another's may have read notes before
	if err == nil || isOver(err) || storage.Temporary(err) || errors.Is(err, ErrBetween) {
		return err
	}
	altered.Cause = err
	return altered
}

// An expected is what a state lists for a key.
type expected struct {
	right      []item     // what the object may be
	of         []*version // those that list it so
	absentIn   []*version // those that do not list it
	unreadable error      // shards that are not what the roots name
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

// get reads an object and compares it with what a state lists. altered says how it differs; the site may have changed.
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
		return nil, &AlteredError{Key: shard, Expected: namedByRoot, Got: fmt.Sprintf("something else, so that nobody can check %s: %v", key, e.unreadable)}, nil
	}
	body, err = s.getUpTo(ctx, key, e.most(), admit)
	altered = &AlteredError{Key: key, Expected: describeAll(e.right)}
	if len(e.absentIn) > 0 { // then what the store has may be left over from a site before
		altered.instead = s.pinnedTo(key, st, e.absentIn, storage.ErrNotFound)
	}
	var other *otherSizeError
	switch {
	case errors.As(err, &other):
		altered.Got = other.Error()
		return nil, altered, nil
	case errors.Is(err, storage.ErrTooLarge): // for the store
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
		if i.is(body) {
			if err := s.pinnedTo(key, st, e.of[n:], nil); err != nil {
				return nil, nil, err
			}
			return body, nil, nil
		}
	}
	altered.Got = item{size: int64(len(body)), sha256: site.Sum256(body)}.describe()
	return nil, altered, nil
}

// most is the size of the largest body that is right.
func (e *expected) most() (most int64) {
	for _, i := range e.right {
		most = max(most, i.size)
	}
	return most
}

// An otherSizeError says that an object is larger than it may be.
type otherSizeError struct{ size int64 }

// Error says the size.
func (e *otherSizeError) Error() string { return fmt.Sprintf("%d bytes", e.size) }

// getUpTo reads an object of up to that many bytes, or returns an *otherSizeError. A smaller size may be that of the first
// bytes; the digest says whether it is right. admit is called once, with the most that may come.
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

// pinnedTo returns err if what is so in some versions is so in the live one, or need not be. Else the next site has
// replaced something of the pinned one.
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

// getManifest is get for objects of the manifest.
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

// getNext is GetAdmitted for what a publish announces. It has been checked too, so that readers that check by themselves
// can ask who reads from here.
func (s *Site) getNext(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	if key == note.NextKey { // which is asked for first
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

// Changed has a value after another site has become the live one. One reader gets it.
func (s *Site) Changed() <-chan struct{} { return s.changed }

// Entry returns what the manifest of Root lists for a key, without reading the object. ok is false if it lists none.
func (s *Site) Entry(ctx context.Context, key site.Key) (size int64, digest site.SHA256, ok bool, err error) {
	i, ok, err := s.listed(ctx, s.state.Load().live, key)
	return i.size, i.sha256, ok, err
}

// Shard returns what a shard of the manifest of Root lists, by key. An error that wraps shards.ErrDamaged says that the
// shard is not the one that the root names: it is altered, or another site is being published.
func (s *Site) Shard(ctx context.Context, name string) ([]site.Entry, error) {
	live := s.state.Load().live
	entries, err := s.readShard(ctx, live, name)
	if err == nil {
		if h, isNew := s.shelf.claim(shardOf{live.digest, name}); isNew { // who lists a shard asks for its objects next
			s.shelf.fill(h, itemsOf(entries), nil)
		}
	}
	return entries, err
}

// Read is Get with what the store says of the object, if it is one that can. The root is read and checked anew.
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
		if try == tries { // it was replaced each time
			return nil, storage.Info{}, fmt.Errorf("read %s: %w", key, ErrBetween)
		}
	}
}

// A reader is a store that says more about an object than its body.
type reader interface {
	Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error)
}

// Stat tells what the store says of an object, if it is one that can; otherwise the Info is empty.
func (s *Site) Stat(ctx context.Context, key site.Key) (storage.Info, error) {
	if store, ok := s.store.(interface {
		Stat(ctx context.Context, key site.Key) (storage.Info, error)
	}); ok {
		return store.Stat(ctx, key)
	}
	return storage.Info{}, nil
}

// Now is the time by the clock of the store, or of this machine.
func (s *Site) Now() time.Time {
	if store, ok := s.store.(interface{ Now() time.Time }); ok {
		return store.Now()
	}
	return time.Now()
}

// Reopen lets a store look for a new site that must be told to, such as a tar file.
func (s *Site) Reopen(ctx context.Context) error {
	if store, ok := s.store.(interface {
		Reopen(ctx context.Context) error
	}); ok {
		return store.Reopen(ctx)
	}
	return nil
}

// Close closes the store, if it is one that is closed.
func (s *Site) Close() error {
	if store, ok := s.store.(io.Closer); ok {
		return store.Close()
	}
	return nil
}
