package completion

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// Characters that are special in a shell are quoted in its script. cmd/followpress runs
// the scripts of a real command.
func TestScriptsQuote(t *testing.T) {
	var grammar struct {
		Make struct {
			Mode string `enum:"fast,slow" default:"fast" placeholder:"MODE" help:"It's [odd]: $(touch x) 'quoted'. More."`
		} `cmd:"" help:"Make \"it\"; now."`
		Old struct {
			Gone bool `hidden:""`
		} `cmd:"" help:"Old."`
		Completion Command `cmd:"" help:"Print."`
	}
	for shell, want := range map[string]string{
		"bash": `'make --mode') words='fast slow' ;;`,
		"zsh":  `'--mode=[It'\''s \[odd\]]:MODE:''(fast slow)'`,
		"fish": `-l mode -r -f -a 'fast slow' -d 'It'\''s [odd]'`,
	} {
		parser, err := kong.New(&grammar, kong.Name("tool"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse([]string{"completion", shell}); err != nil {
			t.Fatal(err)
		}
		var script bytes.Buffer
		if err := grammar.Completion.Run(t.Context(), &script, nil); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(script.String(), want) || strings.Contains(script.String(), "gone") {
			t.Errorf("%s: got a script without %s, or with a hidden flag:\n%s", shell, want, &script)
		}
		if _, err := exec.LookPath(shell); err != nil {
			continue
		}
		check := exec.Command(shell, "-n")
		check.Stdin = &script
		if output, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s -n: got %v: %s", shell, err, output)
		}
	}
}
