package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/beam/internal/dofn"
	"github.com/followpress/followpress/beam/internal/input"
	"github.com/followpress/followpress/beam/internal/wire"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/shards"
	"github.com/followpress/followpress/storage"
	"github.com/followpress/followpress/storage/parts"
)

func init() {
	register.Iter2[string, []byte]()
	dofn.Register4x0(&shardFn{})
	dofn.Register3x0(&shardsFn{})
	dofn.Register4x1(&partFn{})
	dofn.Register7x1(&rootFn{})
}

// A Place is the location of the parts of a site, as workers need it.
type Place struct {
	Run      string // result of parts.Place.Begin
	Location string // s3://BUCKET[/PREFIX] or a folder
	Endpoint string // URL of an S3-compatible server; "" for Amazon S3
	Region   string
}

// Open opens the place. It sends no request.
func (p Place) Open(ctx context.Context) (*parts.Place, error) {
	place, err := parts.Open(ctx, p.Location, storage.S3Options{Endpoint: p.Endpoint, Region: p.Region})
	if err == nil {
		place.Join(p.Run)
	}
	return place, err
}

// layout determines the keys of parts.
type layout struct {
	Config      site.Config
	Recommended int
	Fixed       int // objects that depend on the configuration only

	sums sums
}

// objects returns the number of objects of the site, without manifest and root.
func (l *layout) objects() int {
	return l.sums.of(statObjects) + expected(l.Config, l.sums, l.Recommended, l.Fixed)
}

func (l *layout) digits() int { return site.ShardDigits(l.objects()) }

// A shardFn finds the shard of each object.
type shardFn struct{ Layout layout }

// ProcessElement passes an object on under the name of its shard. The side input has the statistics.
func (f *shardFn) ProcessElement(key string, body []byte, stats func(*string, *int64) bool, emit func(string, []byte)) {
	f.Layout.sums.read(stats)
	object := wire.AppendText(make([]byte, 0, len(key)+len(body)+4), key)
	emit(site.ManifestShard(site.Key(key), f.Layout.digits()), append(object, body...))
}

// A shardsFn emits the names of all shards, including empty ones.
type shardsFn struct{ Layout layout }

// ProcessElement emits them. The side input has the statistics.
func (f *shardsFn) ProcessElement(_ []byte, stats func(*string, *int64) bool, emit func(string, []byte)) {
	f.Layout.sums.read(stats)
	for _, shard := range site.HashPrefixes(f.Layout.digits()) {
		emit(shard, nil)
	}
}

// A partFn writes the objects of a shard as a part.
type partFn struct {
	AsOf string
	Out  Place

	parts *parts.Place
}

// ProcessElement writes a part. It emits the part's data for the root.
func (f *partFn) ProcessElement(ctx context.Context, shard string, values func(*[]byte) bool, emit func(string, []byte)) (err error) {
	if f.parts == nil {
		if f.parts, err = f.Out.Open(ctx); err != nil {
			return input.Fault(err)
		}
	}
	type object struct {
		site.Entry
		body []byte
	}
	var objects []object
	var value []byte
	for values(&value) {
		if len(value) > 0 {
			d := wire.Decode(value)
			key, body := d.Text(), d.Rest()
			if err := d.Err(); err != nil {
				return err
			}
			objects = append(objects, object{site.NewEntry(site.Key(key), body), body})
		}
		value = nil
	}
	slices.SortFunc(objects, func(a, b object) int { return cmp.Compare(a.Key, b.Key) })
	manifest := site.Manifest{Shard: shard, Objects: make([]site.Entry, len(objects))}
	bytes := int64(0)
	for i := range objects {
		if i > 0 && objects[i].Key == objects[i-1].Key {
			return input.Fault(fmt.Errorf("two objects have the key %s: this is a bug in followpress", objects[i].Key))
		}
		manifest.Objects[i] = objects[i].Entry
		bytes += objects[i].Size
	}
	text := manifest.Append(nil)
	all := iter.Seq2[site.Key, []byte](func(yield func(site.Key, []byte) bool) {
		for i := range objects {
			if !yield(objects[i].Key, objects[i].body) {
				return
			}
		}
	})
	part, err := parts.Append(nil, f.AsOf, shard, shards.Pack(text), all)
	if err != nil {
		return err
	}
	if err := f.parts.Put(ctx, parts.Name(shard), part); err != nil {
		return input.Fault(fmt.Errorf("write the parts: %w", err))
	}
	digest := site.Sum256(text)
	done := wire.AppendText(digest[:], shard)
	done = wire.AppendNumbers(done, uint64(len(objects)), uint64(bytes))
	emit("", done)
	return nil
}

