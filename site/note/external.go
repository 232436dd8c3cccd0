package note

import (
	"crypto/ed25519"
	"errors"

	"golang.org/x/mod/sumdb/note"
)

// PublicOf is the public key, as NewKey writes it, of a key that something else keeps.
func PublicOf(name string, key ed25519.PublicKey) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	return note.NewEd25519VerifierKey(name, key)
}

// An external key signs somewhere else.
type external struct {
	verifier note.Verifier
	sign     func(text []byte) ([]byte, error)
}

// External is the signer of a public key whose secret one something else keeps. What sign returns is checked.
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
