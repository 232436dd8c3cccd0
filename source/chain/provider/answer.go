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
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// A blockAnswer is the answer of eth_getBlockByNumber: null, or a block.
type blockAnswer struct {
	Header
	found        bool
	listed       bool // it has a list of its transactions
	transactions int
}

func (a *blockAnswer) read(from *input) {
	if *a = (blockAnswer{}); from.Null() {
		return
	}
	a.found = true
	var receipts common.Hash
	hasBloom := false
	from.members(func(name []byte) {
		switch string(name) {
		case "number":
			a.Number = from.quantity()
		case "hash":
			from.fixed(a.Hash[:])
		case "timestamp":
			time, err := timeOf(from.Text())
			if a.Time = int64(time); err != nil {
				from.fail(err)
			}
		case "parentHash":
			from.fixed(a.Parent[:])
		case "logsBloom":
			from.loosely(func(text []byte) { hasBloom = fixed(a.Bloom[:], text) == nil })
		case "receiptsRoot":
			from.loosely(func(text []byte) { _ = fixed(receipts[:], text) })
		case "transactions":
			list := newInput(from.Skip())
			for list.Begin('['); list.More(']'); a.transactions++ {
				list.Skip()
			}
			a.listed = list.Done()
		default:
			from.Skip()
		}
	}, "number", "hash", "timestamp")
	a.Empty = a.listed && a.transactions == 0 && hasBloom && a.Bloom == (types.Bloom{}) && receipts == types.EmptyReceiptsHash
}

// A logsAnswer is the answer of eth_getLogs. A null is an error: a node without logs answers [].
type logsAnswer []types.Log

func (a *logsAnswer) read(from *input) {
	*a = (*a)[:0]
	for from.Begin('['); from.More(']'); {
		var l types.Log
		from.log(&l)
		*a = append(*a, l)
	}
}

// A valueError means that an answer has an invalid value, which retrying would not change.
type valueError struct{ error }

// mostTopics is the EVM's limit of topics per log.
const mostTopics = 4

// log reads the members of a log that are used. A node may omit the time, or write it in any form; the
// transaction is only shown to people.
func (from *input) log(l *types.Log) {
	from.members(func(name []byte) {
		switch string(name) {
		case "address":
			from.fixed(l.Address[:])
		case "topics":
			for from.Begin('['); from.More(']'); {
				if len(l.Topics) == mostTopics {
					from.fail(fmt.Errorf("more than %d", mostTopics))
				}
				var topic common.Hash
				from.fixed(topic[:])
				l.Topics = append(l.Topics, topic)
			}
		case "data":
			l.Data = from.bytes()
		case "blockNumber":
			l.BlockNumber = from.quantity()
		case "blockHash":
			if from.Null() {
				from.fail(&valueError{errors.New("null: the log has no block")})
			}
			from.fixed(l.BlockHash[:])
		case "logIndex":
			index := from.quantity()
			if l.Index = uint(index); index > math.MaxUint32 {
				from.fail(errors.New("the index exceeds 32 bits"))
			}
		case "blockTimestamp":
			from.loosely(func(text []byte) { l.BlockTimestamp, _ = timeOf(text) })
		case "transactionHash":
			from.loosely(func(text []byte) { _ = fixed(l.TxHash[:], text) })
		case "removed":
			l.Removed = string(from.Skip()) == "true"
		default:
			from.Skip()
		}
	}, "address", "topics", "data", "blockNumber", "blockHash", "logIndex")
}

// loosely decodes a string whose content is unimportant, and skips other values.
func (from *input) loosely(decode func(text []byte)) {
	if value := from.Skip(); len(value) >= 2 && value[0] == '"' {
		decode(value[1 : len(value)-1])
	}
}

func (from *input) quantity() uint64 {
	n, err := quantity(from.Text())
	if err != nil {
		from.fail(err)
	}
	return n
}

func (from *input) fixed(into []byte) {
	if err := fixed(into, from.Text()); err != nil {
		from.fail(err)
	}
}

func (from *input) bytes() []byte {
	text := from.Text()
	b := make([]byte, max(0, hex.DecodedLen(len(text)-2)))
	if err := fixed(b, text); err != nil {
		from.fail(fmt.Errorf("%q is not hexadecimal", quote(text)))
	}
	return b
}

// quantity decodes a number written as 0x and hexadecimal digits.
func quantity(text []byte) (uint64, error) {
	digits, ok := bytes.CutPrefix(text, []byte("0x"))
	n, err := strconv.ParseUint(string(digits), 16, 64)
	if !ok || err != nil {
		return 0, fmt.Errorf("%q is not a number", quote(text))
	}
	return n, nil
}

// timeOf decodes a plausible time.
func timeOf(text []byte) (uint64, error) {
	time, err := quantity(text)
	if time > math.MaxInt64/1000 {
		return 0, errors.New("the time is out of range")
	}
	return time, err
}

// fixed decodes exactly len(into) bytes. After an error they are zero.
func fixed(into, text []byte) error {
	digits, ok := bytes.CutPrefix(text, []byte("0x"))
	if ok = ok && len(digits) == 2*len(into); ok {
		_, err := hex.Decode(into, digits)
		ok = err == nil
	}
	if !ok {
		clear(into)
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

// blocks converts an answer to Blocks, or returns an error if the answer cannot be right.
func (q *question) blocks(from, to uint64, logs []types.Log, last Block) (Blocks, error) {
	if last.Number != to {
		return Blocks{}, fmt.Errorf("requested block %d, got block %d", to, last.Number)
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
		case l.BlockNumber == to && l.BlockHash != last.Hash:
			return Blocks{}, at("has another hash of the block")
		case i == 0 || logs[i-1].BlockNumber != l.BlockNumber:
		case logs[i-1].Index == l.Index:
			return Blocks{}, at("has two contents")
		case logs[i-1].BlockHash != l.BlockHash:
			return Blocks{}, at("has another hash of the block than the one before")
		}
	}
	return Blocks{From: from, To: to, Last: last, Logs: logs}, nil
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
