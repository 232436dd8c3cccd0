// Package pipeline makes the site of a snapshot on Apache Beam: the same bytes as package generator
// makes on one machine, in parts (parts.Place).
//
// Elements are values by key, encoded by package wire. Grouping keeps no order, so elements whose
// order matters carry their position. No key has unbounded values: those of a hot account are
// spread over several keys (hot.go). beam/README.md states the bounds.
//
// # The path of a snapshot through Beam
//
//  1. Package launch checks that all tables exist. It reads the events and the recommended accounts,
//     which are small, and removes the part-root of an older run.
//  2. Package input reads each file of a table on one worker. Successive records of a list travel as
//     one run. Counts and invalid rows are separate elements. Each table is read again, on one worker,
//     for the digest in the root, because grouping keeps no order.
//  3. By token ID, a list is built from its row, from the account that claims it as its primary one,
//     and from its records, which are sorted and merged.
//  4. By address, the profile of each account is chosen; by name, the account with the name.
//  5. A sample of the records finds the accounts that many lists hold. From here on, values about a
//     hot account come under several keys.
//  6. By account and salt, followers, mutuals and so on are counted and summed. Package ranking gives
//     places.
//  7. By address, dispatchFn has everything about an account. It sends the fields that others show,
//     requests the fields that its lists show, and emits its rows of leaderboards.
//  8. By account and salt, answerFn answers these requests. For the API efp it sorts the holders of an
//     account; those of a hot account are first packed into one value per salt.
//  9. By unit, an account with one of its lists, unitFn has all fields that the unit shows, and calls
//     generator/render. It emits objects, and parts of objects that show many accounts.
//  10. collectFn makes buckets, shards and leaderboards of these parts. The number of digits of a
//     bucket's name depends on statistics, a side input.
//  11. By shard of the manifest, partFn sorts objects and writes a part for each shard. One last key has
//     the digests of all shards: rootFn checks the number of objects, writes the report, and then
//     part-root.
//
// Operations take a separate path. By token ID, those of a list get their numbers. By the address
// of the list's account they get its shown fields, and by the account that they change and salt,
// the shown fields of that one. Each becomes an entry of the list's activity and, if the list is a
// primary one, of the account's notifications. Those of a hot account are sorted by their ordering
// fields, without their texts.
//
// # Workers write parts, not the live bucket
//
// A run on many machines could put its objects under their keys. But then each worker would need
// the lock's lease, for hours, through pauses that no engine promises to bound; a run that fails
// would leave the mark, and a half-updated bucket; and a run that changes one percent would put
// everything, which costs money. So workers write parts next to the live bucket, and one publisher,
// with all of its rules, puts the differences. The price is that everything is written twice and
// read once more, with some requests per MiB and not one per object.
//
// A part contains the objects of one shard of the manifest. So a worker needs nothing but its own
// objects, the manifest at the part's head is the only index that a reader needs, and a repeated
// worker writes the same bytes under the same name. Parts are pieces of a tar file, which needs no
// new format: cat joins them into a site. Because a header is a function of key and size, no index
// of offsets is needed, and comparing it byte for byte detects a part of another run without
// hashing bodies.
//
// An engine may continue an abandoned run. So each run puts an ID next to its parts when it begins,
// and its workers read it before they put anything. A late request may still replace a part; then
// digests disagree, and readers reject the parts.
//
// # Custom encodings instead of coders
//
// Beam encodes a structure with JSON or by reflection, for each element between two stages. This
// would be most of the time of a pipeline whose stages do little. So keys are texts and values are
// bytes, encoded and decoded by beam/internal/wire. Engines see bytes only, so salts and sorts need
// nothing of them.
//
// # Hot accounts are found by a sample
//
// An engine may hold all values of a key in memory, and a popular account has millions. An exact
// count would take one more pass over all records. A sample of one in 64, chosen by a hash, is
// small enough for a side input, and a repeated worker chooses the same. An error of the sample
// makes a group somewhat larger, and changes no byte of the site. Values about a hot account get a
// salt, a hash of their source, so that two values about the same pair of accounts meet.
//
// # Statistics are data, not metrics
//
// A metric of Beam counts a repeated bundle twice, or not at all on some engines. The report and
// the number of objects must be exact. So counts are elements, summed by name.
//
// # Exact ranks by ranges of addresses
//
// Places are positions in an order of all accounts, by count and address. A sort of everything
// would have one key, and quantiles are not exact. So beam/internal/ranking cuts the addresses into
// ranges of about the same size. A range is sorted on one worker, which counts its accounts by
// count. Sums of these numbers, over all ranges, give the first places of each range. The sample
// that chooses the cuts only affects the sizes of ranges.
package pipeline

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/followpress/followpress/beam/internal/dofn"
	"github.com/followpress/followpress/beam/internal/input"
	"github.com/followpress/followpress/beam/internal/ranking"
	"github.com/followpress/followpress/beam/internal/wire"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// DefaultHotAfter is the maximum number of records about an account under one key.
const DefaultHotAfter = 50_000