// A rootFn writes the report and the root.
type rootFn struct {
	Layout layout
	AsOf   string
	Inputs site.Inputs // known to the launcher
	Events int
	Out    Place
}

// A Report is the pipeline's report, stored as parts.Report with the parts.
type Report struct {
	Statistics map[string]int64    `json:"statistics"`
	Notes      map[string][][]byte `json:"notes"` // by name, as encoded by package input
	Counts     site.Counts         `json:"counts"`
	Shards     int                 `json:"shards"` // number of manifest shards
}

// inputs returns all inputs of the site: those known to the launcher, and digests of tables.
func (f *rootFn) inputs(sums func(*string, *[]byte) bool) *site.Inputs {
	in := f.Inputs
	in.Tables = maps.Clone(in.Tables)
	var name string
	var value []byte
	for sums(&name, &value) {
		if sum := site.SHA256(value); name == string(input.TableRefreshed) {
			in.Refreshed = &sum
		} else {
			in.Tables[name] = sum
		}
		value = nil
	}
	return &in
}

// ProcessElement writes the root, once all parts exist. The side inputs are the statistics, the
// notes for the report, and digests of tables.
func (f *rootFn) ProcessElement(
	ctx context.Context, _ string, values func(*[]byte) bool, stats func(*string, *int64) bool, notes, sums func(*string, *[]byte) bool, emit func([]byte),
) error {
	f.Layout.sums.read(stats)
	s, c := f.Layout.sums, f.Layout.Config
	root := site.Root{
		Format: site.Format, AsOf: f.AsOf, Config: c, BucketDigits: s.userDigits(c), TokenDigits: s.tokenDigits(c), ShardDigits: f.Layout.digits(),
		HeaderRules: c.HeaderRules(), Counts: s.counts(f.Events), Inputs: f.inputs(sums),
	}
	digests := shards.NewDigests(root.ShardDigits)
	var value []byte
	for values(&value) {
		digest := site.SHA256(value[:len(site.SHA256{})])
		d := wire.Decode(value[len(digest):])
		if err := digests.Set(d.Text(), digest); err != nil {
			return input.Fault(err)
		}
		root.Counts.Objects += int(d.Uvarint())
		root.Counts.Bytes += int64(d.Uvarint())
		if err := d.Err(); err != nil {
			return err
		}
		value = nil
	}
	if want := f.Layout.objects(); root.Counts.Objects != want {
		return input.Fault(fmt.Errorf("%d objects were rendered, expected %d: this is a bug in followpress", root.Counts.Objects, want))
	}
	report := Report{Statistics: maps.Clone(map[string]int64(s)), Counts: root.Counts, Notes: map[string][][]byte{}, Shards: len(digests)}
	var indexes []shards.Index
	root.Manifest, indexes = digests.Tree()
	var name string
	for notes(&name, &value) {
		report.Notes[name] = append(report.Notes[name], value)
		value = nil
	}
	body, err := root.Encode()
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(report)
	if err != nil {
		return err
	}
	place, err := f.Out.Open(ctx)
	if err != nil {
		return input.Fault(err)
	}
	if err := place.Put(ctx, parts.Report, encoded); err != nil {
		return input.Fault(fmt.Errorf("write the parts: %w", err))
	}
	if err := place.Finish(ctx, body, indexes); err != nil {
		return input.Fault(fmt.Errorf("end the parts: %w", err))
	}
	emit(body)
	return nil
}

// write writes objects as parts, then the root.
func write(s beam.Scope, o *Options, fixed int, objects, stats, notes, sums beam.PCollection) {
	s = s.Scope("write")
	l := layout{Config: o.Config, Recommended: len(o.Recommended), Fixed: fixed}
	side := beam.SideInput{Input: stats}
	byShard := grouped(s, beam.ParDo(s, &shardFn{l}, objects, side), beam.ParDo(s, &shardsFn{l}, beam.Impulse(s), side))
	parts := beam.ParDo(s, &partFn{AsOf: o.AsOf, Out: o.Out}, byShard)
	beam.ParDo(s, &rootFn{Layout: l, AsOf: o.AsOf, Inputs: o.Inputs, Events: len(o.Events), Out: o.Out},
		beam.GroupByKey(s, parts), side, beam.SideInput{Input: notes}, beam.SideInput{Input: sums})
}
