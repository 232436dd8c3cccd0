package pipeline

import (
	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/followpress/followpress/beam/internal/dofn"
	"github.com/followpress/followpress/beam/internal/input"
	"github.com/followpress/followpress/beam/internal/wire"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/refresh"
	"github.com/followpress/followpress/snapshot"
)

func init() {
	dofn.Register3x1(&refreshedFn{})
	dofn.Register3x0(&onlyKindFn{})
}

// Reasons for rows without effect, as generate reports them.
const (
	unknownList    = "unknown list"
	unknownEvent   = "unknown event"
	missingPrimary = "primary list that is not there"
	foreignPrimary = "primary list of another account"
	foreignList    = "list of another account by now"
	listlessOwner  = "owner without a list"
)

// sources are the outputs of the readers.
type sources struct {
	lists, accounts, records, badges, refreshed, ops beam.PCollection
	counts, notes, digests                           []beam.PCollection
}

func read(s beam.Scope, o *Options) (all sources) {
	digests, opsAfter := o.Tables.Digests(s)
	all.digests = append(all.digests, digests)
	type table struct {
		to   *beam.PCollection
		rows input.Rows
	}
	tables := []table{
		{&all.lists, o.Tables.Lists(s)}, {&all.accounts, o.Tables.Accounts(s)},
		{&all.records, o.Tables.Records(s)}, {&all.badges, o.Tables.Badges(s, o.Events)},
	}
	if o.Tables.HasOps {
		tables = append(tables, table{&all.ops, o.Tables.Ops(s, opsAfter)})
	}
	for _, table := range tables {
		*table.to = table.rows.Rows
		all.counts, all.notes = append(all.counts, table.rows.Counts), append(all.notes, table.rows.Notes)
	}
	if o.Refreshed != nil {
		rows := o.Tables.Refreshed(s, *o.Refreshed)
		all.refreshed = beam.ParDo(s, &refreshedFn{Events: input.EventIDs(o.Events), Limits: o.Config.ProfileLimits()}, rows.Rows)
		all.counts, all.notes, all.digests = append(all.counts, rows.Counts), append(all.notes, rows.Notes), append(all.digests, rows.Digest)
	}
	return all
}

// A refreshedFn decodes refreshed objects.
type refreshedFn struct {
	Events []string // IDs, in order
	Limits site.ProfileLimits

	numbers map[string]uint32
}

// ProcessElement decodes an object. It cannot fail: the reader has decoded it before.
func (f *refreshedFn) ProcessElement(token string, value []byte, emit func(string, []byte)) error {
	if f.numbers == nil {
		f.numbers = map[string]uint32{}
		for i, id := range f.Events {
			f.numbers[id] = uint32(i)
		}
	}
	d := wire.Decode(value)
	o := d.RefreshedObject()
	r := wire.Refreshed{Number: o.Number, Token: token, Badges: o.Badges}
	if o.Badges {
		kept, about, err := refresh.DecodeKeptBadges(o.Body)
		if err != nil {
			return err
		}
		r.IsAbout, r.About, r.Fetched = true, about, kept.Fetched
		for _, b := range kept.Badges {
			if event, ok := f.numbers[b.EventID]; ok {
				row := wire.BadgeRow{Event: event}
				if b.Collection != nil {
					row.TokenID = b.Collection.TokenID
				}
				r.Held = append(r.Held, row)
			}
		}
	} else {
		profile, about, err := refresh.DecodeKeptProfile(o.Body)
		if err != nil {
			return err
		}
		if about != nil {
			r.IsAbout, r.About = true, *about
		}
		profile, r.Long = profile.Within(f.Limits)
		r.Profile, r.NoTexts = wire.Profile(render.EncodeProfile(profile)), profile.NoTexts
	}
	emit(token, r.Append([]byte{kindRefreshed}))
	return d.Err()
}

// An onlyKindFn selects the values of one kind.
type onlyKindFn struct{ Kind byte }

func (f *onlyKindFn) ProcessElement(key string, value []byte, emit func(string, []byte)) {
	if value[0] == f.Kind {
		emit(key, value)
	}
}

// reject reports an invalid row, or returns its error unless invalid rows are skipped.
func reject(e *snapshot.RowError, skip bool, t snapshot.Table, at wire.Position, stats *tally, notes func(string, []byte)) error {
	if !skip {
		return input.Fault(e)
	}
	stats.add(input.SkippedCount(t), 1)
	input.NoteInvalid(notes, t, at, e)
	return nil
}
