// Command mutations puts faults into the code, one at a time, and reports which test finds each. It
// fails if no test finds a fault, or if a test finds one that mutations.txt lists as not found.
//
//	go run ./internal/testenv/mutations            every fault (make test-mutations)
//	go run ./internal/testenv/mutations -run lease the faults whose promise or file matches
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	json "github.com/goccy/go-json"
	"golang.org/x/sync/errgroup"
)

func main() {
	matching := flag.String("run", "", "try only the faults whose promise or file matches this regular expression")
	schedules := flag.Int("schedules", 300, "schedules that the simulation of publishing tries with each fault that no other test finds")
	parallel := flag.Int("parallel", runtime.NumCPU(), "faults to try at a time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *matching, *schedules, *parallel)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, matching string, schedules, parallel int) error {
	wanted, err := regexp.Compile(matching)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	all, err := read("internal/testenv/mutations/mutations.txt")
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(m mutation) bool {
		return !wanted.MatchString(m.promise) && !slices.ContainsFunc(m.hunks, func(h hunk) bool { return wanted.MatchString(h.file) })
	})
	// A test that fails without a fault would find every fault.
	if by, err := test(ctx, "", suites(all, schedules)); err != nil {
		return fmt.Errorf("without any fault: %w", err)
	} else if by != "" {
		return fmt.Errorf("without any fault: %s fails", by)
	}
	var group errgroup.Group
	group.SetLimit(max(1, parallel))
	wrong := make([]error, len(all))
	for i, m := range all {
		group.Go(func() error {
			begun := time.Now()
			by, err := m.try(ctx, schedules)
			verdict := "found by " + by
			switch {
			case err != nil:
				verdict, wrong[i] = err.Error(), err
			case by == "" && m.redundant == "":
				verdict, wrong[i] = "SURVIVED", fmt.Errorf("%s: no test finds its fault", m.promise)
			case by == "":
				verdict = "redundant"
			case m.redundant != "":
				wrong[i] = fmt.Errorf("%s: listed as redundant, but %s finds it", m.promise, by)
			}
			fmt.Fprintf(out, "%-60s %4.0f s  %s: %s\n", verdict, time.Since(begun).Seconds(), m.hunks[0].file, m.promise)
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	failed := slices.DeleteFunc(wrong, func(err error) bool { return err == nil })
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d faults: see above", len(failed), len(all))
	}
	fmt.Fprintf(out, "%d faults, each found or redundant\n", len(all))
	return nil
}

// A mutation is a fault, like one that a developer could introduce.
type mutation struct {
	promise   string // promise that the fault breaks
	redundant string // why no test finds it; "" if one must
	hunks     []hunk
}

// A hunk replaces a text that occurs once in a file.
type hunk struct{ file, before, after string }

// read reads mutations.txt, which explains its format.
func read(name string) (all []mutation, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for i, block := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		m, err := parse(block)
		if err != nil {
			return nil, fmt.Errorf("%s: block %d: %w", name, i+1, err)
		}
		if m.promise != "" {
			all = append(all, m)
		}
	}
	return all, nil
}

// parse returns an empty mutation for a block of comments.
func parse(block string) (m mutation, err error) {
	file := ""
	for line := range strings.SplitSeq(block, "\n") {
		n := len(m.hunks) - 1
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case strings.HasPrefix(line, "#"):
		case name == "promise":
			m.promise = value
		case name == "redundant":
			m.redundant = value
		case name == "file":
			file = value
		case strings.HasPrefix(line, "-") && (n < 0 || m.hunks[n].file != file || m.hunks[n].after != ""):
			m.hunks = append(m.hunks, hunk{file: file, before: line[1:]})
		case strings.HasPrefix(line, "-"):
			m.hunks[n].before += "\n" + line[1:]
		case strings.HasPrefix(line, "+") && n >= 0:
			m.hunks[n].after = strings.TrimPrefix(m.hunks[n].after+"\n"+line[1:], "\n")
		default:
			return m, fmt.Errorf("%q: begin a line with promise:, redundant:, file:, #, - or +", line)
		}
	}
	if m.promise != "" && len(m.hunks) == 0 {
		return m, fmt.Errorf("%s: the fault changes nothing", m.promise)
	}
	return m, nil
}

// files returns the changed files of a module, by name. A text that does not occur exactly once is
// an error: the code has changed, and the mutation must follow.
func (m mutation) files(root string) (map[string]string, error) {
	changed := map[string]string{}
	for _, h := range m.hunks {
		text, ok := changed[h.file]
		if !ok {
			body, err := os.ReadFile(filepath.Join(root, h.file))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.promise, err)
			}
			text = string(body)
		}
		if n := strings.Count(text, h.before); n != 1 {
			return nil, fmt.Errorf("%s: %s contains this text %d times, want once:\n%s", m.promise, h.file, n, h.before)
		}
		changed[h.file] = strings.Replace(text, h.before, h.after, 1)
	}
	return changed, nil
}

// A suite is some tests of a package.
type suite struct {
	folder    string
	arguments []string // arguments of the test binary
}

