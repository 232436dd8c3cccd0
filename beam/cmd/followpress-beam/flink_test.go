package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	jobpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/jobmanagement_v1"

	"github.com/followpress/followpress/beam/internal/difftest"
	"github.com/followpress/followpress/beam/internal/flink"
	"github.com/followpress/followpress/beam/internal/launch"
	"github.com/followpress/followpress/beam/internal/loopback"
	"github.com/followpress/followpress/beam/internal/pipeline"
	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/site"
)

// commandRole is set in the environment of a process that runs the command.
const commandRole = "BE_FOLLOWPRESS_BEAM"

func TestMain(m *testing.M) {
	if os.Getenv(commandRole) != "" || launch.IsWorker(os.Args[1:]) {
		main()
	}
	loopback.Main(m)
}

// begin starts the command on a Flink job server, with parts in a folder.
func begin(t *testing.T, c difftest.Case, out string, server *flink.JobServer, workers *flink.Workers, flags ...string) *process.Process {
	t.Helper()
	args := append(c.Flags(), "--out="+out, "--runner=universal")
	args = append(append(append(args, server.Flags()...), flags...), "--")
	return process.Start(t, process.Self(t, []string{commandRole + "=1"}, append(args, workers.Flags()...)...))
}

// end waits for the command and compares its site with that of generate.
func end(t *testing.T, c difftest.Case, out string, p *process.Process, patience time.Duration) {
	t.Helper()
	select {
	case <-p.Ended():
	case <-time.After(patience):
		t.Fatalf("the pipeline took more than %v", patience)
	}
	if status, _ := p.Wait(); status != 0 {
		t.Fatalf("status %d: %s", status, p.Stderr())
	}
	c.Check(t, out)
}

// fixture returns a case of a fixture snapshot, cut into files at random.
func fixture(t *testing.T, name, api string) difftest.Case {
	folder := filepath.Join("..", "..", "..", "fixtures", filepath.FromSlash(name))
	c := difftest.Case{Name: name, Snapshot: difftest.Cut(t, 1, folder), Config: site.Config{API: api, Explorer: true}}
	if c.Config.EFP() {
		c.Config.HistoryWindow = site.Window(site.DefaultHistoryWindow)
	}
	return c
}

// The site equals generate's, byte for byte, even if every account with more than three records
// about it counts as hot.
func TestFlinkSitesEqualThoseOfGenerate(t *testing.T) {
	server := flink.Start(t, flink.Options{})
	cases := []difftest.Case{
		fixture(t, "demo", site.APISpec), fixture(t, "conformance/snapshot", site.APISpec),
		fixture(t, "demo", site.APIEFP), fixture(t, "conformance-efp/snapshot", site.APIEFP),
	}
	for seed := range uint64(4) {
		cases = append(cases, difftest.Random(t, seed))
	}
	for _, c := range cases {
		t.Run("LOOPBACK "+c.Name+" "+c.Config.API, func(t *testing.T) {
			out := t.TempDir()
			end(t, c, out, begin(t, c, out, server, flink.Loopback(), "--hot-after=3"), 5*time.Minute)
		})
	}
	c := fixture(t, "demo", site.APIEFP)
	t.Run("EXTERNAL", func(t *testing.T) {
		out := t.TempDir()
		workers := flink.StartPool(t, self(t), flink.Limit{Soft: 512, Hard: 1024})
		end(t, c, out, begin(t, c, out, server, workers), 5*time.Minute)
	})
}

