package generator_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures/graph"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/tempdir"
)

// Set in the environment, these make the test binary a generator that can be killed.
const (
	childSnapshot = "FOLLOWPRESS_TEST_SNAPSHOT"
	childOut      = "FOLLOWPRESS_TEST_OUT"
)

func TestMain(m *testing.M) {
	tempdir.InMemory()
	if out := os.Getenv(childOut); out != "" {
		o := small
		o.Progress = stages(func(name string) { fmt.Println(name) }) // for the parent process
		files := afero.NewBasePathFs(afero.NewOsFs(), os.Getenv(childSnapshot))
		if _, err := generator.ToPath(context.Background(), files, out, o); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestKilledFolder(t *testing.T) {
	killOften(t, filepath.Join(t.TempDir(), "site"), servers.Rounds(16, 52), readFolder)
}

func TestKilledTar(t *testing.T) {
	killOften(t, filepath.Join(t.TempDir(), "site.tar"), 12, readTar)
}

// killOften kills that many runs into one output with SIGKILL and checks the output after each:
// nothing before the first complete run, then the complete site of one of the snapshots. Every
// other kill comes at any time; the rest cycle through the stages of a run, beginning with the
// last, so that each is hit.
func killOften(t *testing.T, path string, total int, read func(testing.TB, string) objects) {
	const seed = 20261120
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, uint64(total)))

	a := syntheticSnapshot(t, graph.Options{Accounts: 45, Lists: 35, Records: 450, Seed: 1})
	b := shrunk(a)
	dirs := []string{a.write(t), b.write(t)}
	sites := []objects{inMemory(t, a, small), inMemory(t, b, small)}

	// Durations of the stages, for a first site and for a replacement.
	rehearsal := filepath.Join(t.TempDir(), filepath.Base(path))
	first := startRun(t, dirs[0], rehearsal).wait(t)
	second := startRun(t, dirs[1], rehearsal).wait(t)
	t.Logf("a first run takes %v, a run over another site %v", first, second)

	present := -1 // number of the current site
	hits := map[string]int{}
	for round, kills := 0, 0; kills < total; round++ {
		if round > 1000 {
			t.Fatal("killed runs of a thousand: got too few, want more")
		}
		times := second
		if present < 0 {
			times = first
		}
		from, span := -1, times.end
		if round%2 == 1 {
			from = len(times.stages) - 1 - round/2%len(times.stages)
			span = times.lasts(from)
		}
		// Never the current site: a run over it has nothing to write.
		run := startRun(t, dirs[(present+1)%2], path)
		if from >= 0 {
			run.Line(from)
		}
		time.Sleep(time.Duration(random.Int64N(int64(span)*6/5 + 1)))
		if run.kill(t) {
			kills++
			hits[run.stage()]++
		}
		present = whichSite(t, path, read, sites, present)
	}
	t.Logf("runs were killed in the stages %v", hits)
	if len(hits) < total/13 {
		t.Errorf("stages with killed runs: got %d, want more", len(hits))
	}

	for i, dir := range []string{dirs[0], dirs[1]} {
		startRun(t, dir, path).wait(t)
		if present = whichSite(t, path, read, sites, present); present != i {
			t.Fatalf("after all kills, a run for snapshot %d: got site %d, want that of the snapshot", i, present)
		}
		alone(t, path)
	}
}

// shrunk returns a snapshot that shares most of its site with s: some lists are gone, others have
// fewer records.
func shrunk(s snapshot) snapshot {
	lists := strings.SplitAfter(s["lists.ndjson"], "\n")
	records := strings.SplitAfter(s["records.ndjson"], "\n")
	return s.with("lists.ndjson", strings.Join(lists[:len(lists)-len(lists)/20], "")).
		with("records.ndjson", strings.Join(records[:len(records)-len(records)/10], ""))
}

