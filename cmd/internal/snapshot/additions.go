package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/badge"
	"github.com/followpress/followpress/source/profile"
)

// badgeKey is the variable of the key of the badges' API. It is no flag, since others can see the
// flags of a process.
const badgeKey = "FOLLOWPRESS_BADGE_API_KEY"

// profiles are the flags about profiles.
type profiles struct {
	Profiles      string        `placeholder:"URL" help:"Ask this ENS worker for the profiles of accounts."`
	ProfileBudget source.Budget `default:"2000" placeholder:"N|DURATION" help:"How many requests, or how much time, a run may spend on profiles (default ${default}). Accounts without an answer come first, then those asked longest ago."`
	ProfilesFrom  string        `placeholder:"DIR" help:"Take over the profiles of an earlier snapshot."`
}

// tables are the flags about badges and other tables.
type tables struct {
	Badges      string            `placeholder:"URL" help:"Ask this POAP-like API who holds badges. $FOLLOWPRESS_BADGE_API_KEY is its key."`
	BadgeEvents []string          `placeholder:"ID,..." help:"Events of the badges, in the order of the answers."`
	BadgeBudget source.Budget     `default:"2000" placeholder:"N|DURATION" help:"How many requests, or how much time, a run may spend on badges where the API does not list the holders of an event (default ${default})."`
	Table       map[string]string `placeholder:"NAME=FILE" help:"Take a table from a file, as .ndjson, .ndjson.gz or .ndjson.zst: recommended=FILE, for example."`
}

func (t *tables) validate(state string) error {
	if (t.Badges == "") != (len(t.BadgeEvents) == 0) {
		return errors.New("--badges and --badge-events belong together: name both or none")
	}
	for i, id := range t.BadgeEvents {
		if !site.ValidTokenID(id) {
			return fmt.Errorf("--badge-events: %s is not the id of an event", site.Quoted(id))
		}
		if slices.Contains(t.BadgeEvents[:i], id) {
			return fmt.Errorf("--badge-events: %s is there twice", id)
		}
	}
	if t.Badges != "" && state == "" {
		return errors.New("--badges needs --state, the folder where answers are kept between runs")
	}
	for name, file := range t.Table {
		if !snapshot.IsTable(name) {
			return fmt.Errorf("--table=%s=%s: there is no such table: use one of %s", name, file, strings.Join(snapshot.TableNames(), ", "))
		}
		if t.Badges != "" && (name == "events" || name == "badges") {
			return fmt.Errorf("--table=%s=%s: --badges makes that table", name, file)
		}
	}
	return nil
}

// from returns the file that a table is taken from; "" if it is made.
func (t *tables) from(table string) string { return t.Table[table] }

// accounts writes the table accounts: primary lists, the profiles of the source itself, and those of
// the state, which are refreshed before.
func (r *run) accounts(ctx context.Context, w *snapshot.Writer, g *source.Graph, p *profiles, state string, own ...source.Profiles) error {
	if p.ProfilesFrom != "" {
		r.progress.Stage("import", 0)
		folder := afero.NewBasePathFs(afero.NewOsFs(), p.ProfilesFrom)
		kept, err := profile.Import(state, snapshot.Accounts(folder))
		if err != nil {
			return fmt.Errorf("--profiles-from: %w", err)
		}
		r.progress.End()
		fmt.Fprintf(r.stderr, "profiles  %10d taken over from %s\n", kept, p.ProfilesFrom)
	}
	if p.Profiles != "" {
		report, err := profile.Refresh(ctx, profile.Options{
			State: state, URL: p.Profiles, Wanted: g.Held, Budget: p.ProfileBudget, Progress: r.progress,
		})
		if err != nil {
			return fmt.Errorf("--profiles: %w", err)
		}
		r.report.Profiles = report
		r.tell(report)
	}
	if state != "" {
		own = append(own, profile.Profiles(state))
	}
	r.progress.Stage("accounts", 0)
	return source.WriteAccounts(w, g, own...)
}

// badges writes the tables events and badges.
func (r *run) badges(ctx context.Context, w *snapshot.Writer, g *source.Graph, t *tables, state string) error {
	if t.Badges == "" {
		return nil
	}
	report, err := badge.Refresh(ctx, badge.Options{
		State: state, URL: t.Badges, Key: os.Getenv(badgeKey), Events: t.BadgeEvents, Wanted: g.Held, Budget: t.BadgeBudget, Progress: r.progress,
	})
	if errors.Is(err, badge.ErrKey) {
		return fmt.Errorf("--badges: %w: check %s; a new key takes up to a day to work", err, badgeKey)
	} else if err != nil {
		return fmt.Errorf("--badges: %w", err)
	}
	r.report.Badges = report
	r.tell(report)
	events, err := badge.Events(state, t.BadgeEvents)
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := w.WriteEvent(e); err != nil {
			return err
		}
	}
	for b, err := range badge.Badges(state, t.BadgeEvents) {
		if err != nil {
			return err
		}
		if err := w.WriteBadge(b); err != nil {
			return err
		}
	}
	return nil
}

// copyTables writes the tables that come from files.
func (r *run) copyTables(w *snapshot.Writer, t *tables) error {
	for _, name := range snapshot.TableNames() {
		file := t.from(name)
		if file == "" {
			continue
		}
		r.progress.Stage(name, 0)
		rows, err := w.CopyTable(snapshot.Table(name), filepath.Clean(file))
		if err != nil {
			return fmt.Errorf("--table=%s=%s: %w", name, file, err)
		}
		r.progress.Add(int64(rows))
		if r.report.Tables == nil {
			r.report.Tables = map[string]int{}
		}
		r.report.Tables[name] = rows
	}
	r.progress.End()
	return nil
}
