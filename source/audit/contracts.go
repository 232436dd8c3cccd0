package audit

import (
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain/provider"
)

// The contract functions that are called, and those of Multicall3.
const (
	totalSupply = "totalSupply"            // registry: number of tokens; IDs are 0, 1, 2 and so on
	ownerOf     = "ownerOf"                // registry
	getLocation = "getListStorageLocation" // registry: where the records of a token are
	getUser     = "getListUser"            // records: zero unless the value has 20 bytes
	getOpCount  = "getListOpCount"         // records
	getOps      = "getListOpsInRange"      // records: the end is exclusive
	getValue    = "getValue"               // account metadata
	blockNumber = "getBlockNumber"         // Multicall3: the block that the call is answered after
)

// contracts is the part of the ABI that the audit uses.
var contracts = func() abi.ABI {
	parsed, err := abi.JSON(strings.NewReader(`[
{"type":"function","name":"totalSupply","inputs":[],"outputs":[{"type":"uint256"}]},
{"type":"function","name":"ownerOf","inputs":[{"name":"tokenId","type":"uint256"}],"outputs":[{"type":"address"}]},
{"type":"function","name":"getListStorageLocation","inputs":[{"name":"tokenId","type":"uint256"}],"outputs":[{"type":"bytes"}]},
{"type":"function","name":"getListUser","inputs":[{"name":"slot","type":"uint256"}],"outputs":[{"type":"address"}]},
{"type":"function","name":"getListOpCount","inputs":[{"name":"slot","type":"uint256"}],"outputs":[{"type":"uint256"}]},
{"type":"function","name":"getListOpsInRange","inputs":[{"name":"slot","type":"uint256"},{"name":"start","type":"uint256"},{"name":"end","type":"uint256"}],"outputs":[{"type":"bytes[]"}]},
{"type":"function","name":"getValue","inputs":[{"name":"addr","type":"address"},{"name":"key","type":"string"}],"outputs":[{"type":"bytes"}]},
{"type":"function","name":"getBlockNumber","inputs":[],"outputs":[{"type":"uint256"}]},
{"type":"event","name":"Transfer","inputs":[{"name":"from","type":"address","indexed":true},{"name":"to","type":"address","indexed":true},{"name":"tokenId","type":"uint256","indexed":true}]},
{"type":"event","name":"UpdateListStorageLocation","inputs":[{"name":"tokenId","type":"uint256","indexed":true},{"name":"location","type":"bytes"}]},
{"type":"event","name":"UpdateAccountMetadata","inputs":[{"name":"addr","type":"address","indexed":true},{"name":"key","type":"string"},{"name":"value","type":"bytes"}]},
{"type":"event","name":"ListOp","inputs":[{"name":"slot","type":"uint256","indexed":true},{"name":"op","type":"bytes"}]},
{"type":"event","name":"UpdateListMetadata","inputs":[{"name":"slot","type":"uint256","indexed":true},{"name":"key","type":"string"},{"name":"value","type":"bytes"}]}]`))
	if err != nil {
		panic(err) // a constant
	}
	return parsed
}()

// Metadata keys that are facts about a list.
const (
	userKey    = "user"
	primaryKey = "primary-list"
)

// multicall3 is the address of Multicall3 (https://www.multicall3.com).
var multicall3 = site.Address(common.HexToAddress("0xcA11bde05977b3631167028862bE2a173976CA11"))

func call(to site.Address, function string, args ...any) provider.Call {
	data, err := contracts.Pack(function, args...)
	if err != nil {
		panic(err) // the functions and arguments are constant
	}
	return provider.Call{To: common.Address(to), Data: data}
}

func number(w source.Word) *big.Int { return new(big.Int).SetBytes(w[:]) }

// errUntold means that a contract refused to answer or answered something else.
var errUntold = errors.New("not told")

func asWord(answer []byte) (w source.Word, err error) {
	if len(answer) != len(w) {
		return w, fmt.Errorf("%w: %d bytes instead of %d", errUntold, len(answer), len(w))
	}
	return source.Word(answer), nil
}

func asNumber(answer []byte) (uint64, error) {
	w, err := asWord(answer)
	if err != nil {
		return 0, err
	}
	n, ok := w.Uint64()
	if !ok {
		return 0, fmt.Errorf("%w: the number %s", errUntold, w)
	}
	return n, nil
}

func asAddress(answer []byte) (a site.Address, err error) {
	w, err := asWord(answer)
	if err == nil && [12]byte(w[:12]) != [12]byte{} {
		err = fmt.Errorf("%w: %s instead of an address", errUntold, w)
	}
	return site.Address(w[12:]), err
}

func asBytes(answer []byte) ([]byte, error) {
	values, err := contracts.Methods[getValue].Outputs.Unpack(answer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUntold, err)
	}
	return values[0].([]byte), nil
}

// asOps decodes n operations. Elements of an answer may overlap, so a short answer could stand for
// many long operations: together they must be shorter than the answer.
func asOps(answer []byte, n uint64) ([][]byte, error) {
	if uint64(len(answer)) < 64*n {
		return nil, fmt.Errorf("%w: %d bytes for %d operations", errUntold, len(answer), n)
	}
	values, err := contracts.Methods[getOps].Outputs.Unpack(answer)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUntold, err)
	}
	ops, left := values[0].([][]byte), len(answer)
	for _, o := range ops {
		left -= len(o)
	}
	if uint64(len(ops)) != n || left < 0 {
		return nil, fmt.Errorf("%w: %d operations instead of %d", errUntold, len(ops), n)
	}
	return ops, nil
}

// locationLen is the length of a location: version, type, chain, contract, slot.
const locationLen = 1 + 1 + 32 + 20 + 32

// placeOf decodes a location. ok is false if it names none of the deployment's records contracts.
func placeOf(d *source.Deployment, location []byte) (p source.Place, ok bool) {
	if len(location) != locationLen || location[0] != 1 || location[1] != 1 {
		return p, false
	}
	chain, fits := source.Word(location[2:34]).Uint64()
	p = source.Place{Contract: source.Contract{Chain: chain, Address: site.Address(location[34:54])}, Slot: source.Word(location[54:])}
	for _, c := range d.Chains {
		for _, r := range c.Records {
			if fits && c.ID == chain && r.Address == p.Address {
				return p, true
			}
		}
	}
	return source.Place{}, false
}
