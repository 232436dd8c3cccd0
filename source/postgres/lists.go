package postgres

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/replay"
)

// graph starts a graph with the facts about the database, and adds warnings.
func (r *Reader) graph(ctx context.Context) (*source.Graph, error) {
	g := &source.Graph{Held: map[site.Address]uint32{}}
	for _, view := range r.schema.views {
		r.warn("%s is a view, and was not read as the indexer's table", view)
	}
	if r.schema.hasTable("events") {
		var err error
		if g.ListOps, err = r.count(ctx, "events", "event_name = 'ListOp'"); err != nil {
			return nil, err
		}
	} else {
		r.warn("no table events; records are ordered by insertion")
	}
	if err := r.readTime(ctx, g); err != nil {
		return nil, fmt.Errorf("time of the last block: %w", err)
	}
	return g, r.warnOfState(ctx)
}

// count returns the number of rows that satisfy a condition. It also records how many of them have
// an impossible created_at.
func (r *Reader) count(ctx context.Context, table, condition string) (n uint64, err error) {
	err = r.query(ctx, "SELECT count(*), count(*) FILTER (WHERE "+impossible("created_at")+") FROM public."+table+" WHERE "+condition, func(v [][]byte) error {
		if n, err = strconv.ParseUint(string(v[0]), 10, 64); err != nil {
			return err
		}
		return r.ignoreMany(impossibleTime, v[1])
	})
	if err != nil {
		return 0, fmt.Errorf("table %s: %w", table, err)
	}
	return n, nil
}

func (r *Reader) readTime(ctx context.Context, g *source.Graph) error {
	last, err := r.value(ctx, "SELECT ("+r.asOf()+")")
	if err == nil && last == "" && !r.schema.v1 {
		r.warn("indexer_state names no blocks; check that the indexer is running. " +
			"The snapshot is as of the earliest of the chains' last events, or of the current time without events")
		if r.schema.hasTable("events") {
			last, err = r.value(ctx, "SELECT ("+r.lastEvents()+")")
		}
	}
	if err != nil {
		return err
	}
	g.AsOf = time.Now().UTC().Truncate(time.Millisecond)
	if last != "" {
		ms, err := strconv.ParseInt(last, 10, 64)
		if err != nil {
			return err
		}
		g.AsOf = time.UnixMilli(ms).UTC()
	}
	return nil
}

// lastEvents returns a query for the time of the last event, the earliest over all chains.
func (r *Reader) lastEvents() string {
	return `SELECT min(last) FROM (SELECT max(` + r.schema.eventTime() + `) AS last FROM public.events GROUP BY chain_id) AS c`
}

// asOf returns a query for the time of the last block that the indexer has read, in milliseconds,
// the earliest over all chains. v2 knows that block, and its time if it had an event. v1 only knows
// when it wrote rows.
func (r *Reader) asOf() string {
	switch {
	case !r.schema.v1 && r.schema.has("events", "block_timestamp"):
		return `SELECT min(coalesce((
  SELECT max(` + r.schema.eventTime() + `) FROM public.events e
  WHERE e.chain_id = s.chain_id AND e.block_number = s.last_block), ` + millis("s.updated_at") + `)) FROM public.indexer_state s`
	case !r.schema.v1:
		return `SELECT min(` + millis("updated_at") + `) FROM public.indexer_state`
	case r.schema.hasTable("events"):
		return r.lastEvents()
	default:
		return `SELECT min(last) FROM (SELECT max(` + millis("written") + `) AS last FROM (
  SELECT nft_chain_id AS chain, updated_at AS written FROM public.efp_lists
  UNION ALL SELECT chain_id, created_at FROM public.efp_list_records) AS w GROUP BY chain) AS c`
	}
}

func (r *Reader) warnOfState(ctx context.Context) error {
	if r.schema.v1 || !r.schema.hasTable("efp_system_state") {
		return nil
	}
	caughtUp, err := r.value(ctx, `SELECT value FROM public.efp_system_state WHERE key = 'indexer_caught_up'`)
	if err == nil && caughtUp != "true" {
		r.warn("the indexer has not caught up with the chains (indexer_caught_up is %q)", caughtUp)
	}
	return err
}

// A list is a row of efp_lists.
type list struct {
	token string
	owner site.Address
	user  *site.Address
}

// lists holds all lists ordered by token ID, and the places of their records.
type lists struct {
	all []list
	at  map[source.Place][]int // indexes in all
}

