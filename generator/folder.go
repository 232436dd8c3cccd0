package generator

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/internal/publicdir"
	"github.com/followpress/followpress/internal/regular"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/kept"
	"github.com/followpress/followpress/site/shards"
)

// A folder is an output of one file per object.
type folder struct {
	files afero.Fs
	path  string // of the new site
	live  string // path of the live site; "" if there is none
	plan  *plan  // says which of its objects are kept; nil for none
}

type folderDestination struct {
	files  afero.Fs
	path   string
	config site.Config // of the next site
}

func (d *folderDestination) check(context.Context) (*liveSite, error) {
	return checkFolder(d.files, d.path, d.config)
}

func (d *folderDestination) checkNames(ctx context.Context, next string, names []render.LookupName) error {
	return checkNames(ctx, d.files, next, names)
}

func (d *folderDestination) create(next string, p *plan, _ string) (output, func() error, error) {
	return &folder{files: d.files, path: next, live: d.path, plan: p}, func() error { return nil }, nil
}

// look returns an output that compares the files of the live site with what is rendered.
func (d *folderDestination) look() *look {
	return &look{files: d.files, path: d.path, seed: maphash.MakeSeed(), missing: map[uint64]struct{}{}}
}

// A look is an output that finds which objects the live site has no file of. A file of another size, and what is no
// file, is none. What a file of the right size holds is not looked at.
type look struct {
	files   afero.Fs
	path    string // "" looks at nothing
	seed    maphash.Seed
	mu      sync.Mutex
	missing map[uint64]struct{} // hashes of keys
}

func (l *look) begin() batch       { return l }
func (l *look) finish(batch) error { return nil }

func (l *look) put(entry site.Entry, _ []byte) error {
	if l.path == "" {
		return nil
	}
	name := filepath.Join(l.path, filepath.FromSlash(string(entry.Key)))
	info, err := lstat(l.files, name)
	if err == nil && info.Mode().IsRegular() && info.Size() == entry.Size {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.missing[maphash.String(l.seed, string(entry.Key))] = struct{}{}
	return nil
}

// lstat is the Lstat of file systems that have links, and the Stat of others.
func lstat(files afero.Fs, name string) (fs.FileInfo, error) {
	if l, ok := files.(afero.Lstater); ok {
		info, _, err := l.LstatIfPossible(name)
		return info, err
	}
	return files.Stat(name)
}

// A folderBatch writes files.
type folderBatch struct {
	*folder
	made madeFolders
}

func (f *folder) begin() batch       { return &folderBatch{folder: f} }
func (f *folder) finish(batch) error { return nil }

func (b *folderBatch) put(entry site.Entry, body []byte) error {
	name := filepath.Join(b.path, filepath.FromSlash(string(entry.Key)))
	if err := b.made.make(b.files, filepath.Dir(name)); err != nil {
		return err
	}
	if b.plan != nil && b.plan.isUnchanged(entry.Key) && b.link(entry.Key, name) {
		return nil
	}
	return writeFile(b.files, name, body)
}

// link makes the new file a hard link to that of the live site. It returns false if that fails,
// and the file must be written.
func (b *folderBatch) link(key site.Key, name string) bool {
	if _, ok := b.files.(*afero.OsFs); !ok {
		return false // afero has no hard links
	}
	return os.Link(filepath.Join(b.live, filepath.FromSlash(string(key))), name) == nil
}

// madeFolders are the last folders that were made: successive objects are often in the same few.
type madeFolders [4]string

func (m *madeFolders) make(files afero.Fs, dir string) error {
	if slices.Contains(m[:], dir) {
		return nil
	}
	if err := makeFolder(files, dir); err != nil {
		return err
	}
	copy(m[1:], m[:])
	m[0] = dir
	return nil
}

func makeFolder(files afero.Fs, dir string) error {
	if err := publicdir.Make(files, dir); err != nil {
		return fmt.Errorf("create a folder: %w", err)
	}
	return nil
}

func writeFile(files afero.Fs, name string, body []byte) error {
	file, err := publicdir.Create(files, name)
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	_, err = file.Write(body)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// A liveSite is the site at the output before the run.
type liveSite struct {
	root     site.Root
	rootBody []byte
	read     func(site.Key) ([]byte, error)
	manifest *shards.Reader // nil until openManifest
}

// errManifest says that the manifest of the live site cannot be read.
var errManifest = errors.New("unreadable manifest")

// openManifest opens the manifest, if it is not open yet.
func (l *liveSite) openManifest(ctx context.Context) (err error) {
	if l.manifest != nil {
		return nil
	}
	l.manifest, err = shards.Open(ctx, &l.root, func(ctx context.Context, key site.Key) ([]byte, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return l.read(key)
	})
	return unreadable(ctx, err)
}

// shard returns the entries of a shard of the manifest.
func (l *liveSite) shard(ctx context.Context, name string) ([]site.Entry, error) {
	s, err := l.manifest.Shard(ctx, name)
	return s.Objects, unreadable(ctx, err)
}

func unreadable(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", errManifest, err)
}

// isResharded reports whether the manifest of the site has other shards than a new one.
func (l *liveSite) isResharded(x *index) bool {
	return l.root.ShardDigits != x.root.ShardDigits
}

// addedOrAltered says how an object of the manifest differs that the new site has.
func (l *liveSite) addedOrAltered(name string) site.Reason {
	if shards.Has(&l.root, name) {
		return site.Altered
	}
	return site.Added
}

// openLive reads the root of the live site. It returns nil if there is none that this version can
// read.
func openLive(read func(site.Key) ([]byte, error)) *liveSite {
	body, err := read(site.RootKey)
	if err != nil {
		return nil
	}
	root, err := site.ParseRoot(body)
	if err != nil {
		return nil
	}
	return &liveSite{root: root, rootBody: body, read: read}
}

func openLiveFolder(files afero.Fs, path string) *liveSite {
	return openLive(func(key site.Key) ([]byte, error) {
		file, err := regular.Open(files, filepath.Join(path, filepath.FromSlash(string(key))))
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: %w", err, site.ErrNotFound)
		} else if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(file)
		return body, errors.Join(err, file.Close())
	})
}

// checkFolder returns the live site, or nil if there is none. A run replaces the whole folder, so it
// is an error if the folder contains anything that is not part of a site.
func checkFolder(files afero.Fs, path string, config site.Config) (*liveSite, error) {
	info, err := files.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("inspect the output folder: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is a file: name a folder, or a file that ends in .tar", path)
	}
	entries, err := afero.ReadDir(files, path)
	if err != nil {
		return nil, fmt.Errorf("inspect the output folder: %w", err)
	}
	if len(entries) == 0 {
		return nil, nil
	}
	root, err := files.Stat(filepath.Join(path, string(site.RootKey)))
	if errors.Is(err, fs.ErrNotExist) || err == nil && !root.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not empty and holds no site: name another folder, or empty this one", path)
	} else if err != nil {
		return nil, fmt.Errorf("inspect the output folder: %w", err)
	}
	live := openLiveFolder(files, path)
	if live != nil {
		config = live.root.Config
	}
	return live, checkEntries(files, path, config)
}

