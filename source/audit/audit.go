package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/followpress/followpress/internal/sample"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/chain/provider"
)

// A Subject is a Site or a Snapshot to audit.
type Subject interface {
	// Inputs returns the inputs that the subject was made of.
	Inputs() Inputs
	// Lists returns the token IDs of all lists, each once.
	Lists(ctx context.Context) ([]string, error)
	// Choose announces the lists that Claims will be called with.
	Choose(ctx context.Context, tokens []string) error
	// Claims returns the subject's claims about lists, in the order of tokens.
	Claims(ctx context.Context, tokens []string) ([]Claim, error)
}

// Inputs describes the inputs of a Subject.
type Inputs struct {
	Name    string // "site" or "snapshot"
	AsOf    string
	Chains  []site.ChainInput
	ListOps *uint64 // number of operations on all chains; nil if unknown
}

// A Claim is a Subject's data about one list.
type Claim struct {
	Token   string
	Account site.Address // the list's user or, without one, its owner
	Records []Record

	// Raw claims (of snapshots) have Owner, User and the list that the account names as primary.
	// Claims of sites have neither Owner nor User, and Primary only if it is a list of the account.
	Raw     bool
	Owner   site.Address
	User    *site.Address // nil for none
	Primary string        // "" for none

	Damaged string // reason why the list is unreadable: objects are missing or differ from the manifest
}

// Options configure an audit. Zero values are the defaults.
type Options struct {
	Deployment *source.Deployment  // nil for production
	URLs       map[uint64][]string // nodes by chain
	Provider   provider.Options    // how to ask the nodes
	Sample     int                 // number of random lists; 0 means DefaultSample
	All        bool                // compare all lists
	Seed       uint64              // seed of the sample
	Progress   source.Progress     // nil for none
}

// DefaultSample is the default number of lists: if none of them differs, then with 95 percent
// confidence fewer than 0.3 percent of all lists do.
const DefaultSample = 1000

// batch is the number of lists compared at a time.
const batch = 1000

// Run compares lists with the contracts. Differences are reported, not returned as errors. Run
// fails if the contracts cannot be asked.
func Run(ctx context.Context, s Subject, o Options) (*Report, error) {
	if o.Deployment == nil {
		o.Deployment = source.Production()
	}
	o.Sample = cmp.Or(o.Sample, DefaultSample)
	if o.Sample < 0 {
		return nil, errors.New("a sample has at least one list")
	}
	o.Progress = cmp.Or(o.Progress, source.Progress(silent{}))
	o.Provider.Finality = provider.Latest // blocks may be replaced, so hashes are compared
	begun := time.Now()
	a := &audit{Options: o, subject: s, in: s.Inputs(), views: map[uint64]*view{}, places: map[source.Place]bool{}}
	a.report = Report{Kind: a.in.Name, AsOf: a.in.AsOf, All: o.All, Seed: o.Seed}
	defer func() {
		for _, v := range a.views {
			v.nodes.Close()
		}
	}()
	if err := a.run(ctx); err != nil {
		return nil, err
	}
	a.finish(time.Since(begun))
	return &a.report, nil
}

type silent struct{}

func (silent) Stage(string, int64) {}
func (silent) Add(int64)           {}
func (silent) End()                {}

// An audit is the state of one Run.
type audit struct {
	Options
	subject Subject
	in      Inputs
	views   map[uint64]*view
	places  map[source.Place]bool // places whose operations were counted
	sum     uint64                // sum of the operations counted
	report  Report
}

