package postgres

import (
	"context"
	"errors"
	"regexp"
	"strconv"

	"github.com/followpress/followpress/site"
)

// maxChains limits the chains in a snapshot.
const maxChains = 64

var blockHash = regexp.MustCompile(`^0x[0-9a-f]{64}$`)

// chains returns the block up to which each chain was read. It returns none unless the database
// knows the block of each chain: v1 does not know its blocks, and v2 may have events newer than the
// block it reports. v2 does not know the number of events, since it only keeps operations.
func (r *Reader) chains(ctx context.Context) (all []site.ChainInput, err error) {
	s := r.schema
	if s.v1 {
		return nil, nil
	}
	events, hash := "SELECT chain_id, last_block AS last FROM public.indexer_state LIMIT 0", "NULL"
	if s.hasTable("events") {
		events = "SELECT chain_id, max(block_number) AS last FROM public.events GROUP BY chain_id"
	}
	if s.has("events", "block_hash") {
		hash = "(SELECT lower(left(h.block_hash::text, 100)) FROM public.events AS h WHERE h.chain_id = e.chain_id AND h.block_number = e.last LIMIT 1)"
	}
	known := true
	err = r.query(ctx, `SELECT coalesce(s.chain_id, e.chain_id), coalesce(s.last_block, -1), coalesce(e.last, 0), `+hash+`
FROM (SELECT chain_id, min(last_block) AS last_block FROM public.indexer_state GROUP BY chain_id) AS s
FULL JOIN (`+events+`) AS e ON e.chain_id = s.chain_id
ORDER BY 1 LIMIT `+strconv.Itoa(maxChains+1), func(v [][]byte) error {
		chain, failed := strconv.ParseUint(string(v[0]), 10, 64)
		if failed != nil || chain == 0 {
			known = false // not a chain ID
			return nil    //nolint:nilerr // no chain is reported then
		}
		read, err := strconv.ParseInt(string(v[1]), 10, 64)
		last, failed := strconv.ParseInt(string(v[2]), 10, 64)
		known = known && 0 <= read && last <= read
		c := site.ChainInput{ChainID: chain, Block: uint64(read)}
		if last == read && blockHash.Match(v[3]) {
			c.Hash = string(v[3])
		}
		all = append(all, c)
		return errors.Join(err, failed)
	})
	if err != nil || !known || len(all) > maxChains {
		return nil, err
	}
	return all, nil
}
