package generator

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
)

// alike are pairs of names that are one to a file system which folds letter case or
// normalizes, as APFS, HFS+, vfat, NTFS, ext4 with casefold and ZFS do or can.
var alike = [][2]string{{"a", "A"}, {"σ", "ς"}, {"\u00e9", "e\u0301"}, {"\ufb01", "fi"}, {"x", "x\u200d"}}

// checkNames refuses names that the file system takes for one: the file of one would be
// the other's too. It tries in dir, which it makes and removes.
func checkNames(ctx context.Context, files afero.Fs, dir string, names []lookupName) (err error) {
	defer func() { err = errors.Join(err, files.RemoveAll(dir)) }()
	folds := false
	for i, pair := range alike {
		t := trial{files, filepath.Join(dir, fmt.Sprint(i))}
		for _, name := range pair {
			one, err := t.add(name)
			switch {
			case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EILSEQ):
				continue // it cannot have this name at all; perhaps no name of the site is like it
			case err != nil:
				return err
			}
			folds = folds || one != ""
		}
	}
	if !folds {
		return nil
	}
	// Which names are one only the file system knows. It is asked about all that could
	// be one to any.
	folded := make([]foldedName, len(names))
	for i, n := range names {
		folded[i] = foldedName{fold(n.name), n.name}
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
			return fmt.Errorf("the names %q and %q are one on the file system of the output: name a .tar file, or a folder on a file system that is case-sensitive", other, n.name)
		}
	}
	return nil
}

type foldedName struct{ folded, name string }

// A trial is a folder with a file for each name that was tried. A file holds its name.
type trial struct {
	files afero.Fs
	dir   string
}

// add gives the name that is one with the new one here; "" if none is.
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

// fold gives names the same text if any file system could take them for one.
func fold(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1 // ext4 and HFS+ ignore what cannot be seen
		}
		return unicode.ToUpper(r) // vfat and NTFS go by upper case, others by case folding
	}, norm.NFKD.String(name))
	return norm.NFKD.String(cases.Fold().String(name))
}
