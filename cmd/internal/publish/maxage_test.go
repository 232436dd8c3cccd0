package publish

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/generator"
)

// snapshotAsOf returns the demo's snapshot, as of another time.
func snapshotAsOf(t *testing.T, asOf time.Time) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../../fixtures/demo")); err != nil {
		t.Fatal(err)
	}
	meta := `{"format":1,"as_of":"` + asOf.UTC().Format(time.RFC3339) + `"}`
	if err := os.WriteFile(filepath.Join(dir, "meta.json"), []byte(meta), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A stale snapshot makes publish fail after it has published, even if nothing changed. It makes
// verify fail too. One flag allows going back to an older site.
func TestMaxAge(t *testing.T) {
	now := time.Now()
	stale, good := snapshotAsOf(t, now.Add(-49*time.Hour)), snapshotAsOf(t, now.Add(-47*time.Hour))
	soon, future := snapshotAsOf(t, now.Add(23*time.Hour)), snapshotAsOf(t, now.Add(25*time.Hour))
	dest := "file://" + t.TempDir()
	const says = "ago, and --max-age=48h0m0s"
	for _, tt := range []struct {
		args   string
		status int
		says   string
	}{
		{"publish --dry-run --max-age 48h --snapshot " + stale, command.Failed, says},
		{"publish --max-age 48h --snapshot " + stale, command.Failed, says},
		{"publish --max-age 48h --snapshot " + stale, command.Failed, says}, // unchanged
		{"publish --max-age 50h --snapshot " + stale, command.Done, ""},
		{"publish --snapshot " + stale, command.Done, ""},
		{"verify --max-age 48h", command.Failed, says},
		{"verify --max-age 50h", command.Done, ""},
		{"publish --max-age 48h --snapshot " + good, command.Done, ""},
		{"verify --max-age 48h", command.Done, ""},
		{"publish --max-loss 100% --snapshot " + stale, command.Failed, "use --allow-rollback"},
		{"verify --max-age 48h", command.Done, ""}, // the newer one is live
		{"publish --allow-rollback --snapshot " + stale, command.Done, ""},
		{"verify --max-age 48h", command.Failed, says},
		{"publish --dry-run --allow-rollback --snapshot " + future, command.Failed, "the site's time is in the future: as_of is"},
		{"publish --allow-rollback --snapshot " + future, command.Failed, "the site's time is in the future: as_of is"},
		{"publish --snapshot " + soon, command.Done, ""},
		{"verify", command.Done, ""},
	} {
		args := append(strings.Fields(tt.args), "--dest", dest)
		status, _, stderr := run(args[0], args[1:]...)
		if status != tt.status || !strings.Contains(lastLine(stderr), tt.says) {
			t.Errorf("%s: got status %d and %q, want %d and %q", tt.args, status, lastLine(stderr), tt.status, tt.says)
		}
	}
	ahead := filepath.Join(t.TempDir(), "out") // not published
	if _, err := generator.ToPath(t.Context(), afero.NewBasePathFs(afero.NewOsFs(), future), ahead, generator.Options{NoSync: true}); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := run("verify", "--dest", "file://"+ahead); status != command.Failed || !strings.Contains(lastLine(stderr), "more than a day ahead of the clock") {
		t.Errorf("verify of a site of a time to come: got status %d and %q", status, lastLine(stderr))
	}
}
