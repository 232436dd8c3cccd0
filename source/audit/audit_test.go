package audit_test

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
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

// inputs are the blocks that a history ends with.
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

func (w *world) options() audit.Options {
	d := &source.Deployment{}
	urls := map[uint64][]string{}
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
		urls[c.ID] = []string{w.nodes[c.ID].URL}
	}
	return audit.Options{Deployment: d, URLs: urls, All: true, Provider: provider.Options{Patience: 5 * time.Second, Timeout: 10 * time.Second}}
}

// files are a snapshot that says what a truth has.
func files(t testing.TB, s history.Snapshot, chains []site.ChainInput) afero.Fs {
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
	meta, err := json.Marshal(map[string]any{"format": 1, "as_of": "2026-11-24T00:00:00Z", "list_ops": s.ListOps, "chains": chains})
	if err != nil {
		t.Fatal(err)
	}
	put("meta.json", string(meta))
	return to
}

// snapshotOf is a snapshot as a subject.
func snapshotOf(t testing.TB, s history.Snapshot, chains []site.ChainInput) audit.Subject {
	t.Helper()
	subject, err := audit.OpenSnapshot(files(t, s, chains))
	if err != nil {
		t.Fatal(err)
	}
	return subject
}

// render is the site of a snapshot.
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

// What a history has made is what the contracts say, with all that may be odd in it.
func TestNothingDiffers(t *testing.T) {
	for seed := range uint64(12) {
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

// clone is a copy of a truth that may be changed.
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

// largest is the list with the most records.
func largest(s history.Snapshot) *history.List {
	l := slices.MaxFunc(s.Lists, func(a, b history.List) int { return len(a.Records) - len(b.Records) })
	return &s.Lists[slices.IndexFunc(s.Lists, func(o history.List) bool { return o.Token == l.Token })]
}

// alters are ways to alter what a history has made, one at a time. They say of which list, and which fact.
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

// primary is an account that names a list of its own, and that list.
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

// An object that is not that of the manifest is a difference, whatever it says.
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

// later is a world whose chains have gone on after a history.
func later(t testing.TB, seed uint64) (h *history.History, w *world) {
	t.Helper()
	h = history.Random(seed, history.Options{Transactions: 200})
	return h, newWorld(t, h.Continue(seed+1000, history.Options{Transactions: 60}))
}

// A node that has not the state of the site's block, or answers after another one, is asked after its newest
// block. What has changed since is told by logs, or left out.
func TestWithoutState(t *testing.T) {
	for name, f := range map[string]meanrpc.Faults{
		"all states":                     {},
		"state of the newest block only": {State: 1},
		"ignores the block":              {IgnoresBlock: true},
		"no Multicall3":                  {NoMulticall: true, State: 1},
		"few calls at a time":            {MaxCalls: 7, State: 1},
	} {
		compared := 0
		for seed := range uint64(6) {
			h, w := later(t, seed)
			w.set(f)
			for kind, of := range kinds {
				r := run(t, of(t, h.Truth(), w.inputs(h)), w.options())
				if r.Wrong+r.Untold > 0 || len(r.Differences) > 0 || name == "all states" && r.LeftOut > 0 {
					t.Errorf("%s, seed %d, %s: %s", name, seed, kind, r)
				}
				compared += r.Right
			}
		}
		if compared == 0 {
			t.Errorf("%s: nothing was compared", name)
		}
	}
}