func (r *Reader) readLists(ctx context.Context) (*lists, error) {
	r.progress.Stage("lists", 0)
	known, err := r.knownContracts(ctx)
	if err != nil {
		return nil, err
	}
	ls := &lists{at: map[source.Place][]int{}}
	user := `"user"`
	if r.schema.v1 {
		user = "NULL" // v1 does not update the column
	}
	var registry string
	err = r.each(ctx, `SELECT token_id::text, left(owner, 50), left(`+user+`, 50), `+
		bounded(r.schema.text("list_storage_location"), maxLocation)+`,
  lower(left(nft_chain_id || ' ' || nft_contract_address, 100)), octet_length(`+r.schema.text("list_storage_location")+`) > `+strconv.Itoa(maxLocation)+`
FROM public.efp_lists AS l ORDER BY l.token_id`, func(v [][]byte) error {
		r.progress.Add(1)
		if !site.ValidTokenID(string(v[0])) {
			r.ignore("list without a valid token ID")
			return nil
		}
		if n := len(ls.all); n > 0 && ls.all[n-1].token == string(v[0]) {
			r.ignore("duplicate list")
			return nil
		}
		if text := string(v[4]); text != "" {
			if registry != "" && text != registry {
				return fmt.Errorf("lists of two registries, %q and %q, whose token IDs would collide", registry, text)
			}
			registry = text
		}
		l := list{token: string(v[0])}
		var ok bool
		if l.owner, ok = parseAddress(v[1]); !ok {
			r.ignore("list without a valid owner")
			return nil
		}
		if string(v[5]) == "t" {
			r.ignore("overlong location")
		}
		if place, ok := r.place(v[3], known); ok {
			ls.at[place] = append(ls.at[place], len(ls.all))
			l.user = parseUser(v[2])
		}
		ls.all = append(ls.all, l)
		return nil
	})
	if err == nil && r.schema.v1 {
		err = r.readUsers(ctx, ls)
	}
	return ls, err
}

// place decodes a location, if it is one that the indexer reads.
func (r *Reader) place(location []byte, known map[source.Contract]bool) (source.Place, bool) {
	if location == nil {
		return source.Place{}, false
	}
	place, reason := replay.ParseLocation(unhex(nil, location))
	if reason == "" && !known[place.Contract] {
		reason = replay.LocationPlace
	}
	if reason != "" {
		r.ignore(string(reason))
	}
	return place, reason == ""
}

// knownContracts returns the contracts that the indexer reads. In v2 a list keeps its old user when
// it moves to another contract.
func (r *Reader) knownContracts(ctx context.Context) (map[source.Contract]bool, error) {
	from := "public.indexer_state"
	if r.schema.v1 {
		from = "public.efp_list_metadata"
	}
	if r.schema.hasTable("events") { // may be the only mention of a contract whose records were lost
		from += " UNION SELECT chain_id, left(contract_address, 50) FROM public.events WHERE event_name = 'ListOp'"
	}
	known := map[source.Contract]bool{}
	err := r.query(ctx, `SELECT chain_id, left(contract_address, 50) FROM public.efp_list_records
UNION SELECT chain_id, left(contract_address, 50) FROM `+from, func(v [][]byte) error {
		if c, ok := parseContract(v[0], v[1]); ok { // otherwise its rows are ignored
			known[c] = true
		}
		return nil
	})
	return known, err
}

// parseContract parses a contract; ok is false if the row names none.
func parseContract(chain, address []byte) (c source.Contract, ok bool) {
	var err error
	if c.Chain, err = strconv.ParseUint(string(chain), 10, 64); err != nil {
		return c, false
	}
	c.Address, ok = parseAddress(address)
	return c, ok
}

func parseAddress(text []byte) (site.Address, bool) {
	a, err := site.ParseAddress(text)
	return a, err == nil
}

// unhex appends the bytes of "0x" and hexadecimal digits, and nothing for other texts.
func unhex[T string | []byte](b []byte, text T) []byte {
	if len(text) < 2 || text[0] != '0' || text[1] != 'x' {
		return b
	}
	decoded, err := hex.AppendDecode(b, []byte(text[2:]))
	if err != nil {
		return b
	}
	return decoded
}

// parseUser parses "0x" and 40 hexadecimal digits; nil for other texts and for the zero address.
func parseUser(text []byte) *site.Address {
	user, ok := replay.User(unhex(nil, text))
	if !ok {
		return nil
	}
	return &user
}

