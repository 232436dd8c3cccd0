// Package key is the command that makes the key that signs sites, and shows its public part.
package key

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/followpress/followpress/site/note"
)

// Command is the command with its flags.
type Command struct {
	Name string `placeholder:"NAME" help:"What the key is called in notes: a host name, such as that of the site. All keys of a site have one name. Without it --out takes the name of this host."`
	Out  string `placeholder:"KEYFILE" help:"Make a key, and write it to this new file, which only its owner can read."`
	In   string `placeholder:"KEYFILE" help:"Print the public key of this one again."`
	From string `placeholder:"FILE" help:"Print the public key of an Ed25519 key that an HSM or a KMS keeps, whose public part is in this file, as PEM or DER."`
}

// Help is what --help shows below the first line.
func (*Command) Help() string {
	return `The public key on standard output is what readers check a site with. Keep the file secret: whoever has it can sign for you.

	followpress key --name follow.example --out site.key`
}

// Validate checks the flags before the run; kong calls it.
func (c *Command) Validate() error {
	given := 0
	for _, file := range []string{c.Out, c.In, c.From} {
		if file != "" {
			given++
		}
	}
	switch {
	case given != 1:
		return errors.New("name one of --out, --in and --from")
	case c.From != "" && c.Name == "":
		return errors.New("missing flags: --name=NAME")
	case c.In != "" && c.Name != "":
		return errors.New("--name is that of the key already: use it with --out or --from")
	case c.Name != "":
		if err := note.CheckName(c.Name); err != nil {
			return fmt.Errorf("--name: %w", err)
		}
	}
	return nil
}

// hostname is that of this machine; tests replace it.
var hostname = os.Hostname

// nameByHost names the key after this machine, and says so.
func (c *Command) nameByHost(stderr io.Writer) error {
	name, err := hostname()
	if err == nil {
		err = note.CheckName(name)
	}
	if err != nil {
		return fmt.Errorf("--out takes the name of this host: %w: choose one with --name", err)
	}
	c.Name = name
	_, err = fmt.Fprintf(stderr, "the key is called %s, as this host: --name chooses another name\n", name)
	return err
}

// Run prints the public key.
func (c *Command) Run(_ context.Context, stdout, stderr io.Writer) error {
	if c.Out != "" && c.Name == "" {
		if err := c.nameByHost(stderr); err != nil {
			return err
		}
	}
	public, err := c.public()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, public)
	return err
}

func (c *Command) public() (string, error) {
	switch {
	case c.In != "":
		text, err := Read(c.In)
		if err != nil {
			return "", err
		}
		public, err := note.Public(text)
		if err != nil {
			return "", fmt.Errorf("--in=%s: %w", c.In, err)
		}
		return public, nil
	case c.From != "":
		key, err := publicFrom(c.From)
		if err != nil {
			return "", fmt.Errorf("--from=%s: %w", c.From, err)
		}
		return note.PublicOf(c.Name, key)
	}
	private, public, err := note.NewKey(c.Name)
	if err != nil {
		return "", err
	}
	if err := write(c.Out, private+"\n"); errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("--out=%s: there is a file already, and a key is never overwritten: name another one, or show its public key with --in", c.Out)
	} else if err != nil {
		return "", fmt.Errorf("--out: %w", err)
	}
	return public, nil
}

// maxFile bounds a file with a key.
const maxFile = 16 << 10

// Read reads the file of a secret key.
func Read(name string) (string, error) {
	text, err := readSmall(name)
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	return string(text), nil
}

func readSmall(name string) (text []byte, err error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // else a pipe that nobody writes to is waited for
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
	case len(text) > maxFile:
		err = fmt.Errorf("%s has more than %d KiB: it is no key", name, maxFile>>10)
	case len(text) == 0:
		err = fmt.Errorf("%s is empty", name)
	}
	return text, err
}

// write writes a new file, in one step, that only its owner can read.
func write(name, text string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".followpress-key-") // with the mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), name) // unlike a rename, it replaces nothing
}

// publicFrom reads a public key as tools write it (RFC 8410).
func publicFrom(name string) (ed25519.PublicKey, error) {
	text, err := readSmall(name)
	if err != nil {
		return nil, err
	}
	if block, _ := pem.Decode(text); block != nil {
		text = block.Bytes
	}
	any, err := x509.ParsePKIXPublicKey(text)
	key, ok := any.(ed25519.PublicKey)
	if err != nil || !ok {
		return nil, errors.New("it is no public key of Ed25519: use PEM or DER, as `openssl pkey -pubout` writes it")
	}
	return key, nil
}
