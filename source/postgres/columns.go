package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// A kind lists the accepted types of a column, by the names of PostgreSQL's own types. A domain
// counts as its base type: PostgreSQL ignores casts of domains and checks their conditions only on
// writes. For any other type, the cast to text may be a stranger's function.
type kind []string

var (
	numbers = kind{"smallint", "integer", "bigint", "numeric"}
	texts   = kind{"text", "character varying", "character"}
	octets  = kind{"bytea"}
	times   = kind{"timestamp with time zone", "timestamp without time zone"}
	jsons   = kind{"json", "jsonb"}
)

// A column is a column that the queries of a schema need or, if optional, may use.
type column struct {
	table, name string
	of          kind
	optional    bool
}

// columnsOf returns the columns of a schema. Columns of optional tables are checked only if the
// table exists.
func columnsOf(v1 bool) []column {
	all := []column{
		{"efp_lists", "token_id", numbers, false},
		{"efp_lists", "owner", texts, false},
		{"efp_lists", "list_storage_location", octets, false},
		{"efp_lists", "nft_chain_id", numbers, false},
		{"efp_lists", "nft_contract_address", texts, false},
		{"efp_list_records", "chain_id", numbers, false},
		{"efp_list_records", "contract_address", texts, false},
		{"efp_list_records", "slot", octets, false},
		{"efp_list_records", "record", octets, false},
		{"efp_list_records", "created_at", times, false},
		{"efp_list_record_tags", "chain_id", numbers, false},
		{"efp_list_record_tags", "contract_address", texts, false},
		{"efp_list_record_tags", "slot", octets, false},
		{"efp_list_record_tags", "record", octets, false},
		{"efp_list_record_tags", "tag", texts, false},
		{"efp_account_metadata", "chain_id", numbers, false},
		{"efp_account_metadata", "contract_address", texts, false},
		{"efp_account_metadata", "address", texts, false},
		{"efp_account_metadata", "key", texts, false},
		{"efp_account_metadata", "value", texts, false},
		{"efp_account_metadata", "updated_at", times, false},
		{"events", "chain_id", numbers, false},
		{"events", "block_number", numbers, false},
		{"events", "log_index", numbers, false},
		{"events", "contract_address", texts, false},
		{"events", "event_name", texts, false},
		{"events", "event_args", jsons, false},
		{"events", "created_at", times, false},
		{"events", "block_timestamp", slices.Concat(times, numbers), true},
		{"events", "block_hash", texts, true},
		{"ens_metadata", "address", texts, false},
		{"ens_metadata", "name", texts, false},
		{"ens_metadata", "avatar", texts, false},
		{"ens_metadata", "updated_at", times, false},
		{"ens_metadata", "header", texts, true},
		{"ens_metadata", "display", texts, true},
		{"ens_metadata", "records", slices.Concat(jsons, texts), true},
	}
	if v1 {
		return append(all,
			column{"efp_lists", "updated_at", times, false},
			column{"efp_list_metadata", "chain_id", numbers, false},
			column{"efp_list_metadata", "contract_address", texts, false},
			column{"efp_list_metadata", "slot", octets, false},
			column{"efp_list_metadata", "key", texts, false},
			column{"efp_list_metadata", "value", texts, false},
		)
	}
	return append(all,
		column{"efp_lists", "user", texts, false},
		column{"indexer_state", "chain_id", numbers, false},
		column{"indexer_state", "contract_address", texts, false},
		column{"indexer_state", "last_block", numbers, false},
		column{"indexer_state", "updated_at", times, false},
		column{"efp_system_state", "key", texts, false},
		column{"efp_system_state", "value", texts, false},
	)
}

// checkColumns returns an error if a column is missing or has an unexpected type.
func (s *schema) checkColumns() error {
	for _, c := range columnsOf(s.v1) {
		is, ok := s.columns[c.table][c.name]
		switch {
		case !s.hasTable(c.table) || !ok && c.optional:
		case !ok:
			return fmt.Errorf("table %s has no column %s, which %s of the indexer has from its first migration on: "+
				"have the indexer's migrations run to their end, then read again", c.table, c.name, s.name())
		case !slices.Contains(c.of, is):
			return fmt.Errorf("column %s of table %s is of the type %s, and in %s of the indexer of %s: "+
				"a conversion could run a function of somebody else", c.name, c.table, is, s.name(), strings.Join(c.of, " or "))
		}
	}
	return nil
}

// checkPlans returns an error if planning a query may run a function that is not PostgreSQL's own:
// the planner evaluates constants in expressions of indexes, statistics and partition keys, as the
// reading role. Extensions may install functions of anybody.
func (r *Reader) checkPlans(ctx context.Context) error {
	var found error
	err := r.query(ctx, `WITH RECURSIVE t AS (
  SELECT oid, relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname IN ('`+strings.Join(tables, "', '")+`')
  UNION SELECT i.inhrelid, t.relname FROM t JOIN pg_inherits i ON i.inhparent = t.oid)
SELECT t.relname, p.oid::regprocedure::text
FROM t
JOIN LATERAL (
  SELECT 'pg_class'::regclass AS class, t.oid
  UNION ALL SELECT 'pg_class'::regclass, i.indexrelid FROM pg_index i WHERE i.indrelid = t.oid
  UNION ALL SELECT 'pg_statistic_ext'::regclass, s.oid FROM pg_statistic_ext s WHERE s.stxrelid = t.oid) AS o ON true
JOIN pg_depend d ON d.classid = o.class AND d.objid = o.oid
LEFT JOIN pg_operator f ON d.refclassid = 'pg_operator'::regclass AND f.oid = d.refobjid
JOIN pg_proc p ON p.oid = CASE WHEN d.refclassid = 'pg_proc'::regclass THEN d.refobjid ELSE f.oprcode END
WHERE p.pronamespace <> 'pg_catalog'::regnamespace
  AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e')
ORDER BY 1, 2 LIMIT 1`, func(v [][]byte) error {
		found = fmt.Errorf("table %s has an index, a statistic or a partition key that calls %s, which would run with the rights of the reading role; "+
			"drop it, or read a copy without it", v[0], v[1])
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for functions of indexes: %w", err)
	}
	return found
}
