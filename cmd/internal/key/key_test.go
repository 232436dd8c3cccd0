package key

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/followpress/followpress/cmd/internal/command"
)

func run(args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = command.Run("key", "", &Command{}, args, &out, &errs)
	return status, out.String(), errs.String()
}

func TestNameOfKey(t *testing.T) {
	for _, tt := range []struct {
		name   string
		args   []string
		status int
		key    string // how the public key begins
		says   string // on standard error
	}{
		{"given", []string{"--name", "follow.example"}, command.Done, "follow.example+", ""},
		{"none", nil, command.Usage, "", "--name"},
		{"with a space", []string{"--name", "a b"}, command.Usage, "", "--name: the name of a key is \"a b\": use a host name"},
		{"with a plus sign", []string{"--name", "a+b"}, command.Usage, "", "use a host name"},
		{"with a line feed", []string{"--name", "a\nb"}, command.Usage, "", "use a host name"},
		{"with a bidi control", []string{"--name", "a\u202eb"}, command.Usage, "", "use a host name"},
		{"with a zero width space", []string{"--name", "a\u200bb"}, command.Usage, "", "use a host name"},
		{"with a letter that looks like another", []string{"--name", "f\u043ellow.example"}, command.Usage, "", "use a host name"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "key")
			status, stdout, stderr := run(append([]string{"--out", file}, tt.args...)...)
			if status != tt.status || !strings.HasPrefix(stdout, tt.key) || !strings.Contains(stderr, tt.says) {
				t.Fatalf("got status %d, %q, %q, want %d, %q, %q", status, stdout, stderr, tt.status, tt.key, tt.says)
			}
			_, err := os.Stat(file)
			if (err == nil) != (status == command.Done) {
				t.Errorf("got a key file: %t", err == nil)
			}
			if status == command.Done {
				if _, again, _ := run("--from", file); again != stdout {
					t.Errorf("--from: got %q, want %q", again, stdout)
				}
			}
		})
	}
}

// A key file with an invalid key name is rejected by the same rule, and its contents are not shown.
func TestMalformedFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if _, _, stderr := run("--out", file, "--name", "follow.example"); stderr != "" {
		t.Fatal(stderr)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a b", "a+b", "a\nb", "a\u202eb"} {
		if err := os.WriteFile(file, bytes.Replace(text, []byte("follow.example"), []byte(name), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		status, _, stderr := run("--from", file)
		if status != command.Failed || !strings.Contains(stderr, "use a host name, such as follow.example") || strings.Contains(stderr, string(text[len(text)-20:len(text)-1])) {
			t.Errorf("the name %q: got status %d, %s", name, status, stderr)
		}
	}
}