func (a *audit) run(ctx context.Context) error {
	if err := a.open(ctx); err != nil {
		return err
	}
	if err := a.compareTime(); err != nil {
		return err
	}
	a.Progress.Stage("read the "+a.in.Name, 0)
	tokens, err := a.subject.Lists(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(tokens, site.CompareTokenIDs)
	a.report.Lists = len(tokens)
	if err := a.compareSupply(ctx, tokens); err != nil {
		return err
	}
	chosen := a.choose(tokens)
	a.report.Sampled = len(chosen)
	if err := a.subject.Choose(ctx, chosen); err != nil {
		return err
	}
	a.Progress.Stage("compare lists", int64(len(chosen)))
	for some := range slices.Chunk(chosen, batch) {
		if err := a.compareSome(ctx, some); err != nil {
			return err
		}
		a.Progress.Add(int64(len(some)))
	}
	if most := a.in.ListOps; most != nil && a.sum > *most {
		a.report.differ(Difference{Fact: "operations", Text: fmt.Sprintf("the slots of the compared lists have %d operations by the contracts, but the %s was made of only %d", a.sum, a.in.Name, *most)})
	}
	return nil
}

// open opens a view of each chain, concurrently.
func (a *audit) open(ctx context.Context) error {
	if len(a.in.Chains) == 0 {
		return fmt.Errorf("the %s records no blocks, so there is nothing to compare; regenerate it with `snapshot chain`", a.in.Name)
	}
	a.Progress.Stage("ask for the blocks", 0)
	inputs := map[uint64]site.ChainInput{}
	for _, in := range a.in.Chains {
		inputs[in.ChainID] = in
	}
	for _, c := range a.Deployment.Chains {
		in, ok := inputs[c.ID]
		switch {
		case !ok:
			return fmt.Errorf("the %[3]s records no block of chain %[1]d (%[2]s), so it is of another deployment", c.ID, c.Name, a.in.Name)
		case len(a.URLs[c.ID]) == 0:
			return fmt.Errorf("no node of chain %d (%s): add --rpc %d=URL", c.ID, c.Name, c.ID)
		}
		v, err := openView(ctx, c, in, a.URLs[c.ID], a.Provider)
		if err != nil {
			return err
		}
		a.views[c.ID] = v
	}
	return nil
}

// mostAhead is the largest accepted lead of as_of over the time of its block.
const mostAhead = time.Hour

// compareTime compares as_of with the earliest time of the blocks: old blocks do not make a current
// site. Blocks without a hash come from a database or an earlier moment. They are the last blocks
// with an event and may be much older, so the report only shows their time.
func (a *audit) compareTime() error {
	asOf, err := time.Parse(time.RFC3339, a.in.AsOf)
	if err != nil {
		return fmt.Errorf("the %s: as_of %s is not a time: %w", a.in.Name, site.Quoted(a.in.AsOf), site.ErrMalformed)
	}
	for _, c := range a.Deployment.Chains {
		v := a.views[c.ID]
		if at := time.Unix(v.input.Time, 0).UTC(); v.hashed && asOf.After(at.Add(mostAhead)) {
			a.report.differ(Difference{Fact: "as_of", Text: fmt.Sprintf("it is %s in the %s, and block %d of chain %d, after which that was made, is of %s",
				a.in.AsOf, a.in.Name, v.input.Number, c.ID, at.Format(time.RFC3339))})
		}
	}
	return nil
}

// mostNamed is the number of differences listed per kind.
const mostNamed = 100

// compareSupply compares the lists with the number of tokens, since token IDs have no gaps.
func (a *audit) compareSupply(ctx context.Context, tokens []string) error {
	registry := a.Deployment.Registry()
	n, err := supply(ctx, a.views[registry.Chain], registry)
	if err != nil {
		return err
	}
	a.report.Supply = n
	next, missing := uint64(0), uint64(0)
	lacks := func(upto uint64) {
		for ; next < upto; next++ {
			if missing++; missing > mostNamed {
				missing += upto - next - 1
				next = upto
				return
			}
			a.report.differ(Difference{List: fmt.Sprint(next), Fact: "list", Text: "missing in the " + a.in.Name + ", but in the registry"})
		}
	}
	for i, text := range tokens {
		w, err := source.ParseDecimal(text)
		if err != nil {
			return fmt.Errorf("the %s: %w", a.in.Name, err)
		}
		id, small := w.Uint64()
		if !small || id >= n {
			for _, text := range tokens[i:] {
				a.report.differ(Difference{List: text, Fact: "list", Text: fmt.Sprintf("in the %s, but the registry has only %d tokens", a.in.Name, n)})
			}
			break
		}
		lacks(id)
		next = id + 1
	}
	lacks(n)
	a.report.Missing = missing
	return nil
}

// choose takes a uniform sample of the lists.
func (a *audit) choose(tokens []string) []string {
	if a.All || len(tokens) <= a.Sample {
		a.report.All = true
		return tokens
	}
	all := slices.Clone(tokens)
	r := rand.New(rand.NewPCG(a.Seed, 0))
	for i := range a.Sample {
		j := i + r.IntN(len(all)-i)
		all[i], all[j] = all[j], all[i]
	}
	chosen := all[:a.Sample]
	slices.SortFunc(chosen, site.CompareTokenIDs)
	return chosen
}

// compareSome compares one batch of lists.
func (a *audit) compareSome(ctx context.Context, tokens []string) error {
	claims, err := a.subject.Claims(ctx, tokens)
	if err != nil {
		return err
	}
	words := make([]source.Word, len(claims))
	for i, c := range claims {
		if words[i], err = source.ParseDecimal(c.Token); err != nil {
			return fmt.Errorf("the %s: %w", a.in.Name, err)
		}
	}
	var f *facts
	for range mostMoves {
		f = newFacts(a.views, a.Deployment)
		if err = a.take(ctx, f, claims, words); !errors.Is(err, errMoved) {
			break
		}
	}
	if errors.Is(err, errMoved) {
		return errUnsteady(err)
	} else if err != nil {
		return err
	}
	for i := range claims {
		a.compareOne(f, &claims[i], words[i])
	}
	for p, n := range f.counts {
		if !a.places[p] {
			a.places[p] = true
			a.sum += n
			a.report.Compared.Slots++
		}
	}
	a.report.Compared.Operations += f.ops
	return nil
}

// take asks the contracts for everything that the claims are compared with.
func (a *audit) take(ctx context.Context, f *facts, claims []Claim, words []source.Word) error {
	if err := f.takeLists(ctx, words); err != nil {
		return err
	}
	var accounts []site.Address
	for _, c := range claims {
		if c.Damaged == "" {
			accounts = append(accounts, c.Account)
		}
	}
	if err := f.takePrimary(ctx, accounts); err != nil {
		return err
	}
	named, err := f.namedBeside(claims)
	if err != nil {
		return err
	}
	if err := f.takeLists(ctx, named); err != nil {
		return err
	}
	most := uint64(mostOps)
	if a.in.ListOps != nil {
		most = min(most, *a.in.ListOps)
	}
	if err := f.takeRecords(ctx, words, most); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(a.views)) {
		if err := a.views[id].settled(ctx); err != nil {
			return err
		}
	}
	return nil
}

