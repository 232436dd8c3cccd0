package provider

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

const chainID = 8453

var (
	ours   = common.HexToAddress("0x41Aa48Ef3c0446b46a5b1cc6337FF3d3716E2A33")
	others = common.HexToAddress("0x5289fE5daBC021D02FDDf23d4a4DF96F4E0F17EF")
	topic  = common.HexToHash("0xb067630e3908f166069c77766250c553414e2745e742a562d533f29744a91a73")
)

// A wrong is an error that a fake answers.
type wrong struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type request struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

// A fake is a node. Its fields are set before it is used.
type fake struct {
	chain    uint64
	head     uint64
	fork     byte        // changes the hashes
	logs     []types.Log // in order
	latency  time.Duration
	most     uint64 // blocks of a range; 0 means any
	mostLogs int    // of an answer
	tooLarge wrong
	single   bool // takes no batches
	batch    int  // calls in a batch; 0 means any

	status func(n int, r *http.Request) (status int, after string)    // of request n
	call   func(n int, r request) *wrong                              // in request n
	change func(n int, from, to uint64, logs []types.Log) []types.Log // of an answer
	body   func(n int, body []byte) []byte                            // of an answer
	block  func(n int, number uint64, header map[string]any) any      // what is answered
	supply func(at uint64) (hexutil.Bytes, *wrong)

	mu        sync.Mutex
	requests  int
	calls     map[string]int
	under     int
	mostUnder int
	asked     []time.Duration // when each request came, since the first
	first     time.Time
}

// RoundTrip answers without a connection, for virtual time.
func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

