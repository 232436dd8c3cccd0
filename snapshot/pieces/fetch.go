package pieces

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	json "github.com/goccy/go-json"
	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/kept"
	"github.com/followpress/followpress/snapshot"
)

// ErrAltered means that an object in the bucket does not match the inputs of the site.
var ErrAltered = errors.New("it was altered")

// ErrNone means that the bucket has no index for a root.
var ErrNone = errors.New("the bucket does not hold the site's inputs")

// A Fetch reads an object of at most that many bytes. The error wraps site.ErrNotFound if it is missing.
type Fetch func(ctx context.Context, key site.Key, most int64) ([]byte, error)

// A Fetched has the inputs of a site, in a folder.
type Fetched struct {
	Index *Index
	dir   string
	root  *site.Root
}

const (
	ownFolder      = ".followpress-reproduce"
	ownMarker      = "made-by-followpress"
	piecesFolder   = "pieces"
	snapshotFolder = "snapshot"
	fetchers       = 8
)

// Get fetches the inputs of a root into a folder of Own, which may have pieces of an earlier run. It compares pieces
// with their names; Check compares tables. progress is called for each piece.
func Get(ctx context.Context, fetch Fetch, root *site.Root, body []byte, dir string, progress func(n, bytes int64)) (*Fetched, error) {
	if root.Inputs == nil {
		return nil, fmt.Errorf("%w: its root lists none", ErrNone)
	}
	key := kept.IndexKey(site.Sum256(body))
	text, err := fetch(ctx, key, MaxIndexBytes)
	if errors.Is(err, site.ErrNotFound) {
		return nil, fmt.Errorf("%w: no %s; publish with --inputs", ErrNone, key)
	} else if err != nil {
		return nil, err
	}
	x, err := ParseIndex(text)
	if err == nil {
		err = x.matches(root)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", key, ErrAltered, err)
	}
	f := &Fetched{Index: x, dir: dir, root: root}
	if err := f.get(ctx, fetch, progress); err != nil {
		return nil, err
	}
	return f, f.link()
}

// ErrNotOwn means that a folder has foreign files, which must not be removed.
var ErrNotOwn = errors.New("not created by followpress; move it, or use another folder")

// Own returns the subfolder of dir that belongs to followpress, and creates it. A marker file identifies it.
func Own(dir string) (string, error) {
	folder := filepath.Join(dir, ownFolder)
	marker := filepath.Join(folder, ownMarker)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := os.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if info, err := os.Lstat(folder); err != nil {
		return "", err
	} else if !info.IsDir() {
		return "", fmt.Errorf("%s: %w", folder, ErrNotOwn)
	}
	if info, err := os.Lstat(marker); err == nil && info.Mode().IsRegular() {
		return folder, nil
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("%s: %w", folder, ErrNotOwn)
	}
	return folder, os.WriteFile(marker, nil, 0o644)
}

var pieceName = regexp.MustCompile(`^[0-9a-f]{64}(\.tmp)?$`)

// matches returns an error unless the index lists the inputs that the root names.
func (x *Index) matches(root *site.Root) error {
	want, got := slices.Sorted(maps.Keys(root.Inputs.Tables)), slices.Sorted(maps.Keys(x.Tables))
	if !slices.Equal(want, got) {
		return fmt.Errorf("its tables are %q, the root lists %q", got, want)
	}
	if (x.Ranks != nil) != (root.Inputs.Ranks != nil) || x.Refreshed != nil && root.Inputs.Refreshed == nil {
		return errors.New("its parts differ from the root")
	}
	// Limit the text relative to the site, which shows its inputs, and to the fetched bytes, with each piece once. A
	// hostile root may claim any size of its site, and a hostile index may list a piece many times.
	text, bytes := int64(0), int64(0)
	fetched := map[site.SHA256]bool{}
	for _, p := range x.All() {
		text += p.Text
		if !fetched[p.SHA256] {
			fetched[p.SHA256] = true
			bytes += p.Bytes
		}
	}
	shown := max(root.Counts.Bytes, 0)
	if more := text - alwaysText; more/mostExpansion > bytes || more/mostOfSite > shown {
		return fmt.Errorf("its pieces have %d bytes of text, which is too much for %d bytes in the bucket and a site of %d", text, bytes, shown)
	}
	return nil
}

// Limits of the text of all pieces.
const (
	alwaysText    = 64 << 20 // always allowed
	mostOfSite    = 64       // factor over the objects of the site
	mostExpansion = 256      // factor over the bodies of the pieces, each once
)

func (f *Fetched) path(p Piece) string { return filepath.Join(f.dir, piecesFolder, p.SHA256.String()) }

