// Package flink runs pipelines on Flink in tests: Beam's job server with Flink in its own process,
// or with a cluster of several processes, and workers started by the program itself, a worker pool
// or Flink. `make flink-tools` installs the required tools. Everything ends with its test, and a
// failed test shows the ends of all logs. Tests that need Flink are skipped unless TEST_FLINK is
// set.
//
// The API may change at any time: it serves this project only.
package flink

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	jobpb "github.com/apache/beam/sdks/v2/go/pkg/beam/model/jobmanagement_v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/followpress/followpress/internal/testenv/process"
	"github.com/followpress/followpress/internal/testenv/servers"
)

// patience is how long a program may take to start. On an idle machine this takes some seconds.
const patience = 2 * time.Minute

// Wanted skips the test unless TEST_FLINK is set.
func Wanted(t testing.TB) {
	t.Helper()
	if os.Getenv("TEST_FLINK") == "" {
		t.Skip("needs Flink: `make test-flink` gets and runs it")
	}
}

// Options configures the processes of Flink.
type Options struct {
	Heap     int // heap of each Java process that runs tasks, MiB; 0 means 1024
	Slots    int // tasks of one kind that a task manager runs at a time, the parallelism of a job server; 0 means 2
	Managers int // number of task managers of a cluster; 0 means 2
	Restarts int // number of restarts of a job, or part of it, before it fails; 0 means 10
}

func (o Options) withDefaults() Options {
	if o.Heap == 0 {
		o.Heap = 1024
	}
	if o.Slots == 0 {
		o.Slots = 2
	}
	if o.Managers == 0 {
		o.Managers = 2
	}
	if o.Restarts == 0 {
		o.Restarts = 10
	}
	return o
}

// A JobServer is Beam's job server. It accepts pipelines and runs them on Flink.
type JobServer struct {
	Endpoint string // 127.0.0.1:port

	parallelism int
}

// Start starts a job server whose Flink is in its own process.
func Start(t testing.TB, o Options) *JobServer {
	t.Helper()
	Wanted(t)
	o = o.withDefaults()
	return start(t, "[local]", o.Slots, o.Heap, settings{
		// In one process all slots share these. The default for the network, 64 MiB, is too small
		// for long pipelines.
		"taskmanager.memory.network.min":               megabytes(network),
		"taskmanager.memory.network.max":               megabytes(network),
		"taskmanager.network.sort-shuffle.min-buffers": sortBuffers,
		"taskmanager.memory.managed.size":              megabytes(managed(o)),
	})
}

// start starts a job server for the Flink at an address.
func start(t testing.TB, master string, parallelism, heap int, s settings) *JobServer {
	t.Helper()
	server := &JobServer{Endpoint: servers.FreeAddress(t), parallelism: parallelism}
	folder := t.TempDir()
	p := java(t, folder, heap, direct+network, "org.apache.beam.runners.flink.FlinkJobServerDriver",
		"--flink-master="+master, "--flink-conf-dir="+s.write(t),
		"--job-host="+local, "--job-port="+port(server.Endpoint),
		"--artifact-port="+port(servers.FreeAddress(t)), "--artifacts-dir="+filepath.Join(folder, "artifacts"),
		"--expansion-port=-1") // none
	p.listens(t, server.Endpoint)
	return server
}

// Flags returns the flags of Beam's runner "universal" for this job server. The command
// followpress-beam has the same flags.
func (s *JobServer) Flags() []string {
	return []string{"--endpoint=" + s.Endpoint, fmt.Sprintf("--parallelism=%d", s.parallelism)}
}

