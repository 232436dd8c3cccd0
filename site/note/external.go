package note

import (
	"crypto/ed25519"
	"errors"
	"fmt"

	"golang.org/x/mod/sumdb/note"

	"github.com/followpress/followpress/site"
)

// PublicOf is the public key, as NewKey writes it, of a key that something else keeps.
func PublicOf(name string, key ed25519.PublicKey) (string, error) {
	text, err := note.NewEd25519VerifierKey(name, key)
	if err == nil {
		_, err = note.NewVerifier(text)
	}
	if err != nil {
		return "", fmt.Errorf("the name %s: use one word without a plus sign, such as follow.example", site.Quoted(name))
	}
	return text, nil
}

// An external key signs somewhere else.
type external struct {
	verifier note.Verifier
	sign     func(text []byte) ([]byte, error)
}

// External is the signer of a public key whose secret one something else keeps. What sign returns is checked.
func External(public string, sign func(text []byte) ([]byte, error)) (Signer, error) {
	v, err := note.NewVerifier(public)
	if err != nil {
		return nil, fmt.Errorf("read the key %s: %w: use what `followpress key` printed: NAME+…", site.Quoted(public), err)
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