func (f *fake) begin() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first.IsZero() {
		f.first, f.calls = time.Now(), map[string]int{}
	}
	f.asked = append(f.asked, time.Since(f.first))
	f.requests++
	f.under++
	f.mostUnder = max(f.mostUnder, f.under)
	return f.requests
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := f.begin()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.under--
	}()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if f.latency > 0 {
		select {
		case <-time.After(f.latency):
		case <-r.Context().Done():
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if f.status != nil {
		if status, after := f.status(n, r); status != 0 {
			if after != "" {
				w.Header().Set("Retry-After", after)
			}
			w.WriteHeader(status)
			fmt.Fprintf(w, "no, %s", r.URL)
			return
		}
	}
	answer := f.answer(n, text)
	if f.body != nil {
		answer = f.body(n, answer)
	}
	w.Write(answer)
}

func (f *fake) answer(n int, text []byte) []byte {
	var one request
	if json.Unmarshal(text, &one) == nil {
		return must(json.Marshal(f.reply(n, one)))
	}
	var all []request
	if err := json.Unmarshal(text, &all); err != nil {
		panic(err)
	}
	if f.single || f.batch > 0 && len(all) > f.batch {
		return must(json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": wrong{-32600, "batch too large"}}))
	}
	replies := make([]any, len(all))
	for i, r := range all {
		replies[len(all)-1-i] = f.reply(n, r) // in any order
	}
	return must(json.Marshal(replies))
}

func (f *fake) reply(n int, r request) any {
	f.mu.Lock()
	f.calls[r.Method]++
	f.mu.Unlock()
	reply := map[string]any{"jsonrpc": "2.0", "id": r.ID}
	var err *wrong
	if f.call != nil {
		err = f.call(n, r)
	}
	if err == nil {
		reply["result"], err = f.result(n, r)
	}
	if err != nil {
		delete(reply, "result")
		reply["error"] = err
	}
	return reply
}

func (f *fake) result(n int, r request) (any, *wrong) {
	switch r.Method {
	case "eth_chainId":
		return hexutil.EncodeUint64(f.chain), nil
	case "eth_getBlockByNumber":
		var tag string
		if err := json.Unmarshal(r.Params[0], &tag); err != nil {
			panic(err)
		}
		number := f.head
		if tag[0] == '0' {
			number = hexutil.MustDecodeUint64(tag)
		}
		if number > f.head {
			return nil, nil
		}
		header := map[string]any{"number": hexutil.Uint64(number), "hash": f.hash(number), "timestamp": hexutil.Uint64(1000 + 2*number),
			"extraData": "0x1234", "newField": map[string]int{"a": 1}, "transactions": []string{"0x12"}}
		if f.block != nil {
			return f.block(n, number, header), nil
		}
		return header, nil
	case "eth_getLogs":
		return f.getLogs(n, r)
	case "eth_call":
		var at string
		if err := json.Unmarshal(r.Params[1], &at); err != nil {
			panic(err)
		}
		return f.supply2(hexutil.MustDecodeUint64(at))
	}
	return nil, &wrong{-32601, "the method does not exist"}
}

func (f *fake) supply2(at uint64) (any, *wrong) {
	b, err := f.supply(at)
	return b, err
}

func (f *fake) hash(number uint64) common.Hash {
	var h common.Hash
	binary.BigEndian.PutUint64(h[8:], number)
	h[0], h[31] = 0xee, f.fork
	return h
}

func (f *fake) getLogs(n int, r request) (any, *wrong) {
	var filter struct {
		FromBlock, ToBlock hexutil.Uint64
		Address            []common.Address
		Topics             [][]common.Hash
	}
	if err := json.Unmarshal(r.Params[0], &filter); err != nil {
		panic(err)
	}
	from, to := uint64(filter.FromBlock), uint64(filter.ToBlock)
	if f.most > 0 && to-from >= f.most {
		return nil, &f.tooLarge
	}
	start, _ := slices.BinarySearchFunc(f.logs, from, func(l types.Log, b uint64) int { return compare(l.BlockNumber, b) })
	end, _ := slices.BinarySearchFunc(f.logs, min(to, f.head)+1, func(l types.Log, b uint64) int { return compare(l.BlockNumber, b) })
	found := []types.Log{}
	for _, l := range f.logs[min(start, end):end] {
		if slices.Contains(filter.Address, l.Address) && (len(filter.Topics) == 0 || slices.Contains(filter.Topics[0], l.Topics[0])) {
			l.BlockHash = f.hash(l.BlockNumber)
			found = append(found, l)
		}
	}
	if f.mostLogs > 0 && len(found) > f.mostLogs {
		return nil, &f.tooLarge
	}
	if f.change != nil {
		found = f.change(n, from, to, found)
	}
	return found, nil
}

func compare(a, b uint64) int {
	if a < b {
		return -1
	} else if a > b {
		return 1
	}
	return 0
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// randomLogs are logs of blocks, as many as there are on average in 1,000 blocks.
func randomLogs(r *rand.Rand, from, to uint64, each int) []types.Log {
	var all []types.Log
	for n := from; n <= to; n++ {
		for i := range 3 {
			if r.IntN(3000) >= each {
				continue
			}
			data := make([]byte, r.IntN(70))
			for j := range data {
				data[j] = byte(r.Uint32())
			}
			all = append(all, types.Log{Address: ours, Topics: []common.Hash{topic, {byte(r.Uint32())}}, Data: data, BlockNumber: n,
				TxHash: common.Hash{7}, Index: uint(i * 5), BlockTimestamp: 1000 + 2*n})
		}
	}
	return all
}

// newFake is a node without faults.
func newFake(seed, head uint64, each int) *fake {
	return &fake{chain: chainID, head: head, logs: randomLogs(rand.New(rand.NewPCG(seed, 1)), 1, head, each),
		tooLarge: wrong{-32005, "query returned more than 10000 results"}}
}

// collected reads all logs of fakes by Logs, and checks the parts.
func collected(ctx context.Context, c *Chain, from, to uint64) (logs []types.Log, parts int, err error) {
	next := from
	err = c.Logs(ctx, []common.Address{ours}, []common.Hash{topic}, from, to, func(p Part) error {
		if p.From != next || p.To < p.From || p.To > to || p.Last.Number != p.To {
			return fmt.Errorf("part of %d to %d with block %d, want it to begin at %d", p.From, p.To, p.Last.Number, next)
		}
		next = p.To + 1
		parts++
		logs = append(logs, p.Logs...)
		return nil
	})
	if err == nil && next != to+1 {
		err = errors.New("blocks are missing")
	}
	return logs, parts, err
}

// dialFakes reaches fakes by a transport: their URLs are http://0.test/secret-key, http://1.test
// and so on.
func dialFakes(t *testing.T, o Options, fakes ...*fake) *Chain {
	t.Helper()
	urls, transport := fakeURLs(fakes)
	o.transport = transport
	c, err := Dial(t.Context(), chainID, urls, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

type byHost map[string]*fake

func (b byHost) RoundTrip(r *http.Request) (*http.Response, error) { return b[r.URL.Host].RoundTrip(r) }

func fakeURLs(fakes []*fake) (urls []string, transport http.RoundTripper) {
	hosts := byHost{}
	for i, f := range fakes {
		host := fmt.Sprintf("%d.test", i)
		hosts[host] = f
		urls = append(urls, "http://"+host+"/v2/secret-key")
	}
	return urls, hosts
}

// same fails unless the logs are those of a fake.
func same(t *testing.T, got []types.Log, f *fake, from, to uint64) {
	t.Helper()
	i := 0
	for _, want := range f.logs {
		if want.BlockNumber < from || want.BlockNumber > to {
			continue
		}
		want.BlockHash = f.hash(want.BlockNumber)
		if i >= len(got) || !sameLog(got[i], want) {
			t.Fatalf("log %d differs: %d logs, want block %d log %d", i, len(got), want.BlockNumber, want.Index)
		}
		i++
	}
	if i != len(got) {
		t.Fatalf("got %d logs, want %d", len(got), i)
	}
}

func sortLogs(logs []types.Log) {
	slices.SortStableFunc(logs, func(a, b types.Log) int { return compare(a.BlockNumber, b.BlockNumber) })
	at, index := uint64(0), uint(0)
	for i := range logs { // two of one block do not have the same index
		if logs[i].BlockNumber != at {
			at, index = logs[i].BlockNumber, 0
		}
		logs[i].Index = index
		index++
	}
}
