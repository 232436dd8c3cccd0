package live

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	json "github.com/goccy/go-json"
	"github.com/klauspost/compress/zstd"

	"github.com/followpress/followpress/internal/retry"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source/chain"
	"github.com/followpress/followpress/storage"
)

// A copy of a state is an object that lists pieces of files by the SHA-256 of their content, and the
// pieces. Logs are append-only, so the next copy reuses most pieces.
const (
	copyKey   = site.Key("state.json")
	piecesKey = site.Key("pieces/")

	pieceBytes = 8 << 20
	// pieceGrace is the minimum age of an unreferenced piece before it is deleted: another process may
	// be about to reference it, or still read the copy that did.
	pieceGrace  = time.Hour
	copyFormat  = 1
	copyTries   = 3 // attempts while the state changes
	copyMaximum = 16 << 20
)

// A copied is the object under copyKey.
type copied struct {
	Format int               `json:"format"`
	Blocks map[uint64]uint64 `json:"blocks"` // last block read, by chain id
	Files  []copiedFile      `json:"files"`  // in the order of restoring
}

type copiedFile struct {
	Name   string   `json:"name"`
	Size   int64    `json:"size"`
	Pieces []string `json:"pieces"` // SHA-256 in hexadecimal; each of pieceBytes, except the last
}

var (
	errNoCopy    = errors.New("no copy of a state")
	errOlderCopy = errors.New("the stored copy has later blocks")
	errDamaged   = errors.New("the copy of the state is damaged")
	errVersion   = errors.New("another version of the program made the copy")
)

// copiedName matches the files a copy may contain, so a bucket cannot write elsewhere.
var copiedName = regexp.MustCompile(`^(profiles/store\.db|badges/store\.db|chains/[0-9]{1,20}/(logs|checkpoint\.json))$`)

// copies stores copies of a state in a bucket.
type copies struct {
	bucket storage.Bucket
	where  string // for messages
}

var patient = retry.Policy{Retryable: storage.Temporary, First: time.Second, Longest: 15 * time.Second, Patience: 2 * time.Minute}

func pieceKey(digest string) site.Key { return piecesKey + site.Key(digest+".zst") }

// keep puts a copy of the state in dir; nothing may write profiles or badges at the same time. Readers see
// the old copy or the new one. If the stored copy has a block that the state lacks, keep returns
// errOlderCopy and changes nothing. A copy equal to the state is not an error.
func (c *copies) keep(ctx context.Context, dir string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", c.where, err)
		}
	}()
	for range copyTries {
		var same bool
		if same, err = c.try(ctx, dir); err != nil || same {
			return err
		}
	}
	return fmt.Errorf("the state %s changed while it was copied; the next copy will include the changes", dir)
}

// try attempts keep once; same is false if the state changed during the copy.
func (c *copies) try(ctx context.Context, dir string) (same bool, err error) {
	state, err := chain.Freeze(dir)
	if err != nil {
		return false, err
	}
	before, at, err := c.current(ctx)
	switch {
	case errors.Is(err, errNoCopy):
	case errors.Is(err, errDamaged): // the new copy replaces it
	case err != nil:
		return false, err
	}
	for id, block := range before.Blocks {
		if state.Blocks[id] < block {
			return false, fmt.Errorf("%w: block %d of chain %d, this state has %d", errOlderCopy, block, id, state.Blocks[id])
		}
	}
	there, unnamed, err := c.pieces(ctx)
	if err != nil {
		return false, err
	}
	next := copied{Format: copyFormat, Blocks: state.Blocks}
	for _, f := range state.Files {
		file, err := c.put(ctx, dir, f, there)
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			if same, sameErr := state.Same(); sameErr == nil && !same {
				return false, nil
			}
		}
		if err != nil {
			return false, err
		}
		next.Files = append(next.Files, file)
		for _, digest := range file.Pieces {
			delete(unnamed, digest)
		}
	}
	if same, err = state.Same(); err != nil || !same {
		return false, err
	}
	if err := c.replace(ctx, next, at); err != nil {
		return false, err
	}
	return true, c.remove(ctx, unnamed)
}

