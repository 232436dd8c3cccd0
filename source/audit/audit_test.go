package audit_test

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"math/big"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/sample"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
	"github.com/followpress/followpress/internal/testenv/nodes"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/memsite"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/audit"
	"github.com/followpress/followpress/source/chain/provider"
)

// A world is a history that nodes serve.
type world struct {
	*history.History
	nodes map[uint64]*meanrpc.Node
}

func newWorld(t testing.TB, h *history.History) *world {
	t.Helper()
	w := &world{h, map[uint64]*meanrpc.Node{}}
	for _, c := range h.Chains {
		w.nodes[c.ID] = meanrpc.Start(t, c.ID, slices.Values(h.Blocks))
		if _, ok := h.Last(c.ID); !ok {
			w.nodes[c.ID].SetHead(c.First, c.First, c.First)
		}
	}
	return w
}

// set sets the faults of all nodes.
func (w *world) set(f meanrpc.Faults) {
	for _, n := range w.nodes {
		n.Set(f)
	}
}

// inputs returns the blocks that a history ends with.
func (w *world) inputs(h *history.History) (all []site.ChainInput) {
	for _, c := range h.Chains {
		block := c.First
		if last, ok := h.Last(c.ID); ok {
			block = last.Number
		}
		hash := w.nodes[c.ID].Hash(block)
		all = append(all, site.ChainInput{ChainID: c.ID, Block: block, Hash: "0x" + hex.EncodeToString(hash[:])})
	}
	slices.SortFunc(all, func(a, b site.ChainInput) int { return cmp.Compare(a.ChainID, b.ChainID) })
	return all
}

func (w *world) deployment() *source.Deployment {
	d := &source.Deployment{}
	for _, c := range w.Chains {
		start := func(a *history.Address) *source.Start {
			if a == nil {
				return nil
			}
			return &source.Start{Address: site.Address(*a), FirstBlock: c.First}
		}
		chain := source.Chain{ID: c.ID, Name: fmt.Sprint("chain ", c.ID), Registry: start(c.Registry), Accounts: start(c.Accounts)}
		for _, a := range c.Records {
			chain.Records = append(chain.Records, *start(&a))
		}
		d.Chains = append(d.Chains, chain)
	}
	return d
}

func (w *world) options() audit.Options {
	d, urls := w.deployment(), map[uint64][]string{}
	for id, n := range w.nodes {
		urls[id] = []string{n.URL}
	}
	return audit.Options{Deployment: d, URLs: urls, All: true, Provider: provider.Options{Patience: 5 * time.Second, Timeout: 10 * time.Second}}
}

// early is before all blocks, also those of a chain without any.
const early = "1970-01-01T00:00:00Z"

// files returns a snapshot with the contents of a history.
func files(t testing.TB, s history.Snapshot, chains []site.ChainInput) afero.Fs {
	t.Helper()
	return filesOf(t, s, chains, early)
}

