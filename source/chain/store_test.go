package chain

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain/provider"
)

// randomEvent returns an event of Base at or after a block, with odd values.
func randomEvent(random *rand.Rand, block uint64) source.Event {
	contracts := newDecoder(base).addresses()
	e := source.Event{
		Kind: source.Kind(1 + random.IntN(5)), Contract: source.Contract{Chain: base.ID, Address: contracts[random.IntN(len(contracts))]},
		Block: block + random.Uint64N(3), Index: random.Uint32() >> random.IntN(32), Time: int64(random.Uint64()) >> random.IntN(64),
	}
	for i := range e.Subject[random.IntN(33):] {
		e.Subject[len(e.Subject)-1-i] = byte(random.IntN(256))
	}
	if hasKey(e.Kind) {
		e.Key = []string{"user", "manager", "primary-list", "", "\x00\xff"}[random.IntN(5)]
	}
	e.Value = make([]byte, random.IntN(300))
	if random.IntN(1000) == 0 {
		e.Value = make([]byte, batchBytes+random.IntN(batchBytes))
	}
	for i := range e.Value {
		e.Value[i] = byte(random.Uint32())
	}
	return e
}

func cloned(e source.Event) source.Event {
	e.Value = slices.Clone(e.Value)
	return e
}

func folderOf(t testing.TB, dir string) folder {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return folder{root, "."}
}

func newStore(t *testing.T, dir string, reread *uint64) *store {
	t.Helper()
	s, err := openStore(folderOf(t, dir), base, reread, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.close() }) // some tests close it before
	return s
}

func stored(t *testing.T, s *store) (all []source.Event) {
	t.Helper()
	if _, err := read(s.folder, base, point{}, *s.top(), func(e source.Event) bool { all = append(all, cloned(e)); return true }); err != nil {
		t.Fatal(err)
	}
	return all
}

func last(block uint64) provider.Block {
	return provider.Block{Number: block, Hash: common.Hash{1: byte(block >> 8), 2: byte(block)}, Time: int64(block) * 2}
}

func TestStoreKeepsEvents(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	var want []source.Event
	block := base.Registry.FirstBlock
	for range 5 {
		s := newStore(t, dir, nil)
		s.check.Origin = &anchor{}
		for range random.IntN(4) {
			var part []source.Event
			for range random.IntN(1000) {
				e := randomEvent(random, block)
				block = e.Block
				part = append(part, e)
			}
			if err := s.append(part, int64(len(part)), last(block)); err != nil {
				t.Fatal(err)
			}
			want = append(want, part...)
			block++
		}
		if err := errors.Join(s.commit(), s.close()); err != nil {
			t.Fatal(err)
		}
	}
	s := newStore(t, dir, nil)
	got := stored(t, s)
	if !slices.EqualFunc(got, want, equal) {
		t.Errorf("got %d events, want the %d that were stored", len(got), len(want))
	}
	if top := s.top(); top.Events != uint64(len(want)) || top.Tokens != int64(len(want)) || s.next() != block {
		t.Errorf("got %+v, next block %d, want %d events and block %d", top, s.next(), len(want), block)
	}
}

func FuzzReader(f *testing.F) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		var b batch
		for range random.IntN(5) {
			b.add(randomEvent(random, 7), 0)
		}
		f.Add(bytes.Clone(b.finish()))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		r := &reader{r: bufio.NewReader(bytes.NewReader(file)), left: int64(len(file)), contracts: []site.Address{{}}}
		for {
			if _, err := r.next(); errors.Is(err, io.EOF) || errors.Is(err, errDamaged) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		// The checksum keeps most of it from the parser.
		r = &reader{payload: file, contracts: []site.Address{{}, {1}}}
		for len(r.payload) > 0 {
			if _, ok := r.event(); !ok {
				return
			}
		}
	})
}

