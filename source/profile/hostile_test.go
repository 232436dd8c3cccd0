package profile_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/profile"
)

// TestHostileRecords: whatever JSON a worker sends, the state can be read again, and so can a snapshot of it.
func TestHostileRecords(t *testing.T) {
	hostile := []string{"1e999", "-0", `"\u0000"`, `"\u2028\n"`, `{"a":1,"a":2}`, "1e99999999999999999", "00", "+1", ".5", "nul", "NaN", "1 2",
		"\"\x00\"", "\"\n\"", "\"\x01\"", `"\x"`, `"\ud800"`, "[1,]", `{"a":1,}`, "\xff", strings.Repeat("9", 50_000)}
	for _, levels := range []int{1, 98, 99, 100, 9_994, 9_995, 9_996, 9_997, 9_998, 9_999, 100_000} {
		for _, brackets := range []string{`{"a":,}`, `[,]`} {
			opening, closing, _ := strings.Cut(brackets, ",")
			hostile = append(hostile, strings.Repeat(opening, levels)+"1"+strings.Repeat(closing, levels))
		}
	}
	w, state := worker(0), t.TempDir()
	w.MaxBulk = 0
	found := 0
	for n, value := range hostile {
		w.Profiles[address(n).String()] = fmt.Sprintf(`{"name":"%d.eth","records":{"a":%s}}`, n, value)
		found += refresh(t, state, w, profile.Options{Wanted: map[site.Address]uint32{address(n): 1}}).Found
	}
	out := filepath.Join(t.TempDir(), "snapshot")
	writer, err := snapshot.Create(out, snapshot.WriteOptions{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if err := source.WriteAccounts(writer, &source.Graph{}, profile.Profiles(state)); err != nil {
		t.Fatalf("write: %.300s", err)
	}
	if err := writer.Commit(snapshot.Meta{AsOf: time.Now()}); err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, err := range snapshot.Accounts(afero.NewBasePathFs(afero.NewOsFs(), out)) {
		if err != nil {
			t.Fatalf("read: %.300s", err)
		}
		rows++
	}
	check(t, "rows", rows, found)
	if found < 10 {
		t.Errorf("found: got %d profiles, want 10 at least", found)
	}
}
