package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/cmd/internal/preview"
	"github.com/followpress/followpress/fixtures"
	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/siteflags"
)

var update = flag.Bool("update", false, "write docs/commands.md again")

const root = "../.."

// commands returns all commands of followpress.
func commands(t *testing.T) []command.Leaf {
	t.Helper()
	return command.Leaves(command.NewParser("followpress", about, &verbs{}).Model)
}

// documents returns the README, the docs, and all other texts with commands, by path.
func documents(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, file)
		switch {
		case entry.IsDir() && (entry.Name() == ".tools" || entry.Name() == ".git" || entry.Name() == "node_modules" || entry.Name() == "out"):
			return fs.SkipDir
		case name == "CHANGELOG.md": // names what there was
		case filepath.Ext(name) == ".md", name == "action.yml", filepath.Base(filepath.Dir(name)) == "workflows":
			text, err := os.ReadFile(file)
			all[name] = string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var (
	fence = regexp.MustCompile("(?ms)^ *```[^\n]*\n(.*?)^ *```$")
	span  = regexp.MustCompile("`([^`]+)`")

	// A followpress command in code, and its flags. Words before followpress belong to the shell,
	// to systemd or to docker. args belong to a container.
	usage    = regexp.MustCompile(`(?:(?:^|[ "]|bin/)followpress +|args: \[)((?:snapshot +)?[a-z]+)\b(.*)`)
	bareVerb = regexp.MustCompile(`^([a-z]+) +(--.*)`)
	flagUsed = regexp.MustCompile(`(?:^|[\s\[(])--([a-z0-9_-]+)`)
	variable = regexp.MustCompile(`FOLLOWPRESS_[A-Z_]+`)
	program  = regexp.MustCompile(`go (?:run|build|install|test) .*?(\./[a-z/]+)`)
	target   = regexp.MustCompile(`^make ([a-z-]+)`)

	// The command of another module, up to the flags of Beam.
	usageOfBeam = regexp.MustCompile(`(?:^|/)followpress-beam (--.*?)(?: -- |$)`)
	// Its fields, which kong makes flags of.
	fieldOfBeam = regexp.MustCompile(`(?m)^\t([A-Z]\w*) +\w+ +\x60(?:.*\bname:"([^"]+)")?.*help:`)
	word        = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)
)

// codeOf returns the lines of fenced code and the code spans of Markdown, and the whole
// text of other files.
func codeOf(name, text string) []string {
	if filepath.Ext(name) != ".md" {
		return strings.Split(text, "\n")
	}
	var code []string
	for _, block := range fence.FindAllStringSubmatch(text, -1) {
		code = append(code, strings.Split(strings.ReplaceAll(block[1], "\\\n", ""), "\n")...)
	}
	for _, s := range span.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		code = append(code, strings.ReplaceAll(s[1], "\n", " "))
	}
	return code
}

// Flags of rclone, of bench, of Beam, Flink and Java that code spans name.
var otherFlags = strings.Fields("transfers checkers s3-no-check-bucket s3-no-head no-check-dest no-traverse ignore-checksum checksum fast-list objects rounds" +
	" flink-master")

// beamFlags returns the flags of followpress-beam, which is in a module that this one cannot import.
func beamFlags(t *testing.T) (names []string) {
	t.Helper()
	for _, name := range []string{"beam/internal/launch/launch.go", "internal/siteflags/siteflags.go"} {
		source, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fieldOfBeam.FindAllStringSubmatch(string(source), -1) {
			names = append(names, cmp.Or(f[2], strings.ToLower(word.ReplaceAllString(f[1], "$1$3-$2$4"))))
		}
	}
	if !slices.Contains(names, "environment-config") || !slices.Contains(names, "profile-url") {
		t.Errorf("followpress-beam: got the flags %q, want more", names)
	}
	return append(names, "help")
}

