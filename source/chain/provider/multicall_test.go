package provider

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
)

// A call3 and a result3 are the argument and result types of aggregate3 for go-ethereum.
type (
	call3 struct {
		Target       common.Address
		AllowFailure bool
		CallData     []byte
	}
	result3 struct {
		Success    bool
		ReturnData []byte
	}
)

func aggregate3ABI(tb testing.TB) abi.Method {
	tb.Helper()
	parsed, err := abi.JSON(strings.NewReader(`[{"type":"function","name":"aggregate3",
"inputs":[{"name":"calls","type":"tuple[]","components":[{"name":"target","type":"address"},{"name":"allowFailure","type":"bool"},{"name":"callData","type":"bytes"}]}],
"outputs":[{"name":"returnData","type":"tuple[]","components":[{"name":"success","type":"bool"},{"name":"returnData","type":"bytes"}]}]}]`))
	if err != nil {
		tb.Fatal(err)
	}
	return parsed.Methods["aggregate3"]
}

func randomBytes(r *rand.Rand, most int) []byte {
	b := make([]byte, r.IntN(most+1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// TestMulticallIsThatOfTheABI: go-ethereum encodes the same, and decodes the same, also of answers that were altered.
func TestMulticallIsThatOfTheABI(t *testing.T) {
	method, refused := aggregate3ABI(t), 0
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := r.IntN(6)
		calls, packed, returned := make([]Call, n), make([]call3, n), make([]result3, n)
		for i := range n {
			calls[i] = Call{common.Address(slices.Concat(randomBytes(r, 0), bytes.Repeat([]byte{byte(r.Uint32())}, 20))), randomBytes(r, 70)}
			packed[i] = call3{calls[i].To, true, calls[i].Data}
			returned[i] = result3{r.IntN(3) > 0, randomBytes(r, 70)}
		}
		want, err := method.Inputs.Pack(packed)
		if err != nil {
			t.Fatal(err)
		}
		if got := packCalls(calls); !bytes.Equal(got, slices.Concat(method.ID, want)) {
			t.Fatalf("seed %d: got %x, want %x after %x", seed, got, want, method.ID)
		}
		answer, err := method.Outputs.Pack(returned)
		if err != nil {
			t.Fatal(err)
		}
		if seed%2 == 1 {
			switch at := r.IntN(len(answer)); r.IntN(3) {
			case 0:
				answer = answer[:at]
			case 1:
				answer[at] ^= 1 << r.IntN(8)
			case 2: // most numbers are in the last bytes of words
				answer[at|31] = byte(r.Uint32())
			}
		}
		var decoded []result3
		values, err := method.Outputs.Unpack(answer)
		if err == nil {
			abi.ConvertType(values[0], &decoded)
		}
		results := make([][]byte, n)
		got := unpackResults(answer, results)
		if want := err == nil && len(decoded) == n; got != want {
			t.Fatalf("seed %d: %x: got %t, want %t (%v)", seed, answer, got, want, err)
		}
		if !got {
			refused++
			continue
		}
		for i, d := range decoded {
			if !d.Success && results[i] != nil || d.Success && (results[i] == nil || !bytes.Equal(results[i], d.ReturnData)) {
				t.Fatalf("seed %d: result %d: got %x, want %x (%t)", seed, i, results[i], d.ReturnData, d.Success)
			}
		}
	}
	if refused < 100 {
		t.Errorf("%d altered answers were refused, want more", refused)
	}
}

// TestHostileMulticall: invalid ABI encodings are rejected, and take no memory.
func TestHostileMulticall(t *testing.T) {
	huge := bytes.Repeat([]byte{0xff}, 10*word)
	for _, answer := range [][]byte{nil, {}, huge, slices.Concat(AppendWord(nil, word), huge), AppendWord(AppendWord(nil, word), 1<<63)} {
		if results := make([][]byte, 2); unpackResults(answer, results) {
			t.Errorf("%x: got %x, want that it is refused", answer, results)
		}
	}
}
