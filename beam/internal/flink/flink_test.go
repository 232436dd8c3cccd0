package flink_test

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/transforms/stats"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/x/beamx"

	"github.com/followpress/followpress/beam/internal/flink"
	"github.com/followpress/followpress/beam/internal/loopback"
	"github.com/followpress/followpress/beam/internal/worker"
	"github.com/followpress/followpress/internal/testenv/process"
)

// pipelineRole is set in the environment of the process that starts the pipeline.
const pipelineRole = "START_THE_PIPELINE_OF_A_TEST"

var (
	folder = flag.String("folder", "", "where the pipeline writes its result, and a file for each part that it begins")
	pause  = flag.Duration("pause", 0, "of each part")
	hold   = flag.Int("hold", 0, "memory that each part takes, MiB")
)

func TestMain(m *testing.M) {
	if os.Getenv(pipelineRole) != "" || slices.Contains(os.Args, "--worker=true") {
		flag.Parse()
		worker.Tidy()
		beam.Init()
		if err := pipeline(); err != nil {
			log.Fatal(err)
		}
		return
	}
	loopback.Main(m)
}

const (
	parts = 40
	lines = 500 // lines per part
	keys  = 97
)

// A cut makes the lines of a part.
type cut struct {
	Folder string
	Pause  time.Duration
	Hold   int
}

func (c *cut) ProcessElement(part int, emit func(string, []byte)) error {
	// Each attempt creates a new file.
	begun, err := os.CreateTemp(c.Folder, fmt.Sprintf("part-%d-", part))
	if err != nil {
		return err
	}
	if err := begun.Close(); err != nil {
		return err
	}
	held := make([]byte, c.Hold<<20)
	for i := range held {
		held[i] = byte(i)
	}
	time.Sleep(c.Pause)
	for line := range lines {
		n := part*lines + line
		emit(fmt.Sprintf("key %d", n%keys), []byte(strings.Repeat("x", n%50+len(held)%2)))
	}
	return nil
}

// A measure sums the lengths of the values of a key.
type measure struct{}

func (measure) ProcessElement(key string, values func(*[]byte) bool, emit func(string, int)) {
	var value []byte
	sum := 0
	for values(&value) {
		sum += len(value)
	}
	emit(key, sum)
}

// A write writes the result.
type write struct{ Folder string }

func (w *write) ProcessElement(sum int, words func(*string) bool, count int) error {
	var all []string
	for word := ""; words(&word); {
		all = append(all, word)
	}
	slices.Sort(all)
	text := fmt.Sprintln(sum, count, all)
	return os.WriteFile(filepath.Join(w.Folder, "result"), []byte(text), 0o644)
}

func length(_ string, n int) int { return n }
func one(string, int) int        { return 1 }

func init() {
	register.DoFn2x1[int, func(string, []byte), error](&cut{})
	register.DoFn3x0[string, func(*[]byte) bool, func(string, int)](&measure{})
	register.DoFn3x1[int, func(*string) bool, int, error](&write{})
	register.Function2x1(length)
	register.Function2x1(one)
	register.Emitter2[string, []byte]()
	register.Emitter2[string, int]()
	register.Iter1[[]byte]()
	register.Iter1[string]()
}

// pipeline has the features of real pipelines: a grouping, sums, and side inputs.
func pipeline() error {
	p, s := beam.NewPipelineWithRoot()
	numbers := make([]int, parts)
	for i := range numbers {
		numbers[i] = i
	}
	cuts := beam.ParDo(s, &cut{*folder, *pause, *hold}, beam.Reshuffle(s, beam.CreateList(s, numbers)))
	sums := beam.ParDo(s, &measure{}, beam.GroupByKey(s, cuts))
	beam.ParDo0(s, &write{*folder}, stats.Sum(s, beam.ParDo(s, length, sums)),
		beam.SideInput{Input: beam.CreateList(s, []string{"beam", "flink"})},
		beam.SideInput{Input: stats.Sum(s, beam.ParDo(s, one, sums))})
	return beamx.Run(context.Background(), p)
}

// want returns the expected output of the pipeline.
func want() string {
	sum := 0
	for n := range parts * lines {
		sum += n % 50
	}
	return fmt.Sprintln(sum, keys, []string{"beam", "flink"})
}

