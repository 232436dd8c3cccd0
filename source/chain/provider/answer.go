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

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/goccy/go-json"
)

// A blockAnswer is the answer of eth_getBlockByNumber: null, or a header, of which three members
// matter.
type blockAnswer struct {
	found bool
	block Block
}

// UnmarshalJSON implements json.Unmarshaler.
func (a *blockAnswer) UnmarshalJSON(text []byte) error {
	var raw *struct {
		Number    string `json:"number"`
		Hash      string `json:"hash"`
		Timestamp string `json:"timestamp"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	*a = blockAnswer{found: raw != nil}
	if raw == nil {
		return nil
	}
	var err [3]error
	var time uint64
	a.block.Number, err[0] = quantity(raw.Number)
	err[1] = fixed(a.block.Hash[:], raw.Hash)
	time, err[2] = quantity(raw.Timestamp)
	if time > math.MaxInt64/1000 {
		err[2] = errors.New("a time beyond all times")
	}
	a.block.Time = int64(time)
	if err := errors.Join(err[:]...); err != nil {
		return fmt.Errorf("a block: %w", err)
	}
	return nil
}

// A logsAnswer is the answer of eth_getLogs.
type logsAnswer []types.Log

// A rawLog has those members of a log that matter. A node may leave the time out, or write it as
// it likes.
type rawLog struct {
	Address   string          `json:"address"`
	Topics    []string        `json:"topics"`
	Data      string          `json:"data"`
	Block     string          `json:"blockNumber"`
	BlockHash string          `json:"blockHash"`
	Time      json.RawMessage `json:"blockTimestamp"`
	Tx        string          `json:"transactionHash"`
	Index     string          `json:"logIndex"`
	Removed   bool            `json:"removed"`
}

// UnmarshalJSON implements json.Unmarshaler. A null is an error: a node without logs answers [].
func (a *logsAnswer) UnmarshalJSON(text []byte) error {
	var raw []rawLog
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	if raw == nil {
		return errors.New("logs: null")
	}
	*a = make([]types.Log, len(raw))
	for i := range raw {
		if err := raw[i].log(&(*a)[i]); err != nil {
			return fmt.Errorf("log %d of the answer: %w", i, err)
		}
	}
	return nil
}

func (r *rawLog) log(l *types.Log) error {
	var errs [6]error
	var index uint64
	errs[0] = fixed(l.Address[:], r.Address)
	errs[1] = fixed(l.BlockHash[:], r.BlockHash)
	l.BlockNumber, errs[2] = quantity(r.Block)
	index, errs[3] = quantity(r.Index)
	if index > math.MaxUint32 {
		errs[3] = errors.New("an index beyond 32 bits")
	}
	l.Index = uint(index)
	l.Data, errs[4] = digits(r.Data)
	l.Topics = make([]common.Hash, len(r.Topics))
	for i, topic := range r.Topics {
		errs[5] = cmp.Or(errs[5], fixed(l.Topics[i][:], topic))
	}
	if fixed(l.TxHash[:], r.Tx) != nil {
		l.TxHash = common.Hash{} // for people only
	}
	if time, err := strconv.Unquote(string(r.Time)); err == nil {
		if l.BlockTimestamp, err = quantity(time); err != nil || l.BlockTimestamp > math.MaxInt64/1000 {
			l.BlockTimestamp = 0
		}
	}
	l.Removed = r.Removed
	return errors.Join(errs[:]...)
}

// quantity reads a number as 0x and hexadecimal digits.
func quantity(text string) (uint64, error) {
	if len(text) < 3 || text[:2] != "0x" {
		return 0, fmt.Errorf("%q is not a number", quote(text))
	}
	n, err := strconv.ParseUint(text[2:], 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", quote(text))
	}
	return n, nil
}

// digits reads bytes as 0x and two hexadecimal digits for each.
func digits(text string) ([]byte, error) {
	if len(text) < 2 || text[:2] != "0x" {
		return nil, fmt.Errorf("%q are not bytes", quote(text))
	}
	b, err := hex.DecodeString(text[2:])
	if err != nil {
		return nil, fmt.Errorf("%q are not bytes", quote(text))
	}
	return b, nil
}

// fixed reads as many bytes as into has.
func fixed(into []byte, text string) error {
	if len(text) != 2+2*len(into) || text[:2] != "0x" {
		return fmt.Errorf("%q does not have %d bytes", quote(text), len(into))
	}
	if _, err := hex.Decode(into, []byte(text[2:])); err != nil {
		return fmt.Errorf("%q does not have %d bytes", quote(text), len(into))
	}
	return nil
}

// A question is what is asked for by eth_getLogs.
type question struct {
	addresses []common.Address
	topics    []common.Hash // of the first topic
}

// part makes a Part of an answer, or says why the answer cannot be right.
func (q *question) part(from, to uint64, logs []types.Log, last blockAnswer) (Part, error) {
	if !last.found {
		return Part{}, fail(behind, fmt.Errorf("it does not have block %d: %w", to, ErrBehind))
	}
	if last.block.Number != to {
		return Part{}, fmt.Errorf("asked for block %d, it answers block %d", to, last.block.Number)
	}
	logs = slices.DeleteFunc(logs, func(l types.Log) bool { return l.Removed })
	slices.SortStableFunc(logs, func(a, b types.Log) int {
		return cmp.Or(cmp.Compare(a.BlockNumber, b.BlockNumber), cmp.Compare(a.Index, b.Index))
	})
	logs = slices.CompactFunc(logs, sameLog) // providers that put answers together repeat logs
	for i := range logs {
		l := &logs[i]
		at := func(format string, args ...any) error {
			return fmt.Errorf("a log of blocks %d to %d, number %d of block %d, "+format, append([]any{from, to, l.Index, l.BlockNumber}, args...)...)
		}
		switch {
		case l.BlockNumber < from || l.BlockNumber > to:
			return Part{}, at("is of another block")
		case !slices.Contains(q.addresses, l.Address):
			return Part{}, at("is of another contract, %s", l.Address)
		case len(q.topics) > 0 && (len(l.Topics) == 0 || !slices.Contains(q.topics, l.Topics[0])):
			return Part{}, at("has another topic")
		case l.BlockNumber == to && l.BlockHash != last.block.Hash:
			return Part{}, at("has another hash of the block")
		case i == 0 || logs[i-1].BlockNumber != l.BlockNumber:
		case logs[i-1].Index == l.Index:
			return Part{}, at("has two contents")
		case logs[i-1].BlockHash != l.BlockHash:
			return Part{}, at("has another hash of the block than the one before")
		}
	}
	return Part{From: from, To: to, Last: last.block, Logs: logs}, nil
}

// sameLog reports whether two logs are equal in all that matters.
func sameLog(a, b types.Log) bool {
	return a.BlockNumber == b.BlockNumber && a.Index == b.Index && a.BlockHash == b.BlockHash && a.Address == b.Address &&
		slices.Equal(a.Topics, b.Topics) && bytes.Equal(a.Data, b.Data)
}

// difference says where the parts of two nodes differ; "" means nowhere.
func difference(a, b Part) string {
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
		return fmt.Sprintf("block %d is %s of %d, and block %d is %s of %d", a.Number, a.Hash, a.Time, b.Number, b.Hash, b.Time)
	}
	return ""
}
