package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/afero"
	"golang.org/x/sync/semaphore"

	"github.com/followpress/followpress/snapshot/internal/lines"
	"github.com/followpress/followpress/snapshot/internal/parquet"
	"github.com/followpress/followpress/snapshot/internal/rowjson"
)

// MetaName is the file of a snapshot that is not a table.
const MetaName = "meta.json"

// A part is a file of a table: the only one, or one of several numbered ones.
type part struct {
	name   string
	number string // decimal digits; "" for the only file of a table
	format lines.Format
}

// partOf parses a file name. ok is false if it is not the name of a table's file.
func partOf(name string) (t rowjson.Table, p part, ok bool) {
	stem, _, _ := strings.Cut(name, ".")
	at := slices.IndexFunc(lines.Formats, func(f lines.Format) bool { return name[len(stem):] == f.Ending })
	if at < 0 {
		return "", part{}, false
	}
	table, number, numbered := strings.Cut(stem, "-")
	if numbered && (number == "" || strings.Trim(number, "0123456789") != "") || !slices.Contains(rowjson.AllTables(), rowjson.Table(table)) {
		return "", part{}, false
	}
	return rowjson.Table(table), part{name, number, lines.Formats[at]}, true
}

// IsFileName reports whether a file with that name belongs to a snapshot.
func IsFileName(name string) bool {
	_, _, ok := partOf(name)
	return ok || name == MetaName
}

// partsOf returns the files of a table, in the order of their rows.
func partsOf(snapshot afero.Fs, t rowjson.Table) ([]part, error) {
	names, err := fileNames(snapshot)
	if err != nil {
		return nil, fmt.Errorf("open table %s: %w", t, err)
	}
	var single, numbered []part
	for _, name := range names {
		if table, p, ok := partOf(name); !ok || table != t {
			continue
		} else if p.number == "" {
			single = append(single, p)
		} else {
			numbered = append(numbered, p)
		}
	}
	switch {
	case len(single)+len(numbered) == 0:
		return nil, fmt.Errorf(
			"table %s %w: expected %[1]s.ndjson, %[1]s.ndjson.gz, %[1]s.ndjson.zst or %[1]s.parquet, or parts such as %[1]s-00001.ndjson.zst", t, ErrNoTable)
	case len(single) > 1, len(single) == 1 && len(numbered) > 0:
		slices.SortFunc(single, func(a, b part) int { return cmp.Compare(len(a.name), len(b.name)) })
		twice := append(single, numbered...)
		return nil, fmt.Errorf("table %s exists twice; keep one of %s, %s", t, twice[0].name, twice[1].name)
	case len(single) == 1:
		return single, nil
	}
	slices.SortFunc(numbered, func(a, b part) int {
		return cmp.Or(strings.Compare(a.number, b.number), strings.Compare(a.name, b.name))
	})
	if err := checkNumbers(t, numbered); err != nil {
		return nil, err
	}
	return numbered, nil
}

// Files returns the names of a table's files, in the order of their rows. The error wraps ErrNoTable if the table is
// missing.
func Files(snapshot afero.Fs, t rowjson.Table) (names []string, err error) {
	parts, err := partsOf(snapshot, t)
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names, err
}

// A selection is a table, or one of its files.
type selection struct {
	table rowjson.Table
	file  string // "" for all
}

// parts returns the selected files.
func (s selection) parts(snapshot afero.Fs) ([]part, error) {
	if s.file == "" {
		return partsOf(snapshot, s.table)
	}
	t, p, ok := partOf(s.file)
	if !ok || t != s.table {
		return nil, fmt.Errorf("%s is not a file of the table %s", s.file, s.table)
	}
	return []part{p}, nil
}

