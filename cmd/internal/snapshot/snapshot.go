// Package snapshot implements the commands snapshot chain and snapshot postgres, which make a snapshot from the
// chains or from an indexer's database. Profiles, badges and other tables come from services or files.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"time"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/storage"
)

// Command is the group of snapshot commands.
type Command struct {
	Chain    Chain    `cmd:"" help:"Make a snapshot from the events on the chains."`
	Postgres Postgres `cmd:"" help:"Make a snapshot from an indexer's database."`
}

// output are the flags for the output.
type output struct {
	Out string `default:"graph-snapshot" placeholder:"OUT" help:"Folder of the snapshot. The new one replaces the old one atomically (default ${default})."`
	command.Messages
	NoSync bool   `help:"Do not sync the new snapshot to disk before it replaces the old one."`
	Report string `placeholder:"FILE" help:"Write a report as JSON if the run succeeds; - is standard output. Must be outside the snapshot and the state."`
}

// location matches URLs, even with merged slashes; packed matches file names.
var (
	location = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:/`)
	packed   = regexp.MustCompile(`(?i)\.(tar|gz|zst|tgz|zip|ndjson)$`)
)

func (o *output) validate(state string) error {
	switch {
	case location.MatchString(o.Out) || packed.MatchString(filepath.Clean(o.Out)):
		return fmt.Errorf("--out=%s: must be a folder on this machine", o.Out)
	case location.MatchString(state):
		return fmt.Errorf("--state=%s: must be a folder on this machine; copy it before and after the run", state)
	}
	if command.Inside(state, o.Out) {
		return fmt.Errorf("--state=%s is in the snapshot, --out=%s, which the next run replaces; name a folder elsewhere", state, o.Out)
	}
	if command.Inside(o.Report, o.Out) {
		return fmt.Errorf("--report=%s is in the snapshot, and the next run would remove it; name a file elsewhere", o.Report)
	}
	if state != "" && command.Inside(o.Report, state) {
		return fmt.Errorf("--report=%s is in the state; name a file elsewhere", o.Report)
	}
	return nil
}

type run struct {
	*output
	server   storage.S3Options // server of --profiles-from
	progress *command.Progress
	stderr   io.Writer
	report   report

	asksNobody bool // no nodes, no services
}

// A report describes a run: its output, and the reports of the packages involved.
type report struct {
	Out     string  `json:"out"`
	AsOf    string  `json:"as_of"`
	Seconds float64 `json:"seconds"`
	parts
}

// parts are the reports of the packages involved; nil for the others.
type parts struct {
	Chain    any `json:"chain,omitempty"`
	Replay   any `json:"replay,omitempty"`
	Database any `json:"database,omitempty"`
	Profiles any `json:"profiles,omitempty"`
	Badges   any `json:"badges,omitempty"`
}

func (r *run) tell(part fmt.Stringer) {
	r.progress.End()
	fmt.Fprint(r.stderr, part)
}

// make writes a snapshot: first tables from files, then write's, then add's. It finds errors in the output
// and in files before write, which may take hours.
func (r *run) make(
	ctx context.Context, stdout io.Writer, p *Profiles, t *Tables,
	write func(*snapshot.Writer) (*source.Graph, error), add func(*snapshot.Writer, *source.Graph) error,
) (err error) {
	begun := time.Now()
	if err := errors.Join(command.CheckFile("report", r.Report, r.Out), p.check(ctx, r.server)); err != nil {
		return err
	}
	w, err := snapshot.Create(r.Out, snapshot.WriteOptions{NoSync: r.NoSync})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := r.copyTables(w, t); err != nil {
		return err
	}
	g, err := write(w)
	if err != nil {
		return err
	}
	if err := add(w, g); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.Commit(g.Meta()); err != nil {
		return err
	}
	r.progress.End()
	r.report.Out, r.report.AsOf, r.report.Seconds = r.Out, g.AsOf.UTC().Format(time.RFC3339), time.Since(begun).Seconds()
	fmt.Fprintf(r.stderr, "%s: a snapshot as of %s (%s)\n", r.Out, r.report.AsOf, time.Since(begun).Round(time.Millisecond))
	return command.WriteReport(r.Report, &r.report, stdout)
}
