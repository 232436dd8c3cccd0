package publisher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/publisher/internal/lock"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/storage"
)

// A world is a simulated bucket with all its users, on virtual time. Its seed decides everything:
// the fate of a request depends on the seed, the process, and the number of earlier requests of its
// kind by the process, and never on the order of goroutines.
type world struct {
	seed    uint64
	locks   locking
	start   time.Time
	settled atomic.Bool // requests no longer fail

	encrypted bool // ETags are not MD5s, as under SSE-KMS
	versions  bool // publishers of two versions, which put other headers

	signatures *signatures // nil if nobody signs

	mu           sync.Mutex
	objects      map[site.Key]stored
	sorted       []site.Key // keys of objects; nil if they must be sorted again
	epoch        int        // how often the lock was taken
	writing      int        // last epoch in which data was written
	late         bool       // a request arrived later than the protocol waits
	lateMark     bool       // a late request put the mark unconditionally and may have replaced another
	pending      time.Time  // when the last request arrives
	writes       int        // changes so far
	byPublishers int        // part of writes
	reader       *follower
	faults       faults
	failed       []string
	trace        *strings.Builder // nil if not wanted

	cache   map[site.Key]site.MD5 // state of a cache that keeps requesting every object
	put     map[putBy]bool        // put by refreshes
	damaged map[site.Key]bool     // objects damaged and not put again since
	harmed  map[site.Key]bool     // objects ever damaged
	acked   map[string]int64      // freshness, by list, of profiles that a fallback answered to a client
	kept    map[string]int64      // the same for a live process, which replaces no object
}

// putBy identifies an object that was put.
type putBy struct {
	key site.Key
	sum site.MD5
}

// A stored object is an object in the bucket.
type stored struct {
	body                      []byte
	sum                       site.MD5
	at                        time.Time
	contentType, cacheControl string
	etag                      string // "" means the MD5
}

func (o stored) tag() string { return cmp.Or(o.etag, o.sum.String()) }

// store returns the stored form of an object.
func (w *world) store(r *arrival, o storage.Object) *stored {
	s := &stored{body: o.Body, sum: o.MD5, at: time.Now(), contentType: o.ContentType, cacheControl: o.CacheControl}
	if w.encrypted {
		s.etag = site.Sum([]byte(fmt.Sprint(w.seed, w.writes))).String()
	}
	if r.older {
		s.cacheControl = olderHeader(o.Key, s.cacheControl)
	}
	return s
}

// Faults of the network, the server and the processes.
const (
	faultDelayed    = "requests delayed for seconds"
	faultGivenUp    = "requests that arrived after their sender gave up"
	faultLost       = "requests lost"
	faultUnheard    = "answers lost"
	faultDuplicated = "requests carried out twice"
	faultRefused    = "requests refused for their age"
	faultStopped    = "processes stopped and continued"
	faultStuck      = "requests that a stopped process sent when it went on"
	faultKilled     = "processes killed"
	faultCut        = "processes interrupted"
	faultBroken     = "runs that may break a lock"
	faultTaken      = "locks taken over"
	faultSkewed     = "buckets whose clocks disagree"
	faultFollower   = "lives that publish on a clock"
	faultDamaged    = "objects damaged"
	faultUnlocked   = "buckets without a lock"
	faultBroke      = "requests answered with 500"
	faultPartial    = "deletions of many of which some failed"
	faultAsleep     = "machines that slept"
	faultSet        = "clocks that were set"
	faultEncrypted  = "buckets whose ETags are no MD5s"
	faultVersions   = "buckets with two versions of publishers"
	faultSigned     = "signed buckets"
	faultReader     = "readers with a key"
	faultBetween    = "reads between two sites"
)

// faults counts the injected faults by kind.
type faults map[string]int

func (w *world) count(fault string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults[fault]++
}

// fail records a broken invariant.
func (w *world) fail(format string, arguments ...any) {
	w.failed = append(w.failed, w.elapsed()+" "+fmt.Sprintf(format, arguments...))
	w.note("BROKEN: "+format, arguments...)
}

