package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	json "github.com/goccy/go-json"
)

// A sample has the parts of the graph that requests of the benchmark need.
type sample struct {
	addresses []string // addresses of all accounts, in snapshot order
	names     map[string]string
	primary   map[string]string // list by address
	account   map[string]string // address by list
	longest   []string          // lists, by descending number of records
	follows   map[string][]string
}

// readSample reads the tables of a snapshot.
func readSample(snapshot string) (*sample, error) {
	s := &sample{names: map[string]string{}, primary: map[string]string{}, account: map[string]string{}, follows: map[string][]string{}}
	err := eachRow(snapshot, "lists", func(row struct {
		TokenID string `json:"token_id"`
		Owner   string `json:"owner"`
		User    string `json:"user"`
	}) {
		s.account[row.TokenID] = strings.ToLower(cmp.Or(row.User, row.Owner))
	})
	if err != nil {
		return nil, err
	}
	err = eachRow(snapshot, "accounts", func(row struct {
		Address string `json:"address"`
		Primary string `json:"primary_list"`
		ENS     struct {
			Name string `json:"name"`
		} `json:"ens"`
	}) {
		address := strings.ToLower(row.Address)
		s.addresses = append(s.addresses, address)
		s.names[address] = row.ENS.Name
		if s.account[row.Primary] == address {
			s.primary[address] = row.Primary
		}
	})
	if err != nil {
		return nil, err
	}
	err = eachRow(snapshot, "records", func(row struct {
		TokenID string `json:"token_id"`
		Data    string `json:"data"`
	}) {
		s.follows[row.TokenID] = append(s.follows[row.TokenID], strings.ToLower(row.Data))
	})
	s.longest = slices.SortedFunc(maps.Keys(s.follows), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(s.follows[b]), len(s.follows[a])), strings.Compare(a, b))
	})
	return s, err
}

func eachRow[T any](snapshot, table string, use func(T)) error {
	file, rows, err := openTable(filepath.Join(snapshot, table+".ndjson"))
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(rows)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var row T
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			return err
		}
		use(row)
	}
	return lines.Err()
}

func openTable(path string) (*os.File, io.Reader, error) {
	if file, err := os.Open(path); err == nil {
		return file, file, nil
	}
	file, err := os.Open(path + ".gz")
	if err != nil {
		return nil, nil, err
	}
	rows, err := gzip.NewReader(file)
	return file, rows, err
}
