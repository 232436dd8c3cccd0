package output

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/internal/regular"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/kept"
)

// checkFolder returns the live site, or nil if there is none. A run replaces the whole folder, so
// checkFolder returns an error if the folder contains anything that is not part of a site.
func checkFolder(files afero.Fs, path string, config site.Config) (*Live, error) {
	info, err := files.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("inspect the output folder: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is a file; name a folder, or a file that ends in .tar", path)
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
		return nil, fmt.Errorf("%s is not empty and holds no site; name another folder, or empty this one", path)
	} else if err != nil {
		return nil, fmt.Errorf("inspect the output folder: %w", err)
	}
	live := openLiveFolder(files, path)
	if live != nil {
		config = live.root.Config
	}
	return live, checkEntries(files, path, config)
}

// Folders in buckets next to a site, written by fallbacks, report --publish, or publish --inputs.
var (
	refreshFolder = strings.TrimSuffix(string(site.RefreshPrefix), "/")
	reportsFolder = strings.TrimSuffix(string(site.ReportsPrefix), "/")
	inputsFolder  = strings.TrimSuffix(string(kept.Prefix), "/")
)

// bucketEntries are top-level names that only buckets have. site.Reserved lists them all, so that
// no site uses one.
var bucketEntries = []struct{ name, meaning string }{
	{refreshFolder, "refreshed data, which would be lost"},
	{reportsFolder, "reports, which would be lost"},
	{string(site.NoteKey), "the signed note of a bucket, which would be about another site"},
	{inputsFolder, "inputs of sites, which would be lost"},
	{".followpress", "the work folder of a bucket"},
}

// checkBucket returns an error if the folder is a bucket that publish writes to, which contains
// more than a site.
func checkBucket(files afero.Fs, path string) error {
	for _, entry := range bucketEntries {
		exists, err := afero.Exists(files, filepath.Join(path, entry.name))
		if err != nil {
			return fmt.Errorf("inspect the output folder: %w", err)
		}
		if exists {
			return fmt.Errorf("%s holds %s, %s; generate into another folder, and update this one with followpress publish --dest %s, which keeps it",
				path, entry.name, entry.meaning, FileURL(path))
		}
	}
	return nil
}

// FileURL returns the URL of a folder, for publish --dest.
func FileURL(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

// checkEntries returns an error for a file or folder that does not belong to a site: at the top,
// along the base path, and in the API's folder.
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
				return fmt.Errorf("%s holds %s, which is not part of a site and would be lost; move it away", dir, entry.Name())
			}
		}
	}
	return nil
}

func openLiveFolder(files afero.Fs, path string) *Live {
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
