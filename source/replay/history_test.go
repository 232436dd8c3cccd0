package replay_test

import (
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/replay"
)

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

// Snapshots take what histories lead to, and are the same whatever the order of the chains.
func TestReplayIntoSnapshot(t *testing.T) {
	for seed := range uint64(5) {
		h := history.Random(seed, history.Options{})
		apart := slices.SortedStableFunc(slices.Values(h.Blocks), func(a, b history.Block) int { return int(a.Chain) - int(b.Chain) })
		reversed := deploymentOf(h)
		slices.Reverse(reversed.Chains)
		once, again := files(t, deploymentOf(h), h.Blocks), files(t, reversed, apart)
		if !maps.Equal(once, again) {
			t.Errorf("seed %d: the order of the chains changes the snapshot: got %v, want %v", seed, again, once)
		}
		records := 0
		for _, l := range h.Truth().Lists {
			records += len(l.Records)
		}
		if got := strings.Count(once["records.ndjson"], "\n"); got != records {
			t.Errorf("seed %d: got %d records, want %d", seed, got, records)
		}
	}
}

// files returns those of the snapshot that blocks lead to.
func files(t *testing.T, d *source.Deployment, blocks []history.Block) map[string]string {
	t.Helper()
	r := replay.New(d)
	for e := range eventsOf(d, slices.Values(blocks)) {
		if err := r.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir() + "/snapshot"
	w, err := snapshot.Create(dir, snapshot.WriteOptions{Compression: "none", NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	g, err := r.Write(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(snapshot.Meta{AsOf: time.Unix(0, 0), ListOps: &g.ListOps}); err != nil {
		t.Fatal(err)
	}
	return readFiles(t, dir)
}

func readFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, name := range []string{"meta.json", "lists.ndjson", "records.ndjson", "ops.ndjson"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		found[name] = string(b)
	}
	return found
}
