package site

import (
	"bytes"
	"encoding/hex"
	"errors"
)

// AddressTextLen is the length of an address as text, in bytes: "0x" and 40 digits.
const AddressTextLen = 2 + 2*len(Address{})

// An Address is the 20-byte identifier of an account.
type Address [20]byte

// ErrNotAddress is the error of ParseAddress.
var ErrNotAddress = errors.New("not an address (0x and 40 hexadecimal digits)")

// ParseAddress reads "0x" and 40 hexadecimal digits, both in any letter case. The only error is
// ErrNotAddress.
func ParseAddress[T ~string | ~[]byte](text T) (Address, error) {
	var a Address
	if len(text) != AddressTextLen || text[0] != '0' || text[1]|0x20 != 'x' {
		return Address{}, ErrNotAddress
	}
	for i := range a {
		hi, okHi := hexDigit(text[2+2*i])
		lo, okLo := hexDigit(text[3+2*i])
		if !okHi || !okLo {
			return Address{}, ErrNotAddress
		}
		a[i] = hi<<4 | lo
	}
	return a, nil
}

// String is the address as the API writes it: "0x" and 40 digits in lower case.
func (a Address) String() string {
	return string(a.Append(make([]byte, 0, AddressTextLen)))
}

// Append appends what String returns to b.
func (a Address) Append(b []byte) []byte {
	return hex.AppendEncode(append(b, "0x"...), a[:])
}

// Compare is negative if a is before b in the order of addresses, positive if it is after it, and
// otherwise 0.
func (a Address) Compare(b Address) int { return bytes.Compare(a[:], b[:]) }

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}
