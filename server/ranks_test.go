package server_test

import (
	"bytes"
	"io/fs"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/spf13/afero"

	"github.com/followpress/followpress/generator"
	"github.com/followpress/followpress/internal/testenv/servers"
	"github.com/followpress/followpress/internal/twin/naive"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/ranks"
)

// TestHeldRanksAreThoseOfTheTwin compares sites of successive snapshots with a naive computation.
// Each site keeps the ranks of an earlier one until new ranks are due.
func TestHeldRanksAreThoseOfTheTwin(t *testing.T) {
	t.Parallel()
	const every = 24 * time.Hour
	holding := 0
	for seed := uint64(servers.Rounds(3, 1)); seed <= uint64(servers.Rounds(3, 24)); seed++ { // in the third, several have many followers
		random := rand.New(rand.NewPCG(seed, 7))
		snapshot := naive.Random(seed)
		var last *naive.Graph
		var held *ranks.Held
		for round := range 5 {
			graph, err := naive.Load(snapshot, naive.Config{})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if last = graph.HoldRanks(last, every); last != graph {
				holding++
			}
			files, report, err := generator.ToMemory(t.Context(), afero.FromIOFS{FS: snapshot}, generator.Options{
				NoSync: true, Config: site.Config{API: site.APIEFP, RanksEvery: int64(every / time.Second)}, Ranks: held,
			})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if report.Ranks.Held != (last != graph) {
				t.Errorf("seed %d, round %d: got held=%t, want %t", seed, round, report.Ranks.Held, last != graph)
			}
			compareSpec(t, snapshot, files, held)
			handler := efpHandler(t, files)
			for _, r := range naive.Requests(rand.New(rand.NewPCG(seed, uint64(round))), graph, 600) {
				if strings.Contains(r.Path, "//") {
					continue
				}
				status, _, want := graph.Answer(r.Method, r.Path, r.RawQuery, r.Body)
				got := answerTo(handler, r.Method, r.URL(), r.Body)
				if got.Code != status || status == 200 && r.Method != "HEAD" && !bytes.Equal(got.Body.Bytes(), want) {
					t.Errorf("seed %d, round %d, %s: got %d and %.900s, want %d and %.900s", seed, round, r, got.Code, got.Body, status, want)
				}
			}
			handler.Close()
			body, err := afero.ReadFile(files, string(site.RanksKey))
			if err != nil {
				t.Fatal(err)
			}
			if held, err = ranks.Parse(body); err != nil {
				t.Fatal(err)
			}
			if snapshot, err = naive.Later(snapshot, random); err != nil {
				t.Fatal(err)
			}
		}
	}
	if holding == 0 {
		t.Error("got no round with held ranks, want some")
	}
}

// compareSpec compares the details and _ranks of the API spec with those of a site of the API efp.
func compareSpec(t *testing.T, snapshot fs.FS, efp afero.Fs, held *ranks.Held) {
	t.Helper()
	spec, _, err := generator.ToMemory(t.Context(), afero.FromIOFS{FS: snapshot}, generator.Options{
		NoSync: true, Config: site.Config{RanksEvery: 24 * 3600}, Ranks: held,
	})
	if err != nil {
		t.Fatal(err)
	}
	details, err := afero.Glob(spec, "/api/v1/lists/*/details")
	if err != nil || len(details) == 0 {
		t.Fatalf("got %d details, %v", len(details), err)
	}
	for _, name := range append(details, string(site.RanksKey)) {
		got, err := afero.ReadFile(spec, name)
		if err != nil {
			t.Fatal(err)
		}
		if want, err := afero.ReadFile(efp, name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: got %.500s, want %.500s (%v)", name, got, want, err)
		}
	}
}
