package pipeline

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/transforms/top"

	"github.com/followpress/followpress/beam/internal/dofn"
	"github.com/followpress/followpress/beam/internal/input"
	"github.com/followpress/followpress/beam/internal/wire"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/op"
	"github.com/followpress/followpress/snapshot"
)

// Kinds of values by token ID, by address, and by the key of an account that operations change.
const (
	kindOwner byte = iota // the account of a list, and whether the list is its primary one
	kindOp
	kindActor       // shown fields of an account in entries
	kindEntry       // operation of a hot account, after its number among the operations under one key
	kindEntryPlaces // places of the entries of one key
)

// Keys of parts of objects that show operations.
const (
	keyAbout = "N" // followed by an address in hexadecimal, a slash and the number of a shard
	keyOf    = "A" // followed by a token ID, a slash and the number of a shard
)

func init() {
	dofn.Register3x1(&ownersFn{})
	dofn.Register4x1(&opsFn{})
	dofn.Register3x1(&actorsFn{})
	dofn.Register4x0(&saltActorsFn{})
	dofn.Register3x1(&sampleOpsFn{})
	dofn.Register4x1(&byFn{})
	dofn.Register7x1(&aboutFn{})
	dofn.Register4x1(&hotOrderFn{})
	dofn.Register3x1(&hotEntriesFn{})
	dofn.Register3x1(&entriesFn{})
	dofn.Register3x0(&newestFn{})
	dofn.Register4x1(&wholeFn{})
	register.Function2x1(shownLater)
}

// An ownersFn reduces a list to the fields that its operations need.
type ownersFn struct{}

func (*ownersFn) ProcessElement(_ string, value []byte, emit func(string, []byte)) error {
	if value[0] != kindList {
		return nil
	}
	d := wire.Decode(value[1:])
	token, account, primary := d.Text(), d.Address(), d.Bool()
	emit(token, wire.AppendBool(append([]byte{kindOwner}, account[:]...), primary))
	return d.Err()
}

// An opsFn has the operations of a list. It emits the shown ones by the address of the
// list's account.
type opsFn struct {
	AsOf string
	File []string // names of the files of the table ops

	stats tally
}

// ProcessElement numbers the operations of a list, and counts its days.
func (f *opsFn) ProcessElement(token string, values func(*[]byte) bool, byAccount func(string, []byte), _ func(string, int64)) error {
	isList, isPrimary := false, false
	var account site.Address
	var rows []wire.OpRow
	var value []byte
	for values(&value) {
		d := wire.Decode(value[1:])
		switch value[0] {
		case kindOwner:
			isList, account, isPrimary = true, d.Address(), d.Bool()
		case kindOp:
			rows = append(rows, d.OpRow())
		}
		if err := d.Err(); err != nil {
			return err
		}
		value = nil
	}
	if !isList {
		f.stats.add(input.WithoutEffect(snapshot.TableOps, unknownList), int64(len(rows)))
		return nil
	}
	slices.SortFunc(rows, func(a, b wire.OpRow) int { return render.CompareShown(&a.Op, &b.Op) })
	if isPrimary {
		if err := f.grow(rows); err != nil {
			return err
		}
	}
	shown := slices.DeleteFunc(rows, func(r wire.OpRow) bool { return !r.IsShown })
	f.stats.add(input.ShownOperations, int64(len(shown)))
	f.stats.add(statObjects, int64(render.OperationShards(len(shown))))
	key := wire.AddressKey(account)
	for i := range shown {
		o := wire.ShownOp{
			Op: shown[i].Op, Code: shown[i].Code, Nth: uint32(i), Of: uint32(len(shown)), IsPrimary: isPrimary,
			About: shown[i].About, By: wire.Actor{Address: account},
		}
		byAccount(key, o.Append([]byte{kindOp}))
	}
	return nil
}

