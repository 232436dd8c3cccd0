package output

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/internal/publicdir"
)

// madeFolders caches the last folders made: successive objects are often in the same few.
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
