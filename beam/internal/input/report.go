package input

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/transforms/top"

	"github.com/followpress/followpress/beam/internal/dofn"
	"github.com/followpress/followpress/beam/internal/wire"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

func init() {
	dofn.Register3x0(&unlist{})
	register.Function2x1(noteBefore)
}

// TableRefreshed is the name of the refreshed data in counts and notes, although it is not a table.
const TableRefreshed snapshot.Table = "refreshed"

// LongTexts is the name of the count of omitted texts.
const LongTexts = "long_texts"

// Names of the counts of profile entries that are not texts, and of profiles with such entries.
const (
	NoTexts        = "no_texts"
	NoTextProfiles = "no_texts/profiles"
)

// RowCount returns the name of the count of rows, valid or not.
func RowCount(t snapshot.Table) string { return "rows/" + string(t) }

// SkippedCount returns the name of the count of invalid rows.
func SkippedCount(t snapshot.Table) string { return "skipped/" + string(t) }

// WithoutEffect returns the name of the count of valid rows without effect, by reason.
func WithoutEffect(t snapshot.Table, reason string) string {
	return "without_effect/" + string(t) + "/" + reason
}

// Names of notes.
const (
	invalidNotes = "invalid/"
	longNotes    = LongTexts + "/"
)

// maxLong bounds the examples of omitted texts.
const maxLong = 10

// NoteInvalid notes an invalid row. The caller also counts it (SkippedCount).
func NoteInvalid(note func(string, []byte), t snapshot.Table, at wire.Position, e *snapshot.RowError) {
	note(invalidNotes+string(t), wire.Note{Position: at, Name: e.File, Text: e.Reason}.Append(nil))
}

// NoteLong notes an omitted text. The caller also counts it (LongTexts). nth is the index among the
// texts of a profile.
func NoteLong(note func(string, []byte), t snapshot.Table, at wire.Position, file string, nth int, text site.LongText) {
	note(longNotes+string(t), wire.Note{Position: at, Nth: uint32(nth), Name: file, Text: text.Member, Bytes: uint64(text.Bytes)}.Append(nil))
}

// A tally counts for the report of a reader.
type tally struct {
	file
	table   snapshot.Table
	options Options
	counts  map[string]int64
	invalid int // noted rows
	long    int // noted texts
	count   emitCount
	note    emitRow
}

func (r *reader) tally(t snapshot.Table, count emitCount, note emitRow) *tally {
	return &tally{table: t, options: r.Options, counts: map[string]int64{}, count: count, note: note}
}

func (c *tally) at(line int) wire.Position { return wire.Position{File: c.Number, Line: uint64(line)} }

func (c *tally) reject(e *snapshot.RowError) error { return c.rejectAt(c.at(e.Line), e) }

// rejectAt counts an invalid row, or returns its error unless invalid rows are skipped.
func (c *tally) rejectAt(at wire.Position, e *snapshot.RowError) error {
	if !c.options.SkipInvalid {
		return e
	}
	c.skip(at, e)
	return nil
}

// skip counts a skipped row, and notes the first ones.
func (c *tally) skip(at wire.Position, e *snapshot.RowError) {
	c.counts[SkippedCount(c.table)]++
	if c.invalid++; c.invalid <= MaxInvalid {
		NoteInvalid(c.note, c.table, at, e)
	}
}

// leftOut counts texts that are too long.
func (c *tally) leftOut(line int, long []site.LongText) {
	c.counts[LongTexts] += int64(len(long))
	for nth, text := range long[:min(len(long), maxLong-c.long)] {
		NoteLong(c.note, c.table, c.at(line), c.Name, nth, text)
		c.long++
	}
}

// noTexts counts the entries of a profile that are not texts.
func (c *tally) noTexts(entries int) {
	if entries > 0 {
		c.counts[NoTexts] += int64(entries)
		c.counts[NoTextProfiles]++
	}
}

// end ends reading, with an error or without.
func (c *tally) end(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return err // another worker has failed and reports the reason
	} else if err != nil {
		return Fault(err)
	}
	for _, name := range slices.Sorted(maps.Keys(c.counts)) {
		if n := c.counts[name]; n > 0 {
			c.count(name, n)
		}
	}
	return nil
}

// First keeps the first notes of each name by position, up to the limit of a report.
func First(s beam.Scope, notes ...beam.PCollection) beam.PCollection {
	s = s.Scope("first notes")
	return beam.ParDo(s, &unlist{}, top.SmallestPerKey(s, beam.Flatten(s, notes...), MaxInvalid, noteBefore))
}

// noteBefore reports whether note a precedes note b of the same name.
func noteBefore(a, b []byte) bool { return compareNotes(decodeNote(a), decodeNote(b)) < 0 }

