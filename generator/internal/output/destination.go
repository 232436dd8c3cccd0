package output

import (
	"context"

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

// TarAt returns a tar file.
func TarAt(files afero.Fs, path string) Destination { return &tarDestination{files: files, path: path} }

// To returns an output that writes one file per object at the root of a file system.
func To(files afero.Fs) Output { return &folderOutput{files: files, path: "/"} }
