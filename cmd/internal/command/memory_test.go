package command

import (
	"math"
	"testing"
	"testing/fstest"
)

// TestAvailableMemory: the smallest limit counts, of the machine and of all groups above the
// process.
func TestAvailableMemory(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"another system": {nil, math.MaxInt64},
		"no group":       {map[string]string{"proc/meminfo": "MemTotal:       2048 kB\nMemFree: 1 kB\n"}, 2 << 20},
		"a container of version 2": {map[string]string{
			"proc/meminfo": "MemTotal: 2048 kB\n", "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1048576\n",
		}, 1 << 20},
		"no limit in version 2": {map[string]string{
			"proc/meminfo": "MemTotal: 2048 kB\n", "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n",
		}, 2 << 20},
		"a group above in version 2": {map[string]string{
			"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "7000\n", "sys/fs/cgroup/a/b/memory.max": "9000\n",
		}, 7000},
		"version 1": {map[string]string{
			"proc/self/cgroup":                                 "4:cpu,cpuacct:/x\n3:memory:/x\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":       "9223372036854771712\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes":     "8000\n",
			"sys/fs/cgroup/memory/other/memory.limit_in_bytes": "10\n",
		}, 8000},
		"nonsense": {map[string]string{
			"proc/meminfo": "MemTotal: lots\nMemTotal:\n", "proc/self/cgroup": "0::\n::\n\nx\n0::../../..\n", "sys/fs/cgroup/memory.max": "-5",
		}, math.MaxInt64},
	} {
		root := fstest.MapFS{}
		for file, text := range test.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := availableMemory(root); got != test.want {
			t.Errorf("%s: got %d bytes, want %d", name, got, test.want)
		}
	}
}

// TestGrowth: small heaps grow by half, large ones by 64 MiB, very large ones by 8 %.
func TestGrowth(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{0: 50, 1 << 20: 50, 128 << 20: 50, 256 << 20: 25, 640 << 20: 10, 8 << 30: 8} {
		if got := growth(live); got != want {
			t.Errorf("a heap of %d MiB: got %d %%, want %d", live>>20, got, want)
		}
	}
}
