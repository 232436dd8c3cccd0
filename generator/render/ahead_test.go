package render

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/rules"
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

// TestReadAhead: each row is read, except rows that are not about an account.
func TestReadAhead(t *testing.T) {
	r := farRecords(100, 3*aheadRows+1)
	r.Other = append(r.Other, "0x12")
	r.all.data[5] = OtherData
	for account := range uint32(100) {
		r.ranks.Count[rules.Followers][account], r.ends[account].name = 1000+account, 10_000+account
	}
	var want uint32
	for i := range r.Len() {
		if r.text(i) != "" {
			continue
		}
		want += uint32(r.address(i)[0]) + 11_000 + 2*r.all.data[i]
		shown := r.shown(i)
		text := shown.ENS[:shown.SearchLen]
		for at := 0; at < len(text); at += cacheLine {
			want += uint32(text[at])
		}
	}
	if r.ahead(0, r.Len()+aheadRows); r.read != want {
		t.Errorf("got the sum %d, want %d", r.read, want)
	}
}

// TestHoldersReadAhead: everything that the row of a holder shows is read.
func TestHoldersReadAhead(t *testing.T) {
	const n = 2*aheadRows + 7
	rows := farRecords(n, 3*n)
	g := rows.Graph
	for list := range n { // each has three records
		g.Tokens, g.Owners = append(g.Tokens, string('0'+byte(list%10))), append(g.Owners, uint32(n-1-list))
		g.Offsets = append(g.Offsets, uint64(3*list))
	}
	g.Offsets = append(g.Offsets, 3*n)
	for i := range 3 * n {
		g.Added = append(g.Added, int64(7*i+3))
	}
	rows.ranks.Shown[rules.Mutuals] = make([]uint32, n)
	for account := range rows.ends {
		rows.ends[account] = endsOf(g.profile(uint32(account)))
	}
	e := &efpRenderer{relations: &relations{Graph: g}, ranks: rows.ranks, profileEnds: rows.ends}
	var holders []holder
	var want uint32
	for i := range uint32(n) {
		h := holder{i, i % 3}
		holders = append(holders, h)
		owner := g.Owners[i]
		rows.ranks.Shown[rules.Mutuals][owner], rows.ranks.Count[rules.Followers][owner] = 100+i, 1000+i
		want += 1100 + 2*i + rows.ends[owner].name + uint32(g.Tokens[i][0]) + uint32(e.addedAt(h)) + uint32(g.Accounts[owner][0])
		text := g.profile(owner).ENS[:rows.ends[owner].header]
		for at := 0; at < len(text); at += cacheLine {
			want += uint32(text[at])
		}
	}
	var scratch Scratch
	if e.aheadOf(&scratch, holders); scratch.read != want {
		t.Errorf("got the sum %d, want %d", scratch.read, want)
	}
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