// Everything that documents name exists: verbs, their flags and variables, programs to run,
// targets of make.
func TestDocumentsNameWhatExists(t *testing.T) {
	flags := map[string][]string{"": {"help", "help-all", "version"}}          // by verb; all of them by ""
	variables := []string{"FOLLOWPRESS_SIGN_KEY", "FOLLOWPRESS_BADGE_API_KEY"} // secrets: no flag has them
	for _, verb := range commands(t) {
		flags[verb.Path] = []string{"help", "help-all"}
		for _, f := range verb.Node.Flags {
			flags[verb.Path] = append(flags[verb.Path], f.Name)
			variables = append(variables, f.Envs...)
		}
		flags[""] = append(flags[""], flags[verb.Path]...)
	}
	ofBeam := beamFlags(t)
	flags[""] = slices.Concat(flags[""], otherFlags, ofBeam)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for name, text := range documents(t) {
		for _, v := range variable.FindAllString(text, -1) {
			if !slices.Contains(variables, v) {
				t.Errorf("%s: got the variable %s, want one of a flag", name, v)
			}
		}
		for _, line := range codeOf(name, text) {
			line = strings.TrimSpace(line)
			if line == "followpress site 1" { // the first line of a note
				continue
			}
			verb, rest := "", ""
			if u := usageOfBeam.FindStringSubmatch(line); u != nil {
				for _, f := range flagUsed.FindAllStringSubmatch(u[1], -1) {
					if !slices.Contains(ofBeam, f[1]) {
						t.Errorf("%s: got the flag --%s, want one of followpress-beam, in %q", name, f[1], line)
					}
				}
			} else if u := usage.FindStringSubmatch(line); u != nil {
				verb, rest = u[1], u[2]
				found++
			} else if u := bareVerb.FindStringSubmatch(line); u != nil && flags[u[1]] != nil {
				verb, rest = u[1], u[2]
			} else if strings.HasPrefix(line, "--") {
				rest = line
			}
			if flags[verb] == nil {
				t.Errorf("%s: got the verb %s, want one of followpress, in %q", name, verb, line)
				continue
			}
			for _, f := range flagUsed.FindAllStringSubmatch(rest, -1) {
				if !slices.Contains(flags[verb], f[1]) {
					t.Errorf("%s: got the flag --%s, want one of %q, in %q", name, f[1], strings.TrimSpace("followpress "+verb), line)
				}
			}
			if p := program.FindStringSubmatch(line); p != nil {
				if _, err := os.Stat(filepath.Join(root, p[1])); err != nil {
					t.Errorf("%s: %v, in %q", name, err, line)
				}
			}
			if m := target.FindStringSubmatch(line); m != nil && !bytes.Contains(makefile, []byte("\n"+m[1]+":")) {
				t.Errorf("%s: got the target %s, want one of the Makefile, in %q", name, m[1], line)
			}
		}
	}
	if found < 20 {
		t.Errorf("documents: got %d uses of followpress, want 20 at least", found)
	}
}

// No two flags of a command have the same help: it would describe one of them wrongly.
func TestEachFlagHasItsOwnHelp(t *testing.T) {
	for _, verb := range commands(t) {
		names := map[string]string{}
		for _, flags := range verb.Node.AllFlags(false) {
			for _, flag := range flags {
				if other, ok := names[flag.Help]; ok {
					t.Errorf("%s: --%s and --%s have the same help: %s", verb.Path, other, flag.Name, flag.Help)
				}
				names[flag.Help] = flag.Name
			}
		}
	}
}

// docs/commands.md contains the help of each verb, so each flag is documented.
func TestCommandsPage(t *testing.T) {
	const file, mark = root + "/docs/commands.md", "<!-- From here on generated by `make docs`. -->\n"
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(old), mark)
	if !ok {
		t.Fatalf("docs/commands.md: got no line %q", mark)
	}
	page := head + mark
	for _, verb := range commands(t) {
		var help, stderr bytes.Buffer
		if status := command.Run("followpress", about, &verbs{}, append(strings.Fields(verb.Path), "--help-all"), &help, &stderr); status != command.Done {
			t.Fatalf("%s --help-all: got status %d, %s", verb.Path, status, &stderr)
		}
		page += fmt.Sprintf("\n## %s\n\n```text\n%s```\n", verb.Path, &help)
	}
	switch {
	case *update:
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	case page != string(old):
		t.Error("docs/commands.md: got other help than the commands have: run `make docs`")
	}
}

var (
	sample = regexp.MustCompile("(?ms)^```console\n\\$ ([^\n]+)\n(.*?)^```$")
	// Lines that differ between runs.
	progressLine = regexp.MustCompile(`(?m)^.* (in \S+s|so far.*)\n`)
	size         = regexp.MustCompile(`(?m)^site +([0-9]+) objects`)
	timing       = regexp.MustCompile(`\b(\d+(\.\d+)?(s|ms|µs)|\d+ objects/s)\b`)
	address      = regexp.MustCompile(`127\.0\.0\.1:\d+`)
)

