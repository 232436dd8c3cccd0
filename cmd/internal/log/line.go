package log

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/source"
	"github.com/followpress/followpress/source/replay"
)

// A line is something that happened.
type line struct {
	time  int64 // milliseconds since the Unix epoch; source.NoTime if it is not known
	place *place
	list  string // token id; "" for none
	by    party  // the account of the list
	told  replay.Told
	about party // as told.About
	op    []byte
}

// A place is where an event is.
type place struct {
	chain, block uint64
	index        uint32
}

// A party is an account, with its name if that is known.
type party struct{ address, name string }

// String is a party for people.
func (p party) String() string {
	if p.name == "" {
		return p.address
	}
	return plain(p.name) + " (" + p.address + ")"
}

// plain is a text that a terminal shows as it is: others are quoted.
func plain(text string) string {
	if quoted := strconv.Quote(text); quoted[1:len(quoted)-1] != text || strings.ContainsAny(text, " ") {
		return quoted
	}
	return text
}

func timeText(ms int64) string {
	if ms == source.NoTime {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// text is what happened, in the words of replay.
func (l *line) text() string {
	return l.told.Text(func(site.Address) string { return l.about.String() })
}

// write writes the line for people.
func (l *line) write(out *bufio.Writer) error {
	at, where, list := timeText(l.time), "", ""
	if at == "" {
		at = "not known"
	}
	if l.place != nil {
		where = fmt.Sprintf("%-20s  ", fmt.Sprintf("%d:%d:%d", l.place.chain, l.place.block, l.place.index))
	}
	if l.list != "" {
		list = "list " + l.list
		if l.by.address != "" {
			list += " of " + l.by.String()
		}
		list += ": "
	}
	_, err := fmt.Fprintf(out, "%-24s  %s%s%s\n", at, where, list, l.text())
	return err
}

// writeJSON writes the line as JSON, in ASCII: names and tags cannot steer a terminal.
func (l *line) writeJSON(out *bufio.Writer) error {
	v := struct {
		Time      string  `json:"time,omitempty"`
		Chain     *uint64 `json:"chain_id,omitempty"`
		Block     *uint64 `json:"block,omitempty"`
		LogIndex  *uint32 `json:"log_index,omitempty"`
		TokenID   string  `json:"token_id,omitempty"`
		Account   string  `json:"account,omitempty"`
		Name      string  `json:"name,omitempty"`
		Action    string  `json:"action"`
		Address   string  `json:"address,omitempty"`
		AboutName string  `json:"address_name,omitempty"`
		Tag       string  `json:"tag,omitempty"`
		Op        string  `json:"op,omitempty"`
		Effect    bool    `json:"effect"`
		Text      string  `json:"text"`
	}{
		Time: timeText(l.time), TokenID: l.list, Account: l.by.address, Name: l.by.name, Action: l.told.Action,
		Address: l.about.address, AboutName: l.about.name, Tag: l.told.Tag, Effect: l.told.Effect, Text: l.text(),
	}
	if l.place != nil {
		v.Chain, v.Block, v.LogIndex = &l.place.chain, &l.place.block, &l.place.index
	}
	if l.op != nil {
		v.Op = fmt.Sprintf("0x%x", l.op)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := out.Write(ascii(b.Bytes()))
	return err
}

// ascii escapes what is not printable ASCII in JSON that ends in a newline.
func ascii(text []byte) []byte {
	to := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == '\n' || ' ' <= r && r <= '~':
			to = append(to, text[0])
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			to = fmt.Appendf(to, `\u%04x\u%04x`, high, low)
		default:
			to = fmt.Appendf(to, `\u%04x`, r)
		}
		text = text[n:]
	}
	return to
}
