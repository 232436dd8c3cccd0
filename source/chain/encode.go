package chain

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
)

// The file logs is a sequence of batches: the length of the payload and its CRC-32C, 4 bytes each,
// little endian, then the payload, a sequence of events. An event is
//
// 	its kind plus 8 times the number of its contract
// 	its block, minus that of the previous event (0 before the first of a batch)
// 	its index
// 	its time in milliseconds, minus that of the previous event, signed
// 	the length of its subject without leading zero bytes, and those bytes
// 	the length of its key and the key, if the kind has keys
// 	the length of its value and the value
//
// Numbers are varints. Contracts of a chain are numbered from 0 in the order of their
// addresses.

// batchBytes is the payload length from which a batch is written. One event may exceed it.
const batchBytes = 64 << 10

const headBytes = 8

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func hasKey(k source.Kind) bool { return k == source.AccountMetadata || k == source.ListMetadata }

// A batch is a batch under construction. It begins with room for its head.
type batch struct {
	bytes []byte
	block uint64
	time  int64
}

func (b *batch) add(e source.Event, contract int) {
	if len(b.bytes) == 0 {
		b.bytes, b.block, b.time = append(b.bytes, make([]byte, headBytes)...), 0, 0
	}
	b.bytes = binary.AppendUvarint(b.bytes, uint64(e.Kind)|uint64(contract)<<3)
	b.bytes = binary.AppendUvarint(b.bytes, e.Block-b.block)
	b.bytes = binary.AppendUvarint(b.bytes, uint64(e.Index))
	b.bytes = binary.AppendVarint(b.bytes, e.Time-b.time)
	subject := bytes.TrimLeft(e.Subject[:], "\x00")
	b.bytes = append(append(b.bytes, byte(len(subject))), subject...)
	if hasKey(e.Kind) {
		b.bytes = append(binary.AppendUvarint(b.bytes, uint64(len(e.Key))), e.Key...)
	}
	b.bytes = append(binary.AppendUvarint(b.bytes, uint64(len(e.Value))), e.Value...)
	b.block, b.time = e.Block, e.Time
}

// finish completes the batch and resets it. The bytes are valid until the next add.
func (b *batch) finish() []byte {
	done := b.bytes
	if len(done) > 0 {
		binary.LittleEndian.PutUint32(done, uint32(len(done)-headBytes))
		binary.LittleEndian.PutUint32(done[4:], crc32.Checksum(done[headBytes:], castagnoli))
	}
	b.bytes = b.bytes[:0]
	return done
}

// errDamaged means that logs are not as written.
var errDamaged = errors.New("it is damaged")

// A reader reads events from the batches in the first size bytes of r.
type reader struct {
	r         *bufio.Reader
	left      int64
	chain     uint64
	contracts []site.Address

	buffer  []byte
	payload []byte // rest of the batch
	block   uint64
	time    int64
}

// next returns the next event, valid until the following call. It returns io.EOF at the end.
func (r *reader) next() (source.Event, error) {
	for len(r.payload) == 0 {
		if err := r.fill(); err != nil {
			return source.Event{}, err
		}
	}
	e, ok := r.event()
	if !ok {
		return source.Event{}, fmt.Errorf("%w: an event ends early, or has values that no event has", errDamaged)
	}
	return e, nil
}

func (r *reader) fill() error {
	if r.left == 0 {
		return io.EOF
	}
	var head [headBytes]byte
	if r.left < headBytes {
		return fmt.Errorf("%w: a batch ends early", errDamaged)
	}
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return err
	}
	r.left -= headBytes
	length := int64(binary.LittleEndian.Uint32(head[:]))
	if length > r.left {
		return fmt.Errorf("%w: a batch ends early", errDamaged)
	}
	if length == 0 {
		return fmt.Errorf("%w: a batch is empty", errDamaged) // zeros have a valid checksum
	}
	if int64(cap(r.buffer)) < length {
		r.buffer = make([]byte, length)
	}
	r.payload = r.buffer[:length]
	if _, err := io.ReadFull(r.r, r.payload); err != nil {
		return err
	}
	if crc32.Checksum(r.payload, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
		return fmt.Errorf("%w: the checksum of a batch differs", errDamaged)
	}
	r.left -= length
	r.block, r.time = 0, 0
	return nil
}

// event decodes an event from the payload.
func (r *reader) event() (e source.Event, ok bool) {
	head, ok := r.uvarint()
	e.Kind = source.Kind(head & 7)
	number := head >> 3
	if !ok || e.Kind < source.Transfer || e.Kind > source.ListMetadata || number >= uint64(len(r.contracts)) {
		return e, false
	}
	e.Contract = source.Contract{Chain: r.chain, Address: r.contracts[number]}
	block, okBlock := r.uvarint()
	index, okIndex := r.uvarint()
	time, n := binary.Varint(r.payload)
	if !okBlock || !okIndex || n <= 0 {
		return e, false
	}
	r.payload = r.payload[n:]
	r.block, r.time = r.block+block, r.time+time
	e.Block, e.Index, e.Time = r.block, uint32(index), r.time
	subject, ok := r.bytes()
	if !ok || len(subject) > len(e.Subject) {
		return e, false
	}
	copy(e.Subject[len(e.Subject)-len(subject):], subject)
	if hasKey(e.Kind) {
		key, ok := r.bytes()
		if !ok {
			return e, false
		}
		e.Key = keyText(key)
	}
	e.Value, ok = r.bytes()
	return e, ok
}

// keyText avoids allocating the common keys.
func keyText(key []byte) string {
	for _, usual := range [...]string{"user", "manager", "primary-list"} {
		if string(key) == usual {
			return usual
		}
	}
	return string(key)
}

func (r *reader) uvarint() (uint64, bool) {
	v, n := binary.Uvarint(r.payload)
	if n <= 0 {
		return 0, false
	}
	r.payload = r.payload[n:]
	return v, true
}

// bytes decodes length-prefixed bytes from the payload.
func (r *reader) bytes() ([]byte, bool) {
	n, ok := r.uvarint()
	if !ok || n > uint64(len(r.payload)) {
		return nil, false
	}
	taken := r.payload[:n:n]
	r.payload = r.payload[n:]
	return taken, true
}
