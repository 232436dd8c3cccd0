// Package postgres makes a snapshot of an indexer's database: v1 is the indexer of 2024, with
// triggers; v2 is its rewrite of 2026. It only reads, in one transaction, and streams.
//
// Both keep tables of lists and records, and the events that they were made of. The tables show
// which records exist but not their order, and differ from the contracts where the indexer is
// wrong. So if the events of a list replay to the records in the tables, the replay counts,
// otherwise the tables.
//
// The API may change in any release.
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

// Options select the database.
type Options struct {
	DSN      secret.Text     // a URL, postgres://user:password@host:5432/name, or key=value pairs; PG… variables supply missing parts
	Progress source.Progress // must not be nil
}

// A Reader reads a database. Only one goroutine at a time may use it.
type Reader struct {
	conn     *pgconn.PgConn
	schema   *schema
	progress source.Progress
	begun    time.Time
	report   Report
	profiles *os.File // read by Profiles; nil before Write
	size     int64    // size of profiles
}

// Open connects to a database, detects its schema, and begins the transaction in which Write reads.
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

// begin begins the transaction. Settings are local to it: behind PgBouncer, the next transaction
// may belong to somebody else.
func (r *Reader) begin(ctx context.Context) error {
	// Row-level security would silently hide rows; switched off, it causes an error. Cursors are
	// planned for all rows rather than the first ones. The server's time limits are meant for
	// queries of a web service. The search path makes names of functions and operators refer to
	// PostgreSQL's own, whatever others put into public. The planner must not evaluate conditions
	// of tables.
	err := r.exec(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL statement_timeout = 0;
SET LOCAL idle_in_transaction_session_timeout = 0;
SET LOCAL row_security = off;
SET LOCAL constraint_exclusion = off;
SET LOCAL lock_timeout = '10s';
SET LOCAL cursor_tuple_fraction = 1;
SELECT set_config(name, '0', true) FROM pg_catalog.pg_settings WHERE name = 'transaction_timeout'`) // since PostgreSQL 17
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

// Write writes the tables lists, records and, if there are events, ops, keeps the profiles for
// Profiles, and ends the transaction, so that later steps may take long. It can be called once.
//
// Lists are ordered by token ID. The records of a list are consecutive, in list order, and lists
// with the same place follow the first of them, as in a replay of the chains. Until they are
// written they are in a temporary file. If the database lacks events, Graph.ListOps counts one
// operation per record. Visible operations stay in memory until the end, some 100 bytes each.
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

// Report returns the results of Write.
func (r *Reader) Report() *Report { return &r.report }

// Close closes the connection and deletes the profiles.
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
