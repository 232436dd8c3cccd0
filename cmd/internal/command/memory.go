package command

import (
	"bytes"
	"io/fs"
	"iter"
	"math"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
)

const (
	// gcPercent lets the heap grow by half between collections instead of doubling: 150 MiB at the
	// peak of generate instead of 173 over an unchanged tar (Epinions, 2026-11-20).
	gcPercent = 50
	// heapRoom is what a large heap may grow between collections, instead of by half. Most of it are
	// arrays without pointers, which cost a collection next to nothing.
	heapRoom = 64 << 20
	// leastGCPercent bounds how often a very large heap is collected.
	leastGCPercent = 8
	// limitShare is the share of the machine's memory, or of that of the control group, near which
	// collections become more frequent.
	limitShare = 0.9
)

// SaveMemory keeps the heap near what is in use, for commands that allocate a lot: it grows by half
// between collections, and by heapRoom once that is less. It limits memory to what the machine or the
// control group has. GOGC overrides the first, GOMEMLIMIT the second.
func SaveMemory() {
	if limit := AvailableMemory(); limit < math.MaxInt64 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(limitShare * float64(limit)))
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		afterCollection(new(collection), gcPercent)
	}
}

// gcPercentWithin is for a process with a memory limit: below it, garbage may grow to four
// times what is in use before it is collected. A fallback with a few hot objects takes 15 %
// of its processor time for the collector otherwise, since a heap of 4 MiB is full at once.
const gcPercentWithin = 400

// LimitMemory sets a soft memory limit in bytes for the garbage collector, which collects
// less often below it. GOMEMLIMIT and GOGC override the two. It is for a process that does not call
// SaveMemory, which would set them again.
func LimitMemory(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercentWithin)
	}
}

// A collection is garbage, so that its finalizer runs after the next collection. It must not be so
// small that it shares memory with others.
type collection [32]byte

// afterCollection sets the growth of the heap after each collection. percent is the current one.
func afterCollection(c *collection, percent int) {
	runtime.SetFinalizer(c, func(*collection) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		next := percent
		if live[0].Value.Kind() == metrics.KindUint64 {
			next = growth(live[0].Value.Uint64())
		}
		if next != percent {
			debug.SetGCPercent(next)
		}
		afterCollection(new(collection), next)
	})
}

// growth is by how many percent a heap may grow that has so many bytes in use.
func growth(live uint64) int {
	return int(min(gcPercent, max(leastGCPercent, heapRoom*100/max(live, 1))))
}

// AvailableMemory is the memory in bytes that this process can have: that of the machine or of a control group;
// math.MaxInt64 if it is not known.
func AvailableMemory() int64 { return availableMemory(os.DirFS("/")) }

// availableMemory is the memory of the machine in bytes, or that of the control group of the process or
// one above it, whichever is less. It is math.MaxInt64 if neither is known, as on systems other than
// Linux. The files are those of man 5 proc and of the kernel's documents cgroup-v1/memory and cgroup-v2.
func availableMemory(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	const cgroups = "sys/fs/cgroup"
	take := func(name string) {
		text, _ := fs.ReadFile(root, name)                                                          // there is none beside Linux
		if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && n > 0 { // version 2 writes max for none
			least = min(least, n)
		}
	}
	takeGroups := func(hierarchy, group, file string) {
		for dir := path.Join(cgroups, hierarchy, path.Clean("/"+group)); strings.HasPrefix(dir, cgroups); dir = path.Dir(dir) {
			take(path.Join(dir, file))
		}
	}
	for line := range linesOf(root, "proc/self/cgroup") {
		switch parts := strings.SplitN(line, ":", 3); { // number, controllers, path
		case len(parts) != 3:
		case parts[0] == "0" && parts[1] == "":
			takeGroups("", parts[2], "memory.max")
		case slices.Contains(strings.Split(parts[1], ","), "memory"):
			takeGroups("memory", parts[2], "memory.limit_in_bytes")
		}
	}
	for line := range linesOf(root, "proc/meminfo") {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "MemTotal:" {
			if kib, err := strconv.ParseInt(fields[1], 10, 64); err == nil && kib > 0 && kib < math.MaxInt64>>10 {
				least = min(least, kib<<10)
			}
		}
	}
	return least
}

// linesOf are the lines of a file; none if it cannot be read.
func linesOf(root fs.FS, name string) iter.Seq[string] {
	text, _ := fs.ReadFile(root, name)
	return strings.SplitSeq(string(text), "\n")
}