// checkNumbers returns an error unless the numbers of sorted parts are consecutive from 0 or 1, so that a lost part
// is noticed.
func checkNumbers(t rowjson.Table, parts []part) error {
	for i := 1; i < len(parts); i++ {
		if a, b := parts[i-1], parts[i]; len(a.number) != len(b.number) {
			return fmt.Errorf("table %s: the numbers of %s and %s differ in length; use leading zeros", t, a.name, b.name)
		}
	}
	var last uint64
	for i, p := range parts {
		number, err := strconv.ParseUint(p.number, 10, 32)
		switch {
		case err != nil:
			return fmt.Errorf("table %s: the number of %s is too large", t, p.name)
		case i == 0 && number > 1:
			return fmt.Errorf("table %s begins with %s: the parts before it are missing; they count from 0 or 1", t, p.name)
		case i > 0 && number == last:
			return fmt.Errorf("table %s has part %s twice; keep one of %s, %s", t, p.number, parts[i-1].name, p.name)
		case i > 0 && number > last+1:
			return fmt.Errorf("table %s: part %0*d is missing, between %s and %s", t, len(p.number), last+1, parts[i-1].name, p.name)
		}
		last = number
	}
	return nil
}

func fileNames(snapshot afero.Fs) ([]string, error) {
	if folder, ok := snapshot.(interface{ Names() []string }); ok {
		if names := folder.Names(); names != nil {
			return names, nil
		}
	}
	entries, err := afero.ReadDir(snapshot, ".")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, nil
}

// Bytes returns the stored size of a table's files.
func Bytes(snapshot afero.Fs, t rowjson.Table) (total int64, err error) {
	parts, err := partsOf(snapshot, t)
	if err != nil {
		return 0, err
	}
	for _, p := range parts {
		info, err := snapshot.Stat(p.name)
		if err != nil {
			return 0, err
		}
		total += info.Size()
	}
	return total, nil
}

// A rowSource yields rows of a file in blocks.
type rowSource = iter.Seq2[block, error]

// A block is a sequence of rows that one worker parses, or an announcement of memory.
type block struct {
	file  string
	first int           // number of the first line or row
	lines []byte        // whole lines
	rows  *parquet.Rows // Parquet rows, instead of lines
	pages int64         // announcement: bytes of pages that the source will hold in memory
}

type tableReader struct {
	sources []rowSource // in the order of rows
	open    []*parquet.File
}

// openTable opens a table. It reads times of records only if timed. Lines are read into memory that the consumer of a
// block may give back.
func openTable(snapshot afero.Fs, from selection, timed bool, memory lines.Recycler[byte]) (*tableReader, error) {
	parts, err := from.parts(snapshot)
	if err != nil {
		return nil, err
	}
	r := new(tableReader)
	for _, p := range parts {
		if p.format.Unpack != nil {
			r.sources = append(r.sources, p.lineBlocks(snapshot, memory))
			continue
		}
		file, err := parquet.Open(snapshot, p.name, parquet.Columns(from.table, timed))
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		r.open = append(r.open, file)
		for _, rows := range file.RowGroups() {
			r.sources = append(r.sources, func(yield func(block, error) bool) {
				for b, err := range rows {
					if !yield(block{file: p.name, first: b.First, rows: b.Rows, pages: b.Pages}, err) {
						return
					}
				}
			})
		}
	}
	return r, nil
}

func (r *tableReader) close() error {
	var errs []error
	for _, file := range r.open {
		errs = append(errs, file.Close())
	}
	return errors.Join(errs...)
}

func (p part) check(snapshot afero.Fs, t rowjson.Table) error {
	if p.format.Unpack == nil {
		file, err := parquet.Open(snapshot, p.name, parquet.Columns(t, false))
		if err != nil {
			return err
		}
		return file.Close()
	}
	file, err := lines.Open(snapshot, p.name, p.format.Unpack)
	if err != nil {
		return err
	}
	return file.Closed()
}

// lineBlocks opens a part other than Parquet and splits it into blocks.
func (p part) lineBlocks(snapshot afero.Fs, memory lines.Recycler[byte]) rowSource {
	return func(yield func(block, error) bool) {
		file, err := lines.Open(snapshot, p.name, p.format.Unpack)
		if err != nil {
			yield(block{}, err)
			return
		}
		for b, err := range file.Blocks(memory) {
			if !yield(block{file: p.name, first: b.First, lines: b.Lines}, err) {
				return
			}
		}
	}
}