func compareNotes(a, b wire.Note) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Nth, b.Nth))
}

func decodeNote(b []byte) wire.Note {
	d := wire.Decode(b)
	return d.Note()
}

type unlist struct{}

func (*unlist) ProcessElement(name string, notes [][]byte, emit func(string, []byte)) {
	for _, note := range notes {
		emit(name, note)
	}
}

// Names of the counts of refreshed data that had an effect, of merged records, and of operations
// that the site shows.
const (
	MergedProfiles  = "merged/profiles"
	MergedBadges    = "merged/badges" // objects
	RepeatedRecords = "repeated"

	ShownOperations = "operations"
)

// Fill fills the parts of generate's report about the snapshot and the refreshed data. events and
// recommended (nil for none) are the results of Events and Recommended, counts the sums of all
// counts, and notes the first notes in any order. Fill reports refreshed data only if r.Refreshed is
// set.
func (t *Tables) Fill(r *summary.Report, events Result, recommended *Result, counts map[string]int64, notes map[string][][]byte) {
	r.AsOf, r.Repeated = t.AsOf, int(counts[RepeatedRecords])
	r.Tables = map[string]*summary.TableReport{}
	r.Invalid = append([]*snapshot.RowError{}, events.Invalid...)
	r.LongTexts = summary.LongTextReport{
		LeftOut: int(counts[LongTexts]), Most: t.options.Limits.Text, MostProfile: t.options.Limits.Whole, Examples: []summary.LongTextExample{},
	}
	r.NoTexts = summary.NoTextReport{Profiles: int(counts[NoTextProfiles]), Entries: int(counts[NoTexts])}
	r.OtherDates = events.OtherDates
	r.Tables[string(snapshot.TableEvents)] = &events.TableReport
	add := func(table snapshot.Table) {
		if table != TableRefreshed {
			r.Tables[string(table)] = &summary.TableReport{
				Rows: int(counts[RowCount(table)]), Skipped: int(counts[SkippedCount(table)]), WithoutEffect: withoutEffect(counts, table),
			}
		} else if r.Refreshed != nil {
			*r.Refreshed = refreshedReport(counts)
		}
		for _, n := range sorted(notes[invalidNotes+string(table)]) {
			r.Invalid = append(r.Invalid, &snapshot.RowError{File: n.Name, Line: lineOf(table, n), Reason: n.Text})
		}
		for _, n := range sorted(notes[longNotes+string(table)]) {
			r.LongTexts.Examples = append(r.LongTexts.Examples,
				summary.LongTextExample{File: n.Name, Line: lineOf(table, n), LongText: site.LongText{Member: n.Text, Bytes: int(n.Bytes)}})
		}
	}
	// The order in which generate reads them.
	for _, table := range []snapshot.Table{snapshot.TableLists, snapshot.TableAccounts, TableRefreshed, snapshot.TableRecords, snapshot.TableBadges} {
		add(table)
	}
	if recommended != nil {
		r.Tables[string(snapshot.TableRecommended)] = &recommended.TableReport
		r.Invalid = append(r.Invalid, recommended.Invalid...)
	}
	if t.HasOps {
		add(snapshot.TableOps)
		r.Operations = int(counts[ShownOperations])
	}
	r.Invalid = r.Invalid[:min(len(r.Invalid), MaxInvalid)]
	r.LongTexts.Examples = r.LongTexts.Examples[:min(len(r.LongTexts.Examples), maxLong)]
}

func withoutEffect(counts map[string]int64, t snapshot.Table) map[string]int {
	reasons := map[string]int{}
	for name, n := range counts {
		if reason, ok := strings.CutPrefix(name, WithoutEffect(t, "")); ok {
			reasons[reason] = int(n)
		}
	}
	return reasons
}

func refreshedReport(counts map[string]int64) summary.RefreshedReport {
	r := summary.RefreshedReport{
		Objects: int(counts[RowCount(TableRefreshed)]), Skipped: int(counts[SkippedCount(TableRefreshed)]),
		Profiles: int(counts[MergedProfiles]), Badges: int(counts[MergedBadges]), WithoutEffect: withoutEffect(counts, TableRefreshed),
	}
	r.Older = r.Objects - r.Profiles - r.Badges - r.Skipped
	for _, n := range r.WithoutEffect {
		r.Older -= n
	}
	return r
}

// sorted decodes and sorts notes.
func sorted(notes [][]byte) []wire.Note {
	var all []wire.Note
	for _, note := range notes {
		all = append(all, decodeNote(note))
	}
	slices.SortFunc(all, compareNotes)
	return all
}

// lineOf returns the line of a row; 0 for a refreshed object.
func lineOf(t snapshot.Table, n wire.Note) int {
	if t == TableRefreshed {
		return 0
	}
	return int(n.Line)
}