// Jobs returns the states of all jobs of the server.
func (s *JobServer) Jobs(t testing.TB) (states []jobpb.JobState_Enum) {
	t.Helper()
	connection, err := grpc.NewClient(s.Endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	answer, err := jobpb.NewJobServiceClient(connection).GetJobs(t.Context(), &jobpb.GetJobsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range answer.GetJobInfo() {
		states = append(states, job.GetState())
	}
	return states
}

const local = "127.0.0.1"

// opens are packages that Beam and Flink access by reflection, which Java 16 and later prohibit.
var opens = []string{"java.lang", "java.lang.invoke", "java.net", "java.nio", "java.text", "java.time", "java.util", "java.util.concurrent"}

// java starts a main class of the class path. Its log and its temporary files are in folder. heap
// and offHeap limit its memory, MiB.
func java(t testing.TB, folder string, heap, offHeap int, class string, args ...string) *program {
	t.Helper()
	if _, err := exec.LookPath("java"); err != nil {
		t.Fatalf("%v: `make flink-tools` installs it", err)
	}
	temporary := filepath.Join(folder, "tmp")
	if err := os.MkdirAll(temporary, 0o755); err != nil {
		t.Fatal(err)
	}
	arguments := []string{
		fmt.Sprintf("-Xmx%dm", heap), fmt.Sprintf("-XX:MaxDirectMemorySize=%dm", offHeap), "-XX:+ExitOnOutOfMemoryError",
		"-Djava.io.tmpdir=" + temporary, "-Djava.net.preferIPv4Stack=true", "-Dorg.slf4j.simpleLogger.showDateTime=true",
		"-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
		"-Dorg.slf4j.simpleLogger.log.org.apache.flink.configuration.GlobalConfiguration=warn",
		"-cp", filepath.Join(tool(t, "lib"), "*"),
	}
	for _, name := range opens {
		arguments = append(arguments, "--add-opens=java.base/"+name+"=ALL-UNNAMED")
	}
	return run(t, folder, exec.Command("java", append(append(arguments, class), args...)...))
}

// A program is a process whose output goes to a file.
type program struct {
	*process.Process
	log string
}

// run starts a command in a folder, with a log there. The process ends with the test.
func run(t testing.TB, folder string, command *exec.Cmd) *program {
	t.Helper()
	p := &program{log: filepath.Join(folder, "log")}
	shell := exec.Command("sh", append([]string{"-c", `exec "$@" >>"$0" 2>&1`, p.log, command.Path}, command.Args[1:]...)...)
	shell.Dir, shell.SysProcAttr = folder, command.SysProcAttr
	shell.Env = append(os.Environ(), command.Env...)
	p.Process = process.Start(t, shell)
	t.Cleanup(func() {
		p.Signal(os.Kill)
		<-p.Ended()
		if t.Failed() {
			t.Logf("end of the log of %s:\n%s", strings.Join(command.Args, " "), p.end())
		}
	})
	return p
}

// output returns the log.
func (p *program) output() string {
	log, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(log)
}

// end returns the end of the log.
func (p *program) end() string {
	const most = 20_000
	log := p.output()
	return log[max(0, len(log)-most):]
}

// listens waits until the program accepts connections.
func (p *program) listens(t testing.TB, address string) {
	t.Helper()
	p.until(t, "listens at "+address, func() bool {
		connection, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return false
		}
		_ = connection.Close() // nothing was sent
		return true
	})
}

// until waits until done returns true; what names the event.
func (p *program) until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for begun := time.Now(); !done(); time.Sleep(50 * time.Millisecond) {
		select {
		case <-p.Ended():
			t.Fatalf("a program has ended before it %s; the end of its log:\n%s", what, p.end())
		default:
		}
		if time.Since(begun) > patience {
			t.Fatalf("after %v: got no program that %s; the end of its log:\n%s", patience, what, p.end())
		}
	}
}

// tool returns the path of a tool that the Makefile installed in .tools/flink, at the root of the
// main module.
func tool(t testing.TB, name string) string {
	t.Helper()
	module, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("find the root of the module: %v", err)
	}
	path := filepath.Join(filepath.Dir(string(module)), "..", ".tools", "flink", name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: `make flink-tools` gets it", err)
	}
	return path
}

func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }
