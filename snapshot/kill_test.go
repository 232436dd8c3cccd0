package snapshot_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/snapshot"
)

// Set in the environment, these make the test binary a program that writes snapshots until it is
// killed: numbered ones, from childFirst.
const (
	childDir   = "FOLLOWPRESS_TEST_DIR"
	childFirst = "FOLLOWPRESS_TEST_FIRST"
)

func TestMain(m *testing.M) {
	tempdir.InMemory()
	if dir := os.Getenv(childDir); dir != "" {
		first, err := strconv.Atoi(os.Getenv(childFirst))
		for n := first; err == nil && n < first+100_000; n++ {
			err = writeNumbered(dir, n)
			fmt.Println(n)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// writeNumbered writes a snapshot whose rows all have one number.
func writeNumbered(dir string, n int) error {
	w, err := snapshot.Create(dir, fast)
	if err != nil {
		return err
	}
	err = w.WriteList(snapshot.List{TokenID: strconv.Itoa(n)})
	for i := 0; err == nil && i < numbered; i++ {
		err = w.WriteRecord(snapshot.Record{TokenID: strconv.Itoa(n), Version: 1, Type: "2", Data: []byte{byte(i)}})
	}
	if err == nil {
		err = w.Commit(snapshot.Meta{AsOf: time.UnixMilli(int64(n))})
	}
	return errors.Join(err, w.Close())
}

// numbered is how many records a numbered snapshot has.
const numbered = 300

// whichNumber returns the number of a snapshot, and fails the test unless it is whole.
func whichNumber(t *testing.T, dir string) int {
	t.Helper()
	r, err := read(t, dir)
	if err != nil || len(r.lists) != 1 || len(r.records) != numbered {
		t.Fatalf("got %d lists, %d records and the error %v, want a whole snapshot", len(r.lists), len(r.records), err)
	}
	n, err := strconv.Atoi(r.lists[0].TokenID)
	if err != nil {
		t.Fatal(err)
	}
	asOf, err := snapshot.ReadAsOf(files(dir))
	if err != nil {
		t.Fatal(err)
	}
	if at, err := time.Parse(time.RFC3339, asOf); err != nil || at.UnixMilli() != int64(n) {
		t.Fatalf("snapshot %d: got the time %s", n, asOf)
	}
	for _, rec := range r.records {
		if rec.TokenID != r.lists[0].TokenID {
			t.Fatalf("snapshot %d: got a record of %s", n, rec.TokenID)
		}
	}
	return n
}

// TestKilled: whenever a writer is killed, a complete snapshot exists, the old or the new one. The next writer leaves
// nothing behind.
func TestKilled(t *testing.T) {
	const seed = 20261122
	random := rand.New(rand.NewPCG(seed, 0))
	dir := filepath.Join(t.TempDir(), "snapshot")
	last := -1
	for range servers.Rounds(6, 60) {
		p := process.Start(t, process.Self(t, []string{childDir + "=" + dir, fmt.Sprintf("%s=%d", childFirst, last+1)}))
		p.Line(0)
		time.Sleep(time.Duration(random.Int64N(int64(30 * time.Millisecond))))
		p.Signal(syscall.SIGKILL)
		if status, killed := p.Wait(); !killed {
			t.Fatalf("writer: got status %d, want it to be killed: %s", status, p.Stderr())
		}
		lines := p.Lines()
		printed, err := strconv.Atoi(lines[len(lines)-1].Text)
		if err != nil {
			t.Fatal(err)
		}
		last = whichNumber(t, dir)
		if last != printed && last != printed+1 {
			t.Fatalf("got snapshot %d, want %d or the next", last, printed)
		}
	}
	if err := writeNumbered(dir, last+1); err != nil {
		t.Fatal(err)
	}
	if got := whichNumber(t, dir); got != last+1 {
		t.Errorf("after all kills: got snapshot %d, want %d", got, last+1)
	}
	alone(t, dir)
}
