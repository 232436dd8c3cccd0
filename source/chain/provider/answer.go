package provider

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/go-json-experiment/json/jsontext"
)

// A blockAnswer is the answer of eth_getBlockByNumber: null, or a header, of which it decodes a few
// members.
type blockAnswer struct {
	found bool
	block Block
}

func (a *blockAnswer) read(from *jsontext.Decoder) error {
	*a = blockAnswer{}
	return a.readWith(from, func(string) error { return from.SkipValue() })
}

// readWith decodes a block; other decodes members that only some callers need.
func (a *blockAnswer) readWith(from *jsontext.Decoder, other func(name string) error) error {
	if from.PeekKind() == 'n' {
		return from.SkipValue()
	}
	a.found = true
	var time uint64
	need := needs{"number", "hash", "timestamp"}
	err := members(from, func(name string) (err error) {
		need.met(name)
		switch name {
		case "number":
			a.block.Number, err = readQuantity(from)
		case "hash":
			err = readFixed(from, a.block.Hash[:])
		case "timestamp":
			time, err = readQuantity(from)
		default:
			return other(name)
		}
		return named(name, err)
	})
	if err == nil {
		err = need.missing()
	}
	if err == nil && time > math.MaxInt64/1000 {
		err = errors.New("the time is out of range")
	}
	a.block.Time = int64(time)
	if err != nil {
		return fmt.Errorf("a block: %w", err)
	}
	return nil
}

// needs lists the required members not decoded yet.
type needs []string

func (n *needs) met(name string) {
	if i := slices.Index(*n, name); i >= 0 {
		*n = slices.Delete(*n, i, i+1)
	}
}

func (n *needs) missing() error {
	if len(*n) > 0 {
		return fmt.Errorf("it has no %s", strings.Join(*n, ", "))
	}
	return nil
}