// readUsers reads the users of places from v1. If the events have the value of the table, the last
// of them counts, since it is the last in the chain.
func (r *Reader) readUsers(ctx context.Context, ls *lists) error {
	type entry struct {
		table, last string
		inEvents    bool // the events have the table's value
	}
	users := map[source.Place]*entry{}
	place := func(v [][]byte) (place source.Place, wanted bool) {
		if place.Contract, wanted = parseContract(v[0], v[1]); !wanted {
			r.ignore(noContract)
			return place, false
		}
		slot := unhex(nil, v[2])
		if len(slot) != len(place.Slot) {
			return place, false
		}
		place.Slot = source.Word(slot)
		return place, ls.at[place] != nil
	}
	err := r.each(ctx, `SELECT chain_id, left(contract_address, 50), `+bounded(r.schema.text("slot"), maxSlot)+`, left(value, 100)
FROM public.efp_list_metadata WHERE key = 'user'`, func(v [][]byte) error {
		if at, wanted := place(v); wanted {
			users[at] = &entry{table: string(v[3])}
		}
		return nil
	})
	if err == nil && r.schema.hasTable("events") {
		err = r.each(ctx, `SELECT chain_id, left(contract_address, 50), lower(left(event_args->>'slot', 70)), left(event_args->>'value', 100)
FROM public.events WHERE event_name = 'UpdateListMetadata' AND event_args->>'key' = 'user'
ORDER BY chain_id, block_number, log_index`, func(v [][]byte) error {
			at, wanted := place(v)
			if e := users[at]; wanted && e != nil {
				e.last = string(v[3])
				e.inEvents = e.inEvents || e.last == e.table
			}
			return nil
		})
	}
	for at, e := range users {
		value, by := e.table, &r.report.Users.Tables
		if e.inEvents {
			value, by = e.last, &r.report.Users.Events
		}
		user := parseUser([]byte(value))
		if user == nil {
			continue
		}
		*by += uint64(len(ls.at[at]))
		for _, n := range ls.at[at] {
			ls.all[n].user = user
		}
	}
	return err
}

func (r *Reader) writeLists(w *snapshot.Writer, g *source.Graph, ls *lists) error {
	for n := range ls.all {
		l := &ls.all[n]
		if err := w.WriteList(snapshot.List{TokenID: l.token, Owner: l.owner, User: l.user}); err != nil {
			return err
		}
		g.Held[rules.AccountOf(l.owner, l.user)] += 0 // adds an entry even without followers
		if l.user == nil {
			r.report.Users.None++
		}
	}
	r.report.Lists = uint64(len(ls.all))
	if !r.schema.v1 {
		r.report.Users.Tables = r.report.Lists - r.report.Users.None
	}
	return nil
}

func (r *Reader) primaryLists(ctx context.Context) (map[site.Address]string, error) {
	primary := map[site.Address]string{}
	err := r.each(ctx, `SELECT left(address, 50), left(value, 100), `+impossible("updated_at")+` FROM public.efp_account_metadata
WHERE key = 'primary-list' ORDER BY `+finite("updated_at")+` NULLS FIRST, address, chain_id, contract_address`, func(v [][]byte) error {
		if string(v[2]) == "t" {
			r.ignore(impossibleTime)
		}
		account, ok := parseAddress(v[0])
		if !ok {
			r.ignore("primary list of an invalid address")
			return nil
		}
		token, ok := replay.PrimaryList(unhex(nil, v[1]))
		if !ok {
			delete(primary, account)
			if text := string(v[1]); text != "" && text != "0x" { // these unset it
				r.ignore(string(replay.PrimaryLength))
			}
			return nil
		}
		primary[account] = token
		return nil
	})
	r.report.Primary = uint64(len(primary))
	return primary, err
}

func (r *Reader) warn(format string, args ...any) {
	r.report.Warnings = append(r.report.Warnings, fmt.Sprintf(format, args...))
}

// Reasons used by several queries.
const (
	impossibleTime = "time that is infinite, or not from 1970 to 9999"
	noContract     = "row whose chain or contract is none"
)

// Limits of strings in bytes, so that a batch of rows fits in memory whatever was stored. A
// location has 174, a slot 66.
const (
	maxLocation = 1000
	maxSlot     = 100
)

func (r *Reader) ignore(reason string) { r.report.Ignored[reason]++ }

// ignoreMany adds a count from the server.
func (r *Reader) ignoreMany(reason string, text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 64)
	if n > 0 {
		r.report.Ignored[reason] += n
	}
	return err
}
