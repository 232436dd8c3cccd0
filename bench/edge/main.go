// Command edge measures nginx and Varnish in front of a bucket, as configured by
// followpress edge: requests per second compared with nginx serving files, and the hit
// ratio of their caches. `make bench-edge` builds what it needs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/bench/internal/measure"
	"github.com/followpress/followpress/bench/internal/rig"
	"github.com/followpress/followpress/site"
)

func main() {
	snapshot := flag.String("snapshot", "", "folder of the snapshot; none makes a synthetic one")
	bin := flag.String("bin", "", "folder with the built followpress")
	objects := flag.Int("objects", measure.Objects, "size of the synthetic site")
	flag.Parse()
	if err := run(context.Background(), *snapshot, *bin, *objects); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// A bench keeps what the parts of a run share.
type bench struct {
	work     string
	bucket   *httptest.Server
	requests atomic.Int64 // to the bucket
	lists    []string
	table    measure.Table
}

func run(ctx context.Context, snapshot, bin string, objects int) (err error) {
	b := &bench{}
	if b.work, err = os.MkdirTemp("", "followpress-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.work)) }()
	if snapshot == "" {
		snapshot = b.path("snapshot")
		if err := measure.Snapshot(ctx, snapshot, objects); err != nil {
			return err
		}
	}
	if err := command(ctx, filepath.Join(bin, "followpress"), "generate", "--snapshot", snapshot, "--out", b.path("site")); err != nil {
		return err
	}
	if b.lists, err = rig.Lists(b.path("site")); err != nil {
		return err
	}
	b.bucket = httptest.NewServer(http.HandlerFunc(b.serveObject))
	defer b.bucket.Close()

	plain, err := rig.Nginx(ctx, b.work, b.path("site"))
	if err != nil {
		return err
	}
	defer plain.Stop()
	for _, kind := range []string{"nginx", "varnish"} {
		if err := b.measure(ctx, bin, kind, plain.Addr); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	err = b.emptyVarnish(ctx, plain.Addr)
	fmt.Printf("\n%s", &b.table)
	return err
}

func (b *bench) path(name string) string { return filepath.Join(b.work, name) }

// serveObject is the handler of the bucket.
func (b *bench) serveObject(w http.ResponseWriter, r *http.Request) {
	b.requests.Add(1)
	body, err := os.ReadFile(filepath.Join(b.path("site"), filepath.Clean("/"+r.URL.Path)))
	if err != nil {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", site.RouteDetails.Route().CacheControl)
	w.Header().Set("ETag", `"`+site.Sum(body).String()+`"`)
	_, _ = w.Write(body) // an edge that is gone is noticed elsewhere
}

const (
	rounds = 3
	some   = 1000 // lists that are warm
)

// measure measures one kind of edge.
func (b *bench) measure(ctx context.Context, bin, kind, plain string) error {
	address, err := rig.FreeAddr()
	if err != nil {
		return err
	}
	dir := b.path(kind)
	if err := command(ctx, filepath.Join(bin, "followpress"), "edge", "--kind", kind, "--site", b.path("site"), "--bucket-url", b.bucket.URL,
		"--out", dir, "--listen", address, "--cache-dir", b.path("cache-of-"+kind)); err != nil {
		return err
	}
	edge, err := startEdge(ctx, kind, dir, address)
	if err != nil {
		return err
	}
	defer edge.Stop()
	if err := b.rate(ctx, kind, address, plain, "≥ 0.8"); err != nil {
		return err
	}
	return b.hits(kind, address)
}

// rate compares the rate of an edge with that of nginx serving the files.
func (b *bench) rate(ctx context.Context, name, address, plain, target string) error {
	details := rig.Load{Time: 5 * time.Second}
	for _, list := range b.lists[:min(some, len(b.lists))] {
		details.Paths = append(details.Paths, "/api/v1/lists/"+list+"/details")
	}
	if _, err := details.Most(ctx, b.work, address); err != nil { // warm
		return err
	}
	p, err := measure.Middle(rounds, func(int) (p measure.Pair, err error) {
		if p.Other, err = details.Most(ctx, b.work, plain); err != nil {
			return p, err
		}
		p.Ours, err = details.Most(ctx, b.work, address)
		return p, err
	})
	if err != nil {
		return err
	}
	b.table.Row(name+": details of 1,000 lists, warm, 50 connections / nginx serving files",
		fmt.Sprintf("%.0f/s", p.Ours), fmt.Sprintf("%.0f/s", p.Other), p.Ratio(), target)
	return nil
}

const emptyVCL = `vcl 4.1;
backend default { .host = "%s"; .port = "%s"; }
`

// emptyVarnish measures Varnish with an empty configuration.
func (b *bench) emptyVarnish(ctx context.Context, plain string) error {
	address, err := rig.FreeAddr()
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(b.bucket.Listener.Addr().String())
	if err != nil {
		return err
	}
	dir := b.path("empty")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "followpress.vcl"), fmt.Appendf(nil, emptyVCL, host, port), 0o644); err != nil {
		return err
	}
	varnish, err := startEdge(ctx, "varnish", dir, address)
	if err != nil {
		return err
	}
	defer varnish.Stop()
	return b.rate(ctx, "Varnish with an empty configuration", address, plain, "")
}

// hits requests the details of all lists, some much more often than others, with
// unknown parameters. Each list is requested once before.
func (b *bench) hits(kind, address string) error {
	if err := ask(address, len(b.lists), func(i int) string { return b.lists[i] }); err != nil {
		return err
	}
	const requests = 100_000
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 1, uint64(len(b.lists)-1))
	paths := make([]string, requests)
	for i := range paths {
		paths[i] = b.lists[zipf.Uint64()]
	}
	before := b.requests.Load()
	if err := ask(address, requests, func(i int) string { return paths[i] }); err != nil {
		return err
	}
	ratio := 1 - float64(b.requests.Load()-before)/requests
	b.table.Row(kind+": hit ratio, Zipf mix of all lists with query noise, each list asked for once before", fmt.Sprintf("%.4f", ratio), "", 0, "≥ 0.99")
	return nil
}

// ask sends n requests, 16 at a time.
func ask(address string, n int, list func(i int) string) error {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16, DisableCompression: true}}
	defer client.CloseIdleConnections()
	var next atomic.Int64
	var group errgroup.Group
	for range 16 {
		group.Go(func() error {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				response, err := client.Get(fmt.Sprintf("http://%s/api/v1/lists/%s/details?utm_source=%x&_=%d", address, list(i), rand.Uint64(), i))
				if err != nil {
					return err
				}
				if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
					return fmt.Errorf("list %s: status %d, %w", list(i), response.StatusCode, err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

const edgeConfig = `load_module /usr/lib/nginx/modules/ngx_http_js_module.so;
worker_processes 2; daemon off; pid nginx.pid; error_log nginx.log; pcre_jit on;
events { worker_connections 1024; }
http { access_log off; include followpress.conf; }
`

func startEdge(ctx context.Context, kind, dir, address string) (*rig.Process, error) {
	if kind == "varnish" {
		return rig.Start(ctx, address, exec.CommandContext(ctx, "varnishd", "-F", "-n", filepath.Join(dir, "work"), "-a", address,
			"-f", filepath.Join(dir, "followpress.vcl"), "-s", "malloc,1g", "-j", "none"))
	}
	config := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(config, []byte(edgeConfig), 0o644); err != nil {
		return nil, err
	}
	return rig.Start(ctx, address, exec.CommandContext(ctx, "nginx", "-p", dir, "-c", config))
}

func command(ctx context.Context, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Stderr = os.Stderr
	return c.Run()
}