// grow counts the days of a primary list. Rows that generate would skip are an error: which ones it
// skips depends on all lists, and so would the digest of the table.
func (f *opsFn) grow(rows []wire.OpRow) error {
	growth, err := render.NewGrowth(f.AsOf)
	if err != nil {
		return err
	}
	for _, r := range slices.Backward(rows) {
		if r.Code == 0 {
			continue
		}
		if err := growth.Add(r.Op.Time, r.Code); err != nil {
			return input.Fault(&snapshot.RowError{File: f.File[r.File], Line: int(r.Line), Reason: err.Error()})
		}
	}
	growth.Days(func(day int64, code op.Code, n uint32) {
		f.stats.add(statGrowth+strconv.FormatInt(day, 10)+"/"+strconv.Itoa(int(code)), int64(n))
	})
	return nil
}

func (f *opsFn) FinishBundle(_ func(string, []byte), stats func(string, int64)) {
	f.stats.flush(stats)
}

// An actorsFn reduces a profile to the fields in entries of operations.
type actorsFn struct{}

func (*actorsFn) ProcessElement(address string, value []byte, emit func(string, []byte)) error {
	d := wire.Decode(value[1:])
	d.Bool()
	a := wire.Actor(render.ActorOf(&render.Account{Address: wire.KeyAddress(address), Profile: render.Profile(d.Profile())}))
	emit(address, a.Append([]byte{kindActor}))
	return d.Err()
}

// A saltActorsFn emits an account under each of its keys.
type saltActorsFn struct{ hot salts }

// ProcessElement passes an account on. The side input has the accounts of many operations.
func (f *saltActorsFn) ProcessElement(address string, actor []byte, hot func(*[]byte) bool, emit func(string, []byte)) {
	f.hot.read(hot)
	f.hot.all(wire.KeyAddress(address), func(_ uint64, key string) { emit(key, actor) })
}

// A sampleOpsFn counts a sample of the operations by the account that they change.
type sampleOpsFn struct {
	HotAfter int
	Seed     uint64
}

func (f *sampleOpsFn) ProcessElement(_ string, value []byte, emit func(string, int64)) error {
	d := wire.Decode(value[1:])
	o := d.ShownOp()
	rate := sampleRateOf(f.HotAfter)
	if hashOf(f.Seed, saysOp(&o), o.Address[:])%rate == 0 {
		emit(wire.AddressKey(o.Address), int64(rate))
	}
	return d.Err()
}

// saysOp identifies an operation on an account.
func saysOp(o *wire.ShownOp) []byte { return wire.AppendOp(nil, &o.Op) }

// A byFn adds the acting account's shown fields to operations.
type byFn struct{ hot salts }

// ProcessElement passes the operations of an account on, by the keys of the accounts that they
// change. The side input has the accounts of many operations.
func (f *byFn) ProcessElement(address string, values, hot func(*[]byte) bool, emit func(string, []byte)) error {
	f.hot.read(hot)
	actor, ops, err := actorAndOps(address, values)
	if err != nil {
		return err
	}
	for i := range ops {
		o := &ops[i]
		o.By = actor
		emit(f.hot.key(o.Address, saysOp(o)), o.Append([]byte{kindOp}))
	}
	return nil
}

func actorAndOps(key string, values func(*[]byte) bool) (actor wire.Actor, ops []wire.ShownOp, err error) {
	actor.Address = wire.KeyAddress(key)
	var value []byte
	for values(&value) {
		d := wire.Decode(value[1:])
		switch value[0] {
		case kindActor:
			actor = d.Actor()
		case kindOp:
			ops = append(ops, d.ShownOp())
		}
		if err := d.Err(); err != nil {
			return actor, nil, err
		}
		value = nil
	}
	return actor, ops, nil
}

// An aboutFn receives the operations on an account under one of its keys, and renders them as
// entries.
type aboutFn struct {
	hot   salts
	stats tally
}

