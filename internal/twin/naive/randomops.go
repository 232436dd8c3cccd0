package naive

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// opTags are tags of operations. Contracts accept any UTF-8 without NUL.
var opTags = []string{
	"top8", "block", "mute", "TOP8", "top8 ", "é", "e\u0301", "gm ☀\uFE0F", `<&>"'`, "line\u2028end", "two\nlines\r\t", "\x01\x1b", "\uFFFD", "\uFFFE",
	"\U0001F98A", "\u202Ereversed", "]]>", `\`, "a,b", "a+b=c&d", "100%", " ", "null",
}

// addOps makes the table of operations, from its own seed. Operations are about known and unknown
// accounts and lists. Most happened in the last hours before asOf, some just inside or outside of
// an interval, many at one time, on two chains. Some snapshots have none. In some, one account or
// list has more than fit into an object.
func (m *maker) addOps(seed uint64, asOf time.Time) {
	o := &maker{Rand: rand.New(rand.NewPCG(seed, 25)), addresses: m.addresses, tables: m.tables}
	if o.oneIn(8) {
		return
	}
	var tokens []string
	for _, r := range m.tables["lists"] {
		tokens = append(tokens, r.(row)["token_id"].(string))
	}
	ops := map[string]row{} // by place in the chains, which is unique
	count := o.IntN(300)
	star, busy := o.anybody(), ""
	if o.oneIn(6) {
		count = 2100 + o.IntN(1500)
		busy = pick(o.Rand, tokens)
	}
	for i := range count {
		token, about := "192837465", o.anybody()
		if !o.oneIn(20) {
			token = pick(o.Rand, tokens)
		}
		if !o.oneIn(4) && busy != "" {
			about = star
		}
		if o.oneIn(3) && busy != "" {
			token = busy
		}
		r := row{
			"token_id": token, "time": o.opTime(asOf).Format("2006-01-02T15:04:05.000Z"), "chain_id": pick(o.Rand, []int{1, 10, 8453}),
			"block": 7 + o.IntN(3), "log_index": i / 3, "op": "0x" + hex.EncodeToString(o.op(about)),
		}
		ops[fmt.Sprint(r["time"], r["chain_id"], r["block"], r["log_index"], token)] = r
	}
	var rows []any
	for _, place := range sortedKeys(ops) {
		rows = append(rows, ops[place])
	}
	slices.SortStableFunc(rows, func(a, b any) int {
		x, y := a.(row), b.(row)
		return cmp.Or(
			cmp.Compare(x["time"].(string), y["time"].(string)), cmp.Compare(x["chain_id"].(int), y["chain_id"].(int)),
			cmp.Compare(x["block"].(int), y["block"].(int)), cmp.Compare(x["log_index"].(int), y["log_index"].(int)),
			compareDecimals(x["token_id"].(string), y["token_id"].(string)),
		)
	})
	m.tables["ops"] = rows
}

// opTime returns a time at or near the beginning of an interval, or any time.
func (m *maker) opTime(asOf time.Time) time.Time {
	back := time.Duration(pick(m.Rand, []int{0, 0, 1, 1, 24, 168, 168, 720, 999, 999, -1, 2000})) * time.Hour
	at := asOf.UTC().Truncate(time.Millisecond).Add(-back)
	switch m.IntN(6) {
	case 0:
		return at.Add(time.Millisecond)
	case 1:
		return at.Add(-time.Millisecond)
	case 2:
		return at.Add(time.Duration(m.IntN(3_600_000)) * time.Millisecond)
	}
	return at
}

// op returns an operation as the contract logs it, sometimes not about an account.
func (m *maker) op(about string) []byte {
	address, err := hex.DecodeString(about[2:])
	if err != nil {
		panic("naive: address " + strconv.Quote(about) + ": " + err.Error())
	}
	code := byte(1 + m.IntN(4))
	switch m.IntN(20) {
	case 0:
		return append([]byte{1, 1 + code%2, 1, 2}, address...)
	case 1:
		return []byte{1, 1 + code%2, 7, 1, 0xFF}
	}
	if code < 3 {
		return append([]byte{1, code, 1, 1}, address...)
	}
	return append(append([]byte{1, code, 1, 1}, address...), pick(m.Rand, opTags)...)
}