func filesOf(t testing.TB, s history.Snapshot, chains []site.ChainInput, asOf string) afero.Fs {
	t.Helper()
	tables := map[string]*strings.Builder{}
	for _, name := range []string{"lists", "records", "accounts", "badges", "events", "recommended"} {
		tables[name] = &strings.Builder{}
	}
	add := func(table string, row any) {
		text, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(tables[table], "%s\n", text)
	}
	address := func(a history.Address) string { return "0x" + hex.EncodeToString(a[:]) }
	for _, l := range s.Lists {
		row := map[string]any{"token_id": l.Token, "owner": address(l.Owner)}
		if l.User != nil {
			row["user"] = address(*l.User)
		}
		add("lists", row)
		for _, r := range l.Records {
			add("records", map[string]any{
				"token_id": l.Token, "version": r.Version, "record_type": r.Type, "data": "0x" + hex.EncodeToString([]byte(r.Data)), "tags": append([]string{}, r.Tags...),
			})
		}
	}
	for _, a := range slices.SortedFunc(maps.Keys(s.Primary), func(a, b history.Address) int { return slices.Compare(a[:], b[:]) }) {
		add("accounts", map[string]any{"address": address(a), "primary_list": s.Primary[a]})
	}
	to := afero.NewMemMapFs()
	put := func(name, text string) {
		if err := afero.WriteFile(to, name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range tables {
		put(name+".ndjson", text.String())
	}
	meta, err := json.Marshal(map[string]any{"format": 1, "as_of": asOf, "list_ops": s.ListOps, "chains": chains})
	if err != nil {
		t.Fatal(err)
	}
	put("meta.json", string(meta))
	return to
}

// snapshotOf returns a snapshot as a subject.
func snapshotOf(t testing.TB, s history.Snapshot, chains []site.ChainInput) audit.Subject {
	t.Helper()
	subject, err := audit.OpenSnapshot(files(t, s, chains))
	if err != nil {
		t.Fatal(err)
	}
	return subject
}

// render returns the site of a snapshot.
func render(t testing.TB, s history.Snapshot, chains []site.ChainInput, api string) memsite.Site {
	t.Helper()
	made, _, err := generator.ToMemory(t.Context(), files(t, s, chains), generator.Options{Config: site.Config{API: api}})
	if err != nil {
		t.Fatal(err)
	}
	read, err := memsite.Read(made)
	if err != nil {
		t.Fatal(err)
	}
	return read.With(t, func(_ memsite.Site, root *site.Root) {
		ops := uint64(s.ListOps)
		root.Inputs = &site.Inputs{Chains: chains, ListOps: &ops}
	})
}

// inMemory is a site that says sizes before bodies.
type inMemory struct{ memsite.Site }

func (s inMemory) GetAdmitted(ctx context.Context, key site.Key, admit func(context.Context, int64) error) ([]byte, error) {
	body, err := s.Get(ctx, key)
	if err == nil {
		err = admit(ctx, int64(len(body)))
	}
	return body, err
}

func open(t testing.TB, s memsite.Site) audit.Subject {
	t.Helper()
	subject, err := audit.OpenSite(t.Context(), inMemory{s})
	if err != nil {
		t.Fatal(err)
	}
	return subject
}

func siteOf(t testing.TB, s history.Snapshot, chains []site.ChainInput) audit.Subject {
	t.Helper()
	return open(t, render(t, s, chains, site.APIEFP))
}

var kinds = map[string]func(testing.TB, history.Snapshot, []site.ChainInput) audit.Subject{"snapshot": snapshotOf, "site": siteOf}

func run(t testing.TB, s audit.Subject, o audit.Options) *audit.Report {
	t.Helper()
	r, err := audit.Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A snapshot made of a history equals the contracts, with all oddities of histories.
func TestNothingDiffers(t *testing.T) {
	for seed := range uint64(servers.Rounds(6, 12)) {
		h := history.Random(seed, history.Options{Transactions: 150})
		w := newWorld(t, h)
		for kind, of := range kinds {
			r := run(t, of(t, h.Truth(), w.inputs(h)), w.options())
			if err := r.Err(); err != nil || r.Right != len(h.Truth().Lists) || r.Right == 0 {
				t.Errorf("seed %d, %s: %v\n%s", seed, kind, err, r)
			}
		}
	}
}

// clone returns a copy of a truth that may be changed.
func clone(s history.Snapshot) history.Snapshot {
	s.Lists = slices.Clone(s.Lists)
	for i := range s.Lists {
		s.Lists[i].Records = slices.Clone(s.Lists[i].Records)
		for j := range s.Lists[i].Records {
			s.Lists[i].Records[j].Tags = slices.Clone(s.Lists[i].Records[j].Tags)
		}
	}
	s.Primary = maps.Clone(s.Primary)
	return s
}

// largest returns the list with the most records.
func largest(s history.Snapshot) *history.List {
	l := slices.MaxFunc(s.Lists, func(a, b history.List) int { return len(a.Records) - len(b.Records) })
	return &s.Lists[slices.IndexFunc(s.Lists, func(o history.List) bool { return o.Token == l.Token })]
}

// alters are single alterations of a snapshot, each with the affected list and fact.
var alters = map[string]func(s *history.Snapshot) (list, fact string){
	"a record more": func(s *history.Snapshot) (string, string) {
		l := largest(*s)
		l.Records = append(l.Records, history.Record{Version: 1, Type: "address", Data: strings.Repeat("x", 20)})
		return l.Token, "records"
	},
	"a record less": func(s *history.Snapshot) (string, string) {
		l := largest(*s)
		l.Records = l.Records[1:]
		return l.Token, "records"
	},
	"another address": func(s *history.Snapshot) (string, string) {
		l := largest(*s)
		l.Records[0].Data = "y" + l.Records[0].Data[1:]
		return l.Token, "records"
	},
	"a tag more": func(s *history.Snapshot) (string, string) {
		l := largest(*s)
		l.Records[0].Tags = append(l.Records[0].Tags, "zzz")
		return l.Token, "records"
	},
	"a tag less": func(s *history.Snapshot) (string, string) {
		for i := range s.Lists {
			for j := range s.Lists[i].Records {
				if r := &s.Lists[i].Records[j]; len(r.Tags) > 0 {
					r.Tags = r.Tags[1:]
					return s.Lists[i].Token, "records"
				}
			}
		}
		panic("no tags")
	},
	"another order": func(s *history.Snapshot) (string, string) {
		l := largest(*s)
		l.Records[0], l.Records[1] = l.Records[1], l.Records[0]
		return l.Token, "records"
	},
	"no records": func(s *history.Snapshot) (string, string) {
		l := largest(*s)
		l.Records = nil
		return l.Token, "records"
	},
	"records of another place": func(s *history.Snapshot) (string, string) {
		l := largest(*s)
		for i := range s.Lists {
			if o := &s.Lists[i]; len(o.Records) < len(l.Records) {
				o.Records = l.Records
				return o.Token, "records"
			}
		}
		panic("one place")
	},
	"another owner": func(s *history.Snapshot) (string, string) {
		for i := range s.Lists {
			if s.Lists[i].User == nil {
				s.Lists[i].Owner[3] ^= 1
				return s.Lists[i].Token, "owner"
			}
		}
		panic("all have users")
	},
	"another user": func(s *history.Snapshot) (string, string) {
		for i := range s.Lists {
			if s.Lists[i].User != nil {
				user := *s.Lists[i].User
				user[3] ^= 1
				s.Lists[i].User = &user
				return s.Lists[i].Token, "user"
			}
		}
		panic("no users")
	},
	"no user": func(s *history.Snapshot) (string, string) {
		for i := range s.Lists {
			if u := s.Lists[i].User; u != nil && *u != s.Lists[i].Owner {
				s.Lists[i].User = nil
				return s.Lists[i].Token, "user"
			}
		}
		panic("no users")
	},
	"another primary list": func(s *history.Snapshot) (string, string) {
		a, of := primary(s)
		for _, l := range s.Lists {
			if l.Token != of && account(l) == a {
				s.Primary[a] = l.Token
				return l.Token, "primary list"
			}
		}
		s.Primary[a] = "999"
		return of, "primary list"
	},
	"no primary list": func(s *history.Snapshot) (string, string) {
		a, of := primary(s)
		delete(s.Primary, a)
		return of, "primary list"
	},
	"a list less": func(s *history.Snapshot) (string, string) {
		token := s.Lists[1].Token
		s.Lists = slices.Delete(s.Lists, 1, 2)
		return token, "list"
	},
	"a list more": func(s *history.Snapshot) (string, string) {
		l := *largest(*s)
		l.Token = "4000"
		s.Lists = append(s.Lists, l)
		return l.Token, "list"
	},
	"a list under another number": func(s *history.Snapshot) (string, string) {
		s.Lists[1].Token = "4000"
		return "4000", "owner"
	},
}

func account(l history.List) history.Address {
	if l.User != nil {
		return *l.User
	}
	return l.Owner
}

// primary returns an account that names a list of its own, and that list.
func primary(s *history.Snapshot) (history.Address, string) {
	for _, l := range s.Lists {
		if a := account(l); s.Primary[a] == l.Token {
			return a, l.Token
		}
	}
	panic("no primary list")
}

// Whatever one fact of a list is altered to, an audit of all lists finds it and names list and fact.
func TestAlteredIsFound(t *testing.T) {
	h := history.Random(3, history.Options{Transactions: 300})
	w := newWorld(t, h)
	for name, alter := range alters {
		for kind, of := range kinds {
			altered := clone(h.Truth())
			list, fact := alter(&altered)
			if kind == "site" && (fact == "owner" && name == "another owner" || fact == "user") {
				fact = "account" // a site shows one of them
			}
			r := run(t, of(t, altered, w.inputs(h)), w.options())
			if r.Err() == nil || !slices.ContainsFunc(r.Differences, func(d audit.Difference) bool { return d.List == list && d.Fact == fact }) {
				t.Errorf("%s in a %s: no difference of list %s, %s:\n%s", name, kind, list, fact, r)
			}
			for _, d := range r.Differences {
				if strings.ContainsFunc(d.Text, func(r rune) bool { return r < ' ' }) {
					t.Errorf("%s: control characters in %q", name, d.Text)
				}
			}
		}
	}
}

// An object that differs from the manifest counts as a difference, regardless of its contents.
func TestObjectsAreThoseOfTheManifest(t *testing.T) {
	h := history.Random(4, history.Options{})
	w := newWorld(t, h)
	made := render(t, h.Truth(), w.inputs(h), "")
	const key = "api/v1/lists/1/records"
	for name, alter := range map[string]func(body string) (string, bool){
		"missing": func(string) (string, bool) { return "", false },
		"longer":  func(body string) (string, bool) { return body + " ", true },
		"1 MiB":   func(string) (string, bool) { return strings.Repeat(" ", 1<<20), true },
		"altered": func(body string) (string, bool) { return strings.Replace(body, "e", "E", 1), true },
	} {
		altered := maps.Clone(made)
		if body, there := alter(made[key]); there {
			altered[key] = body
		} else {
			delete(altered, key)
		}
		r := run(t, open(t, altered), w.options())
		if r.Wrong != 1 || r.Differences[0].List != "1" || r.Differences[0].Fact != "object" {
			t.Errorf("%s: %s", name, r)
		}
	}
}

// later returns a world whose chains have gone on after a history.
func later(t testing.TB, seed uint64) (h *history.History, w *world) {
	t.Helper()
	h = history.Random(seed, history.Options{Transactions: 200})
	return h, newWorld(t, h.Continue(seed+1000, history.Options{Transactions: 60}))
}

// A node that lacks the state of the site's block, or answers after another block, is asked after
// its newest block. Logs show what changed since; otherwise the list is skipped.
func TestWithoutState(t *testing.T) {
	faults := map[string]meanrpc.Faults{
		"all states":                     {},
		"state of the newest block only": {State: 1},
		"ignores the block":              {IgnoresBlock: true},
		"no Multicall3":                  {NoMulticall: true, State: 1},
		"few calls at a time":            {MaxCalls: 7, State: 1},
	}
	compared := map[string]int{}
	for seed := range uint64(servers.Rounds(4, 6)) {
		h, w := later(t, seed)
		for kind, of := range kinds {
			subject := of(t, h.Truth(), w.inputs(h))
			for name, f := range faults {
				w.set(f)
				r := run(t, subject, w.options())
				if r.Wrong+r.Untold > 0 || len(r.Differences) > 0 || name == "all states" && r.LeftOut > 0 {
					t.Errorf("%s, seed %d, %s: %s", name, seed, kind, r)
				}
				compared[name] += r.Right
			}
		}
	}
	for name := range faults {
		if compared[name] == 0 {
			t.Errorf("%s: nothing was compared", name)
		}
	}
}

// If the newest blocks are replaced while a node answers, its earlier answers do not match the
// later ones. No list is called wrong because of that.
func TestReplacedMeanwhile(t *testing.T) {
	h := history.Random(6, history.Options{Chains: history.Production(), Transactions: 60})
	c := h.Chains[slices.IndexFunc(h.Chains, func(c history.Chain) bool { return c.Registry != nil })]
	truth, last := h.Truth(), uint64(0)
	for b := range h.Of(c.ID) {
		last = max(last, b.Number)
	}
	ends, moved := false, 0
	for n := 1; !ends && n < 60; n++ {
		w := newWorld(t, h)
		node := w.nodes[c.ID]
		in := w.inputs(h)
		node.SetHead(last+3, last, last)
		var once sync.Once
		ends = true
		node.Set(meanrpc.Faults{State: 1, Trouble: func(r meanrpc.Request) *meanrpc.Trouble {
			if r.N == n {
				once.Do(func() { // every list gets another owner
					ends = false
					var logs []history.Log
					for _, l := range truth.Lists {
						token, ok := new(big.Int).SetString(l.Token, 10)
						if !ok {
							t.Error(l.Token)
						}
						logs = append(logs, history.Transfer(*c.Registry, l.Owner, history.Address{19: 77}, history.Word(token.FillBytes(make([]byte, 32)))))
					}
					node.Reorg(last+2, history.Block{Chain: c.ID, Number: last + 3, Time: node.Time(last) + 9, Logs: logs})
				})
			}
			return nil
		}})
		r, err := audit.Run(t.Context(), snapshotOf(t, truth, in), w.options())
		if err != nil {
			t.Fatalf("replaced before request %d: %v", n, err)
		}
		if r.Wrong > 0 || len(r.Differences) > 0 {
			t.Errorf("replaced before request %d: %s", n, r)
		}
		moved += r.Right
	}
	if !ends || moved == 0 {
		t.Errorf("the audit had more than 60 requests (%t), and found %d lists right: the test tests nothing", !ends, moved)
	}
}

// If the contracts of a node have fewer operations than its logs, the node lacks data, and its
// answers do not count.
func TestFewerOperationsThanLogs(t *testing.T) {
	untold := 0
	for seed := range uint64(6) {
		h, w := later(t, seed)
		w.set(meanrpc.Faults{State: 1, Says: func(function string, true []byte) []byte {
			if function == "getListOpCount" {
				return make([]byte, len(true))
			}
			return true
		}})
		untold += run(t, snapshotOf(t, h.Truth(), w.inputs(h)), w.options()).Untold
	}
	if untold == 0 {
		t.Error("got no list that was not told, want those with operations after the block")
	}
}

// Omitted lists are named, and count as wrong in the bound. If they are many, the audit fails:
// otherwise a publisher of old blocks would have them all omitted.
func TestLeftOut(t *testing.T) {
	tried := map[bool]int{}
	for seed := range uint64(8) {
		h := history.Random(seed, history.Options{Transactions: 200})
		w := newWorld(t, h.Continue(seed+1000, history.Options{Transactions: 6}))
		w.set(meanrpc.Faults{State: 1})
		for _, all := range []bool{true, false} {
			o := w.options()
			o.All, o.Sample, o.Seed = all, len(h.Truth().Lists)-1, 1
			r := run(t, snapshotOf(t, h.Truth(), w.inputs(h)), o)
			if r.LeftOut*20 <= r.Sampled || r.Right == 0 {
				continue
			}
			tried[all]++
			if err := r.Err(); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("cannot compare %d of %d lists", r.LeftOut, r.Sampled)) {
				t.Errorf("seed %d, all %v: got %v", seed, all, err)
			}
			if text := r.String(); len(r.Skipped) != r.LeftOut || !strings.Contains(text, "changed since: "+r.Skipped[0]) ||
				!strings.Contains(text, fmt.Sprintf("%d lists of %d; %d could not be compared", r.Right, r.Sampled, r.LeftOut)) {
				t.Errorf("seed %d, all %v: it does not list the skipped lists:\n%s", seed, all, text)
			}
			if all != (r.Bound == nil) || !all && (*r.Bound != sample.Bound(r.LeftOut, r.Sampled) || !strings.Contains(r.String(), "counting lists that could not be compared as wrong")) {
				t.Errorf("seed %d, all %v: they do not count as wrong:\n%s", seed, all, r)
			}
		}
	}
	if tried[true] == 0 || tried[false] == 0 {
		t.Error("no history of which some lists are left out, and some not")
	}
	few := audit.Report{Sampled: 100, Right: 95, LeftOut: 5}
	if err := few.Err(); err != nil {
		t.Errorf("5 %%: %v", err)
	}
	if few.Right, few.LeftOut = 94, 6; few.Err() == nil {
		t.Error("6 %: no error")
	}
}

// forgets forgets logs of a topic, all of them after a block.
func forgets(w *world, chain, after uint64, topic history.Word) meanrpc.Faults {
	gone := map[meanrpc.LogID]bool{}
	for b := range w.Of(chain) {
		for i, l := range b.Logs {
			if b.Number > after && len(l.Topics) > 0 && l.Topics[0] == topic {
				gone[meanrpc.LogID{Block: b.Number, Index: uint64(i)}] = true
			}
		}
	}
	return meanrpc.Faults{State: 1, Forget: func(id meanrpc.LogID) bool { return gone[id] }}
}

// A node that hides logs never leads to "all right", whether the site was made from it or the audit
// asks it for the logs after the site's block.
func TestHiddenLogs(t *testing.T) {
	for _, topic := range []history.Word{history.TopicTransfer, history.TopicLocation, history.TopicAccountMetadata, history.TopicListOp, history.TopicListMetadata} {
		found, of := 0, 0
		for seed := range uint64(4) {
			h, w := later(t, seed)
			home := h.Chains[slices.IndexFunc(h.Chains, func(c history.Chain) bool { return c.Registry != nil })].ID
			last, _ := h.Last(home)
			w.nodes[home].Set(forgets(w, home, last.Number, topic))
			of++
			if r := run(t, snapshotOf(t, h.Truth(), w.inputs(h)), w.options()); len(r.Differences)+r.Untold > 0 {
				found++
			}
			// A site made without the last log of a kind.
			w.set(meanrpc.Faults{})
			lossy := *h
			lossy.Blocks = slices.Clone(h.Blocks)
			want := h.Truth()
			hidden := slices.ContainsFunc(backwards(len(lossy.Blocks)), func(i int) bool {
				b := lossy.Blocks[i]
				at := slices.IndexFunc(b.Logs, func(l history.Log) bool { return len(l.Topics) > 0 && l.Topics[0] == topic })
				if at < 0 {
					return false
				}
				was := lossy.Blocks[i].Logs
				lossy.Blocks[i].Logs = slices.Delete(slices.Clone(was), at, at+1)
				got := lossy.Truth()
				if slices.EqualFunc(got.Lists, want.Lists, sameList) {
					lossy.Blocks[i].Logs = was // it had no effect
					return false
				}
				return true
			})
			if !hidden {
				continue
			}
			if r := run(t, snapshotOf(t, lossy.Truth(), w.inputs(h)), w.options()); r.Err() == nil {
				t.Errorf("topic %x, seed %d: a lost log was not found:\n%s", topic, seed, r)
			}
		}
		if found == 0 {
			t.Errorf("topic %x: of %d nodes that hide logs, none was found", topic, of)
		}
	}
}

func backwards(n int) (all []int) {
	for i := range n {
		all = append(all, n-1-i)
	}
	return all
}

func sameList(a, b history.List) bool {
	return a.Token == b.Token && a.Owner == b.Owner && (a.User == nil) == (b.User == nil) && (a.User == nil || *a.User == *b.User) &&
		slices.EqualFunc(a.Records, b.Records, func(a, b history.Record) bool { return a.Data == b.Data && slices.Equal(a.Tags, b.Tags) })
}

// A sample depends on its seed alone, and each list is in about as many samples as others.
func TestSample(t *testing.T) {
	const samples, size = 60, 5
	h := history.Random(9, history.Options{Transactions: 100})
	w := newWorld(t, h)
	truth := h.Truth()
	for i := range truth.Lists { // every sampled list differs
		truth.Lists[i].Records = append(truth.Lists[i].Records, history.Record{Version: 1, Type: "address", Data: strings.Repeat("z", 20)})
	}
	in := func(seed uint64) (lists []string) {
		o := w.options()
		o.All, o.Sample, o.Seed = false, size, seed
		r := run(t, snapshotOf(t, truth, w.inputs(h)), o)
		for _, d := range r.Differences {
			lists = append(lists, d.List)
		}
		if len(lists) != size || r.Wrong != size || r.Bound == nil || *r.Bound != 1 || r.Lists != len(truth.Lists) {
			t.Fatalf("seed %d: %v, %s", seed, lists, r)
		}
		return lists
	}
	times := map[string]int{}
	for seed := range uint64(samples) {
		for _, l := range in(seed) {
			times[l]++
		}
	}
	if again := in(7); !slices.Equal(again, in(7)) || slices.Equal(again, in(8)) {
		t.Errorf("seed 7: got %v, then another one; or the same with seed 8", again)
	}
	mean := float64(samples*size) / float64(len(truth.Lists))
	for _, l := range truth.Lists {
		if n := float64(times[l.Token]); n == 0 || n > 3*mean {
			t.Errorf("list %s of %d was in %v samples of %d, want about %.0f", l.Token, len(truth.Lists), n, samples, mean)
		}
	}
}

// If nodes cannot answer, the audit fails with the reason, and never reports equality.
func TestNobodyTells(t *testing.T) {
	h, w := later(t, 2)
	home := h.Chains[slices.IndexFunc(h.Chains, func(c history.Chain) bool { return c.Registry != nil })].ID
	says := func(function string, answer []byte) func(f string, true []byte) []byte {
		return func(f string, true []byte) []byte {
			if f == function {
				return answer
			}
			return true
		}
	}
	long := make([]byte, 32)
	long[30] = 1
	far := slices.Repeat([]byte{0xff}, 32)
	for name, test := range map[string]struct {
		faults meanrpc.Faults
		want   string
	}{
		"no state":               {meanrpc.Faults{NoState: true}, "missing trie node"},
		"another chain":          {meanrpc.Faults{ChainID: 5}, "chain 5"},
		"other blocks":           {meanrpc.Faults{OtherChain: true}, "is of another chain"},
		"totalSupply refused":    {meanrpc.Faults{Says: says("totalSupply", nil)}, "is that its address?"},
		"totalSupply of a day":   {meanrpc.Faults{Says: says("totalSupply", far)}, "is that its address?"},
		"fewer tokens":           {meanrpc.Faults{Says: says("totalSupply", make([]byte, 32))}, "0 tokens"},
		"more tokens":            {meanrpc.Faults{Says: says("totalSupply", long)}, "missing in the snapshot, but in the registry"},
		"no owners":              {meanrpc.Faults{Says: says("ownerOf", nil)}, "no such token"},
		"owners that are longer": {meanrpc.Faults{Says: says("ownerOf", far)}, "ownerOf: not told"},
		"no locations":           {meanrpc.Faults{Says: says("getListStorageLocation", nil)}, "getListStorageLocation: not told"},
		"long locations":         {meanrpc.Faults{Says: says("getListStorageLocation", slices.Concat(long[:31], []byte{32}, far))}, "getListStorageLocation: not told"},
		"no users":               {meanrpc.Faults{Says: says("getListUser", nil)}, "getListUser of slot"},
		"no counts":              {meanrpc.Faults{Says: says("getListOpCount", nil)}, "getListOpCount of slot"},
		"endless counts":         {meanrpc.Faults{Says: says("getListOpCount", far)}, "getListOpCount of slot"},
		"larger counts":          {meanrpc.Faults{Says: says("getListOpCount", slices.Concat(make([]byte, 27), far[:5]))}, "operations of slot"},
		"no operations":          {meanrpc.Faults{Says: says("getListOpsInRange", nil)}, "getListOpsInRange of slot"},
		"no operations at all":   {meanrpc.Faults{Says: says("getListOpsInRange", slices.Concat(long[:31], []byte{32}, make([]byte, 32)))}, "getListOpsInRange of slot"},
		"no primary lists":       {meanrpc.Faults{Says: says("getValue", nil)}, "getValue of"},
	} {
		w.set(meanrpc.Faults{})
		f := test.faults
		w.nodes[home].Set(f)
		o := w.options()
		o.Provider.Patience = time.Second
		r, err := audit.Run(t.Context(), snapshotOf(t, h.Truth(), w.inputs(h)), o)
		if err == nil {
			err = r.Err()
		}
		if err == nil || !strings.Contains(err.Error(), test.want) && (r == nil || !strings.Contains(r.String(), test.want)) {
			t.Errorf("%s: got %v, want %q\n%v", name, err, test.want, r)
		}
	}
}

// A subject that does not name its blocks, or belongs to another deployment, is rejected.
func TestWrongQuestions(t *testing.T) {
	h := history.Random(1, history.Options{})
	w := newWorld(t, h)
	in := w.inputs(h)
	hash := slices.Clone(in)
	hash[0].Hash = "0x" + strings.Repeat("77", 32)
	for name, test := range map[string]struct {
		chains []site.ChainInput
		alter  func(*audit.Options)
		want   string
	}{
		"no blocks":     {nil, nil, "records no blocks"},
		"fewer chains":  {in[:2], nil, "is of another deployment"},
		"another hash":  {hash, nil, "is of another chain"},
		"no node":       {in, func(o *audit.Options) { o.URLs = nil }, "add --rpc"},
		"another range": {in, func(o *audit.Options) { o.Sample = -1 }, "at least one list"},
	} {
		o := w.options()
		if test.alter != nil {
			test.alter(&o)
		}
		if _, err := audit.Run(t.Context(), snapshotOf(t, h.Truth(), test.chains), o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

// A site of old blocks is not current: as_of is the time of the block of the slowest chain. Blocks
// without a hash, as with --until, may be far older, and the report shows their time.
func TestTimeIsThatOfTheBlocks(t *testing.T) {
	h := history.Random(1, history.Options{Transactions: 150})
	w := newWorld(t, h)
	o := w.options()
	in := w.inputs(h)
	unhashed := slices.Clone(in)
	for i := range unhashed {
		unhashed[i].Hash = ""
	}
	oldest := time.Unix(math.MaxInt32, 0)
	for _, c := range in {
		nodes, err := provider.Dial(t.Context(), c.ChainID, o.URLs[c.ChainID], o.Provider)
		if err != nil {
			t.Fatal(err)
		}
		b, err := nodes.Block(t.Context(), c.Block)
		nodes.Close()
		if err != nil {
			t.Fatal(err)
		}
		if at := time.Unix(b.Time, 0); at.Before(oldest) {
			oldest = at
		}
	}
	for name, test := range map[string]struct {
		chains []site.ChainInput
		after  time.Duration // the oldest block
		right  bool
	}{
		"that of the oldest":        {in, 0, true},
		"before it":                 {in, -24 * time.Hour, true},
		"an hour later":             {in, time.Hour, true},
		"more than an hour later":   {in, time.Hour + time.Second, false},
		"a year later":              {in, 365 * 24 * time.Hour, false},
		"a year later, of no hash":  {unhashed, 365 * 24 * time.Hour, true},
		"of the oldest, of no hash": {unhashed, 0, true},
	} {
		asOf := oldest.Add(test.after).UTC().Format(time.RFC3339)
		snapshot, err := audit.OpenSnapshot(filesOf(t, h.Truth(), test.chains, asOf))
		if err != nil {
			t.Fatal(err)
		}
		r := run(t, snapshot, o)
		if differs := slices.ContainsFunc(r.Differences, func(d audit.Difference) bool { return d.Fact == "as_of" }); differs == test.right || (r.Err() == nil) != test.right {
			t.Errorf("%s: got %v, want right %v\n%s", name, r.Err(), test.right, r)
		}
		says := strings.Contains(r.String(), "is of "+oldest.UTC().Format(time.RFC3339)+"; without its hash")
		if says == (test.chains[0].Hash != "") {
			t.Errorf("%s: it says that a block has no hash: %v\n%s", name, says, r)
		}
	}
}

// If a node lacks the state of the site's block and hides a log of a later operation, the
// operations of the contract reveal it, although the altered site looks right.
func TestLaterOperationsAreThoseOfTheContract(t *testing.T) {
	h := history.Random(6, history.Options{Chains: history.Production(), Transactions: 100})
	c := h.Chains[slices.IndexFunc(h.Chains, func(c history.Chain) bool { return c.Registry != nil })]
	last, _ := h.Last(c.ID)
	slot, token := history.Number(77), history.Number(uint64(len(h.Truth().Lists)))
	add := func(i byte) history.Log {
		return history.Op(c.Records[0], slot, slices.Concat([]byte{1, 1, 1, 1}, make([]byte, 19), []byte{i}))
	}
	h = h.With(history.Block{Chain: c.ID, Number: last.Number + 1, Time: last.Time + 2, Logs: []history.Log{
		history.Transfer(*c.Registry, history.Address{}, history.Address{9}, token),
		history.Location(*c.Registry, token, history.LocationBytes(history.Number(c.ID), c.Records[0], slot)), add(1),
	}})
	whole := h.With(history.Block{Chain: c.ID, Number: last.Number + 2, Time: last.Time + 4, Logs: []history.Log{add(2), add(3)}})
	w := newWorld(t, whole)
	shown := h.With(history.Block{Chain: c.ID, Number: last.Number + 2, Time: last.Time + 4, Logs: []history.Log{add(2)}})
	for hidden, want := range map[uint64]string{0: "", 1: "not those of the logs after block"} {
		f := meanrpc.Faults{State: 1}
		truth := h.Truth()
		if hidden > 0 {
			f.Forget = func(id meanrpc.LogID) bool { return id.Block == last.Number+2 && id.Index == hidden }
			truth = shown.Truth()
		}
		w.nodes[c.ID].Set(f)
		r := run(t, snapshotOf(t, truth, w.inputs(h)), w.options())
		if err := r.Err(); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("log %d hidden: got %v, want %q\n%s", hidden, err, want, r)
		}
	}
}

// A real node, with contracts in Solidity and Multicall3 or without, answers as the nodes of the other tests do.
func TestAnvil(t *testing.T) {
	for epoch := range uint64(2) {
		h := history.Random(3+epoch, history.Options{Chains: history.Production(), Transactions: 60})
		w := &world{History: h}
		o := audit.Options{Deployment: w.deployment(), URLs: map[uint64][]string{}, All: true}
		var in []site.ChainInput
		for _, c := range h.Chains {
			node := nodes.StartAnvil(t, h.Chains, c.ID, 2+epoch)
			node.Play(slices.Collect(h.Of(c.ID))...)
			at := node.Head()
			node.Mine(5) // blocks after that of the site
			o.URLs[c.ID] = []string{node.URL}
			chain, err := provider.Dial(t.Context(), c.ID, o.URLs[c.ID], provider.Options{Finality: provider.Latest})
			if err != nil {
				t.Fatal(err)
			}
			b, err := chain.Block(t.Context(), at)
			if err != nil {
				t.Fatal(err)
			}
			chain.Close()
			in = append(in, site.ChainInput{ChainID: c.ID, Block: b.Number, Hash: b.Hash.String()})
		}
		slices.SortFunc(in, func(a, b site.ChainInput) int { return cmp.Compare(a.ChainID, b.ChainID) })
		r := run(t, snapshotOf(t, h.Truth(), in), o)
		if err := r.Err(); err != nil || r.Right != len(h.Truth().Lists) || r.LeftOut > 0 || r.Compared.Operations == 0 {
			t.Errorf("epoch %d: %v\n%s", 2+epoch, err, r)
		}
		altered := clone(h.Truth())
		list, fact := alters["a record more"](&altered)
		if r := run(t, snapshotOf(t, altered, in), o); len(r.Differences) != 1 || r.Differences[0].List != list || r.Differences[0].Fact != fact {
			t.Errorf("epoch %d, a record more: %s", 2+epoch, r)
		}
	}
}

// usual returns a part of the real network, with as many operations a list.
func usual(t testing.TB, lists int) *world {
	real := history.Real()
	n := history.Network{Lists: lists, Ops: lists * real.Ops / real.Lists, Blocks: 1_000_000}
	return newWorld(t, &history.History{Chains: history.Production(), Blocks: slices.Collect(history.Usual(1, n))})
}

// mostRequests is the budget of a sample of 1,000 lists, on all chains together.
const mostRequests = 60

// A sample of 1,000 lists takes few requests, regardless of the size of the network.
func TestBudget(t *testing.T) {
	w := usual(t, 2000)
	o := w.options()
	o.All, o.Sample, o.Seed = false, 1000, 1
	r := run(t, snapshotOf(t, w.Truth(), w.inputs(w.History)), o)
	requests := int64(0)
	for _, c := range r.Chains {
		requests += c.Requests
	}
	if r.Err() != nil || r.Right != 1000 || requests > mostRequests {
		t.Errorf("%d requests, want at most %d:\n%s", requests, mostRequests, r)
	}
}

// BenchmarkAudit audits a sample of 1,000 lists, and all of them, with nodes that take 20 ms for each answer.
//
//	go test -run '^$' -bench Audit -benchtime 1x ./source/audit
func BenchmarkAudit(b *testing.B) {
	w := usual(b, 11_000)
	truth, in := w.Truth(), w.inputs(w.History)
	w.set(meanrpc.Faults{Latency: 20 * time.Millisecond})
	for name, all := range map[string]bool{"sample": false, "all": true} {
		b.Run(name, func(b *testing.B) {
			s := snapshotOf(b, truth, in)
			runtime.GC()
			for b.Loop() {
				o := w.options()
				o.All, o.Seed = all, 1
				r := run(b, s, o)
				requests := int64(0)
				for _, c := range r.Chains {
					requests += c.Requests
				}
				if err := r.Err(); err != nil {
					b.Error(err)
				}
				b.ReportMetric(float64(requests), "requests")
				b.ReportMetric(float64(r.Compared.Operations), "operations")
				b.ReportMetric(r.Seconds, "s")
			}
		})
	}
}
