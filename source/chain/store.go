package chain

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"github.com/ethereum/go-ethereum/common"
	"github.com/goccy/go-json"
	"golang.org/x/sys/unix"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain/provider"
)

// A point is a position in a chain.
type point struct {
	Block  uint64      `json:"block"` // last block read
	Hash   common.Hash `json:"hash"`
	Time   int64       `json:"time"`   // time of the block, in seconds since the Unix epoch
	Size   int64       `json:"size"`   // valid bytes of logs
	Events uint64      `json:"events"` // events in logs
	Tokens int64       `json:"tokens"` // tokens minted minus tokens burnt
}

// An anchor is a block that must stay in the chain while it is read.
type anchor struct {
	Block uint64      `json:"block"`
	Hash  common.Hash `json:"hash"`
}

// A checkpoint describes the folder of a chain.
type checkpoint struct {
	Version   int      `json:"version"`
	Contracts []string `json:"contracts"` // made by contractTexts
	Finality  string   `json:"finality"`  // finality of the blocks read; "" before the first run
	// Origin is the first block. A node with another first block serves another chain.
	Origin *anchor `json:"origin"`
	Points []point `json:"points"` // older points are farther apart
	// Settled is the number of first points that were all part of the chain at one time. The others
	// are from an incomplete run, during which the chain may have been reorganized.
	Settled int `json:"settled"`
	// Anchors are blocks at or before the head, latest first, taken before that run read anything.
	// If one of them is still part of the chain, so is everything read up to it.
	Anchors []anchor `json:"anchors,omitempty"`
	// Verified is the number of first points up to which contracts did not contradict the logs, or
	// several hosts had the same logs. After a doubt, everything after them is read again.
	Verified int  `json:"verified"`
	Counted  bool `json:"counted"` // contracts confirmed the last of them
	// Quorum is the minimum number of hosts that had the logs of the other points.
	Quorum    int    `json:"quorum,omitempty"`
	Unchecked bool   `json:"unchecked,omitempty"` // it is unknown whether logs are missing between the other points
	Suspect   string `json:"suspect,omitempty"`   // why the other points must lack logs; "" for no suspicion
}

const (
	version = 2
	// unverified is the version before checkpoints recorded the verified points.
	unverified = 1
	maxPoints  = 64
)

// A folder is a folder inside a state, as it was when the state was opened: if the state is
// replaced, the replacement is neither read nor changed.
type folder struct {
	root *os.Root
	name string // path below root
}

// Files of a chain.
const (
	logsFile       = "logs"
	checkpointFile = "checkpoint.json"
)

func (f folder) String() string { return filepath.Join(f.root.Name(), f.name) }

func (f folder) below(name string) string { return filepath.Join(f.name, name) }

func (f folder) open(name string, flag int) (*os.File, error) {
	file, err := f.root.OpenFile(f.below(name), flag, 0o644)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.root.Name(), err) // err has the path below root
	}
	return file, nil
}

// A store is the folder of a chain. One goroutine may use it at a time.
type store struct {
	folder    folder
	chain     source.Chain
	contracts []site.Address
	numbers   map[site.Address]int // numbers of contracts
	noSync    bool
	held      func() error // returns an error if the run no longer holds the folder; nil for no check

	check   checkpoint
	file    *os.File // the open logs file
	batch   batch
	size    int64  // bytes of logs, including those after the checkpoint
	events  uint64 // events in logs and in batch
	tokens  int64
	written *point // position of logs and batch, if the checkpoint is behind
}

// openStore opens the folder of a chain, creating it if missing. It forgets blocks from reread on,
// unless reread is nil.
func openStore(in folder, c source.Chain, reread *uint64, noSync bool) (s *store, err error) {
	s = &store{folder: in, chain: c, contracts: newDecoder(c).addresses(), numbers: map[site.Address]int{}, noSync: noSync}
	for i, a := range s.contracts {
		s.numbers[a] = i
	}
	if err := in.root.MkdirAll(in.name, 0o755); err != nil {
		return nil, fmt.Errorf("%s: %w", in.root.Name(), err)
	}
	if s.check, err = readCheckpoint(in, c); err != nil {
		return nil, err
	}
	if s.file, err = in.open(logsFile, os.O_CREATE|os.O_RDWR); err != nil {
		return nil, err
	}
	switch {
	case reread != nil:
		n := s.pointsBefore(*reread)
		if s.check.Suspect = ""; n == 0 {
			s.check.Origin = nil
		}
		err = s.keep(n)
	case s.check.Suspect != "":
		s.check.Suspect = ""
		err = s.keep(s.check.Verified)
	default:
		err = s.rewind()
	}
	if err != nil {
		return nil, errors.Join(err, s.file.Close())
	}
	return s, nil
}

