package output

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/afero"
	"golang.org/x/sys/unix"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/followpress/followpress/generator/render"
)

// foldingPairs are pairs of names that are equal on a file system that folds case or normalizes
// Unicode: APFS, HFS+, vfat, NTFS, ext4 with casefold, ZFS.
var foldingPairs = [][2]string{{"a", "A"}, {"σ", "ς"}, {"\u00e9", "e\u0301"}, {"\ufb01", "fi"}, {"x", "x\u200d"}}

// checkNames returns an error if two of the names are equal on the file system, because their
// objects would overwrite each other. It creates files in dir, which it creates and removes.
func checkNames(ctx context.Context, files afero.Fs, dir string, names []render.LookupName) (err error) {
	defer func() { err = errors.Join(err, files.RemoveAll(dir)) }()
	folds := false
	for i, pair := range foldingPairs {
		t := trial{files, filepath.Join(dir, fmt.Sprint(i))}
		for _, name := range pair {
			one, err := t.add(name)
			switch {
			case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EILSEQ):
				continue // the file system rejects this name; the site may not have it
			case err != nil:
				return err
			}
			folds = folds || one != ""
		}
	}
	if !folds {
		return nil
	}
	// Only the file system knows which names are equal, so try all that could be equal on any.
	folded := make([]foldedName, len(names))
	for i, n := range names {
		folded[i] = foldedName{fold(n.Name), n.Name}
	}
	slices.SortFunc(folded, func(a, b foldedName) int {
		return cmp.Or(strings.Compare(a.folded, b.folded), strings.Compare(a.name, b.name))
	})
	t := trial{files, filepath.Join(dir, "names")}
	for i, n := range folded {
		if (i == 0 || folded[i-1].folded != n.folded) && (i+1 == len(folded) || folded[i+1].folded != n.folded) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if other, err := t.add(n.name); err != nil {
			return err
		} else if other != "" {
			return fmt.Errorf("the file system of the output treats the names %q and %q as equal; use a .tar file, or a folder on a case-sensitive file system", other, n.name)
		}
	}
	return nil
}

type foldedName struct{ folded, name string }

// A trial is a folder with a file for each name tried. Each file contains its name.
type trial struct {
	files afero.Fs
	dir   string
}

// add adds a file. If the file system takes the name for that of an earlier file, add returns the
// earlier name, otherwise "".
func (t trial) add(name string) (other string, err error) {
	if err := makeFolder(t.files, t.dir); err != nil {
		return "", err
	}
	path := filepath.Join(t.dir, name)
	err = writeFile(t.files, path, []byte(name))
	if !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	body, err := afero.ReadFile(t.files, path)
	return string(body), err
}

// fold maps names that are equal on any file system to the same text.
func fold(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1 // ext4 and HFS+ ignore invisible characters
		}
		return unicode.ToUpper(r) // vfat and NTFS compare upper case, others use case folding
	}, norm.NFKD.String(name))
	return norm.NFKD.String(cases.Fold().String(name))
}
