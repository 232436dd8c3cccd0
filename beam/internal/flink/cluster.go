package flink

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-json"

	"github.com/followpress/followpress/internal/testenv/servers"
)

// A Cluster is a standalone Flink cluster: a job manager, and task managers as separate processes.
// A job that loses a task manager restarts on the others, from the lost results.
type Cluster struct {
	Address string // address of its REST API, 127.0.0.1:port

	t        testing.TB
	options  Options
	settings settings
	job      *program
	managers []*program
	started  int // number of started task managers
}

// sortBuffers is the number of buffers of each result that is complete before it is read. The
// memory below is too small for the default, 512.
const sortBuffers = "64"

// Memory of a Java process besides the heap of its tasks, MiB.
const (
	network   = 256 // buffers between tasks
	direct    = 256 // buffers between Flink and workers
	framework = 128 // Flink itself: on the heap, and as much off the heap
)

// managed returns the memory for sorting, MiB. All groupings of a slot share its part.
func managed(o Options) int { return 128 * o.Slots }

// StartCluster starts a cluster, and waits for its task managers.
func StartCluster(t testing.TB, o Options) *Cluster {
	t.Helper()
	Wanted(t)
	o = o.withDefaults()
	c := &Cluster{Address: servers.FreeAddress(t), t: t, options: o}
	c.settings = settings{
		"jobmanager.rpc.address": local, "jobmanager.bind-host": local, "jobmanager.rpc.port": port(servers.FreeAddress(t)),
		"jobmanager.memory.heap.size": megabytes(o.Heap), "jobmanager.memory.enable-jvm-direct-memory-limit": "false",
		"rest.address": local, "rest.bind-address": local, "rest.port": port(c.Address), "rest.bind-port": port(c.Address),
		"blob.server.port": "0", "web.submit.enable": "false",

		"taskmanager.host": local, "taskmanager.bind-host": local, "taskmanager.rpc.port": "0", "taskmanager.data.port": "0",
		"taskmanager.numberOfTaskSlots": fmt.Sprint(o.Slots),
		// Flink's scripts, which are not on the class path, would compute these.
		"taskmanager.cpu.cores":                        fmt.Sprint(o.Slots),
		"taskmanager.memory.framework.heap.size":       megabytes(framework),
		"taskmanager.memory.framework.off-heap.size":   megabytes(framework),
		"taskmanager.memory.task.heap.size":            megabytes(o.Heap),
		"taskmanager.memory.task.off-heap.size":        "0",
		"taskmanager.memory.managed.size":              megabytes(managed(o)),
		"taskmanager.memory.network.min":               megabytes(network),
		"taskmanager.memory.network.max":               megabytes(network),
		"taskmanager.network.sort-shuffle.min-buffers": sortBuffers,
		"taskmanager.memory.jvm-metaspace.size":        megabytes(256),
		"taskmanager.memory.jvm-overhead.min":          megabytes(192),
		"taskmanager.memory.jvm-overhead.max":          megabytes(192),
		"restart-strategy.type":                        "fixed-delay",
		// A lost task manager takes several attempts: each of its tasks that fails counts.
		"restart-strategy.fixed-delay.attempts":             fmt.Sprint(o.Restarts),
		"restart-strategy.fixed-delay.delay":                "5 s",  // by then Flink has dropped a dead worker
		"heartbeat.interval":                                "1000", // a killed task manager is missed after two heartbeats
		"heartbeat.rpc-failure-threshold":                   "2",
		"slot.request.timeout":                              "120000",
		"cluster.evenly-spread-out-slots":                   "true",
		"classloader.check-leaked-classloader":              "false",
		"classloader.resolve-order":                         "parent-first",
		"cluster.processes.halt-on-fatal-error":             "true",
		"jobmanager.execution.failover-strategy":            "region",
		"taskmanager.network.request-backoff.max":           "2000",
		"taskmanager.registration.timeout":                  "2 min",
		"taskmanager.network.memory.buffer-debloat.enabled": "false",
	}
	c.job = java(t, t.TempDir(), o.Heap, direct+network, "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint",
		"--configDir", c.settings.write(t))
	c.job.until(t, "answers at "+c.Address, func() bool { _, err := c.known(); return err == nil })
	for range o.Managers {
		c.StartManager()
	}
	return c
}

// StartManager adds a task manager, and waits until the cluster knows it.
func (c *Cluster) StartManager() {
	c.t.Helper()
	folder := c.t.TempDir()
	c.started++
	name := fmt.Sprintf("manager-%d", c.started)
	s := maps.Clone(c.settings)
	s["taskmanager.resource-id"], s["io.tmp.dirs"] = name, filepath.Join(folder, "tmp")
	p := java(c.t, folder, c.options.Heap+framework, framework+direct+network, "org.apache.flink.runtime.taskexecutor.TaskManagerRunner",
		"--configDir", s.write(c.t))
	c.managers = append(c.managers, p)
	p.until(c.t, "is a task manager of the cluster", func() bool {
		names, err := c.known()
		return err == nil && slices.Contains(names, name)
	})
}

// known returns the names of the task managers that the cluster knows. It takes a while to miss
// one.
func (c *Cluster) known() (names []string, err error) {
	var answer struct {
		TaskManagers []struct {
			ID string `json:"id"`
		} `json:"taskmanagers"`
	}
	if err := c.ask("/taskmanagers", &answer); err != nil {
		return nil, err
	}
	for _, manager := range answer.TaskManagers {
		names = append(names, manager.ID)
	}
	return names, nil
}

// Finished returns the number of finished tasks of all jobs.
func (c *Cluster) Finished() (tasks int) {
	c.t.Helper()
	var answer struct {
		Jobs []struct {
			Tasks struct {
				Finished int `json:"finished"`
			} `json:"tasks"`
		} `json:"jobs"`
	}
	if err := c.ask("/jobs/overview", &answer); err != nil {
		c.t.Fatal(err)
	}
	for _, job := range answer.Jobs {
		tasks += job.Tasks.Finished
	}
	return tasks
}

// ask requests a path of the REST API.
func (c *Cluster) ask(path string, answer any) error {
	client := http.Client{Timeout: 10 * time.Second}
	response, err := client.Get("http://" + c.Address + path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: got status %s", path, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// KillManager kills the oldest running task manager with SIGKILL, like the loss of a machine. Its
// workers continue until they notice.
func (c *Cluster) KillManager() {
	c.t.Helper()
	if len(c.managers) == 0 {
		c.t.Fatal("no task manager runs")
	}
	c.managers[0].Signal(syscall.SIGKILL)
	if _, killed := c.managers[0].Wait(); !killed {
		c.t.Fatalf("a task manager had ended before it was killed; the end of its log:\n%s", c.managers[0].end())
	}
	c.managers = c.managers[1:]
}

// JobServer starts a job server that runs its pipelines on the cluster.
func (c *Cluster) JobServer() *JobServer {
	c.t.Helper()
	return start(c.t, c.Address, c.options.Slots, c.options.Heap, settings{})
}

// settings are a configuration of Flink.
type settings map[string]string

// write writes the settings into a folder, in Flink's format.
func (s settings) write(t testing.TB) string {
	t.Helper()
	folder := t.TempDir()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&text, "%s: %s\n", name, s[name])
	}
	if err := os.WriteFile(filepath.Join(folder, "flink-conf.yaml"), []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return folder
}

func megabytes(n int) string { return fmt.Sprintf("%dm", n) }
