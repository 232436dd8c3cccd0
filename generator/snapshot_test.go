package generator_test

import (
	"bytes"
	stdjson "encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf16"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/spf13/afero"

	"github.com/followpress/followpress/fixtures/graph"
)

// A snapshot is the text of its files, by name.
type snapshot map[string]string

// emptySnapshot has all the tables and no row.
func emptySnapshot() snapshot {
	return snapshot{
		"meta.json":    `{"format":1,"as_of":"2026-11-20T00:00:00Z"}`,
		"lists.ndjson": "", "records.ndjson": "", "accounts.ndjson": "", "events.ndjson": "", "badges.ndjson": "",
	}
}

// with is the snapshot with another text of one file.
func (s snapshot) with(name, text string) snapshot {
	s = maps.Clone(s)
	s[name] = text
	return s
}

// adding is the snapshot with more rows in one table.
func (s snapshot) adding(table string, rows ...string) snapshot {
	name := table + ".ndjson"
	return s.with(name, s[name]+strings.Join(rows, "\n")+"\n")
}

func (s snapshot) without(name string) snapshot {
	s = maps.Clone(s)
	delete(s, name)
	return s
}

// compressed is the snapshot with its tables as .ndjson.gz or .ndjson.zst.
func (s snapshot) compressed(t testing.TB, ending string) snapshot {
	t.Helper()
	packed := snapshot{}
	for name, text := range s {
		if strings.HasSuffix(name, ".ndjson") {
			name, text = name+ending, compress(t, text, ending)
		}
		packed[name] = text
	}
	return packed
}

func compress(t testing.TB, text, ending string) string {
	t.Helper()
	var packed bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&packed)
	if ending == ".zst" {
		encoder, err := zstd.NewWriter(&packed)
		if err != nil {
			t.Fatal(err)
		}
		w = encoder
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.String()
}

