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

// inLists writes records in the order of lists, as a replay of the chains does, although a database is read in that of
// places. So who reads a database and who reads the chains make the same table. Until all are there, the records are in a
// file without a name. It must be closed.
type inLists struct {
	*snapshot.Writer
	file  *os.File
	out   *bufio.Writer
	size  int64
	slots []slotRows
}

// slotRows are the records of the lists of a slot.
type slotRows struct {
	list     int   // the first one's number, in the order of token ids
	from, to int64 // in the file
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

// begin says of which slot the next records are, by its first list.
func (l *inLists) begin(list int) { l.slots = append(l.slots, slotRows{list, l.size, l.size}) }

// WriteRecord keeps a record.
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
