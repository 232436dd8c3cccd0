package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/cmd/internal/generate"
	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/badge"
	"github.com/followpress/followpress/source/profile"
	"github.com/followpress/followpress/storage"
)

var fromFiles = []snapshot.Table{snapshot.TableAccounts, snapshot.TableEvents, snapshot.TableBadges, snapshot.TableRecommended}

// badgeKey is the variable with the key for the badge API. It is not a flag: other users can see a
// process's flags.
const badgeKey = "FOLLOWPRESS_BADGE_API_KEY"

// Profiles are the flags for account profiles, which the state keeps.
type Profiles struct {
	ProfilesURL   serviceURL    `name:"profiles" placeholder:"URL" help:"ENS worker to ask for profiles."`
	ProfileBudget source.Budget `default:"2000" placeholder:"N|DURATION" help:"Requests, or time, to spend on profiles per run (default ${default}). Accounts without an answer come first, then the oldest answers."`
	ProfilesFrom  string        `placeholder:"DIR" help:"Import profiles from an earlier snapshot, a folder or s3://BUCKET/PREFIX, where they are fresher than the state's."`
}

// Tables are the flags for badges, which the state keeps, and for tables from files.
type Tables struct {
	Badges      serviceURL        `placeholder:"URL" help:"POAP-like API to ask for badge holders. $FOLLOWPRESS_BADGE_API_KEY is its key."`
	BadgeEvents []string          `placeholder:"ID" help:"Badge events, in the order of the answers."`
	BadgeBudget source.Budget     `default:"2000" placeholder:"N|DURATION" help:"Requests, or time, to spend on badges per run, where the API does not list an event's holders (default ${default})."`
	Table       map[string]string `placeholder:"NAME=FILE" help:"Import a table from a .ndjson, .ndjson.gz or .ndjson.zst file, such as recommended=FILE."`
}

// check opens the snapshot of --profiles-from, to find errors before the work.
func (p *Profiles) check(ctx context.Context, server storage.S3Options) error {
	if p.ProfilesFrom == "" {
		return nil
	}
	return p.earlier(ctx, server, func(files afero.Fs) error {
		_, err := snapshot.ReadAsOf(files)
		return err
	})
}

// earlier calls read with the snapshot of --profiles-from.
func (p *Profiles) earlier(ctx context.Context, server storage.S3Options, read func(afero.Fs) error) error {
	files, closeFiles, err := generate.OpenSnapshot(ctx, p.ProfilesFrom, server)
	if err == nil {
		err = errors.Join(read(files), closeFiles())
	}
	if err != nil {
		return fmt.Errorf("--profiles-from: %w", err)
	}
	return nil
}

// Check checks the flags, except those for profiles.
func (t *Tables) Check(p *Profiles, state string) error {
	if (t.Badges == "") != (len(t.BadgeEvents) == 0) {
		return errors.New("--badges and --badge-events go together: name both or neither")
	}
	for i, id := range t.BadgeEvents {
		if !site.ValidTokenID(id) {
			return fmt.Errorf("--badge-events: %s is not the id of an event", site.Quoted(id))
		}
		if slices.Contains(t.BadgeEvents[:i], id) {
			return fmt.Errorf("--badge-events: %s is repeated", id)
		}
	}
	if t.Badges != "" && state == "" {
		return errors.New("--badges needs --state, the folder that keeps answers between runs")
	}
	for name, file := range t.Table {
		if !slices.Contains(fromFiles, snapshot.Table(name)) {
			return fmt.Errorf("--table=%s=%s: not a table that a file can provide; those are accounts, events, badges and recommended", name, file)
		}
		switch {
		case file == "":
			return fmt.Errorf("--table=%s= names no file: is a shell variable not set?", name)
		case t.Badges != "" && (name == "events" || name == "badges"):
			return fmt.Errorf("--table=%s=%s excludes --badges, which makes that table", name, file)
		case name == "accounts" && (p.ProfilesURL != "" || p.ProfilesFrom != ""):
			return fmt.Errorf("--table=%s=%s excludes --profiles and --profiles-from, which make that table", name, file)
		}
	}
	return nil
}

// Import imports the profiles of --profiles-from, and returns their number.
func (p *Profiles) Import(ctx context.Context, state string, server storage.S3Options) (kept int, err error) {
	err = p.earlier(ctx, server, func(files afero.Fs) (err error) {
		kept, err = profile.Import(state, snapshot.Accounts(files))
		return err
	})
	return kept, err
}

