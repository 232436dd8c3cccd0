// Command fallback measures cmd/fallback over a bucket, compared with nginx where
// possible, and prints a table. `make bench-fallback` builds what it needs.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/followpress/followpress/bench/measure"
	"github.com/followpress/followpress/bench/rig"
	"github.com/followpress/followpress/internal/testenv/servers"
)

func main() {
	b := &bench{Bench: rig.Bench{Objects: measure.Objects}}
	b.Main(b.generate, b.run)
}

// A bench holds the figures of a run.
type bench struct {
	rig.Bench
	server  *rig.S3
	lists   []string
	largest string // the list with the most follows
}

const (
	bucket = "site"
	some   = 1000 // number of warm lists
)

func (b *bench) run(ctx context.Context) error {
	_, err := rig.ServeS3(ctx, servers.MinIO, b.Tools, b.Path("minio"), func(s *rig.S3) error {
		b.server = s
		for _, part := range []func(context.Context) error{b.publish, b.start, b.details, b.bare, b.term, b.page, b.random} {
			if err := part(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// generate generates the site, unless the work folder has the site of an earlier run.
func (b *bench) generate(ctx context.Context) error {
	_, err := os.Stat(b.Path("site"))
	if err != nil {
		_, err = b.Generate(ctx, b.Snapshot, "site")
	}
	if err != nil {
		return err
	}
	if b.lists, err = rig.Lists(b.Path("site")); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 1))
	random.Shuffle(len(b.lists), func(i, j int) { b.lists[i], b.lists[j] = b.lists[j], b.lists[i] })
	b.largest, _, err = rig.LargestList(b.Path("site"))
	return err
}

func (b *bench) publish(ctx context.Context) error {
	there, err := b.server.Client.BucketExists(ctx, bucket)
	if err == nil && !there {
		err = b.server.MakeBucket(ctx, bucket)
	}
	if err != nil {
		return err
	}
	usage, err := measure.Run(b.server.Command(ctx, b.Built("followpress"), "publish", "--site", b.Path("site"), "--dest", "s3://"+bucket))
	fmt.Fprintf(os.Stderr, "published in %.1f s\n", usage.Seconds)
	return err
}

// A fallback is a running fallback over the bucket.
type fallback struct {
	*rig.Process
	metrics string // address of its metrics
}

func (b *bench) fallback(ctx context.Context) (*fallback, error) {
	metrics, err := rig.FreeAddr()
	if err != nil {
		return nil, err
	}
	process, err := rig.Start(ctx, func(addr string) (*exec.Cmd, error) {
		return b.server.Command(ctx, b.Built("fallback"), "--site", "s3://"+bucket, "--addr", addr, "--metrics-addr", metrics), nil
	})
	if err != nil {
		return nil, err
	}
	return &fallback{process, metrics}, waitUntilReady(process.Addr)
}

func waitUntilReady(addr string) error {
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, err := rig.Get("http://" + addr + "/readyz"); err == nil {
			return nil
		}
		if time.Since(begun) > time.Minute {
			return errors.New("the fallback is not ready in time")
		}
	}
}

// start measures the size of the binary, and the time until it is ready.
func (b *bench) start(ctx context.Context) error {
	info, err := os.Stat(b.Built("fallback"))
	if err != nil {
		return err
	}
	b.Figure("the binary", "MiB", []float64{float64(info.Size()) / (1 << 20)}, "≤ 20 MiB")
	// A short time needs many repetitions.
	took, err := measure.Repeat(5*b.Rounds, func(int) (float64, error) {
		addr, err := rig.FreeAddr()
		if err != nil {
			return 0, err
		}
		begun := time.Now()
		c := b.server.Command(ctx, b.Built("fallback"), "--site", "s3://"+bucket, "--addr", addr)
		if err := c.Start(); err != nil {
			return 0, err
		}
		err = waitUntilReady(addr)
		ready := time.Since(begun)
		_ = c.Process.Kill() // it is no longer needed
		_ = c.Wait()
		return 1000 * ready.Seconds(), err
	})
	if err != nil {
		return err
	}
	b.Figure("ready after its start", "ms", took, "≤ 100 ms")
	return nil
}

// details compares warm details with nginx serving the files.
func (b *bench) details(ctx context.Context) error {
	nginx, err := b.Nginx(ctx)
	if err != nil {
		return err
	}
	defer nginx.Stop()
	ours, err := b.fallback(ctx)
	if err != nil {
		return err
	}
	defer ours.Stop()
	return b.CompareRates(ctx, fmt.Sprintf("details of %d lists, warm, 50 connections / nginx serving the files", some),
		rig.Details(b.lists[:min(some, len(b.lists))]), ours.Addr, nginx.Addr, "≥ 0.5")
}

// term searches the largest list. Every second term can match only its last entry, so the search
// scans the whole list.
func (b *bench) term(ctx context.Context) error {
	ours, err := b.fallback(ctx)
	if err != nil {
		return err
	}
	defer ours.Stop()
	load := rig.Load{Rate: 2000, Time: 10 * time.Second}
	for i := range 1000 {
		term := fmt.Sprintf("zz%d", i)
		if i%2 == 0 {
			term = fmt.Sprintf("%x", 256+i)
		}
		load.Paths = append(load.Paths, "/api/v1/lists/"+b.largest+"/searchFollowing?term="+term)
	}
	return b.Latency(ctx, "term search over the largest list, warm, at 2,000/s", ours.Addr, load, "≤ 5 ms")
}

var storeReads = regexp.MustCompile(`(?m)^followpress_store_seconds_count\{operation="read",result="(?:done|absent)"\} (\d+)$`)

// page counts the store requests for page 50 of the largest list in a fallback that has
// just started.
func (b *bench) page(ctx context.Context) error {
	ours, err := b.fallback(ctx)
	if err != nil {
		return err
	}
	defer ours.Stop()
	before, err := ours.storeReads()
	if err != nil {
		return err
	}
	if _, err := rig.Get(fmt.Sprintf("http://%s/api/v1/lists/%s/searchFollowing?offset=490", ours.Addr, b.largest)); err != nil {
		return err
	}
	after, err := ours.storeReads()
	if err != nil {
		return err
	}
	b.Figure("store requests of page 50 of the largest list, cold", "", []float64{float64(after - before)}, "≤ 3")
	return nil
}

func (f *fallback) storeReads() (n int, err error) {
	body, err := rig.Get("http://" + f.metrics + "/metrics")
	if err != nil {
		return 0, err
	}
	for _, match := range storeReads.FindAllSubmatch(body, -1) {
		count, _ := strconv.Atoi(string(match[1])) // the pattern has digits
		n += count
	}
	return n, nil
}

// random requests random lists, more than the cache can hold.
func (b *bench) random(ctx context.Context) error {
	ours, err := b.fallback(ctx)
	if err != nil {
		return err
	}
	defer ours.Stop()
	load := rig.Details(b.lists)
	load.Rate, load.Time = 5000, time.Minute
	result, err := load.Run(ctx, b.Work, ours.Addr)
	if err != nil {
		return err
	}
	b.Figure("errors at 5,000/s for random lists", "", []float64{float64(result.Errors)}, "≤ 0",
		fmt.Sprintf("%d requests of %d lists", result.Requests, len(b.lists)), "p99 "+measure.Text("ms", result.P99), "reached "+measure.Text("/s", result.Rate))
	memory, err := ours.PeakMemory()
	if err != nil {
		return err
	}
	b.Figure("peak memory under that load, default cache", "MiB", []float64{memory}, "≤ 64 MiB")
	return nil
}
