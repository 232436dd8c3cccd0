package regular_test

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/afero"
	"golang.org/x/sys/unix"

	"github.com/followpress/followpress/internal/regular"
)

// TestOpen: files, folders and links to them are opened. Anything else fails without blocking.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	listener, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := errors.Join(os.WriteFile(at("file"), []byte("body"), 0o644), os.Mkdir(at("folder"), 0o755), unix.Mkfifo(at("pipe"), 0o644),
		os.Symlink("file", at("link")), os.Symlink("pipe", at("link to a pipe"))); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{
		"file": nil, "folder": nil, "link": nil,
		"pipe": regular.ErrIrregular, "link to a pipe": regular.ErrIrregular, "socket": regular.ErrIrregular, "/dev/zero": regular.ErrIrregular,
		"missing": os.ErrNotExist,
	} {
		path := at(name)
		if filepath.IsAbs(name) {
			path = name
		}
		file, err := regular.Open(afero.NewOsFs(), path)
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%s: got the error %v, want %v", name, err, want)
		}
		if err != nil {
			continue
		}
		if body, err := io.ReadAll(file); name != "folder" && (err != nil || string(body) != "body") {
			t.Errorf("%s: got %q, %v, want its bytes", name, body, err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
}