func (p *Profiles) refresh(ctx context.Context, state string, wanted map[site.Address]uint32, progress source.Progress) (*profile.Report, error) {
	report, err := profile.Refresh(ctx, profile.Options{
		State: state, URL: string(p.ProfilesURL), Wanted: wanted, Budget: p.ProfileBudget, Progress: progress,
	})
	if err != nil {
		return nil, fmt.Errorf("--profiles: %w", err)
	}
	return report, nil
}

func (t *Tables) refresh(ctx context.Context, state string, wanted map[site.Address]uint32, progress source.Progress) (*badge.Report, error) {
	report, err := badge.Refresh(ctx, badge.Options{
		State: state, URL: string(t.Badges), Key: secret.Text(os.Getenv(badgeKey)), Events: t.BadgeEvents, Wanted: wanted, Budget: t.BadgeBudget, Progress: progress,
	})
	if errors.Is(err, badge.ErrKey) {
		return nil, fmt.Errorf("--badges: %w; check %s (a new key takes up to a day to work)", err, badgeKey)
	} else if err != nil {
		return nil, fmt.Errorf("--badges: %w", err)
	}
	return report, nil
}

// Services asks the services of the flags, repeatedly.
type Services struct {
	Profiles *Profiles
	Tables   *Tables
	State    string // folder for answers
	Progress source.Progress
}

// Asks reports whether the flags name any service.
func (s *Services) Asks() bool { return s.Profiles.ProfilesURL != "" || s.Tables.Badges != "" }

// Refresh asks for profiles and badges within the budgets. wanted maps accounts to the number of lists that
// follow them. It returns a report for each service that answered.
func (s *Services) Refresh(ctx context.Context, wanted map[site.Address]uint32) (told []fmt.Stringer, err error) {
	if s.Profiles.ProfilesURL != "" {
		report, failed := s.Profiles.refresh(ctx, s.State, wanted, s.Progress)
		if err = failed; failed == nil {
			told = append(told, report)
		}
	}
	if s.Tables.Badges != "" {
		report, failed := s.Tables.refresh(ctx, s.State, wanted, s.Progress)
		if err = errors.Join(err, failed); failed == nil {
			told = append(told, report)
		}
	}
	return told, err
}

// add writes the remaining tables, except those from files. own are profiles from the source itself.
func (r *run) add(ctx context.Context, w *snapshot.Writer, g *source.Graph, p *Profiles, t *Tables, state string, own ...source.Profiles) error {
	if t.Table[string(snapshot.TableAccounts)] == "" {
		if err := r.accounts(ctx, w, g, p, state, own...); err != nil {
			return err
		}
	}
	return r.badges(ctx, w, g, t, state)
}

// accounts writes the table accounts: primary lists, the source's own profiles, and those of the state after a refresh.
func (r *run) accounts(ctx context.Context, w *snapshot.Writer, g *source.Graph, p *Profiles, state string, own ...source.Profiles) error {
	if p.ProfilesFrom != "" {
		r.progress.Stage("import", 0)
		kept, err := p.Import(ctx, state, r.server)
		if err != nil {
			return err
		}
		r.progress.End()
		fmt.Fprintf(r.stderr, "profiles  %10d imported from %s\n", kept, p.ProfilesFrom)
	}
	if p.ProfilesURL != "" && !r.asksNobody {
		report, err := p.refresh(ctx, state, g.Held, r.progress)
		if err != nil {
			return err
		}
		r.report.Profiles = report
		r.tell(report)
	}
	if state != "" {
		own = append(own, profile.Profiles(state))
	}
	r.progress.Stage("accounts", 0)
	err := source.WriteAccounts(w, g, own...)
	source.From(g.Profiles, string(p.ProfilesURL))
	return err
}

func (r *run) badges(ctx context.Context, w *snapshot.Writer, g *source.Graph, t *Tables, state string) error {
	if t.Badges == "" {
		return nil
	}
	if !r.asksNobody {
		report, err := t.refresh(ctx, state, g.Held, r.progress)
		if err != nil {
			return err
		}
		r.report.Badges = report
		r.tell(report)
	}
	var err error
	g.Badges, err = badge.Write(w, state, t.BadgeEvents)
	source.From(g.Badges, string(t.Badges))
	return err
}

func (r *run) copyTables(w *snapshot.Writer, t *Tables) error {
	for _, name := range fromFiles {
		file := t.Table[string(name)]
		if file == "" {
			continue
		}
		r.progress.Stage(string(name), 0)
		if err := w.CopyTable(string(name), file); err != nil {
			return fmt.Errorf("--table=%s=%s: %w", name, file, err)
		}
	}
	r.progress.End()
	return nil
}
