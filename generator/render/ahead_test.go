package render

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/followpress/followpress/site"
)

// farRecords returns rows about accounts scattered in memory.
func farRecords(accounts, rows int) *graphRecords {
	g := NewGraph("2026-01-01T00:00:00Z")
	for i := range accounts {
		var address site.Address
		address[0] = 1
		binary.BigEndian.PutUint32(address[1:], uint32(i))
		g.Profiles.Set(g.Account(address), EncodeProfile(site.Profile{Name: "a name of some length", Avatar: "https://example.org/a/picture/of/whom/it/is/about.png"}))
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
	return &graphRecords{Graph: g, ranks: ranks, ends: make([]profileEnds, accounts), all: g.Records}
}

// withoutAhead does not read rows ahead.
type withoutAhead struct{ *graphRecords }

func (withoutAhead) ahead(_, _ int) {}

// BenchmarkReadAhead renders search entries of accounts outside the processor's nearer caches.
func BenchmarkReadAhead(b *testing.B) {
	const rows = 1 << 17
	r := farRecords(1<<19, rows)
	follows := make([]uint32, site.SearchShardSize)
	buffer := make([]byte, 0, 1<<20)
	for _, kind := range []struct {
		name string
		all  records
	}{{"without", withoutAhead{r}}, {"with", r}} {
		b.Run(kind.name, func(b *testing.B) {
			first := 0
			for b.Loop() {
				for i := range follows {
					follows[i] = uint32(first + i)
				}
				entriesSize(kind.all, follows)
				buffer = appendEntries(buffer[:0], kind.all, follows)
				first = (first + len(follows)) % (rows - len(follows))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(follows)), "ns/row")
		})
	}
}