func named(name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// A logsAnswer is the answer of eth_getLogs.
type logsAnswer []types.Log

// read decodes logs up to the first invalid value. A null is an error: a node without logs answers
// [].
func (a *logsAnswer) read(from *jsontext.Decoder) error {
	*a = (*a)[:0]
	return elements(from, func() error {
		var l types.Log
		if err := readLog(from, &l); err != nil {
			return fmt.Errorf("log %d of the answer: %w", len(*a), err)
		}
		*a = append(*a, l)
		return nil
	})
}

// A valueError means that an answer has an invalid value, which retrying would not change.
type valueError struct{ error }

// mostTopics is the EVM's limit of topics per log.
const mostTopics = 4

// readLog decodes the members of a log that are used. A node may omit the time, or write it in any
// form; the transaction is only shown to people.
func readLog(from *jsontext.Decoder, l *types.Log) error {
	need := needs{"address", "topics", "data", "blockNumber", "blockHash", "logIndex"}
	err := members(from, func(name string) (err error) {
		need.met(name)
		switch name {
		case "address":
			err = readFixed(from, l.Address[:])
		case "topics":
			err = readTopics(from, l)
		case "data":
			l.Data, err = readBytes(from)
		case "blockNumber":
			l.BlockNumber, err = readQuantity(from)
		case "blockHash":
			if from.PeekKind() == 'n' {
				return &valueError{errors.New("blockHash: null: the log has no block")}
			}
			err = readFixed(from, l.BlockHash[:])
		case "logIndex":
			var index uint64
			if index, err = readQuantity(from); index > math.MaxUint32 {
				err = errors.New("the index exceeds 32 bits")
			}
			l.Index = uint(index)
		case "blockTimestamp":
			l.BlockTimestamp, err = readLoosely(from, readTime)
		case "transactionHash":
			l.TxHash, err = readLoosely(from, readHash)
		case "removed":
			l.Removed = from.PeekKind() == 't'
			err = from.SkipValue()
		default:
			return from.SkipValue()
		}
		return named(name, err)
	})
	if err != nil {
		return err
	}
	return need.missing()
}

func readTopics(from *jsontext.Decoder, l *types.Log) error {
	l.Topics = l.Topics[:0]
	return elements(from, func() error {
		if len(l.Topics) == mostTopics {
			return fmt.Errorf("more than %d", mostTopics)
		}
		l.Topics = append(l.Topics, common.Hash{})
		return readFixed(from, l.Topics[len(l.Topics)-1][:])
	})
}

func readHash(text []byte) (h common.Hash, err error) {
	err = fixed(h[:], text)
	return h, err
}

// readTime decodes a plausible time.
func readTime(text []byte) (uint64, error) {
	time, err := quantity(text)
	if err == nil && time > math.MaxInt64/1000 {
		err = errors.New("the time is out of range")
	}
	return time, err
}

// readLoosely decodes an unimportant value; an invalid one becomes the zero value.
func readLoosely[T any](from *jsontext.Decoder, read func(text []byte) (T, error)) (value T, _ error) {
	text, err := from.ReadValue()
	if err != nil || len(text) < 2 || text[0] != '"' {
		return value, err
	}
	if read, err := read(text[1 : len(text)-1]); err == nil {
		value = read
	}
	return value, nil
}

// readText decodes a string without quotes, valid until the next value is read. Nodes send no
// escapes, and no caller accepts them.
func readText(from *jsontext.Decoder) ([]byte, error) {
	if kind := from.PeekKind(); kind != '"' && kind != 0 {
		return nil, fmt.Errorf("want a string, got a value beginning with %q", rune(kind))
	}
	text, err := from.ReadValue()
	if err != nil {
		return nil, err
	}
	return text[1 : len(text)-1], nil
}

func readQuantity(from *jsontext.Decoder) (uint64, error) {
	text, err := readText(from)
	if err != nil {
		return 0, err
	}
	return quantity(text)
}

func readFixed(from *jsontext.Decoder, into []byte) error {
	text, err := readText(from)
	if err != nil {
		return err
	}
	return fixed(into, text)
}

func readBytes(from *jsontext.Decoder) ([]byte, error) {
	text, err := readText(from)
	if err != nil {
		return nil, err
	}
	if len(text) < 2 || string(text[:2]) != "0x" {
		return nil, fmt.Errorf("%q is not hexadecimal", quote(text))
	}
	b := make([]byte, hex.DecodedLen(len(text)-2))
	if _, err := hex.Decode(b, text[2:]); err != nil {
		return nil, fmt.Errorf("%q is not hexadecimal", quote(text))
	}
	return b, nil
}

// quantity decodes a number written as 0x and hexadecimal digits.
func quantity(text []byte) (uint64, error) {
	if len(text) < 3 || string(text[:2]) != "0x" {
		return 0, fmt.Errorf("%q is not a number", quote(text))
	}
	n, err := strconv.ParseUint(string(text[2:]), 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", quote(text))
	}
	return n, nil
}

// fixed decodes exactly len(into) bytes.
func fixed(into, text []byte) error {
	if len(text) != 2+2*len(into) || string(text[:2]) != "0x" {
		return fmt.Errorf("%q does not have %d bytes", quote(text), len(into))
	}
	if _, err := hex.Decode(into, text[2:]); err != nil {
		return fmt.Errorf("%q does not have %d bytes", quote(text), len(into))
	}
	return nil
}

// A question selects logs for eth_getLogs.
type question struct {
	addresses []common.Address
	topics    []common.Hash // accepted first topics
}

func (q *question) filter(from, to uint64) map[string]any {
	return q.filterOf(map[string]any{"fromBlock": hexutil.Uint64(from), "toBlock": hexutil.Uint64(to)})
}

// filterOf adds the question to a filter that selects blocks.
func (q *question) filterOf(filter map[string]any) map[string]any {
	filter["address"] = q.addresses
	if len(q.topics) > 0 {
		filter["topics"] = [][]common.Hash{q.topics}
	}
	return filter
}

func (q *question) wants(l *types.Log) bool {
	return slices.Contains(q.addresses, l.Address) && (len(q.topics) == 0 || len(l.Topics) > 0 && slices.Contains(q.topics, l.Topics[0]))
}

// blocks converts an answer to Blocks, or returns an error if the answer cannot be right. It
// compares the hash of the last block only if hashKnown.
func (q *question) blocks(from, to uint64, logs []types.Log, last blockAnswer, hashKnown bool) (Blocks, error) {
	if !last.found {
		return Blocks{}, fail(behind, fmt.Errorf("no block %d: %w", to, ErrBehind))
	}
	if last.block.Number != to {
		return Blocks{}, fmt.Errorf("requested block %d, got block %d", to, last.block.Number)
	}
	logs = slices.DeleteFunc(logs, func(l types.Log) bool { return l.Removed })
	slices.SortStableFunc(logs, func(a, b types.Log) int {
		return cmp.Or(cmp.Compare(a.BlockNumber, b.BlockNumber), cmp.Compare(a.Index, b.Index))
	})
	logs = slices.CompactFunc(logs, sameLog) // providers that merge answers repeat logs
	for i := range logs {
		l := &logs[i]
		at := func(format string, args ...any) error {
			return fmt.Errorf("a log of blocks %d to %d, number %d of block %d, "+format, append([]any{from, to, l.Index, l.BlockNumber}, args...)...)
		}
		switch {
		case l.BlockNumber < from || l.BlockNumber > to:
			return Blocks{}, at("is of another block")
		case !slices.Contains(q.addresses, l.Address):
			return Blocks{}, at("is of another contract, %s", l.Address)
		case len(q.topics) > 0 && (len(l.Topics) == 0 || !slices.Contains(q.topics, l.Topics[0])):
			return Blocks{}, at("has another topic")
		case hashKnown && l.BlockNumber == to && l.BlockHash != last.block.Hash:
			return Blocks{}, at("has another hash of the block")
		case i == 0 || logs[i-1].BlockNumber != l.BlockNumber:
		case logs[i-1].Index == l.Index:
			return Blocks{}, at("has two contents")
		case logs[i-1].BlockHash != l.BlockHash:
			return Blocks{}, at("has another hash of the block than the one before")
		}
	}
	return Blocks{From: from, To: to, Last: last.block, Logs: logs}, nil
}

// sameLog reports whether two logs are equal in all used members.
func sameLog(a, b types.Log) bool {
	return a.BlockNumber == b.BlockNumber && a.Index == b.Index && a.BlockHash == b.BlockHash && a.Address == b.Address &&
		slices.Equal(a.Topics, b.Topics) && bytes.Equal(a.Data, b.Data)
}

// difference describes the first difference between two nodes' parts; "" for none.
func difference(a, b Blocks) string {
	for i := range max(len(a.Logs), len(b.Logs)) {
		switch {
		case i == len(a.Logs):
			return fmt.Sprintf("the first lacks log %d of block %d", b.Logs[i].Index, b.Logs[i].BlockNumber)
		case i == len(b.Logs):
			return fmt.Sprintf("the second lacks log %d of block %d", a.Logs[i].Index, a.Logs[i].BlockNumber)
		case !sameLog(a.Logs[i], b.Logs[i]):
			return fmt.Sprintf("log %d of block %d, and log %d of block %d",
				a.Logs[i].Index, a.Logs[i].BlockNumber, b.Logs[i].Index, b.Logs[i].BlockNumber)
		}
	}
	return otherHash(a.Last, b.Last)
}

func otherHash(a, b Block) string {
	if a != b {
		return fmt.Sprintf("block %d is %s at %d, and block %d is %s at %d", a.Number, a.Hash, a.Time, b.Number, b.Hash, b.Time)
	}
	return ""
}