// begin starts the pipeline on a job server.
func begin(t *testing.T, server *flink.JobServer, workers *flink.Workers, folder string, more ...string) *process.Process {
	t.Helper()
	flags := append(append(append(server.Flags(), workers.Flags()...), "--runner=universal", "--folder="+folder), more...)
	return process.Start(t, process.Self(t, []string{pipelineRole + "=1"}, flags...))
}

// check waits for the end of the pipeline and checks its result.
func check(t *testing.T, p *process.Process, folder string) {
	t.Helper()
	select {
	case <-p.Ended():
	case <-time.After(5 * time.Minute):
		t.Fatal("the pipeline takes too long")
	}
	if status, _ := p.Wait(); status != 0 {
		t.Fatalf("the pipeline: got status %d, want 0", status)
	}
	got, err := os.ReadFile(filepath.Join(folder, "result"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want() {
		t.Errorf("result: got %q, want %q", got, want())
	}
}

func self(t *testing.T) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func TestFlinkInTheJobServer(t *testing.T) {
	folder := t.TempDir()
	server := flink.Start(t, flink.Options{})
	t.Run("LOOPBACK", func(t *testing.T) {
		check(t, begin(t, server, flink.Loopback(), folder), folder)
	})
	t.Run("EXTERNAL", func(t *testing.T) {
		folder := t.TempDir()
		workers := flink.StartPool(t, self(t), flink.Limit{Soft: 256, Hard: 1024})
		check(t, begin(t, server, workers, folder, "--hold=200"), folder)
		if n, memory := workers.Seen(); n == 0 || memory < 200<<20 || memory > 1<<30 {
			t.Errorf("workers: got %d with at most %d bytes, want some with 200 MiB to 1 GiB", n, memory)
		}
	})
}

func TestFlinkEndsWorkersThatTakeTooMuchMemory(t *testing.T) {
	server, folder := flink.Start(t, flink.Options{}), t.TempDir()
	workers := flink.StartPool(t, self(t), flink.Limit{Soft: 256, Hard: 512})
	p := begin(t, server, workers, folder, "--hold=600")
	if status, _ := p.Wait(); status == 0 {
		t.Error("a pipeline whose workers need 600 MiB and may have 512: got success, want a failure")
	}
	// The failing allocation may be the stack of a new thread.
	if output := workers.Output(); !strings.Contains(output, "out of memory") && !strings.Contains(output, "pthread_create failed") {
		t.Errorf("output of the workers: got %d bytes, want \"out of memory\" or \"pthread_create failed\" in them:\n%s",
			len(output), output[:min(len(output), 4096)])
	}
}

func TestFlinkClusterSurvivesLosses(t *testing.T) {
	cluster := flink.StartCluster(t, flink.Options{Heap: 512})
	server := cluster.JobServer()
	for name, lose := range map[string]func(*flink.Workers){
		"a task manager": func(*flink.Workers) {
			cluster.KillManager()
			cluster.StartManager()
		},
		"a worker": func(w *flink.Workers) {
			for !w.Kill() {
				time.Sleep(10 * time.Millisecond)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			workers := flink.Processes(t, self(t), flink.Limit{Soft: 256, Hard: 1024})
			p := begin(t, server, workers, folder, "--pause=200ms")
			waitForParts(t, p, folder, parts/2)
			lose(workers)
			check(t, p, folder)
			if n := tries(t, folder); n <= parts {
				t.Errorf("tries of %d parts: got %d, want more", parts, n)
			}
		})
	}
}

// waitForParts waits until this many parts have begun.
func waitForParts(t *testing.T, p *process.Process, folder string, n int) {
	t.Helper()
	for begun := time.Now(); tries(t, folder) < n; time.Sleep(10 * time.Millisecond) {
		select {
		case <-p.Ended():
			t.Fatal("the pipeline ended early")
		default:
		}
		if time.Since(begun) > 5*time.Minute {
			t.Fatal("the pipeline does not begin")
		}
	}
}

// tries returns the number of begun parts, including repetitions.
func tries(t *testing.T, folder string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "part-*"))
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}
