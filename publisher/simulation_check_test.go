package publisher

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/publisher/internal/requests"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
	"github.com/followpress/followpress/site/refresh"
	"github.com/followpress/followpress/site/shards"
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
