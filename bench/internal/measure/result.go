package measure

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"time"

	json "github.com/goccy/go-json"
)

// A Result is a table with what is needed to compare it with that of another run.
type Result struct {
	Bench    string  `json:"bench"`    // which benchmark: the name of its file
	Date     string  `json:"date"`     // the day, in UTC
	Commit   string  `json:"commit"`   // "+" follows that of a work tree with changes
	Snapshot string  `json:"snapshot"` // what was measured with; empty: it is part of the benchmark
	Machine  Machine `json:"machine"`
	Rows     []Row   `json:"rows"`
}

// A Machine is where a benchmark ran. Seconds of two machines say nothing about each other; ratios do.
type Machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"`
	Memory int    `json:"memory"` // in GiB, rounded
	System string `json:"system"` // like "linux/amd64"
}

// NewResult is the result of a benchmark that has just run, on this machine, with the code of the work
// tree in the working directory.
func NewResult(bench, snapshot string, table *Table) Result {
	return Result{
		Bench: bench, Date: time.Now().UTC().Format(time.DateOnly), Commit: commit(),
		Snapshot: snapshot, Machine: thisMachine(), Rows: table.Rows,
	}
}

// commit is "unknown" without git. Results of benchmarks are no changes: one bench writes them before
// the next one runs.
func commit() string {
	hash, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := string(bytes.TrimSpace(hash))
	if exec.Command("git", "diff", "--quiet", "HEAD", "--", ":/", ":(top,exclude)bench/results").Run() != nil {
		name += "+"
	}
	return name
}

var (
	cpuModel    = regexp.MustCompile(`(?m)^model name\s*:\s*(.+)$`)
	totalMemory = regexp.MustCompile(`(?m)^MemTotal:\s*(\d+) kB$`)
)

// thisMachine has no CPU and no memory where the system has no /proc.
func thisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if match := cpuModel.FindSubmatch(text); match != nil {
			m.CPU = string(match[1])
		}
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		if match := totalMemory.FindSubmatch(text); match != nil {
			kib, _ := strconv.Atoi(string(match[1])) // the pattern has digits
			m.Memory = (kib + 1<<19) >> 20
		}
	}
	return m
}

// File is the name of the result's file in a folder of results.
func (r *Result) File() string { return r.Bench + ".json" }

// Write writes the result into a folder, which it creates if necessary.
func (r *Result) Write(dir string) error {
	text, err := json.MarshalIndentWithOption(r, "", "  ", json.DisableHTMLEscape())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, r.File()), append(text, '\n'), 0o644)
}

// ParseResult reads a result. Rows of rounds that are not there, or with a target that nobody can reach
// or miss, are an error.
func ParseResult(text []byte) (Result, error) {
	var r Result
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		return r, err
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.Measure == "" || row.Judged().Rounds < 1 || (row.Other == nil) != (row.Ratio == nil) {
			return r, fmt.Errorf("row %d (%q) is incomplete", i+1, row.Measure)
		}
		if _, err := row.target(); err != nil {
			return r, err
		}
	}
	return r, nil
}