func (w *world) note(format string, arguments ...any) {
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%s %s\n", w.elapsed(), fmt.Sprintf(format, arguments...))
	}
}

func (w *world) elapsed() string { return fmt.Sprintf("%10.3f", time.Since(w.start).Seconds()) }

// locking is the server's support of conditions. Only conditional writes can keep publishers apart;
// in the other worlds they publish sequentially, as the docs require.
type locking int

const (
	conditional locking = iota
	unsupported         // the server answers 501 to conditions
	ignored             // the server accepts conditions and ignores them
)

// draw returns a number that depends only on the seed and the parts.
func (w *world) draw(parts ...string) uint64 {
	const prime = 1099511628211
	hash := w.seed*0x9e3779b97f4a7c15 ^ 14695981039346656037
	for _, part := range parts {
		for i := range len(part) {
			hash = (hash ^ uint64(part[i])) * prime
		}
		hash = (hash ^ 0xff) * prime
	}
	hash ^= hash >> 30 // splitmix64: FNV alone leaves the high bits much alike
	hash *= 0xbf58476d1ce4e5b9
	hash ^= hash >> 27
	hash *= 0x94d049bb133111eb
	return hash ^ hash>>31
}

// chance is true in perMille of a thousand cases.
func (w *world) chance(perMille uint64, parts ...string) bool {
	return w.draw(parts...)%1000 < perMille
}

// between returns a time, with nanoseconds, so that no two events coincide.
func (w *world) between(low, high time.Duration, parts ...string) time.Duration {
	return low + time.Duration(w.draw(parts...)%uint64(high-low))
}

// skew returns how far a clock of the bucket is ahead: of its answers, or of the node that stores a
// key.
func (w *world) skew(clock string) time.Duration {
	if !w.chance(300, "skewed") {
		return 0
	}
	const most = 5 * time.Minute
	return w.between(-most, most, "skew", clock)
}

// A process uses the bucket. It may be suspended and killed.
type process struct {
	w               *world
	name            string
	stopped, goesOn time.Time         // zero: never
	killed          time.Time         // zero: never
	sleeps          bool              // the whole machine sleeps while stopped
	drift           float64           // drift of its clocks
	offset          time.Duration     // offset of its wall clock
	set             time.Time         // time when the wall clock is set; zero: never
	jump            time.Duration     // change of the wall clock
	older           bool              // an older version, with other headers
	touched         map[site.Key]bool // keys that it put or deleted; guarded by the world's mutex
	epoch           atomic.Int64
	mu              sync.Mutex
	requests        map[string]int
	refreshes       bool            // is a fallback
	calm            bool            // its requests do not fail
	fates           map[string]fate // exceptions from calm
}

func (w *world) process(name string) *process {
	return &process{w: w, name: name, requests: map[string]int{}, touched: map[site.Key]bool{}}
}

// part returns a process for a part of the work, whose requests are numbered separately.
func (p *process) part(name string) *process {
	q := p.w.process(name)
	q.stopped, q.goesOn, q.killed, q.sleeps = p.stopped, p.goesOn, p.killed, p.sleeps
	q.drift, q.offset, q.set, q.jump = p.drift, p.offset, p.set, p.jump
	return q
}

// stops sets when the process is stopped and killed, by the seed.
func (p *process) stops(within time.Duration) {
	w, now := p.w, time.Now()
	if w.chance(350, p.name, "stopped") {
		p.stopped = now.Add(w.between(0, within, p.name, "stop"))
		p.goesOn = p.stopped.Add(w.between(time.Second, 100*time.Second, p.name, "go on"))
	}
	if w.chance(200, p.name, "killed") {
		p.killed = now.Add(w.between(0, 2*within, p.name, "kill"))
	}
	if p.sleeps = !p.stopped.IsZero() && w.chance(500, p.name, "sleeps"); p.sleeps {
		w.count(faultAsleep)
	}
	p.drift = maxDrift * (float64(w.draw(p.name, "drift")%2001)/1000 - 1)
	p.offset = w.between(-maxOffset, maxOffset, p.name, "offset")
	if w.chance(250, p.name, "set") {
		w.count(faultSet)
		p.set, p.jump = now.Add(w.between(0, 2*within, p.name, "set at")), w.between(-maxOffset, maxOffset, p.name, "jump")
	}
}

