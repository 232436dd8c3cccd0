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

// A File is a file of a state, as much of it as counts.
type File struct {
	Name string // below the folder, with slashes
	Size int64
	Body []byte // all of it, for a file that may be replaced at any time; else nil
}

// A Frozen state is what a folder had at one time, for a copy of it.
type Frozen struct {
	Files  []File            // in the order in which a copy must get them, so that none names what is not there
	Blocks map[uint64]uint64 // the last block that was read, by the id of the chain

	dir  string
	tops map[string]point
}

// Freeze says what the folder of a state has, also while another goroutine or process reads blocks into
// it. Of the files beside those of chains, it takes those of profiles and badges, which nobody may write
// until the copy is made. Whatever is read of logs is part of the copy only if Same says so afterwards.
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
			continue // nothing of ours
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

// Same reports whether all that Freeze has named is still part of the state: what was read of logs since
// then is what it was. It is not after a reorganisation, or if blocks were read again.
func (f *Frozen) Same() (bool, error) {
	for folder, was := range f.tops {
		_, top, err := readTop(filepath.Join(f.dir, folder), was)
		if err != nil || top == nil {
			return false, err
		}
	}
	return true, nil
}

// readTop reads the checkpoint of a chain, and returns its last point, or one of those that are asked for.
// The point is nil if there is none.
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
