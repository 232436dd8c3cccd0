// Package altered makes snapshots in which a hundredth of the lists differ, to benchmark the cost
// of a change.
//
// The API may change in any release.
package altered

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

// A Row is a row of the table of records.
type Row struct {
	TokenID    string   `json:"token_id"`
	Version    uint32   `json:"version"`
	RecordType string   `json:"record_type"`
	Data       string   `json:"data"`
	Tags       []string `json:"tags,omitempty"`
}

// A Change replaces the first record of a list. other is the first record of another list.
type Change func(first, other Row) []Row

// AddTag changes the list's records and nothing else.
func AddTag(r, _ Row) []Row {
	r.Tags = append(r.Tags, "bench")
	return []Row{r}
}

// AddFollow makes the list follow an account that another list follows, which alters
// ranks and with them the details of many lists. If it follows that account already,
// nothing changes.
func AddFollow(r, other Row) []Row {
	return []Row{r, {TokenID: r.TokenID, Version: r.Version, RecordType: r.RecordType, Data: other.Data}}
}

// every is the number of lists per changed list.
const every = 100

// Snapshot writes a changed snapshot to a folder: it changes the first record of each hundredth
// list. nth, from 0 to 99, selects the list among a hundred.
func Snapshot(from, to string, nth int, change Change) error {
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
			err = alterRecords(source, to, nth, change)
		} else {
			err = os.Symlink(source, target)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func alterRecords(from, to string, nth int, change Change) (err error) {
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
	if err := alterRows(in, out, nth, change); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return out.Flush()
}

func alterRows(in io.Reader, out io.Writer, nth int, change Change) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	encoder := json.NewEncoder(out)
	lists := map[string]bool{}
	var other Row // first record of the previous list
	for lines.Scan() {
		var r Row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return err
		}
		rows := []Row{r}
		if !lists[r.TokenID] {
			lists[r.TokenID] = true
			if len(lists)%every == nth {
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
