// Package pipeline makes the site of a snapshot on Apache Beam: the bytes that package generator makes on
// one machine, in parts (parts.Place).
//
// Elements are values by key, encoded by package wire. Whatever depends on an order says where it was,
// since grouping keeps none. No key has values without a bound: those of a hot account are spread over
// several keys (hot.go). beam/README.md states the bounds.
//
// # The path of a snapshot through Beam
//
// Elements are bytes by key. Grouping keeps no order, so rows say where they were: file and line.
//
//  1. launch checks that all tables are there. It reads the events and the recommended accounts, which are small,
//     and removes the part-root of an older run. pipeline/parallelism.go says into how many parts an engine must
//     cut the work. engine.go tells a job server what Beam's SDK cannot say, and cancels the job of an interrupted
//     run.
//  2. input reads each file of a table on one worker, with the reader of snapshot. Successive records of a list
//     travel as one run. Counts and invalid rows are elements of their own. Each table is read once more, on one
//     worker, for the digest that the root names: rows have an order, and grouping keeps none.
//  3. By token ID, pipeline/lists.go makes a list of its row, of the account that claims it as its primary one,
//     and of its records, which it sorts and merges.
//  4. By address, accounts.go decides on a profile, and by name on the account that has the name.
//  5. hot.go samples the records, and finds the accounts that many lists hold. From here on what is said about a
//     hot account comes under several keys.
//  6. By account and salt, counts.go counts followers, mutuals and so on, and adds them up. ranking gives places.
//  7. By address, dispatch.go has everything about an account. It tells what others show of it, asks for what its
//     lists show, and emits its rows of leaderboards.
//  8. By account and salt, holders.go answers those requests. For the API efp it sorts the holders of an account;
//     those of a hot account are first packed into one value for each salt.
//  9. By unit, an account with one of its lists, units.go has all that the unit shows, and calls generator/render,
//     as generator does. It emits objects, and parts of objects that show many accounts.
//  10. collect.go makes buckets, shards and leaderboards of those parts. How many digits a bucket's name has
//     depends on statistics, a side input.
//  11. output.go groups objects by shard of the manifest, sorts them, and writes a part for each with storage. One
//     last key has the digests of all shards: it compares the number of objects with what was expected, writes the
//     report, and then part-root.
//
// Operations have a way of their own, operations.go. By token ID, those of a list get their numbers. By the address of the
// list's account they learn what is shown of it, and by the account that they are about and salt, what is shown of that one.
// Each becomes an entry of the list's activity and, if the list is a primary one, of the account's notifications. Those of a
// hot account are sorted by what orders them, without their texts.
//
// # Workers write parts, not the live bucket
//
// A run on many machines could put its objects under their keys. But then each worker would need the lock's lease,
// for hours, through pauses that no engine promises to bound; a run that fails would leave the mark, and a bucket
// that is half new; and a run that changes one percent would put everything, which is what costs money. So workers
// write parts beside the live bucket, and one publisher, with all of its rules, puts what differs. The price is that
// everything is written twice and read once more, some requests per MiB and not one per object.
//
// A part is what one shard of the manifest lists. So a worker needs nothing but its own objects, the manifest at its
// head is all the index that a reader needs, and a repeated worker writes the same bytes under the same name. Parts
// are pieces of a tar file because that needs no new format: cat makes a site of them. That a header is a function of
// key and size saves an index of offsets, and comparing it byte for byte notices a part of another run without
// hashing bodies.
//
// An engine may go on with a run that nobody waits for any more. So each run puts an ID beside its parts when it
// begins, and its workers read it before they put anything. A late request may still replace a part; then digests
// disagree, and no reader takes the parts for a site.
//
// # Encodings of our own instead of coders
//
// Beam encodes a structure with JSON or by reflection, for each element between two stages. That would be most of the
// time of a pipeline whose stages do little. So keys are texts and values are bytes, and beam/internal/wire encodes
// and decodes them. Engines see bytes only, so a salt or a sort needs nothing of them.
//
// # Hot accounts are found by a sample
//
// An engine may hold all values of a key in memory, and a popular account has millions. To count them exactly first
// would be one more pass over all records. A sample of one in 64, chosen by a hash, is small enough for a side input,
// and a repeated worker chooses the same. A sample that errs makes a group somewhat larger, and changes no byte of
// the site. What is said about a hot account gets a salt, a hash of who says it, so that two things about the same
// pair of accounts meet.
//
// # Statistics are data, not metrics
//
// A metric of Beam counts a bundle that is repeated twice, or not at all on some engines. The report and the number
// of objects have to be right. So counts are elements, summed by name.
//
// # Exact ranks by ranges of addresses
//
// Places are positions in an order of all accounts, by count and address. A sort of everything would have one key,
// and quantiles are not exact. So beam/internal/ranking cuts the addresses into ranges of about the same size. A
// range is sorted on one worker, and says how many accounts it has of each count. Sums of these numbers, over all
// ranges, say where the accounts of each range begin. The sample that chooses the cuts decides how large ranges are,
// and nothing else.
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

// DefaultHotAfter is how many records about an account come under one key.
const DefaultHotAfter = 50_000

// Options of a pipeline. What is in the snapshot besides its large tables is read by the launcher.
type Options struct {
	Config      site.Config // with defaults
	AsOf        string
	ListOps     *uint64
	Events      []site.Event
	Recommended []snapshot.Recommended // each address once
	Tables      *input.Tables
	Inputs      site.Inputs   // of the site, as far as the launcher knows them
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

// ProcessElement emits all of them.
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
