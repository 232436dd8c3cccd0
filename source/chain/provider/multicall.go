package provider

import (
	"encoding/binary"

	"github.com/ethereum/go-ethereum/common"
)

// This file encodes and decodes calls by the contract ABI. go-ethereum does so by reflection, which
// takes 14 µs per call of Multicall3 and dominated the check of a whole state.

var (
	// multicall3 is at the same address on nearly all chains (https://www.multicall3.com).
	multicall3 = common.HexToAddress("0xcA11bde05977b3631167028862bE2a173976CA11")

	// aggregate3 is the selector of aggregate3((address target, bool allowFailure, bytes
	// callData)[]) returns (bool success, bytes returnData)[].
	aggregate3 = [4]byte{0x82, 0xad, 0x56, 0xcb}
)

const word = 32 // bytes

// AppendWord appends a number in ABI encoding.
func AppendWord(b []byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(b, make([]byte, word-8)...), n)
}

// AppendBytes appends data in ABI encoding: its length, then the bytes with zero padding.
func AppendBytes[T string | []byte](b []byte, data T) []byte {
	b = append(AppendWord(b, uint64(len(data))), data...)
	return append(b, make([]byte, padded(len(data))-len(data))...)
}

func padded(n int) int { return (n + word - 1) / word * word }

// BytesAt decodes length-prefixed bytes at an offset of data, without copying. ok is false if data
// ends early.
func BytesAt(data []byte, at uint64) (value []byte, ok bool) {
	n, ok := WordAt(data, at)
	rest := uint64(len(data)) - at - word // valid if ok
	if !ok || n > rest {
		return nil, false
	}
	return data[at+word : at+word+n], true
}

// WordAt decodes the number at an offset of data. ok is false if data ends early or the number
// exceeds 64 bits.
func WordAt(data []byte, at uint64) (n uint64, ok bool) {
	if at > uint64(len(data)) || uint64(len(data))-at < word {
		return 0, false
	}
	w := data[at : at+word]
	if [word - 8]byte(w) != [word - 8]byte{} {
		return 0, false
	}
	return binary.BigEndian.Uint64(w[word-8:]), true
}

// packCalls encodes a call of aggregate3 in which each call may fail.
func packCalls(calls []Call) []byte {
	const head = 4 * word // fields of a call: target, allowFailure, offset of callData, its length
	size := len(aggregate3) + 2*word
	for _, c := range calls {
		size += word + head + padded(len(c.Data))
	}
	b := append(make([]byte, 0, size), aggregate3[:]...)
	b = AppendWord(AppendWord(b, word), uint64(len(calls)))
	offset := word * len(calls)
	for _, c := range calls {
		b = AppendWord(b, uint64(offset))
		offset += head + padded(len(c.Data))
	}
	for _, c := range calls {
		b = append(append(b, make([]byte, word-len(c.To))...), c.To[:]...)
		b = AppendBytes(AppendWord(AppendWord(b, 1), 3*word), c.Data)
	}
	return b
}

// unpackResults decodes the return value of aggregate3 into results, without copying; nil for a
// call that failed. ok is false unless there are as many results as calls.
func unpackResults(answer []byte, results [][]byte) (ok bool) {
	list, ok := WordAt(answer, 0)
	if !ok {
		return false
	}
	if n, ok := WordAt(answer, list); !ok || n != uint64(len(results)) {
		return false
	}
	rows := answer[list+word:] // offsets are relative to here
	for i := range results {
		at, ok := WordAt(rows, uint64(i*word))
		if !ok || at > uint64(len(rows)) {
			return false
		}
		row := rows[at:]
		success, ok := WordAt(row, 0)
		if !ok || success > 1 {
			return false
		}
		offset, ok := WordAt(row, word)
		if !ok {
			return false
		}
		value, ok := BytesAt(row, offset)
		if !ok {
			return false
		}
		if results[i] = nil; success == 1 {
			results[i] = value[:len(value):len(value)]
		}
	}
	return true
}