func self(t *testing.T) string {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// A cluster loses a worker, then a task manager with its worker, while the pipeline runs.
func TestFlinkClusterLosesMembers(t *testing.T) {
	cluster := flink.StartCluster(t, flink.Options{Restarts: 1000}) // each lost task and each lost result counts
	server := cluster.JobServer()
	c := difftest.Case{Name: "ring", Snapshot: ring(t, 20_000, 5), Config: site.Config{API: site.APISpec}}
	out := t.TempDir()
	workers := flink.Processes(t, self(t), flink.Limit{Soft: 512, Hard: 1024})
	p := begin(t, c, out, server, workers)
	await := func(tasks int) {
		t.Helper()
		for started := time.Now(); cluster.Finished() < tasks; time.Sleep(100 * time.Millisecond) {
			select {
			case <-p.Ended():
				t.Fatalf("the command has ended before %d tasks had finished: %s", tasks, p.Stderr())
			default:
			}
			if time.Since(started) > 4*time.Minute {
				t.Fatalf("got %d tasks, want %d", cluster.Finished(), tasks)
			}
		}
	}
	await(40) // more than 200 follow
	if !workers.Kill() {
		t.Fatal("no worker runs")
	}
	await(100)
	cluster.KillManager()
	cluster.StartManager()
	end(t, c, out, p, 8*time.Minute)
}

// TestGivenSnapshotInACluster makes the sites of any snapshot, cut into as many parts as the
// command chooses.
func TestGivenSnapshotInACluster(t *testing.T) {
	folder := os.Getenv("TEST_BEAM_SNAPSHOT")
	if folder == "" {
		t.Skip("TEST_BEAM_SNAPSHOT names no folder; run make test-scale")
	}
	for _, api := range apis() {
		t.Run(api, func(t *testing.T) {
			inOneGiB(t, difftest.Case{Name: "given", Snapshot: folder, Config: site.Config{API: api, Explorer: true}}, "--parallelism=0")
		})
	}
}

// apis returns both, unless TEST_BEAM_API names one.
func apis() []string {
	if one := os.Getenv("TEST_BEAM_API"); one != "" {
		return []string{one}
	}
	return []string{site.APISpec, site.APIEFP}
}

// Values about a single popular account are spread over many keys, and fit into workers of 1 GiB.
func TestFlinkPopularAccount(t *testing.T) {
	followers, hotAfter := 20_000, 500
	if more := os.Getenv("TEST_BEAM_FOLLOWERS"); more != "" { // make test-scale
		var err error
		if followers, err = strconv.Atoi(more); err != nil {
			t.Fatal(err)
		}
		hotAfter = pipeline.DefaultHotAfter
	}
	folder := popular(t, followers)
	for _, api := range apis() {
		t.Run(api, func(t *testing.T) {
			c := difftest.Case{Name: "popular", Snapshot: folder, Config: site.Config{API: api}}
			inOneGiB(t, c, fmt.Sprintf("--hot-after=%d", hotAfter), "--parallelism=0")
		})
	}
}

// inOneGiB makes a site on a cluster of one task manager, in workers with 1 GiB, and logs the cost.
func inOneGiB(t *testing.T, c difftest.Case, flags ...string) {
	t.Helper()
	cluster := flink.StartCluster(t, flink.Options{Managers: 1, Heap: 2048})
	server, workers, out := cluster.JobServer(), flink.Processes(t, self(t), flink.Limit{Soft: 900, Hard: 1024}), t.TempDir()
	begun := time.Now()
	p := begin(t, c, out, server, workers, flags...)
	<-p.Ended()
	status, _ := p.Wait()
	count, memory := workers.Seen()
	t.Logf("%v with %d workers of at most %d MiB", time.Since(begun).Round(time.Second), count, memory>>20)
	if status != 0 {
		t.Fatalf("status %d: %s", status, p.Stderr())
	}
	c.CheckSums(t, out)
}

// popular returns a snapshot of accounts that all follow one account.
func popular(t *testing.T, followers int) string {
	t.Helper()
	const perFile = 100_000
	folder := t.TempDir()
	difftest.WriteFiles(t, folder, map[string]string{
		"meta.json": `{"format":1,"as_of":"2026-11-01T00:00:00Z"}`, "events.ndjson": "", "badges.ndjson": "",
	})
	for first := 0; first < followers; first += perFile {
		var lists, records, rows strings.Builder
		for i := first + 1; i <= min(first+perFile, followers); i++ {
			fmt.Fprintf(&lists, `{"token_id":"%d","owner":"%s"}`+"\n", i, address(i))
			fmt.Fprintf(&rows, `{"address":"%s","primary_list":"%d","ens":{"name":"a%d.eth"}}`+"\n", address(i), i, i)
			fmt.Fprintf(&records, `{"token_id":"%d","version":1,"record_type":"address","data":"%s"}`+"\n", i, address(0))
		}
		number := first / perFile
		difftest.WriteFiles(t, folder, map[string]string{
			fmt.Sprintf("lists-%03d.ndjson", number): lists.String(), fmt.Sprintf("accounts-%03d.ndjson", number): rows.String(),
			fmt.Sprintf("records-%03d.ndjson", number): records.String(),
		})
	}
	return folder
}

// ring returns a snapshot of accounts in a ring, each of which follows the next ones.
func ring(t *testing.T, accounts, follows int) string {
	var lists, records, rows strings.Builder
	for i := range accounts {
		fmt.Fprintf(&lists, `{"token_id":"%d","owner":"%s"}`+"\n", i, address(i))
		fmt.Fprintf(&rows, `{"address":"%s","primary_list":"%d","ens":{"name":"a%d.eth"}}`+"\n", address(i), i, i)
		for next := range follows {
			fmt.Fprintf(&records, `{"token_id":"%d","version":1,"record_type":"address","data":"%s"}`+"\n", i, address((i+next+1)%accounts))
		}
	}
	folder := t.TempDir()
	difftest.WriteFiles(t, folder, map[string]string{
		"meta.json": `{"format":1,"as_of":"2026-11-01T00:00:00Z"}`, "events.ndjson": "", "badges.ndjson": "",
		"lists.ndjson": lists.String(), "accounts.ndjson": rows.String(), "records.ndjson": records.String(),
	})
	return folder
}

func address(i int) string { return fmt.Sprintf("0x%040x", i*7919+1) }

// An invalid row gives one clear line, on Flink as on Prism.
func TestFlinkFaults(t *testing.T) {
	server := flink.Start(t, flink.Options{})
	folder := ring(t, 10, 1)
	difftest.WriteFiles(t, folder, map[string]string{"badges.ndjson": "{}\n"})
	c := difftest.Case{Name: "invalid", Snapshot: folder, Config: site.Config{API: site.APISpec}}
	out := t.TempDir()
	p := begin(t, c, out, server, flink.Loopback())
	status, _ := p.Wait()
	lines := strings.Split(strings.TrimSpace(p.Stderr()), "\n")
	last := lines[len(lines)-1]
	if want := c.WantError(t).Error(); status != 1 || !strings.HasSuffix(last, want) {
		t.Errorf("status %d: got %q, want %q", status, last, want)
	}
	if _, err := os.Stat(filepath.Join(out, "part-root")); err == nil {
		t.Error("there is a root")
	}
}

// An interrupted command cancels its job.
func TestFlinkInterrupted(t *testing.T) {
	server := flink.Start(t, flink.Options{})
	c := difftest.Case{Snapshot: ring(t, 1000, 5), Config: site.Config{API: site.APISpec}}
	out := t.TempDir()
	workers := flink.Processes(t, self(t), flink.Limit{})
	p := begin(t, c, out, server, workers)
	for started := time.Now(); !slices.Contains(server.Jobs(t), jobpb.JobState_RUNNING); time.Sleep(100 * time.Millisecond) {
		if time.Since(started) > 2*time.Minute {
			t.Fatalf("jobs: got %v, want one that runs", server.Jobs(t))
		}
	}
	p.Signal(syscall.SIGTERM)
	status, _ := p.Wait()
	if status != 128+int(syscall.SIGTERM) || strings.TrimSpace(p.Stderr()) != "followpress-beam: interrupted" {
		t.Errorf("got status %d, %q", status, p.Stderr())
	}
	if got := server.Jobs(t); !slices.Equal(got, []jobpb.JobState_Enum{jobpb.JobState_CANCELLED}) {
		t.Errorf("jobs: got %v, want one that was cancelled", got)
	}
	if _, err := os.Stat(filepath.Join(out, "part-root")); err == nil {
		t.Error("there is a root")
	}
}
