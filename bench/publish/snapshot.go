package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	json "github.com/goccy/go-json"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A row of the table of records.
type row struct {
	TokenID    string   `json:"token_id"`
	Version    uint32   `json:"version"`
	RecordType string   `json:"record_type"`
	Data       string   `json:"data"`
	Tags       []string `json:"tags,omitempty"`
}

// addTag changes the list's records and nothing else.
func addTag(r, _ row) []row {
	r.Tags = append(r.Tags, "bench")
	return []row{r}
}

// addFollow makes the list follow an account that another list follows, which alters
// ranks and with them the details of many lists. If it follows that account already,
// nothing changes.
func addFollow(r, other row) []row {
	return []row{r, {TokenID: r.TokenID, Version: r.Version, RecordType: r.RecordType, Data: other.Data}}
}

// every says that one list in so many changes.
const every = 100

// alter makes a snapshot that differs in the first record of each hundredth list.
func alter(from, to string, change func(first, other row) []row) error {
	from, err := filepath.Abs(from)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, file := range files {
		source, target := filepath.Join(from, file.Name()), filepath.Join(to, file.Name())
		if strings.HasPrefix(file.Name(), "records.") {
			err = alterRecords(source, to, change)
		} else {
			err = os.Symlink(source, target)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func alterRecords(from, to string, change func(first, other row) []row) (err error) {
	in, err := openTable(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	file, err := os.Create(filepath.Join(to, "records.ndjson"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	out := bufio.NewWriter(file)
	if err := alterRows(in, out, change); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return out.Flush()
}

func alterRows(in io.Reader, out io.Writer, change func(first, other row) []row) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	encoder := json.NewEncoder(out)
	lists := map[string]bool{}
	var other row // the first one of the list before
	for lines.Scan() {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return err
		}
		rows := []row{r}
		if !lists[r.TokenID] {
			lists[r.TokenID] = true
			if len(lists)%every == every/2 {
				rows = change(r, other)
			}
			other = r
		}
		for _, r := range rows {
			if err := encoder.Encode(r); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

// openTable reads a table, compressed or not.
func openTable(name string) (io.ReadCloser, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	var unpacked io.Reader = file
	switch filepath.Ext(name) {
	case ".gz":
		unpacked, err = gzip.NewReader(file)
	case ".zst":
		unpacked, err = zstd.NewReader(file, zstd.WithDecoderConcurrency(1))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{unpacked, file}, nil
}
