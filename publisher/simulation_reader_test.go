package publisher

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/testkey"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
)

// signatures is the state of the notes of a signed world. All its publishers sign.
type signatures struct {
	keys       [2]testkey.Key       // keys of publishers; readers know only the first
	refresher  testkey.Key          // key of fallbacks and lives
	roots      map[site.SHA256]bool // roots whose notes have been in the bucket, including announcements
	last       note.Note            // note of the bucket; zero until it has one
	rolledBack bool                 // whether a site has replaced a later one
	removed    map[site.Key]bool    // announced and removed keys: late requests may put them again, but nobody trusts them
}

func newSignatures(t testing.TB) *signatures {
	return &signatures{keys: [2]testkey.Key{testkey.New(t, keyName), testkey.New(t, keyName)}, refresher: testkey.New(t, "refresher"), roots: map[site.SHA256]bool{}, removed: map[site.Key]bool{}}
}

// signing returns how a process signs: with the key that readers know, or with both while keys are
// rotated.
func (w *world) signing(name string) *Signing {
	if w.signatures == nil {
		return nil
	}
	s := &Signing{}
	publics := []string{}
	for _, k := range w.signatures.keys[:1+w.draw(name, "keys")%2] {
		s.Signers, publics = append(s.Signers, k.Signer), append(publics, k.Public)
	}
	var err error
	if s.Keys, err = note.ParseKeys(publics...); err != nil {
		panic(err)
	}
	return s
}

// refreshSigning returns how a process signs refreshes.
func (w *world) refreshSigning() (s server.RefreshSigning) {
	if w.signatures != nil {
		s.Signer, s.Keys = w.signatures.refresher.Signer, w.signatures.refresher.Keys
	}
	return s
}

// putFirstNote signs the first site of the world.
func (w *world) putFirstNote(t testing.TB, first simulatedSite) {
	body := []byte(w.signatures.keys[0].Note(t, first.memorySite, 1))
	o := stored{body: body, sum: site.Sum(body), at: w.start}
	w.objects[note.Key], w.cache[note.Key] = o, o.sum
	w.lookAtNote(nil, note.Key, &o)
}

// isStray reports whether a removed announcement was put again.
func (w *world) isStray(key site.Key) bool { return w.signatures != nil && w.signatures.removed[key] }

// lookAtNote checks a note that was put or deleted, and records what readers may accept.
func (w *world) lookAtNote(r *arrival, key site.Key, o *stored) {
	s := w.signatures
	if s != nil && o == nil && strings.HasPrefix(string(key), string(site.NextPrefix)) {
		s.removed[key] = true
	}
	switch {
	case s == nil, key != note.Key && key != note.NextKey, key == note.NextKey && o == nil:
		return
	case o == nil:
		w.fail("%s: %s: a signed site has lost its note", r.name, r.what)
		return
	case key == note.NextKey:
		for _, a := range s.keys[0].Keys.OpenAnnounced(o.body, time.Now()) {
			s.roots[a.Root] = true
			s.rolledBack = s.rolledBack || a.AsOf < s.last.AsOf
		}
		return
	}
	n, _, err := s.keys[0].Keys.Open(o.body, time.Now())
	if err != nil {
		w.fail("%s: %s: %v", r.name, r.what, err)
		return
	}
	s.roots[n.Root] = true
	if n.Counter < s.last.Counter && !w.late {
		w.fail("%s: %s: the counter %d follows %d", r.name, r.what, n.Counter, s.last.Counter)
	}
	s.rolledBack = s.rolledBack || n.AsOf < s.last.AsOf
	s.last = n
}

// admitting is a process that reads checked sites.
type admitting struct{ *process }

func (p admitting) GetAdmitted(ctx context.Context, key site.Key, admit func(ctx context.Context, size int64) error) ([]byte, error) {
	body, err := p.Get(ctx, key)
	if err == nil {
		err = admit(ctx, int64(len(body)))
	}
	return body, err
}