// filled returns a store with n points of one event each, all settled.
func filled(t *testing.T, dir string, n int) *store {
	t.Helper()
	s := newStore(t, dir, nil)
	random := rand.New(rand.NewPCG(5, 6))
	s.check.Origin = &anchor{}
	for range n {
		e := randomEvent(random, 0)
		e.Block = s.next()
		if err := errors.Join(s.append([]source.Event{e}, 1, last(e.Block)), s.commit()); err != nil {
			t.Fatal(err)
		}
	}
	s.check.Settled = len(s.check.Points)
	if err := s.save(); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPointsThinOut(t *testing.T) {
	c := checkpoint{Origin: &anchor{}}
	for i := range 5000 {
		c.add(point{Block: uint64(i)})
		if c.Settled++; len(c.Points) > maxPoints || !c.valid() || c.Settled > len(c.Points) {
			t.Fatalf("after %d points: got %d, %d settled", i+1, len(c.Points), c.Settled)
		}
		c.Settled = len(c.Points)
	}
	if c.Points[0].Block != 0 {
		t.Errorf("the first: got %d, want 0", c.Points[0].Block)
	}
	for i, p := range c.Points[len(c.Points)-16:] {
		if want := uint64(5000 - 16 + i); p.Block != want {
			t.Errorf("a late point: got %d, want %d", p.Block, want)
		}
	}
}

// Any damage is an error that says what to do, and reading again helps.
func TestDamagedStore(t *testing.T) {
	dir := t.TempDir()
	size := filled(t, dir, 20).size
	whole, err := os.ReadFile(filepath.Join(dir, logsFile))
	if err != nil {
		t.Fatal(err)
	}
	readAll := func() error {
		s, err := openStore(folderOf(t, dir), base, nil, true)
		if err != nil {
			return err
		}
		_, err = read(folderOf(t, dir), base, point{}, *s.top(), func(source.Event) bool { return true })
		return errors.Join(err, s.close())
	}
	for at := int64(0); at < size; at += 1 + size/100 {
		broken := bytes.Clone(whole)
		broken[at] ^= 0x10
		for name, content := range map[string][]byte{"a bit": broken, "the end": whole[:at]} {
			if err := os.WriteFile(filepath.Join(dir, logsFile), content, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := readAll(); !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), "--reread 8453") {
				t.Errorf("%s at %d: got %v, want that it is damaged", name, at, err)
			}
		}
	}
	// What a power failure leaves of bytes that never reached the disk.
	for _, at := range []int64{0, size / 2, size - headBytes} {
		zeros := append(bytes.Clone(whole[:at]), make([]byte, size-at)...)
		if err := os.WriteFile(filepath.Join(dir, logsFile), zeros, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := readAll(); !errors.Is(err, errDamaged) {
			t.Errorf("zeros from %d: got %v, want that it is damaged", at, err)
		}
	}
	reread := uint64(0)
	if s := newStore(t, dir, &reread); s.top() != nil {
		t.Errorf("got %+v, want nothing", s.top())
	}
}

// Whole batches of another number of events, as when files of two states were mixed, are damage.
func TestLogsOfAnotherState(t *testing.T) {
	dir := t.TempDir()
	top := *filled(t, dir, 5).top()
	top.Events--
	if _, err := read(folderOf(t, dir), base, point{}, top, func(source.Event) bool { return true }); !errors.Is(err, errDamaged) {
		t.Errorf("got %v, want that it is damaged", err)
	}
}

func TestUnusableFolders(t *testing.T) {
	dir := t.TempDir()
	filled(t, dir, 2)
	good, err := os.ReadFile(filepath.Join(dir, checkpointFile))
	if err != nil {
		t.Fatal(err)
	}
	text := string(good)
	for name, test := range map[string]struct{ text, want string }{
		"not JSON":          {text[:20], "not JSON"},
		"an older version":  {strings.Replace(text, `"version": 2`, `"version": 0`, 1), "another version"},
		"a newer version":   {strings.Replace(text, `"version": 2`, `"version": 3`, 1), "update followpress"},
		"another contract":  {strings.Replace(text, "0x0e", "0x0f", 1), "other contracts"},
		"another start":     {strings.Replace(text, "from 20180000", "from 20180001", 1), "other contracts"},
		"another order":     {strings.Replace(text, `"block": 20180000`, `"block": 30180000`, 1), "contradicts itself"},
		"too much settled":  {strings.Replace(text, `"settled": 2`, `"settled": 3`, 1), "contradicts itself"},
		"negative settled":  {strings.Replace(text, `"settled": 2`, `"settled": -3`, 1), "contradicts itself"},
		"points, no origin": {strings.Replace(text, `"origin"`, `"origin2"`, 1), "contradicts itself"},
	} {
		if test.text == text {
			t.Fatalf("%s: nothing was changed in %s", name, text)
		}
		if err := os.WriteFile(filepath.Join(dir, checkpointFile), []byte(test.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := openStore(folderOf(t, dir), base, nil, true); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: got %v, want %q and the folder", name, err, test.want)
		}
	}
}

func TestStatesExcludeEachOther(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "state")
	s, err := Open(dir, source.Production())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, source.Production()); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), dir) {
		t.Errorf("the second: got %v, want ErrBusy and the folder", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir, source.Production())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range again.Events() {
		if err == nil || !strings.Contains(err.Error(), "run again") {
			t.Errorf("events of an empty state: got %v, want an error", err)
		}
	}
	if _, err := again.AsOf(); err == nil {
		t.Error("time of an empty state: got none, want an error")
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
}

// What could not be written once is not taken for written later, when there is room again.
func TestCommitAfterAFailedOne(t *testing.T) {
	dir := t.TempDir()
	s := filled(t, dir, 3)
	want := stored(t, s)
	good := s.file
	full, err := os.Open(filepath.Join(dir, logsFile)) // cannot be written to
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	s.file = full
	if err := errors.Join(s.append(want[:1], 1, last(s.next())), s.commit()); err == nil {
		t.Fatal("got no error")
	}
	s.file = good
	if err := s.commit(); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, newStore(t, dir, nil)); !slices.EqualFunc(got, want, equal) {
		t.Errorf("got %d events, want the 3 that were committed", len(got))
	}
}

