// Package wire encodes the elements between the stages of the pipeline. Engines move them as bytes,
// so that an element costs a copy and not a coder of an unknown language.
//
// Numbers are varints, and texts follow their length. Decoding does not copy: results share the
// memory of the input.
package wire

import (
	"encoding/binary"
	"errors"
	"unsafe"

	"github.com/followpress/followpress/site"
)

// ErrMalformed means that bytes are not a valid encoding.
var ErrMalformed = errors.New("malformed element: workers of different versions?")

// AppendText appends a text with its length.
func AppendText[T string | []byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// AppendTexts appends texts with their number.
func AppendTexts(b []byte, texts []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(texts)))
	for _, text := range texts {
		b = AppendText(b, text)
	}
	return b
}

// AppendBool appends a byte.
func AppendBool(b []byte, is bool) []byte {
	if is {
		return append(b, 1)
	}
	return append(b, 0)
}

// A Decoder decodes values sequentially. After the first error all values are zero.
type Decoder struct {
	rest      []byte
	malformed bool
}

// Decode returns a decoder of an encoding.
func Decode(b []byte) Decoder { return Decoder{rest: b} }

// Err returns ErrMalformed if a value could not be decoded.
func (d *Decoder) Err() error {
	if d.malformed {
		return ErrMalformed
	}
	return nil
}

// More reports whether there is more to decode.
func (d *Decoder) More() bool { return len(d.rest) > 0 }

func (d *Decoder) fail() {
	d.rest, d.malformed = nil, true
}

// Uvarint decodes an unsigned number.
func (d *Decoder) Uvarint() uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

// Uint32 decodes an unsigned number of 32 bits.
func (d *Decoder) Uint32() uint32 { return uint32(d.Uvarint()) }

// Varint decodes a signed number.
func (d *Decoder) Varint() int64 {
	n, size := binary.Varint(d.rest)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

// Byte decodes a byte.
func (d *Decoder) Byte() byte {
	if len(d.rest) == 0 {
		d.fail()
		return 0
	}
	b := d.rest[0]
	d.rest = d.rest[1:]
	return b
}

// Bool decodes a byte that is 0 or not.
func (d *Decoder) Bool() bool { return d.Byte() != 0 }

// Bytes decodes bytes with their length.
func (d *Decoder) Bytes() []byte {
	n := d.Uvarint()
	if n > uint64(len(d.rest)) {
		d.fail()
		return nil
	}
	b := d.rest[:n:n]
	d.rest = d.rest[n:]
	return b
}

// Text decodes a text, which shares the memory of the input.
func (d *Decoder) Text() string {
	b := d.Bytes()
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// Texts decodes texts with their number.
func (d *Decoder) Texts() []string {
	n := d.Uvarint()
	if n > uint64(len(d.rest)) { // each has at least a byte for its length
		d.fail()
		return nil
	}
	texts := make([]string, n)
	for i := range texts {
		texts[i] = d.Text()
	}
	return texts
}

// Address decodes the 20 bytes of an address.
func (d *Decoder) Address() (a site.Address) {
	if len(d.rest) < len(a) {
		d.fail()
		return a
	}
	copy(a[:], d.rest)
	d.rest = d.rest[len(a):]
	return a
}

// Rest returns the bytes that were not decoded.
func (d *Decoder) Rest() []byte { return d.rest }

// AppendNumbers appends unsigned numbers.
func AppendNumbers(b []byte, numbers ...uint64) []byte {
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	return b
}
