package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// A file is a file of an archive. Names of folders end in a slash.
type file struct {
	name string
	mode fs.FileMode
	text []byte
}

// packed writes files as a tar file, sorted by name and owned by root.
func packed(w io.Writer, files []file, at time.Time) error {
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	t := tar.NewWriter(w)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: int64(f.mode), Size: int64(len(f.text)), ModTime: at, Format: tar.FormatUSTAR, Typeflag: tar.TypeReg}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.text); err != nil {
			return err
		}
	}
	return t.Close()
}

// zipped writes files as a .tar.gz file.
func zipped(w io.Writer, files []file, at time.Time) error {
	z := gzip.NewWriter(w)
	return errors.Join(packed(z, files, at), z.Close())
}