// Errors of clocks: the wall clock before it is set, and the change when it is set.
const (
	maxDrift  = 0.002
	maxOffset = 7 * time.Minute
)

// drifted is the maximum drift of clocks in the longest lease.
const drifted = time.Duration(maxDrift * float64(2*time.Minute))

// clock returns the time by the clocks of the process's machine. They drift, the wall clock is set,
// and the monotonic one stands still during sleep. No machine has both faults: only Linux can
// notice that, by its clock since boot.
func (p *process) clock() lock.Instant {
	now := time.Now()
	passed := now.Sub(p.w.start)
	passed += time.Duration(float64(passed) * p.drift)
	wall := p.w.start.Add(passed + p.offset)
	if !p.set.IsZero() && now.After(p.set) {
		wall = wall.Add(p.jump)
	}
	if p.sleeps && p.set.IsZero() && now.After(p.stopped) { // if the clock is set too, the machine runs Linux
		passed -= min(now.Sub(p.stopped), p.goesOn.Sub(p.stopped))
	}
	return lock.Instant{Monotonic: p.w.start.Add(passed), Wall: wall}
}

var errKilled = errors.New("the process is dead")

// alive waits while the process is suspended, plus a distinct time for each request: otherwise the
// scheduler of goroutines would decide the order.
func (p *process) alive(id string) error {
	if now := time.Now(); !now.Before(p.stopped) && now.Before(p.goesOn) {
		time.Sleep(time.Until(p.goesOn) + p.w.between(0, time.Millisecond, p.name, id, "awake"))
	}
	if p.isDead() {
		return errKilled
	}
	return nil
}

func (p *process) isDead() bool { return !p.killed.IsZero() && !time.Now().Before(p.killed) }

// A fate decides the outcome of a request.
type fate struct {
	out, back time.Duration
	again     time.Duration // delay until it is carried out once more; 0 means never
	lost      bool
	unheard   bool // no answer arrives
	broken    bool // the answer is an error that leaves open whether the request was carried out
	useless   bool // the request was not carried out
}

// tooOld is the age at which S3 refuses a request (RequestTimeTooSkewed).
const tooOld = 15 * time.Minute

// fate returns the fate of a request.
func (p *process) fate(id string) fate {
	w := p.w
	f := fate{out: w.between(time.Millisecond, 40*time.Millisecond, p.name, id, "out"), back: w.between(time.Millisecond, 20*time.Millisecond, p.name, id, "back")}
	if special, ok := p.fates[id]; ok {
		special.out, special.back = cmp.Or(special.out, f.out), cmp.Or(special.back, f.back)
		return special
	}
	if p.calm || w.settled.Load() || !w.chance(40, p.name, id, "fate") {
		return f
	}
	switch w.draw(p.name, id, "kind") % 7 {
	case 0:
		w.count(faultDelayed)
		f.out = w.between(time.Second, 20*time.Second, p.name, id, "delay")
	case 1:
		w.count(faultGivenUp)
		f.unheard = true
		f.out = w.between(5*time.Second, 2*tooOld, p.name, id, "delay")
	case 2:
		w.count(faultLost)
		f.lost, f.unheard = true, true
	case 3:
		w.count(faultUnheard)
		f.unheard = true
	case 4:
		w.count(faultDuplicated)
		f.again = w.between(time.Millisecond, 3*time.Second, p.name, id, "again")
	case 5:
		w.count(faultBroke)
		f.broken, f.useless = true, w.chance(500, p.name, id, "useless")
	case 6:
		f.back = w.between(time.Second, 20*time.Second, p.name, id, "answer")
	}
	return f
}