// Options configures a pipeline. The launcher reads everything in the snapshot except its large
// tables.
type Options struct {
	Config      site.Config // has its defaults set
	AsOf        string
	ListOps     *uint64
	Events      []site.Event
	Recommended []snapshot.Recommended // without duplicates
	Tables      *input.Tables
	Inputs      site.Inputs   // inputs of the site that the launcher knows
	Refreshed   *input.Source // nil for none
	SkipInvalid bool
	Out         Place
	HotAfter    int // 0 means DefaultHotAfter
}

func init() {
	dofn.Register2x0(&recommendedFn{})
}

// A recommendedFn emits the recommended accounts.
type recommendedFn struct{ Rows []snapshot.Recommended }

func (f *recommendedFn) ProcessElement(_ []byte, emit func(string, []byte)) {
	for i, r := range f.Rows {
		emit(wire.AddressKey(r.Address), wire.AppendText(binary.AppendUvarint([]byte{kindRecommended}, uint64(i)), r.Class))
	}
}

// Build adds the pipeline to a scope.
func Build(s beam.Scope, o Options) error {
	if o.HotAfter == 0 {
		o.HotAfter = DefaultHotAfter
	}
	asOf, err := time.Parse(time.RFC3339, o.AsOf)
	if err != nil {
		return fmt.Errorf("as_of: %w", err)
	}
	fixed, err := countFixed(&o)
	if err != nil {
		return err
	}
	from := read(s, &o)

	c := s.Scope("claims")
	claims, claimNotes, claimStats := beam.ParDo3(c, &claimsFn{SkipInvalid: o.SkipInvalid, File: o.Tables.FileNames(snapshot.TableAccounts)},
		beam.GroupByKey(c, beam.ParDo(c, &claimRowFn{}, from.accounts)))

	l := s.Scope("lists")
	byToken := []beam.PCollection{tagged(l, kindListRow, from.lists), tagged(l, kindClaim, claims), tagged(l, kindRun, from.records)}
	if o.Refreshed != nil {
		byToken = append(byToken, from.refreshed)
	}
	lists, listNotes, listStats := beam.ParDo3(l, &listsFn{
		Config: o.Config, SkipInvalid: o.SkipInvalid, File: o.Tables.FileNames(snapshot.TableLists),
	}, grouped(l, byToken...))

	p := s.Scope("profiles")
	profiles, names, profileNotes, profileStats := beam.ParDo4(p, &profilesFn{},
		grouped(p, tagged(p, kindAccountRow, from.accounts), beam.ParDo(p, &onlyKindFn{kindRefreshedOf}, lists)))
	named, nameStats := beam.ParDo2(p, &namesFn{Config: o.Config}, beam.GroupByKey(p, names))

	hot := hotAccounts(s, lists, o.HotAfter)
	counts, countStats := countAccounts(s, lists, hot)
	measures := wire.Ranked
	if o.Config.EFP() {
		measures = wire.Measures
	}
	places := ranking.Places(s.Scope("rank"), counts, ranking.Options{Measures: measures, Zeros: o.Config.EFP()}).Places

	d := s.Scope("dispatch")
	everything := grouped(d, beam.ParDo(d, &sameFn{}, profiles), named, beam.ParDo(d, &sameFn{}, lists), tagged(d, kindCounts, counts), tagged(d, kindPlaces, places),
		tagged(d, kindBadge, from.badges), beam.ParDo(d, &recommendedFn{o.Recommended}, beam.Impulse(d)))
	accounts, units, accountParts, dispatchStats := beam.ParDo4(d, &dispatchFn{Config: o.Config, AsOf: asOf.UnixMilli()}, everything, beam.SideInput{Input: hot})

	a := s.Scope("answer")
	answers, hotHolders, holderParts, answerStats := beam.ParDo4(a, &answerFn{Config: o.Config}, beam.GroupByKey(a, accounts), beam.SideInput{Input: hot})
	hotAnswers, hotParts, hotStats := beam.ParDo3(a, &hotHoldersFn{Config: o.Config}, beam.GroupByKey(a, hotHolders))

	counted := append(from.counts, claimStats, listStats, profileStats, nameStats, countStats, dispatchStats, answerStats, hotStats)
	var history operations
	if o.Tables.HasOps {
		history = operationsOf(s, &o, from.ops, lists, profiles)
		counted = append(counted, history.stats...)
	}
	all, stats := sumStats(s, counted...)

	u := s.Scope("units")
	objects, unitParts := beam.ParDo2(u, &unitFn{Config: o.Config, AsOf: o.AsOf, Events: o.Events}, grouped(u, units, answers, hotAnswers))
	collected := collect(s, &o, beam.Flatten(s, accountParts, holderParts, hotParts), unitParts, all, stats)
	every := []beam.PCollection{objects, collected, beam.ParDo(s, &fixedFn{o.Config, o.AsOf, o.Events}, beam.Impulse(s))}
	if o.Tables.HasOps {
		every = append(every, history.render(s, &o, stats)...)
	}

	notes := input.First(s, append(from.notes, claimNotes, listNotes, profileNotes)...)
	write(s, &o, fixed, beam.Flatten(s, every...), stats, notes, beam.Flatten(s, from.digests...))
	return nil
}

// countFixed counts the objects that depend on the configuration only.
func countFixed(o *Options) (n int, err error) {
	r, err := render.New(o.Config, o.AsOf, o.Events)
	if err != nil {
		return 0, err
	}
	r.Fixed(func(site.Key, []byte) { n++ })
	return n, nil
}
