// Command compare says which figures of the benchmarks got worse by more than their noise. Without
// arguments it compares the results in bench/results with those of the last commit; OLD and NEW are two
// files or two folders of results instead. It ends with status 1 if something is worse or no longer
// measured, and with 2 if it cannot read them. Where results cannot be compared it says why.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/followpress/followpress/bench/internal/measure"
)

// results is the folder of the results, below that of the repository.
const results = "bench/results"

func main() {
	commit := flag.String("with", "HEAD", "the commit to compare with, if there are no arguments")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "Usage: compare [-with COMMIT] [OLD NEW]")
		flag.PrintDefaults()
	}
	flag.Parse()
	worse, err := run(os.Stdout, *commit, flag.Args())
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(2)
	case worse:
		os.Exit(1)
	}
}

// run says whether something got worse.
func run(out io.Writer, commit string, args []string) (worse bool, err error) {
	old, new := committed(commit), folder(results)
	switch len(args) {
	case 0:
	case 2:
		old, new = folder(args[0]), folder(args[1])
		if info, err := os.Stat(args[1]); err != nil {
			return false, err
		} else if !info.IsDir() {
			return compareFiles(out, args[0], args[1])
		}
	default:
		return false, errors.New("want two arguments, OLD and NEW, or none")
	}
	names, err := new.names()
	if err != nil {
		return false, err
	}
	before, err := old.names()
	if err != nil {
		return false, err
	}
	for _, name := range before {
		if !slices.Contains(names, name) {
			fmt.Fprintf(out, "%s: gone\n", name)
			worse = true
		}
	}
	for _, name := range names {
		before, err := old.read(name)
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Fprintf(out, "%s: nothing to compare with\n", name)
			continue
		} else if err != nil {
			return false, err
		}
		after, err := new.read(name)
		if err != nil {
			return false, err
		}
		if reflect.DeepEqual(before, after) {
			fmt.Fprintf(out, "%s: no new result\n", name)
			continue
		}
		report := compare(before, after)
		report.write(out)
		worse = worse || report.worse()
	}
	return worse, nil
}

// compareFiles compares two results, whatever their files are called.
func compareFiles(out io.Writer, old, new string) (worse bool, err error) {
	before, err := folder(filepath.Dir(old)).read(filepath.Base(old))
	if err != nil {
		return false, err
	}
	after, err := folder(filepath.Dir(new)).read(filepath.Base(new))
	if err != nil {
		return false, err
	}
	report := compare(before, after)
	report.write(out)
	return report.worse(), nil
}

// A place has results. read returns fs.ErrNotExist for one that it does not have.
type place struct {
	names func() ([]string, error)
	text  func(name string) ([]byte, error)
}

func (p place) read(name string) (measure.Result, error) {
	text, err := p.text(name)
	if err != nil {
		return measure.Result{}, err
	}
	parse := measure.ParseResult
	if filepath.Ext(name) == filepath.Ext(goBench) {
		parse = parseGoBench
	}
	result, err := parse(text)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return result, err
}

// folder has the results of a folder.
func folder(dir string) place {
	return place{
		names: func() ([]string, error) {
			var names []string
			for _, pattern := range []string{"*.json", goBench} {
				paths, err := filepath.Glob(filepath.Join(dir, pattern))
				if err != nil {
					return nil, err
				}
				for _, path := range paths {
					names = append(names, filepath.Base(path))
				}
			}
			if len(names) == 0 {
				return nil, fmt.Errorf("%s has no results", dir)
			}
			return names, nil
		},
		text: func(name string) ([]byte, error) { return os.ReadFile(filepath.Join(dir, name)) },
	}
}

// committed has the results of a commit.
func committed(commit string) place {
	names := func() (names []string, err error) {
		listed, err := git("ls-tree", "--name-only", commit, "--", results+"/")
		for name := range strings.Lines(string(listed)) {
			names = append(names, path.Base(strings.TrimSpace(name)))
		}
		return names, err
	}
	return place{names, func(name string) ([]byte, error) {
		of, err := names()
		if err != nil {
			return nil, err
		}
		file := results + "/" + name
		if !slices.Contains(of, name) {
			return nil, fmt.Errorf("%s of %s: %w", file, commit, fs.ErrNotExist)
		}
		return git("show", commit+":./"+file)
	}}
}

func git(args ...string) ([]byte, error) {
	text, err := exec.Command("git", args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(exit.Stderr)))
	}
	return text, err
}