// A part whose events were written incompletely does not count as read.
func TestStoreOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	s := filled(t, dir, 3)
	want := stored(t, s)
	if err := s.append(want[:1], 1, last(s.next())); err != nil {
		t.Fatal(err)
	}
	if err := s.file.Close(); err != nil {
		t.Fatal(err)
	}
	// Events that are not on disk count neither as stored nor as new.
	if r := (&chainSync{store: s, report: PerChain{Events: 4}}).finish(); r.Events != 3 || r.Stored != 3 {
		t.Errorf("the report says %d new events of %d, want 3 of 3", r.Events, r.Stored)
	}
	big := want[0]
	big.Value = make([]byte, 2*batchBytes)
	if err := s.append([]source.Event{big, big}, 0, last(s.next()+1)); err == nil {
		t.Fatal("got no error")
	}
	if err := s.commit(); err != nil {
		t.Fatal(err)
	}
	if got := stored(t, newStore(t, dir, nil)); !slices.EqualFunc(got, want, equal) {
		t.Errorf("got %d events, want the 3 that were committed", len(got))
	}
}

// asked are nodes whose hosts say, one after the other, how many operations a slot has. Between two answers the newest
// block may be replaced.
type asked struct {
	*world
	head provider.Block
	logs common.Hash // newest block hash in logs
	then common.Hash // hash of that block, once contracts have answered
	says []byte      // number of operations, by host
}

func (a *asked) Newest(context.Context) (provider.Block, error) { return a.head, nil }
func (a *asked) Hosts() int                                     { return len(a.says) }

func (a *asked) Block(_ context.Context, number uint64) (provider.Block, error) {
	return provider.Block{Number: number, Hash: a.then}, nil
}

func (a *asked) Logs(_ context.Context, _ []common.Address, _ []common.Hash, from, to uint64, done func(provider.Blocks) error) error {
	return done(provider.Blocks{From: from, To: to, Last: provider.Block{Number: to, Hash: a.logs}})
}

func (a *asked) Call(_ context.Context, calls []provider.Call, _ provider.Block, except []string) (provider.State, error) {
	for i, n := range a.says {
		if name := string(rune('a' + i)); !slices.Contains(except, name) {
			return provider.State{Host: name, Origin: name, Results: slices.Repeat([][]byte{common.BytesToHash([]byte{n}).Bytes()}, len(calls))}, nil
		}
	}
	return provider.State{}, provider.ErrNoState
}

