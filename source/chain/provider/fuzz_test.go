package provider

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/followpress/followpress/fixtures/history"
)

const oneLog = `{"address":"0x41aa48ef3c0446b46a5b1cc6337ff3d3716e2a33","topics":["0xb067630e3908f166069c77766250c553414e2745e742a562d533f29744a91a73"],
	"data":"0x01","blockNumber":"0x5","transactionHash":"0x12","transactionIndex":"0x0","blockHash":"0x1111111111111111111111111111111111111111111111111111111111111111",
	"blockTimestamp":"0x66","logIndex":"0x2","removed":false}`

// Whatever a node answers, there is an error or a part that keeps its promise; and what go-ethereum
// reads is read in the same way.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte("["+oneLog+"]"), []byte(`{"number":"0x9","hash":"0x1111111111111111111111111111111111111111111111111111111111111111","timestamp":"0x70"}`))
	f.Add([]byte(`[]`), []byte(`null`))
	f.Add([]byte(`null`), []byte(`{"number":"0x9","hash":"0x","timestamp":"0xffffffffffffffff"}`))
	f.Add([]byte(`[{"blockTimestamp":5,"data":"0x0"},null]`), []byte(`{"number":9}`))
	f.Fuzz(func(t *testing.T, text, header []byte) {
		var logs logsAnswer
		var last blockAnswer
		if logs.read(jsontext.NewDecoder(bytes.NewBuffer(text))) != nil || last.read(jsontext.NewDecoder(bytes.NewBuffer(header))) != nil {
			return
		}
		var theirs []types.Log
		if json.Unmarshal(text, &theirs) == nil && len(theirs) == len(logs) {
			for i, l := range theirs {
				if !sameLog(l, logs[i]) {
					t.Errorf("log %d is %+v, go-ethereum reads %+v", i, logs[i], l)
				}
			}
		}
		q := question{[]common.Address{records}, []common.Hash{history.TopicListOp}}
		part, err := q.blocks(4, 9, logs, last, true)
		if err != nil {
			return
		}
		if part.Last.Number != 9 || part.Last.Time < 0 {
			t.Errorf("the last block is %+v", part.Last)
		}
		for i, l := range part.Logs {
			if l.Address != records || l.Topics[0] != history.TopicListOp || l.BlockNumber < 4 || l.BlockNumber > 9 || l.Removed ||
				i > 0 && (l.BlockNumber < part.Logs[i-1].BlockNumber || l.BlockNumber == part.Logs[i-1].BlockNumber && l.Index <= part.Logs[i-1].Index) {
				t.Errorf("log %d of the part is %+v", i, l)
			}
		}
	})
}
