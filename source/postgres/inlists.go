package postgres

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"slices"

	json "github.com/goccy/go-json"

	"github.com/followpress/followpress/snapshot"
)

// inLists writes records in list order, although a database is read by place. So a database and the
// chains give the same table. Until all records are read, they are in an unlinked file. The caller
// must close it.
type inLists struct {
	*snapshot.Writer
	file  *os.File
	out   *bufio.Writer
	size  int64
	slots []slotRows
}

// slotRows locates the records of a slot in the file.
type slotRows struct {
	list     int   // index of the slot's first list, by token ID
	from, to int64 // offsets in the file
}

func newInLists(w *snapshot.Writer) (*inLists, error) {
	file, err := os.CreateTemp("", "followpress-records-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &inLists{Writer: w, file: file, out: bufio.NewWriterSize(file, 256<<10)}, nil
}

// begin starts a slot, named by its first list, for the next records.
func (l *inLists) begin(list int) { l.slots = append(l.slots, slotRows{list, l.size, l.size}) }

// WriteRecord stores a record.
func (l *inLists) WriteRecord(r snapshot.Record) error {
	line, err := json.MarshalWithOption(&r, json.DisableHTMLEscape())
	if err != nil {
		return err
	}
	n, err := l.out.Write(line)
	l.size += int64(n)
	l.slots[len(l.slots)-1].to = l.size
	return err
}

// write writes all records.
func (l *inLists) write(ctx context.Context) error {
	if err := l.out.Flush(); err != nil {
		return err
	}
	slices.SortFunc(l.slots, func(a, b slotRows) int { return cmp.Compare(a.list, b.list) })
	in := bufio.NewReaderSize(nil, 64<<10)
	for _, s := range l.slots {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		in.Reset(io.NewSectionReader(l.file, s.from, s.to-s.from))
		for rows := json.NewDecoder(in); rows.More(); {
			var r snapshot.Record
			if err := rows.Decode(&r); err != nil {
				return err
			}
			if err := l.Writer.WriteRecord(r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *inLists) close() error { return l.file.Close() }
