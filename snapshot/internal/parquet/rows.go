package parquet

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	json "github.com/goccy/go-json"
	lib "github.com/parquet-go/parquet-go"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
)

// AppendLine appends a row as a JSON object. It omits columns without a value.
func (c *Rows) AppendLine(line []byte, row int) ([]byte, error) {
	line = append(line, '{')
	for i, l := range c.columns {
		if l.quoted != "" || c.values[i] == nil || l.kind != tagsColumn && c.values[i][row].IsNull() {
			continue
		}
		if len(line) > 1 {
			line = append(line, ',')
		}
		line = append(append(append(line, '"'), l.name...), '"', ':')
		var err error
		if l.kind == tagsColumn {
			line, err = appendTexts(line, c.values[i][c.begins[row]:c.begins[row+1]])
		} else {
			line, err = l.appendValue(line, c.values[i][row])
		}
		if err != nil {
			return line, err
		}
		if len(line) > rowjson.MaxLineBytes {
			return line, errLongRow
		}
	}
	line, err := c.appendMembers(line, row)
	return append(line, '}'), err
}

// appendMembers appends ens from a struct's members.
func (c *Rows) appendMembers(line []byte, row int) (_ []byte, err error) {
	comma := func() {
		if line[len(line)-1] != '{' {
			line = append(line, ',')
		}
	}
	begun, inside := false, ""
	for i := range c.columns {
		l := &c.columns[i]
		if l.quoted == "" || c.values[i][row].IsNull() {
			continue
		}
		if !begun {
			comma()
			line, begun = append(line, `"ens":{`...), true
		}
		if inside != l.inside {
			if inside != "" {
				line = append(line, '}')
			}
			if inside = l.inside; inside != "" {
				comma()
				line = append(append(line, inside...), ":{"...)
			}
		}
		comma()
		if line, err = l.appendValue(append(append(line, l.quoted...), ':'), c.values[i][row]); err != nil {
			return line, err
		}
		if len(line) > rowjson.MaxLineBytes {
			return line, errLongRow
		}
	}
	if inside != "" {
		line = append(line, '}')
	}
	if begun {
		line = append(line, '}')
	}
	return line, nil
}

var errLongRow = fmt.Errorf("a row of more than %d MiB", rowjson.MaxLineBytes>>20)

func appendTexts(line []byte, texts []lib.Value) (_ []byte, err error) {
	line = append(line, '[')
	for i, v := range texts {
		if i > 0 {
			line = append(line, ',')
		}
		if v.IsNull() {
			line = append(line, "null"...)
		} else if line, err = appendBytes(line, v.ByteArray()); err != nil {
			return line, err
		}
	}
	return append(line, ']'), nil
}

func appendBytes(line, text []byte) ([]byte, error) {
	if len(line)+len(text) > rowjson.MaxLineBytes {
		return line, errLongRow
	}
	if !utf8.Valid(text) {
		return line, errors.New("not valid UTF-8")
	}
	return rawjson.AppendString(line, rowjson.View(text)), nil
}

func (l *leaf) appendValue(line []byte, v lib.Value) ([]byte, error) {
	switch {
	case l.kind == numberColumn:
		return l.appendNumber(line, v), nil
	case l.kind == timeColumn && l.isNumber:
		return rowjson.AppendTime(line, l.name, l.milliseconds(v))
	case l.kind == jsonColumn:
		if len(v.ByteArray()) > rowjson.MaxLineBytes {
			return line, errLongRow
		}
		if text := v.ByteArray(); !json.Valid(text) {
			return line, fmt.Errorf("%s: %s is not JSON", l.name, site.Quoted(string(text)))
		}
		return append(line, v.ByteArray()...), nil
	}
	return appendBytes(line, v.ByteArray())
}

func (l *leaf) appendNumber(line []byte, v lib.Value) []byte {
	if l.unsigned && v.Kind() == lib.Int64 {
		return strconv.AppendUint(line, v.Uint64(), 10)
	}
	return strconv.AppendInt(line, l.number(v), 10)
}

// number returns a whole number, negative if it does not fit.
func (l *leaf) number(v lib.Value) int64 {
	if v.Kind() == lib.Int64 {
		return v.Int64()
	}
	if l.unsigned {
		return int64(v.Uint32())
	}
	return int64(v.Int32())
}

// Record returns a row as a record, in the memory of the scanner. ok is false for an unusual or invalid row.
func (c *Rows) Record(s *rowjson.Scanner, row int) (*rowjson.Record, bool) {
	r := &s.Record
	return r, c.record(s, r, row)
}

func (c *Rows) record(s *rowjson.Scanner, r *rowjson.Record, row int) bool {
	token, kind := c.values[recordToken][row], c.values[recordType][row]
	*r = rowjson.Record{TokenID: rowjson.View(token.ByteArray()), Type: rowjson.View(kind.ByteArray()), Tags: r.Tags[:0], Added: rowjson.NoTime}
	if !site.ValidTokenID(r.TokenID) || r.Type == "" || r.Type != rules.TypeAddress && !utf8.ValidString(r.Type) {
		return false
	}
	if c.textBytes(row) > rowjson.MaxLineBytes/8 {
		return false // the line may be too long: JSON may need six bytes for one
	}
	version := c.values[recordVersion][row]
	n := c.columns[recordVersion].number(version)
	if version.IsNull() || n < 0 || n > math.MaxUint32 {
		return false
	}
	r.Version = uint32(n)
	if !s.Hexadecimal(c.values[recordData][row].ByteArray()) || !c.tags(s, row) {
		return false
	}
	r.Data = s.Data[:len(s.Data):len(s.Data)]
	var ok bool
	r.Added, ok = c.added(row)
	return ok
}

// textBytes returns the length of a record's texts.
func (c *Rows) textBytes(row int) int {
	n := len(c.values[recordType][row].ByteArray()) + len(c.values[recordData][row].ByteArray())
	if c.values[recordTags] != nil && c.columns[recordTags].kind == tagsColumn {
		for _, v := range c.values[recordTags][c.begins[row]:c.begins[row+1]] {
			n += len(v.ByteArray())
		}
	}
	return n
}

func (c *Rows) tags(s *rowjson.Scanner, row int) bool {
	switch {
	case c.values[recordTags] == nil:
		return true
	case c.columns[recordTags].kind == jsonColumn:
		s.Record.Tags = s.Record.Tags[:0]
		return c.values[recordTags][row].IsNull()
	}
	tags := s.Record.Tags
	for _, v := range c.values[recordTags][c.begins[row]:c.begins[row+1]] {
		if v.IsNull() || !utf8.Valid(v.ByteArray()) {
			return false
		}
		tags = append(tags, rowjson.View(v.ByteArray()))
	}
	s.SetTags(tags)
	return true
}

// added returns the time of a record in milliseconds since the Unix epoch, or rowjson.NoTime for null. ok is false for an
// invalid one.
func (c *Rows) added(row int) (ms int64, ok bool) {
	if len(c.values) <= recordAdded || c.values[recordAdded] == nil || c.values[recordAdded][row].IsNull() {
		return rowjson.NoTime, true
	}
	l, v := &c.columns[recordAdded], c.values[recordAdded][row]
	if l.isNumber {
		ms = l.milliseconds(v)
		return ms, rowjson.IsWritable(ms)
	}
	ms, err := rowjson.ParseTime(l.name, rowjson.View(v.ByteArray()))
	return ms, err == nil
}
