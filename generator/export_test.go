package generator

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/generator/internal/load"
	"github.com/followpress/followpress/generator/internal/output"
	"github.com/followpress/followpress/generator/internal/rank"
	"github.com/followpress/followpress/generator/internal/whole"
	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/internal/twin/answers"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// Tests are in package generator_test. This file exports internals to them.

// SetPatience changes how long a canceled run cleans up.
func SetPatience(d time.Duration) (reset func()) {
	was := cleanUpTime
	cleanUpTime = d
	return func() { cleanUpTime = was }
}

// ParseRecord parses a row of the table records as a run does, with its time for the API efp.
func ParseRecord(line []byte, timed bool) (tokenID string, r answers.Record, added int64, err error) {
	in, err := snapshot.Reader[snapshot.Record]{Untimed: !timed}.Parse(line)
	if err != nil {
		return "", answers.Record{}, 0, err
	}
	return in.TokenID, answers.Record{
		Version: in.Version, RecordType: in.Type, Data: "0x" + hex.EncodeToString(in.Data), Tags: in.Tags,
	}, render.ShownTime(in.Added), nil
}

// A Graph is a snapshot in memory.
type Graph struct{ *graph.Graph }

// Load reads a snapshot into a graph.
func Load(ctx context.Context, from afero.Fs, workers int) (Graph, error) {
	g, err := load.Graph(ctx, load.Options{Snapshot: from, Workers: workers, Config: site.Config{MaxProfileText: 64 << 10}, Report: summary.New(""), Progress: noProgress{}})
	return Graph{g}, err
}

// LoadEFP reads a snapshot into a graph for the API efp.
func LoadEFP(ctx context.Context, from afero.Fs, workers int) (Graph, error) {
	g, err := load.Graph(ctx, load.Options{Snapshot: from, Workers: workers, Config: site.Config{MaxProfileText: 64 << 10, API: site.APIEFP}, Report: summary.New(""), Progress: noProgress{}})
	return Graph{g}, err
}

// Reader reads single objects, as a new Site does.
func (g Graph) Reader(ctx context.Context, config site.Config) (*Site, error) {
	config, err := config.WithDefaults()
	if err != nil {
		return nil, err
	}
	r, err := rank.All(ctx, g.Graph, 1, config)
	if err != nil {
		return nil, err
	}
	s := &Site{}
	s.spare.New = func() any { return &reading{} }
	s.renderer, err = whole.NewSite(ctx, g.Graph, r, config, 1)
	return s, err
}

// WriteTar renders all objects of the site into a tar file.
func (g Graph) WriteTar(ctx context.Context, workers int, w io.Writer) error {
	r, err := rank.All(ctx, g.Graph, 1, site.Config{LeaderboardMax: 100})
	if err != nil {
		return err
	}
	config, err := site.Config{}.WithDefaults()
	if err != nil {
		return err
	}
	s, err := whole.NewSite(ctx, g.Graph, r, config, workers)
	if err != nil {
		return err
	}
	out, end, err := tarTo(w)
	if err != nil {
		return err
	}
	rendering := output.Rendering{Of: s, Workers: workers, Progress: noProgress{}}
	return errors.Join(rendering.Objects(ctx, out), end())
}

// tarTo returns a tar file that is written to w.
func tarTo(w io.Writer) (out output.Output, end func() error, err error) {
	return output.TarAt(writerFs{afero.NewMemMapFs(), w}, "site.tar").Create("site.tar", nil, "2023-11-14T22:13:20Z")
}

// A writerFs is a file system whose files are written to w.
type writerFs struct {
	afero.Fs
	w io.Writer
}

func (f writerFs) OpenFile(name string, flag int, perm os.FileMode) (afero.File, error) {
	file, err := f.Fs.OpenFile(name, flag, perm)
	return writerFile{file, f.w}, err
}

type writerFile struct {
	afero.File
	w io.Writer
}

func (f writerFile) Write(b []byte) (int, error) { return f.w.Write(b) }
