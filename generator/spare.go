package generator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/afero"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
)

// A spare is the folder of an older site. A run turns it into the new site, which is much cheaper than
// making all folders again.
//
// Its manifest says what is in it, and is believed as that of the live site is: only objects that differ
// from it are touched. Files that were added, removed or renamed since are noticed by their folders: the
// kernel keeps the time of a change (ctime), which programs cannot set, and the root of a site is
// written last. What was written into a file stays: looking at all files would cost several times what
// changing some does, and links from other sites change their times as well.
type spare struct {
	path    string
	live    string     // path of the live site
	made    time.Time  // when its root was written
	changes *plan      // from the spare to the new site
	kept    *plan      // from the live site to the new site
	lacks   int64      // objects that it lacks, without manifest and root
	units   unitSet    // that render those
	gone    []site.Key // objects that only the spare has
}

// errSpare says that a spare cannot be used.
var errSpare = errors.New("the spare is not used")

// maxGone bounds the objects that a spare may have too much, because their keys are kept in memory.
const maxGone = 1 << 20

func unusable(err error) error { return fmt.Errorf("%w: %w", errSpare, err) }

// openSpare compares a spare with the new site, and changes nothing. An error that wraps errSpare says
// why the spare cannot be used. kept says what the live site has.
func openSpare(ctx context.Context, path, livePath string, kept *plan, x *index, renderer *render.Site) (*spare, error) {
	s := &spare{path: path, live: livePath, kept: kept}
	return s, s.compare(ctx, x, renderer)
}

func (s *spare) compare(ctx context.Context, x *index, renderer *render.Site) error {
	if err := s.readRootFile(); err != nil {
		return unusable(err)
	}
	files := afero.NewOsFs()
	old := openLiveFolder(files, s.path)
	if old == nil || old.root.Format != site.Format {
		return unusable(errors.New("it holds no site that this version can read"))
	}
	if old.root.Config != x.root.Config {
		return unusable(errors.New("its site has another configuration"))
	}
	if err := checkEntries(files, s.path, old.root.Config); err != nil {
		return unusable(err)
	}
	s.units = make(unitSet, unitsOf(renderer)/64+1)
	var err error
	s.changes, err = x.diff(ctx, old, func(c change) error {
		if c.Reason == site.Gone {
			if s.gone = append(s.gone, c.Key); len(s.gone) > maxGone {
				return unusable(fmt.Errorf("more than %d of its objects are gone", maxGone))
			}
		} else if c.unit != render.None {
			s.lacks++
			s.units.add(int(c.unit))
		}
		return nil
	})
	if errors.Is(err, errManifest) {
		return unusable(err)
	} else if err != nil {
		return err
	}
	return s.checkFolders(ctx, x, renderer)
}

// readRootFile reads when the spare was made. A spare was live before the live site was made, so a
// later time means that somebody wrote its root again.
func (s *spare) readRootFile() error {
	// The folder must not be a link either.
	if info, err := os.Lstat(s.path); err != nil {
		return err
	} else if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", s.path)
	}
	root, err := os.Lstat(filepath.Join(s.path, string(site.RootKey)))
	if err != nil {
		return err
	}
	live, err := os.Lstat(filepath.Join(s.live, string(site.RootKey)))
	if err != nil {
		return err
	}
	s.made = root.ModTime()
	if !root.Mode().IsRegular() || s.made.After(live.ModTime()) || s.made.After(time.Now()) {
		return fmt.Errorf("its %s was written after the live one", site.RootKey)
	}
	return nil
}

// checkFolders returns an error if any folder of an object was changed. The one at the top always was,
// when it was moved; checkEntries looks at what is in it.
func (s *spare) checkFolders(ctx context.Context, x *index, renderer *render.Site) error {
	rest := folderCheck{spare: s}
	for _, key := range append(s.gone, site.ManifestKey(x.entries.shardNames[0])) {
		rest.object(key)
	}
	if rest.err != nil {
		return rest.err
	}
	return inAnyOrder(ctx, renderer, x.workers, nil, func(units func(render.Emitter)) error {
		c := folderCheck{spare: s}
		units(func(_ int, _ func([]byte) []byte, keys ...site.Key) {
			for _, key := range keys {
				c.object(key)
			}
		})
		return c.err
	})
}

// A folderCheck checks the folders of successive objects, which are often in the same few.
type folderCheck struct {
	*spare
	known [8]string
	n     int
	err   error // the first
}

func (c *folderCheck) object(key site.Key) {
	if at := strings.LastIndexByte(string(key), '/'); at > 0 && c.err == nil {
		c.err = c.folder(string(key[:at]))
	}
}

