package bundle

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
)

// kinds are the words for kinds of events.
var kinds = [...]string{
	source.Transfer: "transfer", source.Location: "location", source.AccountMetadata: "account_metadata",
	source.Op: "op", source.ListMetadata: "list_metadata",
}

func hasKey(k source.Kind) bool { return k == source.AccountMetadata || k == source.ListMetadata }

// timeForm is RFC 3339 with milliseconds, as other tables have it.
const timeForm = "2006-01-02T15:04:05.000Z"

// What timeForm can show: the years 0 to 9999.
var (
	leastTime = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	mostTime  = time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC).UnixMilli()
)

func appendTime(to []byte, ms int64) ([]byte, error) {
	if ms < leastTime || ms > mostTime {
		return to, fmt.Errorf("its time, %d ms after 1970, is not in the years 0 to 9999", ms)
	}
	return time.UnixMilli(ms).UTC().AppendFormat(to, timeForm), nil
}

func parseTime(text string) (int64, error) {
	t, err := time.Parse(timeForm, text)
	if err != nil {
		return 0, fmt.Errorf("%s is no time like %s", site.Quoted(text), timeForm)
	}
	return t.UnixMilli(), nil
}

// appendRow appends the row of an event, with its end of line.
func appendRow(to []byte, e *source.Event) (_ []byte, err error) {
	if int(e.Kind) >= len(kinds) || kinds[e.Kind] == "" {
		return to, fmt.Errorf("its kind, %d, is unknown", e.Kind)
	}
	if to, err = appendTime(append(to, `{"time":"`...), e.Time); err != nil {
		return to, err
	}
	to = strconv.AppendUint(append(to, `","chain_id":`...), e.Contract.Chain, 10)
	to = strconv.AppendUint(append(to, `,"block":`...), e.Block, 10)
	to = strconv.AppendUint(append(to, `,"log_index":`...), uint64(e.Index), 10)
	to = append(append(to, `,"kind":"`...), kinds[e.Kind]...)
	to = hex.AppendEncode(append(to, `","contract":"0x`...), e.Contract.Address[:])
	to = hex.AppendEncode(append(to, `","subject":"0x`...), e.Subject[:])
	switch {
	case !hasKey(e.Kind):
	case isPlain(e.Key):
		to = append(append(to, `","key":"`...), e.Key...)
	default:
		to = hex.AppendEncode(append(to, `","key_hex":"`...), []byte(e.Key))
	}
	to = hex.AppendEncode(append(to, `","value":"0x`...), e.Value)
	return append(to, "\"}\n"...), nil
}

// isPlain reports whether JSON has only one way to write a text. Keys are any bytes that somebody has
// paid for.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// errForm says that a row is not in the form that events have.
var errForm = errors.New("it is not a row as this log has them")

// A parser takes a row apart, from its beginning.
type parser struct {
	left   string
	failed bool
}

func (p *parser) after(text string) {
	rest, ok := strings.CutPrefix(p.left, text)
	p.left, p.failed = rest, p.failed || !ok
}

// until takes what comes before a byte.
func (p *parser) until(end byte) string {
	i := strings.IndexByte(p.left, end)
	if i < 0 {
		p.failed = true
		return ""
	}
	text := p.left[:i]
	p.left = p.left[i:]
	return text
}

func (p *parser) number(bits int) uint64 {
	n, err := strconv.ParseUint(p.until(','), 10, bits)
	p.failed = p.failed || err != nil
	return n
}

func (p *parser) hex(to []byte) {
	text := p.until('"')
	if len(text) != hex.EncodedLen(len(to)) {
		p.failed = true
		return
	}
	_, err := hex.Decode(to, []byte(text))
	p.failed = p.failed || err != nil
}

func (p *parser) bytes() []byte {
	b, err := hex.DecodeString(p.until('"'))
	p.failed = p.failed || err != nil
	return b
}

// parseRow reads what appendRow writes, and nothing else. scratch is memory for it.
func parseRow(row []byte, scratch *[]byte) (e source.Event, err error) {
	p := parser{left: string(row)}
	p.after(`{"time":"`)
	text := p.until('"')
	p.after(`","chain_id":`)
	e.Contract.Chain = p.number(64)
	p.after(`,"block":`)
	e.Block = p.number(64)
	p.after(`,"log_index":`)
	e.Index = uint32(p.number(32))
	p.after(`,"kind":"`)
	kind := p.until('"')
	p.after(`","contract":"0x`)
	p.hex(e.Contract.Address[:])
	p.after(`","subject":"0x`)
	p.hex(e.Subject[:])
	switch {
	case strings.HasPrefix(p.left, `","key":"`):
		p.after(`","key":"`)
		e.Key = p.until('"')
	case strings.HasPrefix(p.left, `","key_hex":"`):
		p.after(`","key_hex":"`)
		e.Key = string(p.bytes())
	}
	p.after(`","value":"0x`)
	e.Value = p.bytes()
	p.after("\"}\n")
	for k, word := range kinds {
		if word == kind && word != "" {
			e.Kind = source.Kind(k)
		}
	}
	if p.failed || p.left != "" || e.Kind == 0 {
		return e, errForm
	}
	if e.Time, err = parseTime(text); err != nil {
		return e, err
	}
	// Numbers with zeros in front, digits in upper case, and keys in the wrong form end here.
	if *scratch, err = appendRow((*scratch)[:0], &e); err != nil || !bytes.Equal(*scratch, row) {
		return e, errForm
	}
	return e, nil
}

// A position is where a row is in the order of the log.
type position struct {
	time  int64 // the latest of the chain so far
	chain uint64
	block uint64
	index uint32
}

func (p position) before(q position) bool {
	switch {
	case p.time != q.time:
		return p.time < q.time
	case p.chain != q.chain:
		return p.chain < q.chain
	case p.block != q.block:
		return p.block < q.block
	}
	return p.index < q.index
}

// An order knows where the events of a chain are in the log.
type order struct {
	latest       int64
	block, index uint64
	begun        bool
}

func newOrder() order { return order{latest: math.MinInt64} }

// next is the position of the next event. It is an error if that is not after the last one in its chain.
func (o *order) next(e *source.Event) (position, error) {
	if o.begun && (e.Block < o.block || e.Block == o.block && uint64(e.Index) <= o.index) {
		return position{}, fmt.Errorf("chain %d: log %d of block %d comes after log %d of block %d", e.Contract.Chain, e.Index, e.Block, o.index, o.block)
	}
	o.block, o.index, o.begun = e.Block, uint64(e.Index), true
	o.latest = max(o.latest, e.Time)
	return position{o.latest, e.Contract.Chain, e.Block, e.Index}, nil
}