// syncOf reads base from nodes, up to block 100. Its logs have five operations of a slot, which the returned ledger has.
func syncOf(a *asked) (c *chainSync, l *ledger, slot subject) {
	c = &chainSync{chain: base, decoder: newDecoder(base), store: &store{contracts: newDecoder(base).addresses()}, nodes: a, head: provider.Block{Number: 100}, doubted: map[subject]bool{}}
	slot = subject{question: ops, contract: base.Records[0].Address}
	l = newLedger()
	l.ops[slot] = 5
	return c, l, slot
}

// A host that counts fewer operations than the logs has an older state, which is not a
// contradiction. A host that counts more contradicts the logs, even if all others agree with them.
func TestCountsThatConfirm(t *testing.T) {
	for _, tt := range []struct {
		says  []byte
		wrong int
	}{
		{[]byte{5, 5}, 0}, {[]byte{4, 5}, 0}, {[]byte{5, 4}, 0}, {[]byte{0, 0}, 0}, {[]byte{5, 6}, 1}, {[]byte{6, 5}, 1}, {[]byte{4, 6}, 1},
	} {
		c, l, slot := syncOf(&asked{head: provider.Block{Number: 100}, says: tt.says})
		c.doubted[slot] = true
		if wrong, err := c.confirm(t.Context(), l); err != nil || len(wrong) != tt.wrong {
			t.Errorf("hosts that count %v: got %v and %v, want %d that are wrong", tt.says, wrong, err, tt.wrong)
		}
	}
}

// Answers of contracts after the newest block count only if its logs were read, and if it is still
// part of the chain afterwards.
func TestNewestBlockIsReplacedMeanwhile(t *testing.T) {
	is, other := common.Hash{1}, common.Hash{2}
	for name, tt := range map[string]struct {
		logs, then common.Hash
		ok         bool
	}{
		"it stays": {is, is, true}, "while logs are read": {other, is, false}, "while contracts are asked": {is, other, false},
		"before logs are read": {other, other, false},
	} {
		c, l, slot := syncOf(&asked{head: provider.Block{Number: 101, Hash: is}, logs: tt.logs, then: tt.then, says: []byte{5}})
		found, err := c.askLater(t.Context(), l, []subject{slot}, nil)
		if tt.ok && (err != nil || len(found.asked) != 1) || !tt.ok && !errors.Is(err, errUnknown) {
			t.Errorf("%s: got %+v and %v, want an answer: %t", name, found, err, tt.ok)
		}
	}
}

// Where no contract can be asked, two hosts that agree are enough, and one is not. What fewer hosts had given is read
// again.
func TestQuorumThatIsEnough(t *testing.T) {
	for _, tt := range []struct {
		quorum, had int
		unchecked   bool // allowed
		how         string
		again       bool
	}{
		{quorum: 0, had: 1}, {quorum: 1, had: 1},
		{quorum: 1, had: 1, unchecked: true, how: CheckedNot},
		{quorum: 2, had: 2, how: CheckedByQuorum}, {quorum: 3, had: 3, how: CheckedByQuorum},
		{quorum: 2, had: 1, again: true}, {quorum: 3, had: 2, again: true},
		{quorum: 2, had: 3, how: CheckedByQuorum},
	} {
		s := newStore(t, t.TempDir(), nil)
		s.check.Origin = &anchor{}
		s.begin(tt.had)
		if err := errors.Join(s.append(nil, 0, last(base.Registry.FirstBlock)), s.commit()); err != nil {
			t.Fatal(err)
		}
		c, _, _ := syncOf(&asked{world: &world{}})
		c.store, c.options.Provider.Quorum, c.options.Unchecked = s, tt.quorum, tt.unchecked
		err := c.unchecked(errUnknown)
		how := ""
		if c.report.Check != nil {
			how = c.report.Check.How
		}
		if how != tt.how || c.again != tt.again || (err != nil) != (tt.how == "" && !tt.again) {
			t.Errorf("quorum %d of what %d hosts had: got %q, again %t, %v; want %q and %t", tt.quorum, tt.had, how, c.again, err, tt.how, tt.again)
		}
	}
}
