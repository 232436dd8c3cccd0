package snapshot_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// TestOpenedFolderStaysTheSame replaces a snapshot by one with other files.
func TestOpenedFolderStaysTheSame(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshot")
	commit(t, dir, some(1), fast)
	folder, err := snapshot.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	commit(t, dir, some(2), snapshot.WriteOptions{NoSync: true, Compression: "gzip"})
	for range 2 { // each table may be read again
		if got, err := lists(t, folder); err != nil || got != "1" {
			t.Errorf("after the replacement: got list %s and %v, want 1", got, err)
		}
		if _, err := snapshot.ReadAsOf(folder); err != nil {
			t.Error(err)
		}
	}
	if got, err := lists(t, files(dir)); err != nil || got != "2" {
		t.Errorf("the new snapshot: got list %s and %v, want 2", got, err)
	}
	if _, err := folder.Open("lists.ndjson.gz"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file of the new snapshot: got %v, want that it does not exist", err)
	}
}

// TestOpenWhileReplaced opens a folder that another goroutine replaces all the time.
func TestOpenWhileReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "snapshot")
	commit(t, dir, some(0), fast)
	stop, stopped := make(chan struct{}), make(chan error)
	go func() {
		endings := []string{"zstd", "gzip", "none"}
		for n := 1; ; n++ {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			w, err := snapshot.Create(dir, snapshot.WriteOptions{NoSync: true, Compression: endings[n%len(endings)]})
			if err == nil {
				err = errors.Join(some(n).write(w), w.Commit(asOf), w.Close())
			}
			if err != nil {
				stopped <- err
				return
			}
		}
	}()
	for range 300 {
		folder, err := snapshot.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		list, err := lists(t, folder)
		var account []snapshot.Account
		for a, errAccount := range snapshot.Accounts(folder) {
			account, err = append(account, a), errors.Join(err, errAccount)
		}
		if err := errors.Join(err, folder.Close()); err != nil || len(account) != 1 || account[0].Primary != list {
			t.Fatalf("got list %s, accounts %v and %v, want both of one snapshot", list, account, err)
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
}

// TestOpenWhatIsNoSnapshot checks that the errors are those of a folder that is not opened before.
func TestOpenWhatIsNoSnapshot(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	broken := t.TempDir()
	if err := os.Mkdir(filepath.Join(broken, "meta.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "absent"), file, broken} {
		folder, err := snapshot.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		_, got := snapshot.ReadAsOf(folder)
		_, want := snapshot.ReadAsOf(files(dir))
		if got == nil || got.Error() != want.Error() {
			t.Errorf("%s: got %v, want %v", dir, got, want)
		}
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	}
}

// some are rows that name the same list.
func some(n int) rows {
	id := fmt.Sprint(n)
	return rows{lists: []snapshot.List{{TokenID: id}}, accounts: []snapshot.Account{{Primary: id, ENS: &site.Profile{Name: "a.eth"}}}}
}

// lists returns the first list of a snapshot.
func lists(t *testing.T, from afero.Fs) (id string, err error) {
	err = snapshot.Reader[snapshot.List]{Snapshot: from, Workers: 1, Done: func(b snapshot.Block[snapshot.List]) error {
		id = b.Rows[0].Value.TokenID
		return nil
	}}.Table(t.Context(), snapshot.TableLists, snapshot.ParseList)
	return id, err
}
