package graph

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/followpress/followpress/generator/render"
	"github.com/followpress/followpress/site"
)

// farRecords returns rows about accounts scattered in memory.
func farRecords(accounts, rows int) *shownRecords {
	g := NewGraph("2026-01-01T00:00:00Z")
	for i := range accounts {
		var address site.Address
		address[0] = 1
		binary.BigEndian.PutUint32(address[1:], uint32(i))
		g.Profiles.Set(g.Account(address), render.EncodeProfile(site.Profile{Name: "a name of some length", Avatar: "https://example.org/a/picture/of/whom/it/is/about.png"}))
	}
	ranks := &Ranks{}
	for m := range ranks.Count {
		ranks.Count[m] = make([]uint32, accounts)
	}
	random := rand.New(rand.NewPCG(1, 2))
	g.Records = NewRecords(rows)
	form := g.Number(1, "address", nil)
	for range rows {
		g.Records.Append(uint32(random.IntN(accounts)), form)
	}
	g.Records.Use(g.ByNumber)
	return &shownRecords{Graph: g, ranks: ranks, ends: make([]render.TextEnds, accounts), All: g.Records}
}

// withoutAhead does not read rows ahead.
type withoutAhead struct{ *shownRecords }

func (withoutAhead) Ahead(_, _ int) {}

// BenchmarkReadAhead renders search entries of accounts outside the processor's nearer caches.
func BenchmarkReadAhead(b *testing.B) {
	const rows = 1 << 17
	r := farRecords(1<<19, rows)
	buffer := make([]byte, 0, 1<<20)
	emit := func(_ int, render func([]byte) []byte, _ ...site.Key) { buffer = render(buffer[:0]) }
	var t render.Scratch
	for _, kind := range []struct {
		name string
		of   render.View
	}{{"without", render.View{Records: withoutAhead{r}}}, {"with", render.View{Records: r}}} {
		b.Run(kind.name, func(b *testing.B) {
			first := 0
			for b.Loop() {
				r.All = r.Records.Part(uint64(first), uint64(first+site.SearchShardSize))
				render.EmitShard(&t, &kind.of, rows, 0, emit)
				first = (first + site.SearchShardSize) % (rows - site.SearchShardSize)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*site.SearchShardSize), "ns/row")
		})
	}
}