// checkingReader opens the site with a key and reads objects repeatedly.
func (w *world) checkingReader(name string) {
	w.sleep(name, "begin")
	p := w.process(name)
	p.stops(40 * time.Second)
	w.count(faultReader)
	s := w.opened(p)
	for i := range 12 {
		if p.isDead() {
			return
		}
		var keys []site.Key
		for range 4 {
			from := w.site(name, "key of", fmt.Sprint(i, len(keys)))
			keys = append(keys, from.answers[w.draw(name, "key", fmt.Sprint(i, len(keys)))%uint64(len(from.answers))])
		}
		for _, key := range keys {
			w.read(p, s, key)
		}
		time.Sleep(w.between(0, within/6, name, "next", fmt.Sprint(i)))
	}
}

// checkingReaders starts readers with a key, if the world is signed.
func (w *world) checkingReaders(group *sync.WaitGroup) {
	if w.signatures == nil {
		return
	}
	for i := range 2 {
		group.Go(func() { w.checkingReader(fmt.Sprint("reader", i)) })
	}
}

// opened opens the site for a new reader.
func (w *world) opened(p *process) *checked.Site {
	return checked.New(admitting{p}, w.signatures.keys[0].Keys, checked.Options{Refreshers: w.signatures.refresher.Keys, AllowRollback: w.chance(500, p.name, "allow rollback")})
}

// read reads an object and checks the result: a reader never accepts an unsigned object, and never
// reports damage except for late requests and deliberate damage.
func (w *world) read(p *process, s *checked.Site, key site.Key) {
	w.mu.Lock()
	signed, writes := w.signatures.last.Counter > 0, w.writes
	_, rooted := w.objects[site.RootKey]
	w.mu.Unlock()
	body, err := s.Get(context.Background(), key)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("%s: reads %s: %d bytes, %v", p.name, key, len(body), err)
	if w.late || w.harmed[key] || p.isDead() {
		return
	}
	wrong := func(format string, arguments ...any) {
		w.fail("%s: %s", p.name, fmt.Sprintf(format, arguments...))
	}
	switch {
	case err == nil, errors.Is(err, storage.ErrNotFound):
		if err != nil && !rooted {
			return // there was no site yet
		}
		if !slices.ContainsFunc(w.sites(), func(of simulatedSite) bool {
			if !w.signatures.roots[site.Sum256([]byte(of.memorySite[site.RootKey]))] {
				return false
			}
			has, ok := of.memorySite[key]
			return ok == (err == nil) && has == string(body)
		}) && !w.put[putBy{key, site.Sum(body)}] {
			wrong("%s: it accepts %d bytes (%v), which no site has that was signed", key, len(body), err)
		}
	case errors.Is(err, note.ErrOlder):
		if !w.signatures.rolledBack {
			wrong("%s: %v, and no operator has gone back", key, err)
		}
	case !signed: // while a site is signed for the first time, readers cannot tell
	case errors.Is(err, checked.ErrAltered):
		wrong("%s: %v", key, err)
	case errors.Is(err, checked.ErrBetween):
		w.faults[faultBetween]++
		if writes == w.writes {
			wrong("%s: %v, and nobody has written", key, err)
		}
	case errors.Is(err, note.ErrUnsigned), errors.Is(err, note.ErrOtherRoot), errors.Is(err, note.ErrForged):
		wrong("%s: %v", key, err)
	}
}

// readersAccept checks that a new reader accepts every object of the site in the bucket.
func (w *world) readersAccept(when string, last simulatedSite) {
	if w.signatures == nil {
		return
	}
	p := w.process("reader " + when)
	p.calm = true
	s := w.opened(p)
	for _, key := range last.answers {
		body, err := s.Get(context.Background(), key)
		w.mu.Lock()
		if sum := site.Sum(body); !w.harmed[key] && (err != nil || sum != last.entries[key] && !w.put[putBy{key, sum}]) {
			w.fail("%s: a reader of %s: %d bytes, %v", when, key, len(body), err)
		}
		w.mu.Unlock()
	}
}
