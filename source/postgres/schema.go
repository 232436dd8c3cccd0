package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A schema describes the tables of either indexer in a database.
type schema struct {
	v1      bool
	columns map[string]map[string]string // type by table and column
	views   []string                     // views with the name of an indexer's table
}

func (s *schema) name() string {
	if s.v1 {
		return "v1"
	}
	return "v2"
}

func (s *schema) hasTable(table string) bool { return s.columns[table] != nil }

func (s *schema) has(table, column string) bool { return s.columns[table][column] != "" }

// text returns an expression for a BYTEA column as "0x" and hexadecimal digits. v1 stores the
// bytes, v2 stores that text as bytes. Unlike a cast, both forms are independent of the setting
// bytea_output.
func (s *schema) text(column string) string {
	if s.v1 {
		return "'0x' || encode(" + column + ", 'hex')"
	}
	return "encode(" + column + ", 'escape')"
}

// tables are the indexers' tables that are read; both have the first ones.
var tables = []string{
	"efp_lists", "efp_list_records", "efp_list_record_tags", "efp_account_metadata",
	"efp_list_metadata", "indexer_state", "events", "efp_system_state", "ens_metadata",
}

const tablesOfBoth = 4

// possible returns a condition: the time is one that an API can show. It is false for infinity.
func possible(time string) string {
	return "(" + time + " >= '1970-01-01 00:00:00+00' AND " + time + " < '10000-01-01 00:00:00+00')"
}

// impossible returns the opposite condition, which is not true for null either.
func impossible(time string) string { return "NOT " + possible(time) }

// finite returns an expression for a time, null if it is impossible.
func finite(time string) string { return "CASE WHEN " + possible(time) + " THEN " + time + " END" }

// millis returns an expression for a time in milliseconds since the Unix epoch, null if it is
// impossible.
func millis(time string) string {
	return "floor(extract(epoch FROM " + finite(time) + ") * 1000)::bigint"
}

// bounded returns an expression for a string, null if it is longer than most bytes.
func bounded(text string, most int) string {
	return fmt.Sprintf("CASE WHEN octet_length(%s) <= %d THEN %[1]s END", text, most)
}

// eventTime returns an expression for the time of an event: the block's time if the table events
// has it, else the time when the indexer wrote it.
func (s *schema) eventTime() string {
	written := millis("created_at")
	switch kind := s.columns["events"]["block_timestamp"]; {
	case kind == "":
		return written
	case strings.HasPrefix(kind, "timestamp"):
		return "coalesce(" + millis("block_timestamp") + ", " + written + ")"
	default: // seconds
		return "coalesce(CASE WHEN block_timestamp BETWEEN 0 AND 253402300799 THEN block_timestamp::bigint * 1000 END, " + written + ")"
	}
}

// The lengths of a slot in BYTEA: bytes, or "0x" and hexadecimal digits.
const (
	slotBytes = "32"
	slotText  = "66"
)

// detect finds out which indexer made the database.
func (r *Reader) detect(ctx context.Context) (*schema, error) {
	s := &schema{columns: map[string]map[string]string{}}
	err := r.query(ctx, `WITH RECURSIVE base AS (
  SELECT oid AS of, oid FROM pg_catalog.pg_type
  UNION ALL SELECT b.of, t.typbasetype FROM base b JOIN pg_catalog.pg_type t ON t.oid = b.oid WHERE t.typtype = 'd')
SELECT c.relname, a.attname, pg_catalog.format_type(b.oid, NULL), c.relkind IN ('v', 'm')
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
JOIN base b ON b.of = a.atttypid
JOIN pg_catalog.pg_type t ON t.oid = b.oid AND t.typtype <> 'd'
WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.attnum > 0 AND NOT a.attisdropped`,
		func(v [][]byte) error {
			table := string(v[0])
			if string(v[3]) == "t" { // a view may show only a part, has no order of insertion, or may be outdated
				if slices.Contains(tables, table) && !slices.Contains(s.views, table) {
					s.views = append(s.views, table)
				}
				return nil
			}
			if s.columns[table] == nil {
				s.columns[table] = map[string]string{}
			}
			s.columns[table][string(v[1])] = string(v[2])
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("look for tables: %w", err)
	}
	if err := s.hasTablesOfBoth(); err != nil {
		return nil, err
	}
	if err := r.checkPlans(ctx); err != nil {
		return nil, err
	}
	if err := r.tell(ctx, s); err != nil {
		return nil, err
	}
	return s, s.checkColumns()
}

// tell distinguishes the schemas.
func (r *Reader) tell(ctx context.Context, s *schema) error {
	v1, v2 := s.hasTable("efp_list_metadata"), s.hasTable("indexer_state")
	if !slices.Contains(octets, s.columns["efp_list_records"]["slot"]) {
		s.v1 = v1
		return s.checkColumns()
	}
	slot, err := r.value(ctx, `SELECT octet_length(slot) FROM public.efp_list_records LIMIT 1`)
	if err != nil {
		return fmt.Errorf("table efp_list_records: %w", err)
	}
	switch {
	case v1 && (slot == slotBytes || slot == "" && !v2):
		s.v1 = true
	case v2 && (slot == slotText || slot == ""):
	case !v1 && !v2:
		return errors.New("an unknown schema: neither the table efp_list_metadata of v1 nor indexer_state of v2 is in the schema public")
	default:
		return fmt.Errorf("an unknown schema: slots of efp_list_records have %s bytes; v1 has %s and the table efp_list_metadata, v2 %s and indexer_state",
			slot, slotBytes, slotText)
	}
	return nil
}

func (s *schema) hasTablesOfBoth() error {
	for _, table := range tables[:tablesOfBoth] {
		if slices.Contains(s.views, table) {
			return fmt.Errorf("%s in the schema public is a view: read the database that has the indexer's tables", table)
		}
		if !s.hasTable(table) {
			return fmt.Errorf("not a database of an indexer of the protocol: the schema public has no table %s", table)
		}
	}
	return nil
}