// takeLists asks for the owners, places and users of lists.
func (f *facts) takeLists(ctx context.Context, words []source.Word) error {
	if err := f.takeSeats(ctx, words); err != nil {
		return err
	}
	return f.takeUsers(ctx, words)
}

// namedBeside returns the lists that accounts name as primary according to the contracts but not
// the claims. It counts only if it belongs to the account, which has to be asked for.
func (f *facts) namedBeside(claims []Claim) ([]source.Word, error) {
	named := map[source.Word]bool{}
	for _, c := range claims {
		p := f.primary[c.Account]
		if c.Raw || c.Damaged != "" || p.doubt != none || p.value == "" || p.value == c.Token {
			continue
		}
		w, err := source.ParseDecimal(p.value)
		if err != nil {
			return nil, err
		}
		named[w] = true
	}
	return slices.Collect(maps.Keys(named)), nil
}

// compareOne compares the claim about one list with the facts.
func (a *audit) compareOne(f *facts, c *Claim, w source.Word) {
	l := verdict{report: &a.report, list: c.Token}
	defer l.end()
	if c.Damaged != "" {
		l.differ("object", c.Damaged)
		return
	}
	n := &a.report.Compared
	seat := f.seats[w]
	if seat.owner == (site.Address{}) && seat.doubt == none && (!c.Raw || c.Owner != seat.owner) {
		l.differ("owner", "the registry has no such token")
		return
	}
	if c.Raw && seat.passed {
		l.doubts(changed, "owner", "")
	} else if c.Raw && seat.why == "" {
		n.Owners++
		if c.Owner != seat.owner {
			l.differ("owner", fmt.Sprintf("%s in the %s, %s by the contract", c.Owner, a.in.Name, seat.owner))
		}
	}
	if l.doubts(seat.doubt, "place", seat.why) {
		return // everything else depends on the owner
	}
	n.Places++
	a.compareUser(f, c, w, &l)
	a.comparePrimary(f, c, &l)
	var truth told[[]Record]
	if seat.placed {
		truth = f.records[seat.place]
	}
	if l.doubts(truth.doubt, "records", truth.why) {
		return
	}
	n.Records += uint64(len(truth.value))
	if text := otherRecords(c.Records, truth.value); text != "" {
		l.differ("records", text)
	}
}

