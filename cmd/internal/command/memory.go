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
	// heapRoom caps the growth of a large heap between collections. Most of a large heap is arrays
	// without pointers, which are nearly free to collect.
	heapRoom = 64 << 20
	// leastGCPercent bounds how often a very large heap is collected.
	leastGCPercent = 8
	// limitShare is the share of the memory of the machine or control group above which collections
	// become more frequent.
	limitShare = 0.9
)

// SaveMemory keeps the heap near its live size, for commands that allocate a lot: it grows by half
// between collections, at most by heapRoom. It also limits memory to that of the machine or the
// control group. GOGC overrides the growth, GOMEMLIMIT the limit.
func SaveMemory() {
	if limit := AvailableMemory(); limit < math.MaxInt64 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(limitShare * float64(limit)))
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		afterCollection(new(collection), gcPercent)
	}
}

// gcPercentWithin applies below a memory limit: garbage may grow to four times the live heap.
// Otherwise a fallback with a few hot objects spends 15 % of its processor time on collections of a
// 4 MiB heap.
const gcPercentWithin = 400

// LimitMemory sets a soft memory limit in bytes for the garbage collector, which collects less often
// below it. GOMEMLIMIT and GOGC override the limit and the growth. Do not combine with SaveMemory,
// which sets both again.
func LimitMemory(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercentWithin)
	}
}

// A collection is an unreachable object whose finalizer runs after the next collection. It is too
// large for the tiny allocator, which shares memory.
type collection [32]byte

// afterCollection adjusts the heap's growth after each collection. percent is the current growth.
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

// growth returns how much a heap of this live size, in bytes, may grow, in percent.
func growth(live uint64) int {
	return int(min(gcPercent, max(leastGCPercent, heapRoom*100/max(live, 1))))
}

// AvailableMemory returns the memory available to this process, in bytes: that of the machine or its
// control group; math.MaxInt64 if unknown.
func AvailableMemory() int64 { return availableMemory(os.DirFS("/")) }

// availableMemory returns the smaller of the machine's memory and the limit of the control group or
// its parents, in bytes; math.MaxInt64 if unknown, as outside Linux. Files: man 5 proc, and the kernel's
// cgroup-v1/memory and cgroup-v2 documents.
func availableMemory(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	const cgroups = "sys/fs/cgroup"
	take := func(name string) {
		text, _ := fs.ReadFile(root, name)                                                          // absent outside Linux
		if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && n > 0 { // version 2 writes max for no limit
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

// linesOf yields the lines of a file; none if unreadable.
func linesOf(root fs.FS, name string) iter.Seq[string] {
	text, _ := fs.ReadFile(root, name)
	return strings.SplitSeq(string(text), "\n")
}