// get fetches missing pieces, and removes unneeded ones.
func (f *Fetched) get(ctx context.Context, fetch Fetch, progress func(n, bytes int64)) error {
	folder := filepath.Join(f.dir, piecesFolder)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	needed := map[string]Piece{}
	for _, p := range f.Index.All() {
		needed[p.SHA256.String()] = p
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if _, ok := needed[e.Name()]; !ok && pieceName.MatchString(e.Name()) {
			if err := os.Remove(filepath.Join(folder, e.Name())); err != nil {
				return err
			}
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(fetchers)
	for _, p := range needed {
		group.Go(func() error {
			defer progress(1, p.Bytes)
			return f.getPiece(ctx, fetch, p)
		})
	}
	return group.Wait()
}

// getPiece fetches a piece unless the folder has it.
func (f *Fetched) getPiece(ctx context.Context, fetch Fetch, p Piece) error {
	if had, err := os.ReadFile(f.path(p)); err == nil && p.check(had) == nil {
		return nil
	}
	body, err := fetch(ctx, p.Key(), p.Bytes)
	if err != nil {
		return fmt.Errorf("%s: %w", f.describe(p), err)
	}
	if err := p.check(body); err != nil {
		return fmt.Errorf("%s: %s: %w: %w", f.describe(p), p.Key(), ErrAltered, err)
	}
	temp := f.path(p) + ".tmp"
	if err := os.WriteFile(temp, body, 0o644); err != nil {
		return err
	}
	return os.Rename(temp, f.path(p))
}

// check compares a body with the index.
func (p Piece) check(body []byte) error {
	if int64(len(body)) != p.Bytes || site.Sum256(body) != p.SHA256 {
		return fmt.Errorf("it has %d bytes with the SHA-256 %s, and should have %d with that of its name", len(body), site.Sum256(body), p.Bytes)
	}
	_, err := p.unpack(body)
	return err
}

// describe returns the table and number of a piece.
func (f *Fetched) describe(p Piece) string {
	for _, name := range slices.Sorted(maps.Keys(f.Index.Tables)) {
		if i := slices.Index(f.Index.Tables[name], p); i >= 0 {
			return fmt.Sprintf("table %s, piece %d of %d", name, i+1, len(f.Index.Tables[name]))
		}
	}
	if f.Index.Ranks != nil && *f.Index.Ranks == p {
		return "ranks"
	}
	return "refreshed data"
}

// link assembles the snapshot's folder from the pieces.
func (f *Fetched) link() error {
	folder := f.Snapshot()
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return err
	}
	for name, of := range f.Index.Tables {
		if len(of) == 0 {
			if err := os.WriteFile(filepath.Join(folder, name+".ndjson"), nil, 0o644); err != nil {
				return err
			}
		}
		for i, p := range of {
			link := filepath.Join(folder, fmt.Sprintf("%s-%06d.ndjson.zst", name, i))
			if err := os.Symlink(filepath.Join("..", piecesFolder, p.SHA256.String()), link); err != nil {
				return err
			}
		}
	}
	meta, err := metaOf(f.root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "meta.json"), meta, 0o644)
}

// metaOf returns a meta.json with the facts in a root.
func metaOf(root *site.Root) ([]byte, error) {
	in := root.Inputs
	return json.MarshalWithOption(struct {
		Format   int                `json:"format"`
		AsOf     string             `json:"as_of"`
		ListOps  *uint64            `json:"list_ops,omitempty"`
		OpsFrom  string             `json:"ops_from,omitempty"`
		Chains   []site.ChainInput  `json:"chains,omitempty"`
		Profiles *site.ServiceInput `json:"profiles,omitempty"`
		Badges   *site.ServiceInput `json:"badges,omitempty"`
	}{1, root.AsOf, in.ListOps, in.OpsFrom, in.Chains, in.Profiles, in.Badges}, json.DisableHTMLEscape())
}

// Snapshot returns the path of the snapshot's folder.
func (f *Fetched) Snapshot() string { return filepath.Join(f.dir, snapshotFolder) }

// Check compares the tables with the digests in the root. Errors name the table that differs.
func (f *Fetched) Check(ctx context.Context) (err error) {
	opened, err := snapshot.Open(f.Snapshot())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	for _, name := range slices.Sorted(maps.Keys(f.root.Inputs.Tables)) {
		var rows snapshot.Digest
		err := rows.AddTable(ctx, opened, snapshot.Table(name), !f.root.Config.EFP())
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("table %s: %w: %w", name, ErrAltered, err)
		} else if err != nil {
			return err
		}
		if digest, want := rows.Sum(), f.root.Inputs.Tables[name]; digest != want {
			return fmt.Errorf("table %s: %w: its rows have the digest %s, and the root names %s", name, ErrAltered, digest, want)
		}
	}
	return nil
}

// Ranks returns the ranks that the site was made with, or nil.
func (f *Fetched) Ranks() ([]byte, error) {
	if f.Index.Ranks == nil {
		return nil, nil
	}
	text, err := f.text(*f.Index.Ranks)
	if err == nil && site.Sum256(text) != *f.root.Inputs.Ranks {
		err = fmt.Errorf("ranks: %w: they differ from the root", ErrAltered)
	}
	return text, err
}

// HasRefreshed reports whether refreshed data was merged.
func (f *Fetched) HasRefreshed() bool { return f.root.Inputs.Refreshed != nil }

// Each implements Refreshed.
func (f *Fetched) Each(ctx context.Context, found func(key site.Key, body []byte) error) error {
	for _, p := range f.Index.Refreshed {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		text, err := f.text(p)
		if err != nil {
			return err
		}
		if err := eachObject(text, found); err != nil {
			return fmt.Errorf("refreshed data: %w", err)
		}
	}
	return nil
}

func (f *Fetched) text(p Piece) ([]byte, error) {
	body, err := os.ReadFile(f.path(p))
	if err != nil {
		return nil, err
	}
	return p.unpack(body)
}
