// Package worker makes a program a tidy worker of a Beam runner. Beam's boot copies the program for
// each worker into a folder of /tmp that it never removes; and the SDK keeps an unneeded worker
// waiting for its end, which does not come if only boot is killed, as by Beam's worker pool and
// Flink. A runner starts a worker for each part of a pipeline, so both add up.
package worker

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// patience is how long a worker may outlive its parent.
const patience = time.Second

// Tidy makes this process end soon after its parent, and removes the copy of the program that it
// runs. It only affects workers. Call it between flag.Parse and beam.Init.
func Tidy() {
	if !Is() {
		return
	}
	parent := os.Getppid()
	go func() {
		for os.Getppid() == parent {
			time.Sleep(patience)
		}
		os.Exit(1)
	}()
	if program, err := os.Executable(); err == nil && isCopy(program) {
		_ = os.RemoveAll(filepath.Dir(program)) // a running program needs no file; an error only leaves the file behind
	}
}

// Is reports whether this process is a worker: boot gives the flag --worker.
func Is() bool {
	worker := flag.Lookup("worker")
	return worker != nil && worker.Value.String() == "true"
}

// isCopy recognizes boot's copies by their names, /tmp/bin{number}/worker.
func isCopy(program string) bool {
	number, ok := strings.CutPrefix(filepath.Dir(program), "/tmp/bin")
	return ok && filepath.Base(program) == "worker" && number != "" && strings.Trim(number, "0123456789") == ""
}