// replace puts a copy in place of the current one.
func (c *copies) replace(ctx context.Context, next copied, was storage.Info) error {
	body, err := json.Marshal(next)
	if err != nil {
		return err
	}
	condition := storage.IfAbsent
	if was.ETag != "" {
		condition = storage.Condition(was.ETag)
	}
	err = c.write(ctx, copyKey, body, "application/json", condition)
	if errors.Is(err, storage.ErrUnsupported) {
		err = c.write(ctx, copyKey, body, "application/json", storage.Always)
	}
	if errors.Is(err, storage.ErrCondition) {
		err = fmt.Errorf("another process put a copy at the same time: %w", err)
	}
	return err
}

// current reads the stored copy and its object info, which is zero if there is none.
func (c *copies) current(ctx context.Context) (now copied, at storage.Info, err error) {
	var body []byte
	err = patient.Do(ctx, func() (err error) {
		body, at, err = c.bucket.Read(ctx, copyKey)
		return err
	})
	if errors.Is(err, storage.ErrNotFound) {
		return copied{}, storage.Info{}, errNoCopy
	} else if err != nil {
		return copied{}, storage.Info{}, err
	}
	if err := json.Unmarshal(body, &now); err != nil {
		return copied{}, at, fmt.Errorf("%w: %s is not JSON: %w", errDamaged, copyKey, err)
	}
	if now.Format > copyFormat {
		return copied{}, at, fmt.Errorf("%w: format %d, this version reads up to %d; update this one", errVersion, now.Format, copyFormat)
	}
	if now.Format != copyFormat {
		return copied{}, at, fmt.Errorf("%w: format %d, this version reads %d", errVersion, now.Format, copyFormat)
	}
	if err := now.check(); err != nil {
		return copied{}, at, fmt.Errorf("%w: %s: %w", errDamaged, copyKey, err)
	}
	return now, at, nil
}

func (c *copied) check() error {
	seen := map[string]bool{}
	for _, f := range c.Files {
		switch {
		case !copiedName.MatchString(f.Name) || seen[f.Name]:
			return fmt.Errorf("it has a file that no state has, %s", site.Quoted(f.Name))
		case f.Size < 0 || int64(len(f.Pieces)) != (f.Size+pieceBytes-1)/pieceBytes:
			return fmt.Errorf("%s has %d bytes in %d pieces", f.Name, f.Size, len(f.Pieces))
		}
		seen[f.Name] = true
		for _, p := range f.Pieces {
			if digest, err := hex.DecodeString(p); err != nil || len(digest) != sha256.Size {
				return fmt.Errorf("%s has a piece without a digest", f.Name)
			}
		}
	}
	return nil
}

// pieces lists the stored pieces; old marks pieces past pieceGrace.
func (c *copies) pieces(ctx context.Context) (there, old map[string]bool, err error) {
	err = patient.Do(ctx, func() error {
		there, old = map[string]bool{}, map[string]bool{}
		return c.bucket.List(ctx, piecesKey, "", func(i storage.Info) error {
			digest, ok := strings.CutSuffix(strings.TrimPrefix(string(i.Key), string(piecesKey)), ".zst")
			if ok {
				there[digest] = true
				old[digest] = c.bucket.Now().Sub(i.Modified) > pieceGrace
			}
			return nil
		})
	})
	return there, old, err
}

// put puts the pieces of a file that are not stored yet.
func (c *copies) put(ctx context.Context, dir string, f chain.File, there map[string]bool) (copiedFile, error) {
	out := copiedFile{Name: f.Name, Size: f.Size, Pieces: []string{}}
	var from io.Reader = bytes.NewReader(f.Body)
	if f.Body == nil {
		file, err := os.Open(filepath.Join(dir, filepath.FromSlash(f.Name)))
		if err != nil {
			return out, err
		}
		defer file.Close()
		from = file
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return out, err
	}
	defer encoder.Close()
	piece := make([]byte, min(pieceBytes, f.Size))
	for left := f.Size; left > 0; left -= int64(len(piece)) {
		piece = piece[:min(int64(len(piece)), left)]
		if _, err := io.ReadFull(from, piece); err != nil {
			return out, fmt.Errorf("read %s of the state: %w", f.Name, err)
		}
		sum := sha256.Sum256(piece)
		digest := hex.EncodeToString(sum[:])
		out.Pieces = append(out.Pieces, digest)
		if there[digest] {
			continue
		}
		if err := c.write(ctx, pieceKey(digest), encoder.EncodeAll(piece, nil), "application/zstd", storage.Always); err != nil {
			return out, err
		}
		there[digest] = true
	}
	return out, nil
}

