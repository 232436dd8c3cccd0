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
	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/server"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/refresh"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/checked"
)

// check is called when all processes except the fallbacks have ended. It publishes a last site,
// like the next night, and checks the bucket before and after. The fallbacks must notice by
// themselves what to put again; or others begin at the end.
func (w *world) check(stopFallbacks func()) {
	restarted := w.chance(200, "fallbacks restart")
	if restarted {
		stopFallbacks()
	}
	w.certainIsTrue("at the end")
	if w.chance(500, "all arrive") {
		w.arriveAll()
	}
	last := w.site("last")
	w.lastPublish("night1", last)
	w.certainIsTrue("after the next publish")
	w.arriveAll()
	w.certainIsTrue("when everything has arrived")

	time.Sleep(requests.Lateness + 2*5*time.Minute) // the clocks of the bucket may disagree
	w.lastPublish("night2", last)
	if w.locks != conditional {
		w.repairWhatVerifyFinds(last)
	}
	w.mu.Lock()
	if differences := w.differences(); len(differences) > 0 {
		w.fail("after the last publish: %v", differences)
	}
	var lock lock.Body
	if err := w.decodeLock(&lock); err != nil || lock.Doubted() {
		w.fail("an hour after the last run there is still a doubt: %+v, %v", lock, err)
	}
	w.mu.Unlock()
	if outcome := w.lastPublish("night3", last); outcome != Unchanged {
		w.mu.Lock()
		w.fail("the same again is %s, want %s", outcome, Unchanged)
		w.mu.Unlock()
	}
	if restarted {
		ctx, cancel := context.WithCancel(context.Background())
		var last sync.WaitGroup
		last.Go(func() { w.fallback(ctx, "last fallback", 0) })
		defer func() { cancel(); last.Wait() }()
	}
	w.nothingRefreshedIsLost(last)
	w.cachesHave(last)
	w.readersAccept("in the end", last)
	if !w.chance(300, "last verifier") {
		return
	}
	p := w.process("last verifier")
	p.calm = true
	v, err := Verify(context.Background(), p, w.options(p, last))
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.fail("the last verification: %v", err)
		return
	}
	if wrong := slices.DeleteFunc(slices.Concat(v.Missing.Keys, v.Altered.Keys, v.Unknown.Keys, v.Foreign.Keys), func(key site.Key) bool { return w.harmed[key] || w.isStray(key) }); len(wrong) > 0 {
		w.fail("the last verification: %v are said to be damaged", wrong)
	}
}

// arriveAll waits until no request can arrive anymore.
func (w *world) arriveAll() {
	w.mu.Lock()
	wait := time.Until(w.pending)
	w.mu.Unlock()
	time.Sleep(wait + time.Millisecond)
}

func (w *world) lastPublish(name string, s simulatedSite) Outcome {
	p := w.process(name)
	p.calm = true
	o := w.options(p, s)
	o.BreakLock = false
	o.Signing, o.AllowRollback = w.signing("every night"), true
	report, err := Publish(context.Background(), s, p, o)
	for range 3 {
		if errors.Is(err, lock.ErrLocked) { // a heartbeat of a dead run may have come late
			report, err = Publish(context.Background(), s, p, o)
		}
	}
	w.reported(p, report, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("%s: %s, %v", name, report.Outcome, err)
	if err != nil {
		w.fail("%s: %v", name, err)
	}
	return report.Outcome
}

// repairWhatVerifyFinds is for worlds without conditional writes, where late requests go unnoticed:
// a verification must find their effects, and a repair must fix them.
func (w *world) repairWhatVerifyFinds(last simulatedSite) {
	w.mu.Lock()
	differences := w.differences()
	w.mu.Unlock()
	if len(differences) == 0 {
		return
	}
	p := w.process("repairer")
	p.calm = true
	if v, err := Verify(context.Background(), p, w.options(p, last)); err == nil && v.Good() {
		w.mu.Lock()
		w.fail("after the last publish: %v, and a verification finds nothing", differences)
		w.mu.Unlock()
	}
	o := w.options(p, last)
	o.Signing = w.signing("every night")
	v, err := Repair(context.Background(), last, p, o)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.fail("repair of %v: %v", differences, err)
		return
	}
	w.purge(v.Repaired)
	for _, key := range v.Foreign.Keys { // foreign objects of another base path are removed by hand, with a purge
		delete(w.objects, key)
		delete(w.cache, key)
	}
}

