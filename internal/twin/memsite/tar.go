package memsite

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/followpress/followpress/site"
)

// ReadTar reads the site in a tar file that is compressed by gzip.
func ReadTar(t testing.TB, path string) Site {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	s := Site{}
	for archive := tar.NewReader(unpacked); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return s
		} else if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		s[site.Key(header.Name)] = string(body)
	}
}
