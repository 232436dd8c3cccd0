package publish

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/followpress/followpress/cmd/internal/key"
	"github.com/followpress/followpress/publisher"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/note"
)

// signing are the flags for signing a site.
type signing struct {
	Sign        []string `sep:"none" placeholder:"KEYFILE" help:"Sign the site with this key from followpress key; repeatable. FOLLOWPRESS_SIGN_KEY may hold a key itself."`
	SignWith    string   `placeholder:"CMD" help:"Sign with a key in an HSM or KMS: the shell runs CMD with the text on standard input; CMD prints the Ed25519 signature, 64 bytes or base64."`
	SignWithKey string   `placeholder:"PUBLIC" help:"Public key for --sign-with, as followpress key --from prints it."`
	Unsigned    bool     `help:"Publish unsigned even to a signed bucket, whose signature is removed first."`

	ReplaceNote bool `help:"Sign even if none of these keys signed the bucket before."`

	secrets map[string]string // content of key files, since a pipe can be read only once
}

// secretVariable holds a secret key. It is not a flag: other users can see a process's flags.
const secretVariable = "FOLLOWPRESS_SIGN_KEY"

func (s *signing) checkSigning() error {
	_, err := s.open(context.Background())
	return err
}

// open reads the keys; nil if there are none.
func (s *signing) open(ctx context.Context) (*publisher.Signing, error) { //nolint:gocyclo // a case for each way to name a key
	var publics []string
	opened := &publisher.Signing{ReplaceNote: s.ReplaceNote}
	add := func(private string) error {
		public, err := note.Public(private)
		if err != nil {
			return err
		}
		signer, err := note.ParsePrivate(private)
		opened.Signers, publics = append(opened.Signers, signer), append(publics, public)
		return err
	}
	for _, file := range s.Sign {
		if strings.Contains(file, "PRIVATE+KEY") {
			return nil, errors.New("--sign: name a key file, or set " + secretVariable + ": others can see the flags of a process")
		}
		private, err := s.read(file)
		if err == nil {
			err = add(private)
		}
		if err != nil {
			return nil, fmt.Errorf("--sign=%s: %w", file, err)
		}
	}
	if private := os.Getenv(secretVariable); private != "" {
		if err := add(private); err != nil {
			return nil, fmt.Errorf("%s: %w", secretVariable, err)
		}
	}
	switch {
	case s.SignWith == "" && s.SignWithKey == "":
	case s.SignWith == "" || s.SignWithKey == "":
		return nil, errors.New("--sign-with and --sign-with-key go together: a command that signs, and its public key")
	default:
		signer, err := note.External(s.SignWithKey, func(text []byte) ([]byte, error) { return signWith(ctx, s.SignWith, text) })
		if err != nil {
			return nil, fmt.Errorf("--sign-with-key: %w", err)
		}
		opened.Signers, publics = append(opened.Signers, signer), append(publics, s.SignWithKey)
	}
	switch {
	case len(publics) == 0 && s.ReplaceNote:
		return nil, errors.New("--replace-note needs --sign or --sign-with")
	case len(publics) == 0:
		return nil, nil
	case s.Unsigned && os.Getenv(secretVariable) != "":
		return nil, errors.New("--unsigned excludes a key in " + secretVariable + "; unset it")
	case s.Unsigned:
		return nil, errors.New("--unsigned excludes --sign and --sign-with")
	}
	var err error
	opened.Keys, err = note.ParseKeys(publics...)
	return opened, err
}

// keys returns the public keys of the signers; none without a signature.
func (s *signing) keys(ctx context.Context) (note.Keys, error) {
	opened, err := s.open(ctx)
	if opened == nil || err != nil {
		return note.Keys{}, err
	}
	return opened.Keys, nil
}

// read reads a key file, only once.
func (s *signing) read(file string) (private string, err error) {
	private, known := s.secrets[file]
	if known {
		return private, nil
	}
	if private, err = key.Read(file); err != nil {
		return "", err
	}
	if s.secrets == nil {
		s.secrets = map[string]string{}
	}
	s.secrets[file] = private
	return private, nil
}

// Limits for a command that signs.
const (
	signTime   = 30 * time.Second
	signOutput = 4 << 10
)

// signWith runs a command that signs a text.
func signWith(ctx context.Context, command string, text []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, signTime, fmt.Errorf("no signature in %s", signTime))
	defer cancel()
	run := exec.CommandContext(ctx, "sh", "-c", command)
	run.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, secretVariable+"=") })
	out, complaint := &firstBytes{most: signOutput}, &firstBytes{most: signOutput}
	run.Stdin, run.Stdout, run.Stderr = bytes.NewReader(text), out, complaint
	run.WaitDelay = time.Second // for children of the command
	err := run.Run()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil {
		said := ""
		if text := strings.TrimSpace(string(complaint.bytes)); text != "" {
			said = ": " + site.Quoted(text)
		}
		return nil, fmt.Errorf("--sign-with: the command: %w%s", err, said)
	}
	if out.over {
		return nil, fmt.Errorf("--sign-with: the command printed more than %d KiB; it must print only the signature", signOutput>>10)
	}
	if len(out.bytes) == 64 {
		return out.bytes, nil
	}
	signature, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(out.bytes)))
	if err != nil || len(signature) != 64 {
		return nil, fmt.Errorf("--sign-with: the command printed %d bytes, not an Ed25519 signature: 64 bytes, or base64 of them", len(out.bytes))
	}
	return signature, nil
}

// firstBytes keeps the first bytes written to it.
type firstBytes struct {
	most  int
	bytes []byte
	over  bool
}

var _ io.Writer = (*firstBytes)(nil)

// Write never fails.
func (b *firstBytes) Write(text []byte) (int, error) {
	room := min(b.most-len(b.bytes), len(text))
	b.bytes, b.over = append(b.bytes, text[:room]...), b.over || room < len(text)
	return len(text), nil
}