func (c *copies) write(ctx context.Context, key site.Key, body []byte, kind string, condition storage.Condition) error {
	o := storage.Object{
		Entry: site.Entry{Key: key, Size: int64(len(body)), MD5: site.Sum(body)}, Body: body,
		ContentType: kind, CacheControl: site.NoStore,
	}
	return patient.Do(ctx, func() error {
		_, err := c.bucket.Put(ctx, o, condition)
		return err
	})
}

// remove deletes old pieces that no copy references.
func (c *copies) remove(ctx context.Context, old map[string]bool) error {
	var keys []site.Key
	for digest, isOld := range old {
		if isOld {
			keys = append(keys, pieceKey(digest))
		}
	}
	slices.Sort(keys)
	for some := range slices.Chunk(keys, 1000) {
		err := patient.Do(ctx, func() error { return c.bucket.Delete(ctx, some) })
		if errors.Is(err, storage.ErrUnsupported) && len(some) > 1 { // the server deletes one object per request
			err = nil
			for _, key := range some {
				err = errors.Join(err, patient.Do(ctx, func() error { return c.bucket.Delete(ctx, []site.Key{key}) }))
			}
		}
		if err != nil {
			return fmt.Errorf("the copy is complete, but old pieces remain: %w", err)
		}
	}
	return nil
}

// restore turns dir into the state of the copy. dir must have no chains yet and no other user; its
// profiles and badges are replaced. An interrupted restore leaves no chains either. Errors are errNoCopy,
// errDamaged with a remedy, and errors of the bucket and the disk.
func (c *copies) restore(ctx context.Context, dir string) (blocks map[uint64]uint64, err error) {
	defer func() {
		switch {
		case errors.Is(err, errDamaged):
			err = fmt.Errorf("%s: %w; to read all blocks from nodes, remove %s there", c.where, err, copyKey)
		case err != nil:
			err = fmt.Errorf("%s: %w", c.where, err)
		}
	}()
	work := filepath.Join(dir, "restoring")
	if err := os.RemoveAll(work); err != nil { // left by an interrupted restore
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	now, err := c.fetchAll(ctx, work)
	if err != nil {
		return nil, err
	}
	for _, part := range []string{"profiles", "badges", "chains"} { // chains last: they make it a state
		from, to := filepath.Join(work, part), filepath.Join(dir, part)
		if _, err := os.Stat(from); errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err := os.RemoveAll(to); err != nil {
			return nil, err
		}
		if err := os.Rename(from, to); err != nil {
			return nil, err
		}
	}
	return now.Blocks, nil
}

// fetchAll writes the files of the copy below work. It restarts if a newer copy replaces this one while
// its pieces are read.
func (c *copies) fetchAll(ctx context.Context, work string) (now copied, err error) {
	var read string
	for {
		var at storage.Info
		before := err
		if now, at, err = c.current(ctx); err != nil {
			return now, err
		}
		if at.ETag == read {
			return now, before
		}
		read = at.ETag
		for _, f := range now.Files {
			if err = c.fetch(ctx, work, f); err != nil {
				break
			}
		}
		if !errors.Is(err, errDamaged) {
			return now, err
		}
	}
}

// fetch writes a file of a copy below work.
func (c *copies) fetch(ctx context.Context, work string, f copiedFile) (err error) {
	name := filepath.Join(work, filepath.FromSlash(f.Name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(copyMaximum))
	if err != nil {
		return err
	}
	defer decoder.Close()
	left := f.Size
	for _, digest := range f.Pieces {
		var body []byte
		err := patient.Do(ctx, func() (err error) {
			body, err = c.bucket.Get(ctx, pieceKey(digest))
			return err
		})
		if errors.Is(err, storage.ErrNotFound) {
			return fmt.Errorf("%w: %s is missing", errDamaged, pieceKey(digest))
		} else if err != nil {
			return err
		}
		piece, err := decoder.DecodeAll(body, nil)
		if sum := sha256.Sum256(piece); err != nil || hex.EncodeToString(sum[:]) != digest || int64(len(piece)) != min(pieceBytes, left) {
			return fmt.Errorf("%w: %s does not match its name", errDamaged, pieceKey(digest))
		}
		if _, err := file.Write(piece); err != nil {
			return err
		}
		left -= int64(len(piece))
	}
	return file.Sync()
}
