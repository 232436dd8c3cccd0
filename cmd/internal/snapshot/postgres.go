package snapshot

import (
	"context"
	"errors"
	"io"

	"github.com/followpress/followpress/cmd/internal/command"
	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/postgres"
)

// Postgres is the command snapshot postgres, which reads an indexer's database.
type Postgres struct {
	DSN   secret.Text `name:"dsn" placeholder:"URL" help:"The database, postgres://USER@HOST/NAME or key=value pairs; defaults come from PGHOST, PGPASSWORD and so on. Set FOLLOWPRESS_DSN if it contains a password: other users can see flags."`
	State string      `placeholder:"DIR" help:"Folder that keeps the answers for --profiles and --badges between runs."`
	output
	Profiles   `group:"Profiles missing in the database:"`
	command.S3 `group:"Profiles missing in the database:"`
	Tables     `group:"Badges and other tables:"`
}

// Help returns the text below the first line of --help.
func (*Postgres) Help() string {
	return `It knows the schemas of both indexers, and only reads: in one transaction, without blocking locks, also through PgBouncer. Records follow the order of events where the database has all of them, else the order of its tables; the report says which.

	followpress snapshot postgres --dsn postgres://reader@db.example/efp`
}

// Validate checks the flags before the run; kong calls it.
func (p *Postgres) Validate() error {
	if p.State == "" && (p.ProfilesURL != "" || p.ProfilesFrom != "") {
		return errors.New("--profiles and --profiles-from need --state, the folder that keeps profiles between runs")
	}
	return errors.Join(p.validate(p.State), p.Check(&p.Profiles, p.State))
}

// Run makes the snapshot.
func (p *Postgres) Run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	r := run{output: &p.output, server: p.Server(), progress: command.NewProgress(stderr), stderr: stderr}
	defer r.progress.End()
	reader, err := postgres.Open(ctx, postgres.Options{DSN: p.DSN, Progress: r.progress})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	write := func(w *snapshot.Writer) (*source.Graph, error) {
		g, err := reader.Write(ctx, w)
		if err == nil {
			r.report.Database = reader.Report()
			r.tell(reader.Report())
		}
		return g, err
	}
	return r.make(ctx, stdout, &p.Profiles, &p.Tables, write, func(w *snapshot.Writer, g *source.Graph) error {
		return r.add(ctx, w, g, &p.Profiles, &p.Tables, p.State, reader.Profiles())
	})
}
