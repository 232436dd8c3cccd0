package generator

import (
	"context"
	"io"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/site"
)

// Tests are in package generator_test. This file exports the internals that some of them need.

// SetPatience changes how long a cancelled run cleans up.
func SetPatience(d time.Duration) (reset func()) {
	was := cleanUpTime
	cleanUpTime = d
	return func() { cleanUpTime = was }
}

// ParseRecord parses a row of the table records as a run does.
func ParseRecord(line []byte) (tokenID string, r site.Record, err error) {
	row, err := parseRecordRow(line)
	if err != nil {
		return "", site.Record{}, err
	}
	if row.isAddress {
		row.data = row.address.String()
	}
	return row.tokenID, site.Record{Version: row.version, RecordType: row.recordType, Data: row.data, Tags: row.tags}, nil
}

// A Graph is a snapshot in memory.
type Graph struct{ *graph }

// Load reads a snapshot into a graph.
func Load(ctx context.Context, snapshot afero.Fs, workers int) (Graph, error) {
	g, err := load(ctx, &reader{snapshot: snapshot, workers: workers, maxText: 64 << 10, report: newReport(""), progress: noProgress{}})
	return Graph{g}, err
}

// Rank ranks all accounts.
func (g Graph) Rank(ctx context.Context, workers int) error {
	_, err := rank(ctx, g.graph, workers, 100)
	return err
}

// LongestList is the list with the most records.
func (g Graph) LongestList() (list uint32) {
	for other := range g.tokens {
		if len(g.recordsOf(uint32(other))) > len(g.recordsOf(list)) {
			list = uint32(other)
		}
	}
	return list
}

// ListRenderer renders all objects of one list and gives their size.
func (g Graph) ListRenderer(ctx context.Context, list uint32) (render func() int, err error) {
	r, err := rank(ctx, g.graph, 1, 100)
	if err != nil {
		return nil, err
	}
	config, err := site.Config{}.WithDefaults()
	if err != nil {
		return nil, err
	}
	s := newRenderer(g.graph, r, config)
	var t scratch
	var body []byte
	return func() (size int) {
		s.renderList(int(list), &t, func(_ int, render func([]byte) []byte, _ ...site.Key) {
			body = render(body[:0])
			size += len(body)
		})
		return size
	}, nil
}

// WriteTar renders all objects of the site into a tar file.
func (g Graph) WriteTar(ctx context.Context, workers int, w io.Writer) error {
	r, err := rank(ctx, g.graph, 1, 100)
	if err != nil {
		return err
	}
	config, err := site.Config{}.WithDefaults()
	if err != nil {
		return err
	}
	_, err = newRenderer(g.graph, r, config).render(ctx, workers, &tarOutput{file: w}, noProgress{})
	return err
}
