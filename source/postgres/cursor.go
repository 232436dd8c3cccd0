package postgres

import (
	"bytes"
	"context"
	"fmt"
)

// Limits of one fetch of a cursor, in bytes and rows.
const (
	batchBytes = 2 << 20
	batchRows  = 4096
	firstRows  = 64
)

// A cursor reads the rows of a query in batches, so that several queries can be read side by side.
type cursor struct {
	r    *Reader
	name string

	values [][]byte // values of the batch, row by row; nil for null
	width  int      // number of values per row
	next   int      // index into values
	rows   int      // rows to request in the next batch
	most   int      // row limit of a batch
	done   bool
}

// open declares a cursor. The name is free again after close.
func (r *Reader) open(ctx context.Context, name, sql string) (*cursor, error) {
	if err := r.exec(ctx, "DECLARE "+name+" NO SCROLL CURSOR FOR "+sql); err != nil {
		return nil, err
	}
	return &cursor{r: r, name: name, rows: firstRows, most: batchRows}, nil
}

// row returns the values of the next row, or nil at the end. They are valid until the next call.
func (c *cursor) row(ctx context.Context) ([][]byte, error) {
	if c.next == len(c.values) && !c.done {
		if err := c.fetch(ctx); err != nil {
			return nil, err
		}
	}
	if c.next == len(c.values) {
		return nil, nil
	}
	row := c.values[c.next : c.next+c.width]
	c.next += c.width
	return row, nil
}

func (c *cursor) fetch(ctx context.Context) error {
	c.values, c.next = c.values[:0], 0
	rows, size := 0, 0
	err := c.r.query(ctx, fmt.Sprintf("FETCH FORWARD %d FROM %s", c.rows, c.name), func(values [][]byte) error {
		rows++
		c.width = len(values)
		for _, v := range values {
			size += len(v)
			c.values = append(c.values, bytes.Clone(v))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if c.done = rows < c.rows; rows > 0 {
		c.rows = min(max(1, batchBytes*rows/max(1, size)), 2*c.rows, c.most)
	}
	return nil
}

func (c *cursor) close(ctx context.Context) error {
	return c.r.exec(ctx, "CLOSE "+c.name)
}

// each calls row with each row of a possibly long result.
func (r *Reader) each(ctx context.Context, sql string, row func(values [][]byte) error) error {
	return r.eachOf(ctx, sql, batchRows, row)
}

// eachOf returns each with at most most rows per batch, for rows that may be large.
func (r *Reader) eachOf(ctx context.Context, sql string, most int, row func(values [][]byte) error) error {
	c, err := r.open(ctx, "followpress_rows", sql)
	if err != nil {
		return err
	}
	c.most, c.rows = most, min(c.rows, most)
	for {
		values, err := c.row(ctx)
		if err != nil {
			return err
		}
		if values == nil {
			return c.close(ctx)
		}
		if err := row(values); err != nil {
			return err
		}
	}
}
