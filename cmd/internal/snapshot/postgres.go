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

// Postgres is the command that reads the database of an indexer.
type Postgres struct {
	DSN   secret.Text `name:"dsn" placeholder:"URL" help:"The database, postgres://USER@HOST/NAME or key=value pairs; what is absent comes from PGHOST, PGPASSWORD and the like. Set FOLLOWPRESS_DSN if it has a password: others can see the flags of a process."`
	State string      `placeholder:"DIR" help:"Folder that keeps the answers of --profiles and --badges between runs."`
	output
	Profiles   `group:"Profiles that the database does not have:"`
	command.S3 `group:"Profiles that the database does not have:"`
	Tables     `group:"Badges and other tables:"`
}

// Help is what --help shows below the first line.
func (*Postgres) Help() string {
	return `It knows the schemas of both indexers, and only reads: in one transaction, without locks that anybody notices, also through PgBouncer. Records are in the order of the events where the database has them all, else in that of its tables; the report says which.

	followpress snapshot postgres --dsn postgres://reader@db.example/efp`
}

// Validate checks the flags before the run; kong calls it.
func (p *Postgres) Validate() error {
	if p.State == "" && (p.ProfilesURL != "" || p.ProfilesFrom != "") {
		return errors.New("--profiles and --profiles-from need --state, the folder where profiles are kept between runs")
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
