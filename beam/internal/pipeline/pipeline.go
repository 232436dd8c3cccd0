// Package pipeline makes the site of a snapshot on Apache Beam: the bytes that package generator makes on
// one machine, in parts (storage.Parts).
//
// Elements are values by key, encoded by package wire. Whatever depends on an order says where it was,
// since grouping keeps none. No key has values without a bound: those of a hot account are spread over
// several keys (hot.go). docs/scale.md states the bounds.
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
	measures := 5
	if o.Config.EFP() {
		measures = wire.Measures
	}
	places := ranking.Places(s.Scope("rank"), counts, ranking.Options{Measures: measures, Zeros: o.Config.EFP()}).Places

	d := s.Scope("dispatch")
	everything := grouped(d, profiles, named, beam.ParDo(d, &sameFn{}, lists), tagged(d, kindCounts, counts), tagged(d, kindPlaces, places),
		tagged(d, kindBadge, from.badges), beam.ParDo(d, &recommendedFn{o.Recommended}, beam.Impulse(d)))
	accounts, units, accountParts, dispatchStats := beam.ParDo4(d, &dispatchFn{Config: o.Config, AsOf: asOf.UnixMilli()}, everything, beam.SideInput{Input: hot})

	a := s.Scope("answer")
	answers, hotHolders, holderParts, answerStats := beam.ParDo4(a, &answerFn{Config: o.Config}, beam.GroupByKey(a, accounts), beam.SideInput{Input: hot})
	hotAnswers, hotParts, hotStats := beam.ParDo3(a, &hotHoldersFn{Config: o.Config}, beam.GroupByKey(a, hotHolders))

	all, stats := sumStats(s, append(from.counts, claimStats, listStats, profileStats, nameStats, countStats, dispatchStats, answerStats, hotStats)...)

	u := s.Scope("units")
	objects, unitParts := beam.ParDo2(u, &unitFn{Config: o.Config, AsOf: o.AsOf, Events: o.Events}, grouped(u, units, answers, hotAnswers))
	collected := collect(s, &o, beam.Flatten(s, accountParts, holderParts, hotParts), unitParts, all, stats)
	fixedObjects := beam.ParDo(s, &fixedFn{o.Config, o.AsOf, o.Events}, beam.Impulse(s))

	notes := input.First(s, append(from.notes, claimNotes, listNotes, profileNotes)...)
	write(s, &o, fixed, beam.Flatten(s, objects, collected, fixedObjects), stats, notes)
	return nil
}

// countFixed counts the objects that depend on the configuration only.
func countFixed(o *Options) (n int, err error) {
	r, err := render.New(o.Config, o.AsOf, o.Events)
	if err != nil {
		return 0, err
	}
	return n, r.Fixed(func(site.Key, []byte) { n++ })
}
