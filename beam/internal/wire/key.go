package wire

import (
	"encoding/hex"
	"fmt"

	"github.com/followpress/followpress/site"
)

// Keys are texts, and engines in other languages decode them: invalid UTF-8 is lost there, so that
// different keys become equal. So addresses are keys in hexadecimal.

// addressKeyLen is the length of the key of an address.
const addressKeyLen = 2 * len(site.Address{})

// AddressKey returns the key of an address.
func AddressKey(a site.Address) string {
	var b [addressKeyLen]byte
	hex.Encode(b[:], a[:])
	return string(b[:])
}

// KeyAddress returns the address at the beginning of a key. It panics if there is none, which is a
// bug in the stage that made the key.
func KeyAddress(key string) (a site.Address) {
	if len(key) < addressKeyLen {
		panic(fmt.Sprintf("the key %q has no address", key))
	}
	if _, err := hex.Decode(a[:], []byte(key[:addressKeyLen])); err != nil {
		panic(fmt.Sprintf("the key %q: %v", key, err))
	}
	return a
}