const (
	mostAhead  = 8  // files unpacked concurrently
	queueAhead = 64 // blocks of a file waiting for their turn
	bytesAhead = 16 << 20
)

// sideBySide yields the blocks of the sources in order, and reads some sources ahead, each in a
// goroutine. Prefetched blocks wait in memory: files of up to 16 MiB are unpacked completely, of
// larger ones the start. Sources with large pages wait for each other.
func sideBySide(sources []rowSource, workers int) rowSource {
	if len(sources) == 1 {
		return func(yield func(block, error) bool) {
			for b, err := range sources[0] {
				if b.pages == 0 && !yield(b, err) {
					return
				}
			}
		}
	}
	return func(yield func(block, error) bool) {
		ctx, stop := context.WithCancel(context.Background())
		var readers sync.WaitGroup
		defer readers.Wait()
		defer stop()
		queues := make([]*queue, len(sources))
		pages := semaphore.NewWeighted(parquet.MaxGroupBytes)
		last := make(chan struct{}) // admitted of the last queue
		close(last)
		begin := func(i int) {
			if i >= len(sources) {
				return
			}
			q := &queue{blocks: make(chan readBlock, queueAhead), free: semaphore.NewWeighted(bytesAhead), turn: last, admitted: make(chan struct{})}
			queues[i], last = q, q.admitted
			readers.Go(func() { q.fill(ctx, sources[i], pages) })
		}
		ahead := min(max(workers, 2), mostAhead)
		for i := range ahead {
			begin(i)
		}
		for i := range sources {
			for read := range queues[i].blocks {
				queues[i].free.Release(read.size())
				if !yield(read.block, read.err) || read.err != nil {
					return
				}
			}
			pages.Release(queues[i].held)
			queues[i] = nil
			begin(i + ahead)
		}
	}
}

type readBlock struct {
	block
	err error
}

// A queue holds prefetched blocks of a source.
type queue struct {
	blocks chan readBlock
	free   *semaphore.Weighted // bytes that may still be read ahead
	// Queues get memory for pages in the order of sources, so the queue being emptied never waits for the memory of a
	// later one.
	turn     <-chan struct{} // closed after the previous queue got its memory
	admitted chan struct{}   // closed after this queue got its memory
	held     int64           // bytes of pages referenced by waiting blocks
}

// admit waits for memory for pages. It returns false if ctx ends before.
func (q *queue) admit(ctx context.Context, pages *semaphore.Weighted, bytes int64) bool {
	select {
	case <-q.turn:
	case <-ctx.Done():
		return false
	}
	bytes = min(bytes, parquet.MaxGroupBytes) // a larger file may exceed it
	if pages.Acquire(ctx, bytes) != nil {
		return false
	}
	q.held = bytes
	close(q.admitted)
	return true
}

// fill reads a source to its end, or until ctx ends.
func (q *queue) fill(ctx context.Context, source rowSource, pages *semaphore.Weighted) {
	defer close(q.blocks)
	admitted := false
	for b, err := range source {
		if !admitted && !q.admit(ctx, pages, b.pages) {
			return
		}
		if admitted = true; b.pages > 0 {
			continue
		}
		if q.free.Acquire(ctx, b.size()) != nil {
			return
		}
		select {
		case q.blocks <- readBlock{b, err}:
		case <-ctx.Done():
			return
		}
	}
	if !admitted {
		q.admit(ctx, pages, 0)
	}
}

// size returns the memory of a block, at most the read-ahead limit.
func (b block) size() int64 {
	n := cap(b.lines)
	if b.rows != nil {
		n = b.rows.Bytes
	}
	return int64(min(n, bytesAhead))
}

// ErrNoTable means that a snapshot does not have a table.
var ErrNoTable = errors.New("is not there")

// Check checks that the files of a table can be opened. The error wraps ErrNoTable if the table is missing.
func Check(snapshot afero.Fs, t rowjson.Table) error {
	parts, err := partsOf(snapshot, t)
	if err != nil {
		return err
	}
	for _, p := range parts {
		if err := p.check(snapshot, t); err != nil {
			return err
		}
	}
	return nil
}
