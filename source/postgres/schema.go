package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// A schema is what a database has of the tables of either indexer.
type schema struct {
	v1      bool
	columns map[string]map[string]string // type by table and column
}

func (s *schema) name() string {
	if s.v1 {
		return "v1"
	}
	return "v2"
}

func (s *schema) hasTable(table string) bool { return s.columns[table] != nil }

func (s *schema) has(table, column string) bool { return s.columns[table][column] != "" }

// text is an expression of a BYTEA column as "0x" and hexadecimal digits. v1 stores bytes. v2 stores
// that text itself, as bytes. Unlike a cast, neither depends on the setting bytea_output.
func (s *schema) text(column string) string {
	if s.v1 {
		return "'0x' || encode(" + column + ", 'hex')"
	}
	return "encode(" + column + ", 'escape')"
}

// millis is an expression of a time in milliseconds since the Unix epoch.
func millis(time string) string {
	return "floor(extract(epoch FROM " + time + ") * 1000)::bigint"
}

// eventTime is an expression of when an event was: the time of its block if the table events has it,
// else when the indexer wrote it.
func (s *schema) eventTime() string {
	written := millis("created_at")
	switch kind := s.columns["events"]["block_timestamp"]; {
	case kind == "":
		return written
	case strings.HasPrefix(kind, "timestamp"):
		return "coalesce(" + millis("block_timestamp") + ", " + written + ")"
	default:
		return "coalesce(block_timestamp::bigint * 1000, " + written + ")"
	}
}

// quoted is a text as a constant of SQL.
func quoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

// The lengths of a slot in BYTEA: bytes, or "0x" and hexadecimal digits.
const (
	slotBytes = "32"
	slotText  = "66"
)

// detect finds out which indexer made the database.
func (r *Reader) detect(ctx context.Context) (*schema, error) {
	s := &schema{columns: map[string]map[string]string{}}
	err := r.query(ctx, `SELECT c.relname, a.attname, pg_catalog.format_type(a.atttypid, NULL)
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND a.attnum > 0 AND NOT a.attisdropped`,
		func(v [][]byte) error {
			table := string(v[0])
			if s.columns[table] == nil {
				s.columns[table] = map[string]string{}
			}
			s.columns[table][string(v[1])] = string(v[2])
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("look for tables: %w", err)
	}
	for _, table := range []string{"efp_lists", "efp_list_records", "efp_list_record_tags", "efp_account_metadata"} {
		if !s.hasTable(table) {
			return nil, fmt.Errorf("not a database of an indexer of the protocol: the schema public has no table %s", table)
		}
	}
	slot, err := r.value(ctx, `SELECT octet_length(slot) FROM public.efp_list_records LIMIT 1`)
	if err != nil {
		return nil, fmt.Errorf("table efp_list_records: %w", err)
	}
	v1, v2 := s.hasTable("efp_list_metadata"), s.hasTable("indexer_state")
	switch {
	case v1 && (slot == slotBytes || slot == "" && !v2):
		s.v1 = true
	case v2 && (slot == slotText || slot == ""):
	case !v1 && !v2:
		return nil, errors.New("an unknown schema: neither the table efp_list_metadata of v1 nor indexer_state of v2 is in the schema public")
	default:
		return nil, fmt.Errorf("an unknown schema: slots of efp_list_records have %s bytes; v1 has %s and the table efp_list_metadata, v2 %s and indexer_state",
			slot, slotBytes, slotText)
	}
	return s, nil
}
