package chain

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
)

// events is the part of the contracts' ABI that is used.
const events = `[
{"type":"event","name":"Transfer","inputs":[{"name":"from","type":"address","indexed":true},{"name":"to","type":"address","indexed":true},{"name":"tokenId","type":"uint256","indexed":true}]},
{"type":"event","name":"UpdateListStorageLocation","inputs":[{"name":"tokenId","type":"uint256","indexed":true},{"name":"listStorageLocation","type":"bytes"}]},
{"type":"event","name":"UpdateAccountMetadata","inputs":[{"name":"addr","type":"address","indexed":true},{"name":"key","type":"string"},{"name":"value","type":"bytes"}]},
{"type":"event","name":"ListOp","inputs":[{"name":"slot","type":"uint256","indexed":true},{"name":"op","type":"bytes"}]},
{"type":"event","name":"UpdateListMetadata","inputs":[{"name":"slot","type":"uint256","indexed":true},{"name":"key","type":"string"},{"name":"value","type":"bytes"}]}]`

// A shape describes the logs of an event.
type shape struct {
	kind    source.Kind
	name    string
	topics  int           // number, including the first, which identifies the event
	address []int         // topics that are addresses
	data    abi.Arguments // arguments that are not indexed
}

var shapes = func() map[common.Hash]shape {
	parsed, err := abi.JSON(strings.NewReader(events))
	if err != nil {
		panic(err) // events is a constant
	}
	kinds := map[string]source.Kind{
		"Transfer": source.Transfer, "UpdateListStorageLocation": source.Location,
		"UpdateAccountMetadata": source.AccountMetadata, "ListOp": source.Op, "UpdateListMetadata": source.ListMetadata,
	}
	all := map[common.Hash]shape{}
	for name, event := range parsed.Events {
		s := shape{kind: kinds[name], name: name, topics: 1, data: event.Inputs.NonIndexed()}
		for _, input := range event.Inputs {
			if !input.Indexed {
				continue
			}
			if input.Type.T == abi.AddressTy {
				s.address = append(s.address, s.topics)
			}
			s.topics++
		}
		all[event.ID] = s
	}
	return all
}()

type decoder struct {
	chain source.Chain
	kinds map[site.Address][]source.Kind // events that a contract emits
}

func newDecoder(c source.Chain) *decoder {
	d := &decoder{c, map[site.Address][]source.Kind{}}
	if c.Registry != nil {
		d.kinds[c.Registry.Address] = []source.Kind{source.Transfer, source.Location}
	}
	if c.Accounts != nil {
		d.kinds[c.Accounts.Address] = []source.Kind{source.AccountMetadata}
	}
	for _, r := range c.Records {
		d.kinds[r.Address] = []source.Kind{source.Op, source.ListMetadata}
	}
	return d
}

// topics returns the sorted first topics of the events that the chain's contracts emit.
func (d *decoder) topics() []common.Hash {
	var topics []common.Hash
	for topic, s := range shapes {
		for _, kinds := range d.kinds {
			if slices.Contains(kinds, s.kind) {
				topics = append(topics, topic)
				break
			}
		}
	}
	slices.SortFunc(topics, common.Hash.Cmp)
	return topics
}

// addresses returns the sorted addresses of the chain's contracts.
func (d *decoder) addresses() []site.Address {
	return slices.SortedFunc(maps.Keys(d.kinds), site.Address.Compare)
}

// decode converts a log to an event without time; its Value aliases the log. tokens is the change
// in the number of tokens. ok is false if the log is irrelevant. The error names chain, block and
// log.
func (d *decoder) decode(log *types.Log) (e source.Event, tokens int64, ok bool, err error) {
	kinds, ours := d.kinds[site.Address(log.Address)]
	if !ours {
		return e, 0, false, d.fault(log, errors.New("its contract was not asked for"))
	}
	if len(log.Topics) == 0 {
		return e, 0, false, nil
	}
	s, known := shapes[log.Topics[0]]
	if !known || !slices.Contains(kinds, s.kind) {
		return e, 0, false, nil // for example Approval
	}
	e = source.Event{
		Kind: s.kind, Contract: source.Contract{Chain: d.chain.ID, Address: site.Address(log.Address)},
		Block: log.BlockNumber, Index: uint32(log.Index), Time: source.NoTime,
	}
	if tokens, err = s.fill(&e, log); err != nil {
		return e, 0, false, d.fault(log, fmt.Errorf("%s: %w", s.name, err))
	}
	return e, tokens, true, nil
}

// fill sets the fields of e from the topics and data of a log.
func (s *shape) fill(e *source.Event, log *types.Log) (tokens int64, err error) {
	if len(log.Topics) != s.topics {
		return 0, fmt.Errorf("it has %d topics, want %d", len(log.Topics), s.topics)
	}
	if log.Index > math.MaxUint32 {
		return 0, fmt.Errorf("its index is %d", log.Index)
	}
	for _, i := range s.address {
		if [12]byte(log.Topics[i][:12]) != [12]byte{} {
			return 0, fmt.Errorf("topic %d is %s, want an address", i, log.Topics[i])
		}
	}
	if s.kind == source.Transfer {
		from, to := log.Topics[1], log.Topics[2]
		e.Subject, e.Value = source.Word(log.Topics[3]), log.Topics[2][12:]
		if from == (common.Hash{}) {
			tokens++
		}
		if to == (common.Hash{}) {
			tokens--
		}
		return tokens, nil
	}
	e.Subject = source.Word(log.Topics[1])
	values, err := s.data.Unpack(log.Data)
	if err != nil {
		return 0, err
	}
	for _, v := range values {
		switch v := v.(type) {
		case string:
			e.Key = v
		case []byte:
			e.Value = v
		}
	}
	return 0, nil
}

func (d *decoder) fault(log *types.Log, err error) error {
	return fmt.Errorf("chain %d, block %d, log %d of %s: %w", d.chain.ID, log.BlockNumber, log.Index, log.Address, err)
}