func (c *folderCheck) folder(dir string) error {
	if slices.Contains(c.known[:], dir) {
		return nil
	}
	if at := strings.LastIndexByte(dir, '/'); at > 0 {
		if err := c.folder(dir[:at]); err != nil {
			return err
		}
	}
	var stat unix.Stat_t
	err := c.lstat(dir, &stat)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // an absent one is made
		return unusable(err)
	}
	if err == nil && (stat.Mode&unix.S_IFMT != unix.S_IFDIR || time.Unix(stat.Ctim.Unix()).After(c.made)) {
		return unusable(fmt.Errorf("%s was changed after it was made", dir))
	}
	c.known[c.n%len(c.known)] = dir
	c.n++
	return nil
}

// patch turns the spare, which is now at path, into the new site.
func (s *spare) patch(ctx context.Context, path string, x *index, renderer *render.Site, progress Progress) error {
	s.path = path
	// First remove: the file system may take an old name and a new one for the same.
	if err := s.removeGone(ctx); err != nil {
		return err
	}
	err := inAnyOrder(ctx, renderer, x.workers, s.units, func(units func(render.Emitter)) error {
		b := &spareBatch{spare: s}
		objects, written := int64(0), int64(0)
		units(func(size int, render func([]byte) []byte, keys ...site.Key) {
			rendered := false
			for _, key := range keys {
				if b.err != nil || s.changes.isUnchanged(key) {
					continue
				}
				objects++
				b.err = b.replace(key, func() []byte {
					if !rendered {
						b.body, rendered = render(slices.Grow(b.body[:0], size)), true
					}
					written += int64(len(b.body))
					return b.body
				})
			}
		})
		progress.AddBytes(objects, written)
		return b.err
	})
	if err != nil {
		return err
	}
	if err := x.render(ctx, s); err != nil {
		return err
	}
	return x.write(s)
}

// removeGone removes objects that the new site does not have, and folders that are then empty.
func (s *spare) removeGone(ctx context.Context) error {
	for _, key := range s.gone {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := filepath.Join(s.path, filepath.FromSlash(string(key)))
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for dir := filepath.Dir(name); dir != s.path && unix.Rmdir(dir) == nil; {
			dir = filepath.Dir(dir)
		}
	}
	return nil
}

// begin and finish make it an output, for the manifest and the root.
func (s *spare) begin() batch       { return &spareBatch{spare: s} }
func (s *spare) finish(batch) error { return nil }

// A spareBatch puts objects into a spare. Several may do so at the same time.
type spareBatch struct {
	*spare
	made madeFolders
	body []byte
	err  error // the first
}

func (b *spareBatch) put(entry site.Entry, body []byte) error {
	// The root is always written again: its time is that of the site.
	if entry.Key != site.RootKey && b.changes.isUnchanged(entry.Key) {
		return nil
	}
	return b.replace(entry.Key, func() []byte { return body })
}

// replace makes the object what it is in the new site. It never writes to a file that is there, which
// the live site may share.
func (b *spareBatch) replace(key site.Key, body func() []byte) error {
	name := filepath.Join(b.path, filepath.FromSlash(string(key)))
	err := os.Remove(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = b.made.make(afero.NewOsFs(), filepath.Dir(name))
	}
	if err != nil {
		return err
	}
	if key != site.RootKey && b.kept.isUnchanged(key) && os.Link(filepath.Join(b.live, filepath.FromSlash(string(key))), name) == nil {
		return nil
	}
	return writeFile(afero.NewOsFs(), name, body())
}

// lstat is lstat(2) of a folder. It is called for each, so it takes no memory for an fs.FileInfo.
func (s *spare) lstat(name string, stat *unix.Stat_t) error {
	path := filepath.Join(s.path, name)
	for {
		err := unix.Lstat(path, stat)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return &fs.PathError{Op: "lstat", Path: path, Err: err}
		}
	}
}

// inAnyOrder calls do for the chunks of the site, from as many goroutines as there are workers. do calls
// units, which emits the objects of those units of the chunk that are in only; nil means all.
func inAnyOrder(ctx context.Context, s *render.Site, workers int, only unitSet, do func(units func(render.Emitter)) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for c, err := range chunksOf(s) {
		if err == nil && !only.hasAny(c.before+c.from, c.before+c.to) {
			continue
		}
		group.Go(func() error {
			if err := errors.Join(err, ctx.Err()); err != nil {
				return err
			}
			return do(func(emit render.Emitter) {
				var t render.Scratch
				for unit := c.from; unit < c.to; unit++ {
					if only.has(c.before + unit) {
						c.kind.Render(unit, &t, emit)
					}
				}
			})
		})
	}
	return group.Wait()
}

func unitsOf(s *render.Site) int {
	n := 0
	for _, p := range s.Kinds {
		n += p.Units
	}
	return n
}

// A unitSet has a bit for each unit of the site. nil has all units.
type unitSet []uint64

func (s unitSet) add(unit int)      { s[unit/64] |= 1 << (unit % 64) }
func (s unitSet) has(unit int) bool { return s == nil || s[unit/64]&(1<<(unit%64)) != 0 }

// hasAny reports whether it has one of the units from from to before to.
func (s unitSet) hasAny(from, to int) bool {
	for unit := from; unit < to; unit++ {
		if s.has(unit) {
			return true
		}
	}
	return false
}