// certainIsTrue checks that the bucket equals its manifest, or has a mark or a doubt.
// Without conditional writes neither is reliable.
func (w *world) certainIsTrue(when string) {
	if w.locks != conditional {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var lock lock.Body
	err := w.decodeLock(&lock)
	_, marked := w.objects[site.MarkKey]
	if differences := w.differences(); len(differences) > 0 && err == nil && lock.Released && !lock.Doubted() && !marked {
		w.fail("%s: %v, and nothing says so", when, differences)
	}
}

// differences returns the differences between the bucket and its root, except refreshed and damaged
// objects.
func (w *world) differences() (differences []string) {
	of, _ := w.rooted()
	needed := w.neededManifest(of, &differences)
	for key, sum := range of.entries {
		o, ok := w.objects[key]
		contentType, cacheControl := of.headers(key)
		isManifest := strings.HasPrefix(string(key), string(site.ManifestKey("")))
		switch {
		case w.harmed[key]:
		case !ok:
			differences = append(differences, string(key)+" is missing")
		case o.sum != sum && !w.put[putBy{key, o.sum}] && !isManifest:
			differences = append(differences, string(key)+" has other bytes")
		case w.lateMark: // only marks tell headers
		case (o.contentType != contentType || o.cacheControl != cacheControl) && !w.put[putBy{key, o.sum}]:
			differences = append(differences, string(key)+" has other headers")
		}
	}
	for key := range w.objects {
		_, known := of.entries[key]
		if !known && !isBeside(key) && !needed[key] && !w.isStray(key) {
			differences = append(differences, string(key)+" is not of the site")
		}
	}
	if s := w.signatures; s != nil && s.last.Counter > 0 && s.last.Root != site.Sum256(w.objects[site.RootKey].body) {
		differences = append(differences, "the note is about another root")
	}
	slices.Sort(differences)
	return differences
}

// neededManifest returns the deltas required to read the manifest of a site, and adds the
// unreadable shards to differences.
func (w *world) neededManifest(of simulatedSite, differences *[]string) map[site.Key]bool {
	needed := map[site.Key]bool{}
	if of.memorySite == nil {
		return needed
	}
	for _, shard := range site.HashPrefixes(of.root.ShardDigits) {
		if w.harmed[site.ManifestKey(shard)] {
			continue
		}
		err := w.manifestError(of, shard)
		if err != nil {
			*differences = append(*differences, err.Error())
		}
		if o := w.objects[site.ManifestKey(shard)]; err == nil && site.Sum(o.body) != of.entries[site.ManifestKey(shard)] {
			needed[site.DeltaKey(shards.Group(shard))] = true
		}
	}
	return needed
}

// isBeside reports whether an object does not belong to any site.
func isBeside(key site.Key) bool {
	return key == site.LockKey || key == site.MarkKey || key == site.NoteKey || strings.HasPrefix(string(key), string(site.RefreshPrefix))
}

// isAnnounced reports whether an object is reached only through announced notes. These objects
// never change.
func isAnnounced(key site.Key) bool {
	return strings.HasPrefix(string(key), string(site.NextPrefix)) && key != note.NextKey
}

// reported compares the report of a run with its effects, and purges caches as the command does.
func (w *world) reported(p *process, r *Report, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var changed, manifests int
	named := map[site.Key]bool{site.RootKey: true}
	for _, key := range r.Changed.Keys {
		named[key] = true
	}
	for key := range p.touched {
		if !named[key] && !r.Changed.Unknown && !isAnnounced(key) {
			w.fail("%s: %s has changed, and the report does not say so", p.name, key)
		}
		if strings.HasPrefix(string(key), string(site.ManifestKey(""))) {
			manifests++
		} else if key != site.RootKey {
			changed++
		}
	}
	done, plan := r.Done, r.Plan
	switch {
	case done.Put > plan.Put || done.Deleted > plan.Delete || done.Manifests > plan.Manifests,
		done.Put+done.Manifests > changed+manifests:
		w.fail("%s: planned %+v, done %+v, but it has changed %d objects and %d manifest shards", p.name, plan, done, changed, manifests)
	case r.Outcome == Published && (done.Put != plan.Put || done.Deleted != plan.Delete || done.Manifests != plan.Manifests):
		w.fail("%s: it reports that it is done: planned %+v, done %+v", p.name, plan, done)
	case r.Outcome == Unchanged && changed+manifests > 0:
		w.fail("%s: it reports that nothing has changed, but it has changed %d objects and %d manifest shards", p.name, changed, manifests)
	case r.Outcome == Published && err == nil && !r.Live:
		w.fail("%s: it reports that it is done, but the site is not live", p.name)
	}
	switch {
	case p.isDead(): // a person purges after a run that was killed
		w.purge(&Report{Changed: Changed{Unknown: true}})
	case r.Live && r.Outcome != Unchanged:
		w.purge(r)
	}
}

// purge removes what a run has changed from the cache.
func (w *world) purge(r *Report) {
	if r.Changed.Unknown {
		clear(w.cache)
		for key, o := range w.objects {
			w.cache[key] = o.sum
		}
		return
	}
	for _, key := range append(r.Changed.Keys, site.RootKey) {
		if o, ok := w.objects[key]; ok {
			w.cache[key] = o.sum
		} else {
			delete(w.cache, key)
		}
	}
}

// cachesHave checks that the cache has the last site, except refreshed objects.
func (w *world) cachesHave(last simulatedSite) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, sum := range last.entries {
		if strings.HasPrefix(string(key), string(site.ManifestKey(""))) {
			sum = w.objects[key].sum
		}
		if !w.harmed[key] && len(last.root.Config.RefreshesOf(key)) == 0 && w.cache[key] != sum {
			w.fail("a cache has an old %s, and was not told", key)
		}
	}
	if w.signatures != nil && w.cache[site.NoteKey] != w.objects[site.NoteKey].sum {
		w.fail("a cache has an old note, and was not told")
	}
	for key := range w.cache {
		if _, ok := w.objects[key]; !ok && !isBeside(key) && !isAnnounced(key) {
			w.fail("a cache has %s, which is gone, and was not told", key)
		}
	}
}

