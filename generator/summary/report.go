// Package summary reports what a run that made a site read, wrote and omitted.
//
// The API may change in any release.
package summary

import (
	"fmt"
	"strings"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// MaxInvalid bounds the invalid rows in a report; all are counted.
const MaxInvalid = 1000

// maxLongListed bounds the omitted texts in a report.
const maxLongListed = 10

// A Report describes what a run read, wrote and omitted. Sizes are in bytes, durations in seconds.
type Report struct {
	Snapshot   string                  `json:"snapshot"`
	Out        string                  `json:"out"`
	AsOf       string                  `json:"as_of"`
	Tables     map[string]*TableReport `json:"tables"`
	Refreshed  *RefreshedReport        `json:"refreshed,omitempty"`  // nil without Options.Refreshed
	Ranks      *RanksReport            `json:"ranks,omitempty"`      // nil unless the configuration has RanksEvery
	Repeated   int                     `json:"repeated_records"`     // rows merged into an earlier row of the same list
	Operations int                     `json:"operations,omitempty"` // rows of ops that the site shows
	Invalid    []*snapshot.RowError    `json:"invalid"`              // the first 1,000 invalid rows and refreshed objects
	LongTexts  LongTextReport          `json:"long_texts"`           // omitted texts of profiles
	NoTexts    NoTextReport            `json:"no_texts"`             // omitted entries of profiles
	OtherDates int                     `json:"other_dates"`          // dates of events in other forms than 31-Jan-2026, shown unchanged
	Counts     site.Counts             `json:"counts"`
	Kinds      []KindReport            `json:"kinds,omitempty"` // bytes by kind of object, largest first; empty for a live site or from Beam
	Written    WriteReport             `json:"written"`
	DryRun     bool                    `json:"dry_run,omitempty"` // nothing was written
	Duration   struct {
		Read    float64 `json:"read"` // reading and ranking
		Render  float64 `json:"render_and_write"`
		CleanUp float64 `json:"clean_up"` // removing the old site
	} `json:"seconds"`
}

// A KindReport counts the objects with similar keys.
type KindReport struct {
	Keys    string `json:"keys"` // has * for the variable part, as in api/v1/users/*/details
	Objects int64  `json:"objects"`
	Bytes   int64  `json:"bytes"` // counts a body under two keys twice
}

// A TableReport counts the rows of a table.
type TableReport struct {
	Rows          int            `json:"rows"`
	Skipped       int            `json:"skipped"`        // invalid
	WithoutEffect map[string]int `json:"without_effect"` // valid, but about something that does not exist; by reason
}

// A LongTextReport counts texts of profiles that exceed site.Config.ProfileLimits.
type LongTextReport struct {
	LeftOut     int               `json:"left_out"`
	Most        int               `json:"most_bytes"`         // limit of a text in bytes
	MostProfile int               `json:"most_profile_bytes"` // limit of a profile as JSON
	Examples    []LongTextExample `json:"examples"`           // at most 10
}

// A NoTextReport counts entries of profiles omitted because they are neither texts nor null
// (site.Profile.NoTexts).
type NoTextReport struct {
	Profiles int `json:"profiles"` // profiles with such entries
	Entries  int `json:"entries"`
}

// Add counts the entries of one profile.
func (r *NoTextReport) Add(entries int) {
	if entries > 0 {
		r.Profiles++
		r.Entries += entries
	}
}

// A LongTextExample is an omitted text, and its row or object.
type LongTextExample struct {
	File string `json:"file"` // name, or the key of an object
	Line int    `json:"line"` // from 1; 0 for an object
	site.LongText
}

// Add counts the texts of one profile, and adds examples up to the limit.
func (r *LongTextReport) Add(file string, line int, long []site.LongText) {
	r.LeftOut += len(long)
	for _, text := range long[:min(len(long), maxLongListed-len(r.Examples))] {
		r.Examples = append(r.Examples, LongTextExample{file, line, text})
	}
}

// String formats the report for a person, in one line with a few examples.
func (r *LongTextReport) String() string {
	const shown = 3
	var examples []string
	for _, e := range r.Examples[:min(len(r.Examples), shown)] {
		at := &snapshot.RowError{File: e.File, Line: e.Line, Reason: fmt.Sprintf("%q has %d", e.Member, e.Bytes)}
		examples = append(examples, at.Error())
	}
	if more := r.LeftOut - len(examples); more > 0 {
		examples = append(examples, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("profiles  %10d texts left out, of more than %d bytes, or of a profile of more than %d: %s", r.LeftOut, r.Most, r.MostProfile, strings.Join(examples, "; "))
}

// A RefreshedReport counts refreshed objects. Objects is the sum of all others.
type RefreshedReport struct {
	Objects       int            `json:"objects"`
	Profiles      int            `json:"profiles"`       // merged into the snapshot
	Badges        int            `json:"badges"`         // objects with at least one merged badge
	Older         int            `json:"older"`          // not newer than the snapshot, or than another object of the same account
	Skipped       int            `json:"skipped"`        // invalid
	WithoutEffect map[string]int `json:"without_effect"` // valid, but about something that does not exist; by reason
}

// A RanksReport describes which ranks details show.
type RanksReport struct {
	AsOf string `json:"as_of"` // time of their snapshot
	Held bool   `json:"held"`  // whether they are from an earlier snapshot
}

// A WriteReport counts the objects of a run, including manifest and root.
type WriteReport struct {
	Unchanged bool `json:"unchanged"` // whether the live site is the same, so nothing was written
	Added     int  `json:"added"`
	Altered   int  `json:"altered"`
	Kept      int  `json:"kept"`
	Removed   int  `json:"removed"`
	Restored  int  `json:"restored,omitempty"` // unchanged objects whose file was missing or had another size
}

// Reasons in WithoutEffect of tables and refreshed objects.
const (
	UnknownList    = "unknown list"
	UnknownEvent   = "unknown event"
	Unsigned       = "nobody has signed it"
	MissingPrimary = "primary list that is not there"
	ForeignPrimary = "primary list of another account"
	ForeignList    = "list of another account by now"
	ListlessOwner  = "owner without a list"
	RepeatedRow    = "repeated address"
)

// New returns the report of a run that writes to out.
func New(out string) *Report {
	return &Report{Out: out, Tables: map[string]*TableReport{}, Invalid: []*snapshot.RowError{}, LongTexts: LongTextReport{Examples: []LongTextExample{}}}
}

// Table returns the report of a table, creating it if needed.
func (r *Report) Table(t snapshot.Table) *TableReport {
	if r.Tables[string(t)] == nil {
		r.Tables[string(t)] = &TableReport{WithoutEffect: map[string]int{}}
	}
	return r.Tables[string(t)]
}

// CountWithoutEffect counts a row without effect, by reason.
func (r *Report) CountWithoutEffect(t snapshot.Table, reason string) {
	r.Table(t).WithoutEffect[reason]++
}

// Skipped returns the number of invalid rows and refreshed objects.
func (r *Report) Skipped() int {
	n := 0
	for _, t := range r.Tables {
		n += t.Skipped
	}
	if r.Refreshed != nil {
		n += r.Refreshed.Skipped
	}
	return n
}

// tellAltered reports rows that are shown differently from their source.
func (r *Report) tellAltered(b *strings.Builder) {
	if r.LongTexts.LeftOut > 0 {
		fmt.Fprintf(b, "%s\n", &r.LongTexts)
	}
	if n := r.NoTexts; n.Entries > 0 {
		fmt.Fprintf(b, "left out  %10d profiles, %d entries that are not strings\n", n.Profiles, n.Entries)
	}
	if r.OtherDates > 0 {
		fmt.Fprintf(b, "events    %10d dates that are not like 31-Jan-2026, shown unchanged\n", r.OtherDates)
	}
}

// String formats the report for a person.
func (r *Report) String() string {
	var b strings.Builder
	for _, t := range r.shownTables() {
		c := r.Table(t)
		fmt.Fprintf(&b, "%s%*d rows", t, 20-len(t), c.Rows)
		writeLeftOut(&b, c.Skipped, c.WithoutEffect)
		if t == snapshot.TableRecords && r.Repeated > 0 {
			fmt.Fprintf(&b, ", %d repeated", r.Repeated)
		}
		if t == snapshot.TableOps {
			fmt.Fprintf(&b, ", %d shown", r.Operations)
		}
		b.WriteByte('\n')
	}
	if c := r.Refreshed; c != nil {
		fmt.Fprintf(&b, "refreshed %10d objects, %d merged into profiles, %d into badges", c.Objects, c.Profiles, c.Badges)
		if c.Older > 0 {
			fmt.Fprintf(&b, ", %d not newer", c.Older)
		}
		writeLeftOut(&b, c.Skipped, c.WithoutEffect)
		b.WriteByte('\n')
	}
	if r.Ranks != nil {
		of := "this snapshot"
		if r.Ranks.Held {
			of = r.Ranks.AsOf + ", until they are due"
		}
		fmt.Fprintf(&b, "ranks     in details are of %s\n", of)
	}
	for i, e := range r.Invalid {
		if i == 10 {
			fmt.Fprintf(&b, "skipped   … %d more\n", r.Skipped()-i)
			break
		}
		fmt.Fprintf(&b, "skipped   %s\n", e)
	}
	r.tellAltered(&b)
	fmt.Fprintf(&b, "site      %10d objects, %.1f MB, of %d lists and %d accounts, as of %s\n",
		r.Counts.Objects, float64(r.Counts.Bytes)/1e6, r.Counts.Lists, r.Counts.Accounts, r.AsOf)
	if len(r.Kinds) > 0 {
		fmt.Fprintf(&b, "bytes     %s\n", largestKinds(r.Kinds, r.Counts.Bytes))
	}
	w := r.Written
	switch {
	case r.Out == "":
		b.WriteString("not written: objects are rendered on request")
	case w.Unchanged:
		fmt.Fprintf(&b, "%s is unchanged", r.Out)
	case r.DryRun:
		fmt.Fprintf(&b, "%s would have %d files added, %d altered, %d kept, %d removed; nothing is written", r.Out, w.Added, w.Altered, w.Kept, w.Removed)
	default:
		fmt.Fprintf(&b, "%s: %d files added, %d altered, %d kept, %d removed", r.Out, w.Added, w.Altered, w.Kept, w.Removed)
	}
	if w.Restored > 0 {
		fmt.Fprintf(&b, ", %d restored that were missing or of another size", w.Restored)
	}
	seconds := r.Duration.Read + r.Duration.Render + r.Duration.CleanUp
	fmt.Fprintf(&b, " (%s)\n", time.Duration(seconds*float64(time.Second)).Round(10*time.Millisecond))
	return b.String()
}

// shownTables returns the tables that every snapshot has, and others that were read.
func (r *Report) shownTables() []snapshot.Table {
	tables := snapshot.Tables()
	for _, t := range []snapshot.Table{snapshot.TableRecommended, snapshot.TableOps} {
		if r.Tables[string(t)] != nil {
			tables = append(tables, t)
		}
	}
	return tables
}

func writeLeftOut(b *strings.Builder, skipped int, withoutEffect map[string]int) {
	if skipped > 0 {
		fmt.Fprintf(b, ", %d skipped", skipped)
	}
	for _, reason := range []string{UnknownList, ForeignList, UnknownEvent, Unsigned, MissingPrimary, ForeignPrimary, ListlessOwner, RepeatedRow} {
		if n := withoutEffect[reason]; n > 0 {
			fmt.Fprintf(b, ", %d without effect (%s)", n, reason)
		}
	}
}

// shownKinds bounds the kinds shown to a person.
const shownKinds = 4

// largestKinds names the kinds of objects with the most of all bytes.
func largestKinds(kinds []KindReport, bytes int64) string {
	var shown []string
	for _, k := range kinds[:min(len(kinds), shownKinds)] {
		shown = append(shown, fmt.Sprintf("%.0f%% %s", 100*float64(k.Bytes)/float64(max(bytes, 1)), k.Keys))
	}
	return strings.Join(shown, ", ")
}