// Folders that buckets have beside a site: where a fallback, report --publish and publish --inputs write, or once wrote.
var (
	refreshFolder = strings.TrimSuffix(string(site.RefreshPrefix), "/")
	reportsFolder = strings.TrimSuffix(string(site.ReportsPrefix), "/")
	logFolder     = strings.TrimSuffix(string(site.FormerLogPrefix), "/")
	inputsFolder  = strings.TrimSuffix(string(kept.Prefix), "/")
)

// bucketEntries are what only buckets have at their top. site.Reserved lists them all, so that no site has one.
var bucketEntries = []struct{ name, meaning string }{
	{refreshFolder, "refreshed data, which would be lost"},
	{reportsFolder, "reports, which would be lost"},
	{logFolder, "a log of events of an earlier version, which would be lost"},
	{string(site.NoteKey), "the signed note of a bucket, which would be about another site"},
	{inputsFolder, "what sites were made of, which would be lost"},
	{".followpress", "the work folder of a bucket"},
}

// checkBucket returns an error if the folder is a bucket that publish writes to, which contains more
// than a site.
func checkBucket(files afero.Fs, path string) error {
	for _, entry := range bucketEntries {
		exists, err := afero.Exists(files, filepath.Join(path, entry.name))
		if err != nil {
			return fmt.Errorf("inspect the output folder: %w", err)
		}
		if exists {
			return fmt.Errorf("%s holds %s, %s: generate into another folder, and update this one with followpress publish --dest %s, which keeps it",
				path, entry.name, entry.meaning, fileURL(path))
		}
	}
	return nil
}

// fileURL is the URL of a folder, as for publish --dest.
func fileURL(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

// checkEntries returns an error for a file or folder that does not belong to a site: at the top, on
// the way along the base path, and in the API's folder.
func checkEntries(files afero.Fs, path string, config site.Config) error {
	if err := checkBucket(files, path); err != nil {
		return err
	}
	parts := strings.Split(config.BasePath, "/")
	for level := 0; level <= len(parts); level++ {
		var known []string
		switch level {
		case 0:
			known = config.TopLevel()
		case len(parts):
			known = site.APIFolders()
		default:
			known = parts[level : level+1]
		}
		dir := filepath.Join(path, filepath.Join(parts[:level]...))
		entries, err := afero.ReadDir(files, dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a damaged site may be replaced
		} else if err != nil {
			return fmt.Errorf("inspect the output folder: %w", err)
		}
		for _, entry := range entries {
			if !slices.Contains(known, entry.Name()) {
				return fmt.Errorf("%s holds %s, which is not part of a site and would be lost: move it away", dir, entry.Name())
			}
		}
	}
	return nil
}
