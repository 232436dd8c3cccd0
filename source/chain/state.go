package chain

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain/provider"
)

// ErrBusy means that another run uses the same folder.
var ErrBusy = errors.New("in use by another run")

// A lastingError is an error that waiting does not fix.
type lastingError struct{ error }

func (e *lastingError) Unwrap() error { return e.error }

func lasting(format string, args ...any) error { return &lastingError{fmt.Errorf(format, args...)} }

// Lasts reports whether an error is about the state itself or about a node of another chain, so
// that the same call will fail again whatever the nodes do.
func Lasts(err error) bool {
	return errors.As(err, new(*lastingError)) || provider.IsOtherChain(err)
}

// A State is a folder with the events read from the chains of a deployment. Only one process, and
// one goroutine in it, may use it at a time.
type State struct {
	root       *os.Root
	deployment *source.Deployment
	lock       *os.File
}

// Open opens a folder, creating it if missing, and locks it until Close. The error wraps ErrBusy if
// it is locked. Open rejects the folder of a snapshot or a site, and leaves it unchanged.
func Open(dir string, d *source.Deployment) (*State, error) {
	if err := isOther(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	lock, err := folder{root, "."}.open("lock", os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	s := &State{root, d, lock}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrBusy
		}
		return nil, errors.Join(fmt.Errorf("lock the state %s: %w", dir, err), s.Close())
	}
	if err := s.held(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// isOther returns an error if a folder is not a state but a snapshot or a site.
func isOther(dir string) error {
	if IsState(dir) {
		return nil
	}
	for name, what := range map[string]string{"meta.json": "a snapshot", string(site.RootKey): "a site"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return lasting("%s is no state but the folder of %s (it has %s): name a folder of its own for the state", dir, what, name)
		}
	}
	return nil
}

// held returns an error if the folder is no longer the locked one. During a long pause of the
// process, the folder may have been replaced by one that another run has locked.
func (s *State) held() error {
	locked, err := s.lock.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(s.lock.Name())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !os.SameFile(locked, there) {
		return lasting("the state %s was removed or replaced during the run", s.root.Name())
	}
	return nil
}

// IsState reports whether a Sync of any deployment has begun to fill a folder.
func IsState(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, chainsFolder))
	return err == nil && info.IsDir()
}

const chainsFolder = "chains"

// HasRead reports whether a Sync has read a block of any chain. A folder for which no node ever
// answered is a state (IsState) without blocks.
func (s *State) HasRead() (bool, error) {
	for _, c := range s.deployment.Chains {
		check, err := readCheckpoint(s.folder(c), c)
		if err != nil {
			return false, err
		}
		if len(check.Points) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// Close unlocks the folder.
func (s *State) Close() error { return errors.Join(s.lock.Close(), s.root.Close()) }

func (s *State) folder(c source.Chain) folder {
	return folder{s.root, filepath.Join(chainsFolder, strconv.FormatUint(c.ID, 10))}
}

// Events returns the events of all chains, one chain after the other. It may be called repeatedly,
// and takes little memory for any number of events. It fails if the last Sync of a chain did not
// complete.
func (s *State) Events() source.Events {
	return s.events(func(c source.Chain, yield func(source.Event) bool) (more bool, err error) {
		top, err := s.complete(c)
		if err != nil {
			return false, err
		}
		return read(s.folder(c), c, point{}, top, yield)
	})
}

// events yields what read passes to yield for each chain, until read returns false or an error.
func (s *State) events(read func(c source.Chain, yield func(source.Event) bool) (more bool, err error)) source.Events {
	return func(yield func(source.Event, error) bool) {
		for _, c := range s.deployment.Chains {
			more, err := read(c, func(e source.Event) bool { return yield(e, nil) })
			if err != nil {
				yield(source.Event{}, err)
			}
			if !more || err != nil {
				return
			}
		}
	}
}

// AsOf returns the time of the last block read, the earliest over all chains.
func (s *State) AsOf() (time.Time, error) {
	var times []int64
	for _, c := range s.deployment.Chains {
		top, err := s.complete(c)
		if err != nil {
			return time.Time{}, err
		}
		times = append(times, top.Time)
	}
	return time.Unix(slices.Min(times), 0).UTC(), nil
}

// Chains returns the block up to which each chain was read, for reproducing the snapshot. The
// blocks alone determine the result, not how the State got there. Chains fails if the last Sync of
// a chain did not complete.
func (s *State) Chains() ([]site.ChainInput, error) {
	var all []site.ChainInput
	for _, c := range s.deployment.Chains {
		top, err := s.complete(c)
		if err != nil {
			return nil, err
		}
		all = append(all, site.ChainInput{ChainID: c.ID, Block: top.Block, Hash: top.Hash.Hex(), Events: top.Events})
	}
	return all, nil
}

// complete returns the position up to which a completed Sync read a chain.
func (s *State) complete(c source.Chain) (point, error) {
	check, err := readCheckpoint(s.folder(c), c)
	switch {
	case err != nil:
		return point{}, err
	case check.Suspect != "":
		return point{}, fmt.Errorf("the state of chain %d (%s) lacks logs: %s", c.ID, c.Name, check.Suspect)
	case len(check.Points) == 0 || check.Settled < len(check.Points):
		return point{}, fmt.Errorf("chain %d (%s) was not read to the end: run again", c.ID, c.Name)
	}
	return check.Points[len(check.Points)-1], nil
}

// A Position is the position of a State on all chains. It is valid for the same State only.
type Position struct {
	points map[uint64]point // by chain
}

// Block returns the newest block of a chain.
func (p Position) Block(chain uint64) provider.Block {
	at := p.points[chain]
	return provider.Block{Number: at.Block, Hash: at.Hash, Time: at.Time}
}

// Position returns the current position. It fails if the last Sync of a chain did not complete.
func (s *State) Position() (Position, error) {
	p := Position{map[uint64]point{}}
	for _, c := range s.deployment.Chains {
		top, err := s.complete(c)
		if err != nil {
			return Position{}, err
		}
		p.points[c.ID] = top
	}
	return p, nil
}

// Verified returns the newest block of a chain up to which the contracts, or a quorum of hosts,
// have confirmed the events; 0 for none.
func (s *State) Verified(chain uint64) (uint64, error) {
	for _, c := range s.deployment.Chains {
		if c.ID != chain {
			continue
		}
		check, err := readCheckpoint(s.folder(c), c)
		if err != nil || check.Verified == 0 {
			return 0, err
		}
		return check.Points[check.Verified-1].Block, nil
	}
	return 0, fmt.Errorf("the deployment has no chain %d", chain)
}

// Between yields the events after from up to to, chain by chain, like Events. The State must not
// have forgotten its events at from.
func (s *State) Between(from, to Position) source.Events {
	return s.events(func(c source.Chain, yield func(source.Event) bool) (more bool, err error) {
		return read(s.folder(c), c, from.points[c.ID], to.points[c.ID], yield)
	})
}

// Extends reports whether a State at p may still have its events at an earlier Position. It cannot
// detect events that were forgotten and read again; the Report of Sync does.
func (p Position) Extends(earlier Position) bool {
	for id, was := range earlier.points {
		is := p.points[id]
		if is.Block < was.Block || is.Size < was.Size || is.Events < was.Events || is.Block == was.Block && is.Hash != was.Hash {
			return false
		}
	}
	return true
}
