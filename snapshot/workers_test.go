package snapshot_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/followpress/followpress/snapshot"
)

// A Reader without Workers reads, too.
func TestReaderWithoutWorkers(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "lists.ndjson"), []byte(`{"token_id":"7","owner":"0x0000000000000000000000000000000000000007"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rows := 0
	r := snapshot.Reader[snapshot.List]{Snapshot: files(dir), Done: func(b snapshot.Block[snapshot.List]) error {
		rows += len(b.Rows)
		return nil
	}}
	if err := r.Table(t.Context(), snapshot.TableLists, snapshot.ParseList); err != nil || rows != 1 {
		t.Errorf("got %d rows and %v, want 1", rows, err)
	}
}
