package follow

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/postgres"
)

// DatabaseOptions say which database of an indexer is followed. The zero value of all but DSN means the
// default.
type DatabaseOptions struct {
	DSN      string          // as postgres.Options.DSN
	Poll     time.Duration   // between two questions whether anything has changed; 0 means 2 s
	Pause    time.Duration   // between two snapshots, at least; 0 means 10 s
	Tables   Tables          // for what the database does not have
	Progress source.Progress // of the first snapshot; nil means none
	Log      *slog.Logger    // nil means none
}

// A Database makes rounds of the database of an indexer. It is coarser than a Follower: each change costs
// a whole snapshot, some seconds of the database's time and of a core at the real size, in a temporary
// folder ($TMPDIR, some 150 MiB) that is gone once it is open; so rounds are at least Options.Pause apart. What
// a database has is neither finalized nor compared with contracts: Head.Finalized is 0, and a
// reorganisation is a change like any other. Heads are those of the indexer if it tells them, else
// one of chain 0 without a block. Round.Accounts has no accounts that records or operations are about. The table ops is
// whole.
//
// One goroutine at a time may call Next; the other methods may be called from any.
type Database struct {
	o     DatabaseOptions
	clock clock
	watch *postgres.Watch // nil if there is no connection
	asOf  time.Time
	mark  string // of the last snapshot
	heads []source.Head
	rows  map[string]row // of the last snapshot, by list or account; nil before
	made  time.Time

	mu    sync.Mutex
	now   Status
	renew bool
}

// OpenDatabase checks the options. It does not connect yet. Close must be called after a success.
func OpenDatabase(o DatabaseOptions) (*Database, error) {
	if o.Poll < 0 || o.Pause < 0 {
		return nil, errors.New("a time between requests is negative")
	}
	o.Poll, o.Pause = cmp.Or(o.Poll, 2*time.Second), cmp.Or(o.Pause, 10*time.Second)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Progress == nil {
		o.Progress = noProgress{}
	}
	return &Database{o: o, clock: clock{time.Now()}}, nil
}

// Next is that of Follower. A database that cannot be reached is asked again until it answers; before the
// first round, what waiting does not mend is an error.
func (d *Database) Next(ctx context.Context) (source.Round, error) {
	for {
		r, ok, err := d.next(ctx)
		if ctx.Err() != nil {
			return source.Round{}, context.Cause(ctx)
		}
		d.tell(err)
		switch {
		case err == nil && ok:
			return r, nil
		case err != nil && d.rows == nil && !postgres.Passes(err):
			return source.Round{}, err
		case err != nil:
			d.o.Log.Warn("the database is asked again", "error", err)
		}
		if !sleep(ctx, d.o.Poll) {
			return source.Round{}, context.Cause(ctx)
		}
	}
}

// tell sets what Status says of errors.
func (d *Database) tell(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	for i := range d.now.Chains {
		d.now.Chains[i].Error = text
	}
	if len(d.now.Chains) == 0 {
		d.now.Confirming = text
	} else {
		d.now.Confirming = ""
	}
}

// next makes a round; ok is false if nothing is new.
func (d *Database) next(ctx context.Context) (_ source.Round, ok bool, err error) {
	defer func() {
		if err != nil {
			_ = d.disconnect() // what was the matter is told
		}
	}()
	if d.watch == nil {
		if d.watch, err = postgres.Opened(ctx, d.o.DSN); err != nil {
			return source.Round{}, false, err
		}
	}
	mark, heads, err := d.watch.Changed(ctx)
	if err != nil {
		return source.Round{}, false, err
	}
	d.mu.Lock()
	renew := d.renew
	d.mu.Unlock()
	if (d.rows == nil || mark != d.mark || renew) && (d.rows == nil || time.Since(d.made) >= d.o.Pause) {
		made, err := d.snapshot(ctx)
		if err != nil {
			return source.Round{}, false, err
		}
		d.mark, d.made = mark, time.Now()
		d.mu.Lock()
		d.renew = d.renew && !renew
		d.mu.Unlock()
		made.Heads = d.see(heads)
		return made, true, nil
	}
	if was := d.heads; len(heads) > 0 && mark == d.mark { // else the graph does not have them yet
		heads = d.see(heads)
		return source.Round{Heads: heads}, !slices.Equal(was, heads), nil
	}
	return source.Round{}, false, nil
}

// see notes heads, and returns them, or one that only has a time if there are none.
func (d *Database) see(heads []source.Head) []source.Head {
	if len(heads) == 0 {
		heads = []source.Head{{Time: d.asOf.UnixMilli()}}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]ChainStatus, len(heads))
	for i, h := range heads {
		if i < len(d.now.Chains) && d.now.Chains[i].Chain == h.Chain {
			all[i] = d.now.Chains[i]
		}
		if all[i].Head != h || all[i].Seen.IsZero() {
			all[i].Seen, all[i].Behind = time.Now(), d.clock.since(h.Time/1000)
		}
		all[i].Head, all[i].Name = h, fmt.Sprintf("chain %d", h.Chain)
		if h.Chain == 0 {
			all[i].Name = "database"
		}
	}
	d.now.Chains, d.heads = all, heads
	return heads
}