// nothingRefreshedIsLost checks that refreshed data given to clients are below _refresh/, where the
// generator finds them, and in the objects once a fallback has noticed the last site.
func (w *world) nothingRefreshedIsLost(last simulatedSite) {
	time.Sleep(30 * time.Second)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, list := range lists {
		told, ok := w.acked[list]
		kept := max(told, w.kept[list])
		if kept == 0 {
			continue
		}
		account, err := site.ParseAddress(address(int(list[0] - '0')))
		if err != nil {
			panic(err)
		}
		has, err := refresh.DecodeProfile(w.objects[site.RefreshKey(site.Details, list)].body, account, time.Time{})
		if err != nil || has.Fresh < kept {
			w.fail("list %s: a profile as fresh as %d was answered, kept is %d (%v)", list, kept, has.Fresh, err)
		}
		if !ok {
			continue
		}
		key := last.root.Config.ListKey(list, site.Details)
		if details, _, err := site.DecodeDetails(w.objects[key].body); !w.harmed[key] && (err != nil || details.ENS.Fresh < told) {
			w.fail("list %s: a profile as fresh as %d was answered, stored is %d (%v)", list, told, details.ENS.Fresh, err)
		}
		if !last.root.Config.EFP() {
			continue
		}
		for _, key := range []site.Key{last.root.Config.ListKey(list, site.Account), last.root.Config.UserObjectKey(account.String(), site.Account)} {
			if a, _, err := site.DecodeDetails(w.objects[key].body); !w.harmed[key] && (err != nil || a.ENS.Fresh < told) {
				w.fail("%s: a profile as fresh as %d was answered, stored is %d (%v)", key, told, a.ENS.Fresh, err)
			}
		}
	}
}

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