// The README shows the output of the commands, without progress and durations.
func TestSampleOutput(t *testing.T) {
	all := documents(t)
	samples := sample.FindAllStringSubmatch(all["README.md"], -1)
	if len(samples) != 3 {
		t.Errorf("README.md: got %d examples with output, want 3", len(samples))
	}
	folder := t.TempDir()
	if err := os.CopyFS(filepath.Join(folder, "fixtures/demo"), fixtures.Demo()); err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	t.Setenv("FOLLOWPRESS_NO_SYNC", "1")
	t.Setenv("GITHUB_STEP_SUMMARY", "") // a job that runs this test sets it
	for _, s := range samples {
		args, want := strings.Fields(strings.ReplaceAll(s[1], "/tmp/www", folder+"/www")), s[2]
		var got string
		switch {
		case s[1] == "go run ./cmd/preview":
			got, want = previewed(t), strings.TrimPrefix(want, "…\n") // … is the report
		case args[0] == "followpress":
			var out bytes.Buffer
			if status := command.Run("followpress", about, &verbs{}, args[1:], &out, &out); status != command.Done {
				t.Fatalf("%s: got status %d, %s", s[1], status, &out)
			}
			got = progressLine.ReplaceAllString(strings.ReplaceAll(out.String(), folder+"/www", "/tmp/www"), "")
		default:
			t.Errorf("README.md: got the example %q, want a command of followpress", s[1])
		}
		if got, want := timing.ReplaceAllString(got, "TIME"), timing.ReplaceAllString(want, "TIME"); got != want {
			t.Errorf("%s: got\n%s\nwant as in README.md\n%s", s[1], got, want)
		}
		if objects := size.FindStringSubmatch(got); objects != nil && !strings.Contains(all["docs/costs.md"], "| objects | "+objects[1]+" |") {
			t.Errorf("docs/costs.md: got another number of objects of the demo than %s", objects[1])
		}
	}
}

// previewed returns the output of preview until it serves, with the default address.
func previewed(t *testing.T) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out := stopper{stop: stop}
	var c preview.Command
	if _, err := command.NewParser("preview", "", &c).Parse([]string{"--addr=127.0.0.1:0"}); err != nil {
		t.Fatal(err)
	}
	if err := c.Run(ctx, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	return address.ReplaceAllString(out.String(), "127.0.0.1:8080")
}

// A stopper stops a server when it says that it serves.
type stopper struct {
	strings.Builder
	stop func()
}

func (s *stopper) Write(text []byte) (int, error) {
	s.stop()
	return s.Builder.Write(text)
}

// example returns the history that docs/sources.md shows: a list is minted, and its account follows others.
func example() *history.History {
	h := &history.History{Chains: history.Production()}
	base := h.Chains[0]
	account := func(n byte) history.Address { return history.Address(bytes.Repeat([]byte{n}, 20)) }
	token, slot := history.Number(0), history.Number(0xabc)
	add := func(chain uint64, number uint64, logs ...history.Log) {
		h.Blocks = append(h.Blocks, history.Block{Chain: chain, Number: number, Time: 1_727_000_000 + int64(number%1000)*2, Logs: logs})
	}
	op := func(code byte, of history.Address, tag string) history.Log {
		return history.Op(base.Records[0], slot, slices.Concat([]byte{1, code, 1, 1}, of[:], []byte(tag)))
	}
	owner := account(0x11)
	add(base.ID, 20190000,
		history.Transfer(*base.Registry, history.Address{}, owner, token),
		history.Location(*base.Registry, token, history.LocationBytes(history.Number(base.ID), base.Records[0], slot)),
		history.AccountMetadata(*base.Accounts, owner, "primary-list", token[:]),
		history.ListMetadata(base.Records[0], slot, "user", owner[:]))
	add(base.ID, 20190100, op(1, account(0x22), ""), op(1, account(0x33), ""), op(3, account(0x33), "top8"))
	add(base.ID, 20190200, op(1, account(0x22), ""), op(3, account(0x22), ""), op(2, account(0x22), ""))
	for _, c := range h.Chains[1:] {
		add(c.ID, c.First+100)
	}
	return h
}

var sourceSample = regexp.MustCompile("(?s)```console\n\\$ followpress (snapshot chain [^\n]*)\n(.*?)```")

