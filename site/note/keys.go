package note

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"regexp"

	"golang.org/x/mod/sumdb/note"

	"github.com/followpress/followpress/site"
)

// PublicOf returns the public key, in the format of NewKey, of a key that is kept elsewhere.
func PublicOf(name string, key ed25519.PublicKey) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	return note.NewEd25519VerifierKey(name, key)
}

// An external key signs with a function.
type external struct {
	verifier note.Verifier
	sign     func(text []byte) ([]byte, error)
}

// External returns a signer for a public key whose secret key is kept elsewhere. It verifies each result of sign.
func External(public string, sign func(text []byte) ([]byte, error)) (Signer, error) {
	v, err := newVerifier(public)
	if err != nil {
		return nil, err
	}
	return external{v, sign}, nil
}

// Name implements Signer.
func (e external) Name() string { return e.verifier.Name() }

// KeyHash implements Signer.
func (e external) KeyHash() uint32 { return e.verifier.KeyHash() }

// Sign implements Signer.
func (e external) Sign(text []byte) ([]byte, error) {
	signature, err := e.sign(text)
	if err != nil {
		return nil, err
	}
	if len(signature) != ed25519.SignatureSize || !e.verifier.Verify(text, signature) {
		return nil, errors.New("the signature is not one of the public key")
	}
	return signature, nil
}

// hostName matches DNS host names (RFC 1123, 2.1): ASCII letters, digits and hyphens, separated by dots. So no two
// names look alike, and none contains a separator of notes or keys.
var hostName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*$`)

// maxName is the maximum length of a host name.
const maxName = 253

// CheckName returns an error unless a key may have the name.
func CheckName(name string) error {
	if len(name) > maxName || !hostName.MatchString(name) {
		return fmt.Errorf("the name of a key is %s: use a host name, such as follow.example: letters a to z, digits, hyphens and dots", site.Quoted(name))
	}
	return nil
}

// named matches the start of a key, with any text as its name.
var named = regexp.MustCompile(`(?s)^(.*?)\+[0-9a-f]{8}\+`)

// checkNameOf is CheckName for the name at the start of a key. It accepts a text without one.
func checkNameOf(key string) error {
	if parts := named.FindStringSubmatch(key); parts != nil {
		return CheckName(parts[1])
	}
	return nil
}
