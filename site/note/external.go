package note

import (
	"crypto/ed25519"
	"errors"

	"golang.org/x/mod/sumdb/note"
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
