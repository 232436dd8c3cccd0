package chain

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	json "github.com/goccy/go-json"
)

// A File is the valid part of a file of a state.
type File struct {
	Name string // path below the folder, with slashes
	Size int64
	Body []byte // the whole file if it may be replaced at any time; else nil
}

// A Frozen state describes a folder at one time, for copying it.
type Frozen struct {
	Files  []File            // in copy order, so that no file refers to one not yet copied
	Blocks map[uint64]uint64 // last block read, by chain ID

	dir  string
	tops map[string]point
}

// Freeze describes the folder of a state, even while another goroutine or process reads blocks into
// it. Besides the files of chains it includes those of profiles and badges, which must not change
// until the copy is complete. A copy of logs is valid only if Same reports so afterwards.
func Freeze(dir string) (*Frozen, error) {
	f := &Frozen{Blocks: map[uint64]uint64{}, dir: dir, tops: map[string]point{}}
	for _, name := range []string{"profiles/store.db", "badges/store.db"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, err
		}
		f.Files = append(f.Files, File{Name: name, Size: info.Size()})
	}
	chains, err := os.ReadDir(filepath.Join(dir, chainsFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, c := range chains {
		id, err := strconv.ParseUint(c.Name(), 10, 64)
		if err != nil {
			continue // not a chain
		}
		folder := chainsFolder + "/" + c.Name()
		text, top, err := readTop(filepath.Join(dir, folder))
		if err != nil {
			return nil, err
		}
		if top == nil {
			continue // nothing was read yet
		}
		f.Blocks[id], f.tops[folder] = top.Block, *top
		f.Files = append(f.Files,
			File{Name: folder + "/" + logsFile, Size: top.Size},
			File{Name: folder + "/" + checkpointFile, Size: int64(len(text)), Body: text})
	}
	return f, nil
}

// Same reports whether everything that Freeze described is still part of the state. It is not after
// a reorganization, or if blocks were read again.
func (f *Frozen) Same() (bool, error) {
	for folder, was := range f.tops {
		_, top, err := readTop(filepath.Join(f.dir, folder), was)
		if err != nil || top == nil {
			return false, err
		}
	}
	return true, nil
}

// readTop reads the checkpoint of a chain. It returns its last point or, if among has some of its
// points, the last such point; nil for none.
func readTop(dir string, among ...point) ([]byte, *point, error) {
	text, err := os.ReadFile(filepath.Join(dir, checkpointFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	var check checkpoint
	if err := json.Unmarshal(text, &check); err != nil {
		return nil, nil, fmt.Errorf("%s: the checkpoint is not JSON: %w", dir, err)
	}
	for _, p := range slices.Backward(check.Points) {
		if len(among) == 0 || slices.Contains(among, p) {
			return text, &p, nil
		}
	}
	return text, nil, nil
}