// ProcessElement makes entries. The side input has the accounts of many operations. It emits parts
// of objects; for hot accounts it emits, by address, the ordering fields of this key's operations,
// and by key their entries.
func (f *aboutFn) ProcessElement(
	key string, values, hot func(*[]byte) bool, parts, hotOrder, hotEntries func(string, []byte), _ func(string, int64),
) error {
	f.hot.read(hot)
	about, ops, err := actorAndOps(key, values)
	if err != nil {
		return err
	}
	var news []*wire.ShownOp
	for i := range ops {
		o := &ops[i]
		shown := shownOf(o, about)
		parts(operationsPart(keyOf, o.Op.TokenID, o.Nth), wire.Entry{Nth: o.Nth, Of: o.Of, Row: shown.OfList(nil)}.Append(nil))
		if !o.IsPrimary {
			continue
		}
		news = append(news, o)
		if o.Nth < render.RecentOperations {
			parts(keyRecent, shown.Whole(wire.AppendOp(nil, &o.Op)))
		}
		if o.Nth == 0 {
			parts(keyActive, shown.Last(wire.AppendOp(nil, &o.Op)))
		}
	}
	slices.SortFunc(news, func(a, b *wire.ShownOp) int { return render.CompareShown(&a.Op, &b.Op) })
	if f.hot.count(about.Address) > 1 {
		order := wire.AppendText(nil, key)
		for i, o := range news {
			shown := shownOf(o, about)
			order = wire.AppendOp(order, &o.Op)
			hotEntries(key, shown.About(binary.AppendUvarint([]byte{kindEntry}, uint64(i))))
		}
		hotOrder(wire.AddressKey(about.Address), order)
		return nil
	}
	f.stats.add(statObjects, int64(render.OperationShards(len(news))))
	address := about.Address.String()
	for i, o := range news {
		shown := shownOf(o, about)
		entry := wire.Entry{Nth: uint32(i), Of: uint32(len(news)), Row: shown.About(nil)}
		parts(operationsPart(keyAbout, address, entry.Nth), entry.Append(nil))
	}
	return nil
}

func (f *aboutFn) FinishBundle(_ func(*[]byte) bool, _, _, _ func(string, []byte), stats func(string, int64)) {
	f.stats.flush(stats)
}

// shownOf converts an operation for the renderer.
func shownOf(o *wire.ShownOp, about wire.Actor) render.Operation {
	return render.Operation{
		Time: o.Op.Time, Token: o.Op.TokenID, By: render.Actor(o.By), Account: render.Actor(about), Code: o.Code, Tag: string(rawjson.AppendString(nil, o.Tag)),
	}
}

// operationsPart returns the key of the object with an entry.
func operationsPart(key, owner string, nth uint32) string {
	return numbered(key+owner+"/", int(nth)/site.HistoryShardSize)
}

// A hotOrderFn orders the operations on a hot account.
type hotOrderFn struct{ stats tally }

// ProcessElement sends each key of the account the places of its operations.
func (f *hotOrderFn) ProcessElement(_ string, values func(*[]byte) bool, emit func(string, []byte), _ func(string, int64)) error {
	type placed struct {
		op  snapshot.Op
		key int
	}
	var keys []string
	var all []placed
	var value []byte
	for values(&value) {
		d := wire.Decode(value)
		keys = append(keys, d.Text())
		for d.More() {
			all = append(all, placed{d.Op(), len(keys) - 1})
		}
		if err := d.Err(); err != nil {
			return err
		}
		value = nil
	}
	f.stats.add(statObjects, int64(render.OperationShards(len(all))))
	slices.SortFunc(all, func(a, b placed) int { return render.CompareShown(&a.op, &b.op) })
	places := make([][]byte, len(keys))
	for key := range places {
		places[key] = binary.AppendUvarint([]byte{kindEntryPlaces}, uint64(len(all)))
	}
	for place := range all {
		of := &places[all[place].key]
		*of = binary.AppendUvarint(*of, uint64(place))
	}
	for key, places := range places {
		emit(keys[key], places)
	}
	return nil
}

