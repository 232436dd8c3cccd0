package replay_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/testenv/tempdir"
	"github.com/followpress/followpress/site"
	siteop "github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/replay"
)

func TestMain(m *testing.M) {
	tempdir.InMemory()
	m.Run()
}

// The contracts of the tests. As in production, two chains have a contract at one address.
var (
	registry  = source.Contract{Chain: 8453, Address: account(0xa1)}
	accounts  = source.Contract{Chain: 8453, Address: account(0xa2)}
	records   = source.Contract{Chain: 8453, Address: account(0xa3)}
	elsewhere = source.Contract{Chain: 1, Address: account(0xa2)}
)

func deployment() *source.Deployment {
	return &source.Deployment{Chains: []source.Chain{
		{
			ID: 8453, Registry: &source.Start{Address: registry.Address}, Accounts: &source.Start{Address: accounts.Address},
			Records: []source.Start{{Address: records.Address}},
		},
		{ID: 1, Records: []source.Start{{Address: elsewhere.Address}}},
	}}
}

func word(n byte) source.Word { return source.Word{31: n} }

// place returns a slot of the records contract.
func place(slot byte) source.Place { return source.Place{Contract: records, Slot: word(slot)} }

// Events without their position, which the tests number.

func transfer(token, to byte) source.Event {
	a := account(to)
	return source.Event{Kind: source.Transfer, Contract: registry, Subject: word(token), Value: a[:]}
}

func locate(token byte, location []byte) source.Event {
	return source.Event{Kind: source.Location, Contract: registry, Subject: word(token), Value: location}
}

func primary(account byte, value ...byte) source.Event {
	return metadata(account, "primary-list", value)
}

func metadata(of byte, key string, value []byte) source.Event {
	e := source.Event{Kind: source.AccountMetadata, Contract: accounts, Key: key, Value: value}
	a := account(of)
	copy(e.Subject[12:], a[:])
	return e
}

func slotMetadata(at source.Place, key string, value []byte) source.Event {
	return source.Event{Kind: source.ListMetadata, Contract: at.Contract, Subject: at.Slot, Key: key, Value: value}
}

func user(at source.Place, n byte) source.Event {
	a := account(n)
	return slotMetadata(at, "user", a[:])
}

func operate(at source.Place, op []byte) source.Event {
	return source.Event{Kind: source.Op, Contract: at.Contract, Subject: at.Slot, Value: op}
}

// number sets the positions of events: three per block, and block n has the time n.
func number(events ...source.Event) []source.Event {
	for i := range events {
		events[i].Block, events[i].Index, events[i].Time = uint64(i/3), uint32(i%3), int64(i/3)
	}
	return events
}

// rows collects rows as text, as show does.
type rows struct {
	lists   []string
	records map[string]string // by list
	ops     []string
}

func (r *rows) WriteList(l snapshot.List) error {
	text := fmt.Sprintf("%s:%x", l.TokenID, l.Owner[0])
	if l.User != nil {
		text += fmt.Sprintf("/%x", l.User[0])
	}
	r.lists = append(r.lists, text)
	return nil
}

func (r *rows) WriteRecord(record snapshot.Record) error {
	if r.records == nil {
		r.records = map[string]string{}
	}
	r.records[record.TokenID] = strings.TrimSpace(r.records[record.TokenID] + " " + show([]snapshot.Record{record}))
	return nil
}

func (*rows) Begin(snapshot.Table) error { return nil }

func (r *rows) WriteOp(o snapshot.Op) error {
	p, ignored := siteop.Parse(o.Op)
	if ignored != "" {
		return errors.New(string(ignored))
	}
	text := fmt.Sprintf("%d:%d/%d.%d %s %s %x", o.Time, o.Chain, o.Block, o.LogIndex, o.TokenID, p.Code, p.Data()[0])
	if p.Tag != nil {
		text += "#" + string(p.Tag)
	}
	r.ops = append(r.ops, text)
	return nil
}

