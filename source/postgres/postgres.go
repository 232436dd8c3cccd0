// Package postgres makes a snapshot of an indexer's database: v1 is the indexer of 2024, with
// triggers, and v2 its rewrite of 2026. It only reads, in one transaction, and streams.
//
// Both keep lists and records as tables, and the events that they made them of. An indexer's tables
// say which records there are, but not in which order they came, and differ from the contracts where
// the indexer differs. So if the events of a list replay to what its tables have, the replay counts,
// else the tables.
//
// The API may change until version 1.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/followpress/followpress/internal/secret"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
)

// Options say which database is read.
type Options struct {
	DSN      secret.Text     // a URL, postgres://user:password@host:5432/name, or key=value pairs; what is absent is taken from PG… variables
	Progress source.Progress // never nil
}

// A Reader is a database that is read. It may be used by one goroutine at a time.
type Reader struct {
	conn     *pgconn.PgConn
	schema   *schema
	progress source.Progress
	begun    time.Time
	report   Report
	profiles *os.File // what Profiles reads; nil before Write
	size     int64    // of profiles
}

// Open connects to a database and finds out which schema it has. It begins the transaction that
// Write reads in.
func Open(ctx context.Context, o Options) (*Reader, error) {
	r := &Reader{progress: o.Progress, begun: time.Now(), report: Report{Ignored: map[string]uint64{}, Warnings: []string{}}}
	var err error
	if r.conn, err = connect(ctx, string(o.DSN)); err != nil {
		return nil, explain(fmt.Errorf("connect: %w", err))
	}
	if err := r.begin(ctx); err != nil {
		return nil, errors.Join(explain(err), r.Close())
	}
	return r, nil
}

// begin begins the transaction. Settings are of the transaction only: behind PgBouncer, the next one
// may be somebody else's.
func (r *Reader) begin(ctx context.Context) error {
	// Row-level security would hide rows without a word; with it off, that is an error. Cursors are planned
	// for all rows, not for the first ones. The server's limits of time are for queries of a web service.
	// Names of functions and operators mean those of PostgreSQL, whatever others have put into public; nor does
	// the planner compute conditions of tables.
	err := r.exec(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0;
SET LOCAL row_security = off;
SET LOCAL constraint_exclusion = off;
SET LOCAL lock_timeout = '10s';
SET LOCAL cursor_tuple_fraction = 1;
SELECT set_config(name, '0', true) FROM pg_catalog.pg_settings WHERE name = 'transaction_timeout'`) // PostgreSQL 17 has it
	if err != nil {
		return fmt.Errorf("begin to read: %w", err)
	}
	if r.schema, err = r.detect(ctx); err != nil {
		return err
	}
	r.report.Schema = r.schema.name()
	r.report.Server, err = r.value(ctx, "SHOW server_version")
	return err
}

// Write writes the tables lists, records and, if there are events, ops, keeps the profiles for Profiles, and ends the
// transaction: what comes after it may take its time. It can be called once.
//
// Lists are in the order of token ids. The records of a list are one after the other, in the order
// of the list; so are those of lists with the same place, and all of them in the order of the first. That is the order of
// a replay of the chains. Until they are written they are in a temporary file. In Graph.ListOps, a database that lacks events
// counts an operation for each record. Visible operations are in memory until the end, some 100 bytes
// each.
func (r *Reader) Write(ctx context.Context, w *snapshot.Writer) (*source.Graph, error) {
	g, err := r.write(ctx, w)
	if err != nil {
		return nil, explain(err)
	}
	r.report.Seconds = time.Since(r.begun).Seconds()
	return g, nil
}

func (r *Reader) write(ctx context.Context, w *snapshot.Writer) (*source.Graph, error) {
	g, err := r.graph(ctx)
	if err != nil {
		return nil, err
	}
	lists, err := r.readLists(ctx)
	if err != nil {
		return nil, fmt.Errorf("lists: %w", err)
	}
	if err := r.writeLists(w, g, lists); err != nil {
		return nil, err
	}
	if err := r.beginOps(ctx, w, g); err != nil {
		return nil, fmt.Errorf("operations: %w", err)
	}
	if err := r.writeRecords(ctx, w, g, lists); err != nil {
		return nil, fmt.Errorf("records: %w", err)
	}
	if g.Chains, err = r.chains(ctx); err != nil {
		return nil, fmt.Errorf("blocks: %w", err)
	}
	if g.Primary, err = r.primaryLists(ctx); err != nil {
		return nil, fmt.Errorf("primary lists: %w", err)
	}
	if err := r.keepProfiles(ctx); err != nil {
		return nil, fmt.Errorf("profiles: %w", err)
	}
	if err := r.exec(ctx, "COMMIT"); err != nil {
		return nil, err
	}
	r.report.ListOps = g.ListOps
	g.ListOps = max(g.ListOps, r.report.Records)
	return g, r.disconnect()
}

// Report says what Write did.
func (r *Reader) Report() *Report { return &r.report }

// Close ends the connection, and forgets the profiles.
func (r *Reader) Close() error {
	err := r.disconnect()
	if r.profiles != nil {
		err = errors.Join(err, r.profiles.Close())
		r.profiles = nil
	}
	return err
}

func (r *Reader) disconnect() error {
	if r.conn == nil || r.conn.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return r.conn.Close(ctx)
}