// TestSourcesSampleOutput runs the commands of docs/sources.md whose output it shows.
func TestSourcesSampleOutput(t *testing.T) {
	samples := sourceSample.FindAllStringSubmatch(documents(t)[filepath.Join("docs", "sources.md")], -1)
	if len(samples) != 2 {
		t.Errorf("docs/sources.md: got %d examples with output, want 2", len(samples))
	}
	t.Chdir(t.TempDir())
	t.Setenv("FOLLOWPRESS_NO_SYNC", "1")
	played := example()
	rpc, nodes := startNodes(t, played)
	var hosts []string
	for i, c := range played.Chains {
		hosts = append(hosts, strings.TrimPrefix(nodes[c.ID].URL, "http://"), []string{"base.example", "op.example", "eth.example"}[i])
	}
	t.Setenv("FOLLOWPRESS_RPC", strings.Join(rpc, ";"))
	for _, s := range samples {
		var out bytes.Buffer
		if status := command.Run("followpress", about, &verbs{}, strings.Fields(s[1]), &out, &out); status != command.Done {
			t.Fatalf("%s: got status %d, %s", s[1], status, &out)
		}
		got := strings.NewReplacer(hosts...).Replace(progressLine.ReplaceAllString(out.String(), ""))
		if got, want := timing.ReplaceAllString(got, "TIME"), timing.ReplaceAllString(s[2], "TIME"); got != want {
			t.Errorf("%s: got\n%s\nwant as in docs/sources.md\n%s", s[1], got, want)
		}
	}
}

// Each command says in a few lines what it does, with an example, and explains each flag
// with its variable.
func TestEachCommandHasHelp(t *testing.T) {
	for _, leaf := range commands(t) {
		name, verb := leaf.Path, leaf.Node
		if verb.Help == "" || verb.ClosestGroup() == nil {
			t.Errorf("%s: got help %q in group %v, want both", name, verb.Help, verb.ClosestGroup())
		}
		if _, example, _ := strings.Cut(verb.Detail, "\n\t"); name != "version" && !strings.Contains(example, "followpress "+name) {
			t.Errorf("%s: got %q, want an example", name, verb.Detail)
		}
		if words := len(strings.Fields(verb.Detail)); words > 70 {
			t.Errorf("%s: got %d words before the flags, want four lines", name, words)
		}
		var help, stderr bytes.Buffer
		if status := command.Run("followpress", about, &verbs{}, append(strings.Fields(name), "--help-all"), &help, &stderr); status != command.Done || stderr.Len() > 0 {
			t.Errorf("%s --help-all: got status %d, %s", name, status, &stderr)
		}
		text := strings.Join(strings.Fields(help.String()), " ")
		for _, flag := range verb.Flags {
			variables := len(flag.Envs) > 0 && strings.Contains(text, "$"+flag.Envs[0])
			if flag.Name == "help" || flag.Name == "version" {
				variables = len(flag.Envs) == 0
			}
			if flag.Tag.Has(siteflags.Tag) && flag.Hidden {
				if !strings.Contains(text, siteflags.Member(flag)) || !variables && name == "generate" || flag.Help == "" {
					t.Errorf("%s: the setting %s is explained: got no, want yes", name, flag.Name)
				}
				continue
			}
			if !strings.Contains(text, "--"+flag.Name) || !variables || flag.Help == "" || flag.Hidden {
				t.Errorf("%s: --%s and %q are explained: got no, want yes", name, flag.Name, flag.Envs)
			}
		}
	}
}

// --help fits on a screen or two, and counts the flags that only --help-all shows.
func TestHelpIsShort(t *testing.T) {
	const most = 80
	shown := regexp.MustCompile(`(?m)^ {2,6}(?:-\w, +)?--[a-z]`)
	left := regexp.MustCompile(`(?m)^  .*\((\d+)\)$`)
	for _, leaf := range commands(t) {
		ask := func(how string) string {
			var help bytes.Buffer
			if status := command.Run("followpress", about, &verbs{}, append(strings.Fields(leaf.Path), how), &help, &help); status != command.Done {
				t.Errorf("%s %s: got status %d", leaf.Path, how, status)
			}
			return help.String()
		}
		short, all := ask("--help"), ask("--help-all")
		if lines := strings.Count(short, "\n"); lines > most {
			t.Errorf("%s --help: got %d lines, want at most %d", leaf.Path, lines, most)
		}
		first, more, _ := strings.Cut(short, "\nMore flags, ")
		more, _, _ = strings.Cut(more, "  Settings of the site (")
		sum := len(shown.FindAllString(first, -1))
		for _, count := range left.FindAllStringSubmatch(more, -1) {
			n, err := strconv.Atoi(count[1])
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
		if want := len(shown.FindAllString(all, -1)); sum != want {
			t.Errorf("%s --help: got %d shown and counted flags, want the %d of --help-all", leaf.Path, sum, want)
		}
	}
}