func (a *audit) compareUser(f *facts, c *Claim, w source.Word, l *verdict) {
	seat, user := f.seats[w], told[site.Address]{}
	if seat.placed {
		user = f.users[seat.place]
	}
	if l.doubts(user.doubt, "user", user.why) {
		return
	}
	a.report.Compared.Users++
	if !c.Raw {
		is := f.account(w)
		if l.doubts(is.doubt, "account", is.why) {
			return
		}
		a.report.Compared.Owners++
		if c.Account != is.value {
			l.differ("account", fmt.Sprintf("%s in the %s, %s by the contracts (owner %s, user %s)", c.Account, a.in.Name, is.value, seat.owner, orNone(user.value)))
		}
		return
	}
	said := site.Address{}
	if c.User != nil {
		said = *c.User
	}
	if said != user.value {
		l.differ("user", fmt.Sprintf("%s in the %s, %s by the contract", orNone(said), a.in.Name, orNone(user.value)))
	}
}

func orNone(a site.Address) string {
	if a == (site.Address{}) {
		return "none"
	}
	return a.String()
}

func (a *audit) comparePrimary(f *facts, c *Claim, l *verdict) {
	named := f.primary[c.Account]
	if l.doubts(named.doubt, "primary list", named.why) {
		return
	}
	if !c.Raw && named.value != "" {
		w, err := source.ParseDecimal(named.value)
		of := f.account(w)
		if err == nil && l.doubts(of.doubt, "primary list", of.why) {
			return
		}
		if s := f.seats[w]; err != nil || s.owner == (site.Address{}) || of.value != c.Account {
			named.value = ""
		}
	}
	a.report.Compared.Primary++
	if c.Primary != named.value {
		text := func(list string) string {
			if list == "" {
				return "none"
			}
			return "list " + list
		}
		l.differ("primary list", fmt.Sprintf("%[1]s names %[2]s in the %[3]s, %[4]s by the contracts", c.Account, text(c.Primary), a.in.Name, text(named.value)))
	}
}

// A verdict is the result for one list.
type verdict struct {
	report                  *Report
	list                    string
	differs, moved, refused bool
}

func (v *verdict) differ(fact, text string) {
	v.differs = true
	v.report.differ(Difference{v.list, fact, text})
}

// doubts records a doubt, and reports whether there is one.
func (v *verdict) doubts(d doubt, fact, why string) bool {
	switch d {
	case changed:
		v.moved = true
	case untold:
		v.refused = true
		v.report.refuse(Difference{v.list, fact, why})
	}
	return d != none
}

func (v *verdict) end() {
	switch {
	case v.differs:
		v.report.Wrong++
	case v.refused:
		v.report.Untold++
	case v.moved:
		v.report.leaveOut(v.list)
	default:
		v.report.Right++
	}
}

// finish adds to the report what the nodes did and how far the sample can be trusted.
func (a *audit) finish(took time.Duration) {
	r := &a.report
	r.Seconds = took.Seconds()
	for _, c := range a.Deployment.Chains {
		v := a.views[c.ID]
		row := Chain{ID: c.ID, Name: c.Name, Block: v.input.Number, Time: time.Unix(v.input.Time, 0).UTC().Format(time.RFC3339), Hashed: v.hashed, After: v.at.Number, Host: v.host, Untrue: v.untrue}
		for _, cost := range v.nodes.Cost() {
			row.Requests += cost.Requests
			row.Received += cost.Received
		}
		r.Chains = append(r.Chains, row)
	}
	if !r.All && r.Sampled > 0 {
		bound := sample.Bound(r.Sampled-r.Right, r.Sampled) // omitting lists on purpose must not improve the bound
		r.Bound = &bound
	}
}