func (s snapshot) fs() afero.Fs {
	files := fstest.MapFS{}
	for name, text := range s {
		files[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return afero.FromIOFS{FS: files}
}

// write writes the snapshot into a folder of the test.
func (s snapshot) write(t testing.TB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range s {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// syntheticSnapshot is a graph as package fixtures/graph makes it.
func syntheticSnapshot(t testing.TB, o graph.Options) snapshot {
	t.Helper()
	files := map[string]*bytes.Buffer{}
	_, err := graph.Write(t.Context(), o, func(name string) (io.WriteCloser, error) {
		files[name] = new(bytes.Buffer)
		return nopCloser{files[name]}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := snapshot{}
	for name, text := range files {
		s[name] = text.String()
	}
	return s
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// A shape says how large a random snapshot is, and what its texts are like.
type shape struct {
	accounts, lists, records, events, badges int
	hostile                                  bool // every text may hold anything
}

// randomSnapshot makes a snapshot in which every rule of the format has something
// to do: lists with a user and without, several lists of one account, primary lists
// that are missing, unknown or someone else's, records that repeat, block, mute, or
// are no follows at all, names that collide, rows that refer to nothing. All rows
// are valid; their members come in any order, spelled in any way that JSON allows.
func randomSnapshot(seed uint64, s shape) snapshot {
	r := &random{rand.New(rand.NewPCG(seed, 0)), s.hostile}
	accounts := make([]string, s.accounts)
	for i := range accounts {
		// Few bytes differ, so that the order of addresses decides about ranks.
		accounts[i] = fmt.Sprintf("0x%02x%034x%04x", r.IntN(3)*0x7f, 0xabcdef, i)
	}
	tokens := make([]string, s.lists)
	owners := map[string][]string{}
	events := make([]string, s.events)
	var lists, rows, records, badges, eventRows []string

	for i := range tokens {
		tokens[i] = fmt.Sprint(i * i)
		if r.one(10) {
			tokens[i] = fmt.Sprintf("9%077d", i)
		}
		account, owner := r.pick(accounts), r.pick(accounts)
		owners[account] = append(owners[account], tokens[i])
		members := []string{"token_id", quote(tokens[i]), "owner", r.quote(r.mixCase(owner)), "user", r.quote(r.mixCase(account))}
		if r.one(3) {
			members = []string{"token_id", quote(tokens[i]), "owner", r.quote(r.mixCase(account)), "user", "null"}
		}
		lists = append(lists, r.object(members...))
	}
	for _, address := range accounts {
		if r.one(5) {
			continue
		}
		members := []string{"address", r.quote(r.mixCase(address))}
		if own := owners[address]; len(own) > 0 && !r.one(8) {
			members = append(members, "primary_list", quote(r.pick(own)))
		} else if !r.one(3) {
			members = append(members, "primary_list", r.pick([]string{"null", `"123456789"`, quote(r.pick(tokens))}))
		}
		if !r.one(4) {
			members = append(members, "ens", r.profile(accounts))
		}
		rows = append(rows, r.object(members...))
	}
	for range s.records {
		token := r.pick(tokens)
		if r.one(50) {
			token = "987654321"
		}
		records = append(records, r.record(token, accounts))
	}
	for i := range events {
		events[i] = fmt.Sprint(3 * (s.events - i))
		eventRows = append(eventRows, r.event(events[i]))
	}
	for range s.badges {
		event := "4000000000000000000000"
		if s.events > 0 && !r.one(20) {
			event = r.pick(events)
		}
		badges = append(badges, r.object("event_id", quote(event), "token_id", quote(fmt.Sprint(r.IntN(2000))),
			"owner", r.quote(r.mixCase(r.pick(accounts)))))
	}
	r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return emptySnapshot().adding("lists", lists...).adding("accounts", rows...).adding("records", records...).
		adding("events", eventRows...).adding("badges", badges...)
}

type random struct {
	*rand.Rand
	hostile bool
}

func (r *random) one(in int) bool { return r.IntN(in) == 0 }

func (r *random) pick(from []string) string { return from[r.IntN(len(from))] }

// mixCase spells an address with some upper-case digits.
func (r *random) mixCase(address string) string {
	if r.one(2) {
		return address
	}
	b := []byte(address)
	for i := range b {
		if 'a' <= b[i] && b[i] <= 'f' && r.one(2) {
			b[i] -= 'a' - 'A'
		}
	}
	return string(b)
}

func (r *random) record(token string, accounts []string) string {
	version, kind, data := "1", "address", r.mixCase(r.pick(accounts))
	switch r.IntN(12) {
	case 0:
		version = r.pick([]string{"0", "2", "4294967295"})
	case 1:
		kind = r.pick([]string{"list", "Address", "x" + r.text()})
	case 2:
		data = r.pick([]string{"0x", "0xAB", "0X00ff", data + "00"}) // hexadecimal, but no address
	}
	members := []string{"token_id", quote(token), "version", version, "record_type", r.quote(kind), "data", quote(data)}
	if r.one(4) {
		return r.object(members...)
	}
	tags := make([]string, r.IntN(4))
	for i := range tags {
		tags[i] = r.quote(r.pick([]string{"block", "mute", "top8", "top8", "top8", "ens", ""}))
		if r.one(6) {
			tags[i] = r.quotedText()
		}
	}
	list := "[" + strings.Join(tags, r.pick([]string{",", " , "})) + "]"
	if len(tags) == 0 && r.one(2) {
		list = "null"
	}
	return r.object(append(members, "tags", list)...)
}

func (r *random) profile(accounts []string) string {
	if r.one(10) {
		return "null"
	}
	return r.object(r.profileMembers(accounts)...)
}

func (r *random) profileMembers(accounts []string) []string {
	name := fmt.Sprintf("n%d.eth", r.IntN(len(accounts)))
	if r.one(4) {
		name = r.pick([]string{r.text(), r.text(), "", "Upper.eth", "cafe\u0301.eth", "caf\u00e9.eth", "..", "a/b", "a%2fb",
			r.pick(accounts), strings.Repeat("n", 300), strings.Repeat("m", 255), "\u202e.eth"})
	}
	members := []string{"name", r.quote(name)}
	for _, member := range []string{"avatar", "header", "display", "resolver"} {
		members = r.maybe(members, member, r.quotedText())
	}
	for _, member := range []string{"records", "chains", "errors"} {
		members = r.maybe(members, member, r.nested(2))
	}
	return r.maybe(members, "fresh", r.pick([]string{"0", "1", "1", "-5", "1726680254493", "9223372036854775807"}))
}

// maybe appends a member, null in its place, or nothing.
func (r *random) maybe(members []string, name, value string) []string {
	switch r.IntN(5) {
	case 0:
		return members
	case 1:
		value = "null"
	}
	return append(members, name, value)
}

func (r *random) event(id string) string {
	members := []string{"id", id, "year", fmt.Sprint(r.IntN(4000) - 1000)}
	for _, name := range []string{"fancy_id", "name", "event_url", "image_url", "country", "city", "description",
		"start_date", "end_date", "expiry_date"} {
		members = append(members, name, r.quotedText())
	}
	return r.object(members...)
}

// object writes an object of alternating names and values, in any order.
func (r *random) object(members ...string) string {
	if r.one(8) {
		members = append(members, "unknown", r.nested(1))
	}
	parts := make([]string, 0, len(members)/2)
	for member := range slices.Chunk(members, 2) {
		parts = append(parts, quote(member[0])+r.space()+":"+r.space()+member[1])
	}
	r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return "{" + r.space() + strings.Join(parts, r.space()+","+r.space()) + r.space() + "}"
}

func (r *random) space() string { return r.pick([]string{"", "", "", "", " ", "\t", " \r "}) }

// nested is an object of anything, its keys in any order.
func (r *random) nested(depth int) string {
	parts := make([]string, r.IntN(5))
	for i := range parts {
		key := fmt.Sprintf("%s%d", r.text(), 7*i%5) // no two are equal
		parts[i] = r.quote(key) + r.space() + ":" + r.space() + r.value(depth)
	}
	return "{" + r.space() + strings.Join(parts, r.space()+","+r.space()) + r.space() + "}"
}

func (r *random) value(depth int) string {
	switch r.IntN(8) {
	case 0:
		return r.pick([]string{"null", "true", "false", "[]", "{}", "[ ]"})
	case 1:
		return r.pick([]string{"0", "-0", "1.0", "2.50", "1e400", "1E-7", "-12345678901234567890123456789", "0.1"})
	case 2:
		if depth > 0 {
			return r.nested(depth - 1)
		}
	case 3:
		if depth > 0 {
			return "[" + r.value(depth-1) + r.space() + "," + r.value(depth-1) + "]"
		}
	}
	return r.quotedText()
}

// hostilePieces are what hostile texts are made of.
var hostilePieces = []string{
	"a", "B", "é", "e\u0301", `"`, `\`, "/", "<b>", "&amp;", "'", "\x00", "\x01", "\x1f", "\b", "\f", "\n", "\r", "\t", "\x7f",
	"\u0085", "\u2028", "\u2029", "\u202e", "\u200f", "\ufeff", "\ufe0f", "\ufffd", "😀", "👨‍👩‍👧", "\U0010ffff", "%", "%2F", "..", "?",
	"#", " ", "\u00a0", "null", `"},{"version":`, `\u0000`, "$&",
}

func (r *random) text() string {
	if !r.hostile {
		return fmt.Sprintf("text %d", r.IntN(1000))
	}
	var text strings.Builder
	for range r.IntN(6) {
		text.WriteString(r.pick(hostilePieces))
	}
	return text.String()
}

// quotedText is a text as a JSON string. A hostile one may begin with an escaped
// surrogate pair.
func (r *random) quotedText() string {
	text := r.quote(r.text())
	if r.hostile && r.one(20) {
		return `"\ud83d\udca9` + strings.TrimPrefix(text, `"`)
	}
	return text
}

// quote is a JSON string as encoding/json writes it.
func quote(text string) string {
	b, err := stdjson.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// quote is a JSON string in one of the spellings that JSON allows.
func (r *random) quote(text string) string {
	switch r.IntN(5) {
	case 0:
		return quote(text)
	case 1:
		var all strings.Builder
		for _, unit := range utf16.Encode([]rune(text)) {
			fmt.Fprintf(&all, r.pick([]string{`\u%04x`, `\u%04X`}), unit)
		}
		return `"` + all.String() + `"`
	}
	var b strings.Builder
	encoder := stdjson.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		panic(err)
	}
	plain := strings.TrimSuffix(b.String(), "\n")
	if r.one(2) {
		plain = strings.ReplaceAll(plain, "/", `\/`)
	}
	return plain
}