// id distinguishes a request from all others of the process.
func (p *process) id(operation string, key site.Key) string {
	what := operation + " " + string(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests[what]++
	return what + " " + strconv.Itoa(p.requests[what])
}

// request simulates a request. effect runs when it arrives at the server and returns the answer. As
// in reality, the request may arrive after its sender has stopped waiting.
func request[T any](ctx context.Context, p *process, operation string, key site.Key, effect func(*arrival) (T, error)) (T, error) {
	var nothing T
	id := p.id(operation, key)
	if err := errors.Join(p.alive(id), ctx.Err()); err != nil {
		return nothing, err
	}
	f := p.fate(id)
	r := &arrival{process: p, what: id, signed: time.Now(), dated: p.clock().Wall}
	arrives, sent := p.sent(r, f)
	if !sent {
		return nothing, p.unanswered(ctx, id, time.After(10*time.Second))
	}
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 2)
	p.w.expect(arrives.Add(f.again))
	arrive := func() {
		var a answer
		a.err = p.w.arrive(r, func(r *arrival) (err error) {
			if !f.useless {
				a.value, err = effect(r)
			}
			if f.broken {
				err = &storage.UnansweredError{Err: errors.New("InternalError, status 500")}
			}
			return err
		})
		answers <- a
	}
	time.AfterFunc(time.Until(arrives), arrive)
	if f.again > 0 {
		time.AfterFunc(time.Until(arrives)+f.again, arrive)
	}
	if f.unheard {
		return nothing, p.unanswered(ctx, id, time.After(10*time.Second))
	}
	select {
	case a := <-answers:
		if f.again > 0 { // one server receives both and answers the first
			<-answers
		}
		time.Sleep(f.back)
		return a.value, errors.Join(a.err, p.alive(id))
	case <-ctx.Done():
		return nothing, p.unanswered(ctx, id, nil)
	}
}

// sent returns when a request arrives; ok is false if it never does.
func (p *process) sent(r *arrival, f fate) (arrives time.Time, ok bool) {
	arrives = r.signed.Add(f.out)
	if p.stopped.After(r.signed) && p.stopped.Before(arrives) && p.w.chance(300, p.name, r.what, "stuck") {
		// The process was stopped between checking the lease and sending.
		p.w.count(faultStuck)
		arrives = p.goesOn.Add(f.out)
		if !p.killed.IsZero() && p.killed.Before(p.goesOn) {
			return arrives, false
		}
	}
	died := !p.killed.IsZero() && p.killed.Before(arrives)
	if f.lost || died && p.w.chance(500, p.name, r.what, "dropped") {
		p.w.noteFrom(p.name, "%s is lost", r.what)
		return arrives, false
	}
	return arrives, true
}

// unanswered returns the error of a request without an answer.
func (p *process) unanswered(ctx context.Context, id string, closed <-chan time.Time) error {
	select {
	case <-closed:
	case <-ctx.Done():
		time.Sleep(p.w.between(0, time.Millisecond, p.name, id, "noticed")) // a context ends all its requests in any order
	}
	if err := p.alive(id); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return &storage.UnansweredError{Err: err}
	}
	return &storage.UnansweredError{Err: errors.New("the connection was closed")}
}

// expect records that a request arrives by a time.
func (w *world) expect(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if at.After(w.pending) {
		w.pending = at
	}
}

// An arrival is a request at the server.
type arrival struct {
	*process
	what   string
	signed time.Time
	dated  time.Time // the same by the sender's clock
}

// errTooOld is the server's answer to a request that was signed too long ago.
var errTooOld = errors.New("RequestTimeTooSkewed")

