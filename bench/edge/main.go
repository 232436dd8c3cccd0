// Command edge measures nginx in front of a bucket, as configured by followpress edge:
// requests per second compared with nginx that only caches, and with nginx serving files,
// and the hit ratio of the cache. `make bench-edge` builds
// what it needs.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/followpress/followpress/bench/measure"
	"github.com/followpress/followpress/bench/rig"
	"github.com/followpress/followpress/site"
	"github.com/followpress/followpress/site/routes"
)

func main() {
	b := &bench{Bench: rig.Bench{Objects: measure.Objects}}
	b.Main(b.run)
}

type bench struct {
	rig.Bench
	bucket   *httptest.Server
	requests atomic.Int64 // requests to the bucket
	lists    []string
}

func (b *bench) run(ctx context.Context) error {
	if _, err := b.Generate(ctx, b.Snapshot, "site"); err != nil {
		return err
	}
	var err error
	if b.lists, err = rig.Lists(b.Path("site")); err != nil {
		return err
	}
	b.bucket = httptest.NewServer(http.HandlerFunc(b.serveObject))
	defer b.bucket.Close()

	plain, err := b.Nginx(ctx)
	if err != nil {
		return err
	}
	defer plain.Stop()
	return b.measure(ctx, plain.Addr)
}

// serveObject is the handler of the bucket.
func (b *bench) serveObject(w http.ResponseWriter, r *http.Request) {
	b.requests.Add(1)
	body, err := os.ReadFile(filepath.Join(b.Path("site"), filepath.Clean("/"+r.URL.Path)))
	if err != nil {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", site.RouteBy(routes.Details).CacheControl)
	w.Header().Set("ETag", `"`+site.Sum(body).String()+`"`)
	_, _ = w.Write(body) // a failed edge is noticed elsewhere
}

const some = 1000 // number of warm lists

// plainProxyCache is a configuration of nginx with followpress's cache settings only. {host} and
// {port} are the bucket's, {address} is the listening address, {cache} a folder.
const plainProxyCache = `proxy_cache_path {cache} levels=1:2 keys_zone=plain:64m max_size=10g inactive=1d use_temp_path=off;
upstream bucket { server {host}:{port}; keepalive 64; }
server {
	listen {address};
	open_file_cache max=10000 inactive=1m;
	location / {
		proxy_cache plain;
		proxy_cache_key $request_uri;
		proxy_cache_lock on;
		proxy_cache_revalidate on;
		proxy_cache_background_update on;
		proxy_http_version 1.1;
		proxy_set_header Connection "";
		proxy_pass http://bucket;
	}
}
`

// measure measures the edge. files is the address of the nginx that serves files.
func (b *bench) measure(ctx context.Context, files string) error {
	edge, err := b.startEdge(ctx, "nginx", func(dir, address string) error {
		_, err := measure.Run(exec.CommandContext(ctx, b.Built("followpress"), "edge", "--kind", "nginx", "--site", b.Path("site"),
			"--bucket-url", b.bucket.URL, "--out", dir, "--listen", address, "--cache-dir", b.Path("cache-of-nginx")))
		return err
	})
	if err != nil {
		return err
	}
	defer edge.Stop()
	bare, err := b.startBare(ctx)
	if err != nil {
		return err
	}
	defer bare.Stop()
	if err := b.rate(ctx, "plain proxy_cache", edge.Addr, bare.Addr, "≥ 0.9"); err != nil {
		return err
	}
	if err := b.rate(ctx, "nginx serving files", edge.Addr, files, ""); err != nil {
		return err
	}
	return b.hits(edge.Addr)
}

// rate compares the rate of the edge with that of another server.
func (b *bench) rate(ctx context.Context, other, address, otherAddress, target string) error {
	return b.CompareRates(ctx, "nginx: details of 1,000 lists, warm, 50 connections / "+other,
		rig.Details(b.lists[:min(some, len(b.lists))]), address, otherAddress, target)
}

// startBare starts nginx with plainProxyCache.
func (b *bench) startBare(ctx context.Context) (*rig.Process, error) {
	host, port, err := net.SplitHostPort(b.bucket.Listener.Addr().String())
	if err != nil {
		return nil, err
	}
	return b.startEdge(ctx, "bare-nginx", func(dir, address string) error {
		config := strings.NewReplacer("{host}", host, "{port}", port, "{address}", address, "{cache}", dir+"-cache").Replace(plainProxyCache)
		return errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "followpress.conf"), []byte(config), 0o644))
	})
}

// hits requests the details of all lists, some much more often than others, with
// unknown parameters. Each list is requested once before.
func (b *bench) hits(address string) error {
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
	b.Figure("nginx: hit ratio, Zipf mix of all lists with query noise, each list asked for once before", "", []float64{ratio}, "≥ 0.99")
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

// startEdge starts nginx with the configuration that configure writes into a folder.
func (b *bench) startEdge(ctx context.Context, name string, configure func(dir, address string) error) (*rig.Process, error) {
	return rig.Start(ctx, func(address string) (*exec.Cmd, error) {
		dir := b.Path(name)
		if err := configure(dir, address); err != nil {
			return nil, err
		}
		return rig.NginxEdge(ctx, dir)
	})
}
