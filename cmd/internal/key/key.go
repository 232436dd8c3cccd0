// Package key implements the command key, which makes the key that signs sites and prints its public key.
package key

import (
	"bytes"
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

// Command is key with its flags.
type Command struct {
	Name string `placeholder:"NAME" help:"Name of the key in signatures: a host name, such as the site's. All keys of a site share one name. Required with --out."`
	Out  string `placeholder:"KEYFILE" help:"Make a key, and write it to this new file, readable only by its owner."`
	From string `placeholder:"FILE" help:"Print the public key of this key file. For an Ed25519 key in an HSM or KMS: a file with its public part, in PEM or DER, with --name."`
}

// Help returns the text below the first line of --help.
func (*Command) Help() string {
	return `Readers check a site with the public key on standard output. Keep the file secret: anyone who has it can sign for you.

	followpress key --name follow.example --out site.key`
}

// Validate checks the flags before the run; kong calls it.
func (c *Command) Validate() error {
	if (c.Out == "") == (c.From == "") {
		return errors.New("name one of --out and --from")
	}
	if c.Out != "" && c.Name == "" {
		return errors.New("missing flags: --name=NAME")
	}
	if c.Name != "" {
		if err := note.CheckName(c.Name); err != nil {
			return fmt.Errorf("--name: %w", err)
		}
	}
	return nil
}

// Run prints the public key.
func (c *Command) Run(_ context.Context, stdout, _ io.Writer) error {
	public, err := c.public()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, public)
	return err
}

func (c *Command) public() (string, error) {
	if c.From != "" {
		public, err := c.publicFrom()
		if err != nil {
			return "", fmt.Errorf("--from=%s: %w", c.From, err)
		}
		return public, nil
	}
	private, public, err := note.NewKey(c.Name)
	if err != nil {
		return "", err
	}
	if err := write(c.Out, private+"\n"); errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("--out=%s: the file exists, and keys are never overwritten; name another file, or print its public key with --from", c.Out)
	} else if err != nil {
		return "", fmt.Errorf("--out: %w", err)
	}
	return public, nil
}

// maxFile is the maximum size of a key file, in bytes.
const maxFile = 16 << 10

// Read reads a secret key file.
func Read(name string) (string, error) {
	text, err := readSmall(name)
	if err != nil {
		return "", fmt.Errorf("read the key: %w", err)
	}
	return string(text), nil
}

func readSmall(name string) (text []byte, err error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // O_NONBLOCK: do not block on a pipe without a writer
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
	case len(text) > maxFile:
		err = fmt.Errorf("%s has more than %d KiB, so it is not a key", name, maxFile>>10)
	case len(text) == 0:
		err = fmt.Errorf("%s is empty", name)
	}
	return text, err
}

// write writes a new file atomically, readable only by its owner.
func write(name, text string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(name), ".followpress-key-") // mode 0600
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

// publicFrom returns the public key of a key file, or of a file with a public key in the form other tools
// write (RFC 8410).
func (c *Command) publicFrom() (string, error) {
	text, err := readSmall(c.From)
	if err != nil {
		return "", err
	}
	private := bytes.HasPrefix(bytes.TrimSpace(text), []byte("PRIVATE+KEY+"))
	switch {
	case private && c.Name != "":
		return "", errors.New("the key in the file has a name; omit --name")
	case private:
		return note.Public(string(text))
	case c.Name == "":
		return "", errors.New("not a key file of followpress; for a public key in PEM or DER, add --name")
	}
	if block, _ := pem.Decode(text); block != nil {
		text = block.Bytes
	}
	any, err := x509.ParsePKIXPublicKey(text)
	key, ok := any.(ed25519.PublicKey)
	if err != nil || !ok {
		return "", errors.New("not an Ed25519 public key; want PEM or DER, such as from `openssl pkey -pubout`")
	}
	return note.PublicOf(c.Name, key)
}