func (w *world) arrive(r *arrival, effect func(*arrival) error) (err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(r.dated).Abs() > tooOld {
		w.faults[faultRefused]++
		err = errTooOld
	} else {
		err = effect(r)
	}
	if w.trace != nil && (!strings.HasPrefix(r.what, "read") && !strings.HasPrefix(r.what, "list") || err != nil && !errors.Is(err, storage.ErrNotFound)) {
		late := ""
		if age := time.Since(r.signed); age > time.Second {
			late = fmt.Sprintf(", signed %.1f s ago", age.Seconds())
		}
		result := "done"
		if err != nil {
			result = err.Error()
		}
		w.note("%s: %s%s: %s", r.name, r.what, late, result)
	}
	return err
}

// changed is called, under the mutex, for each object that is put, or deleted (nil).
func (w *world) changed(r *arrival, key site.Key, o *stored) {
	w.writes++
	if p := r.process; p.refreshes && o != nil && !strings.HasPrefix(string(key), string(site.RefreshPrefix)) {
		w.put[putBy{key, o.sum}] = true
	} else if !p.refreshes {
		w.byPublishers++
	}
	if key == site.LockKey {
		w.lockChanged(r, o)
	} else if epoch := int(r.epoch.Load()); epoch > 0 {
		// No process writes data after another has begun to, except for requests that the network
		// or a suspension has delayed for longer than the protocol waits.
		if w.locks == conditional && w.writing > epoch && time.Since(r.signed) <= lock.DrainTime-drifted {
			w.fail("%s: %s was carried out when another run had begun to write", r.name, r.what)
		}
		w.writing = max(w.writing, epoch)
	}
	if time.Since(r.signed) > lock.DrainTime {
		w.late = true
		w.lateMark = w.lateMark || key == site.MarkKey && w.locks != conditional
	}
	if key != site.LockKey && key != site.MarkKey && key != site.PackKey {
		r.touched[key] = true
	}
	known := len(w.objects)
	if o == nil {
		delete(w.objects, key)
	} else {
		w.objects[key] = *o
	}
	if len(w.objects) != known {
		w.sorted = nil
	}
	delete(w.damaged, key)
	w.lookAtNote(r, key, o)
	w.reader.look(w, r, key, o)
}

// keys returns the sorted keys of all objects.
func (w *world) keys() []site.Key {
	if w.sorted == nil {
		w.sorted = slices.Sorted(maps.Keys(w.objects))
	}
	return w.sorted
}

func (w *world) lockChanged(r *arrival, o *stored) {
	if o == nil {
		w.fail("%s: the lock was deleted", r.name)
		return
	}
	var before, after lock.Body
	if err := errors.Join(json.Unmarshal(o.body, &after), w.decodeLock(&before)); err != nil {
		w.fail("%s: the lock cannot be read: %v", r.name, err)
	}
	if after.ID == before.ID {
		return
	}
	if !before.Released && before.ID != "" {
		w.faults[faultTaken]++
	}
	w.epoch++
	r.epoch.Store(int64(w.epoch))
}

func (w *world) decodeLock(into *lock.Body) error {
	if o, ok := w.objects[site.LockKey]; ok {
		return json.Unmarshal(o.body, into)
	}
	into.Released = true
	return nil
}

// Now returns the time by the clock of the server's answers.
func (p *process) Now() time.Time { return time.Now().Add(p.w.skew("answers")) }

// Get is Read without its info.
func (p *process) Get(ctx context.Context, key site.Key) ([]byte, error) {
	body, _, err := p.Read(ctx, key)
	return body, err
}

func (p *process) Read(ctx context.Context, key site.Key) ([]byte, storage.Info, error) {
	o, err := request(ctx, p, "read", key, func(*arrival) (o stored, err error) {
		o, ok := p.w.objects[key]
		if !ok {
			return o, storage.ErrNotFound
		}
		return o, nil
	})
	if err != nil {
		return nil, storage.Info{}, err
	}
	return o.body, p.w.info(key, o), nil
}

// Stat is Read without the body.
func (p *process) Stat(ctx context.Context, key site.Key) (storage.Info, error) {
	_, info, err := p.Read(ctx, key)
	return info, err
}

