package load

import (
	"context"
	"slices"
	"sync"

	"github.com/followpress/followpress/generator/internal/graph"
	"github.com/followpress/followpress/generator/summary"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/snapshot"
)

// readRecords numbers the accounts that only records name, in the order of the snapshot. Workers
// number everything else: lists and known accounts do not change anymore.
func (l *loader) readRecords(ctx context.Context) error {
	g := l.graph
	l.Progress.Stage("records", 0)
	var late []site.Address // accounts that only records name
	numbers := graph.NewNumbering(&late)
	known := len(g.Accounts) // accounts of rows and of lists
	caches := sync.Pool{New: func() any { return &rowCache{forms: graph.NewFormCache(&g.Forms)} }}
	convert := func(r *snapshot.Record) (in incomingRecord, err error) {
		cache := caches.Get().(*rowCache)
		defer caches.Put(cache)
		if in.list = cache.list(&g.Lists, r.TokenID); in.list == graph.None {
			return in, nil
		}
		in.form, in.added, in.data = cache.forms.Number(r.Version, r.Type, r.Tags), r.Added, graph.None
		var ok bool
		if in.address, ok = r.Address(); !ok {
			n := g.OtherText(r.Data)
			in.data, err = n|graph.OtherData, checkSize("texts", int(n)+1)
		}
		return in, err
	}
	var packs sync.Pool
	rows := readerOf[incomingRecord](l.reader, snapshot.TableRecords, nil)
	rows.Complete = func(rows []snapshotRow) (take func() error) {
		numberAddresses(&g.Numbers, rows)
		p, ok := packs.Get().(*packedRecords)
		if !ok {
			p = new(packedRecords)
		}
		p.pack(rows, l.timed())
		return func() error {
			for _, r := range p.late {
				n, _ := numbers.Add(r.address)
				p.SetData(r.at, uint32(known)+n)
			}
			l.incoming.add(p, l.timed())
			if p.unknown > 0 {
				l.Report.Table(snapshot.TableRecords).WithoutEffect[summary.UnknownList] += p.unknown
			}
			packs.Put(p)
			return checkSize("accounts", known+len(late))
		}
	}
	err := l.countBytes(snapshot.TableRecords, rows.Records(ctx, convert))
	if err != nil {
		return err
	}
	g.Accounts = slices.Grow(g.Accounts, len(late))
	for _, address := range late {
		g.Account(address)
	}
	g.Offsets, g.Records, g.Added = l.incoming.group(len(g.Tokens), l.timed(), l.Workers)
	g.Records.Use(g.ByNumber)
	g.FillAccounts()
	g.Known = known
	if l.Config.EFP() {
		g.Addresses = g.CountAddresses()
	}
	return l.mergeRepeated(ctx)
}

// numberAddresses numbers the known addresses of records, several at a time.
func numberAddresses(known *graph.Numbering[site.Address], rows []snapshotRow) {
	var addresses [graph.AtOnce]site.Address
	var numbers [graph.AtOnce]uint32
	for len(rows) > 0 {
		some := rows[:min(graph.AtOnce, len(rows))]
		for i := range some {
			addresses[i] = some[i].Value.address
		}
		known.FindAll(addresses[:len(some)], numbers[:len(some)])
		for i := range some {
			if in := &some[i].Value; in.data == graph.None && in.list != graph.None {
				in.data = numbers[i]
			}
		}
		rows = rows[len(some):]
	}
}

// A rowCache caches lookups of a worker: successive records mostly belong to one list.
type rowCache struct {
	forms  graph.FormCache
	token  []byte
	number uint32 // number of the list; None for an unknown one
}

// list returns the number of a list, None for an unknown one.
func (c *rowCache) list(lists *graph.Numbering[string], token string) uint32 {
	if string(c.token) != token {
		c.token = append(c.token[:0], token...)
		var ok bool
		if c.number, ok = lists.Find(token); !ok {
			c.number = graph.None
		}
	}
	return c.number
}