func (f *hotOrderFn) FinishBundle(_ func(string, []byte), stats func(string, int64)) {
	f.stats.flush(stats)
}

// A hotEntriesFn has the entries under one key of a hot account, and their places.
type hotEntriesFn struct{}

func (*hotEntriesFn) ProcessElement(key string, values func(*[]byte) bool, parts func(string, []byte)) error {
	var entries []wire.Entry // indexed by Nth
	var places []uint32
	of := uint32(0)
	var value []byte
	for values(&value) {
		d := wire.Decode(value[1:])
		switch value[0] {
		case kindEntry:
			entries = append(entries, wire.Entry{Nth: d.Uint32(), Row: d.Rest()})
		case kindEntryPlaces:
			for of = d.Uint32(); d.More(); {
				places = append(places, d.Uint32())
			}
		}
		if err := d.Err(); err != nil {
			return err
		}
		value = nil
	}
	if len(places) != len(entries) {
		return fmt.Errorf("%d operations about %s have %d places", len(entries), key, len(places))
	}
	address := wire.KeyAddress(key).String()
	for _, e := range entries {
		e.Nth, e.Of = places[e.Nth], of
		parts(operationsPart(keyAbout, address, e.Nth), e.Append(nil))
	}
	return nil
}

// An entriesFn renders the objects of accounts and lists that show operations.
type entriesFn struct{}

func (*entriesFn) ProcessElement(key string, values func(*[]byte) bool, objects func(string, []byte)) error {
	var entries []wire.Entry
	var value []byte
	for values(&value) {
		d := wire.Decode(value)
		entries = append(entries, d.Entry())
		if err := d.Err(); err != nil {
			return err
		}
		value = nil
	}
	slices.SortFunc(entries, func(a, b wire.Entry) int { return cmp.Compare(a.Nth, b.Nth) })
	owner, _, _ := strings.Cut(key[1:], "/")
	n := int(entries[0].Nth) / site.HistoryShardSize
	member, object := render.OperationsAbout, site.NotificationsKey(owner, n)
	if key[:1] == keyOf {
		member, object = render.OperationsOf, site.ActivityKey(owner, n)
	}
	objects(string(object), render.AppendOperations(nil, member, owner, int(entries[0].Of), n, len(entries), func(b []byte, i int) []byte {
		return append(b, entries[i].Row...)
	}))
	return nil
}

// shownLater is the reverse order of the newest operations.
func shownLater(x, y []byte) bool {
	a, b := wire.Decode(x), wire.Decode(y)
	p, q := a.Op(), b.Op()
	return render.CompareShown(&p, &q) > 0
}

// A newestFn unpacks the newest operations.
type newestFn struct{}

func (*newestFn) ProcessElement(key string, newest [][]byte, emit func(string, []byte)) {
	for _, value := range newest {
		emit(key, value)
	}
}

// A wholeFn renders the objects that show operations of the whole graph.
type wholeFn struct {
	AsOf   string
	Config site.Config
}

// ProcessElement renders them. The side inputs are the statistics and the newest operations.
func (f *wholeFn) ProcessElement(
	_ []byte, stats func(*string, *int64) bool, newest func(*string, *[]byte) bool, objects func(string, []byte),
) error {
	growth, err := f.growth(stats)
	if err != nil || !f.Config.Explorer {
		return err
	}
	type row struct {
		op   snapshot.Op
		text []byte
	}
	all := map[string][]row{}
	var key string
	var value []byte
	for newest(&key, &value) {
		d := wire.Decode(value)
		all[key] = append(all[key], row{d.Op(), d.Rest()})
		if err := d.Err(); err != nil {
			return err
		}
		value = nil
	}
	for _, of := range []struct {
		key    string
		object site.Key
		most   int
	}{{keyRecent, site.RecentKey, render.RecentOperations}, {keyActive, render.ActiveKey, render.ActiveLists}} {
		rows := all[of.key]
		slices.SortFunc(rows, func(a, b row) int { return render.CompareShown(&a.op, &b.op) })
		objects(string(of.object), render.AppendRecent(nil, min(len(rows), of.most), func(b []byte, i int) []byte { return append(b, rows[i].text...) }))
	}
	objects(string(site.GrowthKey), growth.Append(nil))
	return nil
}