// whichSite returns the number of the site at path, -1 if there is none. It fails the test for
// anything in between, and for a site that has vanished.
func whichSite(t *testing.T, path string, read func(testing.TB, string) objects, sites []objects, before int) int {
	t.Helper()
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && before < 0 {
		return -1
	} else if err != nil {
		t.Fatal(err)
	}
	got := read(t, path)
	var errs []error
	for i, want := range sites {
		err := got.Compare(want)
		if err == nil {
			return i
		}
		errs = append(errs, err)
	}
	t.Fatalf("output: got neither site, want one of them: %v", errors.Join(errs...))
	return 0
}

// A run is a child process that makes a site. It prints the stages as they begin.
type run struct{ *process.Process }

// times are the begin of each stage of a run, and its end.
type times struct {
	stages []process.Line
	end    time.Duration
}

func (t times) lasts(stage int) time.Duration {
	end := t.end
	if stage+1 < len(t.stages) {
		end = t.stages[stage+1].At
	}
	return end - t.stages[stage].At
}

func (t times) String() string {
	var parts []string
	for i, stage := range t.stages {
		parts = append(parts, fmt.Sprintf("%s %v", stage.Text, t.lasts(i).Round(time.Millisecond/10)))
	}
	return fmt.Sprintf("%v (%s)", t.end.Round(time.Millisecond), strings.Join(parts, ", "))
}

func startRun(t testing.TB, snapshotDir, out string) run {
	t.Helper()
	return run{process.Start(t, process.Self(t, []string{childSnapshot + "=" + snapshotDir, childOut + "=" + out}))}
}

// stage returns the current stage.
func (r run) stage() string {
	if lines := r.Lines(); len(lines) > 0 {
		return lines[len(lines)-1].Text
	}
	return "start"
}

// kill ends the process with SIGKILL. It returns false if the process had ended by itself.
func (r run) kill(t testing.TB) bool {
	t.Helper()
	r.Signal(syscall.SIGKILL)
	status, killed := r.Wait()
	if !killed && status != 0 {
		t.Fatalf("run that was not killed: got status %d, want 0: %s", status, r.Stderr())
	}
	return killed
}

// wait lets the run end by itself.
func (r run) wait(t testing.TB) times {
	t.Helper()
	if status, _ := r.Wait(); status != 0 {
		t.Fatalf("run: got status %d, want 0: %s", status, r.Stderr())
	}
	return times{r.Lines(), r.Age()}
}

// TestKilledBetweenTheRenames: on a file system that cannot exchange two folders, the old site is
// for a moment only in the work folder. A run that finds it there restores it, even if the run
// fails later.
func TestKilledBetweenTheRenames(t *testing.T) {
	s, _ := beforeAndAfter()
	path := filepath.Join(t.TempDir(), "site")
	onDisk(t, s, path, small)
	work := filepath.Join(filepath.Dir(path), ".site.followpress")
	overwrite(t, filepath.Join(work, "lock"), "")
	overwrite(t, filepath.Join(work, "next", "half", "a", "site"), "{")
	if err := os.Rename(path, filepath.Join(work, "last")); err != nil {
		t.Fatal(err)
	}
	_, err := generator.ToPath(t.Context(), s.without("lists.ndjson").fs(), path, small)
	wantError(t, err, "table lists is not there")
	if err := readFolder(t, path).Compare(inMemory(t, s, small)); err != nil {
		t.Error(err)
	}
	alone(t, path)
}

// TestLeftOversOfAKill: the next run removes the work folder of a killed run, even with nothing to
// write.
func TestLeftOversOfAKill(t *testing.T) {
	s, _ := beforeAndAfter()
	for _, p := range places(t) {
		onDisk(t, s, p.path, small)
		work := filepath.Join(filepath.Dir(p.path), "."+filepath.Base(p.path)+".followpress")
		for i := range 300 { // many files, since they are removed in another way than a few
			overwrite(t, filepath.Join(work, "next", "lists", fmt.Sprint(i)), "{")
		}
		overwrite(t, filepath.Join(work, "last"), "a file where a folder could be")
		if w := onDisk(t, s, p.path, small).Written; !w.Unchanged {
			t.Errorf("%s: report: got %+v, want unchanged", p.name, w)
		}
		alone(t, p.path)
	}
}
