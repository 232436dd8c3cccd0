package provider

import (
	"context"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/followpress/followpress/fixtures/history"
	"github.com/followpress/followpress/internal/testenv/meanrpc"
)

// BenchmarkLogs reads a chain of the real network's size from a node in this process, which answers
// in 50 ms: 34 million blocks, 10,000 a request, eight requests at a time. Waiting alone takes 21 s.
// The processor's time is that of both sides.
func BenchmarkLogs(b *testing.B) {
	network := history.Real()
	blocks := func(yield func(history.Block) bool) {
		for block := range history.Usual(1, network) {
			if block.Chain != chain || !yield(block) {
				return
			}
		}
	}
	node := meanrpc.Start(b, chain, blocks)
	node.Set(meanrpc.Faults{MaxBlocks: 10_000, MaxResults: 10_000, Latency: 50 * time.Millisecond})
	base := history.Production()[0]
	addresses := []common.Address{*base.Registry, *base.Accounts, base.Records[0]}
	topics := []common.Hash{history.TopicTransfer, history.TopicLocation, history.TopicAccountMetadata, history.TopicListOp, history.TopicListMetadata}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	before := heap() // the node's blocks
	for b.Loop() {
		c, err := Dial(context.Background(), chain, []string{node.URL}, Options{})
		if err != nil {
			b.Fatal(err)
		}
		head, err := c.Head(context.Background(), 0)
		if err != nil {
			b.Fatal(err)
		}
		logs, largest := 0, uint64(0)
		used := processorTime(b)
		err = c.Logs(context.Background(), addresses, topics, base.First, head.Number, func(p Part) error {
			if logs/20_000 < (logs+len(p.Logs))/20_000 {
				largest = max(largest, heap())
			}
			logs += len(p.Logs)
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		cost := c.Cost()[0]
		least := (head.Number - base.First + 10_000) / 10_000
		b.ReportMetric(float64(logs), "logs")
		b.ReportMetric(float64(cost.Requests)/float64(least), "requests/least")
		b.ReportMetric(float64(cost.Received)/1e6, "MB-received")
		b.ReportMetric(float64(largest-before)/1e6, "MB-heap")
		b.ReportMetric((processorTime(b) - used).Seconds(), "cpu-s")
		c.Close()
	}
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