// String returns the lists, then the records of each.
func (r *rows) String() string {
	text := slices.Clone(r.lists)
	for _, list := range slices.SortedFunc(maps.Keys(r.records), site.CompareTokenIDs) {
		text = append(text, fmt.Sprintf("%s=%s", list, r.records[list]))
	}
	return strings.Join(text, " ")
}

func replayed(t *testing.T, events []source.Event) (*rows, *source.Graph, *replay.Report) {
	t.Helper()
	r := replay.New(deployment())
	for _, e := range events {
		value := slices.Clone(e.Value)
		e.Value = value
		if err := r.Add(e); err != nil {
			t.Fatal(err)
		}
		for i := range value {
			value[i] ^= 0xff // valid until the next event only
		}
	}
	var got rows
	g, err := r.Write(t.Context(), &got)
	if err != nil {
		t.Fatal(err)
	}
	return &got, g, r.Report()
}

func TestReplay(t *testing.T) {
	at5, at6 := place(5), place(6)
	there5 := source.Place{Contract: elsewhere, Slot: word(5)}
	unknown := source.Place{Contract: source.Contract{Chain: 1, Address: records.Address}, Slot: word(5)}
	wide := location(at5)
	wide[2] = 1
	a := account(0x1f)
	for name, test := range map[string]struct {
		events []source.Event
		want   string
	}{
		"nothing":      {},
		"not minted":   {[]source.Event{locate(1, location(at5)), operate(at5, op(add, 1))}, ""},
		"minted":       {[]source.Event{transfer(0, 0x10)}, "0:10"},
		"transferred":  {[]source.Event{transfer(1, 0x10), transfer(1, 0x11)}, "1:11"},
		"burned":       {[]source.Event{transfer(1, 0x10), transfer(1, 0)}, ""},
		"by token id":  {[]source.Event{transfer(10, 1), transfer(9, 2), transfer(255, 3)}, "9:2 10:1 255:3"},
		"easy mint":    {[]source.Event{transfer(1, 0x10), locate(1, location(at5)), primary(0x10, bytesOf(32)...), slotMetadata(at5, "manager", a[:]), user(at5, 0x10), operate(at5, op(add, 7))}, "1:10/10 1=7@1"},
		"before mint":  {[]source.Event{user(at5, 0x11), operate(at5, op(add, 7)), locate(1, location(at5)), transfer(1, 0x10)}, "1:10/11 1=7@0"},
		"other chain":  {[]source.Event{transfer(1, 0x10), locate(1, location(there5)), operate(at5, op(add, 1)), operate(there5, op(add, 2)), user(at5, 3), user(there5, 4)}, "1:10/4 1=2@1"},
		"moved":        {[]source.Event{transfer(1, 0x10), locate(1, location(at5)), user(at5, 3), operate(at5, op(add, 1)), operate(at6, op(add, 2)), locate(1, location(at6))}, "1:10 1=2@1"},
		"moved back":   {[]source.Event{transfer(1, 0x10), locate(1, location(at5)), operate(at5, op(add, 1)), locate(1, location(at6)), locate(1, location(at5)), user(at5, 3)}, "1:10/3 1=1@0"},
		"shared slot":  {[]source.Event{transfer(2, 0x10), transfer(1, 0x11), transfer(3, 0x11), locate(1, location(at5)), locate(2, location(at5)), user(at5, 3), operate(at5, op(add, 1)), operate(at5, op(add, 2))}, "1:11/3 2:10/3 3:11 1=1@2 2@2 2=1@2 2@2"},
		"empty slot":   {[]source.Event{transfer(1, 0x10), locate(1, location(at5))}, "1:10"},
		"bad location": {[]source.Event{transfer(1, 0x10), locate(1, location(at5)), user(at5, 3), operate(at5, op(add, 1)), locate(1, location(at5)[:85])}, "1:10"},
		"no location":  {[]source.Event{transfer(1, 0x10), locate(1, location(at5)), user(at5, 3), locate(1, nil)}, "1:10"},
		"unknown":      {[]source.Event{transfer(1, 0x10), locate(1, location(unknown)), user(at5, 3)}, "1:10"},
		"wide chain":   {[]source.Event{transfer(1, 0x10), locate(1, wide), user(at5, 3)}, "1:10"},
		"long user":    {[]source.Event{transfer(1, 0x10), locate(1, location(at5)), user(at5, 3), slotMetadata(at5, "user", bytesOf(32))}, "1:10"},
		"zero user":    {[]source.Event{transfer(1, 0x10), locate(1, location(at5)), user(at5, 3), user(at5, 0)}, "1:10"},
		"other key":    {[]source.Event{transfer(1, 0x10), locate(1, location(at5)), user(at5, 3), slotMetadata(at5, "User", a[:])}, "1:10/3"},
		"slot 0":       {[]source.Event{transfer(1, 0x10), operate(place(0), op(add, 1)), user(place(0), 3)}, "1:10"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, _ := replayed(t, number(test.events...))
			if got.String() != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestGraph(t *testing.T) {
	at5, at6 := place(5), place(6)
	token := bytesOf(31)
	_, g, report := replayed(t, number(
		transfer(1, 0x10), locate(1, location(at5)), user(at5, 0x20),
		transfer(2, 0x11), locate(2, location(at6)),
		transfer(3, 0x12), locate(3, location(at6)),
		operate(at5, op(add, 1)), operate(at5, op(add, 2)), operate(at5, op(tag, 2, "block")),
		operate(at6, op(add, 2)), operate(at6, op(add, 3)), operate(at6, op(tag, 3, "mute")), operate(at6, op(add, 4)), operate(at6, op(tag, 4, "Mute")),
		operate(at6, append([]byte{1, add, 2, 1}, bytesOf(20)...)),
		operate(place(7), op(add, 9)), operate(at5, op(9, 9)), operate(at5, op(tag, 1)),
		primary(0x10, append(token, 200)...), primary(0x11, append(token, 1)...), primary(0x11),
		primary(0x12, append(token, 3)...), primary(0x12, 3), primary(0x20, bytesOf(32)...), metadata(0x20, "other", bytesOf(32)),
	))
	if want := (map[site.Address]string{account(0x10): "200", account(0x20): "0"}); !maps.Equal(g.Primary, want) {
		t.Errorf("Primary: got %v, want %v", g.Primary, want)
	}
	want := map[site.Address]uint32{
		account(0x20): 0, account(0x11): 0, account(0x12): 0, // accounts of lists
		account(1): 1, account(2): 2, account(4): 2,
	}
	if !maps.Equal(g.Held, want) {
		t.Errorf("Held: got %v, want %v", g.Held, want)
	}
	ignored := map[replay.Reason]uint64{replay.NoList: 1, replay.OpCode: 1, replay.TagEmpty: 1, replay.PrimaryLength: 1, replay.OtherKey: 1}
	if !maps.Equal(report.Ignored, ignored) {
		t.Errorf("Ignored: got %v, want %v", report.Ignored, ignored)
	}
	if report.Events != 26 || report.ListOps != 12 || g.ListOps != 12 || report.Lists != 3 || report.Records != 10 {
		t.Errorf("got %+v", report)
	}
	text := "events            26, of which 12 are operations\nlists              3\nrecords           10\nops               15 rows\n" +
		"ignored            1 (empty tag)\n"
	if got := report.String(); !strings.HasPrefix(got, text) {
		t.Errorf("String: got\n%s\nwant\n%s", got, text)
	}
}

// What a source delivers out of order, twice, or from another contract must not become a snapshot.
func TestAddRefuses(t *testing.T) {
	at := func(block uint64, index uint32, e source.Event) source.Event {
		e.Block, e.Index = block, index
		return e
	}
	first := at(5, 5, operate(place(1), op(add, 1)))
	foreign := records
	foreign.Chain = 1
	for name, test := range map[string]struct {
		event source.Event
		want  string
	}{
		"twice":         {first, "order of the chain"},
		"earlier block": {at(4, 9, operate(place(1), op(add, 1))), "order of the chain"},
		"earlier log":   {at(5, 4, transfer(1, 1)), "order of the chain"},
		"contract":      {at(6, 0, operate(source.Place{Contract: registry}, op(add, 1))), "not a contract"},
		"chain":         {at(6, 0, operate(source.Place{Contract: foreign}, op(add, 1))), "not a contract"},
		"kind":          {at(6, 0, source.Event{Kind: source.Transfer, Contract: records, Value: bytesOf(20)}), "not a contract"},
		"unknown kind":  {at(6, 0, source.Event{Contract: records}), "unknown kind"},
		"place":         {at(6, 0, source.Event{Kind: source.Location, Contract: records, Value: location(place(1))}), "not a contract"},
		"primary list":  {at(6, 0, source.Event{Kind: source.AccountMetadata, Contract: registry, Key: "primary-list", Value: bytesOf(32)}), "not a contract"},
		"user":          {at(6, 0, source.Event{Kind: source.ListMetadata, Contract: registry, Key: "user", Value: bytesOf(20)}), "not a contract"},
		"long owner":    {at(6, 0, source.Event{Kind: source.Transfer, Contract: registry, Value: bytesOf(21)}), "21 bytes"},
		"short owner":   {at(6, 0, source.Event{Kind: source.Transfer, Contract: registry, Value: bytesOf(19)}), "19 bytes"},
	} {
		r := replay.New(deployment())
		if err := r.Add(first); err != nil {
			t.Fatal(err)
		}
		if err := r.Add(test.event); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an error with %q", name, err, test.want)
		}
	}
	r := replay.New(deployment())
	for _, e := range []source.Event{first, at(1, 0, operate(source.Place{Contract: elsewhere}, op(add, 1))), at(5, 6, transfer(1, 1))} {
		if err := r.Add(e); err != nil {
			t.Errorf("chains have orders of their own: %v", err)
		}
	}
}

// A record that fits into no row is left out, not an error: nobody may stop everybody's snapshot.
func TestLongRecords(t *testing.T) {
	var events []source.Event
	for list := range byte(2) {
		events = append(events, transfer(list, 1), locate(list, location(place(1))))
	}
	other := append([]byte{1, add, 9, 9}, bytesOf(8<<20-512)...)
	events = append(events, operate(place(1), op(add, 1)), operate(place(1), op(add, 2)), operate(place(1), other), operate(place(1), append(other, 0)))
	for i := range (16 << 20) / (6 * 255) {
		text := []byte(strings.Repeat("\x01", 250))
		events = append(events, operate(place(1), op(tag, 2, fmt.Sprintf("%05d", i)+string(text))))
	}
	r := replay.New(deployment())
	for _, e := range number(events...) {
		if err := r.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	w, err := snapshot.Create(t.TempDir()+"/snapshot", snapshot.WriteOptions{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := r.Write(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if got := r.Report(); got.Records != 4 || got.Ignored[replay.LongRecord] != 2 {
		t.Errorf("got %+v, want 4 records, and 2 left out", got)
	}
}

// Lists that share a slot with much data do not multiply it without limit. They cannot take the
// records from a list (101) whose slot only a few older lists share.
func TestSharedSlots(t *testing.T) {
	events := []source.Event{
		operate(place(1), append([]byte{1, add, 9, 9}, bytesOf(4<<20)...)), // 8 MiB of hex digits
		operate(place(2), append([]byte{1, add, 9, 9}, bytesOf(4<<20)...)),
	}
	for list := range byte(100) {
		events = append(events, transfer(list, 1), locate(list, location(place(1))))
	}
	for list := 99; list <= 101; list++ {
		events = append(events, transfer(byte(list), 1), locate(byte(list), location(place(2))))
	}
	r := replay.New(deployment())
	for _, e := range number(events...) {
		if err := r.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // a limit of each Write
		var wrote counted
		if _, err := r.Write(t.Context(), &wrote); err != nil {
			t.Fatal(err)
		}
		if wrote.lists != 102 || wrote.records != 8+63+3 || r.Report().Ignored[replay.SharedSlot] != 99-8-63 {
			t.Errorf("got %+v, %+v, want 102 lists, 8+63 with the large record, 3 with the other", wrote, r.Report())
		}
	}
}

// What an event says that cannot be true, or means nothing, is counted.
func TestIgnoredEvents(t *testing.T) {
	good := location(place(1))
	unknown := place(1)
	unknown.Chain = 5
	a := account(1)
	for _, test := range []struct {
		event source.Event
		want  replay.Reason
	}{
		{locate(1, good), ""},
		{locate(1, good[:85]), replay.LocationLength},
		{locate(1, location(unknown)), replay.LocationPlace},
		{user(place(1), 1), ""},
		{user(place(1), 0), ""},
		{slotMetadata(place(1), "user", nil), ""},
		{slotMetadata(place(1), "user", a[:19]), replay.UserLength},
		{slotMetadata(place(1), "manager", nil), ""},
		{slotMetadata(place(1), "", nil), replay.OtherKey},
		{primary(1, bytesOf(32)...), ""},
		{primary(1), ""},
		{primary(1, 1), replay.PrimaryLength},
		{metadata(1, "user", a[:]), replay.OtherKey},
		{operate(place(1), nil), replay.OpLength},
	} {
		r := replay.New(deployment())
		if err := r.Add(test.event); err != nil {
			t.Fatal(err)
		}
		want := map[replay.Reason]uint64{}
		if test.want != "" {
			want[test.want] = 1
		}
		if got := r.Report().Ignored; !maps.Equal(got, want) {
			t.Errorf("%+v: got %v, want %v", test.event, got, want)
		}
	}
}

func TestWriteStops(t *testing.T) {
	r := replay.New(deployment())
	for _, e := range number(transfer(1, 1), locate(1, location(place(1))), operate(place(1), op(add, 1))) {
		if err := r.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Write(cancelled, &rows{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	for _, full := range []failing{{lists: true}, {}} {
		if _, err := r.Write(t.Context(), full); !errors.Is(err, errFull) {
			t.Errorf("%+v: got %v, want %v", full, err, errFull)
		}
	}
}

var errFull = errors.New("no space left")

// failing fails to write lists, or records.
type failing struct{ lists bool }

func (f failing) WriteList(snapshot.List) error {
	if f.lists {
		return errFull
	}
	return nil
}

func (failing) WriteRecord(snapshot.Record) error { return errFull }
func (failing) Begin(snapshot.Table) error        { return nil }

func (failing) WriteOp(snapshot.Op) error { return errFull }

// deploymentOf returns the deployment of a history's chains.
func deploymentOf(h *history.History) *source.Deployment {
	d := &source.Deployment{}
	start := func(a *history.Address) *source.Start {
		if a == nil {
			return nil
		}
		return &source.Start{Address: *a}
	}
	for _, c := range h.Chains {
		chain := source.Chain{ID: c.ID, Registry: start(c.Registry), Accounts: start(c.Accounts)}
		for _, r := range c.Records {
			chain.Records = append(chain.Records, *start(&r))
		}
		d.Chains = append(d.Chains, chain)
	}
	return d
}

var kinds = map[history.Word]source.Kind{
	history.TopicTransfer: source.Transfer, history.TopicLocation: source.Location, history.TopicAccountMetadata: source.AccountMetadata,
	history.TopicListOp: source.Op, history.TopicListMetadata: source.ListMetadata,
}

// eventsOf decodes blocks.
func eventsOf(d *source.Deployment, blocks iter.Seq[history.Block]) iter.Seq[source.Event] {
	ours := func(kind source.Kind, c source.Contract) bool {
		switch kind {
		case source.Transfer, source.Location:
			return c == d.Registry()
		case source.AccountMetadata:
			return c == d.Accounts()
		case source.Op, source.ListMetadata:
			return slices.ContainsFunc(d.Chains, func(chain source.Chain) bool {
				return chain.ID == c.Chain && slices.ContainsFunc(chain.Records, func(s source.Start) bool { return s.Address == c.Address })
			})
		}
		return false
	}
	return func(yield func(source.Event) bool) {
		for b := range blocks {
			for i, log := range b.Logs {
				contract := source.Contract{Chain: b.Chain, Address: log.Address}
				if len(log.Topics) == 0 || !ours(kinds[log.Topics[0]], contract) {
					continue
				}
				e := source.Event{Kind: kinds[log.Topics[0]], Contract: contract, Block: b.Number, Index: uint32(i), Time: b.Time * 1000, Subject: log.Topics[1]}
				switch e.Kind {
				case source.Transfer:
					e.Subject, e.Value = log.Topics[3], log.Topics[2][12:]
				case source.Location, source.Op:
					e.Value = abiBytes(log.Data, 0)
				default:
					e.Key, e.Value = string(abiBytes(log.Data, 0)), abiBytes(log.Data, 1)
				}
				if !yield(e) {
					return
				}
			}
		}
	}
}

// abiBytes returns the nth byte string of a log's data.
func abiBytes(data []byte, n int) []byte {
	number := func(at int) int { return int(binary.BigEndian.Uint64(data[at+24:])) }
	at := number(32 * n)
	return data[at+32 : at+32+number(at)]
}

// collected are rows in the form of a history's truth.
type collected struct {
	lists  []history.List
	ops    []history.VisibleOp
	listOf map[string]int
}

func (c *collected) WriteList(l snapshot.List) error {
	if c.listOf == nil {
		c.listOf = map[string]int{}
	}
	c.listOf[l.TokenID] = len(c.lists)
	list := history.List{Token: l.TokenID, Owner: l.Owner}
	if l.User != nil {
		user := history.Address(*l.User)
		list.User = &user
	}
	c.lists = append(c.lists, list)
	return nil
}

func (c *collected) WriteRecord(r snapshot.Record) error {
	n, ok := c.listOf[r.TokenID]
	if !ok {
		return fmt.Errorf("record of list %s, which has no row", r.TokenID)
	}
	c.lists[n].Records = append(c.lists[n].Records, history.Record{
		Version: byte(r.Version), Type: r.Type, Data: string(r.Data), Tags: slices.Clone(r.Tags), Added: r.Added,
	})
	return nil
}

func (*collected) Begin(snapshot.Table) error { return nil }

func (c *collected) WriteOp(o snapshot.Op) error {
	c.ops = append(c.ops, history.VisibleOp{Token: o.TokenID, Time: o.Time, Chain: o.Chain, Block: o.Block, Log: int(o.LogIndex), Data: string(o.Op)})
	return nil
}

// differences compares what a Replay made of events with the truth.
func differences(t *testing.T, d *source.Deployment, blocks []history.Block, want history.Snapshot) (found []string) {
	t.Helper()
	r, events := replay.New(d), 0
	for e := range eventsOf(d, slices.Values(blocks)) {
		if err := r.Add(e); err != nil {
			return []string{err.Error()}
		}
		events++
	}
	var got collected
	g, err := r.Write(t.Context(), &got)
	if err != nil {
		return []string{err.Error()}
	}
	expect := func(what string, got, want any) {
		if got, want := fmt.Sprint(got), fmt.Sprint(want); got != want {
			found = append(found, fmt.Sprintf("%s: got %s, want %s", what, got, want))
		}
	}
	expect("lists", len(got.lists), len(want.Lists))
	records := 0
	for i, list := range want.Lists[:min(len(want.Lists), len(got.lists))] {
		expect(fmt.Sprintf("list %d", i), describeList(got.lists[i]), describeList(list))
		records += len(list.Records)
	}
	primary, held := map[site.Address]string{}, map[site.Address]uint32{}
	for a, token := range want.Primary {
		primary[a] = token
	}
	for a, n := range want.Held {
		held[a] = uint32(n)
	}
	if !maps.Equal(g.Primary, primary) {
		expect("primary lists", g.Primary, primary)
	}
	if !maps.Equal(g.Held, held) {
		expect("held", g.Held, held)
	}
	expect("operations", g.ListOps, want.ListOps)
	if !slices.Equal(got.ops, want.Ops) {
		expect("visible operations", got.ops, want.Ops)
	}
	report := *r.Report()
	expect("report", []uint64{report.Events, report.ListOps, report.Lists, report.Records, report.Ops},
		[]int{events, want.ListOps, len(want.Lists), records, len(want.Ops)})
	return found
}

func describeList(l history.List) string {
	user := "none"
	if l.User != nil {
		user = fmt.Sprintf("%x", *l.User)
	}
	return fmt.Sprintf("%s owner %x user %s records %+q", l.Token, l.Owner, user, fmt.Sprint(l.Records))
}

// Random histories give what their logs say by the shortest computation that is plainly right,
// whatever the order of the chains.
func TestReplayEqualsTruth(t *testing.T) {
	t.Parallel()
	for seed := range uint64(servers.Rounds(150, 2000)) {
		h := history.Random(seed, history.Options{Transactions: 20 + int(seed%7)*30})
		want := h.Truth()
		var apart []history.Block // one chain after the other
		for _, n := range rand.New(rand.NewPCG(seed, 3)).Perm(len(h.Chains)) {
			apart = slices.AppendSeq(apart, h.Of(h.Chains[n].ID))
		}
		for _, blocks := range [][]history.Block{h.Blocks, apart} {
			if found := differences(t, deploymentOf(h), blocks, want); len(found) > 0 {
				t.Fatalf("seed %d: another snapshot than the truth:\n%s", seed, strings.Join(found, "\n"))
			}
		}
	}
}

// A small network of the usual shape too gives what its logs say.
func TestReplayOfUsualNetwork(t *testing.T) {
	h := &history.History{Chains: history.Production()}
	h.Blocks = slices.Collect(history.Usual(1, history.Network{Lists: 200, Ops: 4000, Blocks: 100_000}))
	if found := differences(t, deploymentOf(h), h.Blocks, h.Truth()); len(found) > 0 {
		t.Fatalf("another snapshot than the truth:\n%s", strings.Join(found, "\n"))
	}
}

// The end of an explanation equals the snapshot.
func TestExplainEqualsTruth(t *testing.T) {
	t.Parallel()
	for seed := range uint64(servers.Rounds(10, 100)) {
		h := history.Random(seed, history.Options{})
		d, truth := deploymentOf(h), h.Truth()
		events := slices.Collect(eventsOf(d, slices.Values(h.Blocks)))
		for _, list := range truth.Lists {
			token, err := source.ParseDecimal(list.Token)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := replay.Explain(sequence(events), d, token, &out); err != nil {
				t.Fatal(err)
			}
			account, user := list.Owner, "none"
			if list.User != nil {
				account, user = *list.User, site.Address(*list.User).String()
			}
			primary := "no"
			if truth.Primary[account] == list.Token {
				primary = "yes"
			}
			_, state, _ := strings.Cut(out.String(), "\n\n")
			for _, want := range []string{
				"list      " + list.Token, "owner     " + site.Address(list.Owner).String(), "user      " + user,
				fmt.Sprintf("records   %d\n", len(list.Records)), "primary   " + primary,
			} {
				if !strings.Contains(state, want) {
					t.Fatalf("seed %d, list %s: got\n%s\nwant %q", seed, list.Token, out.String(), want)
				}
			}
		}
	}
}