// suites returns the tests that must find the faults. Quick tests come first, because they find
// most faults before the slow simulation runs.
func suites(all []mutation, schedules int) (suites []suite) {
	quick := suite{"publisher", []string{"-test.run=Lease|Lock|Doubt|Tak(en|ing)Over|Answer|Interleaved|SameSite|Wait|Mark|Refreshe|PowerFailure"}}
	publishing := suite{"publisher", []string{"-test.skip=^TestSimulation"}}
	simulation := suite{"publisher", []string{"-test.run=^TestSimulation(OfTheWholeAPI)?$", "-schedules=" + strconv.Itoa(schedules), "-test.timeout=20m"}}
	of := map[string][]suite{
		"publisher": {{"publisher/internal/lock", nil}, {"publisher/internal/requests", nil}, {"publisher/internal/transfer", nil}, quick, publishing, {"purger", []string{"-test.run=Naive"}}, simulation},
		"purger":    {{"purger", nil}},
		"generator": {{"generator", []string{"-test.run=Inputs|MissingObjects|HeldRanks|WindowEdges|RefreshedMerge|OutputThatIsRefused"}}, {"generator/internal/output", nil}, {"server", []string{"-test.run=Histor"}}},
		"server": {{"server", []string{"-test.run=Refresh|Reappl|Cop(y|ies)|RolledBack|Mixed|ComesBack|TooOld"}}, {"server", []string{"-test.run=Histor|Feed"}},
			{"publisher", []string{"-test.run=Refreshe"}}, simulation},
		"storage":  {{"storage/internal/s3", nil}, {"storage/checked", nil}, {"storage", nil}, publishing},
		"site":     {{"site/shards", nil}, {"site/rules", nil}, {"site/refresh", nil}, {"site/note", nil}, publishing},
		"cmd":      {{"cmd/internal/publish", []string{"-test.run=Forged|Sample|CommandThat|Nonsense|SecretKey|ListedWhere|MaxAge|VerifyOnline$"}}, {"cmd/internal/live", nil}},
		"internal": {{"internal/staging", nil}},
		"live":     {{"live", nil}, simulation},
		"snapshot": {{"snapshot", []string{"-test.run=Digest|Inputs|Ops"}}, {"snapshot/pieces", nil}, {"cmd/internal/reproduce", []string{"-test.run=Faults|Resumes"}}},
		"source": {{"source", []string{"-test.run=From"}}, {"source/replay", nil}, {"source/badge", []string{"-test.run=Told"}}, {"source/audit", nil}, {"source/chain", []string{"-test.run=CountsThat|NewestBlockIs|QuorumThat"}},
			{"source/chain/provider", []string{"-test.run=Multicall"}}},
	}
	for _, m := range all {
		room, _, _ := strings.Cut(m.hunks[0].file, "/")
		for _, s := range of[room] {
			if !slices.ContainsFunc(suites, func(o suite) bool { return o.folder == s.folder && slices.Equal(o.arguments, s.arguments) }) {
				suites = append(suites, s)
			}
		}
	}
	return suites
}

// try returns the name of the test that finds a fault, or "".
func (m mutation) try(ctx context.Context, schedules int) (by string, err error) {
	changed, err := m.files(".")
	if err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	replace := map[string]string{}
	for name, text := range changed {
		absolute, err := filepath.Abs(name)
		if err != nil {
			return "", err
		}
		replace[absolute] = filepath.Join(folder, path.Base(name))
		if err := os.WriteFile(replace[absolute], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return "", err
	}
	return test(ctx, overlay, suites([]mutation{m}, schedules))
}

// test runs suites, one after the other, until a test fails, and returns its name. Each package is
// built once.
func test(ctx context.Context, overlay string, suites []suite) (by string, err error) {
	folder, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	for _, s := range suites {
		binary := filepath.Join(folder, s.folder+".test")
		if _, err := os.Stat(binary); err != nil {
			build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay="+overlay, "-o", binary, "./"+s.folder)
			if output, err := build.CombinedOutput(); err != nil {
				return "", fmt.Errorf("go test -c ./%s: %w:\n%s", s.folder, err, output)
			}
		}
		if by, err = s.run(ctx, binary); by != "" || err != nil {
			return by, err
		}
	}
	return "", nil
}

var failed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// run returns the name of the first test that fails, or "".
func (s suite) run(ctx context.Context, binary string) (by string, err error) {
	// A fault that makes a test hang counts as found. Only the simulation takes minutes.
	run := exec.CommandContext(ctx, binary, append([]string{"-test.failfast", "-test.timeout=4m"}, s.arguments...)...)
	run.Dir = s.folder
	output, err := run.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		return "", ctx.Err()
	}
	if match := failed.FindSubmatch(output); match != nil {
		return string(match[1]), nil
	}
	if strings.Contains(string(output), "panic: ") {
		return "a panic, or the time limit", nil
	}
	return "", fmt.Errorf("%s: %w:\n%s", run, err, output)
}