// snapshot makes a snapshot in memory's stead: in files that have no name any more.
func (d *Database) snapshot(ctx context.Context) (_ source.Round, err error) {
	dir, err := os.MkdirTemp("", "followpress-live-")
	if err != nil {
		return source.Round{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	dir = filepath.Join(dir, "snapshot")
	w, err := snapshot.Create(dir, snapshot.WriteOptions{Compression: "none", NoSync: true})
	if err != nil {
		return source.Round{}, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	progress := d.o.Progress
	if d.rows != nil {
		progress = noProgress{}
	}
	meta, err := d.write(ctx, w, progress)
	if err != nil {
		return source.Round{}, err
	}
	if err := w.Commit(meta); err != nil {
		return source.Round{}, err
	}
	files, err := snapshot.Open(dir)
	if err != nil {
		return source.Round{}, err
	}
	rows, err := digest(files)
	if err != nil {
		return source.Round{}, errors.Join(err, files.Close())
	}
	r := source.Round{Snapshot: files}
	if d.rows != nil {
		r.Lists, r.Accounts = differences(d.rows, rows)
	}
	d.rows, d.asOf = rows, meta.AsOf
	return r, nil
}

// A row says what a list or an account has.
type row struct {
	hash    uint64
	account site.Address
}

// seed is that of all hashes of this process.
var seed = maphash.MakeSeed()

// digest hashes the rows of each list, by its token id, and of each account, by its address.
func digest(files afero.Fs) (map[string]row, error) {
	all := map[string]row{}
	for _, t := range []snapshot.Table{snapshot.TableLists, snapshot.TableRecords, snapshot.TableAccounts, snapshot.TableOps} {
		names, err := snapshot.TableFiles(files, t)
		if t == snapshot.TableOps && errors.Is(err, snapshot.ErrNoTable) {
			continue // of a database without events
		}
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if err := digestFile(all, files, name); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func digestFile(all map[string]row, files afero.Fs, name string) (err error) {
	file, err := files.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lines := bufio.NewReaderSize(file, 1<<20)
	var line []byte
	for {
		part, err := lines.ReadSlice('\n')
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(line) > 0 {
			digestLine(all, line)
		}
		if err != nil {
			return nil
		}
		line = line[:0]
	}
}

// digestLine takes a row as Writer writes it.
func digestLine(all map[string]row, line []byte) {
	text := func(member string) string {
		_, after, _ := bytes.Cut(line, []byte(member+`":"`))
		value, _, _ := bytes.Cut(after, []byte{'"'})
		return string(value)
	}
	key := text(`{"token_id`)
	account := key == ""
	if account {
		key = text(`{"address`)
	}
	r := all[key]
	r.hash = r.hash*31 + maphash.Bytes(seed, line)
	if account {
		r.account, _ = site.ParseAddress(key)
	} else if owner := text(`,"owner`); owner != "" {
		r.account, _ = site.ParseAddress(cmp.Or(text(`,"user`), owner))
	}
	all[key] = r
}

// differences are the lists with other rows, and the accounts of these and those with other rows.
func differences(was, is map[string]row) (lists []string, accounts []site.Address) {
	changed := map[site.Address]bool{}
	note := func(key string, r row) {
		changed[r.account] = true
		if !strings.HasPrefix(key, "0x") && !slices.Contains(lists[max(0, len(lists)-1):], key) {
			lists = append(lists, key)
		}
	}
	for key, r := range is {
		if old, ok := was[key]; old != r || !ok {
			if ok {
				note(key, old)
			}
			note(key, r)
		}
	}
	for key, r := range was {
		if _, ok := is[key]; !ok {
			note(key, r)
		}
	}
	slices.SortFunc(lists, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	return lists, slices.SortedFunc(maps.Keys(changed), site.Address.Compare)
}

// Status is that of Follower.
func (d *Database) Status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.now
	s.Chains = slices.Clone(s.Chains)
	return s
}

// Renew has the next round have a snapshot, whether or not the database has changed.
func (d *Database) Renew() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.renew = true
}

// Finalized writes all tables of the database as it is by now, as `snapshot postgres` does: a database
// does not tell which blocks are final.
func (d *Database) Finalized(ctx context.Context, w *snapshot.Writer) (snapshot.Meta, error) {
	return d.write(ctx, w, noProgress{})
}

func (d *Database) write(ctx context.Context, w *snapshot.Writer, progress source.Progress) (_ snapshot.Meta, err error) {
	reader, err := postgres.Open(ctx, postgres.Options{DSN: d.o.DSN, Progress: progress})
	if err != nil {
		return snapshot.Meta{}, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	if err := d.o.Tables.copy(w); err != nil {
		return snapshot.Meta{}, err
	}
	g, err := reader.Write(ctx, w)
	if err != nil {
		return snapshot.Meta{}, err
	}
	if err := d.o.Tables.write(w, g, reader.Profiles()); err != nil {
		return snapshot.Meta{}, err
	}
	return g.Meta(), nil
}

// Close ends the connection. Next must not be under way.
func (d *Database) Close() error { return d.disconnect() }

func (d *Database) disconnect() error {
	if d.watch == nil {
		return nil
	}
	err := d.watch.Close()
	d.watch = nil
	return err
}
