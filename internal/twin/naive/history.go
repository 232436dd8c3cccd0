package naive

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An operation is a row of the table ops about an address.
type operation struct {
	token   string
	time    time.Time
	chain   uint64
	block   uint64
	index   uint32
	bytes   []byte
	opcode  int
	address string
	tag     string
}

// loadOps reads the operations about addresses, and sorts them in the order of answers.
func (g *Graph) loadOps(fsys fs.FS) error {
	type row struct {
		TokenID  string    `json:"token_id"`
		Time     time.Time `json:"time"`
		Chain    uint64    `json:"chain_id"`
		Block    uint64    `json:"block"`
		LogIndex uint32    `json:"log_index"`
		Op       string    `json:"op"`
	}
	err := eachRow(fsys, "ops", func(r row) error {
		op, err := hex.DecodeString(strings.TrimPrefix(r.Op, "0x"))
		if err != nil {
			return err
		}
		if len(op) >= 24 && op[0] == 1 && op[2] == 1 && op[3] == 1 {
			g.ops = append(g.ops, operation{
				token: r.TokenID, time: time.UnixMilli(r.Time.UnixMilli()), chain: r.Chain, block: r.Block, index: r.LogIndex,
				bytes: op, opcode: int(op[1]), address: "0x" + hex.EncodeToString(op[4:24]), tag: string(op[24:]),
			})
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		g.config.HistoryWindow, err = 0, nil
	}
	slices.SortFunc(g.ops, func(a, b operation) int {
		return cmp.Or(
			b.time.Compare(a.time), cmp.Compare(a.chain, b.chain), cmp.Compare(b.block, a.block), cmp.Compare(b.index, a.index),
			compareDecimals(a.token, b.token),
		)
	})
	return err
}

// latest returns the operations that the request asks for within its interval.
func (r *request) latest(wanted func(operation) bool) []operation {
	end := time.UnixMilli(r.asOf.UnixMilli())
	if start := time.Unix(int64(r.start), 0); r.start >= 0 && start.Before(end) {
		end = start
	}
	return windowOf(r, slices.DeleteFunc(r.inWindow(wanted), func(op operation) bool {
		return op.time.After(end) || op.time.Before(end.Add(-r.hours()*time.Hour)) || r.opcode != 0 && op.opcode != r.opcode || r.tag != "" && op.tag != r.tag
	}))
}

// inWindow returns the operations of the site's window.
func (g *Graph) inWindow(wanted func(operation) bool) (all []operation) {
	asOf := time.UnixMilli(g.asOf.UnixMilli())
	for _, op := range g.ops {
		if !op.time.Before(asOf.Add(-g.config.HistoryWindow)) && wanted(op) {
			all = append(all, op)
		}
	}
	return all
}

func (r *request) hours() time.Duration {
	switch r.interval {
	case "hour":
		return 1
	case "day":
		return 24
	case "month":
		return 720
	case "all":
		return 999
	}
	return 168
}

// isNews reports whether an operation is about the account, and by a primary list.
func (r *request) isNews(op operation) bool {
	l := r.byToken[op.token]
	return op.address == r.address && l != nil && l.account.primary == l
}

type historySummary struct {
	Interval  string `json:"interval"`
	Opcode    string `json:"opcode"`
	Total     int    `json:"total"`
	Follows   int    `json:"total_follows"`
	Unfollows int    `json:"total_unfollows"`
	Tags      int    `json:"total_tags"`
	Untags    int    `json:"total_untags"`
}

type historyEntry struct {
	Address   string  `json:"address"`
	Name      *string `json:"name"`
	Avatar    *string `json:"avatar"`
	Token     string  `json:"token_id"`
	Action    string  `json:"action"`
	Opcode    int     `json:"opcode"`
	Op        string  `json:"op"`
	Tag       string  `json:"tag"`
	UpdatedAt string  `json:"updated_at"`
}

func (r *request) summary(ops []operation) historySummary {
	s := historySummary{Interval: fmt.Sprintf("%d:00:00(hrs)", r.hours()), Opcode: "all", Total: len(ops)}
	if r.opcode != 0 {
		s.Opcode = strconv.Itoa(r.opcode)
	}
	for _, op := range ops {
		*[]*int{&s.Follows, &s.Unfollows, &s.Tags, &s.Untags}[op.opcode-1]++
	}
	return s
}

// historyEntry renders an operation with the account at an address.
func (r *request) historyEntry(op operation, address string) historyEntry {
	p := r.profileOf(address)
	return historyEntry{
		address, orNull(p.Name), orNull(p.Avatar), op.token, []string{"follow", "unfollow", "tag", "untag"}[op.opcode-1], op.opcode,
		"0x" + hex.EncodeToString(op.bytes), op.tag, instant(op.time),
	}
}

func (r *request) notifications() any {
	ops := r.latest(r.isNews)
	return struct {
		Summary       historySummary `json:"summary"`
		Notifications []historyEntry `json:"notifications"`
	}{r.summary(ops), mapped(ops, func(op operation) historyEntry {
		return r.historyEntry(op, r.byToken[op.token].account.address)
	})}
}

func (r *request) activity() any {
	ops := r.latest(func(op operation) bool { return op.token == r.list.token })
	return struct {
		Summary  historySummary `json:"summary"`
		Activity []historyEntry `json:"activity"`
	}{r.summary(ops), mapped(ops, func(op operation) historyEntry { return r.historyEntry(op, op.address) })}
}

// A feed is an Atom document, which is not JSON.
type feed string

func (r *request) feed() any {
	ops := r.latest(r.isNews)
	var b strings.Builder
	element := func(name, text string) { fmt.Fprintf(&b, "<%s>%s</%s>", name, escaped(text), name) }
	link := func(rel, contentType, href string) {
		fmt.Fprintf(&b, `<link rel="%s" type="%s" href="%s"></link>`, rel, contentType, escaped(href))
	}
	author := func(name, address string) {
		b.WriteString("<author>")
		element("name", name)
		element("uri", strings.ReplaceAll(r.config.ProfileURL, "{address}", address))
		b.WriteString("</author>")
	}
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<feed xmlns="http://www.w3.org/2005/Atom">`)
	element("id", "tag:github.com,2026:followpress/notifications/"+r.address)
	element("title", "Notifications of "+r.user)
	updated := r.asOf
	if len(ops) > 0 {
		updated = ops[0].time
	}
	element("updated", instant(updated))
	author(r.user, r.address)
	link("self", "application/atom+xml", "notifications.atom"+r.normalQuery())
	link("alternate", "text/html", strings.ReplaceAll(r.config.ProfileURL, "{address}", r.address))
	seen := map[string]bool{}
	for _, op := range ops {
		by := r.byToken[op.token].account.address
		name := cmp.Or(r.profileOf(by).Name, by)
		id := fmt.Sprintf("tag:github.com,2026:followpress/operation/%s/%s/%d/%d/%s", op.address, op.token, op.time.UnixMilli(), op.opcode, hex.EncodeToString([]byte(op.tag)))
		if seen[id] {
			continue
		}
		seen[id] = true
		b.WriteString("<entry>")
		element("id", id)
		element("title", name+" "+[]string{
			"follows you", "no longer follows you", "tagged you “" + op.tag + "”", "took the tag “" + op.tag + "” from you",
		}[op.opcode-1])
		element("updated", instant(op.time))
		author(name, by)
		link("alternate", "text/html", strings.ReplaceAll(r.config.ProfileURL, "{address}", by))
		b.WriteString("</entry>")
	}
	b.WriteString("</feed>")
	return feed(b.String())
}

func escaped(text string) string {
	var b bytes.Buffer
	if err := xml.EscapeText(&b, []byte(text)); err != nil {
		panic("naive: escape a text: " + err.Error()) // writes to a buffer do not fail
	}
	return b.String()
}

// normalQuery returns the query of a feed without parameters that have no effect.
func (r *request) normalQuery() string {
	var all []string
	add := func(name, value string) { all = append(all, name+"="+value) }
	if r.hours() != 168 {
		add("interval", r.interval)
	}
	if r.limit != 50 {
		add("limit", strconv.Itoa(r.limit))
	}
	if r.offset != 0 {
		add("offset", strconv.Itoa(min(r.offset, 1<<31-1)))
	}
	if r.opcode != 0 {
		add("opcode", strconv.Itoa(r.opcode))
	}
	if r.start >= 0 {
		add("start", strconv.Itoa(min(r.start, 253402300799)))
	}
	if r.tag != "" {
		tag := ""
		for _, c := range []byte(r.tag) {
			if strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~=", c) >= 0 {
				tag += string(rune(c))
			} else {
				tag += fmt.Sprintf("%%%02X", c)
			}
		}
		add("tag", tag)
	}
	if len(all) == 0 {
		return ""
	}
	return "?" + strings.Join(all, "&")
}

// HistoryObjects returns the objects behind answers about operations, by key.
func (g *Graph) HistoryObjects() map[string][]byte {
	objects := map[string][]byte{}
	add := func(prefix, subject, member string, rows []any) {
		type shard struct {
			List    string `json:"list,omitempty"`
			Address string `json:"address,omitempty"`
			Total   int    `json:"total"`
			Shard   int    `json:"shard,omitempty"`
			Shards  int    `json:"shards"`
			Entries []any  `json:"entries"`
		}
		n := 0
		for part := range slices.Chunk(rows, 1000) {
			s := shard{Total: len(rows), Shard: n, Shards: (len(rows) + 999) / 1000, Entries: part}
			*map[string]*string{"list": &s.List, "address": &s.Address}[member] = subject
			key := prefix + subject
			if n > 0 {
				key = prefix + "older/" + subject + "/" + strconv.Itoa(n)
			}
			objects[key] = encode(s)
			n++
		}
	}
	for address := range g.everybody() {
		r := &request{Graph: g, address: address}
		add("_search/notifications/", address, "address", mapped(g.inWindow(r.isNews), func(op operation) any {
			by := g.byToken[op.token].account.address
			p := g.profileOf(by)
			return []any{op.time.UnixMilli(), op.token, by, p.Name, p.Avatar, op.opcode, op.tag}
		}))
	}
	for _, l := range g.lists {
		add("_search/activity/", l.token, "list", mapped(g.inWindow(func(op operation) bool { return op.token == l.token }), func(op operation) any {
			p := g.profileOf(op.address)
			return []any{op.time.UnixMilli(), op.address, p.Name, p.Avatar, op.opcode, op.tag}
		}))
	}
	return objects
}

// everybody returns the addresses that operations are about.
func (g *Graph) everybody() map[string]bool {
	all := map[string]bool{}
	for _, op := range g.ops {
		all[op.address] = true
	}
	return all
}
