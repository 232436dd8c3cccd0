package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

// connect opens a connection. All queries use the simple protocol without prepared statements, so
// that they work through PgBouncer.
func connect(ctx context.Context, dsn string) (*pgconn.PgConn, error) {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, withoutDSN(err)
	}
	config.RuntimeParams["client_encoding"] = "UTF8"
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "followpress"
	}
	// An interrupted run also cancels its query in the server.
	config.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: 5 * time.Second}
	}
	return pgconn.ConnectConfig(ctx, config)
}

// withoutDSN removes the DSN from an error: pgconn quotes it, and cannot find every password in a
// malformed one.
func withoutDSN(err error) error {
	var malformed *pgconn.ParseConfigError
	if !errors.As(err, &malformed) {
		return err
	}
	nameless := *malformed
	nameless.ConnString = ""
	_, why, _ := strings.Cut(nameless.Error(), "``: ")
	if strings.Contains(why, "keyword/value") { // quotes the text in place of a keyword
		why = "it is neither a URL, postgres://user:password@host:5432/name, nor key=value pairs, with values that have spaces in single quotes"
	}
	return errors.New("cannot parse the DSN: " + why)
}

// exec runs statements without results.
func (r *Reader) exec(ctx context.Context, sql string) error {
	return r.conn.Exec(ctx, sql).Close()
}

// query calls row with the values of each row of a short result. They are valid until the next row.
func (r *Reader) query(ctx context.Context, sql string, row func(values [][]byte) error) error {
	results := r.conn.Exec(ctx, sql)
	var err error
	for results.NextResult() {
		rows := results.ResultReader()
		for err == nil && rows.NextRow() {
			err = row(rows.Values())
		}
	}
	return errors.Join(err, results.Close())
}

// value returns the only value of a query; "" for null or no row.
func (r *Reader) value(ctx context.Context, sql string) (value string, err error) {
	err = r.query(ctx, sql, func(values [][]byte) error {
		value = string(values[0])
		return nil
	})
	return value, err
}

// hints tell an operator how to fix errors, by code or class of code
// (https://www.postgresql.org/docs/current/errcodes-appendix.html), optionally with the server
// routine that reported the error, since texts are translated.
var hints = []struct{ code, hint string }{
	{"42501/check_enable_rls", "row-level security hides rows from the role, so the snapshot would lack them: ALTER ROLE … BYPASSRLS, " +
		"or read as a superuser, or as the owner of tables that do not force it"},
	{"42501", "grant the role SELECT on the indexer's tables"},
	{"55P03", "another session holds a lock on a table, perhaps a migration: try again later"},
	{"57014", "somebody, or a pooler's query_timeout, has cancelled the query in the server"},
	{"53300", "the server has no connection left: try again later"},
	{"3D000", "the last part of the URL is the name of the database"},
	{"28", "check user and password, and the server's pg_hba.conf"},
	{"40001", "the replica had to undo what this run reads: set its hot_standby_feedback to on, or " +
		"its max_standby_streaming_delay longer than a run, or read from the primary"},
}

// explain adds a hint to an error of the server.
func explain(err error) error {
	var failed *pgconn.PgError
	var unreached *pgconn.ConnectError
	switch {
	case errors.As(err, &failed):
	case errors.As(err, &unreached):
		return fmt.Errorf("%w: check the host and the port of the DSN, and that the server is up", err)
	default:
		return err
	}
	for _, h := range hints {
		if strings.HasPrefix(failed.Code+"/"+failed.Routine, h.code) {
			return fmt.Errorf("%w: %s", err, h.hint)
		}
	}
	return err
}
