package conventions

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// stages makes a folder with .ci/test, and puts a fake go first in PATH.
func stages(t *testing.T, standIn string) (dir string) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("needs bash: install it, and have it in the PATH")
	}
	dir = t.TempDir()
	put := func(file, text string, mode os.FileMode) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(dir, ".ci/expected-skips"), "", 0o644)
	for _, name := range []string{".ci/test", "Makefile"} {
		put(filepath.Join(dir, name), read(t, name).text, 0o644)
	}
	bin := t.TempDir()
	put(filepath.Join(bin, "go"), "#!/usr/bin/env bash\n"+standIn, 0o755)
	for name, value := range map[string]string{
		"PATH": bin + string(os.PathListSeparator) + os.Getenv("PATH"), "TMPDIR": t.TempDir(),
		"CI": "", "TEST_NIGHTLY": "",
	} {
		t.Setenv(name, value)
	}
	return dir
}

// run runs lines of bash in a folder, and checks the exit status.
func run(t *testing.T, dir string, status int, lines string) {
	t.Helper()
	bash := exec.Command("bash", "-c", lines)
	bash.Dir = dir
	text, err := bash.CombinedOutput()
	if bash.ProcessState == nil || bash.ProcessState.ExitCode() != status {
		t.Errorf("%s: got %v, want status %d\n%s", lines, err, status, text)
	}
}

// Jobs with secrets name actions by commit, so that a moved tag has no effect.
func TestPinned(t *testing.T) {
	var files []string
	for _, pattern := range []string{".github/workflows/*.yml", "action.yml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: got %d files and the error %v", pattern, len(found), err)
		}
		files = append(files, found...)
	}
	named := regexp.MustCompile(`(?m)^\s*(?:- )?uses: ([^.].*)$`)
	pinned := regexp.MustCompile(`^\S+@(?:[0-9a-f]{40} # v\d)`)
	for _, file := range files {
		for _, m := range named.FindAllStringSubmatch(read(t, file).text, -1) {
			if !pinned.MatchString(m[1]) {
				t.Errorf("%s: got %s, want a digest", file, m[1])
			}
		}
	}
}

// A stage fails if its tests cannot be found, or do not run.
func TestStagesFail(t *testing.T) {
	const (
		list  = "if [ $1 = list ]; then echo followpress/a; echo followpress/explorer; exit; fi\n"
		fine  = "echo '--- PASS: TestA (0.00s)'\n"
		ended = "echo 'ok  \tfollowpress/a\t0.1s'; echo 'ok  \tfollowpress/explorer\t0.1s'\n"
		// TestB and TestC need servers
		alone    = "echo '    --- SKIP: TestB/on_MinIO (0.00s)'; echo 'ok  \tfollowpress/a\t0.1s'; echo '--- SKIP: TestC (0.00s)'; echo 'ok  \tfollowpress/explorer\t0.1s'\n"
		unlike   = "if [ -z \"$TEST_SERVERS\" ]; then " + "echo '--- PASS: TestA (0.00s)'; " + alone + "exit; fi\n"
		selected = "case \"$*\" in *'^(TestB|TestC)$'*followpress/a*followpress/explorer | *'-C browsers '* | *'-C beam '*) ;; *) exit 1 ;; esac\n"
	)
	for _, test := range []struct {
		standIn, stage string
		status         int
	}{
		{list + unlike + selected + fine + ended, "unit race servers browser beam", 0},
		{list + unlike + selected + fine + ended, "servers", 0}, // runs unit
		{"if [ $1 = list ]; then echo followpress/a; exit 1; fi\n" + fine + ended, "unit", 1},
		{list + "echo 'ok  \tfollowpress/a\t0.1s [no tests to run]'\n", "flink", 1},
		{list + unlike + fine + ended + "exit 1\n", "servers", 1},
		{list + unlike + fine + "echo '--- SKIP: TestB (0.00s)'\n" + ended, "servers", 1},
		{list + fine + ended, "servers", 1}, // nothing is skipped without servers
	} {
		dir := stages(t, test.standIn)
		run(t, dir, test.status, "export CI=true; bash .ci/test "+test.stage)
	}
	// .ci/run runs make test first, so unit does not run again but appears in the summary
	dir := stages(t, list+unlike+selected+fine+ended)
	run(t, dir, 0, "export CI=true; bash .ci/test unit && echo 'test: ; false' >Makefile && UNIT_LOG=.tools/test-unit.log bash .ci/test servers"+
		" && [ $(grep -c followpress/a .tools/test-summary) = 2 ]")
}

// Each test that the race stage omits exists, in a package of that stage.
func TestRaceLeavesOutTests(t *testing.T) {
	script := read(t, ".ci/test").text
	var names []string
	for _, match := range regexp.MustCompile(`(?m)^single\+?='([A-Za-z|]+)'$`).FindAllStringSubmatch(script, -1) {
		names = append(names, strings.Split(strings.TrimPrefix(match[1], "|"), "|")...)
	}
	concurrent := regexp.MustCompile(`(?m)^concurrent='followpress/(.*)'$`).FindStringSubmatch(script)
	if len(names) < 20 || concurrent == nil {
		t.Fatalf("got the tests %q in the packages %q, want some", names, concurrent)
	}
	inRace := regexp.MustCompile("^" + concurrent[1])
	var tests strings.Builder
	err := filepath.WalkDir(".", func(path string, _ os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") && inRace.MatchString(filepath.ToSlash(filepath.Dir(path))) {
			tests.WriteString(read(t, path).text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.Contains(tests.String(), "\nfunc Test"+name+"(t *testing.T) {") {
			t.Errorf(".ci/test leaves out Test%s: got no such test in a package that the race detector runs, want one", name)
		}
	}
}