// growth sums the days of all lists.
func (f *wholeFn) growth(stats func(*string, *int64) bool) (growth render.Growth, err error) {
	if growth, err = render.NewGrowth(f.AsOf); err != nil {
		return growth, err
	}
	type counted struct{ day, code, n int64 }
	var all []counted
	var sums sums
	sums.read(stats)
	for name, n := range sums {
		if of, ok := strings.CutPrefix(name, statGrowth); ok {
			c := counted{n: n}
			if _, err := fmt.Sscanf(of, "%d/%d", &c.day, &c.code); err != nil {
				return growth, err
			}
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b counted) int { return cmp.Or(cmp.Compare(a.day, b.day), cmp.Compare(a.code, b.code)) })
	for _, c := range all {
		if err := growth.AddDay(c.day, op.Code(c.code), uint32(c.n)); err != nil {
			return growth, input.Fault(fmt.Errorf("the table ops: %w", err))
		}
	}
	return growth, nil
}

// operations holds the sources of the objects that show operations.
type operations struct {
	parts  beam.PCollection
	recent beam.PCollection
	stats  []beam.PCollection
}

// operationsOf makes parts from the rows of ops.
func operationsOf(s beam.Scope, o *Options, rows, lists, profiles beam.PCollection) operations {
	s = s.Scope("operations")
	ops, opStats := beam.ParDo2(s, &opsFn{AsOf: o.AsOf, File: o.Tables.FileNames(snapshot.TableOps)},
		grouped(s, tagged(s, kindOp, rows), beam.ParDo(s, &ownersFn{}, lists)))
	seed := rand.Uint64()
	hot := beam.SideInput{Input: hotOf(s, beam.ParDo(s, &sampleOpsFn{o.HotAfter, seed}, ops), o.HotAfter, seed)}
	actors := beam.ParDo(s, &actorsFn{}, profiles)
	told := beam.ParDo(s, &byFn{}, grouped(s, beam.ParDo(s, &sameFn{}, ops), beam.ParDo(s, &sameFn{}, actors)), hot)
	parts, hotOrder, hotEntries, aboutStats := beam.ParDo4(s, &aboutFn{}, grouped(s, told, beam.ParDo(s, &saltActorsFn{}, actors, hot)), hot)
	places, hotStats := beam.ParDo2(s, &hotOrderFn{}, beam.GroupByKey(s, hotOrder))
	hotParts := beam.ParDo(s, &hotEntriesFn{}, grouped(s, hotEntries, places))
	ofObjects, recent := beam.ParDo2(s, &splitFn{[]string{keyRecent, keyActive}}, beam.Flatten(s, parts, hotParts))
	return operations{ofObjects, recent, []beam.PCollection{opStats, aboutStats, hotStats}}
}

// render renders the objects. Parts are grouped before, so that no object waits for statistics of
// its own stage; see collect.
func (h operations) render(s beam.Scope, o *Options, stats beam.PCollection) []beam.PCollection {
	s = s.Scope("render operations")
	newest := beam.ParDo(s, &newestFn{}, top.LargestPerKey(s, h.recent, render.ActiveLists, shownLater))
	return []beam.PCollection{
		beam.ParDo(s, &entriesFn{}, beam.GroupByKey(s, h.parts)),
		beam.ParDo(s, &wholeFn{o.AsOf, o.Config}, beam.Impulse(s), beam.SideInput{Input: stats}, beam.SideInput{Input: newest}),
	}
}