func (w *world) info(key site.Key, o stored) storage.Info {
	return storage.Info{Key: key, Size: int64(len(o.body)), ETag: o.tag(), Modified: o.at.Add(w.skew(string(key[:min(len(key), 20)])))}
}

func (p *process) Put(ctx context.Context, o storage.Object, condition storage.Condition) (etag string, err error) {
	if site.Sum(o.Body) != o.MD5 || int64(len(o.Body)) != o.Size {
		return "", storage.ErrDamaged
	}
	return request(ctx, p, "put", o.Key, func(r *arrival) (string, error) {
		old, ok := p.w.objects[o.Key]
		switch {
		case p.w.locks == unsupported && condition != storage.Always:
			return "", storage.ErrUnsupported
		case p.w.locks == ignored:
			condition = storage.Always
		}
		if condition == storage.IfAbsent && ok || condition != storage.IfAbsent && condition != storage.Always && (!ok || string(condition) != old.tag()) {
			return "", storage.ErrCondition
		}
		s := p.w.store(r, o)
		p.w.changed(r, o.Key, s)
		return s.tag(), nil
	})
}

// Digest returns the digest that an object was put with.
func (p *process) Digest(ctx context.Context, key site.Key) (digest site.MD5, err error) {
	return request(ctx, p, "digest", key, func(*arrival) (digest site.MD5, err error) {
		o, ok := p.w.objects[key]
		if !ok {
			return digest, storage.ErrNotFound
		}
		return o.sum, nil
	})
}

func (p *process) Delete(ctx context.Context, keys []site.Key) error {
	_, err := request(ctx, p, "delete", keys[0], func(r *arrival) (none struct{}, err error) {
		keys := keys
		if len(keys) > 1 && !p.calm && p.w.chance(100, p.name, r.what, "partial") {
			p.w.faults[faultPartial]++
			keys, err = keys[:p.w.draw(p.name, r.what, "some")%uint64(len(keys))], &storage.UnansweredError{Err: errors.New("some were not deleted")}
		}
		for _, key := range keys {
			if _, ok := p.w.objects[key]; ok {
				p.w.changed(r, key, nil)
			}
		}
		return none, err
	})
	return err
}

// List lists in pages, between which others may write.
func (p *process) List(ctx context.Context, prefix, after site.Key, found func(storage.Info) error) error {
	const page = 25
	for {
		listed, err := request(ctx, p, "list", prefix, func(*arrival) (listed []storage.Info, err error) {
			keys := p.w.keys()
			first, _ := slices.BinarySearch(keys, max(prefix, after))
			for _, key := range keys[first:] {
				if len(listed) == page || !strings.HasPrefix(string(key), string(prefix)) {
					break
				}
				if key > after {
					listed = append(listed, p.w.info(key, p.w.objects[key]))
				}
			}
			return listed, nil
		})
		if err != nil {
			return err
		}
		for _, info := range listed {
			after = info.Key
			if err := found(info); err != nil {
				return err
			}
		}
		if len(listed) < page {
			return nil
		}
	}
}

// An unpacking process uses a server that unpacks archives, and stores their objects in any order.
type unpacking struct{ *process }

func (p unpacking) Unpacks(ctx context.Context, objects []storage.Object) (bool, error) {
	return true, p.PutMany(ctx, objects)
}

// PutMany puts objects with one request.
func (p unpacking) PutMany(ctx context.Context, objects []storage.Object) error {
	_, err := request(ctx, p.process, "put many", objects[0].Key, func(r *arrival) (none struct{}, err error) {
		order := slices.SortedFunc(slices.Values(objects), func(a, b storage.Object) int {
			return int(p.w.draw(r.what, string(a.Key))>>1) - int(p.w.draw(r.what, string(b.Key))>>1)
		})
		for _, o := range order {
			p.w.changed(r, o.Key, p.w.store(r, o))
		}
		return none, nil
	})
	return err
}