// readCheckpoint reads the checkpoint of a chain. A missing one has no points.
func readCheckpoint(in folder, c source.Chain) (checkpoint, error) {
	fresh := checkpoint{Version: version, Contracts: contractTexts(c)}
	text, err := in.root.ReadFile(in.below(checkpointFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	} else if err != nil {
		return checkpoint{}, fmt.Errorf("%s: %w", in.root.Name(), err)
	}
	var check checkpoint
	if err := json.Unmarshal(text, &check); err != nil {
		return checkpoint{}, unusable(in, c, fmt.Sprintf("has a checkpoint that is not JSON (%v)", err))
	}
	if check.Version == unverified {
		check.Version, check.Unchecked = version, len(check.Points) > 0
	}
	switch {
	case check.Version > version:
		return checkpoint{}, lasting("%s has format %d, this version reads %d; update followpress", in, check.Version, version)
	case check.Version != version:
		return checkpoint{}, unusable(in, c, fmt.Sprintf("was written by another version of the program: it is format %d, want %d", check.Version, version))
	case !slices.Equal(check.Contracts, fresh.Contracts):
		return checkpoint{}, unusable(in, c, fmt.Sprintf("was read for other contracts: %q, now %q", check.Contracts, fresh.Contracts))
	case !check.valid():
		return checkpoint{}, unusable(in, c, "has a checkpoint that contradicts itself")
	}
	return check, nil
}

// unusable returns the error for a folder that only the operator may remove.
func unusable(in folder, c source.Chain, why string) error {
	return lasting("%s %s: use another --state, or remove that folder to read chain %d (%s) again", in, why, c.ID, c.Name)
}

func (c *checkpoint) valid() bool {
	if c.Settled < 0 || c.Settled > len(c.Points) || c.Verified < 0 || c.Verified > len(c.Points) || len(c.Points) > 0 && c.Origin == nil {
		return false
	}
	var before point
	for i, p := range c.Points {
		if i > 0 && p.Block <= before.Block || p.Size < before.Size || p.Events < before.Events {
			return false
		}
		before = p
	}
	return true
}

// contractTexts describes the contracts of a chain; the order of its records contracts does not
// matter.
func contractTexts(c source.Chain) []string {
	text := func(role string, s source.Start) string {
		return fmt.Sprintf("%d %s %s from %d", c.ID, role, s.Address, s.FirstBlock)
	}
	var texts []string
	if c.Registry != nil {
		texts = append(texts, text("registry", *c.Registry))
	}
	if c.Accounts != nil {
		texts = append(texts, text("account_metadata", *c.Accounts))
	}
	for _, r := range c.Records {
		texts = append(texts, text("records", r))
	}
	slices.Sort(texts)
	return texts
}

func (s *store) first() uint64 { return firstBlock(s.chain) }

// firstBlock returns the first block that may have events of a chain.
func firstBlock(c source.Chain) uint64 {
	var blocks []uint64
	if c.Registry != nil {
		blocks = append(blocks, c.Registry.FirstBlock)
	}
	if c.Accounts != nil {
		blocks = append(blocks, c.Accounts.FirstBlock)
	}
	for _, r := range c.Records {
		blocks = append(blocks, r.FirstBlock)
	}
	return slices.Min(blocks)
}

// next returns the first block not read yet.
func (s *store) next() uint64 {
	if top := s.top(); top != nil {
		return top.Block + 1
	}
	return s.first()
}

// top returns the last point of the checkpoint; nil for none.
func (s *store) top() *point {
	if len(s.check.Points) == 0 {
		return nil
	}
	return &s.check.Points[len(s.check.Points)-1]
}

func (s *store) pointsBefore(block uint64) int {
	return sort.Search(len(s.check.Points), func(i int) bool { return s.check.Points[i].Block >= block })
}

// append adds the events of the blocks after those read, up to block last. After an error the store
// must be reopened.
func (s *store) append(events []source.Event, tokens int64, last provider.Block) error {
	for i := range events {
		s.batch.add(events[i], s.numbers[events[i].Contract.Address])
		if len(s.batch.bytes) < batchBytes {
			continue
		}
		if err := s.flush(); err != nil {
			s.written = nil // commit must not mix these events with those of the previous part
			return err
		}
	}
	s.events += uint64(len(events))
	s.tokens += tokens
	s.written = &point{Block: last.Number, Hash: last.Hash, Time: last.Time}
	return nil
}

func (s *store) flush() error {
	bytes := s.batch.finish()
	_, err := s.file.WriteAt(bytes, s.size)
	s.size += int64(len(bytes))
	return err
}

// commit makes the appended events durable.
func (s *store) commit() error {
	if s.written == nil {
		return nil
	}
	if err := errors.Join(s.flush(), s.sync(s.file)); err != nil {
		s.written = nil // after a failed sync, a later one may wrongly succeed
		return err
	}
	s.written.Size, s.written.Events, s.written.Tokens = s.size, s.events, s.tokens
	s.check.add(*s.written)
	s.written = nil
	return s.save()
}

// add adds a point. If there are many, it removes every second point of the older half, except the
// first and the last verified one.
func (c *checkpoint) add(p point) {
	c.Points = append(c.Points, p)
	if len(c.Points) <= maxPoints {
		return
	}
	kept, settled, verified := c.Points[:0], 0, 0
	for i, p := range c.Points {
		if i%2 == 1 && i < maxPoints/2 && i != c.Verified-1 {
			continue
		}
		kept = append(kept, p)
		if i < c.Settled {
			settled++
		}
		if i < c.Verified {
			verified++
		}
	}
	c.Points, c.Settled, c.Verified = kept, settled, verified
}

// keep forgets all points but the first n, and everything read after them.
func (s *store) keep(n int) error {
	s.check.Points = s.check.Points[:n]
	s.check.Settled, s.check.Verified = min(s.check.Settled, n), min(s.check.Verified, n)
	if s.check.Settled == n {
		s.check.Anchors = nil
	}
	return errors.Join(s.save(), s.rewind())
}

// verified reports whether all points are verified.
func (s *store) verified() bool { return s.check.Verified == len(s.check.Points) }

// verify marks all points as verified.
func (s *store) verify(counted bool) error {
	s.check.Verified, s.check.Counted, s.check.Unchecked = len(s.check.Points), counted, false
	return s.save()
}

// begin records the number of hosts that have the logs of all coming points.
func (s *store) begin(quorum int) {
	if s.verified() {
		s.check.Quorum, s.check.Unchecked = quorum, false
	} else {
		s.check.Quorum = min(s.check.Quorum, quorum)
	}
}

// rewind truncates logs to the checkpoint.
func (s *store) rewind() error {
	s.size, s.events, s.tokens, s.written = 0, 0, 0, nil
	s.batch.finish()
	if top := s.top(); top != nil {
		s.size, s.events, s.tokens = top.Size, top.Events, top.Tokens
	}
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() < s.size {
		return damaged(s.folder, s.chain, fmt.Errorf("%w: it has %d bytes, want %d", errDamaged, info.Size(), s.size))
	}
	return s.file.Truncate(s.size)
}

func damaged(in folder, c source.Chain, err error) error {
	return lasting("%s: %w; read chain %d (%s) again with --reread %d", filepath.Join(in.String(), logsFile), err, c.ID, c.Name, c.ID)
}

func (s *store) save() (err error) {
	text, err := json.MarshalIndent(s.check, "", " ")
	if err != nil {
		return err
	}
	if s.held != nil {
		if err := s.held(); err != nil {
			return err
		}
	}
	const fresh = checkpointFile + ".new"
	file, err := s.folder.open(fresh, os.O_CREATE|os.O_TRUNC|os.O_WRONLY)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	if err = errors.Join(err, s.sync(file), file.Close()); err != nil {
		return err
	}
	if err := s.folder.root.Rename(s.folder.below(fresh), s.folder.below(checkpointFile)); err != nil {
		return err
	}
	dir, err := s.folder.open(".", os.O_RDONLY)
	if err != nil {
		return err
	}
	return errors.Join(s.sync(dir), dir.Close())
}

func (s *store) close() error { return s.file.Close() }

// sync makes a file, or the names in a folder, durable.
func (s *store) sync(file *os.File) error {
	if s.noSync {
		return nil
	}
	err := file.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		return nil // the file system has no fsync, like some network file systems
	}
	return err
}

// read calls yield with each event of a chain between two points, in order, until yield returns false.
func read(in folder, c source.Chain, from, to point, yield func(source.Event) bool) (more bool, err error) {
	file, err := in.open(logsFile, os.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Seek(from.Size, io.SeekStart); err != nil {
		return false, err
	}
	r := &reader{r: bufio.NewReaderSize(file, batchBytes), left: to.Size - from.Size, chain: c.ID, contracts: newDecoder(c).addresses()}
	for events := from.Events; ; events++ {
		e, err := r.next()
		switch {
		case errors.Is(err, io.EOF) && r.left == 0:
			if events != to.Events {
				return false, damaged(in, c, fmt.Errorf("%w: it has %d events, want %d", errDamaged, events, to.Events))
			}
			return true, nil
		case errors.Is(err, errDamaged), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return false, damaged(in, c, err)
		case err != nil:
			return false, err
		case !yield(e):
			return false, nil
		}
	}
}
