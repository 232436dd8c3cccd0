package source

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"strconv"

	"github.com/followpress/followpress/site"
)

// A Word is a 256-bit big-endian value: a token ID or a slot.
type Word [32]byte

// Decimal returns the word as a token ID: a canonical decimal.
func (w Word) Decimal() string {
	if n, ok := w.Uint64(); ok {
		return strconv.FormatUint(n, 10)
	}
	return new(big.Int).SetBytes(w[:]).String()
}

// Uint64 returns the word as a number; false if it exceeds 64 bits.
func (w Word) Uint64() (uint64, bool) {
	const low = len(w) - 8
	return binary.BigEndian.Uint64(w[low:]), [low]byte(w[:low]) == [low]byte{}
}

// String returns "0x" and 64 hexadecimal digits.
func (w Word) String() string {
	return fmt.Sprintf("0x%x", w[:])
}

// ParseDecimal parses the form that Decimal returns.
func ParseDecimal(text string) (Word, error) {
	var w Word
	n, ok := new(big.Int), site.ValidTokenID(text)
	if ok {
		_, ok = n.SetString(text, 10)
	}
	if !ok || n.BitLen() > 8*len(w) {
		return Word{}, fmt.Errorf("%s is not a token id (a decimal below 2^256)", site.Quoted(text))
	}
	n.FillBytes(w[:])
	return w, nil
}
