package snapshot

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	json "github.com/goccy/go-json"
	"github.com/parquet-go/parquet-go"

	"github.com/followpress/followpress/internal/rawjson"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
)

// appendLine appends a row as an object. A column without a value is left out.
func (c *parquetRows) appendLine(line []byte, row int) ([]byte, error) {
	line = append(line, '{')
	for i, l := range c.columns {
		if c.values[i] == nil || l.kind != tagsColumn && c.values[i][row].IsNull() {
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
		if len(line) > maxLineBytes {
			return line, errLongRow
		}
	}
	return append(line, '}'), nil
}

var errLongRow = fmt.Errorf("a row of more than %d MiB", maxLineBytes>>20)

func appendTexts(line []byte, texts []parquet.Value) (_ []byte, err error) {
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
	if len(line)+len(text) > maxLineBytes {
		return line, errLongRow
	}
	if !utf8.Valid(text) {
		return line, errors.New("not valid UTF-8")
	}
	return rawjson.AppendString(line, view(text)), nil
}

func (l *leaf) appendValue(line []byte, v parquet.Value) ([]byte, error) {
	switch {
	case l.kind == numberColumn:
		return l.appendNumber(line, v), nil
	case l.kind == timeColumn && l.isNumber:
		return appendTime(line, l.name, l.milliseconds(v))
	case l.kind == jsonColumn:
		if len(v.ByteArray()) > maxLineBytes {
			return line, errLongRow
		}
		if text := v.ByteArray(); !json.Valid(text) {
			return line, fmt.Errorf("%s: %s is not JSON", l.name, site.Quoted(string(text)))
		}
		return append(line, v.ByteArray()...), nil
	}
	return appendBytes(line, v.ByteArray())
}

func (l *leaf) appendNumber(line []byte, v parquet.Value) []byte {
	if l.unsigned && v.Kind() == parquet.Int64 {
		return strconv.AppendUint(line, v.Uint64(), 10)
	}
	return strconv.AppendInt(line, l.number(v), 10)
}

// number returns a whole number; a negative one for what does not fit.
func (l *leaf) number(v parquet.Value) int64 {
	if v.Kind() == parquet.Int64 {
		return v.Int64()
	}
	if l.unsigned {
		return int64(v.Uint32())
	}
	return int64(v.Int32())
}

// columnsOfRecord makes a record of a row. It reports false for a row that is unusual or not valid.
func (s *rowScanner) columnsOfRecord(c *parquetRows, row int) bool {
	r := &s.record
	token, kind := c.values[recordToken][row], c.values[recordType][row]
	*r = Record{TokenID: view(token.ByteArray()), Type: view(kind.ByteArray()), Tags: r.Tags[:0], Added: NoTime}
	if !site.ValidTokenID(r.TokenID) || r.Type == "" || r.Type != rules.TypeAddress && !utf8.ValidString(r.Type) {
		return false
	}
	if c.textBytes(row) > maxLineBytes/8 {
		return false // the line may be too long: a byte becomes at most six
	}
	version := c.values[recordVersion][row]
	n := c.columns[recordVersion].number(version)
	if version.IsNull() || n < 0 || n > math.MaxUint32 {
		return false
	}
	r.Version = uint32(n)
	if !s.hexadecimal(c.values[recordData][row].ByteArray()) || !s.tagsOf(c, row) {
		return false
	}
	r.Data = s.data[:len(s.data):len(s.data)]
	var ok bool
	r.Added, ok = c.timeOf(recordAdded, row)
	return ok
}

// columnsOfAccount is columnsOfRecord of an account.
func (s *rowScanner) columnsOfAccount(c *parquetRows, row int) bool {
	a := &s.account
	*a = Account{}
	var err error
	address := c.values[accountAddress][row].ByteArray()
	if a.Address, err = site.ParseAddress(address); err != nil || address[1] != 'x' {
		return false
	}
	if primary := c.optional(accountPrimary, row); !primary.IsNull() {
		if a.Primary = view(primary.ByteArray()); !site.ValidTokenID(a.Primary) {
			return false
		}
	}
	ens := c.optional(accountENS, row)
	if ens.IsNull() {
		return true
	}
	text := ens.ByteArray()
	if len(text) > maxLineBytes/2 {
		return false // the line may be too long
	}
	s.Reset(text)
	if !s.Null() {
		s.profile = s.ens()
		a.ENS = &s.profile
	}
	return s.Done()
}

// optional returns a value of a column that the file may lack; null then.
func (c *parquetRows) optional(column, row int) parquet.Value {
	if c.values[column] == nil {
		return parquet.Value{}
	}
	return c.values[column][row]
}

// hexadecimal decodes a text into s.data. It reports false if it is none.
func (s *rowScanner) hexadecimal(text []byte) bool {
	if len(text) < 2 || text[0] != '0' || text[1] != 'x' {
		return false
	}
	var err error
	s.data, err = hex.AppendDecode(s.data[:0], text[2:])
	return err == nil
}

// textBytes is the length of the texts of a record.
func (c *parquetRows) textBytes(row int) int {
	n := len(c.values[recordType][row].ByteArray()) + len(c.values[recordData][row].ByteArray())
	if c.values[recordTags] != nil && c.columns[recordTags].kind == tagsColumn {
		for _, v := range c.values[recordTags][c.begins[row]:c.begins[row+1]] {
			n += len(v.ByteArray())
		}
	}
	return n
}

func (s *rowScanner) tagsOf(c *parquetRows, row int) bool {
	switch {
	case c.values[recordTags] == nil:
		return true
	case c.columns[recordTags].kind == jsonColumn:
		s.record.Tags = s.record.Tags[:0]
		return c.values[recordTags][row].IsNull()
	}
	tags := s.record.Tags
	for _, v := range c.values[recordTags][c.begins[row]:c.begins[row+1]] {
		if v.IsNull() || !utf8.Valid(v.ByteArray()) {
			return false
		}
		tags = append(tags, view(v.ByteArray()))
	}
	s.setTags(tags)
	return true
}

// setTags sorts the tags of a record.
func (s *rowScanner) setTags(tags []string) {
	if len(tags) > 1 {
		tags = rules.MergeTags(tags)
	}
	s.record.Tags = tags
}

// timeOf returns a time in milliseconds since the Unix epoch, NoTime if there is none. It reports false
// for what is not valid.
func (c *parquetRows) timeOf(column, row int) (ms int64, ok bool) {
	if len(c.values) <= column || c.values[column] == nil || c.values[column][row].IsNull() {
		return NoTime, true
	}
	l, v := &c.columns[column], c.values[column][row]
	if l.isNumber {
		ms = l.milliseconds(v)
		return ms, isWritable(ms)
	}
	ms, err := parseTime(l.name, view(v.ByteArray()))
	return ms, err == nil
}
