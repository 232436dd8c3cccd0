package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/followpress/followpress/source"
)

// A Watch is a connection to a database that tells whether a new snapshot may be another one. It may
// be used by one goroutine at a time.
type Watch struct {
	reader Reader
	minute string // of a replica's last Marker
	last   string // which it was
}

// Opened connects to the database of a DSN, as that of Options.
func Opened(ctx context.Context, dsn string) (*Watch, error) {
	conn, err := connect(ctx, dsn)
	if err != nil {
		return nil, explain(fmt.Errorf("connect: %w", err))
	}
	w := &Watch{reader: Reader{conn: conn}}
	if w.reader.schema, err = w.reader.detect(ctx); err != nil {
		return nil, errors.Join(explain(err), w.Close())
	}
	return w, nil
}

// Close ends the connection.
func (w *Watch) Close() error { return w.reader.Close() }

// progressTables say how far an indexer is, and change with every block.
var progressTables = []string{"indexer_state", "efp_system_state"}

// Marker is a text that changes when rows of the indexer's tables do. It costs a look at the server's
// statistics, which follow a commit within some ten seconds; rolled back changes count too. A replica
// has no such statistics: there the text changes once a minute, if anything in the whole server does.
func (w *Watch) Marker(ctx context.Context) (string, error) {
	var names []string
	for _, table := range tables {
		if !slices.Contains(progressTables, table) {
			names = append(names, "'"+table+"'")
		}
	}
	text, err := w.reader.value(ctx, `SELECT CASE WHEN pg_catalog.pg_is_in_recovery()
THEN 'at ' || coalesce(pg_catalog.pg_last_wal_replay_lsn()::text, '') || ' in ' || date_trunc('minute', clock_timestamp())
ELSE (SELECT count(*) || ' tables, ' || coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) || ' changes' FROM pg_catalog.pg_stat_all_tables
  WHERE schemaname = 'public' AND relname IN (`+strings.Join(names, ", ")+`)) END`)
	if err != nil {
		return "", explain(err)
	}
	if at, minute, replica := strings.Cut(text, " in "); replica { // the time alone is no change
		if minute != w.minute {
			w.minute, w.last = minute, at
		}
		return w.last, nil
	}
	return text, nil
}

// Heads are how far the indexer has read the contracts of each chain, as far as the database tells: v2 does,
// in the order of chain ids. The time is when the indexer said so.
func (w *Watch) Heads(ctx context.Context) (heads []source.Head, err error) {
	s := w.reader.schema
	if s.v1 || !s.has("indexer_state", "chain_id") || !s.has("indexer_state", "last_block") || !s.has("indexer_state", "updated_at") {
		return nil, nil
	}
	err = w.reader.query(ctx, `SELECT chain_id, min(last_block), coalesce(min(`+millis("updated_at")+`), 0) FROM public.indexer_state
WHERE chain_id >= 0 AND last_block >= 0 GROUP BY chain_id ORDER BY chain_id`, func(v [][]byte) error {
		var h source.Head
		var errs [3]error
		h.Chain, errs[0] = strconv.ParseUint(string(v[0]), 10, 64)
		h.Block, errs[1] = strconv.ParseUint(string(v[1]), 10, 64)
		h.Time, errs[2] = strconv.ParseInt(string(v[2]), 10, 64)
		heads = append(heads, h)
		return errors.Join(errs[:]...)
	})
	if err != nil {
		return nil, explain(fmt.Errorf("table indexer_state: %w", err))
	}
	return heads, nil
}

// Passes reports whether the same may succeed later without anybody's doing: a server that cannot be
// reached, starts, stops, or is full.
func Passes(err error) bool {
	var failed *pgconn.PgError
	if errors.As(err, &failed) {
		return slices.ContainsFunc([]string{"08", "40", "53", "55P03", "57"}, func(class string) bool { return strings.HasPrefix(failed.Code, class) })
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return !dns.IsNotFound
	}
	return errors.As(err, new(net.Error)) || pgconn.SafeToRetry(err) || pgconn.Timeout(err)
}

// patience is how long a Watch waits for an answer.
const patience = 30 * time.Second

// Changed returns the Marker and the Heads, within half a minute.
func (w *Watch) Changed(ctx context.Context) (marker string, heads []source.Head, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if marker, err = w.Marker(ctx); err == nil {
		heads, err = w.Heads(ctx)
	}
	return marker, heads, err
}
