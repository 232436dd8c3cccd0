package key

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/followpress/followpress/cmd/internal/command"
)

// run runs the command with the host name, or error, of a machine.
func run(t *testing.T, host string, hostErr error, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	was := hostname
	t.Cleanup(func() { hostname = was })
	hostname = func() (string, error) { return host, hostErr }
	var out, errs bytes.Buffer
	status = command.Run("key", "", &Command{}, args, &out, &errs)
	return status, out.String(), errs.String()
}

func TestNameOfKey(t *testing.T) {
	for _, tt := range []struct {
		name    string
		args    []string
		host    string
		hostErr error
		status  int
		key     string // how the public key begins
		says    string // on standard error
	}{
		{"given", []string{"--name", "follow.example"}, "host-1", nil, command.Done, "follow.example+", ""},
		{"that of the host", nil, "host-1", nil, command.Done, "host-1+", "the key is named host-1, after this host"},
		{"a host without a proper name", nil, "my_host", nil, command.Failed, "", "choose a name with --name"},
		{"a host without a name", nil, "", errors.New("no name"), command.Failed, "", "no name; choose a name with --name"},
		{"with a space", []string{"--name", "a b"}, "", nil, command.Usage, "", "--name: the name of a key is \"a b\": use a host name"},
		{"with a plus sign", []string{"--name", "a+b"}, "", nil, command.Usage, "", "use a host name"},
		{"with a line feed", []string{"--name", "a\nb"}, "", nil, command.Usage, "", "use a host name"},
		{"with a bidi control", []string{"--name", "a\u202eb"}, "", nil, command.Usage, "", "use a host name"},
		{"with a zero width space", []string{"--name", "a\u200bb"}, "", nil, command.Usage, "", "use a host name"},
		{"with a letter that looks like another", []string{"--name", "f\u043ellow.example"}, "", nil, command.Usage, "", "use a host name"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "key")
			status, stdout, stderr := run(t, tt.host, tt.hostErr, append([]string{"--out", file}, tt.args...)...)
			if status != tt.status || !strings.HasPrefix(stdout, tt.key) || !strings.Contains(stderr, tt.says) {
				t.Fatalf("got status %d, %q, %q, want %d, %q, %q", status, stdout, stderr, tt.status, tt.key, tt.says)
			}
			_, err := os.Stat(file)
			if (err == nil) != (status == command.Done) {
				t.Errorf("got a key file: %t", err == nil)
			}
			if status == command.Done {
				if _, again, _ := run(t, "", nil, "--from", file); again != stdout {
					t.Errorf("--from: got %q, want %q", again, stdout)
				}
			}
		})
	}
}

// A key file with an invalid key name is rejected by the same rule, and its contents are not shown.
func TestMalformedFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if _, _, stderr := run(t, "host", nil, "--out", file, "--name", "follow.example"); stderr != "" {
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
		status, _, stderr := run(t, "", nil, "--from", file)
		if status != command.Failed || !strings.Contains(stderr, "use a host name, such as follow.example") || strings.Contains(stderr, string(text[len(text)-20:len(text)-1])) {
			t.Errorf("the name %q: got status %d, %s", name, status, stderr)
		}
	}
}
