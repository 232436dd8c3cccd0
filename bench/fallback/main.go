// Command fallback measures cmd/fallback over a bucket, compared with nginx where
// possible, and prints a table. `make bench-fallback` builds what it needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"github.com/followpress/followpress/bench/internal/measure"
	"github.com/followpress/followpress/bench/internal/rig"
	"github.com/followpress/followpress/fixtures/servers"
)

func main() {
	b := &bench{}
	flag.StringVar(&b.snapshot, "snapshot", "", "folder of the snapshot; none makes a synthetic one of the size of Epinions")
	flag.StringVar(&b.bin, "bin", "", "folder with the built followpress and fallback")
	flag.StringVar(&b.tools, "tools", ".tools", "folder with minio")
	flag.StringVar(&b.work, "work", "", "folder to work in, which is left as it is then, and whose site and bucket are used again; none makes a temporary one")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process
	if err := b.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// A bench keeps the figures of a run.
type bench struct {
	snapshot, bin, tools, work string
	table                      measure.Table
	server                     *rig.S3
	lists                      []string
	largest                    string // the list with the most follows
	follows                    int
}

const (
	bucket = "site"
	rounds = 3
	some   = 1000 // lists that are warm
)

func (b *bench) run(ctx context.Context) (err error) {
	if b.work == "" {
		if b.work, err = os.MkdirTemp("", "followpress-bench-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(b.work)) }()
	}
	if err := b.generate(ctx); err != nil {
		return err
	}
	_, err = rig.ServeS3(ctx, servers.MinIO, b.tools, b.path("minio"), func(s *rig.S3) error {
		b.server = s
		if err := b.publish(ctx); err != nil {
			return err
		}
		for _, part := range []func(context.Context) error{b.start, b.details, b.term, b.page, b.random} {
			if err := part(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	fmt.Printf("\n%s", &b.table)
	return err
}

func (b *bench) path(name string) string { return filepath.Join(b.work, name) }

func (b *bench) generate(ctx context.Context) (err error) {
	if _, err := os.Stat(b.path("site")); err != nil {
		if b.snapshot == "" {
			b.snapshot = b.path("snapshot")
			if err := measure.Snapshot(ctx, b.snapshot, measure.Objects); err != nil {
				return err
			}
		}
		generate := exec.CommandContext(ctx, filepath.Join(b.bin, "followpress"), "generate", "--snapshot", b.snapshot, "--out", b.path("site"))
		if _, err := measure.Run(generate); err != nil {
			return err
		}
	}
	if b.lists, err = rig.Lists(b.path("site")); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 1))
	random.Shuffle(len(b.lists), func(i, j int) { b.lists[i], b.lists[j] = b.lists[j], b.lists[i] })
	b.largest, b.follows, err = rig.LargestList(b.path("site"))
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
	usage, err := measure.Run(b.server.Command(ctx, filepath.Join(b.bin, "followpress"), "publish", "--site", b.path("site"), "--dest", "s3://"+bucket))
	fmt.Fprintf(os.Stderr, "published in %.1f s\n", usage.Seconds)
	return err
}

// A fallback is a running fallback over the bucket.
type fallback struct {
	*rig.Process
	metrics string // address of its metrics
}

func (b *bench) fallback(ctx context.Context) (*fallback, error) {
	addr, err := rig.FreeAddr()
	if err != nil {
		return nil, err
	}
	metrics, err := rig.FreeAddr()
	if err != nil {
		return nil, err
	}
	c := b.server.Command(ctx, filepath.Join(b.bin, "fallback"), "--site", "s3://"+bucket, "--addr", addr, "--metrics-addr", metrics)
	process, err := rig.Start(ctx, addr, c)
	if err != nil {
		return nil, err
	}
	return &fallback{process, metrics}, waitUntilReady(addr)
}

func waitUntilReady(addr string) error {
	for begun := time.Now(); rig.Get("http://"+addr+"/readyz") != nil; time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			return errors.New("the fallback does not get ready")
		}
	}
	return nil
}

// start measures the size of the binary, and how soon it is ready.
func (b *bench) start(ctx context.Context) error {
	info, err := os.Stat(filepath.Join(b.bin, "fallback"))
	if err != nil {
		return err
	}
	b.table.Row("the binary", fmt.Sprintf("%.1f MiB", float64(info.Size())/(1<<20)), "", 0, "≤ 20 MiB")
	best := time.Hour
	for range 5 {
		addr, err := rig.FreeAddr()
		if err != nil {
			return err
		}
		begun := time.Now()
		c := b.server.Command(ctx, filepath.Join(b.bin, "fallback"), "--site", "s3://"+bucket, "--addr", addr)
		if err := c.Start(); err != nil {
			return err
		}
		if err := waitUntilReady(addr); err != nil {
			return err
		}
		best = min(best, time.Since(begun))
		_ = c.Process.Kill() // it has done its part
		_ = c.Wait()
	}
	b.table.Row("ready after its start, best of 5", fmt.Sprintf("%d ms", best.Milliseconds()), "", 0, "≤ 100 ms")
	return nil
}

// details compares warm details with nginx serving the files.
func (b *bench) details(ctx context.Context) error {
	nginx, err := rig.Nginx(ctx, b.work, b.path("site"))
	if err != nil {
		return err
	}
	defer nginx.Stop()
	ours, err := b.fallback(ctx)
	if err != nil {
		return err
	}
	defer ours.Stop()
	load := rig.Load{Paths: detailsOf(b.lists[:some]), Time: 5 * time.Second}
	for _, addr := range []string{nginx.Addr, ours.Addr} {
		if _, err := load.Most(ctx, b.work, addr); err != nil {
			return err
		}
	}
	p, err := measure.Middle(rounds, func(int) (p measure.Pair, err error) {
		if p.Other, err = load.Most(ctx, b.work, nginx.Addr); err != nil {
			return p, err
		}
		p.Ours, err = load.Most(ctx, b.work, ours.Addr)
		return p, err
	})
	b.table.Row(fmt.Sprintf("details of %d lists, warm, 50 connections / nginx serving the files", some),
		fmt.Sprintf("%.0f/s", p.Ours), fmt.Sprintf("%.0f/s", p.Other), p.Ratio(), "≥ 0.5")
	return err
}

func detailsOf(lists []string) []string {
	paths := make([]string, len(lists))
	for i, list := range lists {
		paths[i] = "/api/v1/lists/" + list + "/details"
	}
	return paths
}

// term searches the largest list. Every second term can match only its last entries, so
// that the whole list is scanned.
func (b *bench) term(ctx context.Context) error {
	ours, err := b.fallback(ctx)
	if err != nil {
		return err
	}
	defer ours.Stop()
	load := rig.Load{Rate: 2000, Time: 20 * time.Second}
	for i := range 1000 {
		term := fmt.Sprintf("zz%d", i)
		if i%2 == 0 {
			term = fmt.Sprintf("%x", 256+i)
		}
		load.Paths = append(load.Paths, "/api/v1/lists/"+b.largest+"/searchFollowing?term="+term)
	}
	result, err := load.Run(ctx, b.work, ours.Addr)
	if err == nil && result.Errors > 0 {
		err = fmt.Errorf("%d errors", result.Errors)
	}
	b.table.Row(fmt.Sprintf("term search over the largest list (%d follows), warm, at %.0f/s, p99", b.follows, result.Rate),
		fmt.Sprintf("%.2f ms", result.P99), fmt.Sprintf("p50 %.2f ms", result.P50), 0, "≤ 5 ms at 2,000/s")
	return err
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
	if err := rig.Get(fmt.Sprintf("http://%s/api/v1/lists/%s/searchFollowing?offset=490", ours.Addr, b.largest)); err != nil {
		return err
	}
	after, err := ours.storeReads()
	b.table.Row("store requests of page 50 of the largest list, cold", strconv.Itoa(after-before), "", 0, "≤ 3")
	return err
}

func (f *fallback) storeReads() (n int, err error) {
	response, err := http.Get("http://" + f.metrics + "/metrics")
	if err != nil {
		return 0, err
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
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
	load := rig.Load{Paths: detailsOf(b.lists), Rate: 5000, Time: time.Minute}
	result, err := load.Run(ctx, b.work, ours.Addr)
	if err != nil {
		return err
	}
	b.table.Row(fmt.Sprintf("errors of %d requests at %.0f/s for random ones of %d lists", result.Requests, result.Rate, len(b.lists)),
		strconv.Itoa(result.Errors), fmt.Sprintf("p99 %.1f ms", result.P99), 0, "0 at 5,000/s")
	memory, err := ours.PeakMemory()
	b.table.Row("peak memory under that load, cache of 32 MiB", fmt.Sprintf("%.0f MiB", memory), "", 0, "≤ 64 MiB")
	return err
}
