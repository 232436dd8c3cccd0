package site

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"strings"
)

// AddressTextLen is the length in bytes of an address as text: "0x" and 40 digits.
const AddressTextLen = 2 + 2*len(Address{})

// An Address is the 20-byte identifier of an account.
type Address [20]byte

var errNotAddress = errors.New("not an address (0x and 40 hexadecimal digits)")

// ParseAddress parses "0x" and 40 hexadecimal digits, in any letter case. It fails for any other text.
func ParseAddress[T ~string | ~[]byte](text T) (Address, error) {
	var a Address
	if len(text) != AddressTextLen || text[0] != '0' || text[1]|0x20 != 'x' {
		return Address{}, errNotAddress
	}
	for i := range a {
		hi, okHi := hexDigit(text[2+2*i])
		lo, okLo := hexDigit(text[3+2*i])
		if !okHi || !okLo {
			return Address{}, errNotAddress
		}
		a[i] = hi<<4 | lo
	}
	return a, nil
}

// String returns the address as the API writes it: "0x" and 40 lower-case digits.
func (a Address) String() string {
	return string(a.Append(make([]byte, 0, AddressTextLen)))
}

// Append appends the result of String to b.
func (a Address) Append(b []byte) []byte {
	return hex.AppendEncode(append(b, "0x"...), a[:])
}

// Compare returns -1, 0 or +1 if a sorts before, equals or sorts after b.
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

// maxTokenIDDigits is the number of digits of 2^256-1, the largest token ID.
const maxTokenIDDigits = 78

// ValidTokenID reports whether text is a canonical decimal: at most maxTokenIDDigits digits, without leading zeros
// except for "0" itself.
func ValidTokenID(text string) bool {
	if text == "" || len(text) > maxTokenIDDigits || text[0] == '0' && len(text) > 1 {
		return false
	}
	return allDigits(text)
}

// CompareTokenIDs compares two canonical decimals numerically, like cmp.Compare.
func CompareTokenIDs(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

func allDigits(text string) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}
