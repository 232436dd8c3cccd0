package output

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
)

// A Destination is a folder or tar file that a run replaces.
type Destination interface {
	// Check returns the live site, or nil if there is none. It returns an error if the output must
	// not be replaced.
	Check(ctx context.Context) (live *Live, err error)
	// Look returns an output that finds objects without a file in the live site.
	Look() *Look
	// Create returns an output at the path next. The caller must call end, even after a failure.
	Create(next string, p *Plan, asOf string) (out Output, end func() error, err error)
}

// FolderAt returns a folder with one file per object. config is that of the next site.
func FolderAt(files afero.Fs, path string, config site.Config) Destination {
	return &folderDestination{files: files, path: path, config: config}
}

// To returns an output that writes one file per object at the root of a file system.
func To(files afero.Fs) Output { return &folderOutput{files: files, path: "/"} }

// A folderOutput is an output of one file per object.
type folderOutput struct {
	files afero.Fs
	path  string // path of the new site
	live  string // path of the live site; "" if there is none
	plan  *Plan  // selects the live objects to keep; nil for none
}

type folderDestination struct {
	files  afero.Fs
	path   string
	config site.Config // configuration of the next site
}

func (d *folderDestination) Check(context.Context) (*Live, error) {
	return checkFolder(d.files, d.path, d.config)
}

func (d *folderDestination) Create(next string, p *Plan, _ string) (Output, func() error, error) {
	return &folderOutput{files: d.files, path: next, live: d.path, plan: p}, func() error { return nil }, nil
}

// Look returns an output that compares the files of the live site with rendered objects.
func (d *folderDestination) Look() *Look {
	return &Look{files: d.files, path: d.path, seed: maphash.MakeSeed(), missing: map[uint64]struct{}{}}
}

// A folderBatch writes files.
type folderBatch struct {
	*folderOutput
	made madeFolders
}

func (f *folderOutput) Begin() Batch       { return &folderBatch{folderOutput: f} }
func (f *folderOutput) Finish(Batch) error { return nil }

func (b *folderBatch) Put(entry site.Entry, body []byte) error {
	name := filepath.Join(b.path, filepath.FromSlash(string(entry.Key)))
	if err := b.made.make(b.files, filepath.Dir(name)); err != nil {
		return err
	}
	if b.plan != nil && b.plan.isUnchanged(entry.Key) && b.link(entry.Key, name) {
		return nil
	}
	err := writeFile(b.files, name, body)
	if errors.Is(err, fs.ErrExist) { // the folder was empty: APFS, NTFS and others fold letter case or normalize Unicode
		return fmt.Errorf("the file system of the output treats another name as equal to %s; use a .tar file, or a folder on a case-sensitive file system", name)
	}
	return err
}

// link makes the new file a hard link to the live site's file. It returns false on failure; then
// the file must be written.
func (b *folderBatch) link(key site.Key, name string) bool {
	if _, ok := b.files.(*afero.OsFs); !ok {
		return false // afero has no hard links
	}
	return os.Link(filepath.Join(b.live, filepath.FromSlash(string(key))), name) == nil
}
